//! Stack distances: how many different keys have been touched since the last touch of this one.
//!
//! # Model
//! A stack of all keys, the last touched on top. Touching a key tells its depth (the top is 1) and brings it to the top. A
//! cache that gives up the least recent of its entries holds the upper part of this stack, whatever its size: with `n`
//! entries it hits exactly the touches whose depth is at most `n`. So one pass gives the hits of every size.
//!
//! Each key knows the time of its last touch; a bit per time says whether it is still some key's last one, so that the depth
//! is a count of bits. Blocks of bits are counted by a Fenwick tree. When time runs out, times are renumbered without
//! gaps.
//!
//! # Cost
//! A touch is two walks of the tree, O(log(keys / 512)), or a count within some cache lines if the last one was not long ago.
//! 4 bytes a key, and less than half a byte a key of bits and tree; memory that no key touches is not used.
//!
//! # Source
//! Mattson, Gecsei, Slutz and Traiger, IBM Systems Journal 1970. A tree over times: Olken, LBL-12370, 1981.

const WORD: u32 = 64;
/// Times of a block: a cache line of bits.
const BLOCK: u32 = 512;
/// Blocks over which bits are counted one by one rather than by the tree.
const NEAR: u32 = 4;

/// The stack.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Time of each key's last touch; 0: never touched.
    last: Vec<u32>,
    /// Whether a time is the last one of a key.
    live: Vec<u64>,
    /// Fenwick tree over the blocks before the one of `now`.
    tree: Vec<u32>,
    /// Keys whose last touch lies in those blocks.
    in_tree: u32,
    /// Keys whose last touch lies in the block of `now`.
    in_block: u32,
    now: u32,
    /// Times there are: the first that cannot be used.
    end: u32,
}

impl Stack {
    /// An empty stack of the keys below `keys`, at most 2³¹.
    pub fn new(keys: u32) -> Self {
        // Renumbering looks at every key, so it has to be rare: two thirds of the times are free after it.
        let times = u64::from(keys) * 3 + 8 * u64::from(BLOCK);
        let blocks = times.div_ceil(u64::from(BLOCK)).min(u64::from(u32::MAX / BLOCK)) as u32;
        Stack {
            last: vec![0; keys as usize],
            live: vec![0; blocks as usize * (BLOCK / WORD) as usize],
            tree: vec![0; blocks as usize + 1],
            in_tree: 0,
            in_block: 0,
            now: 0,
            end: blocks * BLOCK,
        }
    }

    /// Keys touched so far.
    pub fn touched(&self) -> u32 {
        self.in_tree + self.in_block
    }

    /// Brings `key` to the top; its depth before, `None` if it has never been touched.
    #[inline]
    pub fn touch(&mut self, key: u32) -> Option<u32> {
        let before = self.last[key as usize];
        if before == self.now && before != 0 {
            return Some(1);
        }
        if self.now + 1 == self.end {
            self.renumber();
        }
        let before = self.last[key as usize];
        let depth = (before != 0).then(|| self.take(before));
        self.now += 1;
        if self.now.is_multiple_of(BLOCK) {
            self.close_block();
        }
        self.live[(self.now / WORD) as usize] |= 1 << (self.now % WORD);
        self.in_block += 1;
        self.last[key as usize] = self.now;
        depth
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        if self.touched() == 0 {
            return;
        }
        self.last.fill(0);
        self.live.fill(0);
        self.tree.fill(0);
        (self.in_tree, self.in_block, self.now) = (0, 0, 0);
    }

    /// Takes the key whose last touch was at `time` out of the stack; its depth.
    #[inline]
    fn take(&mut self, time: u32) -> u32 {
        let (block, current) = (time / BLOCK, self.now / BLOCK);
        let depth = if current - block < NEAR {
            self.live_from(time, self.now)
        } else {
            let end_of_block = (block + 1) * BLOCK - 1;
            self.live_from(time, end_of_block) + self.in_tree - self.up_to(block) + self.in_block
        };
        self.live[(time / WORD) as usize] &= !(1 << (time % WORD));
        match block == current {
            true => self.in_block -= 1,
            false => {
                self.in_tree -= 1;
                self.add(block, u32::MAX);
            }
        }
        depth
    }

    /// Live times from `first` to `last`, both included.
    #[inline]
    fn live_from(&self, first: u32, last: u32) -> u32 {
        let (from, to) = ((first / WORD) as usize, (last / WORD) as usize);
        let above = self.live[from] >> (first % WORD);
        let words = self.live[from + 1..=to.max(from)].iter();
        above.count_ones() + words.map(|word| word.count_ones()).sum::<u32>()
    }

    /// Live times of the blocks up to `block`.
    #[inline]
    fn up_to(&self, block: u32) -> u32 {
        let (mut at, mut sum) = (block + 1, 0u32);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at as usize]);
            at &= at - 1;
        }
        sum
    }

    /// Adds `change` (modulo 2³²) to the count of `block`.
    #[inline]
    fn add(&mut self, block: u32, change: u32) {
        let mut at = block as usize + 1;
        while let Some(count) = self.tree.get_mut(at) {
            *count = count.wrapping_add(change);
            at += at & at.wrapping_neg();
        }
    }

    /// `now` has entered a block: the one before it goes into the tree.
    fn close_block(&mut self) {
        self.add(self.now / BLOCK - 1, self.in_block);
        self.in_tree += self.in_block;
        self.in_block = 0;
    }

    /// Gives the live times the numbers from 1 on, in their order.
    #[cold]
    fn renumber(&mut self) {
        // Live times before each block, in the place of the tree.
        let mut before = 0;
        for (sum, block) in self.tree.iter_mut().zip(self.live.chunks((BLOCK / WORD) as usize)) {
            *sum = before;
            before += block.iter().map(|word| word.count_ones()).sum::<u32>();
        }
        let (live, tree) = (&self.live, &self.tree);
        for time in self.last.iter_mut().filter(|time| **time != 0) {
            let block = *time / BLOCK;
            let (first, word) = ((block * BLOCK / WORD) as usize, (*time / WORD) as usize);
            let whole: u32 = live[first..word].iter().map(|word| word.count_ones()).sum();
            let below = live[word] & ((1 << (*time % WORD)) - 1);
            *time = tree[block as usize] + whole + below.count_ones() + 1;
        }
        let touched = self.touched();
        self.live.fill(0);
        self.tree.fill(0);
        (self.in_tree, self.in_block, self.now) = (0, 0, 0);
        for time in 1..=touched {
            self.now = time;
            if time.is_multiple_of(BLOCK) {
                self.close_block();
            }
            self.live[(time / WORD) as usize] |= 1 << (time % WORD);
            self.in_block += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::Stream;

    use super::*;

    /// The same as a list, the top first.
    fn naive(list: &mut Vec<u32>, key: u32) -> Option<u32> {
        let depth = list.iter().position(|&other| other == key);
        if let Some(at) = depth {
            list.remove(at);
        }
        list.insert(0, key);
        depth.map(|at| at as u32 + 1)
    }

    #[test]
    fn depths_by_hand() {
        let mut stack = Stack::new(4);
        // a b c a: b and c lie above a. a again: it is on top. b: below a and c. d: new.
        let depths = [0, 1, 2, 0, 0, 1, 3].map(|key| stack.touch(key));
        assert_eq!(depths, [None, None, None, Some(3), Some(1), Some(3), None]);
        assert_eq!(stack.touched(), 4);
        stack.clear();
        assert_eq!((stack.touch(1), stack.touch(1), stack.touched()), (None, Some(1), 1));
    }

    #[test]
    fn depths_are_those_of_a_list() {
        let mut random = Stream::new(7, "stack");
        // So few keys that times run out several times; so many that touches lie further back than `NEAR` blocks.
        for (keys, touches) in [(1, 20_000), (3, 20_000), (700, 60_000), (6_000, 60_000)] {
            let (mut stack, mut list) = (Stack::new(keys), Vec::new());
            for i in 0..touches {
                // By turns everywhere, near the start, and one after the other.
                let key = match i / 1000 % 3 {
                    0 => random.below(u64::from(keys)) as u32,
                    1 => (random.below(u64::from(keys)) * random.below(u64::from(keys)) / u64::from(keys)) as u32,
                    _ => i % keys,
                };
                assert_eq!(stack.touch(key), naive(&mut list, key), "{keys} keys, touch {i}");
            }
            assert_eq!(stack.touched() as usize, list.len());
        }
    }
}
