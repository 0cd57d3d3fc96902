//! Duplicates found by tables of fingerprints of every size: what an LRU stack of the values written says.
//!
//! A touch is a write of a value. A table of `n` fingerprints that gives up the least recently written one knows the value if
//! fewer than `n` others were written since. In a sample of one value in 2^level, distances count for so many more, as do touches.

use crate::mrc::Tally;

/// Not on the device when written, on it.
const LIVE: usize = 1;

/// Depths of touches, by the level of the sample at that time.
#[derive(Default)]
pub struct Depths {
    levels: Vec<Tally>,
}

impl Depths {
    /// A write of a value, with the different other values written since its last write; `None` at its first.
    #[inline]
    pub fn add(&mut self, level: u32, live: bool, others: Option<u64>) {
        let at = level as usize;
        if at >= self.levels.len() {
            self.levels.resize_with(at + 1, Tally::default);
        }
        let depth = others.map(|others| u32::try_from(others + 1).unwrap_or(u32::MAX));
        self.levels[at].add(usize::from(live), depth);
    }

    /// `all` and `live`: hits of a table that holds everything, and those of them whose value lay on the device, as far as is known
    /// from elsewhere.
    pub fn finish(&self, all: f64, live: f64) -> Curve {
        let prefixes = self.levels.iter().map(|tally| {
            let depths: Vec<u64> = (1..=tally.deepest() as u64).collect();
            tally.hits(&depths)
        });
        let mut curve = Curve {
            levels: prefixes.collect(),
            missing: [0.0; 2],
        };
        let [counted, counted_live] = curve.counted(curve.enough());
        curve.missing = [all - counted as f64, live - counted_live as f64];
        curve
    }
}

/// Hits of tables of every size.
///
/// A sample holds or misses the few values that are written most, which moves the whole curve. What it counts too little or too
/// much, against what is known of all, is therefore taken for hits of the smallest tables: SHARDS-adj of Waldspurger, Park,
/// Garthwaite and Ahmad, FAST 2015. Without a sample there is nothing to correct.
pub struct Curve {
    /// For each level: hits with one entry, two, ...
    levels: Vec<Vec<[u64; 2]>>,
    missing: [f64; 2],
}

impl Curve {
    /// Writes that a table of so many entries recognises, and those of them whose value lay on the device.
    pub fn hits(&self, entries: u64) -> [f64; 2] {
        if entries == 0 {
            return [0.0; 2];
        }
        let [all, live] = self.counted(entries);
        let all = (all as f64 + self.missing[0]).max(0.0);
        [all, (live as f64 + self.missing[1]).clamp(0.0, all)]
    }

    fn counted(&self, entries: u64) -> [u64; 2] {
        let mut sum = [0u64; 2];
        for (level, prefix) in self.levels.iter().enumerate() {
            let depth = (entries >> level).min(prefix.len() as u64) as usize;
            if let Some(hits) = depth.checked_sub(1).and_then(|at| prefix.get(at)) {
                sum[0] += (hits[0] + hits[LIVE]) << level;
                sum[1] += hits[LIVE] << level;
            }
        }
        sum
    }

    /// The size beyond which nothing more is found.
    pub fn enough(&self) -> u64 {
        let deepest = self.levels.iter().enumerate();
        deepest
            .map(|(level, prefix)| (prefix.len() as u64) << level)
            .max()
            .unwrap_or(0)
    }

    /// The smallest table that recognises this share of all that any table does.
    pub fn least(&self, share: f64) -> u64 {
        let (mut low, mut high) = (0, self.enough());
        let wanted = share * self.hits(high)[0];
        while low < high {
            let middle = low + (high - low) / 2;
            match self.hits(middle)[0] >= wanted {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_by_hand_and_in_a_sample() {
        let mut depths = Depths::default();
        // a b a(1 other, live) a(0 others, dead) b(1 other, live)
        for (live, others) in [
            (false, None),
            (false, None),
            (true, Some(1)),
            (false, Some(0)),
            (true, Some(1)),
        ] {
            depths.add(0, live, others);
        }
        let curve = depths.finish(3.0, 2.0);
        assert_eq!(
            [0, 1, 2, 99].map(|n| curve.hits(n)),
            [[0.0, 0.0], [1.0, 0.0], [3.0, 2.0], [3.0, 2.0]]
        );
        assert_eq!(
            (curve.enough(), curve.least(0.3), curve.least(0.5), curve.least(1.0)),
            (2, 1, 2, 2)
        );
        // Of one value in four: three others stand for twelve, the write for four.
        depths.add(2, true, Some(3));
        let curve = depths.finish(7.0, 6.0);
        assert_eq!(
            (curve.hits(15), curve.hits(16), curve.enough()),
            ([3.0, 2.0], [7.0, 6.0], 16)
        );
        // Two hits more are known of, which the sample missed; or three less.
        assert_eq!(depths.finish(9.0, 8.0).hits(1), [3.0, 2.0]);
        assert_eq!(depths.finish(4.0, 4.0).hits(2), [0.0, 0.0]);
    }
}
