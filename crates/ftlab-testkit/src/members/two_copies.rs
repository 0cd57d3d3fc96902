//! Two copies of everything, reads that race them, and second copies in idle time.

use ftlab_core::Lpn;
use ftlab_ftl::Now;
use ftlab_ftl::replication::{CopyPlan, Event, Idle, IdleWork, Of, ReadOf, ReadPlan, ReplicationPolicy, Wait, WriteOf};

pub struct TwoCopies {
    /// Even LPNs get their second copy in idle time only.
    late: bool,
    pub wait: Wait,
    /// Whether each LPN has had its second copy, or the time for it.
    copied: Vec<bool>,
    next: usize,
}

impl TwoCopies {
    pub fn new(units: u32, late: bool) -> Self {
        TwoCopies {
            late,
            wait: Wait::First,
            copied: vec![false; units as usize],
            next: 0,
        }
    }
}

impl ReplicationPolicy for TwoCopies {
    fn write(&mut self, write: &WriteOf<'_>) -> CopyPlan {
        let lpn = write.lpn;
        self.copied[lpn.at()] = !(self.late && lpn.0.is_multiple_of(2));
        CopyPlan {
            copies: 1 + u8::from(self.copied[lpn.at()]),
            wait: self.wait,
            hedge_after_ns: None,
        }
    }

    fn read(&mut self, read: &ReadOf<'_>, plan: &mut ReadPlan) {
        plan.order.extend(0..read.copies.len() as u8);
        plan.order.sort_by_key(|&copy| read.copies[copy as usize].load.queued);
        plan.hedge_after_ns = Some(30_000);
    }

    fn when_idle(&mut self, _: &Idle<'_>) -> Option<IdleWork> {
        let units = self.copied.len();
        let lpn = (0..units)
            .map(|i| (self.next + i) % units)
            .find(|&lpn| !self.copied[lpn])?;
        self.copied[lpn] = true;
        self.next = lpn + 1;
        let of = Of::Lpn(Lpn(lpn as u32));
        Some(IdleWork::Copy { of, lane: None })
    }

    fn idle_ns(&self) -> Option<u64> {
        self.late.then_some(100_000)
    }

    fn idle_units(&self) -> Option<u64> {
        self.late.then_some(10)
    }

    fn on(&mut self, event: Event, _: Now) {
        if let Event::Gone(Of::Lpn(lpn)) = event {
            self.copied[lpn.at()] = true;
        }
    }
}
