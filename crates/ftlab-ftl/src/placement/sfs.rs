//! SFS: units go to groups of similar hotness, whose borders follow the hotness of the closed reclaim units.
//!
//! # Model
//! Time is counted in mapping units that the host has written. The hotness of a unit is the number of its writes divided
//! by the time since the last of them; that of a reclaim unit the sum of those numbers over its valid units, divided by
//! the sum of those times.
//! * **Borders** (iterative segment quantization): at each collection, three rounds of k-means on the hotness of the
//!   closed reclaim units of the collected pool move the centres of the `groups` groups. They start from the previous
//!   centres, the first time from evenly spaced quantiles.
//! * **Host writes and survivors** go to the group whose centre is nearest to the unit's hotness. The hotness of a host
//!   write includes this write and the time since the one before. A first write is the hottest.
//! * **Victims** (`victim = own`, cost-hotness): the largest `(1 − u) / (u × hotness)`, with `u` the valid share and
//!   the number of writes divided by the time since the reclaim unit's last program (`age = program`) or since the last
//!   writes (`age = write`). A unit with `u = 0` wins, ties go to the fewest erases, then to the lowest id. With
//!   `victim = drive`, `ftl.victim` chooses.
//!
//! Group *i* is frontier *i*, 0 the hottest; host writes and survivors of a group share its open units.
//!
//! # Parameters
//! * `groups` (count, default 6, 2 to 64): frontiers. Six are the classes of `sepbit`.
//! * `scale` (`log` or `linear`, default `log`): what k-means works on, the logarithm of the hotness or the hotness.
//! * `age` (`program` or `write`, default `program`): the time of a victim's hotness.
//! * `victim` (`own` or `drive`, default `own`).
//!
//! # Choices
//! The source of the scheme is a file system that writes whole segments; here reclaim units are filled as data arrives.
//! Before the first collection all data is in the hottest group. Data that was in the drive before the policy saw a
//! request counts as written once, at that time. Reclaim units without units of one owner (translation pages, shared
//! values) have the hotness `1 / time since their last program`, so that the rule is cost-benefit for them. The source
//! does not name a scale: `linear` puts nearly all units into the coldest groups, because hotness has a long tail. Nor
//! does it say whether a copy renews the time of a block: with `age = write` it does not, and cold units that have just
//! been moved are the next victims again. Counts are never halved, so that in a long run the hotness of cold data falls
//! behind as the square of its rate. The rule then collects cold units with too much valid data, and `victim = drive`
//! with `cost_benefit` writes less (`docs/measured.md`).
//!
//! # Not modelled
//! Delaying writes until a group has a segment full; the time of clustering; hotness of files.
//!
//! # Errors
//! `groups` outside its range; an unknown word.
//!
//! # Cost
//! O(log groups) a unit placed, O(reclaim units) a collection; 12 bytes a mapping unit, and 16 a reclaim unit.
//!
//! # Source
//! Min, Kim, Cho, Lee and Eom, "SFS: Random Write Considered Harmful in Solid State Drives", FAST 2012; sums over valid
//! blocks and the three rounds as in the simulator of SepBIT.

use ftlab_core::{Error, Lpn, Result, RuId};
use serde::{Deserialize, Serialize};

use super::{Asks, Event, HostWrite, PlacementPolicy, Setup, Survivor, Victims, kmeans, learnt};
use crate::Now;
use crate::frontier::Frontier;
use crate::units::Closed;
use crate::victim::VictimPolicy;

/// What k-means works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    Linear,
    Log,
}

/// The time that the hotness of a victim is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Age {
    Write,
    Program,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub groups: u16,
    pub scale: Scale,
    pub age: Age,
    pub victim: Victims,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            groups: 6,
            scale: Scale::Log,
            age: Age::Program,
            victim: Victims::Own,
        }
    }
}

/// Rounds of k-means at each collection.
const ROUNDS: usize = 3;

/// A unit that lies in no reclaim unit.
const NOWHERE: u32 = u32::MAX;

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !(2..=64).contains(&params.groups) {
        return Err(Error::input(format!(
            "placement policy `sfs`: groups = {}, expected 2 to 64",
            params.groups
        )));
    }
    let units = setup.logical_units as usize;
    Ok(Box::new(Sfs {
        params,
        written: vec![Written::default(); units],
        lies_in: vec![NOWHERE; units],
        sums: vec![Sums::default(); setup.rus as usize],
        learnt: Learnt::default(),
        values: Vec::new(),
    }))
}

struct Sfs {
    params: Params,
    written: Vec<Written>,
    lies_in: Vec<u32>,
    /// Of each reclaim unit.
    sums: Vec<Sums>,
    learnt: Learnt,
    /// Working space of a quantization.
    values: Vec<f64>,
}

/// How often a mapping unit was written, and when last.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Written {
    count: u32,
    last: u64,
}

/// Of the units of one LPN that lie in a reclaim unit: integers, so that no order of events changes them.
#[derive(Clone, Copy, Default)]
struct Sums {
    units: u32,
    counts: u64,
    lasts: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct Learnt {
    /// Ascending; empty before the first collection.
    centres: Vec<f64>,
    quantizations: u64,
}

fn hotness(count: u64, time: u64) -> f64 {
    count as f64 / time.max(1) as f64
}

impl Sums {
    fn add(&mut self, written: Written) {
        self.units += 1;
        self.counts += u64::from(written.count);
        self.lasts += written.last;
    }

    fn remove(&mut self, written: Written) {
        self.units -= 1;
        self.counts -= u64::from(written.count);
        self.lasts -= written.last;
    }

    fn hotness(&self, tick: u64) -> f64 {
        hotness(self.counts, u64::from(self.units) * tick - self.lasts)
    }
}

impl Sfs {
    fn scaled(&self, hotness: f64) -> f64 {
        match self.params.scale {
            Scale::Linear => hotness,
            Scale::Log => libm::log2(hotness),
        }
    }

    /// Group 0 is the hottest, the last centre.
    fn group(&self, hotness: f64) -> Frontier {
        let last = self.params.groups - 1;
        if self.learnt.centres.is_empty() {
            return 0;
        }
        last - kmeans::nearest(&self.learnt.centres, self.scaled(hotness)) as Frontier
    }

    /// Moves the centres to the hotness of `rus`.
    fn quantize(&mut self, rus: impl Iterator<Item = RuId>, tick: u64) {
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        let held = rus.map(|ru| &self.sums[ru.at()]).filter(|sums| sums.units > 0);
        values.extend(held.map(|sums| self.scaled(sums.hotness(tick))));
        if self.learnt.centres.is_empty() {
            self.learnt.centres = kmeans::evenly(&values, usize::from(self.params.groups));
        }
        if !self.learnt.centres.is_empty() {
            kmeans::improve(&values, &mut self.learnt.centres, ROUNDS);
            self.learnt.quantizations += 1;
        }
        self.values = values;
    }

    fn leave(&mut self, lpn: Lpn) {
        let ru = std::mem::replace(&mut self.lies_in[lpn.at()], NOWHERE);
        if ru != NOWHERE {
            self.sums[ru as usize].remove(self.written[lpn.at()]);
        }
    }

    /// `None`: nothing valid, which nothing beats.
    fn score(&self, ru: RuId, closed: &Closed<'_>, tick: u64) -> Option<f64> {
        let state = closed.ru(ru);
        if state.valid == 0 {
            return None;
        }
        let sums = &self.sums[ru.at()];
        let hotness = match sums.units {
            0 => hotness(1, tick - state.last_tick),
            _ if self.params.age == Age::Program => {
                hotness(sums.counts, u64::from(sums.units) * (tick - state.last_tick))
            }
            _ => sums.hotness(tick),
        };
        Some(cost_hotness(state.valid, closed.units_per_ru(), hotness))
    }
}

fn cost_hotness(valid: u32, units: u32, hotness: f64) -> f64 {
    f64::from(units - valid) / (f64::from(valid) * hotness)
}

impl PlacementPolicy for Sfs {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let centres = &self.learnt.centres;
        let of = |centre: Option<&f64>| centre.copied().unwrap_or(f64::NAN);
        vec![
            ("quantizations", self.learnt.quantizations as f64),
            ("hottest_centre", of(centres.last())),
            ("coldest_centre", of(centres.first())),
        ]
    }

    fn host_frontiers(&self) -> Frontier {
        self.params.groups
    }

    fn survivor_frontiers(&self) -> Frontier {
        self.params.groups
    }

    fn asks(&self) -> Asks {
        Asks {
            places: true,
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        // The old version is as good as dead: it is not told of until the new one is placed.
        self.leave(write.lpn);
        let written = &mut self.written[write.lpn.at()];
        let before = std::mem::replace(
            written,
            Written {
                count: written.count.saturating_add(1),
                last: write.now.tick,
            },
        );
        if before.count == 0 {
            return 0;
        }
        let count = u64::from(written.count);
        self.group(hotness(count, write.now.tick - before.last))
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let tick = survivor.now.tick;
        let hotness = match survivor.lpn {
            Some(lpn) => {
                let Written { count, last } = self.written[lpn.at()];
                hotness(u64::from(count), tick - last)
            }
            // A value that several share has been there for as long as its reclaim unit at least.
            None => hotness(1, tick - survivor.opened),
        };
        Some(self.group(hotness))
    }

    fn victim(&mut self) -> Option<&mut dyn VictimPolicy> {
        (self.params.victim == Victims::Own).then_some(self)
    }

    fn looks(&mut self, closed: &Closed<'_>, now: Now) {
        self.quantize(closed.iter(), now.tick);
    }

    fn on(&mut self, event: Event, now: Now) {
        match event {
            Event::Placed { lpn, ru, .. } => {
                self.leave(lpn);
                let written = &mut self.written[lpn.at()];
                if written.count == 0 {
                    *written = Written {
                        count: 1,
                        last: now.tick,
                    };
                }
                self.lies_in[lpn.at()] = ru.0;
                self.sums[ru.at()].add(*written);
            }
            Event::Gone(lpn) => {
                self.leave(lpn);
                self.written[lpn.at()] = Written::default();
            }
            Event::Trimmed(_) | Event::Collecting { .. } | Event::Erased { .. } => {}
        }
    }

    fn forget(&mut self) {
        self.written.fill(Written::default());
        self.lies_in.fill(NOWHERE);
        self.sums.fill(Sums::default());
        self.learnt = Learnt::default();
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&(&self.learnt, &self.written))
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let (learnt, written): (Learnt, Vec<Written>) = learnt::load(saved)?;
        let centres = learnt.centres.len();
        if written.len() != self.written.len() || !(centres == 0 || centres == usize::from(self.params.groups)) {
            return Err(format!(
                "{centres} centres and {} mapping units, expected {} and {}",
                written.len(),
                self.params.groups,
                self.written.len()
            ));
        }
        (self.learnt, self.written) = (learnt, written);
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        12 * self.written.len() as u64 + 16 * self.sums.len() as u64
    }
}

impl VictimPolicy for Sfs {
    fn choose(&mut self, closed: &mut Closed<'_>, now: Now) -> Option<RuId> {
        let mut best: Option<(f64, u32, RuId)> = None;
        for ru in closed.iter() {
            let (score, erases) = (
                self.score(ru, closed, now.tick).unwrap_or(f64::INFINITY),
                closed.ru(ru).erases,
            );
            let is_better =
                best.is_none_or(|(top, fewest, id)| score > top || (score == top && (erases, ru) < (fewest, id)));
            if is_better {
                best = Some((score, erases, ru));
            }
        }
        best.map(|(_, _, ru)| ru)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::WriteContext;

    fn sfs(groups: u16) -> Sfs {
        Sfs {
            params: Params {
                groups,
                scale: Scale::Linear,
                ..Params::default()
            },
            written: vec![Written::default(); 8],
            lies_in: vec![NOWHERE; 8],
            sums: vec![Sums::default(); 4],
            learnt: Learnt::default(),
            values: Vec::new(),
        }
    }

    fn at(tick: u64) -> Now {
        Now { tick, time_ns: 0 }
    }

    fn write(sfs: &mut Sfs, lpn: u32, ru: u32, tick: u64) -> Frontier {
        let context = WriteContext::default();
        let frontier = sfs.host(&HostWrite {
            lpn: Lpn(lpn),
            context: &context,
            since: None,
            dies: None,
            now: at(tick),
        });
        let event = Event::Placed {
            lpn: Lpn(lpn),
            ru: RuId(ru),
            frontier,
        };
        sfs.on(event, at(tick));
        frontier
    }

    /// Unit 0 is written at 1, 5 and 9 to reclaim unit 0, unit 1 at 2 to the same, unit 2 at 3 to another.
    #[test]
    fn sums_and_groups_by_hand() {
        let mut sfs = sfs(2);
        for (lpn, ru, tick) in [(0, 0, 1), (1, 0, 2), (2, 1, 3), (0, 1, 5), (0, 0, 9)] {
            assert_eq!(
                write(&mut sfs, lpn, ru, tick),
                0,
                "before the first collection all are hot"
            );
        }
        // (3 + 1) writes over (19 - 9) + (19 - 2); 1 over 19 - 3.
        let hotness = |sfs: &Sfs, ru: usize| sfs.sums[ru].hotness(19);
        assert_eq!([hotness(&sfs, 0), hotness(&sfs, 1)], [4.0 / 27.0, 1.0 / 16.0]);
        sfs.quantize([0, 1].map(RuId).into_iter(), 19);
        assert_eq!(sfs.learnt.centres, [1.0 / 16.0, 4.0 / 27.0]);
        // Unit 0 now: 4 writes over 20 - 9; unit 2: 2 over 100 - 3; unit 3 for the first time.
        assert_eq!(write(&mut sfs, 0, 2, 20), 0);
        assert_eq!(write(&mut sfs, 2, 2, 100), 1);
        assert_eq!(write(&mut sfs, 3, 2, 101), 0);
        assert_eq!(sfs.sums[0].units, 1, "unit 0 has left");
        sfs.on(Event::Gone(Lpn(1)), at(102));
        assert_eq!((sfs.sums[0].units, sfs.sums[0].counts, sfs.sums[0].lasts), (0, 0, 0));
        assert_eq!(
            write(&mut sfs, 1, 2, 400),
            0,
            "a unit that was given up is written for the first time"
        );
    }

    /// Half valid with hotness 0.1: 0.5 / (0.5 × 0.1).
    #[test]
    fn cost_hotness_by_hand() {
        assert_eq!(cost_hotness(32, 64, 0.1), 10.0);
        assert_eq!(cost_hotness(16, 64, 0.25), 12.0);
    }
}
