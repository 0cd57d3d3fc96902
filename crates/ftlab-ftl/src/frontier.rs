//! Write frontiers: which there are, and the open unit of each on each lane.

use std::ops::Range;

use ftlab_core::RuId;

use crate::backend::{Class, OpId, Ticket};
use crate::config::GcConfig;
use crate::placement::PlacementPolicy;

/// The number of a write frontier.
pub type Frontier = u16;

/// No reclaim unit is open.
pub const NO_RU: RuId = RuId(u32::MAX);

/// The open reclaim unit of a frontier on a lane, with its cursor and the page being filled.
#[derive(Clone, Debug)]
pub struct Open {
    pub ru: RuId,
    /// First slot of `ru`.
    pub base: u32,
    /// Units filled so far.
    pub next: u32,
    /// Timed backend: what the page being filled waits for, who waits for it, and how it queues.
    pub inputs: Vec<OpId>,
    pub ticket: Ticket,
    pub class: Class,
    pub cause: u8,
    /// The page being filled holds copies made by garbage collection.
    pub copied: bool,
}

impl Open {
    fn empty() -> Self {
        Open {
            ru: NO_RU,
            base: 0,
            next: 0,
            inputs: Vec::new(),
            ticket: Ticket::NONE,
            class: Class::HostWrite,
            cause: 0,
            copied: false,
        }
    }
}

/// The numbering of frontiers: the host's, the placement policy's own for survivors, then the mechanism's.
#[derive(Clone, Debug)]
pub struct Frontiers {
    pub open: Vec<Open>,
    pub count: Frontier,
    pub host: Frontier,
    lanes: u32,
    shared_gc: Option<Frontier>,
    first_internal: Option<Frontier>,
    /// Translation pages, policy-owned pages, journal and checkpoints. The last two fill the first one.
    metadata: Range<Frontier>,
    /// Destination of static wear levelling.
    pub wear: Option<Frontier>,
}

impl Frontiers {
    /// With `metadata` frontiers for what is not the host's.
    pub fn new(placement: &dyn PlacementPolicy, gc: &GcConfig, metadata: Frontier, wear: bool, lanes: u32) -> Self {
        let host = placement.host_frontiers();
        let mut count = host + placement.own_survivor_frontiers();
        let mut take = |wanted: Frontier| {
            count += wanted;
            (wanted > 0).then(|| count - wanted)
        };
        let first_internal = take(if gc.internal_streams { host } else { 0 });
        let shared_gc = take(Frontier::from(gc.separate_frontier && !gc.internal_streams));
        let first_metadata = take(metadata).unwrap_or(0);
        let wear = take(Frontier::from(wear));
        Frontiers {
            open: vec![Open::empty(); count as usize * lanes as usize],
            count,
            host,
            lanes,
            shared_gc,
            first_internal,
            metadata: first_metadata..first_metadata + metadata,
            wear,
        }
    }

    #[inline(always)]
    pub fn place(&self, frontier: Frontier, lane: ftlab_core::LaneId) -> usize {
        frontier as usize * self.lanes as usize + lane.at()
    }

    pub fn of_place(&self, place: usize) -> (Frontier, ftlab_core::LaneId) {
        (
            (place / self.lanes as usize) as Frontier,
            ftlab_core::LaneId((place % self.lanes as usize) as u32),
        )
    }

    /// Metadata frontier `number`; that of the journal and of checkpoints is the first.
    ///
    /// # Panics
    /// If the drive does not have it.
    #[inline]
    pub fn metadata(&self, number: Frontier) -> Frontier {
        assert!(
            number < self.metadata.len() as Frontier,
            "metadata frontier {number} of {}",
            self.metadata.len()
        );
        self.metadata.start + number
    }

    /// All of them; none on a drive that keeps nothing of its own in flash.
    pub fn all_metadata(&self) -> Range<Frontier> {
        self.metadata.clone()
    }

    /// Where the drive sends survivors of a unit that frontier `from` filled, when the placement policy leaves it open.
    #[inline]
    pub fn default_survivor(&self, from: Frontier) -> Frontier {
        match (self.shared_gc, self.first_internal) {
            (Some(shared), _) => shared,
            (None, Some(first)) if from < self.host => first + from,
            (None, Some(first)) if from >= first && from < first + self.host => from,
            (None, Some(first)) => first,
            (None, None) if Some(from) == self.wear => 0,
            (None, None) => from,
        }
    }

    /// Whether survivors share the open units of host writes.
    pub fn survivors_join_host(&self) -> bool {
        self.shared_gc.is_none() && self.first_internal.is_none()
    }

    /// Most frontiers that one collection can open at once: those of survivors, and those of the translation pages, the
    /// policy-owned pages and the journal that it causes.
    pub fn survivor_frontiers(&self, placement: Frontier) -> u32 {
        u32::from(placement.max(1)) + self.metadata.len() as u32
    }
}
