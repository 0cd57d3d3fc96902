//! Units after a power cut or as a saved state has them.

use std::cmp::Reverse;

use crate::frontier::Frontier;
use ftlab_core::RuId;

use super::{ByAge, ByPart, ByValid, Ru, RuState, Table, Units};

impl Units {
    /// So many erases of `ru` have not taken place. True if the unit had been retired by them.
    pub(crate) fn unerase(&mut self, ru: RuId, undone: u32) -> bool {
        let pool = self.pool_of(ru);
        let unit = &mut self.rus[ru.at()];
        unit.erases -= undone;
        self.total_erases -= u64::from(undone);
        let retired = unit.state == RuState::Bad;
        if retired {
            unit.state = RuState::Collecting;
            self.pools[pool].good += 1;
        }
        retired
    }

    /// After a power cut: `valid` counts as rebuilt. Units that were written are closed, whatever they were doing; free
    /// ones stay free unless they are `spoilt`, so that they must be erased again.
    pub(crate) fn recovered(&mut self, valid: &[u32], spoilt: &[bool], tick: u64) {
        for pool in &mut self.pools {
            pool.free = 0;
            pool.closed.clear();
        }
        self.clear_orders();
        let mut free: Vec<(u32, u32)> = self
            .free
            .iter_mut()
            .flat_map(|lane| lane.drain())
            .map(|Reverse(key)| key)
            .collect();
        free.sort_unstable();
        let keys: rustc_hash::FxHashMap<u32, u32> = free.into_iter().map(|(key, ru)| (ru, key)).collect();
        // The sequence numbers in flash tell the order in which units were closed.
        let mut order: Vec<u32> = (0..valid.len() as u32).collect();
        order.sort_by_key(|&ru| match self.rus[ru as usize].state {
            RuState::Closed => self.by_age.as_ref().map_or(0, |by_age| by_age.closed_at(ru)),
            _ => u32::MAX,
        });
        for ru in order.into_iter().map(RuId) {
            let pool = self.pool_of(ru);
            let unit = &mut self.rus[ru.at()];
            self.valid[ru.at()] = valid[ru.at()];
            match (unit.state, keys.get(&ru.0)) {
                (RuState::Bad, _) => {}
                (RuState::Free, Some(&key)) if !spoilt[ru.at()] => {
                    self.free[(ru.0 / self.blocks_per_lane) as usize].push(Reverse((key, ru.0)));
                    self.pools[pool].free += 1;
                }
                (state, _) => {
                    let tick = if state == RuState::Closed { unit.last_tick } else { tick };
                    unit.state = RuState::Open;
                    self.close(ru, tick);
                }
            }
        }
    }

    /// The orders that a saved state must keep, pool by pool: closed units as listed, by age, and free units by lane.
    pub(crate) fn orders(&self) -> Vec<Vec<u32>> {
        let mut orders = Vec::new();
        for (number, pool) in self.pools.iter().enumerate() {
            orders.push(pool.closed.clone());
            let ages = self
                .by_age
                .iter()
                .flat_map(|by_age| by_age.oldest_first(number, &self.rus));
            orders.push(ages.collect());
        }
        for lane in &self.free {
            let mut keys: Vec<(u32, u32)> = lane.iter().map(|Reverse(key)| *key).collect();
            keys.sort_unstable();
            orders.push(keys.into_iter().map(|(_, ru)| ru).collect());
        }
        orders
    }

    pub(crate) fn set_unit(
        &mut self,
        ru: usize,
        last_tick: u64,
        valid: u32,
        erases: u32,
        state: u8,
        frontier: Frontier,
    ) -> Result<(), String> {
        let states = [
            RuState::Free,
            RuState::Open,
            RuState::Closed,
            RuState::Collecting,
            RuState::Bad,
        ];
        let Some(&state) = states.get(state as usize) else {
            return Err(format!("unit {ru} has the unknown state {state}"));
        };
        self.rus[ru] = Ru {
            erases,
            last_tick,
            place: 0,
            state,
            frontier,
        };
        self.valid[ru] = valid;
        Ok(())
    }

    /// Rebuilds lists and free sets from units already set and the orders of [`Units::orders`].
    pub(crate) fn restore(&mut self, orders: &[Vec<u32>]) -> Result<(), String> {
        self.by_part.iter_mut().for_each(ByPart::clear);
        let most = self.rus.len() as u32;
        if let Some(ru) = orders.iter().flatten().find(|&&ru| ru >= most) {
            return Err(format!("unit {ru} of {most}"));
        }
        let (of_pools, of_lanes) = orders.split_at(2 * self.pools.len());
        for (number, lists) in of_pools.chunks_exact(2).enumerate() {
            let lanes = self.pools[number].lanes.clone();
            let good = lanes
                .iter()
                .flat_map(|&lane| self.of_lane(lane))
                .filter(|ru| self.rus[ru.at()].state != RuState::Bad);
            let good = good.count() as u32;
            let pool = &mut self.pools[number];
            (pool.closed, pool.good, pool.free) = (lists[0].clone(), good, 0);
            for (place, &ru) in lists[0].iter().enumerate() {
                if self.rus[ru as usize].state != RuState::Closed || self.pool_of(RuId(ru)) != number {
                    return Err(format!("unit {ru} is listed as closed in pool {number}, but is not"));
                }
                self.rus[ru as usize].place = place as u32;
                if let Some(by_valid) = &mut self.by_valid
                    && self.by_part.is_none()
                {
                    if self.valid[ru as usize] > by_valid.most() {
                        return Err(format!("unit {ru} has {} valid units", self.valid[ru as usize]));
                    }
                    let table = Table {
                        rus: &self.rus,
                        valid: &self.valid,
                    };
                    by_valid.add(number, ru, table);
                }
            }
            // A state saved under a policy that keeps no ages: the order of listing is the best known.
            let ages = if lists[1].is_empty() { &lists[0] } else { &lists[1] };
            if let Some(by_age) = &mut self.by_age {
                ages.iter().for_each(|&ru| by_age.add(number, ru));
            }
        }
        for (lane, list) in of_lanes.iter().enumerate() {
            self.free[lane].clear();
            let pool = self.pool_of_lane[lane] as usize;
            for &ru in list {
                if self.rus[ru as usize].state != RuState::Free || (ru / self.blocks_per_lane) as usize != lane {
                    return Err(format!("unit {ru} is listed as free in lane {lane}, but is not"));
                }
                self.add_free(RuId(ru));
                self.pools[pool].free += 1;
            }
        }
        Ok(())
    }

    fn clear_orders(&mut self) {
        self.by_valid.iter_mut().for_each(ByValid::clear);
        self.by_age.iter_mut().for_each(ByAge::clear);
        self.by_part.iter_mut().for_each(ByPart::clear);
        self.relisted_below = 0;
    }
}
