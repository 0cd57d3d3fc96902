//! The most supported pairs seen so far, in bounded memory.

use crate::Pair;
use crate::meter::used;

/// Keeps the best `most` pairs, by the order of a set.
pub(crate) struct Best {
    pairs: Vec<Pair>,
    most: usize,
    offered: u64,
}

impl Best {
    pub(crate) fn new(most: usize) -> Self {
        Best {
            pairs: Vec::new(),
            most: most.max(1),
            offered: 0,
        }
    }

    /// The best of pairs that are there already.
    pub(crate) fn of(pairs: Vec<Pair>, most: usize) -> Self {
        let offered = pairs.len() as u64;
        Best {
            pairs,
            offered,
            ..Best::new(most)
        }
    }

    #[inline]
    pub(crate) fn offer(&mut self, pair: Pair) {
        self.offered += 1;
        if self.pairs.len() >= self.most.saturating_mul(2) {
            self.cut();
        }
        self.pairs.push(pair);
    }

    /// Pairs offered that did not make it.
    pub(crate) fn left_out(&self) -> u64 {
        self.offered.saturating_sub(self.most as u64)
    }

    /// Before a cut there are twice as many pairs as are kept.
    pub(crate) fn bytes(&self) -> u64 {
        let full = self.offered.min(self.most.saturating_mul(2) as u64) * size_of::<Pair>() as u64;
        full.max(used(&self.pairs))
    }

    pub(crate) fn finish(mut self) -> Vec<Pair> {
        self.cut();
        self.pairs
    }

    fn cut(&mut self) {
        if self.pairs.len() > self.most {
            self.pairs.select_nth_unstable_by_key(self.most, Pair::rank);
            self.pairs.truncate(self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Lpn;

    #[test]
    fn the_best_pairs_stay_whatever_the_order() {
        let pair = |i: u32| Pair {
            first: Lpn(i),
            second: Lpn(i + 1),
            windows: 1 + i % 10,
        };
        for step in [1, 37, 63] {
            let mut best = Best::new(5);
            for i in 0..100 {
                best.offer(pair(i * step % 100));
            }
            assert_eq!(best.left_out(), 95);
            // Ten pairs of 12 bytes before each cut.
            assert_eq!(best.bytes(), 120);
            let mut kept = best.finish();
            kept.sort_unstable_by_key(Pair::rank);
            // Support 10 have 9, 19, …, 99; the first five by key.
            assert_eq!(kept, [9, 19, 29, 39, 49].map(pair));
        }
    }
}
