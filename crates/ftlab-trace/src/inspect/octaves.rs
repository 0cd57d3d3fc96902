//! Weighted counts of whole numbers in eight bins to the octave: what distances, times and lifetimes are kept in.
//!
//! Values below 16 have a bin each; above, a bin is at most 1/8 of its lower end wide, so percentiles (which are
//! interpolated within a bin) are off by at most 12.5 %. 496 bins of 8 bytes whatever is counted.

use super::{Curve, Percentiles};

const SUB_BITS: u32 = 3;
const SUB: usize = 1 << SUB_BITS;
pub const BINS: usize = 62 * SUB;

/// The counts.
#[derive(Clone)]
pub struct Octaves {
    bins: Box<[u64; BINS]>,
    total: u64,
}

impl Default for Octaves {
    fn default() -> Self {
        Octaves {
            bins: Box::new([0; BINS]),
            total: 0,
        }
    }
}

impl Octaves {
    #[inline]
    pub fn add(&mut self, value: u64, weight: u64) {
        self.bins[bin_of(value)] += weight;
        self.total += weight;
    }

    pub fn add_to_bin(&mut self, bin: usize, weight: u64) {
        self.bins[bin] += weight;
        self.total += weight;
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// Weight in each bin.
    pub fn bins(&self) -> &[u64; BINS] {
        &self.bins
    }

    /// Weight of values at least `value`, which must be the lower end of a bin (every power of two is).
    #[cfg(test)]
    pub fn at_least(&self, value: u64) -> u64 {
        self.bins[bin_of(value)..].iter().sum()
    }

    /// The value below which a share `q` of the weight lies, interpolated within its bin; `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let (bin, inside) = place(self.bins.as_slice(), self.total, q)?;
        let (low, high) = (lower(bin), last(bin));
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
            sums[octave_of(lower(bin))] += weight;
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

#[inline]
pub fn bin_of(value: u64) -> usize {
    if value < SUB as u64 {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros();
    let within = (value >> (octave - SUB_BITS)) as usize & (SUB - 1);
    (octave - SUB_BITS + 1) as usize * SUB + within
}

/// Least value of a bin.
pub fn lower(bin: usize) -> u64 {
    if bin < SUB {
        return bin as u64;
    }
    ((SUB + bin % SUB) as u64) << (bin / SUB - 1)
}

/// Largest value of a bin.
pub fn last(bin: usize) -> u64 {
    if bin + 1 < BINS { lower(bin + 1) - 1 } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_contiguous_and_hold_their_values() {
        for bin in 0..BINS {
            assert_eq!(bin_of(lower(bin)), bin);
            assert_eq!(bin_of(last(bin)), bin);
            assert!(bin < 16 || last(bin) - lower(bin) < lower(bin) / 8);
        }
        assert_eq!(last(BINS - 1), u64::MAX);
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
