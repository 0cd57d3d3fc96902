//! How far a workload lies from the trace that it was fitted to, figure by figure, by what inspection says of both.
//!
//! # Bounds
//! Within its bound a figure counts as met: read share 1 point; mean sizes 3 %; medians and ninetieth percentiles of sizes
//! in the same octave; share of the writes to the hottest 1, 10 and 20 % of the written pages 5 points; LRU miss ratios at 1,
//! 5, 10, 20 and 50 % of the footprint 5 points (of all accesses, and of the reads by themselves); first touches 2 points;
//! footprint 10 %; sequential share among 32 streams 5 points; median lifetime a factor of 1.5; survival of what is written, where the
//! two curves are farthest apart, 10 points; share alive 5 points;
//! variation of the gaps 25 %; duplicates 3 points.
//! # Not compared
//! What inspection shows beyond these: rates by window, jumps, dirty reads, popularity of values.

use serde::Serialize;

use crate::inspect::{Curve, Inspection};

/// A figure of the original and of the workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deviation {
    pub figure: String,
    pub original: f64,
    pub fitted: f64,
    /// In words.
    pub bound: &'static str,
    /// Deviation by the bound: up to 1 it is met.
    pub by_bound: f64,
}

impl Deviation {
    /// Of write amplification, which only drives know; met within 10 %.
    pub fn of_waf(original: f64, fitted: f64) -> Self {
        let mut table = Table(Vec::new());
        table.ratio("WAF on a small drive", (Some(original), Some(fitted)), 1.1, "10 %");
        table.0.remove(0)
    }
}

/// Cache sizes as shares of the footprint.
const CACHES: [f64; 5] = [0.01, 0.05, 0.10, 0.20, 0.50];
const HOTTEST: [f64; 3] = [0.01, 0.10, 0.20];

/// Figures that both have.
pub fn deviations(original: &Inspection, fitted: &Inspection) -> Vec<Deviation> {
    let mut table = Table(Vec::new());
    let (a, b) = (original, fitted);
    table.points("read share", (a.counts.read_share, b.counts.read_share), 1.0, "1 point");
    for (op, a, b) in [
        ("read", &a.sizes.read, &b.sizes.read),
        ("write", &a.sizes.write, &b.sizes.write),
    ] {
        table.ratio(&format!("{op} mean size"), (a.mean_bytes, b.mean_bytes), 1.03, "3 %");
        let (p, q) = (&a.percentiles_bytes, &b.percentiles_bytes);
        table.octave(&format!("{op} median size"), (p.p50, q.p50));
        table.octave(&format!("{op} p90 size"), (p.p90, q.p90));
    }
    for share in HOTTEST {
        let of = |i: &Inspection| {
            let curve = &i.skew.write.hottest;
            let at = curve.x.iter().position(|x| *x == share)?;
            curve.y.get(at).copied()
        };
        table.points(&format!("writes to hottest {share}"), (of(a), of(b)), 5.0, "5 points");
    }
    // Caches as large as shares of the original's footprint, for both.
    let pages = |i: &Inspection, cache: f64| cache * i.footprint.pages_touched.value;
    for cache in CACHES {
        let (x, y) = (pages(a, cache), pages(b, cache));
        let all = (at(&a.reuse.all.miss_ratio, x), at(&b.reuse.all.miss_ratio, y));
        table.points(&format!("LRU misses {cache}"), all, 5.0, "5 points");
        let reads = (at(&a.reuse.read.miss_ratio, x), at(&b.reuse.read.miss_ratio, y));
        table.points(&format!("LRU misses {cache} reads"), reads, 5.0, "5 points");
    }
    let touched = |i: &Inspection| Some(i.footprint.pages_touched.value);
    table.ratio("pages", (touched(a), touched(b)), 1.1, "10 %");
    let first = |i: &Inspection| i.reuse.all.first_touch_share;
    table.points("first touches", (first(a), first(b)), 2.0, "2 points");
    let sequential = |i: &Inspection| i.sequentiality.all.streams_share;
    table.points("sequential", (sequential(a), sequential(b)), 5.0, "5 points");
    let lifetime = |i: &Inspection| i.lifetimes.percentiles_ticks.p50;
    table.ratio("median lifetime", (lifetime(a), lifetime(b)), 1.5, "x 1.5");
    let curves = (&a.lifetimes.survival_ticks, &b.lifetimes.survival_ticks);
    table.points(
        "survival",
        (Some(0.0), farthest(curves.0, curves.1)),
        10.0,
        "10 points apart",
    );
    let alive = |i: &Inspection| i.lifetimes.alive_share;
    table.points("alive", (alive(a), alive(b)), 5.0, "5 points");
    table.ratio("gap CV", (a.arrivals.gap_cv, b.arrivals.gap_cv), 1.25, "25 %");
    let duplicates = |i: &Inspection| i.content.as_ref().and_then(|content| content.duplicate_share);
    table.points("duplicates", (duplicates(a), duplicates(b)), 3.0, "3 points");
    table.0
}

/// One number for how far two lie apart. A figure that misses its bound counts as one, and what lies nearer or farther
/// decides between equals; far is far.
pub fn distance(deviations: &[Deviation]) -> f64 {
    deviations
        .iter()
        .map(|figure| f64::from(u8::from(figure.by_bound > 1.0)) + 0.4 * figure.by_bound.min(2.0))
        .sum()
}

struct Table(Vec<Deviation>);

impl Table {
    fn push(&mut self, figure: &str, (original, fitted): (f64, f64), bound: &'static str, by_bound: f64) {
        self.0.push(Deviation {
            figure: figure.to_owned(),
            original,
            fitted,
            bound,
            by_bound,
        });
    }

    fn points(&mut self, figure: &str, pair: (Option<f64>, Option<f64>), most: f64, bound: &'static str) {
        if let (Some(x), Some(y)) = pair {
            self.push(figure, (x, y), bound, (x - y).abs() * 100.0 / most);
        }
    }

    fn ratio(&mut self, figure: &str, pair: (Option<f64>, Option<f64>), most: f64, bound: &'static str) {
        if let (Some(x), Some(y)) = pair {
            let by_bound = match x == y {
                true => 0.0,
                false => libm::fabs(libm::log(x / y)) / libm::log(most),
            };
            // The logarithm of nothing is infinite; of nothing by nothing it is not reached.
            self.push(figure, (x, y), bound, by_bound);
        }
    }

    fn octave(&mut self, figure: &str, pair: (Option<f64>, Option<f64>)) {
        if let (Some(x), Some(y)) = pair {
            let octave = |bytes: f64| (bytes as u64).max(1).ilog2();
            let apart = octave(x).abs_diff(octave(y));
            self.push(figure, (x, y), "octave", f64::from(apart) * 2.0);
        }
    }
}

/// The miss ratio of a cache of `pages`, between the points of the curve by the logarithm of the size.
fn at(curve: &Curve, pages: f64) -> Option<f64> {
    let after = curve.x.partition_point(|x| *x <= pages);
    let (last, first) = (*curve.y.last()?, *curve.y.first()?);
    if after == 0 {
        return Some(first);
    }
    let (Some(&x1), Some(&y1)) = (curve.x.get(after), curve.y.get(after)) else {
        return Some(last);
    };
    let (x0, y0) = (curve.x[after - 1], curve.y[after - 1]);
    let part = libm::log(pages / x0) / libm::log(x1 / x0);
    Some(y0 + (y1 - y0) * part)
}

/// How far two survival curves are apart at most: steps from 1 down, each at its `x`.
fn farthest(a: &Curve, b: &Curve) -> Option<f64> {
    let at = |curve: &Curve, x: f64| match curve.x.partition_point(|&point| point <= x) {
        0 => 1.0,
        after => curve.y[after - 1],
    };
    let apart = a.x.iter().chain(&b.x).map(|&x| (at(a, x) - at(b, x)).abs());
    let empty = a.x.is_empty() || b.x.is_empty();
    (!empty).then(|| apart.fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_read_between_their_points() {
        let mut curve = Curve::new("cache_pages", "miss_ratio");
        curve.push(1.0, 0.9);
        curve.push(4.0, 0.5);
        // 2 is half way from 1 to 4 by the logarithm.
        for (pages, ratio) in [(0.5, 0.9), (1.0, 0.9), (2.0, 0.7), (4.0, 0.5), (9.0, 0.5)] {
            let found = at(&curve, pages).unwrap();
            assert!((found - ratio).abs() < 1e-12, "{pages}: {found}");
        }
        assert_eq!(at(&Curve::new("", ""), 1.0), None);
    }

    #[test]
    fn survival_is_compared_where_it_is_farthest_apart() {
        let curve = |points: &[(f64, f64)]| {
            let mut curve = Curve::new("lifetime_ticks", "alive_share");
            points.iter().for_each(|&(x, y)| curve.push(x, y));
            curve
        };
        // Between 4 and 8: a half against nine tenths.
        let (a, b) = (
            curve(&[(1.0, 0.9), (4.0, 0.5), (16.0, 0.0)]),
            curve(&[(2.0, 0.9), (8.0, 0.4)]),
        );
        assert_eq!(farthest(&a, &b), Some(0.4));
        assert_eq!((farthest(&a, &a), farthest(&a, &curve(&[]))), (Some(0.0), None));
    }

    #[test]
    fn a_bound_is_met_up_to_itself() {
        let mut table = Table(Vec::new());
        table.points("share", (Some(0.5), Some(0.515)), 3.0, "3 points");
        table.ratio("size", (Some(2.0), Some(4.0)), 2.0, "x 2");
        table.ratio("none", (Some(2.0), None), 2.0, "x 2");
        table.octave("bin", (Some(4096.0), Some(8191.0)));
        table.octave("bin", (Some(4096.0), Some(8192.0)));
        let by_bound: Vec<f64> = table.0.iter().map(|d| (d.by_bound * 1e6).round() / 1e6).collect();
        assert_eq!(by_bound, [0.5, 1.0, 0.0, 2.0]);
        // One misses its bound, and four tenths of 0.5 + 1 + 0 + 2.
        assert!((distance(&table.0) - 2.4).abs() < 1e-6);
    }
}
