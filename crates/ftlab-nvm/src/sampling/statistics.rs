//! Totals and ratios from a stratified sample of whole rows, with confidence intervals.
//!
//! # Model
//! A stratum is a bank with `N` rows, of which `n` were drawn without replacement and read whole. A row gives a numerator (the sum of what
//! is asked for) and a denominator (the records it is asked of). The total is the sum over strata of `N` times the mean; its variance
//! the sum of `N (N - n) s² / n`. The ratio is that of two totals (combined ratio estimator), its variance that of the total of the residuals `t - R z`,
//! over the square of the denominator. Degrees of freedom by Satterthwaite. A simple random sample is one stratum.
//!
//! # Errors
//! There is no error bar with fewer than two rows in a stratum that was not read whole.
//!
//! # Source
//! Cochran, Sampling Techniques, 3rd ed. 1977, chapters 5, 6 and 9; Satterthwaite 1946.

use ftlab_core::student;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stratum {
    /// Rows in the bank.
    pub rows: u64,
    /// Numerator and denominator of each row of the sample.
    pub sample: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    /// Standard error, degrees of freedom and half-width of the interval; none where the sample does not tell.
    pub error: Option<ErrorBar>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBar {
    pub standard_error: f64,
    pub df: f64,
    pub half_width: f64,
}

/// The total of the numerators of all rows.
pub fn total(strata: &[Stratum], level: f64) -> Option<Estimate> {
    let value = totals(strata)?.0;
    Some(Estimate {
        value,
        error: error_bar(strata, level, 1.0, |(t, _)| t),
    })
}

/// The sum of all numerators over that of all denominators; none without denominators in the sample.
pub fn ratio(strata: &[Stratum], level: f64) -> Option<Estimate> {
    let (t, z) = totals(strata)?;
    if z == 0.0 {
        return None;
    }
    let value = t / z;
    Some(Estimate {
        value,
        error: error_bar(strata, level, z, |(t, z)| t - value * z),
    })
}

/// Both totals; none if a stratum that has rows has no sample.
pub fn totals(strata: &[Stratum]) -> Option<(f64, f64)> {
    let mut sums = (0.0, 0.0);
    for stratum in strata.iter().filter(|stratum| stratum.rows > 0) {
        if stratum.sample.is_empty() {
            return None;
        }
        let weight = stratum.rows as f64 / stratum.sample.len() as f64;
        for &(t, z) in &stratum.sample {
            sums.0 += weight * t;
            sums.1 += weight * z;
        }
    }
    Some(sums)
}

fn error_bar(strata: &[Stratum], level: f64, over: f64, of: impl Fn((f64, f64)) -> f64) -> Option<ErrorBar> {
    let (mut variance, mut squares) = (0.0, 0.0);
    for stratum in strata.iter().filter(|stratum| stratum.rows > 0) {
        let (big, n) = (stratum.rows as f64, stratum.sample.len() as f64);
        if stratum.rows == stratum.sample.len() as u64 {
            continue;
        }
        if n < 2.0 {
            return None;
        }
        let mean = stratum.sample.iter().map(|&row| of(row)).sum::<f64>() / n;
        let spread = stratum.sample.iter().map(|&row| (of(row) - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let term = big * (big - n) * spread / n;
        variance += term;
        squares += term * term / (n - 1.0);
    }
    let df = if squares > 0.0 {
        variance * variance / squares
    } else {
        f64::INFINITY
    };
    let standard_error = variance.sqrt() / over.abs();
    let quantile = if df.is_finite() {
        student::quantile(df, 0.5 + 0.5 * level)
    } else {
        0.0
    };
    Some(ErrorBar {
        standard_error,
        df,
        half_width: quantile * standard_error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stratum(rows: u64, totals: &[f64]) -> Stratum {
        Stratum {
            rows,
            sample: totals.iter().map(|&t| (t, 1.0)).collect(),
        }
    }

    fn near(value: f64, wanted: f64) {
        assert!((value - wanted).abs() <= 1e-6 * wanted.abs(), "{value} for {wanted}");
    }

    /// One stratum: 50 rows, 5 of them with 12 9 15 10 14. 50 times 12 is 600; 50 · 45 · 6.5 / 5 = 2925; t(4) = 2.776445.
    #[test]
    fn a_simple_random_sample() {
        let found = total(&[stratum(50, &[12.0, 9.0, 15.0, 10.0, 14.0])], 0.95).unwrap();
        let bar = found.error.unwrap();
        near(found.value, 600.0);
        near(bar.standard_error, 54.083_269);
        near(bar.df, 4.0);
        near(bar.half_width, 150.159_2);
    }

    /// Three strata: 220 + 820 + 960; 93.3333 + 1473.3333 + 3510; Satterthwaite's degrees of freedom.
    #[test]
    fn strata_are_weighted_by_their_rows() {
        let strata = [
            stratum(10, &[20.0, 24.0, 22.0]),
            stratum(20, &[40.0, 38.0, 45.0]),
            stratum(30, &[31.0, 29.0, 36.0]),
        ];
        let found = total(&strata, 0.95).unwrap();
        let bar = found.error.unwrap();
        near(found.value, 2000.0);
        near(bar.standard_error, 71.250_73);
        near(bar.df, 3.554_954);
    }

    /// Two strata with totals and counts: 10400 / 513.3333, residuals around the mean of each stratum.
    #[test]
    fn a_ratio_of_two_totals() {
        let strata = [
            Stratum {
                rows: 10,
                sample: vec![(200.0, 10.0), (240.0, 12.0), (220.0, 10.0)],
            },
            Stratum {
                rows: 20,
                sample: vec![(400.0, 20.0), (380.0, 19.0), (450.0, 22.0)],
            },
        ];
        let found = ratio(&strata, 0.95).unwrap();
        near(found.value, 20.259_740);
        near(found.error.unwrap().standard_error, 0.157_045_1);
    }

    /// All ten samples of two of five rows: the mean of the estimates is the total, that of the variances the variance of the estimates.
    #[test]
    fn every_sample_of_two_of_five() {
        let rows = [3.0, 8.0, 1.0, 7.0, 11.0];
        let (mut values, mut variances) = (Vec::new(), 0.0);
        for i in 0..5 {
            for j in i + 1..5 {
                let found = total(&[stratum(5, &[rows[i], rows[j]])], 0.95).unwrap();
                values.push(found.value);
                variances += found.error.unwrap().standard_error.powi(2) / 10.0;
            }
        }
        let mean = values.iter().sum::<f64>() / 10.0;
        near(mean, 30.0);
        near(variances, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 10.0);
    }

    #[test]
    fn all_rows_leave_no_error_and_one_row_tells_none() {
        let whole = total(&[stratum(3, &[1.0, 2.0, 4.0])], 0.95).unwrap();
        assert_eq!((whole.value, whole.error.unwrap().half_width), (7.0, 0.0));
        assert_eq!(total(&[stratum(3, &[1.0])], 0.95).unwrap().error, None);
        assert_eq!(total(&[stratum(3, &[])], 0.95), None);
    }
}
