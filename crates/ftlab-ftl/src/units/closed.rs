//! The closed units of a pool as victim policies see them.

use crate::frontier::Frontier;
use ftlab_core::RuId;

use super::Units;
use super::by_age::is_current;
use super::by_valid::Table;

/// The closed units of one pool: a read-only view.
pub struct Closed<'a> {
    pub(super) units: &'a mut Units,
    pub(super) pool: usize,
    pub(super) units_per_ru: u32,
}

/// What a victim policy may know of a closed unit.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Valid mapping units.
    pub valid: u32,
    pub erases: u32,
    /// Tick of its last program.
    pub last_tick: u64,
    /// The frontier that filled it.
    pub frontier: Frontier,
}

impl Closed<'_> {
    pub fn len(&self) -> usize {
        self.units.pools[self.pool].closed.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Free units of the pool.
    pub fn free(&self) -> u32 {
        self.units.pools[self.pool].free
    }

    /// Closed unit number `index`, in no particular order (for sampling).
    #[inline]
    pub fn nth(&self, index: usize) -> RuId {
        RuId(self.units.pools[self.pool].closed[index])
    }

    #[inline]
    pub fn ru(&self, ru: RuId) -> Candidate {
        let unit = &self.units.rus[ru.at()];
        Candidate {
            valid: self.units.valid[ru.at()],
            erases: unit.erases,
            last_tick: unit.last_tick,
            frontier: unit.frontier,
        }
    }

    /// Mapping units of a whole reclaim unit: the denominator of `u`.
    pub fn units_per_ru(&self) -> u32 {
        self.units_per_ru
    }

    /// The unit with the fewest valid; ties: fewest erases, then lowest id. Needs [`super::Orders::by_valid`]; with
    /// [`super::Orders::by_part`] it is that of the last part.
    pub fn fewest_valid(&mut self) -> Option<RuId> {
        let Units {
            by_valid,
            by_part,
            rus,
            valid,
            pools,
            relisted_below,
            ..
        } = &mut *self.units;
        let by_valid = by_valid
            .as_mut()
            .expect("a policy asks for an order that it has not named");
        let (pool, closed, table) = (self.pool, &pools[self.pool].closed, Table { rus, valid });
        let chosen = match by_part {
            None => by_valid.fewest_valid(pool, closed, table),
            Some(parts) => {
                let (last, is_ranked) = (parts.len(pool, usize::MAX), |ru| parts.is_in_last(ru));
                by_valid.fewest_valid_of(pool, closed, last as usize, is_ranked, table)
            }
        };
        *relisted_below = by_valid.bound();
        chosen
    }

    /// The unit with the fewest valid of all parts; ties as in [`Closed::fewest_valid`]. Needs no order, and without
    /// [`super::Orders::by_valid`] it looks at all of them.
    pub fn emptiest(&mut self) -> Option<RuId> {
        if self.units.by_valid.is_some() && self.units.by_part.is_none() {
            return self.fewest_valid();
        }
        self.iter().min_by_key(|&ru| {
            let unit = self.ru(ru);
            (unit.valid, unit.erases, ru)
        })
    }

    /// Units in the order in which they were closed, oldest first. Needs [`super::Orders::by_age`].
    pub fn oldest_first(&self) -> impl Iterator<Item = RuId> + '_ {
        let by_age = self
            .units
            .by_age
            .as_ref()
            .expect("a policy asks for an order that it has not named");
        by_age.oldest_first(self.pool, &self.units.rus).map(RuId)
    }

    /// The unit of `frontier` that was closed first. Needs [`super::Orders::by_age`]; O(closed units).
    pub fn oldest_of(&self, frontier: Frontier) -> Option<RuId> {
        self.oldest_first().find(|&ru| self.ru(ru).frontier == frontier)
    }

    /// Assigns each unit to one of `count` parts: those that have been closed since the last call, or all of them if what the policy goes
    /// by, which `key` names, has changed since. Needs [`super::Orders::by_part`], as the next three do.
    pub fn assign(&mut self, key: u64, count: usize, part_of: impl Fn(Candidate) -> usize) {
        let (units, pool) = (&mut *self.units, self.pool);
        let (Some(by_part), Some(ages)) = (&mut units.by_part, &units.by_age) else {
            panic!("a policy asks for parts that it has not named");
        };
        if by_part.is_outdated(pool, key) {
            by_part.begin(pool, key, count, &units.pools[pool].closed, ages, &units.rus);
            units.by_valid.iter_mut().for_each(|by_valid| by_valid.clear_pool(pool));
        }
        let pending = by_part.take_pending(pool);
        for &(ru, sequence) in &pending {
            let unit = &units.rus[ru as usize];
            if !is_current((ru, sequence), &units.rus, ages.all_closed_at()) {
                continue;
            }
            let candidate = Candidate {
                valid: units.valid[ru as usize],
                erases: unit.erases,
                last_tick: unit.last_tick,
                frontier: unit.frontier,
            };
            if by_part.assign(pool, (ru, sequence), part_of(candidate))
                && let Some(by_valid) = &mut units.by_valid
            {
                let table = Table {
                    rus: &units.rus,
                    valid: &units.valid,
                };
                by_valid.add(pool, ru, table);
            }
        }
        by_part.give_back(pool, pending);
    }

    /// Units of `part`.
    pub fn len_of_part(&self, part: usize) -> u32 {
        let by_part = self.units.by_part.as_ref();
        by_part.map_or(0, |by_part| by_part.len(self.pool, part))
    }

    /// The unit of `part`, which is not the last, that was closed first.
    pub fn oldest_of_part(&mut self, part: usize) -> Option<RuId> {
        let (by_part, ages) = (self.units.by_part.as_mut()?, self.units.by_age.as_ref()?);
        by_part.oldest(self.pool, part, ages, &self.units.rus).map(RuId)
    }

    /// Units of the last part, in no particular order; O(closed units).
    pub fn of_last_part(&self) -> impl Iterator<Item = RuId> + '_ {
        self.iter().filter(|&ru| self.units.is_ranked(ru))
    }

    /// All closed units, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = RuId> + '_ {
        self.units.pools[self.pool].closed.iter().map(|&ru| RuId(ru))
    }
}
