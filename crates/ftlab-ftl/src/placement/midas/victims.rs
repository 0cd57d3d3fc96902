//! The victims of MiDAS: the first group that is over its size, otherwise the last.

use ftlab_core::RuId;

use super::{Last, Learnt, Midas};
use crate::Now;
use crate::units::{Closed, Orders};
use crate::victim::VictimPolicy;

impl Midas {
    /// The share of the closed reclaim units that a group but the last may have.
    fn share(&self, group: usize) -> f64 {
        match group {
            0 => self.learnt.hot_size,
            _ => self.learnt.shares[group - 1],
        }
    }

    /// Groups that are larger than they may be give their oldest units to the last one.
    fn hand_over(&mut self, closed: &Closed<'_>) {
        let last = self.last();
        let mut ticks: Vec<Vec<u64>> = vec![Vec::new(); last];
        for ru in closed.oldest_first() {
            let state = closed.ru(ru);
            let group = self.group(state.frontier, state.last_tick);
            if group < last {
                ticks[group].push(state.last_tick);
            }
        }
        for (group, ticks) in ticks.iter().enumerate() {
            let most = (self.share(group) * closed.len() as f64) as usize;
            if ticks.len() > most {
                self.learnt.handed[group] = ticks[ticks.len() - most - 1];
            }
        }
    }
}

impl VictimPolicy for Midas {
    fn orders(&self) -> Orders {
        Orders {
            by_valid: self.params.last == Last::Greedy,
            by_age: true,
            by_part: true,
        }
    }

    fn choose(&mut self, closed: &mut Closed<'_>, now: Now) -> Option<RuId> {
        self.merge_if_stuck(now);
        if std::mem::take(&mut self.learnt.is_resized) {
            self.hand_over(closed);
        }
        let last = self.last();
        let by = self.bounds.key_of(last, &self.learnt);
        closed.assign(by, last + 1, |unit| self.group(unit.frontier, unit.last_tick));
        let is_over = |&group: &usize| f64::from(closed.len_of_part(group)) > self.share(group) * closed.len() as f64;
        if let Some(over) = (0..last).find(is_over) {
            return closed.oldest_of_part(over);
        }
        let best = match self.params.last {
            Last::Greedy => closed.fewest_valid(),
            Last::CostBenefit => best_of_last(closed, now),
        };
        best.or_else(|| (0..last).rev().find_map(|group| closed.oldest_of_part(group)))
    }
}

/// The unit of the last group that Kawaguchi's formula values most; ties: fewest erases, then lowest id.
fn best_of_last(closed: &Closed<'_>, now: Now) -> Option<RuId> {
    let mut best: Option<(f64, u32, RuId)> = None;
    for ru in closed.of_last_part() {
        let state = closed.ru(ru);
        let free = f64::from(closed.units_per_ru() - state.valid);
        let rank = match state.valid {
            0 => f64::NEG_INFINITY,
            valid => -((now.tick - state.last_tick) as f64 * free / (2.0 * f64::from(valid))),
        };
        if best.is_none_or(|(least, erases, id)| rank < least || (rank == least && (state.erases, ru) < (erases, id))) {
            best = Some((rank, state.erases, ru));
        }
    }
    best.map(|(_, _, ru)| ru)
}

/// What the group of a reclaim unit depends on beside the unit, when it was looked at last, and how often it has changed.
#[derive(Default)]
pub(super) struct Bounds {
    last: usize,
    is_hot_used: bool,
    handed: Vec<u64>,
    changes: u64,
}

impl Bounds {
    /// A number that changes with the groups of closed units.
    fn key_of(&mut self, last: usize, learnt: &Learnt) -> u64 {
        if (self.last, self.is_hot_used) != (last, learnt.is_hot_used) || self.handed != learnt.handed {
            self.handed.clone_from(&learnt.handed);
            (self.last, self.is_hot_used) = (last, learnt.is_hot_used);
            self.changes += 1;
        }
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::Frontier;
    use crate::placement::midas::Params;
    use crate::placement::{Event, PlacementPolicy, Survivor};
    use crate::units::{RuState, Units};
    use ftlab_core::geometry::PlaneOrder;
    use ftlab_core::{Geometry, LaneId, Layout, Lpn, ReclaimKind, Stream};

    fn midas(params: Params) -> Midas {
        let setup = crate::placement::Setup {
            logical_units: 80,
            unit_bytes: 4096,
            units_per_ru: 10,
            rus: 10,
            lanes: 1,
            survivors: crate::config::Survivors::Shared,
            seed: 1,
        };
        Midas::new(params, &setup)
    }

    /// Blocks of ten pages, a pool for each channel.
    fn empty(blocks: u32, channels: u32, orders: Orders) -> Units {
        let geometry = Geometry {
            channels,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks,
            pages: 10,
            page_bytes: 4096,
            unit_bytes: 4096,
            oob_bytes: 0,
        };
        let order = PlaneOrder::parse("CWDP").unwrap();
        let layout = Layout::new(geometry, ReclaimKind::Block, order).unwrap();
        let pools: Vec<_> = (0..channels).map(|lane| vec![LaneId(lane)]).collect();
        Units::new(&layout, &pools, orders, false)
    }

    /// Eight blocks that frontier 1 filled, closed at ticks 10, 20 ... with these valid units.
    fn units(valid: [u32; 8]) -> Units {
        let mut units = empty(8, 1, midas(Params::default()).orders());
        for (at, valid) in valid.into_iter().enumerate() {
            let ru = units.open(LaneId(0), 1, 0, false).unwrap();
            units.set_valid(ru, valid);
            units.close(ru, 10 * (at as u64 + 1));
        }
        units
    }

    /// The choice as the description has it: every closed unit is looked at.
    fn scanned(policy: &Midas, closed: &Closed<'_>, now: Now) -> Option<RuId> {
        let last = policy.last();
        let mut groups = vec![(0u32, None); last];
        let mut best: Option<(f64, u32, RuId)> = None;
        for ru in closed.oldest_first() {
            let state = closed.ru(ru);
            let group = policy.group(state.frontier, state.last_tick);
            if group < last {
                let (count, oldest) = &mut groups[group];
                *count += 1;
                oldest.get_or_insert(ru);
                continue;
            }
            let rank = match policy.params.last {
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
        let over = groups
            .iter()
            .enumerate()
            .find(|&(group, &(count, _))| f64::from(count) > policy.share(group) * closed.len() as f64);
        let of_groups = || groups.iter().rev().find_map(|&(_, oldest)| oldest);
        match over {
            Some((_, &(_, oldest))) => oldest,
            None => best.map(|(_, _, ru)| ru).or_else(of_groups),
        }
    }

    /// What the end of an epoch may do to the groups.
    fn change_groups(policy: &mut Midas, random: &mut Stream, tick: u64) {
        let groups = random.below(5) as usize;
        policy.learnt.shares = (0..groups).map(|_| 0.3 * random.unit()).collect();
        policy.learnt.hot_size = 0.2 * random.unit();
        policy.learnt.is_hot_used = random.below(2) == 0;
        policy.learnt.is_resized = random.below(2) == 0;
        if random.below(2) == 0 {
            let last = policy.last();
            policy.learnt.handed[last..].fill(tick);
        }
    }

    /// Units of two pools are filled by six frontiers, invalidated at random, chosen and collected; some are collected that the policy did
    /// not choose, and some of those are not emptied.
    fn chosen_as_scanned(last: Last, seed: u64) -> u32 {
        const BLOCKS: u32 = 150;
        let mut random = Stream::new(seed, "midas");
        let mut policy = midas(Params {
            last,
            ..Params::default()
        });
        let mut units = empty(BLOCKS, 2, policy.orders());
        let (mut tick, mut of_groups) = (0, 0);
        for step in 0..40_000 {
            tick += random.below(2);
            let (pool, now) = (random.below(2) as usize, Now { tick, time_ns: 0 });
            if step % 3000 == 2999 {
                change_groups(&mut policy, &mut random, tick);
            }
            if units.pools[pool].free < 4 {
                if std::mem::take(&mut policy.learnt.is_resized) {
                    policy.hand_over(&units.closed(pool, 10));
                }
                let expected = scanned(&policy, &units.closed(pool, 10), now);
                let chosen = policy.choose(&mut units.closed(pool, 10), now);
                assert_eq!(chosen, expected, "{last:?}, seed {seed}, step {step}");
                let unit = expected.map(|ru| units.closed(pool, 10).ru(ru)).unwrap();
                of_groups += u32::from(policy.group(unit.frontier, unit.last_tick) < policy.last());
                let by_others = random.below(8) == 0;
                let number = random.below(units.closed(pool, 10).len() as u64) as usize;
                let victim = if by_others {
                    units.closed(pool, 10).nth(number)
                } else {
                    chosen.unwrap()
                };
                units.begin_collection(victim);
                if by_others && random.below(2) == 0 {
                    units.abandon_collection(victim);
                    continue;
                }
                units.remove_valid(victim, units.valid(victim));
                units.erased(victim, None);
            }
            let ru = units
                .open(LaneId(pool as u32), random.below(6) as Frontier, 0, false)
                .unwrap();
            units.add_valid(ru, 10);
            units.close(ru, tick);
            for _ in 0..12 {
                let ru = RuId(random.below(u64::from(2 * BLOCKS)) as u32);
                if units.rus[ru.at()].state == RuState::Closed && units.valid(ru) > 0 {
                    units.invalidate(ru);
                }
            }
        }
        of_groups
    }

    #[test]
    fn victims_are_those_of_a_search_of_all_closed_units() {
        for last in [Last::Greedy, Last::CostBenefit] {
            for seed in 0..4 {
                let of_groups = chosen_as_scanned(last, seed);
                assert!(
                    (1000..39_000).contains(&of_groups),
                    "{of_groups} of groups but the last"
                );
            }
        }
    }

    fn survivor(from: Frontier, opened: u64) -> Survivor {
        Survivor {
            lpn: Some(Lpn(0)),
            vpn: None,
            from,
            opened,
            stream: 0,
            lane: LaneId(0),
            since: Some(0),
            dies: None,
            is_cached: false,
            now: Now::default(),
        }
    }

    /// Group 1 may have a quarter of eight units. Its six oldest are handed to the last group when sizes have changed, and of these
    /// the emptiest goes, which is block 3; without a change of sizes it would be the oldest, which is all valid.
    #[test]
    fn a_group_that_got_smaller_hands_over_its_oldest_units() {
        let valid = [10, 9, 8, 2, 7, 9, 1, 10];
        let mut policy = midas(Params::default());
        (policy.learnt.shares, policy.learnt.predicted) = (vec![0.25], vec![0.5]);
        policy.learnt.is_graded = false;
        let mut units = units(valid);
        let now = Now::default();
        assert_eq!(policy.choose(&mut units.closed(0, 10), now), Some(RuId(0)));
        policy.learnt.is_resized = true;
        assert_eq!(policy.choose(&mut units.closed(0, 10), now), Some(RuId(3)));
        assert_eq!(policy.learnt.handed[1], 60);
        // What it still has is copied to the next group, what it has handed over stays in the last.
        policy.learnt.shares.push(0.25);
        assert_eq!(policy.survivor(&survivor(1, 60)), Some(2));
        assert_eq!(policy.survivor(&survivor(1, 50)), Some(3));
    }

    /// Group 1 is within its size and has all that is invalid; the last group, blocks 0 and 1, is all valid.
    fn stuck() -> (Midas, Units) {
        let mut policy = midas(Params::default());
        (policy.learnt.shares, policy.learnt.predicted) = (vec![0.8], vec![0.5]);
        (policy.learnt.is_graded, policy.learnt.handed[1]) = (false, 20);
        (policy, units([10, 10, 6, 3, 6, 6, 6, 6]))
    }

    /// Block 0 is collected `times`; what is chosen then.
    fn after(policy: &mut Midas, units: &mut Units, times: u32, valid: u32, tick: u64) -> Option<RuId> {
        let now = Now { tick, time_ns: 0 };
        for _ in 0..times {
            let victim = Event::Collecting {
                frontier: 1,
                valid,
                opened: 0,
                last_tick: 10,
            };
            policy.on(victim, now);
        }
        policy.choose(&mut units.closed(0, 10), now)
    }

    #[test]
    fn a_last_group_that_is_all_valid_is_merged_after_25_collections_in_one_go() {
        let (mut policy, mut units) = stuck();
        assert_eq!(after(&mut policy, &mut units, 24, 10, 100), Some(RuId(0)));
        // The next write begins anew.
        assert_eq!(after(&mut policy, &mut units, 24, 10, 101), Some(RuId(0)));
        // So do collections that have freed a reclaim unit.
        assert_eq!(after(&mut policy, &mut units, 30, 9, 102), Some(RuId(0)));
        assert_eq!((policy.learnt.merged, policy.last()), (0, 2));
        assert_eq!(
            after(&mut policy, &mut units, 25, 10, 103),
            Some(RuId(3)),
            "the emptiest of all"
        );
        assert_eq!(
            (policy.learnt.merged, policy.last(), policy.learnt.is_graded),
            (1, 1, true)
        );
        // Then nothing is left to be merged.
        after(&mut policy, &mut units, 25, 10, 103);
        assert_eq!(policy.learnt.merged, 1);
    }

    /// A group that was collected last is merged with all later ones, and a hot group with the last other one.
    #[test]
    fn what_the_guard_merges() {
        let groups_left = |shares: usize, group: usize| {
            let mut policy = midas(Params::default());
            (policy.learnt.shares, policy.learnt.predicted) = (vec![0.2; shares], vec![0.5; shares]);
            policy.learnt.is_hot_used = true;
            let now = Now { tick: 9, time_ns: 0 };
            (0..25).for_each(|_| policy.count_collection(group, 0, now));
            policy.merge_if_stuck(now);
            (policy.last(), policy.learnt.is_hot_used)
        };
        assert_eq!(
            [5, 4, 3].map(|group| groups_left(4, group)),
            [(4, true), (4, true), (3, true)]
        );
        assert_eq!(
            [2, 1, 0].map(|group| groups_left(4, group)),
            [(2, true), (1, false), (1, false)]
        );
        assert_eq!(groups_left(0, 1), (1, false));
    }

    /// Until there is a configuration, survivors go up a frontier with each copy, as far as there are any; then the last group is one.
    #[test]
    fn survivors_are_parted_by_copies_while_no_configuration_is_in_force() {
        let next = |policy: &mut Midas| [0, 1, 2, 3, 4, 5].map(|from| policy.survivor(&survivor(from, 9)).unwrap());
        let mut policy = midas(Params::default());
        assert_eq!(next(&mut policy), [1, 2, 3, 4, 5, 5]);
        (policy.learnt.shares, policy.learnt.is_graded) = (vec![0.1, 0.1], false);
        assert_eq!(next(&mut policy), [1, 2, 3, 3, 3, 3]);
        let mut mixed = midas(Params {
            graded: false,
            ..Params::default()
        });
        assert_eq!(next(&mut mixed), [1, 1, 1, 1, 1, 1]);
    }
}
