//! Distinct keys in 16 KiB: HyperLogLog with 2^14 registers, standard error 1.04 / sqrt(2^14) = 0.81 %.
//!
//! # Source
//! Flajolet et al., AofA 2007; the estimate is the improved one of Ertl, arXiv:1702.01284 (algorithm 6), which needs no
//! corrections for small or large counts.

const BITS: u32 = 14;
const REGISTERS: usize = 1 << BITS;
/// Largest value of a register: the bits of the hash that are left, plus 1.
const TOP: usize = 64 - BITS as usize + 1;

/// One standard deviation of an estimate, relative.
pub const RELATIVE_ERROR: f64 = 1.04 / 128.0;

#[derive(Clone)]
pub struct HyperLogLog {
    registers: Vec<u8>,
}

impl Default for HyperLogLog {
    fn default() -> Self {
        HyperLogLog {
            registers: vec![0; REGISTERS],
        }
    }
}

impl HyperLogLog {
    #[inline]
    pub fn add(&mut self, hash: u64) {
        let register = (hash >> (64 - BITS)) as usize;
        // A one behind the bits that are left bounds the count of zeros.
        let value = (((hash << BITS) | (1 << (BITS - 1))).leading_zeros() + 1) as u8;
        if self.registers[register] < value {
            self.registers[register] = value;
        }
    }

    /// Estimate of the distinct keys in this and `other` together.
    pub fn union_estimate(&self, other: &HyperLogLog) -> f64 {
        estimate(self.registers.iter().zip(&other.registers).map(|(a, b)| *a.max(b)))
    }

    pub fn estimate(&self) -> f64 {
        estimate(self.registers.iter().copied())
    }
}

fn estimate(registers: impl Iterator<Item = u8>) -> f64 {
    let mut counts = [0u32; TOP + 1];
    registers.for_each(|value| counts[usize::from(value)] += 1);
    let m = REGISTERS as f64;
    let mut z = m * tau(1.0 - f64::from(counts[TOP]) / m);
    for value in (1..TOP).rev() {
        z = 0.5 * (z + f64::from(counts[value]));
    }
    z += m * sigma(f64::from(counts[0]) / m);
    m * m / (2.0 * std::f64::consts::LN_2 * z)
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = libm::sqrt(x);
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splitmix::mix;

    #[test]
    fn within_three_standard_errors_at_every_scale() {
        let mut sketch = HyperLogLog::default();
        assert_eq!(sketch.estimate(), 0.0);
        let mut next = 10u64;
        for key in 1..=3_000_000u64 {
            sketch.add(mix(key));
            sketch.add(mix(key / 2 + 1));
            if key == next {
                let error = sketch.estimate() / key as f64 - 1.0;
                assert!(error.abs() < 3.0 * RELATIVE_ERROR, "{key}: {error}");
                next = next * 17 / 10;
            }
        }
    }

    #[test]
    fn a_union_counts_common_keys_once() {
        let (mut a, mut b) = (HyperLogLog::default(), HyperLogLog::default());
        (0..40_000).for_each(|key| a.add(mix(key)));
        (20_000..60_000).for_each(|key| b.add(mix(key)));
        let error = a.union_estimate(&b) / 60_000.0 - 1.0;
        assert!(error.abs() < 3.0 * RELATIVE_ERROR, "{error}");
    }
}
