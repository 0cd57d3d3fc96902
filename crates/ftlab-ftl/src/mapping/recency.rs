//! The order of use of cached translation pages, a mark for each key, the lowest of a set of numbers: dense arrays, in which
//! nothing is searched.

use std::ops::Range;

use ftlab_core::memory::prefetch;

use super::allocated;
use super::list::NONE;

const ABSENT: u32 = NONE - 1;

/// Least recent use over the numbers below a bound, any of which may be absent. Costs 8 bytes a number of the simulator's memory.
#[derive(Clone, Debug)]
pub struct Recency {
    /// The more recent and the less recent neighbour of each number; `ABSENT` in place of the first if it is not there.
    links: Vec<[u32; 2]>,
    front: u32,
    back: u32,
    len: u32,
}

impl Recency {
    pub fn new(numbers: u32) -> Self {
        Recency {
            links: vec![[ABSENT, NONE]; numbers as usize],
            front: NONE,
            back: NONE,
            len: 0,
        }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        self.links[number as usize][0] != ABSENT
    }

    /// The least recent number.
    pub fn back(&self) -> Option<u32> {
        (self.back != NONE).then_some(self.back)
    }

    /// The least recent number but `kept`.
    pub fn back_beside(&self, kept: Option<u32>) -> Option<u32> {
        let back = self.back()?;
        if Some(back) != kept {
            return Some(back);
        }
        let before = self.links[back as usize][0];
        (before != NONE).then_some(before)
    }

    /// Makes an absent number the most recent one.
    pub fn insert(&mut self, number: u32) {
        debug_assert!(!self.contains(number), "{number} is there already");
        self.links[number as usize] = [NONE, self.front];
        match self.front {
            NONE => self.back = number,
            front => self.links[front as usize][0] = number,
        }
        self.front = number;
        self.len += 1;
    }

    /// Takes a number out that is there.
    pub fn remove(&mut self, number: u32) {
        let [before, after] = std::mem::replace(&mut self.links[number as usize], [ABSENT, NONE]);
        debug_assert!(before != ABSENT, "{number} is not there");
        match before {
            NONE => self.front = after,
            before => self.links[before as usize][1] = after,
        }
        match after {
            NONE => self.back = before,
            after => self.links[after as usize][0] = before,
        }
        self.len -= 1;
    }

    /// Makes a number that is there the most recent one.
    #[inline]
    pub fn touch(&mut self, number: u32) {
        if self.front != number {
            self.remove(number);
            self.insert(number);
        }
    }

    /// Bytes of the simulator's memory.
    pub fn bytes(&self) -> u64 {
        allocated(&self.links)
    }

    pub fn clear(&mut self) {
        *self = Recency::new(self.links.len() as u32);
    }
}

/// A mark for each key, such as "dirty". Costs a bit a key of the simulator's memory.
#[derive(Clone, Debug)]
pub struct Marks(Vec<u64>);

impl Marks {
    pub fn new(keys: u32) -> Self {
        Marks(vec![0; (keys as usize).div_ceil(64)])
    }

    #[inline]
    pub fn contains(&self, key: u32) -> bool {
        self.0[key as usize / 64] >> (key % 64) & 1 == 1
    }

    /// Sets the mark of `key` to `marked` and returns what it was.
    #[inline]
    pub fn replace(&mut self, key: u32, marked: bool) -> bool {
        let (word, bit) = (&mut self.0[key as usize / 64], key % 64);
        let was = *word >> bit & 1 == 1;
        *word = *word & !(1 << bit) | u64::from(marked) << bit;
        was
    }

    /// Brings the mark of `key` into the processor's cache.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        prefetch(&self.0, key as usize / 64);
    }

    /// Clears the marks of `keys` and returns how many there were.
    pub fn clear_range(&mut self, keys: Range<u32>) -> u64 {
        let (mut base, mut marked) = (keys.start & !63, 0);
        while base < keys.end {
            let word = &mut self.0[base as usize / 64];
            let mut mask = !0;
            if base < keys.start {
                mask <<= keys.start - base;
            }
            if keys.end - base < 64 {
                mask &= (1 << (keys.end - base)) - 1;
            }
            marked += u64::from((*word & mask).count_ones());
            *word &= !mask;
            base += 64;
        }
        marked
    }

    /// Bytes of the simulator's memory.
    pub fn bytes(&self) -> u64 {
        allocated(&self.0)
    }

    pub fn clear(&mut self) {
        self.0.fill(0);
    }
}

/// A set of numbers below a bound, the lowest of which is at hand. Costs about a bit a number of the simulator's memory.
#[derive(Clone, Debug)]
pub struct Lowest {
    /// A bit for each number; then, level upon level, one for each word below that is not 0; the last level is one word.
    levels: Vec<Vec<u64>>,
}

impl Lowest {
    pub fn new(bound: u64) -> Self {
        let mut words = bound.div_ceil(64).max(1) as usize;
        let mut levels = vec![vec![0; words]];
        while words > 1 {
            words = words.div_ceil(64);
            levels.push(vec![0; words]);
        }
        Lowest { levels }
    }

    pub fn insert(&mut self, mut number: u64) {
        for level in &mut self.levels {
            let word = &mut level[(number / 64) as usize];
            let known = *word != 0;
            *word |= 1 << (number % 64);
            if known {
                return;
            }
            number /= 64;
        }
    }

    pub fn remove(&mut self, mut number: u64) {
        for level in &mut self.levels {
            let word = &mut level[(number / 64) as usize];
            *word &= !(1 << (number % 64));
            if *word != 0 {
                return;
            }
            number /= 64;
        }
    }

    pub fn first(&self) -> Option<u64> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at as usize];
            if word == 0 {
                return None;
            }
            at = 64 * at + u64::from(word.trailing_zeros());
        }
        Some(at)
    }

    /// Bytes of the simulator's memory.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(allocated).sum()
    }

    pub fn clear(&mut self) {
        self.levels.iter_mut().for_each(|level| level.fill(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    #[test]
    fn numbers_leave_in_the_order_of_their_last_use() {
        let (mut recency, mut model) = (Recency::new(7), Vec::new());
        let mut random = Stream::new(4, "recency");
        for _ in 0..5000 {
            let number = random.below(7) as u32;
            assert_eq!(recency.contains(number), model.contains(&number));
            if !recency.contains(number) {
                recency.insert(number);
            } else if random.below(3) == 0 {
                recency.remove(number);
                model.retain(|&n| n != number);
                continue;
            } else {
                recency.touch(number);
            }
            model.retain(|&n| n != number);
            model.push(number);
            assert_eq!((recency.back(), recency.len() as usize), (Some(model[0]), model.len()));
            assert_eq!(recency.back_beside(Some(model[0])), model.get(1).copied());
            assert_eq!(recency.back_beside(None), Some(model[0]));
        }
        recency.clear();
        assert!(recency.is_empty() && recency.back().is_none() && !(0..7).any(|n| recency.contains(n)));
    }

    #[test]
    fn marks_are_cleared_in_any_range() {
        let marked = [0u32, 1, 63, 64, 70, 127, 128, 199];
        for range in [0..200, 1..64, 64..128, 71..127, 128..200] {
            let mut marks = Marks::new(200);
            marked.iter().for_each(|&key| assert!(!marks.replace(key, true)));
            let inside = marked.into_iter().filter(|key| range.contains(key)).count() as u64;
            assert_eq!(marks.clear_range(range.clone()), inside, "{range:?}");
            // What lies outside keeps its mark.
            let left = (0..200).filter(|&key| marks.contains(key));
            assert!(
                left.eq(marked.into_iter().filter(|key| !range.contains(key))),
                "{range:?}"
            );
        }
    }

    #[test]
    fn the_lowest_number_is_that_of_an_ordered_set() {
        // Three levels; few numbers at a time, so that words and levels empty out.
        let (mut lowest, mut model) = (Lowest::new(10_000), std::collections::BTreeSet::new());
        let mut random = Stream::new(4, "lowest");
        for step in 0..5000 {
            let number = random.below(10_000);
            if model.len() > step % 7 {
                let gone = *model.range(number..).next().or(model.first()).unwrap();
                model.remove(&gone);
                lowest.remove(gone);
            } else {
                model.insert(number);
                lowest.insert(number);
            }
            assert_eq!(lowest.first(), model.first().copied());
        }
        lowest.clear();
        assert_eq!((lowest.first(), Lowest::new(0).first()), (None, None));
    }
}
