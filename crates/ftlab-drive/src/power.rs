//! Power cuts of a whole drive, and how long it takes to come back.

use ftlab_core::Geometry;
use ftlab_flash::Timing;
use ftlab_ftl::recovery::RecoveryReport;
use ftlab_ftl::{Backend, Ftl};

use crate::config::DriveConfig;

/// What one power cut did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    pub report: RecoveryReport,
    /// Requests that were under way and will never complete.
    pub lost_requests: u64,
    /// From power-on until the drive takes requests again.
    pub recovery_ns: u64,
}

/// Power fails and comes back at once, for a drive without a device around it; it is never busy.
pub fn cut_power<B: Backend>(ftl: &mut Ftl<B>, config: &DriveConfig) -> PowerCut {
    let report = ftl.power_cut();
    ftl.power_on();
    PowerCut {
        report,
        lost_requests: 0,
        recovery_ns: recovery_ns(&config.timing, &config.layout.geometry, &report),
    }
}

/// Time of the reads of a recovery, spread evenly over dies and channels: whole pages of the checkpoint, and the spare
/// areas of the pages programmed since and of the first page of every reclaim unit.
///
/// # Not modelled
/// Firmware start-up, the controller's own work per entry, and the erases and the checkpoint that follow in the background.
pub fn recovery_ns(timing: &Timing, geometry: &Geometry, report: &RecoveryReport) -> u64 {
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
