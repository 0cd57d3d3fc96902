//! Reclaim units: their states, valid counts and wear, and the pools to which they belong.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::frontier::Frontier;
use ftlab_core::{LaneId, Layout, RuId};

mod by_age;
mod by_part;
mod by_valid;
mod closed;
mod restore;

use by_age::ByAge;
use by_part::ByPart;
use by_valid::{ByValid, Table};
pub use closed::{Candidate, Closed};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RuState {
    Free,
    Open,
    Closed,
    /// Being collected: no longer a candidate, not yet erased.
    Collecting,
    /// Retired.
    Bad,
}

/// One reclaim unit, but for its valid count, which invalidations change and which is kept apart.
#[derive(Clone, Copy, Debug)]
pub struct Ru {
    pub erases: u32,
    /// Tick of its last program.
    pub last_tick: u64,
    /// Place in its pool's list of closed units while closed; index of its frontier while open.
    pub place: u32,
    pub state: RuState,
    /// The frontier that filled it.
    pub frontier: Frontier,
}

/// Which orders of the closed units a victim policy asks for; the mechanism keeps no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// By valid count, for `fewest_valid`.
    pub by_valid: bool,
    /// By time of closing, for `oldest_first`.
    pub by_age: bool,
    /// By the part that the policy assigns each to, for `oldest_of_part`; then `fewest_valid` is of the last part. Needs `by_age`.
    pub by_part: bool,
}

/// Free units and victims that belong together.
#[derive(Clone, Debug)]
pub struct Pool {
    pub lanes: Vec<LaneId>,
    pub free: u32,
    /// Units of the pool that are not bad.
    pub good: u32,
    closed: Vec<u32>,
}

/// The table of all reclaim units.
#[derive(Clone, Debug)]
pub struct Units {
    pub rus: Vec<Ru>,
    /// Valid mapping units of each.
    valid: Vec<u32>,
    pub pools: Vec<Pool>,
    /// Pool of each lane.
    pool_of_lane: Vec<u32>,
    /// Free units of each lane, ordered by the wear policy's key.
    free: Vec<BinaryHeap<Reverse<(u32, u32)>>>,
    blocks_per_lane: u32,
    by_valid: Option<ByValid>,
    by_age: Option<ByAge>,
    by_part: Option<ByPart>,
    /// A closed unit whose valid count falls below this may change its place in the order by valid count.
    relisted_below: u32,
    /// Free units are taken least worn first; otherwise in the order in which they were erased.
    least_worn_first: bool,
    free_sequence: u32,
    pub total_erases: u64,
}

impl Units {
    pub fn new(layout: &Layout, pools: &[Vec<LaneId>], orders: Orders, least_worn_first: bool) -> Self {
        let blank = Ru {
            erases: 0,
            last_tick: 0,
            place: 0,
            state: RuState::Free,
            frontier: 0,
        };
        let mut pool_of_lane = vec![0; layout.lanes as usize];
        for (number, lanes) in pools.iter().enumerate() {
            lanes.iter().for_each(|lane| pool_of_lane[lane.at()] = number as u32);
        }
        let blocks = layout.geometry.blocks;
        let by_valid = || ByValid::new(layout.rus, pools.len(), layout.slots_per_ru);
        let by_age = || ByAge::new(layout.rus, pools.len());
        let free = (0..layout.lanes)
            .map(|lane| (0..blocks).map(|block| Reverse((0, lane * blocks + block))).collect())
            .collect();
        Units {
            rus: vec![blank; layout.rus as usize],
            valid: vec![0; layout.rus as usize],
            by_valid: orders.by_valid.then(by_valid),
            by_age: orders.by_age.then(by_age),
            by_part: (orders.by_part && orders.by_age).then(|| ByPart::new(layout.rus, pools.len())),
            relisted_below: 0,
            pools: pools
                .iter()
                .map(|lanes| Pool {
                    lanes: lanes.clone(),
                    free: blocks * lanes.len() as u32,
                    good: blocks * lanes.len() as u32,
                    closed: Vec::new(),
                })
                .collect(),
            pool_of_lane,
            free,
            blocks_per_lane: blocks,
            least_worn_first,
            free_sequence: 1,
            total_erases: 0,
        }
    }

    /// Valid mapping units of `ru`.
    #[inline]
    pub fn valid(&self, ru: RuId) -> u32 {
        self.valid[ru.at()]
    }

    /// Valid mapping units of every reclaim unit, in the order of their numbers.
    pub fn valid_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.valid.iter().copied()
    }

    pub fn set_valid(&mut self, ru: RuId, valid: u32) {
        debug_assert!(
            self.rus[ru.at()].state != RuState::Closed,
            "the order of closed units does not know that {ru:?} has {valid} valid units"
        );
        self.valid[ru.at()] = valid;
    }

    /// So many more units have been put into the open unit `ru`.
    #[inline(always)]
    pub fn add_valid(&mut self, ru: RuId, count: u32) {
        self.valid[ru.at()] += count;
    }

    /// So many units have been moved out of `ru`, which is being collected.
    #[inline]
    pub fn remove_valid(&mut self, ru: RuId, count: u32) {
        debug_assert!(
            self.rus[ru.at()].state == RuState::Collecting,
            "{ru:?} is not being collected"
        );
        self.valid[ru.at()] -= count;
    }

    /// Brings what an invalidation in `ru` touches into the processor's cache.
    #[inline(always)]
    pub fn prefetch(&self, ru: RuId) {
        ftlab_core::memory::prefetch(&self.valid, ru.at());
    }

    #[inline]
    pub fn pool_of_lane(&self, lane: LaneId) -> usize {
        self.pool_of_lane[lane.at()] as usize
    }

    #[inline]
    pub fn pool_of(&self, ru: RuId) -> usize {
        self.pool_of_lane[(ru.0 / self.blocks_per_lane) as usize] as usize
    }

    /// All units of `lane`.
    pub fn of_lane(&self, lane: LaneId) -> impl Iterator<Item = RuId> + Clone + use<> {
        let first = lane.0 * self.blocks_per_lane;
        (first..first + self.blocks_per_lane).map(RuId)
    }

    /// A collection that could not be finished: the unit, partly emptied, is a candidate again.
    pub fn abandon_collection(&mut self, ru: RuId) {
        self.rus[ru.at()].state = RuState::Open;
        let tick = self.rus[ru.at()].last_tick;
        self.close(ru, tick);
    }

    pub fn free_in_lane(&self, lane: LaneId) -> usize {
        self.free[lane.at()].len()
    }

    /// Takes a free unit of `lane` for frontier number `frontier`, whose open list index is `place`.
    pub fn open(&mut self, lane: LaneId, frontier: Frontier, place: u32, most_worn: bool) -> Option<RuId> {
        let chosen = if most_worn {
            self.take_most_worn(lane)
        } else {
            self.free[lane.at()].pop().map(|Reverse((_, ru))| ru)
        };
        let ru = RuId(chosen?);
        let pool = self.pool_of_lane(lane);
        self.pools[pool].free -= 1;
        let unit = &mut self.rus[ru.at()];
        assert!(
            unit.state == RuState::Free && self.valid[ru.at()] == 0,
            "opened unit {ru:?} is not free: {unit:?}, {} valid",
            self.valid[ru.at()]
        );
        (unit.state, unit.frontier, unit.place) = (RuState::Open, frontier, place);
        Some(ru)
    }

    /// Mean erases of a reclaim unit since the drive was new; a scan.
    pub fn mean_erases(&self) -> f64 {
        let all = self.rus.iter().map(|ru| f64::from(ru.erases)).sum::<f64>();
        all / self.rus.len() as f64
    }

    /// The free unit with the most erases; a scan, because only static wear levelling asks, and rarely.
    fn take_most_worn(&mut self, lane: LaneId) -> Option<u32> {
        let rus = &self.rus;
        let worst = self.free[lane.at()]
            .iter()
            .map(|Reverse((_, ru))| *ru)
            .max_by_key(|&ru| (rus[ru as usize].erases, Reverse(ru)))?;
        self.free[lane.at()].retain(|Reverse((_, ru))| *ru != worst);
        Some(worst)
    }

    /// Ends the filling of an open unit: it becomes a candidate for collection.
    pub fn close(&mut self, ru: RuId, tick: u64) {
        let pool = self.pool_of(ru);
        let unit = &mut self.rus[ru.at()];
        assert!(unit.state == RuState::Open, "closed unit {ru:?} was not open: {unit:?}");
        unit.state = RuState::Closed;
        unit.last_tick = tick;
        unit.place = self.pools[pool].closed.len() as u32;
        self.pools[pool].closed.push(ru.0);
        self.enter_orders(pool, ru);
    }

    /// `ru` has been closed: it takes its place in the orders that are kept.
    fn enter_orders(&mut self, pool: usize, ru: RuId) {
        if let Some(by_valid) = &mut self.by_valid
            && self.by_part.is_none()
        {
            let table = Table {
                rus: &self.rus,
                valid: &self.valid,
            };
            by_valid.add(pool, ru.0, table);
        }
        if let Some(by_age) = &mut self.by_age {
            by_age.add(pool, ru.0);
            if let Some(by_part) = &mut self.by_part {
                by_part.close(pool, ru.0, by_age.closed_at(ru.0));
            }
        }
    }

    /// Whether the order by valid counts knows the closed unit `ru`.
    #[inline]
    fn is_ranked(&self, ru: RuId) -> bool {
        self.by_part.as_ref().is_none_or(|by_part| by_part.is_in_last(ru.0))
    }

    /// One valid unit of `ru` has been superseded or given up.
    #[inline(always)]
    pub fn invalidate(&mut self, ru: RuId) {
        let valid = &mut self.valid[ru.at()];
        debug_assert!(*valid > 0, "{ru:?} has nothing valid to lose");
        *valid -= 1;
        if *valid < self.relisted_below {
            self.relist(ru);
        }
    }

    /// The valid count of `ru` has fallen by one.
    #[inline(never)]
    fn relist(&mut self, ru: RuId) {
        if self.rus[ru.at()].state != RuState::Closed || !self.is_ranked(ru) {
            return;
        }
        let (pool, valid) = (self.pool_of(ru), self.valid(ru));
        if let Some(by_valid) = &mut self.by_valid {
            by_valid.remove(pool, ru.0, valid + 1);
            let table = Table {
                rus: &self.rus,
                valid: &self.valid,
            };
            by_valid.add(pool, ru.0, table);
        }
    }

    /// Removes a chosen victim from the closed units.
    pub fn begin_collection(&mut self, ru: RuId) {
        let (pool, is_ranked) = (self.pool_of(ru), self.is_ranked(ru));
        if let Some(by_valid) = &mut self.by_valid
            && is_ranked
        {
            by_valid.remove(pool, ru.0, self.valid[ru.at()]);
        }
        if let Some(by_part) = &mut self.by_part {
            by_part.remove(pool, ru.0);
        }
        let place = self.rus[ru.at()].place as usize;
        let closed = &mut self.pools[pool].closed;
        assert!(
            closed.get(place) == Some(&ru.0),
            "victim {ru:?} is not closed: {:?}",
            self.rus[ru.at()]
        );
        closed.swap_remove(place);
        if let Some(&moved) = closed.get(place) {
            self.rus[moved as usize].place = place as u32;
        }
        self.rus[ru.at()].state = RuState::Collecting;
        if let Some(by_age) = &mut self.by_age {
            by_age.drop_stale(pool, self.pools[pool].closed.len(), &self.rus);
        }
    }

    /// The unit has been erased; it becomes free, or is retired when it has reached `limit` erases.
    pub fn erased(&mut self, ru: RuId, limit: Option<u32>) -> RuState {
        let pool = self.pool_of(ru);
        let valid = self.valid(ru);
        assert!(valid == 0, "erasing {ru:?} with {valid} valid units");
        let unit = &mut self.rus[ru.at()];
        assert!(
            unit.state == RuState::Collecting,
            "erasing {ru:?} that is not being collected: {unit:?}"
        );
        unit.erases += 1;
        self.total_erases += 1;
        if limit.is_some_and(|limit| unit.erases >= limit) {
            unit.state = RuState::Bad;
            self.pools[pool].good -= 1;
        } else {
            unit.state = RuState::Free;
            self.add_free(ru);
            self.pools[pool].free += 1;
        }
        self.rus[ru.at()].state
    }

    /// Adds a free unit to its lane, in the order of the wear policy.
    fn add_free(&mut self, ru: RuId) {
        let key = if self.least_worn_first {
            self.rus[ru.at()].erases
        } else {
            self.free_sequence
        };
        self.free_sequence = self.free_sequence.wrapping_add(1);
        self.free[(ru.0 / self.blocks_per_lane) as usize].push(Reverse((key, ru.0)));
    }

    /// The closed units of `pool` as a victim policy sees them.
    pub fn closed(&mut self, pool: usize, units_per_ru: u32) -> Closed<'_> {
        Closed {
            units: self,
            pool,
            units_per_ru,
        }
    }
}
