//! Closed units in the order in which they were closed, for `oldest_first`.

use std::collections::VecDeque;

use super::{Ru, RuState};

#[derive(Clone, Debug)]
pub(super) struct ByAge {
    sequence: u32,
    /// Sequence number at closing, per unit.
    closed_at: Vec<u32>,
    /// (unit, its sequence number at closing) of each pool, oldest first; an entry is stale once its unit was collected.
    pools: Vec<VecDeque<(u32, u32)>>,
}

impl ByAge {
    pub fn new(rus: u32, pools: usize) -> Self {
        ByAge {
            sequence: 0,
            closed_at: vec![0; rus as usize],
            pools: vec![VecDeque::new(); pools],
        }
    }

    /// Forgets every unit, but not when it was closed.
    pub fn clear(&mut self) {
        self.pools.iter_mut().for_each(VecDeque::clear);
    }

    pub fn add(&mut self, pool: usize, ru: u32) {
        self.sequence = self.sequence.wrapping_add(1);
        self.closed_at[ru as usize] = self.sequence;
        self.pools[pool].push_back((ru, self.sequence));
    }

    /// When `ru` was closed last, as a sequence number.
    pub fn closed_at(&self, ru: u32) -> u32 {
        self.closed_at[ru as usize]
    }

    /// The same of all units.
    pub fn all_closed_at(&self) -> &[u32] {
        &self.closed_at
    }

    pub fn oldest_first(&self, pool: usize, rus: &[Ru]) -> impl Iterator<Item = u32> {
        let current = move |entry: &&(u32, u32)| is_current(**entry, rus, &self.closed_at);
        self.pools[pool].iter().filter(current).map(|&(ru, _)| ru)
    }

    /// Drops entries of units that have been collected; `closed` units are left in the pool.
    pub fn drop_stale(&mut self, pool: usize, closed: usize, rus: &[Ru]) {
        let (ages, closed_at) = (&mut self.pools[pool], &self.closed_at);
        while ages.front().is_some_and(|&entry| !is_current(entry, rus, closed_at)) {
            ages.pop_front();
        }
        if ages.len() > 2 * closed + 64 {
            ages.retain(|&entry| is_current(entry, rus, closed_at));
        }
    }
}

/// Whether the unit of an entry is still closed, and has not been anew.
pub(super) fn is_current((ru, sequence): (u32, u32), rus: &[Ru], closed_at: &[u32]) -> bool {
    rus[ru as usize].state == RuState::Closed && closed_at[ru as usize] == sequence
}
