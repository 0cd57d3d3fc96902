//! Weighted counts of whole numbers in 256 bins to the octave: what distances, times and lifetimes are kept in.
//!
//! Values below 512 have a bin each; above, a bin is at most 1/256 of its lower end wide, so percentiles (which are
//! interpolated within a bin) are off by at most 0.4 %. 14,592 bins of 8 bytes from the first value on. Curves have eight
//! points to the octave, whose bins are made of these.

use ftlab_core::bins::{bin_of, bins, last, lower};

use super::{Curve, Percentiles};

/// Bins to the octave, as a power of two: those that are counted in.
pub const FINE: u32 = 8;
/// Those of curves.
pub const EIGHTHS: u32 = 3;

/// The counts.
#[derive(Clone, Default)]
pub struct Octaves {
    /// Empty until there is a value.
    bins: Vec<u64>,
    total: u64,
}

impl Octaves {
    #[inline]
    pub fn add(&mut self, value: u64, weight: u64) {
        self.add_to_bin(bin_of::<FINE>(value), weight);
    }

    #[inline]
    pub fn add_to_bin(&mut self, bin: usize, weight: u64) {
        if self.bins.is_empty() {
            self.bins = vec![0; bins::<FINE>()];
        }
        self.bins[bin] += weight;
        self.total += weight;
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// Weight in each bin; empty without any.
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// Weight in each bin of eight to the octave.
    pub fn eighths(&self) -> Vec<u64> {
        let mut sums = vec![0; bins::<EIGHTHS>()];
        for (bin, &weight) in self.bins.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            sums[eighth_of(bin)] += weight;
        }
        sums
    }

    /// Weight of values at least `value`, which must be the lower end of a bin (every power of two is).
    #[cfg(test)]
    pub fn at_least(&self, value: u64) -> u64 {
        self.bins.get(bin_of::<FINE>(value)..).unwrap_or(&[]).iter().sum()
    }

    /// The value below which a share `q` of the weight lies, interpolated within its bin; `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let (bin, inside) = place(&self.bins, self.total, q)?;
        let (low, high) = (lower::<FINE>(bin), last::<FINE>(bin));
        Some(low as f64 + inside * (high - low) as f64)
    }

    /// The usual percentiles times `unit`.
    pub fn percentiles(&self, unit: f64) -> Percentiles {
        Percentiles::of(|q| self.quantile(q).map(|value| value * unit))
    }

    /// Weight over `of` by powers of two, 0 apart, from the first to the last that occurs; `x` times `unit`.
    pub fn by_octave(&self, names: (&str, &str), of: f64, unit: f64) -> Curve {
        let mut sums = [0u64; 65];
        for (bin, weight) in self.bins.iter().enumerate() {
            sums[octave_of(lower::<FINE>(bin))] += weight;
        }
        octave_curve(&sums, names, of, unit)
    }
}

/// A curve from sums by [`octave_of`], from the first to the last that is not 0.
pub fn octave_curve(sums: &[u64; 65], names: (&str, &str), of: f64, unit: f64) -> Curve {
    let mut curve = Curve::new(names.0, names.1);
    let first = sums.iter().position(|&s| s > 0);
    let end = sums.iter().rposition(|&s| s > 0);
    if let (Some(first), Some(end)) = (first, end) {
        for (octave, &sum) in sums.iter().enumerate().take(end + 1).skip(first) {
            let low = if octave == 0 { 0 } else { 1u64 << (octave - 1) };
            curve.push(low as f64 * unit, sum as f64 / of);
        }
    }
    curve
}

/// Where a share `q` of the `total` weight is reached, and how far into that place.
pub fn place(weights: &[u64], total: u64, q: f64) -> Option<(usize, f64)> {
    let wanted = q * total as f64;
    let mut below = 0u64;
    for (at, &weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0) {
        if (below + weight) as f64 >= wanted {
            return Some((at, (wanted - below as f64) / weight as f64));
        }
        below += weight;
    }
    None
}

/// 0 for 0, else one more than the exponent of the power of two at or below `value`.
#[inline]
pub fn octave_of(value: u64) -> usize {
    64 - value.leading_zeros() as usize
}

/// The bin of eight to the octave that a bin lies in.
#[inline]
pub fn eighth_of(bin: usize) -> usize {
    bin_of::<EIGHTHS>(lower::<FINE>(bin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fine_bin_lies_in_one_of_eight_to_the_octave() {
        for bin in 0..bins::<FINE>() {
            assert_eq!(eighth_of(bin), bin_of::<EIGHTHS>(last::<FINE>(bin)));
        }
    }

    #[test]
    fn percentiles_are_within_their_stated_error() {
        // A power law over nine decades, whose percentiles are known from the sorted values.
        let values: Vec<u64> = (0..20_000)
            .map(|i| libm::pow(10.0, f64::from(i) * 9.0 / 20_000.0) as u64)
            .collect();
        let mut counts = Octaves::default();
        values.iter().for_each(|&value| counts.add(value, 1));
        for q in [0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999] {
            let exact = values[(q * 20_000.0) as usize - 1] as f64;
            let found = counts.quantile(q).unwrap();
            assert!((found / exact - 1.0).abs() < 0.004, "{q}: {found} for {exact}");
        }
    }

    #[test]
    fn small_values_have_exact_quantiles() {
        let mut counts = Octaves::default();
        for value in 1..=10 {
            counts.add(value, 2);
        }
        // 20 values: the half lies at 5.
        assert_eq!(counts.quantile(0.5), Some(5.0));
        assert_eq!(counts.quantile(1.0), Some(10.0));
        assert_eq!(counts.at_least(8), 6);
        assert_eq!(Octaves::default().quantile(0.5), None);
    }

    #[test]
    fn octaves_hold_zero_apart() {
        let mut counts = Octaves::default();
        for value in [0, 1, 2, 3, 4, 7, 8] {
            counts.add(value, 1);
        }
        let curve = counts.by_octave(("v", "share"), 7.0, 1.0);
        assert_eq!(curve.x, [0.0, 1.0, 2.0, 4.0, 8.0]);
        assert_eq!(curve.y, [1.0, 1.0, 2.0, 2.0, 1.0].map(|n: f64| n / 7.0));
    }
}
