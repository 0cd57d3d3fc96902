//! Least recent use of cached entries, of one or two segments, found out late: a use gives the entry a higher number, and only who
//! asks for the least recent has the entries sorted, once for all uses since the last time.

use super::allocated;
use super::slots::Slots;

/// Bits beside the number of the last use.
const SEGMENT: u32 = 1;
pub const DIRTY: u32 = 2;
/// A mark for the policy.
pub const MARKED: u32 = 4;
const BITS: u32 = 3;

/// The entries, each in segment 0 or 1.
#[derive(Clone, Debug)]
pub struct Lru {
    slots: Slots,
    /// Number of the last use.
    now: u32,
    segments: [Segment; 2],
}

#[derive(Clone, Debug, Default)]
struct Segment {
    len: u32,
    /// (number of the use, slot) of its least recent entries, lowest first, as they once were: who has another number now was used
    /// since, or left.
    sorted: Vec<u64>,
    /// All before this place are outdated.
    begin: usize,
}

/// A number that no use has.
const OUTDATED: u64 = (u32::MAX as u64) << 32;

/// Which part of the entries are sorted at once, if they are more than a few.
const PART: u32 = 4;
const FEW: u32 = 64;
/// How far ahead of the search entries are brought into the processor's cache.
const AHEAD: usize = 8;

impl Lru {
    /// Room for `capacity` entries.
    pub fn new(capacity: u32) -> Self {
        Lru {
            slots: Slots::new(capacity),
            now: 0,
            segments: Default::default(),
        }
    }

    pub fn len(&self) -> u32 {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries of a segment.
    pub fn len_of(&self, segment: usize) -> u32 {
        self.segments[segment].len
    }

    /// One more than the highest number of an entry.
    pub fn end(&self) -> u32 {
        self.slots.end()
    }

    #[inline(always)]
    pub fn find(&self, key: u32) -> Option<u32> {
        self.slots.find(key)
    }

    #[inline]
    pub fn find_near(&self, key: u32, hint: u32) -> Option<u32> {
        self.slots.find_near(key, hint)
    }

    #[inline]
    pub fn prefetch(&self, key: u32) {
        self.slots.prefetch(key);
    }

    #[inline]
    pub fn key(&self, entry: u32) -> u32 {
        self.slots.key(entry)
    }

    #[inline]
    pub fn segment(&self, entry: u32) -> usize {
        (self.slots.get(entry) & SEGMENT) as usize
    }

    /// Whether the entry has the mark.
    #[inline]
    pub fn is(&self, entry: u32, mark: u32) -> bool {
        self.slots.get(entry) & mark != 0
    }

    /// Gives the entry the mark, or takes it; returns whether it had it.
    #[inline]
    pub fn set(&mut self, entry: u32, mark: u32, has: bool) -> bool {
        let word = self.slots.get_mut(entry);
        let had = *word & mark != 0;
        *word = *word & !mark | if has { mark } else { 0 };
        had
    }

    /// A new entry of segment 0, used now.
    pub fn insert(&mut self, key: u32) -> u32 {
        let now = self.tick();
        self.segments[0].len += 1;
        self.slots.insert(key, now << BITS)
    }

    /// The entry is used.
    #[inline]
    pub fn touch(&mut self, entry: u32) {
        let now = self.tick();
        let word = self.slots.get_mut(entry);
        *word = now << BITS | *word & !(u32::MAX << BITS);
    }

    /// The same, and it goes to the other segment.
    pub fn change_segment(&mut self, entry: u32) {
        self.touch(entry);
        let word = self.slots.get_mut(entry);
        let from = (*word & SEGMENT) as usize;
        *word ^= SEGMENT;
        self.segments[from].len -= 1;
        self.segments[1 - from].len += 1;
    }

    pub fn remove(&mut self, entry: u32) {
        let segment = self.segment(entry);
        self.segments[segment].len -= 1;
        self.slots.remove(entry);
    }

    /// The least recent entry of a segment.
    #[inline]
    pub fn oldest(&mut self, segment: usize) -> Option<u32> {
        if self.segments[segment].len == 0 {
            return None;
        }
        loop {
            let begin = self.segments[segment].begin;
            if let Some((at, entry)) = self.at_or_behind(segment, begin) {
                self.segments[segment].begin = at;
                return Some(entry);
            }
            self.sort(segment, 1);
        }
    }

    /// The first entry at or behind a place in the order of a segment, as far as it was sorted last, and where it stands there.
    #[inline]
    pub fn at_or_behind(&self, segment: usize, place: usize) -> Option<(usize, u32)> {
        let sorted = &self.segments[segment].sorted;
        for (at, &pair) in sorted.iter().enumerate().skip(place) {
            if let Some(&ahead) = sorted.get(at + AHEAD) {
                self.slots.prefetch_slot(ahead as u32);
            }
            let entry = pair as u32;
            if self.slots.get(entry) >> BITS == (pair >> 32) as u32 {
                return Some((at, entry));
            }
        }
        None
    }

    /// Where the order of a segment begins; all entries before have left or have been used.
    pub fn begin(&self, segment: usize) -> usize {
        self.segments[segment].begin
    }

    /// Puts the least recent entries of a segment, a part of all and at least so many, in their order as it is now.
    #[cold]
    pub fn sort(&mut self, segment: usize, least: u32) {
        let Segment { len, sorted, begin } = &mut self.segments[segment];
        sorted.clear();
        sorted.reserve_exact(*len as usize);
        self.slots.for_each(|slot, word| {
            if word & SEGMENT == segment as u32 {
                sorted.push(u64::from(word >> BITS) << 32 | u64::from(slot));
            }
        });
        // The most recent ones will probably be used again before their turn comes.
        let wanted = least.max(*len / PART).max(FEW) as usize;
        if wanted < sorted.len() {
            sorted.select_nth_unstable(wanted);
            sorted.truncate(wanted);
        }
        sorted.sort_unstable();
        *begin = 0;
    }

    /// The number of a use that begins. Before they run out, all entries get new ones in the same order.
    #[inline]
    fn tick(&mut self) -> u32 {
        if self.now == u32::MAX >> BITS {
            self.renumber();
        }
        self.now += 1;
        self.now
    }

    #[cold]
    fn renumber(&mut self) {
        let mut all = Vec::with_capacity(self.len() as usize);
        self.slots.for_each(|slot, word| all.push((word >> BITS, slot)));
        all.sort_unstable();
        let outdated = |slots: &Slots, pair: u64| slots.get(pair as u32) >> BITS != (pair >> 32) as u32;
        for pair in self.segments.iter_mut().flat_map(|segment| &mut segment.sorted) {
            if outdated(&self.slots, *pair) {
                *pair |= OUTDATED;
            }
        }
        self.now = 0;
        for (_, slot) in all {
            self.now += 1;
            let word = self.slots.get_mut(slot);
            *word = self.now << BITS | *word & !(u32::MAX << BITS);
        }
        // Places in the order stay what they were.
        for pair in self.segments.iter_mut().flat_map(|segment| &mut segment.sorted) {
            if *pair & OUTDATED != OUTDATED {
                let slot = *pair as u32;
                *pair = u64::from(self.slots.get(slot) >> BITS) << 32 | u64::from(slot);
            }
        }
    }

    /// Bytes of the simulator's memory.
    pub fn bytes(&self) -> u64 {
        self.slots.bytes() + self.segments.iter().map(|s| allocated(&s.sorted)).sum::<u64>()
    }

    pub fn clear(&mut self) {
        self.slots.clear();
        self.segments = Default::default();
        self.now = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    /// Uses, changes of segment, removals from anywhere, against two lists; the numbers run out every few steps or never.
    #[test]
    fn the_oldest_is_that_of_a_list() {
        for left in [40, u32::MAX >> BITS] {
            let mut lru = Lru::new(20);
            let mut lists: [Vec<u32>; 2] = Default::default();
            let mut random = Stream::new(7, "lru");
            for _ in 0..20_000 {
                lru.now = lru.now.max((u32::MAX >> BITS) - left);
                let key = random.below(30) as u32;
                let step = random.below(6);
                match lru.find(key) {
                    None if lru.len() < 20 => {
                        lru.insert(key);
                        lists[0].push(key);
                    }
                    None => {}
                    Some(entry) => {
                        let of = lru.segment(entry);
                        lists[of].retain(|&k| k != key);
                        match step {
                            0 => lru.remove(entry),
                            1 => {
                                lru.change_segment(entry);
                                lists[1 - of].push(key);
                            }
                            _ => {
                                lru.touch(entry);
                                lists[of].push(key);
                            }
                        }
                    }
                }
                for (segment, list) in lists.iter().enumerate() {
                    assert_eq!(lru.len_of(segment) as usize, list.len());
                    if step < 3 {
                        let oldest = lru.oldest(segment).map(|entry| lru.key(entry));
                        assert_eq!(oldest, list.first().copied());
                    }
                }
            }
        }
    }

    #[test]
    fn places_in_the_order_outlast_new_numbers() {
        let mut lru = Lru::new(8);
        let entries: Vec<u32> = (0..8).map(|key| lru.insert(key)).collect();
        lru.oldest(0);
        lru.touch(entries[4]);
        lru.remove(entries[5]);
        let order = |lru: &Lru| (0..8).map(|place| lru.at_or_behind(0, place)).collect::<Vec<_>>();
        let before = order(&lru);
        assert_eq!((before[3], before[4]), (Some((3, entries[3])), Some((6, entries[6]))));
        lru.renumber();
        assert_eq!(order(&lru), before);
    }

    #[test]
    fn marks_stay_with_their_entry() {
        let mut lru = Lru::new(4);
        let entry = lru.insert(3);
        assert!(!lru.set(entry, DIRTY, true) && lru.is(entry, DIRTY) && !lru.is(entry, MARKED));
        lru.touch(entry);
        lru.change_segment(entry);
        lru.renumber();
        assert!(lru.is(entry, DIRTY) && lru.segment(entry) == 1 && lru.set(entry, DIRTY, false));
        lru.remove(entry);
        let entry = lru.insert(3);
        assert!(!lru.is(entry, DIRTY) && lru.segment(entry) == 0);
    }
}
