//! MiDAS: a chain of groups, sized by a model of update intervals, with a filter for hot data before it.
//!
//! # Model
//! Time is counted in mapping units that the host has written; an epoch is `epoch` times the mapping units of the drive.
//! * **Chain**: host writes go to group 1, survivors of group *i* to group *i + 1*; the last one keeps its own.
//! * **Victims** (`victim = own`): the first group that has more than its share of the closed reclaim units gives up the
//!   one that was closed first; if none has, the last group gives up the one that `last` chooses. `victim = drive` leaves
//!   it to `ftl.victim`.
//! * **Update intervals**: of a `sample` of the addresses, in bins of a reclaim unit.
//! * **Model**: a version that is so old lies in the group that so much time leads to; from the shares that live on follow
//!   the valid share of each group, the flow into the next, and the write amplification. The last group is taken for a
//!   FIFO log that survivors pass through again; what is rewritten later than an epoch never dies.
//! * **Search**: at the end of an epoch, groups are added one by one and their sizes varied; the best chain is applied if
//!   its write amplification is below the measured one.
//! * **Irregular**: if the valid share of a group differs by more than 0.1 from what was predicted, it and all later ones
//!   are merged for the next epoch.
//! * **Hot group** (`hot`): two bits an address. They go up by one when the unit is overwritten in group 1 sooner than
//!   reclaim units of the hot group get old, and down by one when it is overwritten later or elsewhere in the chain, or
//!   copied. At 3 a unit is written to the hot group, whose survivors go to group 1. At the end of an epoch it is given up
//!   unless at most 0.2 of its collected units were valid and at least 15 % of the host writes went there; four epochs
//!   later it is tried again.
//!
//! Frontier 0 is the hot group, frontier *i* group *i*.
//!
//! # Parameters
//! * `groups` (count, default 5, 1 to 32): most groups of the chain. With the hot group that makes the six frontiers of
//!   `sepbit`.
//! * `sample` (share, default 0.01, above 0 to 1): of the addresses whose update intervals are kept; at least 4,096 of
//!   them.
//! * `epoch` (times the mapping units of the drive, default 4, above 0 to 100).
//! * `last` (`cost_benefit` or `greedy`, default `cost_benefit`): the rule of the last group.
//! * `hot` (bool, default true), `hot_share` (share of the closed reclaim units, default 0.05, above 0 to 0.5): the hot
//!   group and its size.
//! * `victim` (`own` or `drive`, default `own`).
//!
//! # Choices
//! The drive begins with a chain of one, and the first search comes after a quarter of an epoch; the model needs 200
//! intervals. Sizes are shares of a pool's closed reclaim units, so that they hold for pools of any kind. A further group
//! must save half a per cent, as its open units cost spare. The model leaves out intervals of versions in the hot group
//! and takes the measured share of the hot group's traffic and survivors as given. Valid shares are measured of units that
//! were opened in the second half of an epoch, when the drive has taken on its sizes. The age of the hot group is the mean
//! of its collections since it was tried, and before the first the time in which twice its size is written. Overwriting a
//! unit in the hot group leaves its bits alone. Reclaim units that no group filled (translation pages) belong to the last
//! one, as do those of a hot group that was given up.
//!
//! In short runs many configurations are found irregular, and on skewed writes the policy then does little better than
//! none, or worse (`docs/measured.md`).
//!
//! # Not modelled
//! The time of the search; finding the size of the hot group.
//!
//! # Errors
//! Parameters outside their ranges; an unknown word.
//!
//! # Cost
//! O(1) a unit placed, O(closed units) a collection, some ten milliseconds an epoch; 5 bytes and 2 bits a mapping unit, of
//! which a drive that samples keeps less.
//!
//! # Source
//! Oh et al., "MIDAS: Minimizing Write Amplification in Log-Structured Systems through Adaptive Group Number and Size
//! Configuration", FAST 2024, and its simulator.

mod model;

use ftlab_core::{Error, Lpn, Result, RuId};
use serde::{Deserialize, Serialize};

use super::{Asks, Event, HostWrite, PlacementPolicy, Setup, Survivor, Victims, hashing, learnt};
use crate::Now;
use crate::frontier::Frontier;
use crate::units::{Closed, Orders};
use crate::victim::VictimPolicy;
use model::{Intervals, Origins, Seen, Space, Survival};

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
    pub victim: Victims,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            groups: 5,
            sample: 0.01,
            sample_least: 65_536,
            epoch: 4.0,
            last: Last::CostBenefit,
            hot: true,
            hot_share: 0.05,
            victim: Victims::Own,
        }
    }
}

/// Intervals without which there is no search.
const LEAST_SEEN: u64 = 200;
/// Difference of valid shares that makes a group irregular.
const IRREGULAR: f64 = 0.1;
/// When the hot group is worth having, and epochs until it is tried again.
const HOT_VALID: f64 = 0.2;
const HOT_TRAFFIC: f64 = 0.15;
const HOT_PAUSE: u32 = 4;
/// Sizes of the hot group that are tried, each this share of the one before.
const HOT_SIZES: i32 = 9;
const HOT_STEP: f64 = 0.7;
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
    group_of: Vec<u8>,
    placed: u32,
    learnt: Learnt,
}

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
    /// The counter of each unit, and whether its version was hot when it was written.
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
    /// When the drive has taken on the present sizes: in the middle of the epoch.
    settled: u64,
    /// Collections of units of each frontier that were opened since then, and their valid units.
    collected: Vec<(u64, u64)>,
    /// Closed and valid mapping units of the pool that was collected last.
    closed: u64,
    valid: u64,
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
            bits: vec![0; units as usize],
            is_hot_used: false,
            hot_pause: 0,
            hot_ages: (0, 0),
            hot_stay: 2.0 * params.hot_share * f64::from(units),
            hot_size: params.hot_share,
            host: 0,
            hot_writes: 0,
            copies: 0,
            settled: 0,
            collected: vec![(0, 0); usize::from(params.groups) + 1],
            closed: 0,
            valid: 0,
            epochs: 0,
            applied: 0,
            merged: 0,
        }
    }
}

impl Midas {
    fn new(params: Params, setup: &Setup) -> Self {
        let units = setup.logical_units;
        let sample = params.sample.max(f64::from(params.sample_least) / f64::from(units.max(1))).min(1.0);
        let epoch = ((params.epoch * f64::from(units)) as u64).max(1);
        Midas {
            sampled_below: (sample * (1u64 << 32) as f64) as u64,
            epoch,
            units_per_ru: setup.units_per_ru,
            group_of: vec![NOWHERE; units as usize],
            placed: 0,
            learnt: Learnt::new(&params, units, setup.units_per_ru, epoch),
            params,
        }
    }

    /// The number of the last group.
    fn last(&self) -> usize {
        self.learnt.shares.len() + 1
    }

    /// The group to which a reclaim unit belongs that `frontier` filled.
    fn group(&self, frontier: Frontier) -> usize {
        match frontier {
            0 if self.learnt.is_hot_used => 0,
            0 => self.last(),
            _ => usize::from(frontier).min(self.last()),
        }
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
        let bits = &mut self.learnt.bits[lpn.at()];
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

    fn end_epoch(&mut self, tick: u64) {
        if std::env::var("FTLAB_DEBUG").is_ok() {
            let l = &self.learnt;
            let m: Vec<_> = (0..=self.params.groups as usize).map(|g| (self.valid_share(g).map(|v| (v * 1000.0).round() / 1000.0), l.collected[g].0)).collect();
            eprintln!("epoch {} hot {} traffic {:.3} hotage {:.0} waf {:.3} closed {} shares {:.3?} predicted {:.3?} measured {:?}", l.epochs, l.is_hot_used, l.hot_writes as f64 / l.host as f64, self.hot_age(),
                1.0 + l.copies as f64 / l.host as f64, l.closed / u64::from(self.units_per_ru), l.shares, l.predicted, m);
        }
        self.learnt.epochs += 1;
        let seen: u64 = self.learnt.intervals.iter().map(|intervals| intervals.seen).sum();
        if seen < LEAST_SEEN || self.learnt.valid == 0 {
            self.learnt.begun = tick;
        } else {
            self.judge_hot_group();
            if !self.merge_irregular() {
                self.reconfigure(tick);
            }
            // What is kept is predicted anew: the intervals have changed, or the hot group.
            let hot_size = match self.learnt.is_hot_used {
                true => self.learnt.hot_size,
                false => 0.0,
            };
            let (survival, space, _) = self.as_modelled(hot_size, tick);
            let in_chain = space.all / self.space();
            let shares: Vec<f64> = self.learnt.shares.iter().map(|share| share / in_chain).collect();
            self.learnt.predicted = match model::predict(&survival, space, &shares) {
                Some(prediction) => prediction.valid[..shares.len()].to_vec(),
                None => {
                    self.learnt.shares.clear();
                    Vec::new()
                }
            };
        }
        let hot = self.learnt.hot_writes as f64 / self.learnt.host as f64;
        let (size, epoch) = (self.learnt.hot_size * self.space(), self.epoch as f64);
        let learnt = &mut self.learnt;
        if learnt.valid > 0 {
            learnt.hot_stay = (learnt.hot_stay * (size / hot.max(0.01))).sqrt().min(epoch);
        }
        learnt.intervals.iter_mut().for_each(Intervals::clear);
        learnt.opened = tick;
        learnt.settled = tick + self.epoch / 2;
        (learnt.host, learnt.hot_writes, learnt.copies) = (0, 0, 0);
        learnt.collected.fill((0, 0));
    }

    /// Merges the first group that behaves otherwise than predicted with all later ones. True if there is one.
    fn merge_irregular(&mut self) -> bool {
        let differs = |(number, predicted): (usize, &f64)| {
            let measured = self.valid_share(number + 1);
            measured.is_some_and(|measured| (measured - predicted).abs() > IRREGULAR)
        };
        let predicted = &self.learnt.predicted;
        let Some(first) = (0..predicted.len()).find(|&at| differs((at, &predicted[at]))) else {
            return false;
        };
        self.learnt.shares.truncate(first);
        self.learnt.predicted.truncate(first);
        self.learnt.merged += 1;
        true
    }

    /// The drive with a hot group that has this share, or none, at the end of an epoch: what lives how long in the chain, its
    /// space, and copies from the hot group for each unit that the host writes.
    fn as_modelled(&self, hot_size: f64, tick: u64) -> (Survival, Space, f64) {
        let learnt = &self.learnt;
        let hot_share = learnt.hot_writes as f64 / learnt.host as f64;
        let hot_units = hot_size * self.space();
        let origins = Origins {
            cold: &learnt.intervals[0],
            hot: &learnt.intervals[1],
            hot_share,
            seen: Seen {
                window: (tick - learnt.opened) as f64,
                known: (tick - learnt.begun) as f64,
            },
        };
        let survival = Survival::new(&origins, f64::from(self.placed), hot_units);
        let space = Space {
            all: self.space() - hot_units,
            least: 2.0 * f64::from(self.units_per_ru) / learnt.closed as f64,
        };
        let hot_copies = match hot_size {
            0.0 => 0.0,
            _ => hot_share * survival.hot_valid,
        };
        (survival, space, hot_copies)
    }

    fn reconfigure(&mut self, tick: u64) {
        let learnt = &self.learnt;
        let measured = 1.0 + learnt.copies as f64 / learnt.host as f64;
        let is_worth = learnt.hot_writes as f64 >= HOT_TRAFFIC * learnt.host as f64;
        let may_be_hot = self.params.hot && learnt.hot_pause == 0 && is_worth;
        let least = 2.0 * f64::from(self.units_per_ru) / learnt.closed as f64;
        let mut sizes = vec![0.0];
        if may_be_hot {
            let steps = (0..HOT_SIZES).map(|step| self.params.hot_share * HOT_STEP.powi(step));
            sizes.extend(steps.filter(|&size| size >= least));
        }
        // The best chain without a hot group and with one: predicted write amplification, share of the hot group, shares.
        let mut best: [Option<(f64, f64, Vec<f64>)>; 2] = [None, None];
        for hot_size in sizes {
            let (survival, space, hot_copies) = self.as_modelled(hot_size, tick);
            if hot_size > 0.0 && survival.hot_valid > HOT_VALID {
                continue;
            }
            let in_chain = space.all / self.space();
            let found = model::search(&survival, space, usize::from(self.params.groups));
            if let Some((shares, prediction)) = found {
                let waf = 1.0 + hot_copies + prediction.copies;
                if std::env::var("FTLAB_DEBUG").is_ok() {
                    eprintln!("   hot {hot_size:.4} hot_valid {:.3} waf {waf:.3} measured {measured:.3} {shares:.3?} {:.3?}", survival.hot_valid, prediction.valid);
                }
                let of_kind = &mut best[usize::from(hot_size > 0.0)];
                if of_kind.as_ref().is_none_or(|&(least, ..)| waf < least) {
                    *of_kind = Some((waf, hot_size, shares.iter().map(|share| share * in_chain).collect()));
                }
            }
        }
        // The counters are to find what a hot group of the best size would hold.
        if let Some((_, hot_size, _)) = best[1]
            && !self.learnt.is_hot_used
        {
            self.learnt.hot_size = hot_size;
        }
        let best = best.into_iter().flatten().min_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((waf, hot_size, shares)) = best
            && waf < measured
        {
            let is_hot_used = hot_size > 0.0;
            if is_hot_used != self.learnt.is_hot_used {
                (self.learnt.is_hot_used, self.learnt.hot_ages) = (is_hot_used, (0, 0));
            }
            if is_hot_used {
                self.learnt.hot_size = hot_size;
            }
            self.learnt.shares = shares;
            self.learnt.applied += 1;
        }
    }

    /// Gives up a hot group that is not worth its space.
    fn judge_hot_group(&mut self) {
        let traffic = self.learnt.hot_writes as f64 / self.learnt.host as f64;
        let is_worth = self.valid_share(0).is_none_or(|valid| valid <= HOT_VALID) && traffic >= HOT_TRAFFIC;
        let learnt = &mut self.learnt;
        if learnt.is_hot_used && !is_worth {
            (learnt.is_hot_used, learnt.hot_ages, learnt.hot_pause) = (false, (0, 0), HOT_PAUSE);
        } else {
            learnt.hot_pause = learnt.hot_pause.saturating_sub(1);
        }
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
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let lpn = write.lpn;
        let from = self.group_of[lpn.at()];
        if let Some(since) = write.since
            && from != NOWHERE
        {
            let (group, interval) = (usize::from(from), write.now.tick - since);
            if self.is_sampled(lpn) {
                let was_hot = self.learnt.bits[lpn.at()] & WAS_HOT != 0;
                let known = if since < self.learnt.begun { u64::MAX } else { interval };
                self.learnt.intervals[usize::from(was_hot)].add(known);
            }
            self.count_overwrite(lpn, group, interval);
        }
        let is_hot = self.learnt.bits[lpn.at()] == HOT;
        if is_hot {
            self.learnt.bits[lpn.at()] |= WAS_HOT;
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
        }
        Frontier::from(!goes_hot)
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        self.learnt.copies += 1;
        if let Some(lpn) = survivor.lpn {
            let bits = &mut self.learnt.bits[lpn.at()];
            *bits -= u8::from(*bits & HOT > 0);
        }
        let next = match survivor.from {
            0 => 1,
            from => (usize::from(from) + 1).min(self.last()),
        };
        Some(next as Frontier)
    }

    fn victim(&mut self) -> Option<&mut dyn VictimPolicy> {
        (self.params.victim == Victims::Own).then_some(self)
    }

    fn looks(&mut self, closed: &Closed<'_>, _: Now) {
        self.learnt.closed = closed.len() as u64 * u64::from(self.units_per_ru);
        self.learnt.valid = closed.iter().map(|ru| u64::from(closed.ru(ru).valid)).sum();
    }

    fn on(&mut self, event: Event, now: Now) {
        match event {
            Event::Placed { lpn, frontier, .. } => {
                let group = frontier.min(self.params.groups) as u8;
                let before = std::mem::replace(&mut self.group_of[lpn.at()], group);
                self.placed += u32::from(before == NOWHERE);
            }
            Event::Gone(lpn) => {
                let before = std::mem::replace(&mut self.group_of[lpn.at()], NOWHERE);
                self.placed -= u32::from(before != NOWHERE);
                self.learnt.bits[lpn.at()] = 0;
            }
            Event::Collecting {
                frontier,
                valid,
                opened,
                ..
            } if frontier <= self.params.groups && opened >= self.learnt.settled => {
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
        let units = self.group_of.len() as u32;
        self.learnt = Learnt::new(&self.params, units, self.units_per_ru, self.epoch);
        self.group_of.fill(NOWHERE);
        self.placed = 0;
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.learnt)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let learnt: Learnt = learnt::load(saved)?;
        let fits = learnt.bits.len() == self.learnt.bits.len()
            && learnt.collected.len() == self.learnt.collected.len()
            && (learnt.intervals.iter().zip(&self.learnt.intervals)).all(|(one, own)| one.len() == own.len())
            && learnt.shares.len() < usize::from(self.params.groups)
            && learnt.predicted.len() == learnt.shares.len();
        if !fits {
            return Err("groups, intervals or mapping units of another drive".into());
        }
        self.learnt = learnt;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let units = self.group_of.len() as u64;
        5 * units + (3 * units).div_ceil(8) + 8 * self.learnt.intervals[0].len() as u64
    }
}

impl VictimPolicy for Midas {
    fn orders(&self) -> Orders {
        Orders {
            by_age: true,
            ..Orders::default()
        }
    }

    fn choose(&mut self, closed: &mut Closed<'_>, now: Now) -> Option<RuId> {
        let last = self.last();
        // Closed units of each group and the oldest; of the last, the best by its rule: the least of what is compared.
        let mut groups = vec![(0u32, None); last];
        let mut best: Option<(f64, u32, RuId)> = None;
        for ru in closed.oldest_first() {
            let state = closed.ru(ru);
            let group = self.group(state.frontier);
            if group < last {
                let (count, oldest) = &mut groups[group];
                *count += 1;
                oldest.get_or_insert(ru);
                continue;
            }
            let rank = match self.params.last {
                _ if state.valid == 0 => f64::NEG_INFINITY,
                Last::Greedy => f64::from(state.valid),
                Last::CostBenefit => {
                    let free = f64::from(closed.units_per_ru() - state.valid);
                    -((now.tick - state.last_tick) as f64 * free / (2.0 * f64::from(state.valid)))
                }
            };
            if best
                .is_none_or(|(least, erases, id)| rank < least || (rank == least && (state.erases, ru) < (erases, id)))
            {
                best = Some((rank, state.erases, ru));
            }
        }
        let over = groups.iter().enumerate().find(|&(group, &(count, _))| {
            let share = match group {
                0 => self.learnt.hot_size,
                _ => self.learnt.shares[group - 1],
            };
            f64::from(count) > share * closed.len() as f64
        });
        let of_groups = || groups.iter().rev().find_map(|&(_, oldest)| oldest);
        match over {
            Some((_, &(_, oldest))) => oldest,
            None => best.map(|(_, _, ru)| ru).or_else(of_groups),
        }
    }
}
