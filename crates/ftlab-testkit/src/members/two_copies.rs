//! Two copies of everything, reads that race them, and second copies in idle time.

use ftlab_core::Lpn;
use ftlab_ftl::replication::{ReadPlan, ReplicationPolicy};
use ftlab_ftl::{Load, Now};

pub struct TwoCopies {
    /// Even LPNs get their second copy in idle time only.
    late: bool,
    /// Whether each LPN has had its second copy, or the time for it.
    copied: Vec<bool>,
    next: usize,
}

impl TwoCopies {
    pub fn new(units: u32, late: bool) -> Self {
        TwoCopies {
            late,
            copied: vec![false; units as usize],
            next: 0,
        }
    }
}

impl ReplicationPolicy for TwoCopies {
    fn copies(&mut self, lpn: Lpn, _: Now) -> u8 {
        self.copied[lpn.at()] = !(self.late && lpn.0.is_multiple_of(2));
        1 + u8::from(self.copied[lpn.at()])
    }

    fn read(&mut self, _: Lpn, loads: &[Load], _: Now, plan: &mut ReadPlan) {
        plan.order.extend(0..loads.len() as u8);
        plan.order.sort_by_key(|&copy| loads[copy as usize].queued);
        plan.hedge_after_ns = Some(30_000);
    }

    fn when_idle(&mut self, _: Now) -> Option<Lpn> {
        let units = self.copied.len();
        let lpn = (0..units)
            .map(|i| (self.next + i) % units)
            .find(|&lpn| !self.copied[lpn])?;
        self.copied[lpn] = true;
        self.next = lpn + 1;
        Some(Lpn(lpn as u32))
    }

    fn idle_ns(&self) -> Option<u64> {
        self.late.then_some(100_000)
    }
}
