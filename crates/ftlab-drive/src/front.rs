//! The FTL as the device's front.

use ftlab_core::{Layout, Lpn, Result};
use ftlab_ftl::{Admitted, Counting, Ftl, HostRequest, Ticket};

use crate::config::DriveConfig;
use crate::device::{Admission, Device, Front};
use crate::schedule;
use crate::timed::Timed;

/// An FTL on the timed backend, as [`Device`] drives it.
pub struct FtlFront {
    pub ftl: Ftl<Timed>,
}

impl Front for FtlFront {
    #[inline(always)]
    fn backend(&mut self) -> &mut Timed {
        &mut self.ftl.backend
    }

    #[inline]
    fn admit(&mut self, request: &HostRequest<'_>, ticket: Ticket) -> Admission {
        let admitted = self.ftl.admit(request, ticket);
        self.ftl.backend.seal(ticket);
        match admitted {
            Admitted::Done => Admission::Taken,
            Admitted::EndOfLife => Admission::Refused,
        }
    }

    fn notice(&mut self, key: u32) {
        self.ftl.notice(key);
    }

    #[inline]
    fn prefetch(&mut self, first: Lpn, _: u32) {
        self.ftl.prefetch_map(first.0);
    }
}

/// A device with time around a drive that has been prepared on the counting backend.
pub fn timed_device(config: &DriveConfig, prepared: Ftl<Counting>) -> Result<Device<FtlFront>> {
    let timed = timed_backend(config, &prepared.layout)?;
    let mut ftl = prepared.with_backend(timed);
    ftl.start_idle_copies();
    Ok(Device::new(
        FtlFront { ftl },
        &config.host,
        config.layout.geometry.unit_bytes,
    ))
}

fn timed_backend(config: &DriveConfig, layout: &Layout) -> Result<Timed> {
    let mut setup = schedule::Setup {
        timing: config.timing.clone(),
    };
    let policy = schedule::catalogue().build(&config.schedule, &mut setup)?;
    Timed::new(layout, &config.timing, &policy.plan())
}
