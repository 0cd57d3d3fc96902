//! Reclaim units: their states, valid counts, wear, and the sets in which the mechanism keeps them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ftlab_core::{LaneId, Layout, RuId};

const NONE: u32 = u32::MAX;

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

/// One reclaim unit. 32 bytes, aligned, so that an invalidation touches one cache line of it.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Ru {
    /// Live units.
    pub valid: u32,
    pub erases: u32,
    /// Tick of its last program.
    pub last_tick: u64,
    next: u32,
    prev: u32,
    /// Place in its pool's list of closed units while closed; index of its frontier while open.
    pub place: u32,
    pub state: RuState,
    /// The frontier that filled it.
    pub frontier: u8,
}

/// Which orders of the closed units a victim policy asks for; the mechanism keeps no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// By valid count, for `fewest_valid`.
    pub by_valid: bool,
    /// By time of closing, for `oldest`.
    pub by_age: bool,
}

/// Closed units by valid count: one list per count, and for the count in use a heap that settles ties.
#[derive(Clone, Debug, Default)]
struct Buckets {
    head: Vec<u32>,
    length: Vec<u32>,
    lowest: usize,
    tie_level: usize,
    /// (erases, unit) of the units that have entered `tie_level`; an entry is stale once its unit has left.
    ties: BinaryHeap<Reverse<(u32, u32)>>,
}

/// Free units and victims that belong together.
#[derive(Clone, Debug)]
pub struct Pool {
    pub lanes: Vec<LaneId>,
    pub free: u32,
    /// Units of the pool that are not bad.
    pub good: u32,
    closed: Vec<u32>,
    buckets: Buckets,
    /// (unit, its sequence number at closing), oldest first; an entry is stale once its unit was collected.
    ages: VecDeque<(u32, u32)>,
}

/// The table of all reclaim units.
#[derive(Clone, Debug)]
pub struct Units {
    pub rus: Vec<Ru>,
    pub pools: Vec<Pool>,
    /// Pool of each lane.
    pool_of_lane: Vec<u32>,
    /// Free units of each lane, ordered by the wear policy's key.
    free: Vec<BinaryHeap<Reverse<(u32, u32)>>>,
    blocks_per_lane: u32,
    orders: Orders,
    /// Free units are taken least worn first; otherwise in the order in which they were erased.
    least_worn_first: bool,
    free_sequence: u32,
    close_sequence: u32,
    /// Sequence number at closing, per unit; empty unless ages are kept.
    closed_at: Vec<u32>,
    pub total_erases: u64,
}

impl Units {
    pub fn new(layout: &Layout, pools: &[Vec<LaneId>], orders: Orders, least_worn_first: bool) -> Self {
        let blank = Ru {
            valid: 0,
            erases: 0,
            last_tick: 0,
            next: NONE,
            prev: NONE,
            place: 0,
            state: RuState::Free,
            frontier: 0,
        };
        let mut pool_of_lane = vec![0; layout.lanes as usize];
        for (number, lanes) in pools.iter().enumerate() {
            lanes.iter().for_each(|lane| pool_of_lane[lane.at()] = number as u32);
        }
        let blocks = layout.geometry.blocks;
        let buckets = Buckets {
            head: vec![
                NONE;
                if orders.by_valid {
                    layout.slots_per_ru as usize + 1
                } else {
                    0
                }
            ],
            length: vec![
                0;
                if orders.by_valid {
                    layout.slots_per_ru as usize + 1
                } else {
                    0
                }
            ],
            lowest: layout.slots_per_ru as usize,
            tie_level: usize::MAX,
            ties: BinaryHeap::new(),
        };
        let pools = pools
            .iter()
            .map(|lanes| Pool {
                lanes: lanes.clone(),
                free: blocks * lanes.len() as u32,
                good: blocks * lanes.len() as u32,
                closed: Vec::new(),
                buckets: buckets.clone(),
                ages: VecDeque::new(),
            })
            .collect();
        let free = (0..layout.lanes)
            .map(|lane| (0..blocks).map(|block| Reverse((0, lane * blocks + block))).collect())
            .collect();
        Units {
            rus: vec![blank; layout.rus as usize],
            pools,
            pool_of_lane,
            free,
            blocks_per_lane: blocks,
            orders,
            least_worn_first,
            free_sequence: 1,
            close_sequence: 0,
            closed_at: vec![0; if orders.by_age { layout.rus as usize } else { 0 }],
            total_erases: 0,
        }
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
    pub fn open(&mut self, lane: LaneId, frontier: u8, place: u32, most_worn: bool) -> Option<RuId> {
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
            unit.state == RuState::Free && unit.valid == 0,
            "opened unit {ru:?} is not free: {unit:?}"
        );
        (unit.state, unit.frontier, unit.place) = (RuState::Open, frontier, place);
        Some(ru)
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
        if self.orders.by_valid {
            self.link(pool, ru.0);
        }
        if self.orders.by_age {
            self.close_sequence = self.close_sequence.wrapping_add(1);
            self.closed_at[ru.at()] = self.close_sequence;
            self.pools[pool].ages.push_back((ru.0, self.close_sequence));
        }
    }

    /// One live unit of `ru` died.
    #[inline(always)]
    pub fn lose_one(&mut self, ru: RuId) {
        let unit = &mut self.rus[ru.at()];
        debug_assert!(unit.valid > 0, "{ru:?} has nothing valid to lose");
        if self.orders.by_valid && unit.state == RuState::Closed {
            let pool = self.pool_of(ru);
            self.unlink(pool, ru.0);
            self.rus[ru.at()].valid -= 1;
            self.link(pool, ru.0);
        } else {
            unit.valid -= 1;
        }
    }

    /// Removes a chosen victim from the closed units.
    pub fn begin_collection(&mut self, ru: RuId) {
        let pool = self.pool_of(ru);
        if self.orders.by_valid {
            self.unlink(pool, ru.0);
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
        if self.orders.by_age {
            self.drop_stale_ages(pool);
        }
    }

    /// The unit has been erased; it becomes free, or is retired when it has reached `limit` erases.
    pub fn erased(&mut self, ru: RuId, limit: Option<u32>) -> RuState {
        let pool = self.pool_of(ru);
        let unit = &mut self.rus[ru.at()];
        assert!(unit.valid == 0, "erasing {ru:?} with {} live units", unit.valid);
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
            let key = if self.least_worn_first {
                unit.erases
            } else {
                self.free_sequence
            };
            self.free_sequence = self.free_sequence.wrapping_add(1);
            self.free[(ru.0 / self.blocks_per_lane) as usize].push(Reverse((key, ru.0)));
            self.pools[pool].free += 1;
        }
        self.rus[ru.at()].state
    }

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
            pool.ages.clear();
            pool.buckets.head.fill(NONE);
            pool.buckets.length.fill(0);
            pool.buckets.ties.clear();
            pool.buckets.tie_level = usize::MAX;
        }
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
            RuState::Closed => self.closed_at.get(ru as usize).copied().unwrap_or(0),
            _ => u32::MAX,
        });
        for ru in order.into_iter().map(RuId) {
            let pool = self.pool_of(ru);
            let unit = &mut self.rus[ru.at()];
            unit.valid = valid[ru.at()];
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
        for pool in &self.pools {
            orders.push(pool.closed.clone());
            let live = |(ru, sequence): &&(u32, u32)| {
                self.rus[*ru as usize].state == RuState::Closed && self.closed_at[*ru as usize] == *sequence
            };
            orders.push(pool.ages.iter().filter(live).map(|(ru, _)| *ru).collect());
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
        frontier: u8,
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
            valid,
            erases,
            last_tick,
            next: NONE,
            prev: NONE,
            place: 0,
            state,
            frontier,
        };
        Ok(())
    }

    /// Rebuilds lists and free sets from units already set and the orders of [`Units::orders`].
    pub(crate) fn restore(&mut self, orders: &[Vec<u32>]) -> Result<(), String> {
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
            pool.ages.clear();
            pool.buckets.head.fill(NONE);
            pool.buckets.length.fill(0);
            pool.buckets.tie_level = usize::MAX;
            for (place, &ru) in lists[0].iter().enumerate() {
                if self.rus[ru as usize].state != RuState::Closed || self.pool_of(RuId(ru)) != number {
                    return Err(format!("unit {ru} is listed as closed in pool {number}, but is not"));
                }
                self.rus[ru as usize].place = place as u32;
                if self.orders.by_valid {
                    if self.rus[ru as usize].valid as usize >= self.pools[number].buckets.head.len() {
                        return Err(format!("unit {ru} has {} valid units", self.rus[ru as usize].valid));
                    }
                    self.link(number, ru);
                }
            }
            // A state saved under a policy that keeps no ages: the order of listing is the best known.
            let ages = if lists[1].is_empty() { &lists[0] } else { &lists[1] };
            for &ru in ages.iter().filter(|_| self.orders.by_age) {
                self.close_sequence += 1;
                self.closed_at[ru as usize] = self.close_sequence;
                self.pools[number].ages.push_back((ru, self.close_sequence));
            }
        }
        for (lane, list) in of_lanes.iter().enumerate() {
            self.free[lane].clear();
            let pool = self.pool_of_lane[lane] as usize;
            for &ru in list {
                if self.rus[ru as usize].state != RuState::Free || (ru / self.blocks_per_lane) as usize != lane {
                    return Err(format!("unit {ru} is listed as free in lane {lane}, but is not"));
                }
                let key = if self.least_worn_first {
                    self.rus[ru as usize].erases
                } else {
                    self.free_sequence
                };
                self.free_sequence = self.free_sequence.wrapping_add(1);
                self.free[lane].push(Reverse((key, ru)));
                self.pools[pool].free += 1;
            }
        }
        Ok(())
    }

    /// The closed units of `pool` as a victim policy sees them.
    pub fn closed(&mut self, pool: usize, units_per_ru: u32) -> Closed<'_> {
        Closed {
            units: self,
            pool,
            units_per_ru,
        }
    }

    #[inline]
    fn link(&mut self, pool: usize, ru: u32) {
        let buckets = &mut self.pools[pool].buckets;
        let unit = &mut self.rus[ru as usize];
        let level = unit.valid as usize;
        let old_head = std::mem::replace(&mut buckets.head[level], ru);
        (unit.prev, unit.next) = (NONE, old_head);
        let erases = unit.erases;
        if old_head != NONE {
            self.rus[old_head as usize].prev = ru;
        }
        buckets.length[level] += 1;
        buckets.lowest = buckets.lowest.min(level);
        if level == buckets.tie_level {
            buckets.ties.push(Reverse((erases, ru)));
        }
    }

    #[inline]
    fn unlink(&mut self, pool: usize, ru: u32) {
        let Ru { prev, next, valid, .. } = self.rus[ru as usize];
        let buckets = &mut self.pools[pool].buckets;
        match prev {
            NONE => buckets.head[valid as usize] = next,
            prev => self.rus[prev as usize].next = next,
        }
        if next != NONE {
            self.rus[next as usize].prev = prev;
        }
        buckets.length[valid as usize] -= 1;
    }

    fn fewest_valid(&mut self, pool: usize) -> Option<RuId> {
        const SCAN: u32 = 16;
        let buckets = &mut self.pools[pool].buckets;
        while buckets.lowest < buckets.head.len() && buckets.head[buckets.lowest] == NONE {
            buckets.lowest += 1;
        }
        let level = buckets.lowest;
        let mut member = *buckets.head.get(level)?;
        let length = buckets.length[level];
        if length <= SCAN {
            let mut best = (u32::MAX, u32::MAX);
            while member != NONE {
                let unit = &self.rus[member as usize];
                best = best.min((unit.erases, member));
                member = unit.next;
            }
            return Some(RuId(best.1));
        }
        if buckets.tie_level != level || buckets.ties.len() as u32 > 4 * length + 64 {
            buckets.tie_level = level;
            buckets.ties.clear();
            while member != NONE {
                let unit = &self.rus[member as usize];
                buckets.ties.push(Reverse((unit.erases, member)));
                member = unit.next;
            }
        }
        while let Some(&Reverse((erases, ru))) = buckets.ties.peek() {
            let unit = &self.rus[ru as usize];
            if unit.state == RuState::Closed && unit.valid as usize == level && unit.erases == erases {
                return Some(RuId(ru));
            }
            buckets.ties.pop();
        }
        unreachable!("{length} units have {level} valid, but the tie heap knows none")
    }

    fn drop_stale_ages(&mut self, pool: usize) {
        let (rus, closed_at) = (&self.rus, &self.closed_at);
        let live = |&(ru, sequence): &(u32, u32)| {
            rus[ru as usize].state == RuState::Closed && closed_at[ru as usize] == sequence
        };
        let Pool { ages, closed, .. } = &mut self.pools[pool];
        while ages.front().is_some_and(|entry| !live(entry)) {
            ages.pop_front();
        }
        if ages.len() > 2 * closed.len() + 64 {
            ages.retain(live);
        }
    }
}

/// The closed units of one pool: a read-only view for victim policies.
pub struct Closed<'a> {
    units: &'a mut Units,
    pool: usize,
    units_per_ru: u32,
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
    pub fn ru(&self, ru: RuId) -> &Ru {
        &self.units.rus[ru.at()]
    }

    /// Mapping units of a whole reclaim unit: the denominator of `u`.
    pub fn units_per_ru(&self) -> u32 {
        self.units_per_ru
    }

    /// The unit with the fewest valid; ties: fewest erases, then lowest id. Needs [`Orders::by_valid`].
    pub fn fewest_valid(&mut self) -> Option<RuId> {
        self.units.fewest_valid(self.pool)
    }

    /// Units in the order in which they were closed, oldest first. Needs [`Orders::by_age`].
    pub fn oldest_first(&self) -> impl Iterator<Item = RuId> + '_ {
        let units = &*self.units;
        units.pools[self.pool]
            .ages
            .iter()
            .filter(|(ru, sequence)| {
                units.rus[*ru as usize].state == RuState::Closed && units.closed_at[*ru as usize] == *sequence
            })
            .map(|(ru, _)| RuId(*ru))
    }

    /// All closed units, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = RuId> + '_ {
        self.units.pools[self.pool].closed.iter().map(|&ru| RuId(ru))
    }
}
