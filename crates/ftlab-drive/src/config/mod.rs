//! Drive files in two steps: what was written (`file.rs`: serde, unknown keys refused), then what is meant (this file).
//!
//! The way of a drive file: [`read`] turns text and `--set` options into tables, [`resolve`] fills in what was left out,
//! derives what follows and refuses what cannot work ([`space`]: too little spare), [`show`] writes the result down again,
//! [`theory`] says what theory expects of it. [`presets`] are the drive files that come with the program.

pub mod file;
pub mod presets;
pub mod quantity;
pub mod read;
mod resolve;
mod show;
mod space;
mod theory;

use std::path::Path;

use ftlab_core::{Error, Layout, PolicySpec, Result, error};
use ftlab_flash::Timing;
use ftlab_ftl::FtlConfig;

pub use file::Cell;
pub use read::apply_set;
pub use space::units_per_pool;
pub use theory::theory_report;

/// The link to the host and the controller's own time per command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLink {
    /// Bytes per second in each direction; `None`: the link costs nothing.
    pub bytes_per_second: Option<u64>,
    /// Payload bytes per packet and overhead bytes added to each (PCIe: 128 and 28); 0 payload: no packets.
    pub packet_payload_bytes: u32,
    pub packet_overhead_bytes: u32,
    /// Fixed time added to each read / write / other command (set-up and control packets); overlaps with other commands.
    pub read_setup_ns: u64,
    pub write_setup_ns: u64,
    /// Controller time per command: one server, commands queue for it.
    pub command_ns: u64,
}

impl HostLink {
    /// Time of `bytes` on the link with their packets' overhead, rounded up to a nanosecond.
    #[inline]
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        let Some(rate) = self.bytes_per_second else {
            return 0;
        };
        let packets = match self.packet_payload_bytes {
            0 => 0,
            payload => bytes.div_ceil(u64::from(payload)),
        };
        let on_link = bytes + packets * u64::from(self.packet_overhead_bytes);
        (u128::from(on_link) * 1_000_000_000).div_ceil(u128::from(rate)) as u64
    }
}

/// A drive as it will be built: every default filled in, every unit resolved.
#[derive(Clone, Debug)]
pub struct DriveConfig {
    pub name: String,
    pub description: String,
    /// Where the numbers come from.
    pub source: String,
    pub layout: Layout,
    pub cell: Cell,
    pub timing: Timing,
    pub host: HostLink,
    /// `fcfs`, `read_first`, `out_of_order`, `lockstep`.
    pub schedule: PolicySpec,
    pub ftl: FtlConfig,
    /// Program/erase cycles of the lifetime figures (TBW, DWPD) and the warranty they are spread over.
    pub rated_pe_cycles: u32,
    pub warranty_years: f64,
}

impl DriveConfig {
    /// Loads a preset by its name or a drive file by its path, with `sets` (`"ftl.op_ratio=0.15"`) applied on top.
    pub fn load(name_or_path: &str, sets: &[String]) -> Result<DriveConfig> {
        if let Some(preset) = presets::find(name_or_path) {
            return Self::parse(preset.text, &format!("drive {}", preset.name), sets);
        }
        let path = Path::new(name_or_path);
        if !path.exists() && path.extension().is_none() && path.components().count() == 1 {
            return Err(error::unknown("drive", name_or_path, &presets::names()));
        }
        let text = std::fs::read_to_string(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::InvalidData => Error::input(format!("{name_or_path}: not a text file")),
            _ => Error::io(path, &e),
        })?;
        let mut config = Self::parse(&text, name_or_path, sets)?;
        if config.name.is_empty() {
            config.name = path
                .file_stem()
                .map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
        }
        Ok(config)
    }

    /// Reads the text of a drive file; `origin` names it in errors.
    pub fn parse(text: &str, origin: &str, sets: &[String]) -> Result<DriveConfig> {
        let file = read::read(text, origin, sets)?;
        resolve::resolve(&file).map_err(|e| Error::input(format!("{origin}: {e}")))
    }
}

#[cfg(test)]
mod tests;
