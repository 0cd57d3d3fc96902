//! Preconditioning: a full drive in a known state, in seconds at any size.
//!
//! `fill` writes every logical unit once, in order (or a share of them, the last ones), `scatter` in scattered order. `theory` goes straight to the steady
//! state of uniform random overwrites: each closed unit gets as many valid units as the mean-field distribution of the
//! victim policy says, at random places, filled with logical units in scattered order. Theory is never checked on a drive
//! that was put into its own state.

use std::ops::Range;

use ftlab_core::theory::{self, VictimLaw};
use ftlab_core::{LaneId, Lpn, RuId, Slot, Stream};

use crate::backend::{Cause, Class, Counting, Ticket};
use crate::ftl::Ftl;
use crate::owner::{Owner, Packed};
use crate::record::Entry;

/// Of a unit that is filled and closed at once: it has no place among the open ones.
const NO_PLACE: u32 = u32::MAX;

/// How close the state set by [`Ftl::precondition_theory`] is to the steady state of the drive's own policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preconditioned {
    /// Whether theory has a distribution for this victim policy; otherwise the state is the nearest one, and the drive
    /// should be aged by simulation from there.
    pub exact: bool,
    pub sentence: String,
}

impl Ftl<Counting> {
    /// Writes every logical unit once, in order.
    pub fn precondition_fill(&mut self) {
        self.precondition_fill_from(Lpn(0));
    }

    /// Writes every logical unit from `first` on once, in order.
    pub fn precondition_fill_from(&mut self, first: Lpn) {
        self.fill(first.0..self.config.logical_units, Lpn);
    }

    /// Writes every logical unit once, in scattered order: neighbours lie far from each other.
    pub fn precondition_scatter(&mut self) {
        let mut random = Stream::new(self.config.seed, "precondition");
        let scatter = Scatter::new(self.config.logical_units, &mut random);
        self.fill(0..self.config.logical_units, |index| Lpn(scatter.of(index)));
    }

    fn fill(&mut self, places: Range<u32>, lpn_of: impl Fn(u32) -> Lpn) {
        self.write_translation_pages();
        for lpn in places.map(lpn_of) {
            self.tick += 1;
            if let Some(versions) = &mut self.versions {
                versions.written(lpn);
            }
            let frontier = self.frontier_of_nobody(lpn);
            if !self.program_unit(lpn, frontier, Cause::Host, Class::HostWrite, Ticket::NONE) {
                break;
            }
            self.placing.placed(lpn, self.record.entry(lpn), self.tick);
        }
        self.settle();
    }

    /// Puts a new drive into the steady state of uniform random overwrites.
    pub fn precondition_theory(&mut self) -> Preconditioned {
        let (law, exact) = match self.config.victim.name.as_str() {
            "greedy" => (VictimLaw::Greedy, true),
            "fifo" => (VictimLaw::Fifo, true),
            "random" => (VictimLaw::Random, true),
            "d_choices" => {
                let d = self
                    .config
                    .victim
                    .params
                    .get("d")
                    .and_then(serde_json::Value::as_u64)
                    .unwrap_or(10);
                (VictimLaw::DChoices(d as u32), true)
            }
            _ => (VictimLaw::Greedy, false),
        };
        self.write_translation_pages();
        let mut random = Stream::new(self.config.seed, "precondition");
        self.tick = u64::from(self.config.logical_units);
        if self.by_address || self.units.pools.len() == self.layout.lanes as usize {
            for lane in (0..self.layout.lanes).map(LaneId) {
                let share = self.lpns_of_lane(lane);
                self.settle_lanes(&[lane], share, law, &mut random);
            }
        } else {
            for pool in 0..self.units.pools.len() {
                let lanes = self.units.pools[pool].lanes.clone();
                let shares: Vec<Share> = lanes.iter().map(|&lane| self.lpns_of_lane(lane)).collect();
                let share = Share {
                    count: shares.iter().map(|share| share.count).sum(),
                    ..shares[0]
                };
                self.settle_lanes(&lanes, share, law, &mut random);
            }
        }
        self.settle();
        let name = &self.config.victim.name;
        let sentence = if exact {
            format!("preconditioned to the theoretical steady state of uniform random overwrites under `{name}`")
        } else {
            format!("preconditioned to the steady state of `greedy`, the nearest that theory has for `{name}`")
        };
        Preconditioned { exact, sentence }
    }

    /// Which logical units belong to `lane`: by address where the allocation is static, else an even share.
    fn lpns_of_lane(&self, lane: LaneId) -> Share {
        let (lanes, units) = (self.layout.lanes, self.config.logical_units);
        if self.by_address {
            let per_page = self.layout.units_per_page;
            let stride = lanes * per_page;
            let rest = (units % stride).saturating_sub(lane.0 * per_page).min(per_page);
            return Share {
                first: lane.0,
                count: units / stride * per_page + rest,
                lanes,
                per_page,
            };
        }
        let start = (u64::from(units) * u64::from(lane.0) / u64::from(lanes)) as u32;
        let end = (u64::from(units) * u64::from(lane.0 + 1) / u64::from(lanes)) as u32;
        Share {
            first: start,
            count: end - start,
            lanes: 1,
            per_page: 1,
        }
    }

    /// Distributes the units of `share` over closed reclaim units of `lanes`.
    fn settle_lanes(&mut self, lanes: &[LaneId], share: Share, law: VictimLaw, random: &mut Stream) {
        let per_ru = self.layout.slots_per_ru;
        // As much is free as collection keeps free, so that the first unit to be opened starts it.
        let (gc, pool) = (&self.config.gc, self.units.pool_of_lane(lanes[0]));
        let kept = if gc.preemptible || gc.background {
            gc.soft
        } else {
            self.kept_free(pool)
        };
        let free: u32 = lanes.iter().map(|&lane| self.units.free_in_lane(lane) as u32).sum();
        let of_pool = self.units.pools[self.units.pool_of_lane(lanes[0])].lanes.len() as u32;
        let reserve = (kept * lanes.len() as u32).div_ceil(of_pool);
        let reserve = reserve.min(free.saturating_sub(share.count.div_ceil(per_ru)));
        let closed = free - reserve;
        let slots = closed * per_ru;
        // Where collection is to keep all of the spare free, the others are full, of which theory says nothing.
        let is_full = share.count >= slots;
        let (counts, waf) = match is_full {
            true => {
                // The emptiest are the oldest.
                let full = (0..closed)
                    .rev()
                    .map(|index| share.count.saturating_sub(index * per_ru).min(per_ru));
                (full.collect(), 1.0)
            }
            false => (
                self.valid_counts(law, closed, share.count, per_ru),
                theory_waf(law, share.count, closed, per_ru),
            ),
        };
        let scatter = Scatter::new(share.count, random);
        let pass_ticks = f64::from(slots) / waf;
        let mut next = 0;
        let mut lpns = Vec::with_capacity(per_ru as usize);
        for (index, &count) in counts.iter().enumerate() {
            let lane = lanes[index % lanes.len()];
            let Some(ru) = self
                .units
                .open(lane, self.placing.first_on(lane), NO_PLACE, false)
                .or_else(|| self.open_anywhere(lanes))
            else {
                break;
            };
            lpns.clear();
            lpns.extend((next..next + count).map(|i| share.lpn(scatter.of(i)).0));
            next += count;
            for &lpn in &lpns {
                self.record.prefetch_entry(lpn);
            }
            let age = (1.0 - index as f64 / f64::from(closed)) * pass_ticks;
            let tick = self.tick.saturating_sub(age as u64);
            self.fill_unit(ru, &lpns, tick, random);
        }
        assert!(
            next == share.count,
            "preconditioning placed {next} of {} units",
            share.count
        );
    }

    fn open_anywhere(&mut self, lanes: &[LaneId]) -> Option<RuId> {
        lanes
            .iter()
            .find_map(|&lane| self.units.open(lane, self.placing.first_on(lane), NO_PLACE, false))
    }

    /// Valid units of each closed unit, ascending: the distribution's quantiles, corrected to the exact total.
    fn valid_counts(&self, law: VictimLaw, closed: u32, units: u32, per_ru: u32) -> Vec<u32> {
        let rho = f64::from(units) / (f64::from(closed) * f64::from(per_ru));
        let shares = theory::valid_distribution(law, rho, per_ru);
        let mut counts = Vec::with_capacity(closed as usize);
        let mut cumulative = 0.0;
        for (valid, share) in shares.iter().enumerate() {
            cumulative += share * f64::from(closed);
            while (counts.len() as f64) + 0.5 < cumulative && counts.len() < closed as usize {
                counts.push(valid as u32);
            }
        }
        counts.resize(closed as usize, per_ru);
        let mut excess = counts.iter().map(|&v| i64::from(v)).sum::<i64>() - i64::from(units);
        while excess != 0 {
            for count in &mut counts {
                if excess > 0 && *count > 0 {
                    *count -= 1;
                    excess -= 1;
                } else if excess < 0 && *count < per_ru {
                    *count += 1;
                    excess += 1;
                }
            }
        }
        counts.sort_unstable();
        counts
    }

    /// Fills `ru` with `lpns` at random places among dead slots, and closes it.
    fn fill_unit(&mut self, ru: RuId, lpns: &[u32], tick: u64, random: &mut Stream) {
        let first = self.layout.first_slot(ru);
        let per_ru = self.layout.slots_per_ru;
        let mut left = lpns.len() as u32;
        for offset in 0..per_ru {
            // Selection sampling (Knuth, TAOCP 2, algorithm S): every set of places is equally likely.
            if random.below(u64::from(per_ru - offset)) >= u64::from(left) {
                continue;
            }
            left -= 1;
            let lpn = Lpn(lpns[left as usize]);
            let slot = Slot(first.0 + offset);
            self.record.set_owner(slot, Packed::lpn(lpn));
            self.record.set_valid(slot);
            self.record.set_entry(lpn, Entry::slot(slot));
            self.placing.placed_before(lpn, slot, tick);
            if let Some(versions) = &mut self.versions {
                versions.written(lpn);
                versions.programmed(slot);
            }
        }
        self.units.set_valid(ru, lpns.len() as u32);
        self.placing.opened(ru, tick);
        self.units.close(ru, tick);
    }

    /// Every translation page of the map is written once, as a drive that has been in use has them; there are no values yet.
    fn write_translation_pages(&mut self) {
        for (number, table) in self.mapping.tables().iter().enumerate().take(1) {
            let entries = (self.layout.geometry.unit_bytes / table.entry_bytes).max(1);
            for tvpn in 0..table.keys.div_ceil(entries) {
                let owner = Owner::Map {
                    table: number as u8,
                    tvpn,
                };
                if let Some(slot) = self.append_metadata(owner, Cause::Map, &[]) {
                    self.translation.page_moved(number as u8, tvpn, slot);
                }
            }
        }
    }

    /// Preconditioning is over: what it did is not counted, and a recovering drive has a checkpoint of it.
    pub(crate) fn settle(&mut self) {
        self.mapping.forget();
        self.tell_all_places();
        if self.recovery.is_some() {
            self.checkpoint();
        }
        self.reset_counts();
    }
}

fn theory_waf(law: VictimLaw, units: u32, closed: u32, per_ru: u32) -> f64 {
    theory::waf(law, f64::from(units) / (f64::from(closed) * f64::from(per_ru)), per_ru)
}

/// The logical units of one lane or pool: `count` of them, numbered so that an index becomes an LPN.
#[derive(Clone, Copy)]
struct Share {
    first: u32,
    count: u32,
    lanes: u32,
    per_page: u32,
}

impl Share {
    fn lpn(self, index: u32) -> Lpn {
        if self.lanes == 1 {
            return Lpn(self.first + index);
        }
        let (page, unit) = (index / self.per_page, index % self.per_page);
        Lpn((page * self.lanes + self.first) * self.per_page + unit)
    }
}

/// A bijection of `0..count` that scatters neighbours: multiplication by a number prime to `count`, plus a random start.
struct Scatter {
    count: u64,
    factor: u64,
    start: u64,
}

impl Scatter {
    fn new(count: u32, random: &mut Stream) -> Self {
        let count = u64::from(count.max(1));
        let mut factor = (count as f64 * 0.618_033_988_749_895) as u64 | 1;
        while gcd(factor, count) != 1 {
            factor += 1;
        }
        Scatter {
            count,
            factor,
            start: random.below(count),
        }
    }

    fn of(&self, index: u32) -> u32 {
        ((u64::from(index) * self.factor + self.start) % self.count) as u32
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattering_is_a_bijection() {
        for count in [1, 2, 7, 64, 1000, 4096] {
            let scatter = Scatter::new(count, &mut Stream::new(1, "test"));
            let mut seen: Vec<u32> = (0..count).map(|i| scatter.of(i)).collect();
            seen.sort_unstable();
            assert!(seen.iter().enumerate().all(|(i, &s)| i as u32 == s));
        }
    }

    #[test]
    fn the_shares_of_static_lanes_cover_every_unit_once() {
        for (units, lanes, per_page) in [(100u32, 4, 1), (103, 4, 4), (64, 8, 2), (7, 2, 4)] {
            let mut seen = vec![0; units as usize];
            for first in 0..lanes {
                let stride = lanes * per_page;
                let rest = (units % stride).saturating_sub(first * per_page).min(per_page);
                let share = Share {
                    first,
                    count: units / stride * per_page + rest,
                    lanes,
                    per_page,
                };
                (0..share.count).for_each(|i| seen[share.lpn(i).at()] += 1);
            }
            assert!(seen.iter().all(|&n| n == 1), "{units} {lanes} {per_page}: {seen:?}");
        }
    }
}
