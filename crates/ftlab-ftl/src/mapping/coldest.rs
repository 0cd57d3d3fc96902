//! Numbers in the order of a rank that changes: a heap with eight children a place, as its depth is what a change costs.

use super::allocated;

/// (rank, number), lowest first. A number may stand in it several times; the caller knows which rank counts.
#[derive(Clone, Debug)]
pub struct Coldest {
    /// The rank in the high bits, so that one comparison tells. Place 0 is the first, the children of place p are group p of those
    /// behind.
    first: u64,
    groups: Vec<Children>,
    len: usize,
    /// Bits of a number.
    bits: u32,
}

const CHILDREN: usize = 8;
/// Nothing stands there.
const EMPTY: u64 = u64::MAX;

/// On a line of the processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Children([u64; CHILDREN]);

impl Children {
    /// The lowest, and where it stands. Without jumps: which it is cannot be foreseen.
    #[inline(always)]
    fn lowest(&self) -> (u64, usize) {
        let lower = |a: (u64, usize), b: (u64, usize)| if b.0 < a.0 { b } else { a };
        let [a, b, c, d, e, f, g, h] = self.0;
        let left = lower(lower((a, 0), (b, 1)), lower((c, 2), (d, 3)));
        let right = lower(lower((e, 4), (f, 5)), lower((g, 6), (h, 7)));
        lower(left, right)
    }
}

impl Coldest {
    /// For numbers below `end`. Ranks must stay below 2^64 / `end`: with counts of look-ups they do for longer than anyone waits.
    pub fn new(end: u32) -> Self {
        Coldest {
            first: EMPTY,
            groups: Vec::new(),
            len: 0,
            bits: u32::BITS - end.saturating_sub(1).leading_zeros(),
        }
    }

    #[inline]
    fn pack(&self, rank: u64, number: u32) -> u64 {
        debug_assert!(rank < EMPTY >> self.bits, "rank {rank} has too many bits");
        rank << self.bits | u64::from(number)
    }

    #[inline]
    fn number(&self, pair: u64) -> u32 {
        (pair & !(u64::MAX << self.bits)) as u32
    }

    #[inline]
    fn place(&mut self, at: usize) -> &mut u64 {
        match at.checked_sub(1) {
            None => &mut self.first,
            Some(at) => &mut self.groups[at / CHILDREN].0[at % CHILDREN],
        }
    }

    pub fn push(&mut self, rank: u64, number: u32) {
        let pair = self.pack(rank, number);
        let mut at = self.len;
        self.len += 1;
        if self.len > 1 + CHILDREN * self.groups.len() {
            self.groups.push(Children([EMPTY; CHILDREN]));
        }
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            let above = *self.place(parent);
            if above <= pair {
                break;
            }
            *self.place(at) = above;
            at = parent;
        }
        *self.place(at) = pair;
    }

    /// The lowest (rank, number).
    #[inline]
    pub fn first(&self) -> Option<(u64, u32)> {
        (self.len > 0).then(|| (self.first >> self.bits, self.number(self.first)))
    }

    /// The numbers one of which comes after the first one.
    #[inline]
    pub fn seconds(&self) -> impl Iterator<Item = u32> + '_ {
        let children = self.groups.first().map_or(&[][..], |group| &group.0);
        children.iter().map(|&pair| self.number(pair))
    }

    /// Gives the first number another rank.
    pub fn rerank_first(&mut self, rank: u64) {
        if self.len > 0 {
            self.sink(self.pack(rank, self.number(self.first)));
        }
    }

    pub fn remove_first(&mut self) {
        if self.len > 0 {
            self.len -= 1;
            let last = std::mem::replace(self.place(self.len), EMPTY);
            if self.len > 0 {
                self.sink(last);
            }
        }
    }

    /// Puts `pair` into the first place and from there down to its own.
    fn sink(&mut self, pair: u64) {
        let mut at = 0;
        while let Some(children) = self.groups.get(at) {
            let (lowest, child) = children.lowest();
            if lowest >= pair {
                break;
            }
            *self.place(at) = lowest;
            at = CHILDREN * at + child + 1;
        }
        *self.place(at) = pair;
    }

    /// Bytes of the simulator's memory.
    pub fn bytes(&self) -> u64 {
        allocated(&self.groups)
    }

    pub fn clear(&mut self) {
        *self = Coldest {
            first: EMPTY,
            groups: Vec::new(),
            len: 0,
            bits: self.bits,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;
    use std::collections::BTreeSet;

    #[test]
    fn the_first_is_that_of_an_ordered_set() {
        let (mut coldest, mut model) = (Coldest::new(4000), BTreeSet::new());
        let mut random = Stream::new(6, "coldest");
        for number in 0..4000 {
            match random.below(4) {
                0 if !model.is_empty() => {
                    model.pop_first();
                    coldest.remove_first();
                }
                1 if !model.is_empty() => {
                    let (rank, number): (u64, u32) = model.pop_first().unwrap();
                    let rank = rank + random.below(1 << 30);
                    model.insert((rank, number));
                    coldest.rerank_first(rank);
                }
                _ => {
                    let rank = random.below(50) << random.below(40);
                    model.insert((rank, number));
                    coldest.push(rank, number);
                }
            }
            assert_eq!(coldest.first(), model.first().copied());
        }
        while model.pop_first().is_some() {
            coldest.remove_first();
            assert_eq!(coldest.first(), model.first().copied());
        }
        coldest.remove_first();
        coldest.rerank_first(7);
        assert_eq!(coldest.first(), None);
    }
}
