//! Closed units in the order of their valid counts, for `fewest_valid`.
//!
//! Only units near the lowest count are kept in lists, as no other can be chosen soon: an invalidation elsewhere changes a
//! count and nothing else. When the lists are empty the bound is raised, and when they hold most units it is lowered.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

use ftlab_core::RuId;

use super::{Ru, RuState};

/// A list of so few units is searched for the least worn one; a longer one gets a heap.
const SCAN: u32 = 16;
/// After a raise at least one closed unit in so many is listed, so that looking at all of them is paid by their collections;
/// and no fewer than a handful.
const LISTED: usize = 64;
const FEWEST_LISTED: usize = 32;

/// A unit in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Member(NonZeroU32);

impl Member {
    #[inline]
    fn new(ru: u32) -> Self {
        Member(NonZeroU32::MIN.saturating_add(ru))
    }

    #[inline]
    fn ru(self) -> u32 {
        self.0.get() - 1
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Neighbours {
    before: Option<Member>,
    after: Option<Member>,
}

/// The listed units of a pool: a list per valid count, and for the count in use a heap that settles ties.
#[derive(Clone, Debug)]
struct Lists {
    first: Vec<Option<Member>>,
    length: Vec<u32>,
    /// Units with fewer valid ones are listed.
    below: u32,
    listed: u32,
    /// Listed units when the bound was set.
    listed_at_first: u32,
    /// No listed unit has fewer valid ones.
    lowest: usize,
    tie_level: Option<usize>,
    /// (erases, unit) of the units that have entered `tie_level`; an entry is stale once its unit has left.
    ties: BinaryHeap<Reverse<(u32, u32)>>,
}

/// What the order reads of the units.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub rus: &'a [Ru],
    pub valid: &'a [u32],
}

#[derive(Clone, Debug)]
pub(super) struct ByValid {
    neighbours: Vec<Neighbours>,
    pools: Vec<Lists>,
    /// Valid counts of a pool, when its bound is raised.
    counts: Vec<u32>,
}

impl ByValid {
    pub fn new(rus: u32, pools: usize, slots_per_ru: u32) -> Self {
        let levels = slots_per_ru as usize + 1;
        let lists = Lists {
            first: vec![None; levels],
            length: vec![0; levels],
            below: 0,
            listed: 0,
            listed_at_first: 0,
            lowest: levels,
            tie_level: None,
            ties: BinaryHeap::new(),
        };
        ByValid {
            neighbours: vec![Neighbours::default(); rus as usize],
            pools: vec![lists; pools],
            counts: Vec::new(),
        }
    }

    /// The largest valid count that can be kept in order.
    pub fn most(&self) -> u32 {
        self.pools.first().map_or(0, |lists| lists.first.len() as u32 - 1)
    }

    /// Forgets every unit.
    pub fn clear(&mut self) {
        (0..self.pools.len()).for_each(|pool| self.clear_pool(pool));
    }

    /// Forgets the units of `pool`.
    pub fn clear_pool(&mut self, pool: usize) {
        let lists = &mut self.pools[pool];
        lists.lower(0);
        lists.ties.clear();
        lists.tie_level = None;
    }

    /// A unit of any pool whose valid count falls below this may change its list.
    pub fn bound(&self) -> u32 {
        self.pools.iter().map(|lists| lists.below).max().unwrap_or(0)
    }

    /// Adds a closed unit, if it has few valid ones.
    #[inline]
    pub fn add(&mut self, pool: usize, ru: u32, table: Table<'_>) {
        let level = table.valid[ru as usize];
        let lists = &mut self.pools[pool];
        if level >= lists.below {
            return;
        }
        let level = level as usize;
        let after = lists.first[level].replace(Member::new(ru));
        self.neighbours[ru as usize] = Neighbours { before: None, after };
        if let Some(after) = after {
            self.neighbours[after.ru() as usize].before = Some(Member::new(ru));
        }
        lists.length[level] += 1;
        lists.listed += 1;
        lists.lowest = lists.lowest.min(level);
        if Some(level) == lists.tie_level {
            lists.ties.push(Reverse((table.rus[ru as usize].erases, ru)));
        }
    }

    /// Removes a unit that has `level` valid ones, if it is listed.
    #[inline]
    pub fn remove(&mut self, pool: usize, ru: u32, level: u32) {
        let lists = &mut self.pools[pool];
        if level >= lists.below {
            return;
        }
        let Neighbours { before, after } = self.neighbours[ru as usize];
        match before {
            None => lists.first[level as usize] = after,
            Some(before) => self.neighbours[before.ru() as usize].after = after,
        }
        if let Some(after) = after {
            self.neighbours[after.ru() as usize].before = before;
        }
        lists.length[level as usize] -= 1;
        lists.listed -= 1;
    }

    /// The unit of `closed`, all those of `pool`, with the fewest valid ones; ties: fewest erases, then lowest id.
    pub fn fewest_valid(&mut self, pool: usize, closed: &[u32], table: Table<'_>) -> Option<RuId> {
        self.fewest_valid_of(pool, closed, closed.len(), |_| true, table)
    }

    /// The same of the `count` units of `closed` that `is_ranked` knows: no other has been added.
    pub fn fewest_valid_of(
        &mut self,
        pool: usize,
        closed: &[u32],
        count: usize,
        is_ranked: impl Fn(u32) -> bool,
        table: Table<'_>,
    ) -> Option<RuId> {
        if self.pools[pool].listed == 0 {
            self.raise(pool, closed, count, is_ranked, table);
        } else {
            self.pools[pool].lower_if_crowded(count);
        }
        let lists = &mut self.pools[pool];
        lists.lowest += lists.first[lists.lowest..].iter().position(Option::is_some)?;
        let level = lists.lowest;
        let length = lists.length[level];
        let neighbours = &self.neighbours;
        let members = std::iter::successors(lists.first[level], |member| neighbours[member.ru() as usize].after);
        let keys = members.map(|member| (table.rus[member.ru() as usize].erases, member.ru()));
        if length <= SCAN {
            return keys.min().map(|(_, ru)| RuId(ru));
        }
        if lists.tie_level != Some(level) || lists.ties.len() as u32 > 4 * length + 64 {
            lists.tie_level = Some(level);
            lists.ties.clear();
            lists.ties.extend(keys.map(Reverse));
        }
        while let Some(&Reverse((erases, ru))) = lists.ties.peek() {
            let unit = &table.rus[ru as usize];
            if unit.state == RuState::Closed && table.valid[ru as usize] as usize == level && unit.erases == erases {
                return Some(RuId(ru));
            }
            lists.ties.pop();
        }
        unreachable!("{length} units have {level} valid, but the tie heap knows none")
    }

    /// Lists the units with the lowest counts, as none is listed.
    #[cold]
    fn raise(&mut self, pool: usize, closed: &[u32], count: usize, is_ranked: impl Fn(u32) -> bool, table: Table<'_>) {
        let wanted = count.min(FEWEST_LISTED.max(count / LISTED));
        let Some(last) = wanted.checked_sub(1) else { return };
        let ranked = || closed.iter().copied().filter(|&ru| is_ranked(ru));
        self.counts.clear();
        self.counts.extend(ranked().map(|ru| table.valid[ru as usize]));
        let (_, &mut most, _) = self.counts.select_nth_unstable(last);
        let lists = &mut self.pools[pool];
        (lists.below, lists.lowest) = (most + 1, lists.first.len());
        ranked().for_each(|ru| self.add(pool, ru, table));
        self.pools[pool].listed_at_first = self.pools[pool].listed;
    }
}

impl Lists {
    /// Lowers the bound when it lists most of the `closed` units, unless their counts are all alike.
    #[inline]
    fn lower_if_crowded(&mut self, closed: usize) {
        if self.listed as usize <= closed / 2 + FEWEST_LISTED || self.listed <= 2 * self.listed_at_first {
            return;
        }
        let wanted = FEWEST_LISTED.max(closed / LISTED) as u32;
        let mut kept = 0;
        let enough = self.length[self.lowest..].iter().position(|&length| {
            kept += length;
            kept >= wanted
        });
        if let Some(levels) = enough {
            self.lower((self.lowest + levels) as u32 + 1);
        }
        self.listed_at_first = self.listed;
    }

    /// Only units with fewer valid ones than `below` stay listed.
    fn lower(&mut self, below: u32) {
        for level in below..self.below {
            self.first[level as usize] = None;
            self.listed -= std::mem::take(&mut self.length[level as usize]);
        }
        self.below = self.below.min(below);
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::geometry::PlaneOrder;
    use ftlab_core::{Geometry, LaneId, Layout, ReclaimKind, Stream};

    use super::super::{Orders, Units};
    use super::*;

    const BLOCKS: u32 = 1500;
    const PAGES: u32 = 40;

    fn units() -> Units {
        let geometry = Geometry {
            channels: 2,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks: BLOCKS,
            pages: PAGES,
            page_bytes: 4096,
            unit_bytes: 4096,
            oob_bytes: 0,
        };
        let layout = Layout::new(geometry, ReclaimKind::Block, PlaneOrder::parse("CWDP").unwrap()).unwrap();
        let orders = Orders {
            by_valid: true,
            ..Orders::default()
        };
        Units::new(&layout, &[vec![LaneId(0)], vec![LaneId(1)]], orders, true)
    }

    fn fill(units: &mut Units, lane: u32, valid: u32) {
        let ru = units.open(LaneId(lane), 0, 0, false).unwrap();
        units.add_valid(ru, valid);
        units.close(ru, 0);
    }

    /// The choice, and that it is the least by valid count, erases and id among all closed units.
    fn choose(units: &mut Units, pool: usize) -> Option<RuId> {
        let mut closed = units.closed(pool, PAGES);
        let least = closed
            .iter()
            .min_by_key(|&ru| (closed.ru(ru).valid, closed.ru(ru).erases, ru));
        assert_eq!(closed.fewest_valid(), least);
        least
    }

    fn collect(units: &mut Units, ru: RuId) {
        units.begin_collection(ru);
        units.remove_valid(ru, units.valid(ru));
        units.erased(ru, None);
    }

    fn listed(units: &Units, pool: usize) -> u32 {
        units.by_valid.as_ref().unwrap().pools[pool].listed
    }

    /// Invalidations fall on `hot` of the units at random; every so many a victim is collected and a unit filled.
    fn churn(units: &mut Units, hot: u32, random: &mut Stream) {
        for step in 0..60_000u32 {
            let pool = step % 2;
            let ru = RuId(pool * BLOCKS + random.below(hot.into()) as u32);
            if units.rus[ru.at()].state == RuState::Closed && units.valid(ru) > 0 {
                units.invalidate(ru);
            }
            if step % 37 < 2
                && let Some(victim) = choose(units, pool as usize)
            {
                collect(units, victim);
                fill(units, pool, PAGES - random.below(3) as u32);
            }
        }
    }

    #[test]
    fn the_choice_is_that_of_a_search_whatever_the_counts_do() {
        let mut random = Stream::new(3, "test");
        let mut units = units();
        for _ in 0..BLOCKS - 1 {
            fill(&mut units, 0, PAGES);
            fill(&mut units, 1, PAGES);
        }
        for hot in [BLOCKS, 40, BLOCKS / 3, BLOCKS] {
            churn(&mut units, hot, &mut random);
        }
        while let Some(victim) = choose(&mut units, 0) {
            collect(&mut units, victim);
        }
        assert_eq!(listed(&units, 0), 0);
    }

    /// 1000 units of 20 to 39 valid, 50 of each: the 32 emptiest reach to the first count, so its 50 are listed. When 900
    /// others have fallen below, most units are listed, and the bound comes down again.
    #[test]
    fn few_units_are_listed_until_most_are_near_the_lowest() {
        let mut units = units();
        (0..1000).for_each(|number| fill(&mut units, 0, 20 + number / 50));
        assert_eq!(choose(&mut units, 0), Some(RuId(0)));
        assert_eq!(listed(&units, 0), 50);
        for ru in (100..1000).map(RuId) {
            while units.valid(ru) > 20 - ru.0 / 100 {
                units.invalidate(ru);
            }
        }
        assert_eq!(listed(&units, 0), 950);
        assert_eq!(choose(&mut units, 0), Some(RuId(900)));
        assert_eq!(listed(&units, 0), 100);
        assert_eq!(choose(&mut units, 0), Some(RuId(900)));
    }
}
