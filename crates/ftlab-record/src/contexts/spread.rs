//! How lifetimes are spread: quantiles within 3 % in constant memory.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    pub p10: f64,
    pub p25: f64,
    pub median: f64,
    pub p75: f64,
    pub p90: f64,
    pub mean: f64,
    /// Standard deviation over mean.
    pub variation: f64,
}

/// How values are spread: a histogram of 16 steps an octave, and the first two moments.
#[derive(Clone, Default)]
pub(super) struct Spread {
    counts: Vec<u64>,
    pub(super) count: u64,
    sum: f64,
    squares: f64,
}

impl Spread {
    pub(super) fn add(&mut self, value: u64) {
        let step = step_of(value);
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
        self.count += 1;
        self.sum += value as f64;
        self.squares += value as f64 * value as f64;
    }

    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        if self.count == 0 {
            return None;
        }
        let at = |q: f64| {
            let wanted = ((q * self.count as f64) as u64).min(self.count - 1);
            let mut passed = 0;
            let step = self.counts.iter().position(|&n| {
                passed += n;
                passed > wanted
            });
            middle_of(step.unwrap_or(0))
        };
        let mean = self.sum / self.count as f64;
        let variance = (self.squares / self.count as f64 - mean * mean).max(0.0);
        Some(Quantiles {
            p10: at(0.1),
            p25: at(0.25),
            median: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            mean,
            variation: if mean > 0.0 { variance.sqrt() / mean } else { 0.0 },
        })
    }
}

/// Values below 16 have a step each; above, 16 steps an octave.
fn step_of(value: u64) -> usize {
    if value < 16 {
        return value as usize;
    }
    let octave = value.ilog2() - 4;
    (16 * (octave as usize + 1)) + ((value >> octave) as usize - 16)
}

fn middle_of(step: usize) -> f64 {
    if step < 16 {
        return step as f64;
    }
    let octave = (step / 16 - 1) as u32;
    let low = ((16 + step % 16) as u64) << octave;
    low as f64 + ((1u64 << octave) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_their_values() {
        for value in [0, 1, 15, 16, 17, 31, 32, 1000, 123_456_789, u64::MAX >> 1] {
            let middle = middle_of(step_of(value));
            assert!(
                (middle - value as f64).abs() <= value as f64 * 0.032,
                "{value} {middle}"
            );
        }
        assert!((0..100_000).map(step_of).is_sorted());
    }
}
