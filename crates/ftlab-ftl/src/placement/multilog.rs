//! MultiLog: a log for each update frequency; units move up and down between the logs, and a model divides the space among them.
//!
//! # Model
//! Time is counted in mapping units that the host has written. Level 0 is the hottest log.
//! * **Survivors** of a collection sink one level (`sink = always`), or only if they were written longer ago than 4.6 mean
//!   intervals of their level, which are its valid units divided by its share of host writes (`sink = late`). From the
//!   coldest level in use they sink to a new one once that level holds as many valid units as a reclaim unit, while there
//!   are less than `levels`; otherwise they stay.
//! * **Host writes** climb one level with probability `max(0, 1 − interval / expected)`, where the interval is the time
//!   since the unit was written before, and `expected` half the valid units of its level times 1 less the mean share of
//!   invalid units that reclaim units of that level had when they were collected. Otherwise they stay. A first write
//!   goes to level 0.
//! * **Victims** (`victim = own`): level *i* has `v` valid units, the reclaim units `s` and the share `p` of host
//!   writes. As a FIFO log under uniform writes it has the write amplification `F(α) = 1 / (1 − e)`, `α = s / v`, `e =
//!   exp(−α (1 − e))`, by Lambert's W. The victim is the unit that was closed first in the level that suffers least
//!   from one reclaim unit less, by the derivative `p F'(α) / v`. With `victim = drive`, `ftl.victim` chooses.
//!
//! Level *i* is frontier *i*; host writes and survivors of a level share its open units.
//!
//! # Parameters
//! * `levels` (count, default 6, 2 to 64): most levels. Six are the classes of `sepbit`.
//! * `sink` (`late` or `always`, default `late`): which survivors sink.
//! * `victim` (`own` or `drive`, default `own`).
//!
//! # Choices
//! The simulator of SepBIT lets every survivor sink. That carries hot units into cold logs at every collection, and two
//! classes of data never part; with `late`, which is ours, they do, and two logs come near the best split of the spare
//! (`docs/measured.md`).
//!
//! Counts of writes are halved once a level has as many as the drive has mapping units; the share of invalid units is a
//! moving mean over about 16 collections of the level. Lambert's W is exact where the source approximates it. Space and
//! valid units are those of the closed units of the pool that is collected. Reclaim units without invalid data are
//! skipped, because collecting them gains nothing. Reclaim units of translation pages belong to the coldest level. The
//! mean share of a level is 0 until one of its units is collected.
//!
//! # Not modelled
//! A limit on how often levels are balanced: here they are balanced at every collection.
//!
//! # Errors
//! `levels` outside its range; an unknown word.
//!
//! # Cost
//! O(1) a unit placed, O(closed units) a collection; 5 bytes a mapping unit.
//!
//! # Source
//! Stoica and Ailamaki, "Improving Flash Write Performance by Using Update Frequency", PVLDB 6(9), 2013; rules of
//! climbing and opening as in the simulator of SepBIT.

use ftlab_core::{Error, Result, RuId, Stream};
use serde::{Deserialize, Serialize};

use super::{Asks, Event, HostWrite, PlacementPolicy, Setup, Survivor, Victims, hashing, learnt};
use crate::Now;
use crate::frontier::Frontier;
use crate::units::{Closed, Orders};
use crate::victim::VictimPolicy;

/// Which survivors sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sink {
    Always,
    Late,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub levels: u16,
    pub sink: Sink,
    pub victim: Victims,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            levels: 6,
            sink: Sink::Late,
            victim: Victims::Own,
        }
    }
}

/// Mean intervals of a level after which a survivor of it is late: a hundredth of exponential intervals is longer.
const LATE: f64 = 4.6;

/// A unit that lies on no level.
const NOWHERE: u8 = u8::MAX;

/// Collections of a level over which its share of invalid units is averaged.
const COLLECTIONS: f64 = 16.0;

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !(2..=64).contains(&params.levels) {
        return Err(Error::input(format!(
            "placement policy `multilog`: levels = {}, expected 2 to 64",
            params.levels
        )));
    }
    Ok(Box::new(MultiLog {
        learnt: Learnt::new(params.levels),
        logical_units: setup.logical_units,
        level_of: vec![NOWHERE; setup.logical_units as usize],
        valid: vec![0; usize::from(params.levels)],
        units_per_ru: setup.units_per_ru,
        salt: Stream::new(setup.seed, "multilog").next_u64(),
        params,
    }))
}

struct MultiLog {
    params: Params,
    logical_units: u32,
    units_per_ru: u32,
    /// Of the stream of random numbers.
    salt: u64,
    level_of: Vec<u8>,
    /// Mapping units on each level.
    valid: Vec<u32>,
    learnt: Learnt,
}

#[derive(Serialize, Deserialize)]
struct Learnt {
    /// Levels in use.
    open: u16,
    each: Vec<Level>,
    /// Numbers drawn.
    drawn: u64,
    climbed: u64,
    sunk: u64,
}

/// What a level has seen.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Level {
    /// Host writes, halved from time to time.
    writes: u64,
    /// Mean share of invalid units when collected.
    invalid: f64,
    collections: u64,
}

impl Learnt {
    fn new(levels: u16) -> Self {
        Learnt {
            open: 1,
            each: vec![Level::default(); usize::from(levels)],
            drawn: 0,
            climbed: 0,
            sunk: 0,
        }
    }

    /// Host writes of all levels.
    fn writes(&self) -> u64 {
        self.each.iter().map(|level| level.writes).sum()
    }
}

impl Level {
    fn collected(&mut self, invalid: f64) {
        self.collections += 1;
        self.invalid += (invalid - self.invalid) / (self.collections as f64).min(COLLECTIONS);
    }
}

/// `e` of `e = 1 − exp(−α e)`, the share of a FIFO log's oldest reclaim unit that is invalid; 0 for α up to 1, which leaves
/// nothing to gain. By Newton's steps from the right of the root, so that they end on any machine alike.
fn gained(alpha: f64) -> f64 {
    if alpha <= 1.0 {
        return 0.0;
    }
    let mut e = 1.0;
    for _ in 0..100 {
        let p = libm::exp(-alpha * e);
        let next = e - (e - 1.0 + p) / (1.0 - alpha * p);
        // The steps come down to the root; rounding ends them.
        if next >= e || next <= 0.0 {
            break;
        }
        e = next;
    }
    e
}

/// What a unit of space less costs a FIFO log with `space` for `valid` units that takes `share` of the writes: `share`
/// times the derivative of 1 / e.
fn cost_of_space(space: u32, valid: u32, share: f64) -> f64 {
    if valid == 0 {
        return 0.0;
    }
    let alpha = f64::from(space) / f64::from(valid);
    let e = gained(alpha);
    if e == 0.0 {
        return f64::INFINITY;
    }
    let p = 1.0 - e;
    share * p / (e * (1.0 - alpha * p)) / f64::from(valid)
}

impl MultiLog {
    fn level(&self, frontier: Frontier) -> usize {
        usize::from(frontier.min(self.params.levels - 1))
    }

    /// Whether a host write of a unit on `level` climbs that was written `interval` ticks ago.
    fn climbs(&mut self, level: usize, interval: u64) -> bool {
        if level == 0 {
            return false;
        }
        let expected = f64::from(self.valid[level]) * (1.0 - self.learnt.each[level].invalid) / 2.0;
        let interval = interval as f64;
        if interval >= expected {
            return false;
        }
        self.learnt.drawn += 1;
        let drawn = hashing::drawn(self.salt, self.learnt.drawn, 1 << 53) as f64 / (1u64 << 53) as f64;
        drawn < 1.0 - interval / expected
    }

    /// Whether `survivor` has waited for a write much longer than units of its level do on average.
    fn is_late(&self, level: Frontier, survivor: &Survivor) -> bool {
        let since = survivor.since.unwrap_or(survivor.opened);
        let (each, level) = (&self.learnt.each, usize::from(level));
        let age = (survivor.now.tick - since) as f64;
        age * each[level].writes as f64 > LATE * f64::from(self.valid[level]) * self.learnt.writes() as f64
    }

    fn count_write(&mut self, level: usize) {
        self.learnt.each[level].writes += 1;
        if self.learnt.each[level].writes >= u64::from(self.logical_units) {
            self.learnt.each.iter_mut().for_each(|level| level.writes /= 2);
        }
    }
}

impl PlacementPolicy for MultiLog {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("levels", f64::from(self.learnt.open)),
            ("climbed", self.learnt.climbed as f64),
            ("sunk", self.learnt.sunk as f64),
        ]
    }

    fn host_frontiers(&self) -> Frontier {
        self.params.levels
    }

    fn survivor_frontiers(&self) -> Frontier {
        self.params.levels
    }

    fn asks(&self) -> Asks {
        Asks {
            since: true,
            places: true,
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let level = match (self.level_of[write.lpn.at()], write.since) {
            (NOWHERE, _) | (_, None) => 0,
            (level, Some(since)) => {
                let level = usize::from(level);
                self.count_write(level);
                let climbs = self.climbs(level, write.now.tick - since);
                self.learnt.climbed += u64::from(climbs);
                level - usize::from(climbs)
            }
        };
        level as Frontier
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let from = survivor.from.min(self.learnt.open - 1);
        if self.params.sink == Sink::Late && !self.is_late(from, survivor) {
            return Some(from);
        }
        let is_coldest = from + 1 == self.learnt.open;
        if is_coldest {
            if self.learnt.open == self.params.levels || self.valid[usize::from(from)] < self.units_per_ru {
                return Some(from);
            }
            self.learnt.open += 1;
        }
        self.learnt.sunk += 1;
        Some(from + 1)
    }

    fn victim(&mut self) -> Option<&mut dyn VictimPolicy> {
        (self.params.victim == Victims::Own).then_some(self)
    }

    fn on(&mut self, event: Event, _: Now) {
        match event {
            Event::Placed { lpn, frontier, .. } => {
                let level = self.level(frontier);
                let before = std::mem::replace(&mut self.level_of[lpn.at()], level as u8);
                if before != NOWHERE {
                    self.valid[usize::from(before)] -= 1;
                }
                self.valid[level] += 1;
            }
            Event::Gone(lpn) => {
                let before = std::mem::replace(&mut self.level_of[lpn.at()], NOWHERE);
                if before != NOWHERE {
                    self.valid[usize::from(before)] -= 1;
                }
            }
            Event::Collecting { frontier, valid, .. } if frontier < self.params.levels => {
                let invalid = 1.0 - f64::from(valid) / f64::from(self.units_per_ru);
                self.learnt.each[usize::from(frontier)].collected(invalid);
            }
            Event::Trimmed(_) | Event::Collecting { .. } | Event::Erased { .. } => {}
        }
    }

    fn forget(&mut self) {
        self.level_of.fill(NOWHERE);
        self.valid.fill(0);
        self.learnt = Learnt::new(self.params.levels);
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.learnt)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let learnt: Learnt = learnt::load(saved)?;
        let levels = self.params.levels;
        if learnt.each.len() != usize::from(levels) || !(1..=levels).contains(&learnt.open) {
            return Err(format!(
                "{} of {} levels in use, expected up to {levels}",
                learnt.open,
                learnt.each.len()
            ));
        }
        self.learnt = learnt;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        5 * self.level_of.len() as u64
    }
}

impl VictimPolicy for MultiLog {
    fn orders(&self) -> Orders {
        Orders {
            by_age: true,
            ..Orders::default()
        }
    }

    fn choose(&mut self, closed: &mut Closed<'_>, _: Now) -> Option<RuId> {
        let per_ru = closed.units_per_ru();
        // Reclaim units, their valid units and the oldest of them that is not all valid, of each level.
        let mut logs = vec![(0, 0, None); usize::from(self.params.levels)];
        for ru in closed.oldest_first() {
            let state = closed.ru(ru);
            let (count, valid, oldest) = &mut logs[self.level(state.frontier)];
            (*count, *valid) = (*count + 1, *valid + state.valid);
            if state.valid < per_ru {
                oldest.get_or_insert(ru);
            }
        }
        let writes = self.learnt.writes().max(1) as f64;
        let mut best: Option<(f64, RuId)> = None;
        for (log, level) in logs.iter().zip(&self.learnt.each) {
            let &(count, valid, Some(oldest)) = log else { continue };
            let cost = cost_of_space(count * per_ru, valid, level.writes as f64 / writes);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, oldest));
            }
        }
        best.map(|(_, ru)| ru).or_else(|| closed.oldest_first().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::{Lpn, theory};

    fn multilog(levels: u16) -> MultiLog {
        MultiLog {
            logical_units: 1000,
            units_per_ru: 4,
            salt: 1,
            level_of: vec![NOWHERE; 1000],
            valid: vec![0; usize::from(levels)],
            learnt: Learnt::new(levels),
            params: Params {
                levels,
                sink: Sink::Always,
                ..Params::default()
            },
        }
    }

    fn placed(policy: &mut MultiLog, lpn: u32, frontier: Frontier) {
        let (lpn, ru) = (Lpn(lpn), RuId(0));
        policy.on(Event::Placed { lpn, ru, frontier }, Now::default());
    }

    fn survives(policy: &mut MultiLog, from: Frontier) -> Option<Frontier> {
        policy.survivor(&Survivor {
            lpn: Some(Lpn(0)),
            vpn: None,
            from,
            stream: from,
            lane: ftlab_core::LaneId(0),
            opened: 0,
            since: Some(0),
            dies: None,
            is_cached: false,
            now: Now::default(),
        })
    }

    #[test]
    fn logs_have_the_write_amplification_of_lamberts_function() {
        for alpha in [1.01, 1.1, 1.5, 2.0, 5.0] {
            let w = theory::lambert_w0(-alpha * f64::exp(-alpha));
            assert!((1.0 / gained(alpha) - alpha / (alpha + w)).abs() < 1e-6, "{alpha}");
        }
        assert_eq!([gained(0.5), gained(1.0)], [0.0, 0.0]);
    }

    /// Against the difference quotient of 1 / e in the space.
    #[test]
    fn the_cost_of_space_is_the_derivative() {
        for (space, valid) in [(1_100_000, 1_000_000), (1_500_000, 1_000_000), (3_000_000, 1_000_000)] {
            let waf = |space: u32| 1.0 / gained(f64::from(space) / f64::from(valid));
            let quotient = (waf(space - 100) - waf(space + 100)) / 200.0;
            let cost = cost_of_space(space, valid, 0.5);
            assert!((cost / (0.5 * quotient) - 1.0).abs() < 1e-3, "{cost} {quotient}");
        }
        assert_eq!(cost_of_space(4, 0, 0.5), 0.0, "what is all invalid costs nothing");
        assert_eq!(cost_of_space(4, 4, 0.5), f64::INFINITY);
    }

    #[test]
    fn units_sink_and_a_full_coldest_level_opens_the_next() {
        let mut policy = multilog(3);
        (0..3).for_each(|lpn| placed(&mut policy, lpn, 0));
        assert_eq!(
            survives(&mut policy, 0),
            Some(0),
            "three units are less than a reclaim unit"
        );
        placed(&mut policy, 3, 0);
        assert_eq!(survives(&mut policy, 0), Some(1));
        assert_eq!(survives(&mut policy, 1), Some(1), "level 1 is empty");
        (0..4).for_each(|lpn| placed(&mut policy, lpn, 1));
        assert_eq!(
            (policy.valid[0], policy.valid[1]),
            (0, 4),
            "what lies on level 1 has left level 0"
        );
        assert_eq!([survives(&mut policy, 1), survives(&mut policy, 0)], [Some(2), Some(1)]);
        (4..12).for_each(|lpn| placed(&mut policy, lpn, 2));
        assert_eq!(survives(&mut policy, 2), Some(2), "there is no fourth level");
    }

    /// 400 valid units, a quarter invalid when collected: 150 expected; after 30 ticks a unit climbs with probability 0.8.
    #[test]
    fn units_climb_with_the_probability_of_the_source() {
        let mut policy = multilog(2);
        (0..400).for_each(|lpn| placed(&mut policy, lpn, 1));
        policy.learnt.each[1].collected(0.25);
        let climbs = (0..10_000).filter(|_| policy.climbs(1, 30)).count();
        assert!((7_850..8_150).contains(&climbs), "{climbs}");
        assert!((0..100).all(|_| !policy.climbs(1, 150)));
        assert!((0..100).all(|_| !policy.climbs(0, 0)), "nothing is above level 0");
    }
}
