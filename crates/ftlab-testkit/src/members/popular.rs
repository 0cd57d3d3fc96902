//! Copies of what is read most, made and given up in idle moments on lanes that the policy names (as RR-SSD does); it holds what
//! it is told against what it sees.

use ftlab_core::{LaneId, Stream};
use ftlab_ftl::Now;
use ftlab_ftl::indirection::Vpn;
use ftlab_ftl::replication::{
    CopyPlan, Event, Idle, IdleWork, MAX_COPIES, Of, ReadOf, ReadPlan, ReplicationPolicy, WriteOf,
};
use rustc_hash::FxHashMap;

/// A unit or value with more reads than this gets copies.
const POPULAR: u32 = 2;
/// Values with copies: beyond so many some are given up.
const MOST: usize = 12;

pub struct Popular {
    reads: FxHashMap<Of, u32>,
    /// Reads asked about.
    pub asked: u64,
    /// Copies of each value that has ever had a second one, as far as the policy has been told.
    copies: FxHashMap<Vpn, usize>,
    /// In order of popularity, for this idle moment.
    wanted: Vec<Of>,
    /// What was ordered last: it must be done as ordered, or not at all.
    ordered: Option<(Of, LaneId)>,
    random: Stream,
    done: [u64; 3],
}

impl Popular {
    pub fn new(seed: u64) -> Self {
        Popular {
            reads: FxHashMap::default(),
            asked: 0,
            copies: FxHashMap::default(),
            wanted: Vec::new(),
            ordered: None,
            random: Stream::new(seed, "popular"),
            done: [0; 3],
        }
    }

    /// Every value of which copies are known must lie in as many places.
    fn compare(&self, idle: &Idle<'_>) {
        let mut lanes = Vec::new();
        for (&vpn, &copies) in &self.copies {
            idle.lanes_of(Of::Vpn(vpn), &mut lanes);
            assert_eq!(lanes.len(), copies, "copies of {vpn:?} on {lanes:?}");
        }
    }

    fn copy(&mut self, of: Of, idle: &Idle<'_>, lanes: &[LaneId]) -> Option<IdleWork> {
        let free = idle.loads.lanes().filter(|lane| !lanes.contains(lane));
        // RR-SSD: most free space by least erases and load.
        let lane = free.max_by_key(|&lane| {
            let cost = (1 + idle.erases(lane)) * (1 + u64::from(idle.loads.of(lane).queued));
            (idle.free_units(lane) as u64 * 1000 / cost, std::cmp::Reverse(lane.0))
        })?;
        self.ordered = Some((of, lane));
        Some(IdleWork::Copy { of, lane: Some(lane) })
    }
}

impl ReplicationPolicy for Popular {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let names = ["copied", "dropped", "gone"].into_iter().zip(self.done);
        let figures = names.map(|(name, count)| (name, count as f64));
        figures.chain([("asked", self.asked as f64)]).collect()
    }

    fn write(&mut self, _: &WriteOf<'_>) -> CopyPlan {
        CopyPlan::ONE
    }

    fn read(&mut self, read: &ReadOf<'_>, plan: &mut ReadPlan) {
        self.asked += 1;
        assert!(!read.copies.is_empty() && (read.vpn.is_some() || read.copies.len() == 1));
        let of = read.vpn.map_or(Of::Lpn(read.lpn), Of::Vpn);
        *self.reads.entry(of).or_default() += 1;
        let least = (0..read.copies.len()).min_by_key(|&copy| read.copies[copy].load.queued);
        plan.order.extend(least.map(|copy| copy as u8));
    }

    fn idle_ns(&self) -> Option<u64> {
        Some(60_000)
    }

    fn idle_units(&self) -> Option<u64> {
        Some(7)
    }

    fn when_idle(&mut self, idle: &Idle<'_>) -> Option<IdleWork> {
        self.ordered = None;
        self.compare(idle);
        let mut lanes = Vec::new();
        if self.copies.len() > MOST {
            let mut values: Vec<Vpn> = self.copies.keys().copied().collect();
            values.sort_unstable();
            let vpn = values[self.random.below(values.len() as u64) as usize];
            self.done[1] += 1;
            match self.copies.get_mut(&vpn) {
                Some(copies) if *copies > 2 => *copies -= 1,
                _ => {
                    self.copies.remove(&vpn);
                }
            }
            let copy = self.random.below(2) as u8;
            return Some(IdleWork::Drop { of: Of::Vpn(vpn), copy });
        }
        if self.wanted.is_empty() {
            self.wanted = self
                .reads
                .keys()
                .copied()
                .filter(|of| self.reads[of] > POPULAR)
                .collect();
            self.wanted.sort_by_key(|&of| match of {
                Of::Lpn(lpn) => (self.reads[&of], 0, lpn.0),
                Of::Vpn(vpn) => (self.reads[&of], 1, vpn.0),
            });
        }
        let of = self.wanted.pop()?;
        idle.lanes_of(of, &mut lanes);
        if lanes.is_empty() || lanes.len() >= MAX_COPIES {
            return None;
        }
        self.copy(of, idle, &lanes)
    }

    fn on(&mut self, event: Event, _: Now) {
        match event {
            Event::Copied { of, vpn, lane } => {
                assert_eq!(self.ordered, Some((of, lane)), "a copy that nobody has ordered");
                self.done[0] += 1;
                *self.copies.entry(vpn).or_insert(1) += 1;
                // What was read as a unit is read as a value from now on.
                if let Of::Lpn(_) = of {
                    let reads = self.reads.remove(&of).unwrap_or_default();
                    self.reads.insert(Of::Vpn(vpn), reads);
                }
            }
            Event::Became { .. } => {}
            Event::Gone(of) => {
                self.done[2] += 1;
                self.reads.remove(&of);
                self.wanted.retain(|&other| other != of);
                if let Of::Vpn(vpn) = of {
                    self.copies.remove(&vpn);
                }
            }
        }
    }

    fn forget(&mut self) {
        self.reads.clear();
        self.copies.clear();
        self.wanted.clear();
        self.ordered = None;
    }
}
