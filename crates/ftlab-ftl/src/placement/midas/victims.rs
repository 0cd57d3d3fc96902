//! The victims of MiDAS: the first group that is over its size, otherwise the last.

use ftlab_core::RuId;

use super::{Last, Midas};
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
            by_age: true,
            ..Orders::default()
        }
    }

    fn choose(&mut self, closed: &mut Closed<'_>, now: Now) -> Option<RuId> {
        if std::mem::take(&mut self.learnt.is_resized) {
            self.hand_over(closed);
        }
        let last = self.last();
        // Closed units of each group and the oldest; of the last, the best by its rule: the least of what is compared.
        let mut groups = vec![(0u32, None); last];
        let mut best: Option<(f64, u32, RuId)> = None;
        for ru in closed.oldest_first() {
            let state = closed.ru(ru);
            let group = self.group(state.frontier, state.last_tick);
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
        let over = groups
            .iter()
            .enumerate()
            .find(|&(group, &(count, _))| f64::from(count) > self.share(group) * closed.len() as f64);
        let of_groups = || groups.iter().rev().find_map(|&(_, oldest)| oldest);
        match over {
            Some((_, &(_, oldest))) => oldest,
            None => best.map(|(_, _, ru)| ru).or_else(of_groups),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::Frontier;
    use crate::placement::midas::Params;
    use crate::placement::{PlacementPolicy, Survivor};
    use crate::units::Units;
    use ftlab_core::geometry::PlaneOrder;
    use ftlab_core::{Geometry, LaneId, Layout, Lpn, ReclaimKind};

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

    /// Eight blocks of ten pages that frontier 1 filled, closed at ticks 10, 20 ... with these valid units.
    fn units(valid: [u32; 8]) -> Units {
        let geometry = Geometry {
            channels: 1,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks: 8,
            pages: 10,
            page_bytes: 4096,
            unit_bytes: 4096,
            oob_bytes: 0,
        };
        let order = PlaneOrder::parse("CWDP").unwrap();
        let layout = Layout::new(geometry, ReclaimKind::Block, order).unwrap();
        let orders = Orders {
            by_age: true,
            ..Orders::default()
        };
        let mut units = Units::new(&layout, &[vec![LaneId(0)]], orders, false);
        for (at, valid) in valid.into_iter().enumerate() {
            let ru = units.open(LaneId(0), 1, 0, false).unwrap();
            units.set_valid(ru, valid);
            units.close(ru, 10 * (at as u64 + 1));
        }
        units
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
