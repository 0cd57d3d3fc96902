//! Numbers in the order of a rank that changes: a heap with four children a place, as its depth is what a change costs.

use super::allocated;

/// (rank, number), lowest first. A number may stand in it several times; the caller knows which rank counts.
#[derive(Clone, Debug)]
pub struct Coldest {
    /// The rank in the high bits, so that one comparison tells.
    places: Vec<u64>,
    /// Bits of a number.
    bits: u32,
}

const CHILDREN: usize = 4;

impl Coldest {
    /// For numbers below `end`. Ranks must stay below 2^64 / `end`: with counts of look-ups they do for longer than anyone waits.
    pub fn new(end: u32) -> Self {
        Coldest {
            places: Vec::new(),
            bits: u32::BITS - end.saturating_sub(1).leading_zeros(),
        }
    }

    #[inline]
    fn pack(&self, rank: u64, number: u32) -> u64 {
        debug_assert!(rank <= u64::MAX >> self.bits, "rank {rank} has too many bits");
        rank << self.bits | u64::from(number)
    }

    #[inline]
    fn number(&self, pair: u64) -> u32 {
        (pair & !(u64::MAX << self.bits)) as u32
    }

    pub fn push(&mut self, rank: u64, number: u32) {
        let pair = self.pack(rank, number);
        let mut at = self.places.len();
        self.places.push(pair);
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.places[parent] <= pair {
                break;
            }
            self.places[at] = self.places[parent];
            at = parent;
        }
        self.places[at] = pair;
    }

    /// The lowest (rank, number).
    #[inline]
    pub fn first(&self) -> Option<(u64, u32)> {
        let first = *self.places.first()?;
        Some((first >> self.bits, self.number(first)))
    }

    /// The numbers one of which comes after the first one.
    #[inline]
    pub fn seconds(&self) -> impl Iterator<Item = u32> + '_ {
        self.places.iter().skip(1).take(CHILDREN).map(|&pair| self.number(pair))
    }

    /// Gives the first number another rank.
    pub fn rerank_first(&mut self, rank: u64) {
        if let Some(&first) = self.places.first() {
            self.sink(self.pack(rank, self.number(first)));
        }
    }

    pub fn remove_first(&mut self) {
        if let Some(last) = self.places.pop()
            && !self.places.is_empty()
        {
            self.sink(last);
        }
    }

    /// Puts `pair` into the first place and from there down to its own.
    fn sink(&mut self, pair: u64) {
        let places = &mut self.places[..];
        let mut at = 0;
        loop {
            let first = CHILDREN * at + 1;
            let lowest = match places.get(first..first + CHILDREN) {
                // Without jumps: which child is the lowest cannot be foreseen.
                Some(&[a, b, c, d]) => {
                    let (left, of_left) = if b < a { (1, b) } else { (0, a) };
                    let (right, of_right) = if d < c { (3, d) } else { (2, c) };
                    first + if of_right < of_left { right } else { left }
                }
                _ => match (first..places.len()).min_by_key(|&child| places[child]) {
                    Some(child) => child,
                    None => break,
                },
            };
            if places[lowest] >= pair {
                break;
            }
            places[at] = places[lowest];
            at = lowest;
        }
        places[at] = pair;
    }

    /// Bytes of the simulator's memory.
    pub fn bytes(&self) -> u64 {
        allocated(&self.places)
    }

    pub fn clear(&mut self) {
        self.places.clear();
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
