//! How many touches had which depth, and what that means for caches of every size.

use std::collections::BTreeMap;

/// Touches by depth. 4 bytes for each depth up to the greatest; what goes beyond 32 bits is carried aside.
#[derive(Clone, Debug, Default)]
struct Depths {
    counts: Vec<u32>,
    carried: BTreeMap<usize, u64>,
}

impl Depths {
    #[inline]
    fn add(&mut self, depth: u32) {
        let at = depth as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        let count = &mut self.counts[at];
        *count = count.wrapping_add(1);
        if *count == 0 {
            *self.carried.entry(at).or_default() += 1 << 32;
        }
    }

    #[inline]
    fn at(&self, depth: usize) -> u64 {
        let count = u64::from(self.counts.get(depth).copied().unwrap_or(0));
        match self.carried.is_empty() {
            true => count,
            false => count + self.carried.get(&depth).copied().unwrap_or(0),
        }
    }
}

/// Reads (0) and writes with trims (1).
pub type Counts = [u64; 2];

/// What was touched, by depth.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    depths: [Depths; 2],
    /// Touches that no cache can hit.
    first: Counts,
    touches: Counts,
}

impl Tally {
    /// A touch of kind `kind` (0 or 1) at `depth`, `None`: the first of its key.
    #[inline]
    pub fn add(&mut self, kind: usize, depth: Option<u32>) {
        self.touches[kind] += 1;
        match depth {
            Some(depth) => self.depths[kind].add(depth),
            None => self.first[kind] += 1,
        }
    }

    pub fn touches(&self) -> Counts {
        self.touches
    }

    pub fn first(&self) -> Counts {
        self.first
    }

    /// Hits of caches of so many items, which must ascend.
    pub fn hits(&self, items: &[u64]) -> Vec<Counts> {
        let (mut depth, mut hits) = (0, [0; 2]);
        let upto = |&items: &u64| {
            let last = items.min(self.deepest() as u64) as usize;
            while depth < last {
                depth += 1;
                for (hits, depths) in hits.iter_mut().zip(&self.depths) {
                    *hits += depths.at(depth);
                }
            }
            hits
        };
        items.iter().map(upto).collect()
    }

    /// The smallest caches that hit each of these shares of all touches, which must ascend; `None` where none does.
    pub fn least_items(&self, shares: &[f64]) -> Vec<Option<u64>> {
        let touches: u64 = self.touches.iter().sum();
        let (mut depth, mut hits) = (0, 0u64);
        let mut least = |&share: &f64| {
            let wanted = share * touches as f64;
            while (hits as f64) < wanted && depth < self.deepest() {
                depth += 1;
                hits += self.depths.iter().map(|depths| depths.at(depth)).sum::<u64>();
            }
            (touches > 0 && hits as f64 >= wanted).then_some(depth as u64)
        };
        shares.iter().map(&mut least).collect()
    }

    /// The depth beyond which there was no touch: a larger cache gains nothing.
    pub fn deepest(&self) -> usize {
        let deepest = |depths: &Depths| depths.counts.len().saturating_sub(1);
        self.depths.iter().map(deepest).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_hits_what_lies_no_deeper_than_it_is_large() {
        let mut tally = Tally::default();
        for (kind, depth) in [
            (0, None),
            (1, None),
            (0, Some(1)),
            (0, Some(3)),
            (1, Some(3)),
            (1, Some(5)),
        ] {
            tally.add(kind, depth);
        }
        assert_eq!((tally.touches(), tally.first(), tally.deepest()), ([3, 3], [1, 1], 5));
        assert_eq!(tally.hits(&[0, 2, 3, 9]), [[0, 0], [1, 0], [2, 1], [2, 2]]);
        // Of six touches: a half is three hits, two thirds are four, and no cache has five.
        assert_eq!(
            tally.least_items(&[0.0, 0.5, 4.0 / 6.0, 5.0 / 6.0]),
            [Some(0), Some(3), Some(5), None]
        );
        assert_eq!(Tally::default().least_items(&[0.0, 0.5]), [None, None]);
    }

    #[test]
    fn counts_go_beyond_32_bits() {
        let mut depths = Depths::default();
        depths.add(2);
        depths.counts[2] = u32::MAX;
        depths.add(2);
        depths.add(2);
        assert_eq!(depths.at(2), (1 << 32) + 1);
    }
}
