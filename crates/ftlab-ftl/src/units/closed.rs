//! The closed units of a pool as victim policies see them.

use crate::frontier::Frontier;
use ftlab_core::RuId;

use super::Units;
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

    /// The unit with the fewest valid; ties: fewest erases, then lowest id. Needs [`super::Orders::by_valid`].
    pub fn fewest_valid(&mut self) -> Option<RuId> {
        let Units {
            by_valid,
            rus,
            valid,
            pools,
            relisted_below,
            ..
        } = &mut *self.units;
        let by_valid = by_valid
            .as_mut()
            .expect("a policy asks for an order that it has not named");
        let chosen = by_valid.fewest_valid(self.pool, &pools[self.pool].closed, Table { rus, valid });
        *relisted_below = by_valid.bound();
        chosen
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

    /// All closed units, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = RuId> + '_ {
        self.units.pools[self.pool].closed.iter().map(|&ru| RuId(ru))
    }
}
