//! Write frontiers: which there are, and the open unit of each on each lane.

use std::ops::Range;

use ftlab_core::RuId;

use crate::backend::{Class, OpId, Ticket};
use crate::config::{GcConfig, Survivors};
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
    survivors: Survivors,
    /// The first of the drive's own for survivors: the shared one, or the internal stream of frontier 0.
    own_survivors: Frontier,
    /// Translation pages, policy-owned pages, journal and checkpoints. The last two fill the first one.
    metadata: Range<Frontier>,
    /// Destinations of static wear levelling: one, or where survivors keep to their streams one for each of the policy's frontiers
    /// and one for the rest, of which one may be open on a lane.
    wear: Range<Frontier>,
}

impl Frontiers {
    /// With `metadata` frontiers for what is not the host's.
    pub fn new(placement: &dyn PlacementPolicy, gc: &GcConfig, metadata: Frontier, wear: bool, lanes: u32) -> Self {
        let host = placement.host_frontiers();
        let of_policy = host + placement.own_survivor_frontiers();
        let own_survivors = match gc.survivors {
            Survivors::Shared => 1,
            Survivors::Stream => 0,
            Survivors::Internal => host,
        };
        let first_metadata = of_policy + own_survivors;
        let first_wear = first_metadata + metadata;
        let apart = gc.survivors != Survivors::Shared || placement.keeps_survivors_apart();
        let count = first_wear
            + match (wear, apart) {
                (false, _) => 0,
                (true, true) if of_policy > 1 => of_policy + 1,
                (true, _) => 1,
            };
        Frontiers {
            open: vec![Open::empty(); count as usize * lanes as usize],
            count,
            host,
            lanes,
            survivors: gc.survivors,
            own_survivors: of_policy,
            metadata: first_metadata..first_wear,
            wear: first_wear..count,
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
        let of = self.of_policy(from);
        match self.survivors {
            Survivors::Shared => self.own_survivors,
            // Units of metadata have no survivors but their own kind.
            Survivors::Stream if self.metadata.contains(&from) => from,
            Survivors::Stream => of,
            Survivors::Internal if of < self.host => self.own_survivors + of,
            Survivors::Internal => of,
        }
    }

    /// Frontiers of the drive's own for survivors.
    pub fn survivors_of_drive(&self) -> Frontier {
        self.metadata.start - self.own_survivors
    }

    /// The policy's frontier whose data fills units of frontier `from`; 0 where that may be of any.
    pub fn of_policy(&self, from: Frontier) -> Frontier {
        if from < self.own_survivors {
            from
        } else if self.survivors == Survivors::Internal && from < self.own_survivors + self.host {
            from - self.own_survivors
        } else if self.wear.contains(&from) && from + 1 < self.wear.end {
            from - self.wear.start
        } else {
            0
        }
    }

    /// What each frontier takes, in the order of their numbers.
    pub fn names(&self) -> Vec<String> {
        let numbered = |what: &str, range: &Range<Frontier>| -> Vec<String> {
            match range.len() {
                1 => vec![what.to_owned()],
                many => (0..many).map(|number| format!("{what} {number}")).collect(),
            }
        };
        let mut names = match self.host {
            1 => vec!["host writes".to_owned()],
            _ => numbered("stream", &(0..self.host)),
        };
        names.extend(numbered("survivors, class", &(self.host..self.own_survivors)));
        names.extend(match self.survivors {
            Survivors::Internal if self.host > 1 => names[..self.host as usize]
                .iter()
                .map(|stream| format!("survivors of {stream}"))
                .collect(),
            _ => numbered("survivors", &(self.own_survivors..self.metadata.start)),
        });
        names.extend(numbered("metadata", &self.metadata));
        names.extend(numbered("wear levelling", &self.wear));
        names
    }

    /// Whether survivors share the open units of host writes.
    pub fn survivors_join_host(&self) -> bool {
        self.survivors == Survivors::Stream
    }

    /// Where static wear levelling puts the data of a unit that frontier `from` filled; `None` where nothing levels.
    pub fn wear_of(&self, from: Frontier) -> Option<Frontier> {
        match self.wear.len() {
            0 => None,
            1 => Some(self.wear.start),
            _ if self.wear.contains(&from) => Some(from),
            _ if self.metadata.contains(&from) => Some(self.wear.end - 1),
            _ => Some(self.wear.start + self.of_policy(from)),
        }
    }

    /// Destinations of static wear levelling beside `frontier`, which is one itself: they may not be open where it is.
    pub fn other_wear(&self, frontier: Frontier) -> impl Iterator<Item = Frontier> + use<> {
        let others = if self.wear.contains(&frontier) {
            self.wear.clone()
        } else {
            0..0
        };
        others.filter(move |&other| other != frontier)
    }

    /// Frontiers beside the policy's that may be open on a lane at once, of which it has `of_policy`.
    pub fn open_beside(&self) -> u32 {
        let wear = self.wear.len() as u32;
        u32::from(self.count - self.own_survivors) - wear.saturating_sub(1)
    }

    /// Most frontiers that one collection can open at once: those of survivors, and those of the translation pages, the
    /// policy-owned pages and the journal that it causes.
    pub fn survivor_frontiers(&self, placement: Frontier) -> u32 {
        u32::from(placement.max(1)) + self.metadata.len() as u32
    }
}
