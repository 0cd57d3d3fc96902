//! Mergeable latency histograms with three significant digits, 1 ns to 1 hour.
//!
//! Counts lie in the buckets of an HDR histogram, but are added here: a run records each request, and the library's way to a
//! bucket took three times as long. Whatever reads counts goes through the library.

use hdrhistogram::Histogram as Hdr;

use crate::bins::{bin_of, lower};

/// Counts of nanosecond values; quantiles are exact to 0.1 %.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

const HIGHEST_NS: u64 = 3_600_000_000_000;

/// The buckets that the library makes for this range reach so far; what lies beyond counts as [`HIGHEST_NS`].
const LAST_NS: u64 = (1 << 42) - 1;

/// Buckets to the octave, as a power of two: enough for three digits.
const BITS: u32 = 10;

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            counts: vec![0; bin_of::<BITS>(LAST_NS) + 1],
            count: 0,
            sum: 0,
            max: 0,
        }
    }
}

impl Histogram {
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        let counted_ns = if value_ns > LAST_NS { HIGHEST_NS } else { value_ns };
        self.counts[bin_of::<BITS>(counted_ns)] += 1;
        self.count += 1;
        self.sum += u128::from(value_ns);
        self.max = self.max.max(value_ns);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact sum in nanoseconds.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Exact mean in nanoseconds (from the sum, not from the buckets); 0 when empty.
    pub fn mean(&self) -> f64 {
        if self.count() == 0 {
            0.0
        } else {
            self.sum as f64 / self.count() as f64
        }
    }

    /// Exact maximum in nanoseconds.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value at quantile `q` in [0, 1], to three digits; 0 when empty. Where some lie beyond 73 minutes, what lies beyond an hour is
    /// not told apart: the maximum.
    pub fn quantile(&self, q: f64) -> u64 {
        match self.hdr().value_at_quantile(q) {
            beyond if beyond >= HIGHEST_NS && self.max > LAST_NS => self.max,
            within => within.min(self.max),
        }
    }

    pub fn merge(&mut self, other: &Histogram) {
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.count = 0;
        self.sum = 0;
        self.max = 0;
    }

    /// Non-empty buckets as (highest equivalent value in ns, count): enough to merge, plot or recompute quantiles.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.hdr()
            .iter_recorded()
            .map(|v| (v.value_iterated_to(), v.count_since_last_iteration()))
            .collect()
    }

    /// The same counts in the library's hands.
    fn hdr(&self) -> Hdr<u64> {
        let mut hdr = Hdr::new_with_bounds(1, HIGHEST_NS, 3).expect("constant bounds are legal");
        for (bucket, &count) in self.counts.iter().enumerate() {
            if count > 0 {
                hdr.record_n(lower::<BITS>(bucket), count).expect("within the bounds");
            }
        }
        hdr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_max_are_exact_and_quantiles_have_three_digits() {
        let mut h = Histogram::default();
        (1..=1000u64).for_each(|v| h.record(v * 1000));
        assert_eq!(h.mean(), 500_500.0);
        assert_eq!(h.max(), 1_000_000);
        let p50 = h.quantile(0.5) as f64;
        assert!((p50 / 500_000.0 - 1.0).abs() < 0.001, "{p50}");
    }

    /// The buckets are those of the library: counting here or there is the same.
    #[test]
    fn counts_lie_where_the_library_would_put_them() {
        let mut ours = Histogram::default();
        let mut library = Hdr::<u64>::new_with_bounds(1, HIGHEST_NS, 3).unwrap();
        let mut draw = crate::Stream::new(5, "histogram");
        let edges = (0..45).flat_map(|bits| [(1u64 << bits) - 1, 1 << bits, (1 << bits) + 1]);
        let drawn = (0..100_000).map(|_| draw.below(1 << 43) >> draw.below(43));
        for value in edges.chain([0, HIGHEST_NS, u64::MAX]).chain(drawn) {
            ours.record(value);
            library.saturating_record(value);
        }
        let buckets: Vec<_> = library
            .iter_recorded()
            .map(|v| (v.value_iterated_to(), v.count_since_last_iteration()))
            .collect();
        let different: Vec<_> = ours
            .buckets()
            .into_iter()
            .zip(buckets)
            .filter(|(a, b)| a != b)
            .collect();
        assert_eq!(different.first(), None);
        assert_eq!(ours.count(), library.len());
        for q in [0.0, 0.1, 0.5, 0.99, 0.999, 1.0] {
            let theirs = library.value_at_quantile(q);
            let is_beyond = theirs >= HIGHEST_NS && ours.max() > LAST_NS;
            let told = if is_beyond { u64::MAX } else { theirs };
            assert_eq!(ours.quantile(q), told.min(ours.max()));
        }
    }

    #[test]
    fn quantiles_beyond_the_range_are_the_maximum() {
        let hour = 3_600_000_000_000;
        let of = |values: [u64; 2]| {
            let mut h = Histogram::default();
            values.iter().for_each(|&value| h.record(value));
            [h.quantile(0.5), h.quantile(1.0)]
        };
        assert_eq!(of([2 * hour, 3 * hour]), [3 * hour; 2]);
        assert_eq!(of([1000, 2 * hour]), [1000, 2 * hour]);
        // Up to 73 minutes they are told apart.
        let [middle, last] = of([hour / 60 * 61, hour / 60 * 70]);
        assert!(
            middle.abs_diff(hour / 60 * 61) < hour / 900 && last == hour / 60 * 70,
            "{middle} {last}"
        );
    }

    #[test]
    fn merging_equals_recording_together() {
        let (mut a, mut b, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for v in 0..5000u64 {
            let value = v * v % 77_777;
            if v % 3 == 0 { &mut a } else { &mut b }.record(value);
            both.record(value);
        }
        a.merge(&b);
        assert_eq!(a.buckets(), both.buckets());
        assert_eq!(a.mean(), both.mean());
    }
}
