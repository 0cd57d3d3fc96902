//! The victims of MiDAS: the first group that is over its size, otherwise the last.

use ftlab_core::RuId;

use super::{Last, Midas};
use crate::Now;
use crate::units::{Closed, Orders};
use crate::victim::VictimPolicy;

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
