//! What a sample of partitions tells of all: values with confidence intervals.
//!
//! # Model
//! A disk is a stratum of `N` partitions of which `n` were drawn without replacement. A total is the sum over disks of `N / n` times the sum of the drawn; its variance the sum
//! of `N (N - n) s² / n`, `s²` between the partitions of a disk, and, where records are sampled within partitions, of `N / n` times
//! `M (M - m) s² / m` of each. A ratio (avg, proportion) is that of two totals (combined ratio estimator), its variance that of the total of `t - R z` over the square of the
//! denominator. Degrees of freedom by Satterthwaite, within the least `n - 1` of a disk and the sum of all. Intervals by Student's t. Of
//! counts, and sums without a negative value, an interval does not go below what was seen. A proportion's stays within 0 and 1; below 5 % and above 95 % it is
//! made on the logit scale.
//!
//! A variance is what its sums leave once they are subtracted: `t - R z` of time stamps is small beside `t`. So it is worked out with twice the digits of 64 bits, from `t - R' z` with the
//! ratio `R'` of the first disk, which is near `R`: else the squares of variances, which degrees of freedom need, would want four times the digits.
//!
//! Where files tell how many rows each partition has (Parquet), `x`, a total is that per row times the `X` rows of all: `X` times the ratio of the totals of `t` and `x` (combined
//! ratio estimator). So what goes with the size of partitions does not widen the interval, and totals of groups add up to those of all. Such a ratio follows its largest partitions, so that what they leave over is too small by what they weigh: the
//! variance of a disk is widened by `1 + 2 (Σ x³ / Σ x² - Σ x / n) / X̂'`, `X̂'` the rows that each drawn partition's weight makes of all, which is the jackknife's where residuals go
//! with the size of partitions.
//!
//! Keys of a join that were drawn by a hash, each with the chance `p`, are units of one stratum (beside one of those that are certain, of which nothing varies): a total is the sum of the drawn over `p`, its variance the sum of
//! `(1 - p) / p² t²` (Horvitz and Thompson), with the keys of the group less one as degrees of freedom.
//!
//! # Not modelled
//! Skewed totals: where few partitions hold most of a sum, t intervals from few partitions cover less than they say.
//!
//! # Errors
//! No interval where one disk was not read whole and gave fewer than two partitions.
//!
//! # Source
//! Cochran, Sampling Techniques, 3rd ed. 1977, chapters 5, 6, 10 and 11; Royall and Cumberland, JASA 76 (1981), for the jackknife; Satterthwaite 1946; Lohr, Sampling, chapter 5. Equations 1.1 to 1.3 of Zhou's thesis are those of one
//! stratum, with misprints (`s_u²` is of totals, the second sum runs over the sample, its factor is `M (M - m)`).

use ftlab_core::student;
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::doubled::Doubled;
use crate::sql::Kind;
use crate::totals::Sums;

/// Partitions that a ratio has to rest on, if more were drawn.
const FEWEST: f64 = 5.0;

/// Partitions of a disk, and those of the sample; or keys, of which each was drawn by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stratum {
    pub partitions: u64,
    pub drawn: u64,
    /// Of keys: the chance of each.
    keys: Option<f64>,
    pub rows: Option<Rows>,
    /// What variances are multiplied by.
    widened: f64,
}

/// Rows of a disk, whose files tell how many each partition has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rows {
    pub all: u64,
    /// Of the drawn partitions, and the sums of their squares and cubes.
    pub drawn: u64,
    pub squares: u128,
    pub cubes: f64,
}

impl Rows {
    /// Their sum over drawn partitions, and that of their squares.
    pub(crate) fn sums(&self) -> (Doubled, Doubled) {
        let high = self.squares as f64;
        let low = (self.squares as i128 - high as i128) as f64;
        (Doubled::from(self.drawn as f64), Doubled { high, low })
    }
}

/// Widens the variances of disks whose partitions are of unequal size.
pub fn widened(mut strata: Vec<Stratum>) -> Vec<Stratum> {
    let rows = |stratum: &Stratum| stratum.rows.filter(|rows| rows.drawn > 0);
    let found = strata
        .iter()
        .filter_map(|stratum| Some(stratum.weight() * rows(stratum)?.drawn as f64));
    let found: f64 = found.sum();
    for stratum in &mut strata {
        if let Some(rows) = rows(stratum) {
            let apart = rows.cubes / rows.squares as f64 - rows.drawn as f64 / stratum.drawn as f64;
            stratum.widened = 1.0 + 2.0 * (stratum.weight() * apart / found).max(0.0);
        }
    }
    strata
}

/// How many rows all disks have, if all tell.
pub(crate) fn all_rows(strata: &[Stratum]) -> Option<f64> {
    let rows = strata.iter().map(|stratum| Some(stratum.rows?.all as f64));
    rows.sum::<Option<f64>>().filter(|_| !strata.is_empty())
}

impl Stratum {
    /// `drawn` of `partitions`, without replacement.
    pub fn new(partitions: u64, drawn: u64) -> Stratum {
        Stratum {
            partitions,
            drawn,
            keys: None,
            rows: None,
            widened: 1.0,
        }
    }

    pub fn with_rows(self, rows: Option<Rows>) -> Stratum {
        Stratum { rows, ..self }
    }

    /// `drawn` keys of nobody knows how many, each with the chance `share` (Poisson sampling).
    pub fn of_keys(share: f64, drawn: u64) -> Stratum {
        Stratum {
            partitions: drawn.max(1),
            drawn,
            keys: Some(share),
            rows: None,
            widened: 1.0,
        }
    }

    pub fn is_whole(&self) -> bool {
        self.keys.map_or(self.drawn == self.partitions, |share| share >= 1.0)
    }

    /// What a drawn unit stands for.
    pub(crate) fn weight(&self) -> f64 {
        self.keys
            .map_or_else(|| self.partitions as f64 / self.drawn as f64, |share| 1.0 / share)
    }

    /// What makes a variance of what `around` leaves of squares.
    pub(crate) fn between(&self) -> f64 {
        let (big, n) = (self.partitions as f64, self.drawn as f64);
        match self.keys {
            _ if self.drawn < 2 || self.is_whole() => 0.0,
            Some(share) => (1.0 - share) / (share * share),
            None => self.widened * big * (big - n) / n / (n - 1.0),
        }
    }

    /// The sum of products `both` around the means of `a` and `b`; of keys around 0, as how many were drawn is chance too.
    pub(crate) fn around(&self, both: Doubled, a: Doubled, b: Doubled) -> Doubled {
        match self.keys {
            Some(_) => both,
            None => both - a * b / self.drawn as f64,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    /// None where the sample does not tell.
    pub interval: Option<Interval>,
}

impl Estimate {
    /// Value and interval, as `docs/output.md` names them.
    pub fn json(&self) -> Json {
        match self.interval {
            None => json!({"value": self.value}),
            Some(interval) => json!({
                "value": self.value, "low": interval.low, "high": interval.high, "half_width": interval.half_width,
                "standard_error": interval.standard_error, "df": interval.df,
            }),
        }
    }

    /// The same as text. An answer may have ten thousands, and names of fields need no look at what is to be escaped in them.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend(b"{\"value\":");
        put(self.value, out);
        if let Some(interval) = self.interval {
            for (name, number) in [
                (&b",\"low\":"[..], interval.low),
                (b",\"high\":", interval.high),
                (b",\"half_width\":", interval.half_width),
                (b",\"standard_error\":", interval.standard_error),
                (b",\"df\":", interval.df),
            ] {
                out.extend(name);
                put(number, out);
            }
        }
        out.push(b'}');
    }
}

/// As JSON; what is not finite is null. Numbers and texts do not fail, nor does memory.
pub(crate) fn put(value: impl Serialize, out: &mut Vec<u8>) {
    let is_written = serde_json::to_writer(out, &value).is_ok();
    debug_assert!(is_written, "it is a number or a text");
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// Of the interval before it is kept to what is possible: quantile times standard error.
    pub half_width: f64,
    pub standard_error: f64,
    /// Infinite where nothing is uncertain.
    pub df: f64,
}

impl Estimate {
    /// Of which nothing is uncertain.
    pub(crate) fn exact(value: f64) -> Estimate {
        Estimate::symmetric(value, 0.0, 0.0, f64::INFINITY)
    }

    pub(crate) fn symmetric(value: f64, standard_error: f64, quantile: f64, df: f64) -> Estimate {
        let half_width = quantile * standard_error;
        Estimate {
            value,
            interval: Some(Interval {
                low: value - half_width,
                high: value + half_width,
                half_width,
                standard_error,
                df,
            }),
        }
    }
}

/// Whether a disk gave too little to tell how much its partitions differ.
pub(crate) fn is_blind(strata: &[Stratum]) -> bool {
    strata.iter().any(|s| s.partitions > 0 && s.drawn < 2 && !s.is_whole())
}

/// The least `n - 1` of a disk that is not known exactly, and their sum.
pub(crate) fn df_range(strata: &[Stratum], within: bool) -> (f64, f64) {
    let uncertain = strata.iter().filter(|s| s.drawn >= 2 && (within || !s.is_whole()));
    let (mut least, mut sum) = (f64::INFINITY, 0.0);
    for stratum in uncertain {
        least = least.min(stratum.drawn as f64 - 1.0);
        sum += stratum.drawn as f64 - 1.0;
    }
    // Disks that were read whole in one partition, with records sampled in it.
    if sum == 0.0 { (1.0, 1.0) } else { (least, sum) }
}

/// Quantiles of Student's t for two-sided intervals of one level: each number of degrees of freedom is worked out once, and from 200 on by the
/// expansion in their reciprocal (Abramowitz and Stegun 26.7.5), which is then as good as the exact one to eight digits.
pub struct Quantiles {
    p: f64,
    normal: f64,
    known: FxHashMap<u64, f64>,
}

impl Quantiles {
    pub fn new(level: f64) -> Quantiles {
        let p = 0.5 + 0.5 * level;
        Quantiles {
            p,
            normal: normal(p),
            known: FxHashMap::default(),
        }
    }

    pub fn of(&mut self, df: f64) -> f64 {
        if df < 200.0 {
            let p = self.p;
            return *self
                .known
                .entry(df.to_bits())
                .or_insert_with(|| student::quantile(df, p));
        }
        let z = self.normal;
        let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
        let first = (z3 + z) / 4.0;
        let second = (5.0 * z5 + 16.0 * z3 + 3.0 * z) / 96.0;
        let third = (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / 384.0;
        z + first / df + second / (df * df) + third / (df * df * df)
    }
}

/// The `p` quantile of the normal distribution, for 0.5 <= p < 1, by bisection.
pub fn normal(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if 0.5 * libm::erfc(middle / std::f64::consts::SQRT_2) > 1.0 - p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// What is left of squares that sum up to `size` once they are subtracted: nothing, where it is less than the rounding of the totals of partitions leaves; anything, where they were too large.
pub(crate) fn left(of: Doubled, size: f64) -> f64 {
    match of.value() {
        left if left.is_nan() => f64::INFINITY,
        left if left > ROUNDING * size => left,
        _ => 0.0,
    }
}

/// Totals of partitions are sums of many numbers of 64 bits, so that they are known to about 1e-14 of themselves.
const ROUNDING: f64 = 1e-28;

/// Sums over disks for one number of the answer. Disks are added in a fixed order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimator {
    /// Of a total by the rows of partitions: how many all have.
    rows: Option<f64>,
    /// Partitions drawn of disks that have something of the group; of ratios.
    drawn: f64,
    /// Of what a ratio is over; of a total, of itself.
    over: Spread,
    counted: Spread,
    /// What a proportion leaves over.
    others: Spread,
    t: f64,
    z: f64,
    seen: f64,
    /// The ratio of the first disk.
    near: Option<f64>,
    /// With `e = t - near z`: variance of `e`, covariance with `z`, variance of `z`.
    ee: Doubled,
    ez: Doubled,
    zz: Doubled,
    /// Of the squares that `ee` is what is left of.
    size: f64,
    /// Of the squares of a disk's variance `ee - 2 D ez + D² zz`, over its degrees of freedom: by powers of `D = R - near`.
    squares: [Doubled; 5],
}

/// How many equal partitions would have such sums.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    sum: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, sum: f64, squares: f64) {
        self.sum += sum;
        self.squares += squares;
    }

    /// Kish's effective number; 0 of nothing.
    fn partitions(&self) -> f64 {
        if self.squares > 0.0 {
            self.sum * self.sum / self.squares
        } else {
            0.0
        }
    }
}

impl Estimator {
    /// Of a total of disks that have `rows` together, where that is known: every disk must be added then.
    pub fn of_rows(rows: Option<f64>) -> Estimator {
        Estimator {
            rows,
            ..Estimator::default()
        }
    }

    /// A disk whose sums are `sums`.
    pub fn add(&mut self, stratum: Stratum, sums: &Sums) {
        if stratum.drawn == 0 {
            return;
        }
        let sums = match stratum.rows.filter(|_| self.rows.is_some()) {
            Some(rows) => &sums.over(rows),
            None => sums,
        };
        let weight = stratum.weight();
        self.t += weight * sums.t.value();
        self.z += weight * sums.z.value();
        self.seen += sums.t.value();
        let factor = stratum.between();
        let variance = |both: Doubled, a: Doubled, b: Doubled, within: Doubled| {
            factor * stratum.around(both, a, b) + weight * within
        };
        let tt = variance(sums.tt, sums.t, sums.t, sums.within_tt);
        let df = (stratum.drawn as f64 - 1.0).max(1.0);
        // What is certain whatever chance does is none of the units that an error bar rests on.
        let is_chance = stratum.keys.is_none_or(|share| share < 1.0);
        self.size += factor * sums.tt.value() + weight * sums.within_tt.value();
        if [sums.z, sums.zz, sums.within_zz] == [Doubled::default(); 3] {
            // A total is over nothing.
            let ee = tt.at_least_zero();
            self.ee += ee;
            self.squares[0] += ee * ee / df;
            if is_chance {
                self.over.add(sums.t.value(), sums.tt.value());
            }
            return;
        }
        if is_chance {
            self.drawn += stratum.drawn as f64;
            let others = sums.zz - sums.tz - sums.tz + sums.tt;
            self.over.add(sums.z.value(), sums.zz.value());
            self.counted.add(sums.t.value(), sums.tt.value());
            self.others.add((sums.z - sums.t).value(), others.value());
        }
        let ratio = sums.t.value() / sums.z.value();
        let near = *self.near.get_or_insert(if ratio.is_finite() { ratio } else { 0.0 });
        let tz = variance(sums.tz, sums.t, sums.z, sums.within_tz);
        let zz = variance(sums.zz, sums.z, sums.z, sums.within_zz).at_least_zero();
        let ez = tz - near * zz;
        let ee = (tt - near * tz - near * ez).at_least_zero();
        self.ee += ee;
        self.ez += ez;
        self.zz += zz;
        let powers = [
            ee * ee,
            -4.0 * (ee * ez),
            4.0 * (ez * ez) + 2.0 * (ee * zz),
            -4.0 * (ez * zz),
            zz * zz,
        ];
        for (sum, power) in self.squares.iter_mut().zip(powers) {
            *sum += power / df;
        }
    }

    /// The total of the numerator.
    pub fn total(&self) -> f64 {
        match self.rows {
            Some(all) if self.z > 0.0 => self.t * (all / self.z),
            _ => self.t,
        }
    }

    /// How many equal units would have such sums: of a total, of what a ratio is over.
    pub fn units(&self) -> f64 {
        self.over.partitions()
    }

    /// The value alone; none of a ratio over nothing.
    pub fn value(&self, kind: Kind) -> Option<f64> {
        match kind.is_ratio() {
            true if self.z == 0.0 => None,
            true => Some(self.t / self.z),
            false => Some(self.total()),
        }
    }

    /// The estimate; `strata` are all disks, also those that have not been added as they have nothing of a group. None of a ratio over nothing.
    pub fn finish(
        &self,
        kind: Kind,
        strata: &[Stratum],
        quantiles: &mut Quantiles,
        within: bool,
        negative: bool,
    ) -> Option<Estimate> {
        let value = self.value(kind)?;
        let whole = strata.iter().all(Stratum::is_whole) && !within;
        if whole {
            return Some(Estimate::exact(value));
        }
        if is_blind(strata) || self.is_sparse(kind) {
            return Some(Estimate { value, interval: None });
        }
        let ratio = match self.rows {
            _ if kind.is_ratio() => value,
            Some(_) => self.t / self.z,
            None => 0.0,
        };
        let away = Doubled::from(ratio) - Doubled::from(self.near.unwrap_or(0.0));
        let variance = left(self.ee - away * (2.0 * self.ez - away * self.zz), self.size);
        // Partitions that were alike do not tell that the others are.
        if variance == 0.0 {
            return Some(Estimate { value, interval: None });
        }
        let over = match self.rows {
            _ if kind.is_ratio() => self.z.abs(),
            Some(all) => self.z / all,
            None => 1.0,
        };
        let standard_error = variance.sqrt() / over;
        let df = self.df(variance, away, strata, within);
        let quantile = quantiles.of(df);
        let half_width = quantile * standard_error;
        let (mut low, mut high) = (value - half_width, value + half_width);
        match kind {
            Kind::Proportion if !(0.05..=0.95).contains(&value) && value > 0.0 && value < 1.0 => {
                let spread = half_width / (value * (1.0 - value));
                let middle = libm::log(value / (1.0 - value));
                let back = |logit: f64| 1.0 / (1.0 + libm::exp(-logit));
                (low, high) = (back(middle - spread), back(middle + spread));
            }
            Kind::Proportion => (low, high) = (low.max(0.0), high.min(1.0)),
            Kind::Count | Kind::Sum if !negative => low = low.max(if within { 0.0 } else { self.seen }),
            _ => {}
        }
        Some(Estimate {
            value,
            interval: Some(Interval {
                low,
                high,
                half_width,
                standard_error,
                df,
            }),
        })
    }

    /// Whether a ratio rests on few of the partitions drawn, so that its error bar would be chance.
    fn is_sparse(&self, kind: Kind) -> bool {
        let partitions = match kind {
            Kind::Average => self.over.partitions(),
            Kind::Proportion => self.counted.partitions().min(self.others.partitions()),
            Kind::Count | Kind::Sum if self.rows.is_some() => self.over.partitions(),
            Kind::Count | Kind::Sum => return false,
        };
        partitions < FEWEST && partitions < 0.5 * self.drawn
    }

    fn df(&self, variance: f64, away: Doubled, strata: &[Stratum], within: bool) -> f64 {
        let (least, sum) = df_range(strata, within);
        let powers = self.squares.iter().rev();
        let squares = powers
            .fold(Doubled::default(), |sum, &power| sum * away + power)
            .value();
        let df = if squares > 0.0 {
            variance * variance / squares
        } else {
            sum
        };
        df.clamp(least, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(partitions: &[(f64, f64)]) -> Sums {
        let mut sums = Sums::default();
        for &(t, z) in partitions {
            sums.add(&Sums {
                t: t.into(),
                z: z.into(),
                tt: Doubled::product(t, t),
                zz: Doubled::product(z, z),
                tz: Doubled::product(t, z),
                ..Sums::default()
            });
        }
        sums
    }

    fn estimate(kind: Kind, disks: &[(u64, &[(f64, f64)])]) -> Estimate {
        let strata: Vec<Stratum> = disks
            .iter()
            .map(|&(partitions, drawn)| Stratum::new(partitions, drawn.len() as u64))
            .collect();
        let mut estimator = Estimator::default();
        for (&stratum, (_, drawn)) in strata.iter().zip(disks) {
            estimator.add(stratum, &sums(drawn));
        }
        estimator
            .finish(kind, &strata, &mut Quantiles::new(0.95), false, true)
            .unwrap()
    }

    fn near(value: f64, wanted: f64) {
        assert!((value - wanted).abs() <= 1e-6 * wanted.abs(), "{value} for {wanted}");
    }

    fn plain(totals: &[f64]) -> Vec<(f64, f64)> {
        totals.iter().map(|&t| (t, 1.0)).collect()
    }

    /// 50 partitions, 5 drawn with 12 9 15 10 14: 600; 50 · 45 · 6.5 / 5 = 2925; t(4) = 2.776445.
    #[test]
    fn a_simple_random_sample() {
        let found = estimate(Kind::Count, &[(50, &plain(&[12.0, 9.0, 15.0, 10.0, 14.0]))]);
        let bar = found.interval.unwrap();
        near(found.value, 600.0);
        near(bar.standard_error, 54.083_269);
        near(bar.half_width, 150.159_2);
        near(bar.df, 4.0);
    }

    /// Worked example A: records within partitions too. 16893.3333 + 10/3 · 36.333333 = 17014.4444; as a ratio 1.061724 with 2 degrees.
    #[test]
    fn a_two_stage_sample() {
        let stratum = Stratum::new(10, 3);
        let mut of = sums(&[(32.0, 8.0), (70.0, 10.0), (18.0, 6.0)]);
        of.within_tt = 36.333_333_333.into();
        let mut estimator = Estimator::default();
        estimator.add(stratum, &of);
        let sum = estimator
            .finish(Kind::Sum, &[stratum], &mut Quantiles::new(0.95), true, true)
            .unwrap();
        near(sum.value, 400.0);
        near(sum.interval.unwrap().half_width, 561.235_6);
        let mean = estimator
            .finish(Kind::Average, &[stratum], &mut Quantiles::new(0.95), true, true)
            .unwrap();
        near(mean.value, 5.0);
        near(mean.interval.unwrap().standard_error, 1.061_724);
        near(mean.interval.unwrap().half_width, 4.568_228);
    }

    /// Worked example D: 20 30 25 25 records, 5 9 5 6 hits, of 40 partitions.
    #[test]
    fn a_proportion() {
        let found = estimate(
            Kind::Proportion,
            &[(40, &[(5.0, 20.0), (9.0, 30.0), (5.0, 25.0), (6.0, 25.0)])],
        );
        near(found.value, 0.25);
        near(found.interval.unwrap().half_width, 0.068_625_8);
    }

    /// Worked examples E and F: three disks of 10, 20 and 30 partitions; two disks and a ratio.
    #[test]
    fn disks_are_strata() {
        let (a, b, c) = (
            plain(&[20.0, 24.0, 22.0]),
            plain(&[40.0, 38.0, 45.0]),
            plain(&[31.0, 29.0, 36.0]),
        );
        let found = estimate(Kind::Sum, &[(10, &a), (20, &b), (30, &c)]);
        near(found.value, 2000.0);
        near(found.interval.unwrap().standard_error, 71.250_73);
        near(found.interval.unwrap().df, 3.554_954);
        let turned = estimate(Kind::Sum, &[(30, &c), (10, &a), (20, &b)]);
        near(turned.interval.unwrap().half_width, found.interval.unwrap().half_width);
        let found = estimate(
            Kind::Average,
            &[
                (10, &[(200.0, 10.0), (240.0, 12.0), (220.0, 10.0)]),
                (20, &[(400.0, 20.0), (380.0, 19.0), (450.0, 22.0)]),
            ],
        );
        near(found.value, 20.259_740);
        near(found.interval.unwrap().standard_error, 0.157_045_1);
    }

    /// Four keys with 12, 9, 15 and 10 rows, each drawn with a chance of a quarter: 46 / (1/4); (3/4) / (1/4)² · (144 + 81 + 225 + 100). Of their mean
    /// value, with values of 24, 9, 45 and 20 together: squares of 24 - 12 R, 9 - 9 R, 45 - 15 R, 20 - 10 R, R = 98 / 46.
    #[test]
    fn keys_of_a_chance_each() {
        let stratum = Stratum::of_keys(0.25, 4);
        let of = |partitions: &[(f64, f64)], kind| {
            let mut estimator = Estimator::default();
            estimator.add(stratum, &sums(partitions));
            estimator
                .finish(kind, &[stratum], &mut Quantiles::new(0.95), false, false)
                .unwrap()
        };
        let mut counts = sums(&plain(&[12.0, 9.0, 15.0, 10.0]));
        (counts.z, counts.zz, counts.tz) = Default::default();
        let mut estimator = Estimator::default();
        estimator.add(stratum, &counts);
        let count = estimator
            .finish(Kind::Count, &[stratum], &mut Quantiles::new(0.95), false, false)
            .unwrap();
        near(count.value, 184.0);
        near(count.interval.unwrap().standard_error, (12.0 * 550.0f64).sqrt());
        near(count.interval.unwrap().df, 3.0);
        near(estimator.units(), 46.0 * 46.0 / 550.0);
        let keys = [(24.0, 12.0), (9.0, 9.0), (45.0, 15.0), (20.0, 10.0)];
        let mean = of(&keys, Kind::Average);
        let ratio = 98.0 / 46.0;
        let squares: f64 = keys.iter().map(|(t, z)| (t - ratio * z).powi(2)).sum();
        near(mean.value, ratio);
        near(mean.interval.unwrap().standard_error, (12.0 * squares).sqrt() / 184.0);
    }

    /// All 32 samples of five keys with a chance of 0.3: the mean of the estimates is the total, that of the variances theirs.
    #[test]
    fn every_sample_of_keys() {
        let (totals, share) = ([3.0, 8.0, 1.0, 7.0, 11.0], 0.3);
        let (mut mean, mut square, mut variance) = (0.0, 0.0, 0.0);
        for taken in 0..32u32 {
            let drawn: Vec<f64> = (0..5).filter(|at| taken >> at & 1 == 1).map(|at| totals[at]).collect();
            let chance = f64::powi(share, drawn.len() as i32) * f64::powi(1.0 - share, 5 - drawn.len() as i32);
            // With two keys that have nothing, a variance is told of each.
            let stratum = Stratum::of_keys(share, drawn.len() as u64 + 2);
            let mut estimator = Estimator::default();
            let mut own = sums(&plain(&drawn));
            (own.z, own.zz, own.tz) = Default::default();
            estimator.add(stratum, &own);
            let found = estimator
                .finish(Kind::Sum, &[stratum], &mut Quantiles::new(0.95), false, true)
                .unwrap();
            mean += chance * found.value;
            square += chance * found.value * found.value;
            // Of the one sample without a key nothing is known.
            variance += chance * found.interval.map_or(0.0, |interval| interval.standard_error.powi(2));
        }
        near(mean, 30.0);
        near(variance, square - mean * mean);
    }

    #[test]
    fn quantiles_by_expansion_are_the_exact_ones() {
        for level in [0.5, 0.9, 0.95, 0.999] {
            let mut quantiles = Quantiles::new(level);
            for df in [3.5, 199.0, 200.0, 2345.6, 1e6] {
                let exact = student::quantile(df, 0.5 + 0.5 * level);
                assert!((quantiles.of(df) - exact).abs() < 1e-7 * exact, "{level} {df}");
            }
        }
    }

    /// All ten samples of two of five: the mean of the estimates is the total, that of the variances the variance of the estimates.
    #[test]
    fn every_sample_of_two_of_five() {
        let totals = [3.0, 8.0, 1.0, 7.0, 11.0];
        let (mut values, mut variances) = (Vec::new(), 0.0);
        for i in 0..5 {
            for j in i + 1..5 {
                let found = estimate(Kind::Sum, &[(5, &plain(&[totals[i], totals[j]]))]);
                values.push(found.value);
                variances += found.interval.unwrap().standard_error.powi(2) / 10.0;
            }
        }
        let mean = values.iter().sum::<f64>() / 10.0;
        near(mean, 30.0);
        near(variances, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 10.0);
    }

    #[test]
    fn whole_disks_leave_no_error_and_one_partition_tells_none() {
        let whole = estimate(Kind::Sum, &[(3, &plain(&[1.0, 2.0, 4.0])), (0, &[])]);
        assert_eq!((whole.value, whole.interval.unwrap().half_width), (7.0, 0.0));
        let one = estimate(Kind::Sum, &[(3, &plain(&[1.0])), (2, &plain(&[1.0, 1.0]))]);
        assert_eq!((one.value, one.interval), (5.0, None));
    }

    #[test]
    fn what_partitions_that_were_alike_give_has_no_error_bar() {
        for t in [0.0, 4.0] {
            let found = estimate(Kind::Count, &[(9, &[(t, 0.0), (t, 0.0), (t, 0.0)])]);
            assert_eq!((found.value, found.interval), (9.0 * t, None));
        }
        let mean = estimate(Kind::Average, &[(9, &[(8.0, 2.0), (4.0, 1.0), (8.0, 2.0)])]);
        assert_eq!((mean.value, mean.interval), (4.0, None));
    }
}
