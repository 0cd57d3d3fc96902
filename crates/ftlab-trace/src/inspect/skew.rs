//! How unevenly accesses fall on things, from the counts of the things.

use super::strata::{HOT_FROM, Scale};
use super::{Curve, SkewFigures};

const HOTTEST: [f64; 9] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
const FEWEST_POINTS: usize = 4;

/// Figures from the accesses of each thing in the sample (zeros are left out), of which `accesses` happened in all,
/// each thing standing for `weight` things.
pub fn figures(mut counts: Vec<u32>, accesses: u64, weight: u64) -> SkewFigures {
    counts.retain(|&count| count > 0);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let mut figures = SkewFigures {
        hottest: Curve::new("hottest_share", "access_share"),
        ..SkewFigures::default()
    };
    if counts.is_empty() {
        return figures;
    }
    let things = counts.len() as f64;
    let scale = scale(&counts, accesses, weight).factor();
    let scaled = |&count: &u32| {
        let hot = count.saturating_sub(HOT_FROM - 1);
        f64::from(count - hot) + f64::from(hot) * scale
    };
    let scaled: Vec<f64> = counts.iter().map(scaled).collect();
    let sum: f64 = scaled.iter().sum();
    for share in HOTTEST {
        figures.hottest.push(share, hottest(&scaled, share * things) / sum);
    }
    let fit = fit(&scaled);
    (figures.zipf_exponent, figures.zipf_r2) = (fit.map(|f| f.0), fit.map(|f| f.1));
    figures.unique_share = Some(things / sum);
    figures.mean_accesses = Some(sum / things);
    let once = counts.iter().rev().take_while(|&&count| count == 1).count();
    figures.once_share = Some(once as f64 / things);
    figures.standard_error = standard_error(&counts, accesses, weight);
    figures
}

/// See [`Sampling::standard_error`](super::Sampling).
pub fn standard_error(counts: &[u32], accesses: u64, weight: u64) -> f64 {
    if weight <= 1 || accesses == 0 {
        return 0.0;
    }
    let ((cold, cold_squares), (hot, hot_squares)) = cold_and_hot(counts);
    if cold == 0.0 {
        return 1.0;
    }
    let cold_share = (cold * weight as f64 / accesses as f64).min(1.0);
    let cold_error = cold_share * libm::sqrt(cold_squares) / cold;
    let hot_error = if hot > 0.0 { libm::sqrt(hot_squares) / hot } else { 1.0 };
    let hot_error = (1.0 - cold_share) * hot_error;
    libm::sqrt(cold_error * cold_error + hot_error * hot_error).min(1.0)
}

/// Sums, and sums of squares, of the cold and of the hot accesses of each thing.
fn cold_and_hot(counts: &[u32]) -> ((f64, f64), (f64, f64)) {
    let (mut cold, mut hot) = ((0.0, 0.0), (0.0, 0.0));
    for &count in counts {
        let above = f64::from(count.saturating_sub(HOT_FROM - 1));
        let below = f64::from(count) - above;
        cold = (cold.0 + below, cold.1 + below * below);
        hot = (hot.0 + above, hot.1 + above * above);
    }
    (cold, hot)
}

fn scale(counts: &[u32], accesses: u64, weight: u64) -> Scale {
    let ((cold, _), (hot, _)) = cold_and_hot(counts);
    Scale::new(accesses, cold as u64 * weight, hot as u64 * weight)
}

/// Accesses of the hottest `things`, the last one in part.
fn hottest(counts: &[f64], things: f64) -> f64 {
    let whole = libm::floor(things) as usize;
    let sum: f64 = counts.iter().take(whole).sum();
    let next = counts.get(whole).copied().unwrap_or(0.0);
    sum + (things - whole as f64) * next
}

/// Exponent and coefficient of determination (see [`SkewFigures::zipf_exponent`]).
fn fit(counts: &[f64]) -> Option<(f64, f64)> {
    let mut points = Vec::new();
    let mut before = 0;
    for half in 0..64 {
        let rank = libm::round(libm::exp2(f64::from(half) / 2.0)) as usize;
        match counts.get(rank.wrapping_sub(1)) {
            Some(&count) if count >= 2.0 && rank > before => {
                points.push((libm::log(rank as f64), libm::log(count)));
                before = rank;
            }
            Some(&count) if count >= 2.0 => {}
            _ => break,
        }
    }
    if points.len() < FEWEST_POINTS {
        return None;
    }
    let n = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in points {
        xx += (x - mean_x) * (x - mean_x);
        xy += (x - mean_x) * (y - mean_y);
        yy += (y - mean_y) * (y - mean_y);
    }
    // A flat line but for rounding.
    if yy < 1e-12 {
        return Some((0.0, 1.0));
    }
    Some((-xy / xx, xy * xy / (xx * yy)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_things() {
        // 91 accesses: one thing has 82, nine have one each.
        let mut counts = vec![1; 9];
        counts.extend([0, 82]);
        let figures = figures(counts, 91, 1);
        let at = |x: f64| figures.hottest.y[figures.hottest.x.iter().position(|s| *s == x).unwrap()];
        assert!((at(0.1) - 82.0 / 91.0).abs() < 1e-12);
        assert!((at(0.5) - 86.0 / 91.0).abs() < 1e-12);
        // A twentieth of ten things is half of the hottest one.
        assert!((at(0.05) - 41.0 / 91.0).abs() < 1e-12);
        assert_eq!((figures.once_share, figures.mean_accesses), (Some(0.9), Some(9.1)));
        assert_eq!((figures.zipf_exponent, figures.standard_error), (None, 0.0));
    }

    #[test]
    fn the_exponent_of_a_power_law() {
        let counts: Vec<u32> = (1..20_000)
            .map(|rank: u32| (1e6 / f64::from(rank).powf(0.8)) as u32)
            .collect();
        let accesses = counts.iter().map(|&c| u64::from(c)).sum();
        let figures = figures(counts, accesses, 1);
        assert!((figures.zipf_exponent.unwrap() - 0.8).abs() < 0.01);
        assert!(figures.zipf_r2.unwrap() > 0.999);
        let flat = super::figures(vec![7; 1000], 7000, 1);
        assert_eq!(flat.zipf_exponent, Some(0.0));
        assert!((flat.hottest.y[4] - 0.02).abs() < 1e-12);
    }

    #[test]
    fn errors_of_samples() {
        // 100 equal things that stand for all accesses: 1 / sqrt(100). Where they stand for half of them, the rest is
        // open.
        assert!((standard_error(&[3; 100], 600, 2) - 0.1).abs() < 1e-12);
        assert!(standard_error(&[3; 100], 1200, 2) > 0.5);
        // One hot thing among them: 5670 of the 6300 accesses are hot ones, known from that thing alone.
        assert!(standard_error(&[vec![3; 100], vec![1000]].concat(), 6300, 2) > 0.85);
        assert_eq!(standard_error(&[3; 100], 300, 1), 0.0);
        assert_eq!(figures(Vec::new(), 5, 2).standard_error, 0.0);
    }

    #[test]
    fn a_hot_thing_in_the_sample_does_not_count_twice() {
        // A thousand things once and one 515 times, 1515 accesses; every second thing is sampled, and the hot one too.
        let figures = figures([vec![1; 500], vec![515]].concat(), 1515, 2);
        // Cold: 2 × (500 + 15) = 1030, so 485 hot accesses, 242.5 for one thing of weight 2; with its cold ones 257.5.
        // A fifth of 501 things is that one and 99.2 others, of 757.5 accesses in the sample.
        assert!(
            (figures.hottest.y[7] - (257.5 + 99.2) / 757.5).abs() < 1e-9,
            "{:?}",
            figures.hottest
        );
    }
}
