//! The FTL as the device's front.

use ftlab_core::{DeviceGeometry, Layout, Lpn, OpKind, Result, RuId, Status};
use ftlab_flash::Timing;
use ftlab_ftl::units::RuState;
use ftlab_ftl::{Admitted, Counting, Ftl, HostRequest, Notice, Ticket};

use crate::clocked::Clocked;
use crate::config::DriveConfig;
use crate::device::{Device, Front};
use crate::schedule;
use crate::timed::Timed;

/// Requests before its own at which what an overwrite invalidates is fetched; farther ahead it is the map entry, which
/// must be there by then.
const NEAR: usize = 8;

/// An FTL on a backend with a clock, as [`Device`] drives it.
pub struct FtlFront<B> {
    pub ftl: Ftl<B>,
    /// What reads cost when the drive recovers from a power cut.
    pub timing: Timing,
}

impl<B: Clocked> Front for FtlFront<B> {
    type Backend = B;

    #[inline(always)]
    fn backend(&mut self) -> &mut B {
        &mut self.ftl.backend
    }

    fn geometry(&self) -> DeviceGeometry {
        let unit_bytes = self.ftl.layout.geometry.unit_bytes;
        DeviceGeometry {
            capacity_bytes: u64::from(self.ftl.config.logical_units) * u64::from(unit_bytes),
            unit_bytes,
        }
    }

    #[inline(always)]
    fn admit(&mut self, request: &HostRequest<'_>, ticket: Ticket) -> Status {
        let admitted = self.ftl.admit(request, ticket);
        self.ftl.backend.seal(ticket);
        match admitted {
            Admitted::Done => Status::Done,
            Admitted::EndOfLife => Status::WornOut,
        }
    }

    fn notice(&mut self, notice: Notice) {
        self.ftl.notice(notice);
    }

    #[inline]
    fn prefetch(&self, op: OpKind, first: Lpn, ahead: usize) {
        if ahead > NEAR {
            return self.ftl.prefetch_map(first.0);
        }
        let slot = match op {
            OpKind::Read => self.ftl.slot_of(first.0),
            _ => self.ftl.prefetch_old(first.0),
        };
        if let Some(slot) = slot {
            self.ftl.backend.prefetch(self.ftl.layout.page_of(slot));
        }
    }
}

/// A device with time around a drive that has been prepared on the counting backend.
pub fn timed_device(config: &DriveConfig, prepared: Ftl<Counting>) -> Result<Device<FtlFront<Timed>>> {
    let mut timed = timed_backend(config, &prepared.layout)?;
    tell_what_is_programmed(&prepared, &mut timed);
    Ok(device(config, prepared, timed))
}

/// A device around a drive that has been prepared on the counting backend, with `backend` in its place.
pub fn device<B: Clocked>(config: &DriveConfig, prepared: Ftl<Counting>, backend: B) -> Device<FtlFront<B>> {
    let mut ftl = prepared.with_backend(backend);
    ftl.start_idle_work();
    let timing = config.timing.clone();
    Device::new(FtlFront { ftl, timing }, &config.host)
}

/// The pages that preparation has programmed, so that the backend can hold reads and programs against them.
fn tell_what_is_programmed(prepared: &Ftl<Counting>, timed: &mut Timed) {
    let layout = &prepared.layout;
    for (number, unit) in prepared.units.rus.iter().enumerate() {
        let is_full = matches!(unit.state, RuState::Closed | RuState::Collecting);
        let filled = if is_full { layout.pages_per_ru } else { 0 };
        timed.set_filled(RuId(number as u32), filled);
    }
    for (unit, next) in prepared.open_units() {
        timed.set_filled(unit, next / layout.units_per_page);
    }
}

fn timed_backend(config: &DriveConfig, layout: &Layout) -> Result<Timed> {
    let mut setup = schedule::Setup {
        timing: config.timing.clone(),
    };
    let policy = schedule::catalogue().build(&config.schedule, &mut setup)?;
    Timed::new(layout, &config.timing, &policy.plan())
}
