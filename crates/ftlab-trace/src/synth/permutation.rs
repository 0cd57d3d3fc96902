//! A fixed pseudo-random permutation of 0..n, computed, not stored.

use crate::splitmix::{STEP, finish};

/// A bijection of `0..n`: multiplications by odd numbers and xor-shifts modulo the next power of two, repeated until
/// the result is below n (cycle walking, fewer than two rounds on average).
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    odd: [u64; 2],
    add: u64,
}

impl Permutation {
    /// The permutation of `0..n` with this seed; n is at least 1.
    pub fn new(n: u64, seed: u64) -> Self {
        let bits = 64 - (n.max(1) - 1).leading_zeros();
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(STEP);
            finish(state)
        };
        Permutation {
            n,
            mask: if bits == 0 { 0 } else { u64::MAX >> (64 - bits) },
            shift: (bits / 2).max(1),
            odd: [next() | 1, next() | 1],
            add: next(),
        }
    }

    /// Where `x` (below n) goes.
    #[inline]
    pub fn apply(&self, mut x: u64) -> u64 {
        loop {
            x = x.wrapping_add(self.add).wrapping_mul(self.odd[0]) & self.mask;
            x ^= x >> self.shift;
            x = x.wrapping_mul(self.odd[1]) & self.mask;
            x ^= x >> self.shift;
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_permuted() {
        for n in (1..200).chain([1000, 4096, 65537]) {
            let permutation = Permutation::new(n, n);
            let mut seen = vec![false; n as usize];
            for x in 0..n {
                let y = permutation.apply(x) as usize;
                assert!(!seen[y], "{n}: {y} twice");
                seen[y] = true;
            }
        }
    }

    #[test]
    fn a_dense_range_is_spread() {
        // The first tenth of a million numbers must fall into each of ten parts about equally.
        let permutation = Permutation::new(1_000_000, 3);
        let mut parts = [0u32; 10];
        (0..100_000).for_each(|x| parts[(permutation.apply(x) / 100_000) as usize] += 1);
        assert!(parts.iter().all(|&p| (9_500..10_500).contains(&p)), "{parts:?}");
    }
}
