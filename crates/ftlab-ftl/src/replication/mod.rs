//! Replication: how many copies of a unit there are, where they lie, and which of them serves a read.
//!
//! Further copies take the spare space that the drive does not need for itself: when all of its logical units, its open and
//! reserved reclaim units and its tables would no longer fit beside one more copy, it does without.

use ftlab_core::{Catalogue, LaneId, Layout, Lpn, member};

use crate::Now;
pub use crate::backend::Load;
use crate::indirection::{Indirection, Vpn};
pub use crate::indirection::{MAX_COPIES, Of};
use crate::record::{Entry, Record, Target};
use crate::request::WriteContext;
use crate::units::Units;

mod chips;
mod copying;
mod days;
mod idle_lengths;
pub mod none;
pub mod oracle;
pub mod pblru;
mod popularity;
pub mod random;
pub mod replica_groups;
pub mod rr_ssd;
mod selective;
#[path = "static.rs"]
pub mod r#static;

/// A number in a sentence: of hundreds of digits with a power of ten.
fn shown(number: f64) -> String {
    match number.abs() < 1e15 {
        true => number.to_string(),
        false => format!("{number:e}"),
    }
}

/// Where a copy lies.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyAt {
    pub lane: LaneId,
    /// Of the die that holds the copy's page.
    pub load: Load,
}

/// A host write that is about to be programmed.
#[derive(Clone, Copy, Debug)]
pub struct WriteOf<'a> {
    pub lpn: Lpn,
    pub context: &'a WriteContext,
    pub now: Now,
}

/// What a write waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wait {
    /// The copy that is in flash first, whichever it is; the others go on.
    #[default]
    First,
    /// Every copy of the plan that the drive has room for.
    All,
}

/// The copies of a host write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyPlan {
    /// Copies to program at once, on lanes of their own as long as there are any: 1 to [`MAX_COPIES`].
    pub copies: u8,
    pub wait: Wait,
    /// With [`Wait::First`]: ask [`ReplicationPolicy::late`] when none has completed so long after the programs were issued.
    /// Without effect where there is no time.
    pub hedge_after_ns: Option<u64>,
}

impl CopyPlan {
    /// One copy, and its request waits for it.
    pub const ONE: CopyPlan = CopyPlan {
        copies: 1,
        wait: Wait::First,
        hedge_after_ns: None,
    };
}

/// The load of every lane, found when it is asked for: of its dies together. Without time all lanes are idle.
#[derive(Clone, Copy)]
pub struct Loads<'a> {
    pub(crate) of: &'a dyn Fn(LaneId) -> Load,
    pub(crate) lanes: u32,
}

impl Loads<'_> {
    pub fn lanes(&self) -> impl Iterator<Item = LaneId> + use<> {
        (0..self.lanes).map(LaneId)
    }

    #[inline]
    pub fn of(&self, lane: LaneId) -> Load {
        (self.of)(lane)
    }
}

/// A host write none of whose copies is in flash yet.
#[derive(Clone, Copy)]
pub struct LateWrite<'a> {
    pub lpn: Lpn,
    /// The copies under way.
    pub copies: &'a [CopyAt],
    pub loads: Loads<'a>,
    pub now: Now,
}

/// A host read of a unit that lies in flash.
#[derive(Clone, Copy, Debug)]
pub struct ReadOf<'a> {
    pub lpn: Lpn,
    /// The value, if the unit lies behind a virtual page number.
    pub vpn: Option<Vpn>,
    pub copies: &'a [CopyAt],
    pub now: Now,
}

/// How a read goes about its copies.
#[derive(Clone, Debug, Default)]
pub struct ReadPlan {
    /// Indices of [`ReadOf::copies`] in the order in which they are tried; left empty: the first copy only.
    pub order: Vec<u8>,
    /// Issue the next copy's read when the last one has not completed after this long; the first to complete wins.
    /// `None`: only the first copy of the order is read.
    pub hedge_after_ns: Option<u64>,
}

/// The drive in an idle moment.
#[derive(Clone, Copy)]
pub struct Idle<'a> {
    pub loads: Loads<'a>,
    pub now: Now,
    pub(crate) record: &'a Record,
    pub(crate) indirection: &'a Indirection,
    pub(crate) layout: &'a Layout,
    pub(crate) units: &'a Units,
    /// Copies beyond the first of each value, and how many there may be: the drive keeps room for all its logical units.
    pub further: u64,
    pub room: u64,
}

impl Idle<'_> {
    /// Free reclaim units of `lane`.
    pub fn free_units(&self, lane: LaneId) -> usize {
        self.units.free_in_lane(lane)
    }

    /// Erases of all reclaim units of `lane` since the drive was new, in time that grows with their number.
    pub fn erases(&self, lane: LaneId) -> u64 {
        let units = self.units.of_lane(lane);
        units.map(|ru| u64::from(self.units.rus[ru.at()].erases)).sum()
    }

    /// Slots of `lane`, and those of them that hold nothing valid, in time that grows with its number of reclaim units.
    pub fn space(&self, lane: LaneId) -> (u64, u64) {
        let units = self.units.of_lane(lane);
        let slots = units.clone().count() as u64 * u64::from(self.layout.slots_per_ru);
        let valid: u64 = units.map(|ru| u64::from(self.units.valid(ru))).sum();
        (slots, slots - valid)
    }

    /// Slots of a reclaim unit.
    pub fn slots_per_unit(&self) -> u64 {
        u64::from(self.layout.slots_per_ru)
    }

    /// Values with more than one copy, and how many they have; in time that grows with the number of values.
    pub fn copied(&self) -> impl Iterator<Item = (Vpn, usize)> + '_ {
        let values = self.indirection.in_use();
        values
            .map(|vpn| (vpn, self.indirection.copy_count(vpn)))
            .filter(|&(_, copies)| copies > 1)
    }

    /// Units that need no place of their own as another LPN's has the same content; in time that grows with the number of values.
    pub fn saved_units(&self) -> u64 {
        let whole = self
            .indirection
            .in_use()
            .filter(|&vpn| self.indirection.members(vpn).is_empty());
        whole
            .map(|vpn| u64::from(self.indirection.references(vpn).saturating_sub(1)))
            .sum()
    }

    /// Logical units that hold something, in time that grows with the size of the drive.
    pub fn held_units(&self) -> u64 {
        let map = &self.record.map;
        map.iter().filter(|&&entry| entry != Entry::UNMAPPED.0).count() as u64
    }

    /// Fills `lanes` with those on which copies of `of` lie now, in the order of the copies; none of what is not in flash or
    /// is stored in chunks.
    pub fn lanes_of(&self, of: Of, lanes: &mut Vec<LaneId>) {
        lanes.clear();
        let target = match of {
            Of::Lpn(lpn) => self.record.entry(lpn).target(),
            Of::Vpn(vpn) => Target::Vpn(vpn),
        };
        let lane_of = |slot| self.layout.lane_of(self.layout.ru_of(slot));
        match target {
            Target::Unmapped | Target::Chunks(_) => {}
            Target::Slot(slot) => lanes.push(lane_of(slot)),
            Target::Vpn(vpn) => lanes.extend(self.indirection.copies_of(vpn).map(lane_of)),
        }
    }
}

/// Work for an idle moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleWork {
    /// One more copy: on the lane named, or else on an idle lane that has none. A unit that is gone or has [`MAX_COPIES`], and
    /// a lane or drive without room, are passed over; [`Event::Copied`] tells of copies made.
    Copy { of: Of, lane: Option<LaneId> },
    /// The copy with this index among [`Idle::lanes_of`] is given up, unless it is the last.
    Drop { of: Of, copy: u8 },
}

/// What a policy is told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A further copy is being programmed on `lane`: with the write, because the write was late, or in an idle moment. What
    /// was asked for as `of` lies behind `vpn`.
    Copied { of: Of, vpn: Vpn, lane: LaneId },
    /// The unit of `lpn`, which was known by it, is the value `vpn` from now on: it has been shared or copied.
    Became { lpn: Lpn, vpn: Vpn },
    /// An LPN: the host overwrites or trims its unit, or it is merged with another of the same content. A virtual page number: nothing refers to the value any more, and all its
    /// copies are invalid; the number may be given to another value.
    Gone(Of),
}

pub trait ReplicationPolicy: Send {
    /// Figures of the policy's own for the summary, since the drive was new.
    fn report(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// A sentence for the summary, if what it was asked to do cannot be done in full.
    fn note(&self) -> Option<String> {
        None
    }

    /// The copies of a host write, which is programmed now: it may have waited in the write buffer.
    fn write(&mut self, write: &WriteOf<'_>) -> CopyPlan;

    /// A write is late: the lane of one more copy, or `None`: then it is not asked again for this write. After a copy it is,
    /// when the same time has passed. A lane that has no room, or a copy already, ends it as well.
    fn late(&mut self, _write: &LateWrite<'_>) -> Option<LaneId> {
        None
    }

    /// Fills `plan` for a host read of a unit in flash, however many copies there are. Units in the write buffer or stored in
    /// chunks are not asked about.
    fn read(&mut self, read: &ReadOf<'_>, plan: &mut ReadPlan);

    /// An oracle's: every host read takes as long as it would on the die with the least load, wherever the copies lie.
    fn reads_anywhere(&self) -> bool {
        false
    }

    /// Asked as often as `when_idle`, busy or not: whether a mirror serves the host for a while. Then `when_idle` is asked until it
    /// has nothing more to order, and the host comes back when all of it is in flash.
    fn goes_offline(&mut self, _now: Now) -> bool {
        false
    }

    /// Whether `when_idle` would have anything to order.
    fn has_idle_work(&self) -> bool {
        true
    }

    /// How long a lane must be idle before `when_idle` is asked, and how often it is (backends with time); `None`: never.
    fn idle_ns(&self) -> Option<u64> {
        None
    }

    /// Every lane has been idle since before the time `idle_ns` ago, so that nothing about them has changed: whether `when_idle` would
    /// have nothing to order, and is not asked.
    fn rests(&mut self, _now: Now) -> bool {
        false
    }

    /// Without time, `when_idle` is asked after the request with which so many further host units have been written; `None`:
    /// never.
    fn idle_units(&self) -> Option<u64> {
        None
    }

    /// How many copies beyond the first of each value the drive has room for: said once, before all else.
    fn room(&mut self, _units: u64) {}

    /// One more copy has been ordered, and the drive has no room for it: a copy to give up in its place, as [`IdleWork::Drop`].
    /// `None`: the drive does without the copy that was ordered.
    fn when_full(&mut self, _idle: &Idle<'_>) -> Option<IdleWork> {
        None
    }

    /// What to do in an idle moment: asked again after each answer, until it is `None` or has been asked 64 times.
    fn when_idle(&mut self, _idle: &Idle<'_>) -> Option<IdleWork> {
        None
    }

    /// Something happened that the policy did not decide, or what it decided has been done.
    fn on(&mut self, _event: Event, _now: Now) {}

    /// Power has failed: what the policy keeps in memory is gone. Copies that are in flash stay copies.
    fn forget(&mut self) {}

    /// What the policy knows, for a saved state.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes over what [`ReplicationPolicy::save`] wrote.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    fn load(&mut self, _saved: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// What a replication policy is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub logical_units: u32,
    /// Of each lane: the chip that it begins on.
    pub chips: Vec<u32>,
    pub seed: u64,
}

impl Setup {
    pub fn new(logical_units: u32, layout: &Layout, seed: u64) -> Self {
        let geometry = &layout.geometry;
        let chip = |lane| {
            let die = layout.lane_dies(LaneId(lane))[0];
            die % geometry.channels * geometry.ways + die / geometry.channels % geometry.ways
        };
        Setup {
            logical_units,
            chips: (0..layout.lanes).map(chip).collect(),
            seed,
        }
    }

    /// The lanes of each chip, and the chip of each lane. Chips are numbered anew, without gaps: lanes that span several count
    /// with the first.
    pub fn chips_in_order(&self) -> (Vec<Vec<LaneId>>, Vec<u32>) {
        let mut numbers = self.chips.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let place = |chip: &u32| numbers.partition_point(|other| other < chip) as u32;
        let of_lane: Vec<u32> = self.chips.iter().map(place).collect();
        let mut lanes_of = vec![Vec::new(); numbers.len()];
        for (lane, &chip) in (0..).zip(&of_lane) {
            lanes_of[chip as usize].push(LaneId(lane));
        }
        (lanes_of, of_lane)
    }
}

pub fn catalogue() -> Catalogue<dyn ReplicationPolicy, Setup> {
    let catalogue = member!(Catalogue::new("replication"), none, oracle, pblru, random, rr_ssd);
    catalogue.with("static", r#static::new, include_str!("static.rs"))
}
