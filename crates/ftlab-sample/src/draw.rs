//! The order in which the partitions of a disk are sampled.
//!
//! # Model
//! A random permutation of all partitions, of which a sample is a prefix (Fisher-Yates, kept as the places that differ). A prefix of any length that is chosen without looking
//! at the data is a simple random sample without replacement, so that a sample can grow.
//!
//! # Cost
//! Memory by the partitions drawn, not by those there are.

use ftlab_core::Stream;
use rustc_hash::FxHashMap;

pub struct Permutation {
    random: Stream,
    count: u64,
    drawn: u64,
    moved: FxHashMap<u64, u64>,
}

impl Permutation {
    /// Of `0..count`; `disk` is a number that no other disk of the seed has.
    pub fn new(count: u64, seed: u64, disk: u64) -> Self {
        Permutation {
            random: Stream::new(seed, &format!("partitions of disk {disk}")),
            count,
            drawn: 0,
            moved: FxHashMap::default(),
        }
    }

    /// Appends to `order` until it has `length` partitions, or all.
    pub fn extend(&mut self, order: &mut Vec<u64>, length: u64) {
        while (order.len() as u64) < length.min(self.count) {
            let here = self.drawn;
            let other = here + self.random.below(self.count - here);
            let at_here = self.moved.remove(&here).unwrap_or(here);
            let chosen = if other == here {
                at_here
            } else {
                self.moved.insert(other, at_here).unwrap_or(other)
            };
            self.drawn += 1;
            order.push(chosen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Permutation;

    #[test]
    fn a_whole_draw_is_a_permutation_and_a_longer_one_begins_with_a_shorter() {
        let drawn = |count, lengths: &[u64]| {
            let mut order = Vec::new();
            let mut permutation = Permutation::new(count, 5, 1);
            for &length in lengths {
                permutation.extend(&mut order, length);
            }
            order
        };
        let mut whole = drawn(100, &[1000]);
        assert_eq!(drawn(100, &[7, 40])[..], whole[..40]);
        assert_ne!(whole[..10], (0..10).collect::<Vec<u64>>()[..]);
        whole.sort_unstable();
        assert_eq!(whole, (0..100).collect::<Vec<u64>>());
    }

    /// Each of 20 pairs of two of five comes as often as any other: 20,000 draws, 1000 expected, standard deviation 31.
    #[test]
    fn all_ordered_pairs_are_alike() {
        let mut seen = [[0; 5]; 5];
        for seed in 0..20_000 {
            let mut order = Vec::new();
            Permutation::new(5, seed, 0).extend(&mut order, 2);
            seen[order[0] as usize][order[1] as usize] += 1;
        }
        for (a, row) in seen.iter().enumerate() {
            for (b, &count) in row.iter().enumerate() {
                assert!(
                    if a == b {
                        count == 0
                    } else {
                        (850..1150).contains(&count)
                    },
                    "{a} {b} {count}"
                );
            }
        }
    }
}
