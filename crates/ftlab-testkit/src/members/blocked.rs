//! One copy, and when its die is blocked further ones on dies that are not (as PBLRU's RWrite does); reads go round blocked
//! copies.

use ftlab_core::LaneId;
use ftlab_ftl::Now;
use ftlab_ftl::indirection::Vpn;
use ftlab_ftl::replication::{
    CopyPlan, Event, Idle, IdleWork, LateWrite, Of, ReadOf, ReadPlan, ReplicationPolicy, Wait, WriteOf,
};

pub struct Blocked {
    after_ns: u64,
    /// Copies in all.
    most: usize,
    /// Values that have had further copies.
    copied: Vec<Vpn>,
    late: [u64; 2],
}

impl Blocked {
    pub fn new(after_ns: u64, most: usize) -> Self {
        Blocked {
            after_ns,
            most,
            copied: Vec::new(),
            late: [0; 2],
        }
    }
}

impl ReplicationPolicy for Blocked {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![("late", self.late[0] as f64), ("copied", self.late[1] as f64)]
    }

    fn write(&mut self, _: &WriteOf<'_>) -> CopyPlan {
        CopyPlan {
            copies: 1,
            wait: Wait::First,
            hedge_after_ns: Some(self.after_ns),
        }
    }

    fn late(&mut self, write: &LateWrite<'_>) -> Option<LaneId> {
        self.late[0] += 1;
        assert!(!write.copies.is_empty());
        let taken = |lane: LaneId| write.copies.iter().any(|copy| copy.lane == lane);
        let lanes = write.loads.lanes().filter(|&lane| !taken(lane));
        let least = lanes.min_by_key(|&lane| {
            let load = write.loads.of(lane);
            (load.internal, load.queued, lane.0)
        });
        least.filter(|_| write.copies.len() < self.most)
    }

    fn read(&mut self, read: &ReadOf<'_>, plan: &mut ReadPlan) {
        plan.order.extend(0..read.copies.len() as u8);
        plan.order
            .sort_by_key(|&copy| read.copies[usize::from(copy)].load.internal);
        plan.hedge_after_ns = Some(self.after_ns);
    }

    fn idle_ns(&self) -> Option<u64> {
        Some(200_000)
    }

    /// The losers of the races are given up one after the other.
    fn when_idle(&mut self, _: &Idle<'_>) -> Option<IdleWork> {
        let vpn = self.copied.pop()?;
        Some(IdleWork::Drop {
            of: Of::Vpn(vpn),
            copy: 1,
        })
    }

    fn on(&mut self, event: Event, _: Now) {
        match event {
            Event::Copied { vpn, .. } => {
                self.late[1] += 1;
                self.copied.push(vpn);
            }
            Event::Became { .. } => {}
            Event::Gone(of) => self.copied.retain(|&vpn| of != Of::Vpn(vpn)),
        }
    }

    fn forget(&mut self) {
        self.copied.clear();
    }
}
