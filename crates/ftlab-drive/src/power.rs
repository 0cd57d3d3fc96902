//! Power cuts of a whole drive, and how long it takes to come back.

use ftlab_ftl::recovery::RecoveryReport;
use ftlab_ftl::{Backend, Ftl};

use crate::config::DriveConfig;
use crate::device::Device;
use crate::front::FtlFront;

/// What one power cut did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    pub report: RecoveryReport,
    /// Requests that were under way and will never complete.
    pub lost_requests: u64,
    /// From power-on until the drive takes requests again.
    pub recovery_ns: u64,
}

impl Device<FtlFront> {
    /// Power fails and comes back at once: what was under way is lost, the record is rebuilt. The drive takes requests
    /// again `recovery_ns` later.
    ///
    /// # Panics
    /// If the drive keeps no recovery information (`ftl.checkpoint = "none"`).
    pub fn cut_power(&mut self, config: &DriveConfig) -> PowerCut {
        let lost_requests = self.outstanding() as u64;
        let report = self.front().ftl.power_cut();
        self.reset();
        self.front().ftl.power_on();
        PowerCut {
            report,
            lost_requests,
            recovery_ns: recovery_ns(config, &report),
        }
    }
}

/// As [`Device::cut_power`], for a drive without time; it is never busy.
pub fn cut_power<B: Backend>(ftl: &mut Ftl<B>, config: &DriveConfig) -> PowerCut {
    let report = ftl.power_cut();
    ftl.power_on();
    PowerCut {
        report,
        lost_requests: 0,
        recovery_ns: recovery_ns(config, &report),
    }
}

/// Time of the reads of a recovery, spread evenly over dies and channels: whole pages of the checkpoint, and the spare
/// areas of the pages programmed since and of the first page of every reclaim unit.
///
/// # Not modelled
/// Firmware start-up, the controller's own work per entry, and the erases and the checkpoint that follow in the background.
pub fn recovery_ns(config: &DriveConfig, report: &RecoveryReport) -> u64 {
    let (timing, geometry) = (&config.timing, &config.layout.geometry);
    let pages = report.checkpoint_units.div_ceil(u64::from(geometry.units_per_page()));
    let spares = report.scanned_pages + report.probed_pages;
    let whole_ns = timing.read_command_ns + timing.transfer_ns(u64::from(geometry.page_bytes));
    let spare_ns = timing.read_command_ns + timing.transfer_ns(u64::from(geometry.oob_bytes));
    let cell_ns = timing.read_ns.iter().sum::<u64>() / timing.read_ns.len() as u64;
    let on_channels = pages * whole_ns + spares * spare_ns;
    let on_dies = on_channels + (pages + spares) * cell_ns;
    let over = |work: u64, servers: u32| work.div_ceil(u64::from(servers));
    over(on_channels, geometry.channels).max(over(on_dies, geometry.total_dies())) + timing.ecc_ns
}
