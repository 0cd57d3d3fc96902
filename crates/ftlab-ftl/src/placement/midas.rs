//! MiDAS: a chain of groups, sized by a model of update intervals, with a filter for hot data in front.
//!
//! # Model
//! Time is counted in mapping units that the host has written; an epoch is `epoch` times the mapping units of the drive.
//! * **Chain**: host writes go to group 1, survivors of group *i* to group *i + 1*; the last one keeps its own.
//! * **Victims** (`victim = own`): the unit that was closed first in the first group that has more than its share of
//!   the closed reclaim units. If no group has more, the victim is the unit of the last group that `last` chooses. With
//!   `victim = drive`, `ftl.victim` chooses.
//! * **Update intervals**: measured on a `sample` of the addresses, in bins of one reclaim unit. Versions that were hot
//!   when they were written are counted separately.
//! * **Model**: the age of a version determines the group in which it lies. The share of versions that survive to each
//!   age gives the valid share of each group, the flow into the next group, and the write amplification. The last group
//!   is modelled as a FIFO log that survivors pass through again. Versions that outlive an epoch are invalidated at a
//!   constant rate.
//! * **Search**: at the end of an epoch, groups are added one by one and their sizes varied, without a hot group and with
//!   one of each of nine sizes; the best is applied if its write amplification is below the measured one.
//! * **Irregular**: if the valid share of a group differs by more than 0.1 from what was predicted, it and all later ones
//!   are merged for the rest of the epoch.
//! * **Guard** (`victim = own`): a last group that is all valid would be collected for ever while what is invalid lies in
//!   groups within their sizes. After 25 collections in one go (for one host write, since they have freed a reclaim unit
//!   together), the group collected last is merged with all later ones until the next configuration. The last group takes
//!   in the one before it, and the hot group is dissolved with the last other one.
//! * **Last group**: before a first configuration is applied, and from a merge until the next one, its survivors are
//!   parted by how often they have been copied since it was made, in as many frontiers as are left; its victims are
//!   chosen among all of them (`graded`). Else it is one frontier.
//! * **Hot group** (`hot`): a counter of two bits an address. It goes up by one when the unit is overwritten in group 1
//!   at an age below that of the hot group's reclaim units at collection. It goes down by one when the unit is
//!   overwritten later, elsewhere in the chain, or copied. At 3 a unit is written to the hot group, whose survivors go
//!   to group 1. The hot group exists only if at most 0.2 of its collected units are valid and at least 15 % of the
//!   host writes go there, as predicted and as measured. If it measures worse, it is tried again four epochs later.
//!
//! Frontier 0 is the hot group, frontier *i* group *i*.
//!
//! # Parameters
//! * `groups` (count, default 5, 1 to 32): most groups of the chain. With the hot group that makes the six frontiers of
//!   `sepbit`.
//! * `sample` (share, default 0.01, above 0 to 1): of the addresses whose update intervals are kept.
//! * `sample_least` (count, default 65,536): least number of sampled addresses. In a small sample, a single hot address
//!   changes the distribution.
//! * `epoch` (times the mapping units of the drive, default 4, above 0 to 100).
//! * `last` (`greedy` or `cost_benefit`, default `greedy`): the rule of the last group.
//! * `hot` (bool, default true), `hot_share` (share of the closed reclaim units, default 0.05, above 0 to 0.5): the hot
//!   group and its greatest size.
//! * `graded` (bool, default true): whether the last group parts its survivors while no configuration is in force. With
//!   `false` they share a frontier, before the first configuration with what the host writes.
//! * `victim` (`own` or `drive`, default `own`).
//!
//! # Choices
//! The description leaves some points open. They are decided here as follows:
//! * The drive begins with a chain of one, and the first search comes after a quarter of an epoch, or when 200
//!   overwrites have been sampled in an epoch. Until write times have been recorded for two epochs, the intervals seen
//!   also stand for those that began before recording.
//! * Sizes are shares of a pool's closed reclaim units, so that they apply to pools of any kind. A further group must
//!   save half a per cent, because its open units take spare.
//! * Versions that outlive an epoch make up for the valid units that the intervals do not explain. Their mean remaining
//!   life is their number divided by the rate at which versions reach that age.
//! * The counters run without a hot group too, so that the model can predict its contents. A hot unit that is
//!   overwritten too late then goes down by two, because the hot group would have copied it. An overwrite in the hot
//!   group leaves the counter unchanged.
//! * The size of the hot group is searched: `hot_share` and eight more, each 0.7 of the one before. Its age is the mean
//!   age at its collections since it was created. Without a hot group it is the size divided by the rate of hot writes,
//!   averaged with the previous estimate.
//! * A group that gets smaller hands its oldest units to the last group, and a last group whose number goes up takes its
//!   units with it, as in the public code: nothing is copied only because sizes have changed.
//! * Valid shares are measured on units that were opened in this epoch, and are held against the predicted ones on those
//!   collected between a third and half of it, as in the public code. Predictions for sizes that are kept are renewed at
//!   the end of each epoch. A share that is lower than predicted is irregular, too, as the description has it; the public
//!   code merges only where it is higher, and judges the last group as well where that is one frontier. Here the share of
//!   the last group is not judged.
//! * The guard is the public code's; the description does not have it.
//! * Reclaim units that no group filled (translation pages) belong to the last one, and so do those of a hot group that
//!   was dissolved.
//!
//! # Not modelled
//! The time of the search. The last group collects better than the FIFO log of the model, so its share comes out some
//! per cent too small. In small groups (two or three reclaim units), the modelled time in the group is wrong by up to
//! half a unit.
//!
//! # Errors
//! Parameters outside their ranges; an unknown word.
//!
//! # Cost
//! The frontiers of survivors raise `gc.hard` to `groups` where it is less, which a small drive feels: on one of 16-page blocks
//! with an over-provisioning of 0.1, filled first, Zipf's law makes a write amplification of 4.43 without placement, 5.59 with
//! `gc.hard = 5` alone, and 5.90 with `midas`.
//!
//! O(1) a unit placed and a collection (O(closed units) with `last = cost_benefit`), some tens of milliseconds an epoch; 5 bytes and 3 bits a mapping
//! unit; a drive that samples needs less.
//!
//! # Source
//! Oh et al., "MIDAS: Minimizing Write Amplification in Log-Structured Systems through Adaptive Group Number and Size
//! Configuration", FAST 2024, and its simulator.

mod epochs;
mod guard;
mod model;
mod victims;

use ftlab_core::{Error, Lpn, Result, memory};
use serde::{Deserialize, Serialize};

use super::{
    Asks, Chosen, Event, Filler, HostWrite, PlacementPolicy, Setup, Survivor, SurvivorRun, Victims, hashing, learnt,
};
use crate::Now;
use crate::frontier::Frontier;
use crate::gc::mover::AHEAD;
use crate::units::Closed;
use crate::victim::VictimPolicy;
use guard::Go;
use model::Intervals;
use victims::Bounds;

/// The rule of the last group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Last {
    CostBenefit,
    Greedy,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub groups: u16,
    pub sample: f64,
    pub sample_least: u32,
    pub epoch: f64,
    pub last: Last,
    pub hot: bool,
    pub hot_share: f64,
    pub graded: bool,
    pub victim: Victims,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            groups: 5,
            sample: 0.01,
            sample_least: 65_536,
            epoch: 4.0,
            last: Last::Greedy,
            hot: true,
            hot_share: 0.05,
            graded: true,
            victim: Victims::Own,
        }
    }
}

/// How often in an epoch the space of the pools is looked at.
const LOOKS: u64 = 256;
/// The counter of a hot unit, and the bit of a version that was hot when it was written.
const HOT: u8 = 3;
const WAS_HOT: u8 = 4;
/// A unit that lies in no group.
const NOWHERE: u8 = u8::MAX;

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    let within = |value: f64, most: f64| value > 0.0 && value <= most;
    let fits = (1..=32).contains(&params.groups)
        && within(params.sample, 1.0)
        && within(params.epoch, 100.0)
        && within(params.hot_share, 0.5);
    if !fits {
        return Err(Error::input(format!(
            "placement policy `midas`: groups = {}, sample = {}, epoch = {}, hot_share = {}; expected 1 to 32, and above 0 to 1, 100 and \
             0.5",
            params.groups, params.sample, params.epoch, params.hot_share
        )));
    }
    Ok(Box::new(Midas::new(params, setup)))
}

struct Midas {
    params: Params,
    /// Of 2³²: addresses whose hash lies below are sampled.
    sampled_below: u64,
    epoch: u64,
    units_per_ru: u32,
    units: Vec<Unit>,
    placed: u32,
    bounds: Bounds,
    learnt: Learnt,
}

/// What is kept of a unit.
#[derive(Clone, Copy)]
struct Unit {
    group: u8,
    /// Its counter, and whether its version was hot when it was written.
    bits: u8,
}

impl Unit {
    /// The unit has been copied, by which its counter goes down.
    #[inline]
    fn count_copy(&mut self) {
        self.bits -= u8::from(self.bits & HOT > 0);
    }
}

const NO_UNIT: Unit = Unit {
    group: NOWHERE,
    bits: 0,
};

#[derive(Clone, Serialize, Deserialize)]
struct Learnt {
    /// Shares of the groups of the chain but the last, and what was predicted of their valid shares.
    shares: Vec<f64>,
    predicted: Vec<f64>,
    /// Update intervals of versions that were not hot when they were written, and of those that were.
    intervals: [Intervals; 2],
    /// Ticks since which all births are known, and at which this epoch began.
    begun: u64,
    opened: u64,
    /// Those of [`Unit`], in a saved state.
    bits: Vec<u8>,
    is_hot_used: bool,
    /// Epochs until the hot group is tried again.
    hot_pause: u32,
    /// Ages of the hot group's collected units since it was tried: their sum and number; and what they would be without it.
    hot_ages: (u64, u64),
    hot_stay: f64,
    /// The hot group's share of the closed reclaim units, or what it would be.
    hot_size: f64,
    /// Host writes of this epoch, those of them that are hot, and copies.
    host: u64,
    hot_writes: u64,
    copies: u64,
    /// From when on collections are counted: a third of the epoch, by when the groups have taken on their sizes.
    settled: u64,
    /// Whether this epoch's valid shares have been held against the predicted ones.
    is_checked: bool,
    /// Whether survivors of the last group are parted by how often they have been copied.
    is_graded: bool,
    /// Of each frontier: reclaim units that were closed by this tick belong to the last group.
    handed: Vec<u64>,
    /// Whether groups that are larger than their new sizes are to hand their oldest units to the last one.
    is_resized: bool,
    /// Collections of units of each frontier that were opened since then, and their valid units.
    collected: Vec<(u64, u64)>,
    /// Closed and valid mapping units of the pool that was collected last.
    closed: u64,
    valid: u64,
    next_look: u64,
    /// Not saved: the next host write begins it anew.
    #[serde(skip)]
    go: Go,
    epochs: u64,
    applied: u64,
    merged: u64,
}

impl Learnt {
    fn new(params: &Params, units: u32, units_per_ru: u32, epoch: u64) -> Self {
        Learnt {
            shares: Vec::new(),
            predicted: Vec::new(),
            intervals: [(); 2].map(|()| Intervals::new(u64::from(units_per_ru), epoch)),
            begun: 0,
            opened: 0,
            bits: Vec::new(),
            is_hot_used: false,
            hot_pause: 0,
            hot_ages: (0, 0),
            hot_stay: 2.0 * params.hot_share * f64::from(units),
            hot_size: params.hot_share,
            host: 0,
            hot_writes: 0,
            copies: 0,
            settled: 0,
            is_checked: false,
            is_graded: params.graded,
            handed: vec![0; usize::from(params.groups) + 1],
            is_resized: false,
            collected: vec![(0, 0); usize::from(params.groups) + 1],
            closed: 0,
            valid: 0,
            next_look: 0,
            go: Go::default(),
            epochs: 0,
            applied: 0,
            merged: 0,
        }
    }
}

impl Midas {
    fn new(params: Params, setup: &Setup) -> Self {
        let units = setup.logical_units;
        let sample = params
            .sample
            .max(f64::from(params.sample_least) / f64::from(units.max(1)))
            .min(1.0);
        let epoch = ((params.epoch * f64::from(units)) as u64).max(1);
        Midas {
            sampled_below: (sample * (1u64 << 32) as f64) as u64,
            epoch,
            units_per_ru: setup.units_per_ru,
            units: memory::huge(NO_UNIT, units as usize),
            placed: 0,
            bounds: Bounds::default(),
            learnt: Learnt::new(&params, units, setup.units_per_ru, epoch),
            params,
        }
    }

    /// The last frontier that survivors are put into.
    fn most(&self) -> usize {
        match self.learnt.is_graded {
            true => usize::from(self.params.groups),
            false => self.last(),
        }
    }

    /// The number of the last group.
    fn last(&self) -> usize {
        self.learnt.shares.len() + 1
    }

    /// The group to which a reclaim unit belongs that `frontier` filled until `closed`.
    fn group(&self, frontier: Frontier, closed: u64) -> usize {
        let last = self.last();
        match usize::from(frontier) {
            at if at >= last || closed <= self.learnt.handed[at] => last,
            0 if !self.learnt.is_hot_used => last,
            at => at,
        }
    }

    /// Where survivors of a reclaim unit go that `frontier` filled and that was `opened` then.
    fn next(&self, frontier: Frontier, opened: u64) -> Frontier {
        let (from, last) = (usize::from(frontier), self.last());
        // The open unit of a frontier is as old as the last one of it that was closed.
        let is_handed = from < last && opened < self.learnt.handed[from];
        let next = match from {
            0 if !is_handed => 1,
            _ if is_handed || from >= last && !self.learnt.is_graded => last,
            _ => (from + 1).min(self.most()),
        };
        next as Frontier
    }

    /// The number that is kept of units that lie in `frontier`.
    fn group_of(&self, frontier: Frontier) -> u8 {
        frontier.min(self.params.groups) as u8
    }

    fn is_sampled(&self, lpn: Lpn) -> bool {
        (hashing::hash(lpn.0, 0, u32::MAX) as u64) < self.sampled_below
    }

    /// Mapping units of space that the drive has for what is placed, as the pool collected last has.
    fn space(&self) -> f64 {
        f64::from(self.placed) * self.learnt.closed as f64 / self.learnt.valid.max(1) as f64
    }

    /// Mean age of the hot group's units when collected.
    fn hot_age(&self) -> f64 {
        match self.learnt.hot_ages {
            (_, 0) => self.learnt.hot_stay,
            (sum, count) => sum as f64 / count as f64,
        }
    }

    fn valid_share(&self, frontier: usize) -> Option<f64> {
        let (count, valid) = self.learnt.collected[frontier];
        (count > 0).then(|| valid as f64 / (count * u64::from(self.units_per_ru)) as f64)
    }

    /// The bits of `lpn`, which lies in `group` and was written `interval` ticks ago, when it is overwritten.
    fn count_overwrite(&mut self, lpn: Lpn, group: usize, interval: u64) {
        let is_soon = group == 1 && (interval as f64) < self.hot_age();
        let bits = &mut self.units[lpn.at()].bits;
        let was_hot = *bits & WAS_HOT != 0 && !self.learnt.is_hot_used;
        let count = *bits & HOT;
        *bits = match group {
            0 => count,
            _ if is_soon => (count + 1).min(HOT),
            // The hot group would have copied it before.
            _ if was_hot => count.saturating_sub(2),
            _ => count.saturating_sub(1),
        };
    }
}

impl PlacementPolicy for Midas {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let learnt = &self.learnt;
        vec![
            ("groups", self.last() as f64),
            ("uses_hot_group", f64::from(u8::from(learnt.is_hot_used))),
            ("epochs", learnt.epochs as f64),
            ("applied", learnt.applied as f64),
            ("merged", learnt.merged as f64),
        ]
    }

    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn filled_by(&self, frontier: Frontier) -> Filler {
        match frontier {
            0 if !self.params.hot => Filler::Nobody,
            0 | 1 => Filler::Host,
            _ => Filler::Survivors,
        }
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        self.params.groups - 1
    }

    fn survivor_frontiers(&self) -> Frontier {
        self.params.groups
    }

    fn asks(&self) -> Asks {
        Asks {
            since: true,
            places: true,
            knows_chosen: true,
            ..Asks::default()
        }
    }

    fn prefetch(&self, lpn: u32) {
        memory::prefetch(&self.units, lpn as usize);
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let lpn = write.lpn;
        let Unit { group: from, bits } = self.units[lpn.at()];
        if let Some(since) = write.since
            && from != NOWHERE
        {
            let (group, interval) = (usize::from(from), write.now.tick - since);
            if self.is_sampled(lpn) {
                let was_hot = bits & WAS_HOT != 0;
                let known = if since < self.learnt.begun { u64::MAX } else { interval };
                self.learnt.intervals[usize::from(was_hot)].add(known);
            }
            self.count_overwrite(lpn, group, interval);
        }
        let bits = &mut self.units[lpn.at()].bits;
        let is_hot = *bits == HOT;
        if is_hot {
            *bits |= WAS_HOT;
            self.learnt.hot_writes += 1;
        }
        let goes_hot = is_hot && self.learnt.is_hot_used;
        self.learnt.host += 1;
        let epoch = if self.learnt.epochs == 0 {
            self.epoch / 4
        } else {
            self.epoch
        };
        if self.learnt.host >= epoch {
            self.end_epoch(write.now.tick);
        } else if self.learnt.host >= epoch / 2 && !self.learnt.is_checked {
            self.check();
        }
        Frontier::from(!goes_hot)
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        self.learnt.copies += 1;
        if let Some(lpn) = survivor.lpn {
            self.units[lpn.at()].count_copy();
        }
        Some(self.next(survivor.from, survivor.opened))
    }

    fn survivor_run(&mut self, run: &SurvivorRun<'_>, chosen: &mut Vec<Chosen>) -> bool {
        self.learnt.copies += run.lpns.len() as u64;
        let next = self.next(run.from, run.opened);
        let group = self.group_of(next);
        for (at, &lpn) in run.lpns.iter().enumerate() {
            if let Some(&later) = run.lpns.get(at + AHEAD) {
                memory::prefetch(&self.units, later as usize);
            }
            let unit = &mut self.units[lpn as usize];
            unit.count_copy();
            self.placed += u32::from(std::mem::replace(&mut unit.group, group) == NOWHERE);
        }
        chosen.extend(run.lpns.iter().map(|_| Chosen::by_policy(next)));
        true
    }

    fn victim(&mut self) -> Option<&mut dyn VictimPolicy> {
        (self.params.victim == Victims::Own).then_some(self)
    }

    fn looks(&mut self, closed: &Closed<'_>, now: Now) {
        if now.tick < self.learnt.next_look {
            return;
        }
        self.learnt.next_look = now.tick + self.epoch.div_ceil(LOOKS);
        self.learnt.closed = closed.len() as u64 * u64::from(self.units_per_ru);
        self.learnt.valid = closed.iter().map(|ru| u64::from(closed.ru(ru).valid)).sum();
    }

    fn on(&mut self, event: Event, now: Now) {
        if let Event::Collecting {
            frontier,
            valid,
            last_tick,
            ..
        } = event
        {
            let group = self.group(frontier, last_tick);
            self.count_collection(group, self.units_per_ru - valid, now);
        }
        match event {
            Event::Placed { lpn, frontier, .. } => {
                let group = self.group_of(frontier);
                let before = std::mem::replace(&mut self.units[lpn.at()].group, group);
                self.placed += u32::from(before == NOWHERE);
            }
            Event::Gone(lpn) => {
                let before = std::mem::replace(&mut self.units[lpn.at()], NO_UNIT);
                self.placed -= u32::from(before.group != NOWHERE);
            }
            Event::Collecting {
                frontier,
                valid,
                opened,
                ..
            } if frontier <= self.params.groups && opened >= self.learnt.opened && now.tick >= self.learnt.settled => {
                let (count, sum) = &mut self.learnt.collected[usize::from(frontier)];
                (*count, *sum) = (*count + 1, *sum + u64::from(valid));
                if frontier == 0 {
                    let (ages, count) = &mut self.learnt.hot_ages;
                    (*ages, *count) = (*ages + now.tick - opened, *count + 1);
                }
            }
            Event::Trimmed(_) | Event::Collecting { .. } | Event::Erased { .. } => {}
        }
    }

    fn forget(&mut self) {
        let units = self.units.len() as u32;
        self.learnt = Learnt::new(&self.params, units, self.units_per_ru, self.epoch);
        self.units.fill(NO_UNIT);
        self.placed = 0;
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&Learnt {
            bits: self.units.iter().map(|unit| unit.bits).collect(),
            ..self.learnt.clone()
        })
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let mut learnt: Learnt = learnt::load(saved)?;
        let fits = learnt.bits.len() == self.units.len()
            && learnt.collected.len() == self.learnt.collected.len()
            && (learnt.intervals.iter().zip(&self.learnt.intervals)).all(|(one, own)| one.len() == own.len())
            && learnt.shares.len() < usize::from(self.params.groups)
            && learnt.predicted.len() == learnt.shares.len()
            && learnt.handed.len() == self.learnt.handed.len();
        if !fits {
            return Err("groups, intervals or mapping units of another drive".into());
        }
        let bits = std::mem::take(&mut learnt.bits);
        self.units
            .iter_mut()
            .zip(bits)
            .for_each(|(unit, bits)| unit.bits = bits);
        self.learnt = learnt;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let units = self.units.len() as u64;
        5 * units + (3 * units).div_ceil(8) + 8 * self.learnt.intervals[0].len() as u64
    }
}
