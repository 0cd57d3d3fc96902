//! Mergeable latency histograms with three significant digits, 1 ns to 1 hour.

use hdrhistogram::Histogram as Hdr;

/// Counts of nanosecond values; quantiles are exact to 0.1 %.
#[derive(Clone, Debug)]
pub struct Histogram {
    hdr: Hdr<u64>,
    sum: u128,
    max: u64,
}

const HIGHEST_NS: u64 = 3_600_000_000_000;

impl Default for Histogram {
    fn default() -> Self {
        let hdr = Hdr::new_with_bounds(1, HIGHEST_NS, 3).expect("constant bounds are legal");
        Histogram { hdr, sum: 0, max: 0 }
    }
}

impl Histogram {
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.hdr.saturating_record(value_ns);
        self.sum += u128::from(value_ns);
        self.max = self.max.max(value_ns);
    }

    pub fn count(&self) -> u64 {
        self.hdr.len()
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

    /// The value at quantile `q` in [0, 1], to three digits; 0 when empty.
    pub fn quantile(&self, q: f64) -> u64 {
        self.hdr.value_at_quantile(q).min(self.max)
    }

    pub fn merge(&mut self, other: &Histogram) {
        self.hdr.add(&other.hdr).expect("same bounds");
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub fn clear(&mut self) {
        self.hdr.clear();
        self.sum = 0;
        self.max = 0;
    }

    /// Non-empty buckets as (highest equivalent value in ns, count): enough to merge, plot or recompute quantiles.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.hdr
            .iter_recorded()
            .map(|v| (v.value_iterated_to(), v.count_since_last_iteration()))
            .collect()
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
