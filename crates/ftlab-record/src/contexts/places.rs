//! Whether places tell lifetimes: what lay at an address before is all that a separator by addresses can go by.
//!
//! # Model
//! Each page of the device whose data has ended remembers that lifetime. `correlation` is Pearson's coefficient between the
//! logarithms of a page's lifetime and of the lifetime before it at the same address (log2 of pages written, plus one), over all
//! lives that had one before. 1: a place tells how long its next data will live; 0: it does not.
//! `spread` is the longest over the shortest lifetime within a chunk of 1 MiB (both plus one): the median over the chunks in which
//! at least two pages have ended, and the largest.
//! # Not modelled
//! Places are those of the replay's extents. Data that still lives at the end is not seen.
//! # Source
//! Lifetimes of a chunk of 1 MB over time: T. Kim, PhD thesis, Seoul National University 2019, section 4.2.1 and figure 7. The
//! coefficient is ours.

use rustc_hash::FxHashMap;
use serde::Serialize;

/// Pages of 4 KiB in a chunk.
const CHUNK: u64 = 256;

#[derive(Clone, Debug, Default, Serialize)]
pub struct PlaceReport {
    /// Lives that had one before at their address.
    pub pairs: u64,
    pub correlation: Option<f64>,
    /// Chunks in which at least two pages have ended.
    pub chunks: u64,
    pub spread_median: Option<f64>,
    pub spread_max: Option<f64>,
}

#[derive(Default)]
pub(super) struct Places {
    before: FxHashMap<u64, u64>,
    chunks: FxHashMap<u64, Chunk>,
    all: Pairs,
}

struct Chunk {
    ended: u64,
    shortest: u64,
    longest: u64,
}

impl Places {
    /// A page's data has ended after so many pages; the lifetime before it there, if any.
    pub(super) fn ended(&mut self, page: u64, lifetime: u64) -> Option<u64> {
        let chunk = self.chunks.entry(page / CHUNK).or_insert(Chunk {
            ended: 0,
            shortest: lifetime,
            longest: lifetime,
        });
        chunk.ended += 1;
        chunk.shortest = chunk.shortest.min(lifetime);
        chunk.longest = chunk.longest.max(lifetime);
        let before = self.before.insert(page, lifetime)?;
        self.all.add(before, lifetime);
        Some(before)
    }

    pub(super) fn report(&self) -> PlaceReport {
        let several = self.chunks.values().filter(|chunk| chunk.ended > 1);
        let mut spreads: Vec<f64> = several
            .map(|chunk| (chunk.longest + 1) as f64 / (chunk.shortest + 1) as f64)
            .collect();
        spreads.sort_unstable_by(f64::total_cmp);
        PlaceReport {
            pairs: self.all.count,
            correlation: self.all.correlation(),
            chunks: spreads.len() as u64,
            spread_median: spreads.get(spreads.len() / 2).copied(),
            spread_max: spreads.last().copied(),
        }
    }
}

/// Moments of pairs of lifetimes, as logarithms.
#[derive(Clone, Default)]
pub(super) struct Pairs {
    count: u64,
    sums: [f64; 2],
    squares: [f64; 2],
    products: f64,
}

impl Pairs {
    pub(super) fn add(&mut self, before: u64, after: u64) {
        let [x, y] = [before, after].map(|lifetime| (lifetime as f64 + 1.0).log2());
        self.count += 1;
        self.sums[0] += x;
        self.sums[1] += y;
        self.squares[0] += x * x;
        self.squares[1] += y * y;
        self.products += x * y;
    }

    /// None without pairs, or where one side is always the same.
    pub(super) fn correlation(&self) -> Option<f64> {
        let n = self.count as f64;
        let deviation = |i: usize| n * self.squares[i] - self.sums[i] * self.sums[i];
        let both = deviation(0).max(0.0) * deviation(1).max(0.0);
        // What rounding leaves of a spread of nothing.
        let least = 1e-18 * (n * self.squares[0]) * (n * self.squares[1]);
        (both > least).then(|| (n * self.products - self.sums[0] * self.sums[1]) / both.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_keep_their_lifetimes_correlate_and_others_do_not() {
        let mut same = Places::default();
        let mut other = Places::default();
        for round in 0..64u64 {
            for page in 0..64u64 {
                same.ended(page, 1 << (page % 8));
                // Each page has each of the eight lifetimes in turn, starting elsewhere, with a step that is prime to 8.
                other.ended(page, 1 << ((page + round * round * 3 + round * (page / 8)) % 8));
            }
        }
        let same = same.report();
        assert!((same.correlation.unwrap() - 1.0).abs() < 1e-9);
        assert_eq!((same.pairs, same.chunks), (64 * 63, 1));
        // From 1 to 128 pages within the one chunk.
        assert_eq!(same.spread_max, Some(129.0 / 2.0));
        let found = other.report().correlation.unwrap();
        assert!(found.abs() < 0.2, "{found}");
    }

    #[test]
    fn lifetimes_that_are_all_alike_have_no_correlation() {
        let mut places = Places::default();
        for _ in 0..10 {
            places.ended(3, 7);
        }
        assert_eq!(places.report().correlation, None);
        assert_eq!(Places::default().report().spread_median, None);
    }
}
