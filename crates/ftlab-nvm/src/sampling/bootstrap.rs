//! Error bars by resampling rows within each stratum.
//!
//! # Model
//! * `rescaled` (Rao and Wu 1988): of the `n` rows of a stratum `n - 1` are drawn with replacement; a row that was drawn `r` times has the
//!   weight `N/n · (1 - c + c r n / (n - 1))` with `c = √(1 - n/N)`, so that the variance of a total is that of the closed form. The interval lies
//!   between the quantiles of the replicates.
//! * `extremes`, as the ArchSampler chapter has it: ten replicates of `n` rows, the lowest and the highest left out, the lowest and the highest of
//!   the others as a range of 80 %.
//!
//! # Errors
//! A stratum with one row cannot be resampled: no interval.
//!
//! # Cost
//! O(replicates · rows).

use ftlab_core::{Error, Result, Stream};

use super::statistics::Stratum;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// What is computed of the two weighted sums (numerator, denominator).
pub type Statistic = fn((f64, f64)) -> f64;

pub const TOTAL: Statistic = |sums| sums.0;
pub const RATIO: Statistic = |sums| sums.0 / sums.1;

/// Refuses replicates of which the quantiles of a level cannot be told from the lowest and the highest.
pub fn check(replicates: usize, level: f64) -> Result<()> {
    if !(level > 0.0 && level < 1.0) {
        return Err(Error::input(format!(
            "--level {level}: expected a share between 0 and 1"
        )));
    }
    // Such shares as 0.95 are no binary fractions.
    let least = (2.0 / (1.0 - level) - 1e-6).ceil();
    if replicates > 0 && (replicates as f64) < least {
        return Err(Error::input(format!(
            "--replicates {replicates}: expected 0 (no bootstrap) or at least {least}, so that one in each tail is outside of --level {level}"
        )));
    }
    Ok(())
}

pub fn rescaled(strata: &[Stratum], of: Statistic, replicates: usize, level: f64, seed: u64) -> Option<Interval> {
    let mut values = replicate(strata, of, replicates, seed, true)?;
    values.sort_by(f64::total_cmp);
    let at = |q: f64| values[((q * replicates as f64) as usize).min(replicates - 1)];
    let tail = 0.5 * (1.0 - level);
    Some(Interval {
        low: at(tail),
        high: at(1.0 - tail),
    })
}

/// None of data that were read whole, whose answer is exact.
pub fn extremes(strata: &[Stratum], of: Statistic, seed: u64) -> Option<Interval> {
    if strata.iter().all(is_whole) {
        return None;
    }
    let mut values = replicate(strata, of, 10, seed, false)?;
    values.sort_by(f64::total_cmp);
    Some(Interval {
        low: values[1],
        high: values[8],
    })
}

fn is_whole(stratum: &Stratum) -> bool {
    stratum.rows == stratum.sample.len() as u64
}

/// One value for each replicate; each has a random stream of its own.
fn replicate(strata: &[Stratum], of: Statistic, count: usize, seed: u64, rescale: bool) -> Option<Vec<f64>> {
    let strata: Vec<&Stratum> = strata.iter().filter(|stratum| stratum.rows > 0).collect();
    if strata.iter().any(|s| s.sample.len() < 2 && !is_whole(s)) {
        return None;
    }
    let mut times: Vec<u32> = Vec::new();
    let one = |replicate: usize| {
        let mut random = Stream::new(seed.wrapping_add((replicate as u64) << 32), "nvm bootstrap");
        let mut sums = (0.0, 0.0);
        for stratum in &strata {
            let n = stratum.sample.len();
            let draws = if rescale { n - 1 } else { n };
            times.clear();
            times.resize(n, 0);
            for _ in 0..draws {
                times[random.below(n as u64) as usize] += 1;
            }
            let basic = stratum.rows as f64 / n as f64;
            let c = (1.0 - n as f64 / stratum.rows as f64).sqrt();
            for (&(t, z), &r) in stratum.sample.iter().zip(&times) {
                let weight = match rescale {
                    // A stratum that was read whole has c = 0 and keeps its rows as they are.
                    true if draws == 0 => basic,
                    true => basic * (1.0 - c + c * f64::from(r) * n as f64 / draws as f64),
                    false => basic * f64::from(r),
                };
                sums.0 += weight * t;
                sums.1 += weight * z;
            }
        }
        of(sums)
    };
    Some((0..count).map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::statistics;

    fn strata() -> Vec<Stratum> {
        let mut random = Stream::new(3, "test");
        let rows =
            |mean: f64, n: usize, random: &mut Stream| (0..n).map(|_| (mean + 10.0 * random.unit(), 2.0)).collect();
        vec![
            Stratum {
                rows: 40,
                sample: rows(20.0, 10, &mut random),
            },
            Stratum {
                rows: 90,
                sample: rows(50.0, 12, &mut random),
            },
        ]
    }

    /// The variance of the rescaled replicates of a total is that of the closed form, within the noise of 20,000 replicates (1 %).
    #[test]
    fn the_rescaled_variance_is_the_closed_form() {
        let strata = strata();
        let values = replicate(&strata, TOTAL, 20_000, 1, true).unwrap();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
        let exact = statistics::total(&strata, 0.95)
            .unwrap()
            .error
            .unwrap()
            .standard_error
            .powi(2);
        assert!((variance / exact - 1.0).abs() < 0.04, "{variance} for {exact}");
    }

    #[test]
    fn whole_strata_do_not_vary_and_single_rows_are_refused() {
        let whole = [Stratum {
            rows: 2,
            sample: vec![(1.0, 1.0), (5.0, 1.0)],
        }];
        assert_eq!(
            rescaled(&whole, TOTAL, 100, 0.95, 1),
            Some(Interval { low: 6.0, high: 6.0 })
        );
        assert_eq!(extremes(&whole, TOTAL, 1), None);
        assert!(extremes(&strata(), TOTAL, 1).is_some());
        let single = [Stratum {
            rows: 2,
            sample: vec![(1.0, 1.0)],
        }];
        assert_eq!(rescaled(&single, TOTAL, 100, 0.95, 1), None);
        assert!(check(0, 0.95).is_ok() && check(40, 0.95).is_ok() && check(20, 0.9).is_ok());
        for (replicates, level, part) in [
            (1, 0.95, "at least 40"),
            (39, 0.95, "at least 40"),
            (1000, 0.999, "at least 2000"),
            (10, 1.0, "--level 1"),
        ] {
            assert!(check(replicates, level).unwrap_err().to_string().contains(part));
        }
        assert_eq!(
            rescaled(&strata(), RATIO, 100, 0.95, 1),
            rescaled(&strata(), RATIO, 100, 0.95, 1)
        );
    }
}
