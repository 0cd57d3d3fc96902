//! Drive files in two steps: what was written (`file.rs`: serde, unknown keys refused), then what is meant (this file).

use ftlab_core::{Layout, PolicySpec};
use ftlab_flash::Timing;
use ftlab_ftl::FtlConfig;

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

/// A drive as it will be built: every default filled in, every unit resolved.
#[derive(Clone, Debug)]
pub struct DriveConfig {
    pub name: String,
    pub layout: Layout,
    pub timing: Timing,
    pub host: HostLink,
    /// `fcfs`, `read_first`, `out_of_order`, `lockstep`.
    pub schedule: PolicySpec,
    pub ftl: FtlConfig,
    /// Program/erase cycles of the lifetime figures (TBW, DWPD) and the warranty they are spread over.
    pub rated_pe_cycles: u32,
    pub warranty_years: f64,
}
