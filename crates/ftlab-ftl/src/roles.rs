//! Deduplication and replication in the mechanism: the policies, and what the mechanism keeps for them at run time.

use std::collections::VecDeque;

use crate::backend::OpId;
use crate::chunks::PackPlace;
use crate::config::FtlConfig;
use crate::dedup::{self, DedupPolicy, Work};
use crate::indirection::{CHUNKS, MOST_VALUES, Released};
use crate::late_writes::WriteRace;
use crate::races::{Races, ReadRace};
use crate::replication::{self, CopyAt, ReadPlan, ReplicationPolicy};
use crate::stand_ins::StandIns;

use ftlab_core::{LaneId, Layout, Lpn, Result, Slot};
use rustc_hash::FxHashMap;

/// The two optional roles and what they need at run time.
#[derive(Default)]
pub struct Roles {
    pub dedup: Option<Box<dyn DedupPolicy>>,
    pub replication: Option<Box<dyn ReplicationPolicy>>,
    pub(crate) reads: Races<ReadRace>,
    pub(crate) writes: Races<WriteRace>,
    /// Races of writes whose first copy lies in a page that is still being assembled.
    pub(crate) assembling: Vec<u32>,
    /// Copies beyond the first of each value, and how many there may be: the drive keeps room for all its logical units.
    pub(crate) further: u64,
    pub(crate) room: u64,
    /// Without time: the tick from which on the replication policy is asked what to do when idle.
    pub(crate) idle_at: Option<u64>,
    /// A mirror serves the host, and orders of the replication policy are carried out meanwhile.
    pub(crate) offline_since: Option<u64>,
    /// Where reads of an oracle go.
    pub(crate) stand_ins: Option<StandIns>,
    /// The same for the dedup policy.
    pub(crate) merge_at: Option<u64>,
    /// The dedup policy is asked about units that a collection moves, is told of reads, has what is left of packs put together.
    pub(crate) merges_collected: bool,
    pub(crate) tells_reads: bool,
    /// The dedup policy wants to know who writes.
    pub(crate) asks_writer: bool,
    pub(crate) repacks: bool,
    /// Buffers of the questions to the replication policy.
    pub(crate) plan: ReadPlan,
    /// Programs that may be under way with their pages, oldest first (drives that deduplicate, timed backend).
    under_way: VecDeque<(u32, OpId)>,
    /// By page: the last of them.
    program_by_page: FxHashMap<u32, OpId>,
    /// By open pack.
    pub(crate) packs: Vec<PackPlace>,
    /// Buffer of the works of a question to the dedup policy.
    pub(crate) works: Vec<Work>,
    /// The read of the old version of the unit that is being stored, if the request covers it in part: hashing waits for it.
    pub(crate) old_version: Option<OpId>,
    /// Works of the request whose number this is, as operations.
    pub(crate) request_works: (u64, Vec<OpId>),
    /// Buffer of the units that a collection is about to move, with their places.
    pub(crate) collected: Vec<(Slot, Lpn)>,
    pub(crate) released: Released,
    pub(crate) slots: Vec<Slot>,
    pub(crate) programs: Vec<OpId>,
    pub(crate) copies: Vec<CopyAt>,
    pub(crate) lanes_used: Vec<LaneId>,
    pub(crate) joins: Vec<OpId>,
}

impl Roles {
    pub fn from_config(config: &FtlConfig, layout: &Layout) -> Result<Self> {
        let logical_units = config.logical_units;
        let mut setup = dedup::Setup {
            logical_units,
            raw_units: layout.slots(),
            unit_bytes: layout.geometry.unit_bytes,
        };
        let of_dedup = dedup::catalogue().build(&config.dedup, &mut setup)?;
        let mut setup = replication::Setup::new(logical_units, layout, config.seed);
        let of_replication = replication::catalogue().build(&config.replication, &mut setup)?;
        Ok(Self::given(
            (config.dedup.name != "none").then_some(of_dedup),
            (config.replication.name != "none").then_some(of_replication),
        ))
    }

    /// Roles made outside the catalogue (tests).
    pub fn given(dedup: Option<Box<dyn DedupPolicy>>, replication: Option<Box<dyn ReplicationPolicy>>) -> Self {
        let reads_anywhere = replication.as_ref().is_some_and(|policy| policy.reads_anywhere());
        Roles {
            packs: vec![PackPlace::default(); dedup.as_ref().map_or(0, |policy| usize::from(policy.packs()))],
            merge_at: dedup.as_ref().and_then(|policy| policy.idle_units()),
            idle_at: replication.as_ref().and_then(|policy| policy.idle_units()),
            merges_collected: dedup.as_ref().is_some_and(|policy| policy.asks_collected()),
            tells_reads: dedup.as_ref().is_some_and(|policy| policy.asks_reads()),
            asks_writer: dedup.as_ref().is_some_and(|policy| policy.asks_writer()),
            repacks: dedup.as_ref().is_some_and(|policy| policy.repacks()),
            stand_ins: reads_anywhere.then(StandIns::default),
            dedup,
            replication,
            ..Roles::default()
        }
    }

    #[inline(always)]
    pub fn is_none(&self) -> bool {
        self.dedup.is_none() && self.replication.is_none()
    }

    /// Values that there may be: as many as slots; where values are gathered, as many as chunks.
    pub fn most_values(&self, layout: &Layout) -> u32 {
        match (self.is_none(), self.packs.is_empty()) {
            (true, _) => 0,
            (false, true) => layout.slots(),
            (false, false) => layout.slots().saturating_mul(CHUNKS as u32).min(MOST_VALUES),
        }
    }

    /// Rows of chunks that there may be: a unit has one, and a new one before its old one goes.
    pub fn most_rows(&self, config: &FtlConfig) -> u32 {
        if self.packs.is_empty() {
            0
        } else {
            config.logical_units + 1
        }
    }

    /// Power has failed.
    pub(crate) fn forget(&mut self, protected: bool) {
        self.reads.clear();
        self.writes.clear();
        self.assembling.clear();
        self.offline_since = None;
        if let Some(policy) = &mut self.replication {
            policy.forget();
        }
        self.under_way.clear();
        self.program_by_page.clear();
        self.packs.iter_mut().for_each(PackPlace::forget);
        if let (Some(dedup), false) = (&mut self.dedup, protected) {
            dedup.forget();
        }
    }

    /// A page is being programmed; on drives that deduplicate, later writes may refer to it.
    pub(crate) fn programming(&mut self, page: u32, program: OpId, is_done: impl Fn(OpId) -> bool) {
        while let Some(&(page, program)) = self.under_way.front().filter(|&&(_, program)| is_done(program)) {
            self.under_way.pop_front();
            // The page may have been erased and programmed again behind programs that take longer.
            if self.program_of(page) == Some(program) {
                self.program_by_page.remove(&page);
            }
        }
        self.under_way.push_back((page, program));
        self.program_by_page.insert(page, program);
    }

    /// The last program of `page`, if it may be under way.
    pub(crate) fn program_of(&self, page: u32) -> Option<OpId> {
        self.program_by_page.get(&page).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(index: u32) -> OpId {
        OpId { index, generation: 0 }
    }

    /// Page 7 is programmed, erased and programmed again while page 3 still is: its first program leaves after its second began.
    #[test]
    fn a_page_is_known_by_its_last_program() {
        let mut roles = Roles::default();
        let none_is_done = |_| false;
        roles.programming(3, program(0), none_is_done);
        roles.programming(7, program(1), none_is_done);
        roles.programming(7, program(2), none_is_done);
        assert_eq!(roles.program_of(7), Some(program(2)));
        roles.programming(9, program(3), |id| id.index < 2);
        assert_eq!(roles.program_of(3), None, "complete");
        assert_eq!(
            roles.program_of(7),
            Some(program(2)),
            "its first program is complete, its last is not"
        );
        assert_eq!(roles.program_of(8), None, "never programmed");
    }

    /// Neither the order nor the table keeps what is complete, and a power cut ends all of it.
    #[test]
    fn complete_programs_are_not_kept() {
        let mut roles = Roles::default();
        for number in 0..1000 {
            roles.programming(number % 50, program(number), |id| id.index + 10 <= number);
            assert!(
                roles.program_by_page.len() <= 10,
                "{} after {number}",
                roles.program_by_page.len()
            );
        }
        assert_eq!(roles.program_by_page.len(), roles.under_way.len());
        roles.forget(false);
        assert_eq!((roles.program_of(49), roles.under_way.len()), (None, 0));
    }
}
