//! Numbers that are made of several totals: `sum(a) / sum(b)`, `100 * count(x) / count(*)`, `avg(x) - avg(y)`.
//!
//! # Model
//! With `X` the estimated totals, the value is `f(X)`. Its variance is that of the total of `Σ g t`, where `t` are the totals of a partition and `g` the derivatives of `f` at `X`
//! (Taylor linearization, or delta method). Of two totals that is the combined ratio estimator of `estimate`. An average is its sum over its count. Where files tell
//! how many rows partitions have, totals are those per row times all rows (`estimate`), and the total of rows is one more that `f` is of. Degrees of freedom by Satterthwaite.
//!
//! # Not modelled
//! Curvature: where a divisor is known to no better than a fifth of itself, the interval is not to be trusted.
//!
//! # Errors
//! No value where something is divided by 0, or a root or logarithm is of what has none.
//!
//! # Cost
//! A number for each pair of totals of a formula, of each group and lane.
//!
//! # Source
//! Cochran, Sampling Techniques, 3rd ed. 1977, chapter 6; Wolter, Introduction to Variance Estimation, 2nd ed. 2007, chapter 6.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::doubled::Doubled;
use crate::estimate::{Estimate, Quantiles, Stratum, all_rows, df_range, is_blind, left};
use crate::expression::Operator;
use crate::sql::{LONGEST_QUERY, Select};
use crate::totals::{Products, Sums};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Vec<Step>", try_from = "Vec<Step>")]
pub enum Formula {
    /// A total, by its number among the aggregates.
    Total(usize),
    Number(f64),
    Compute(Operator, Box<Formula>, Box<Formula>),
    Call(Function, Box<Formula>),
}

/// A formula as it is written for other machines: steps that each take what they are of from the end of those before, as depth of JSON is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Total(usize),
    Number(#[serde(with = "crate::exact")] f64),
    Compute(Operator),
    Call(Function),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    Sqrt,
    Ln,
    Exp,
}

impl From<Formula> for Vec<Step> {
    fn from(formula: Formula) -> Vec<Step> {
        let mut steps = Vec::new();
        formula.write(&mut steps);
        steps
    }
}

impl TryFrom<Vec<Step>> for Formula {
    type Error = String;

    fn try_from(steps: Vec<Step>) -> Result<Formula, String> {
        // Each operator is a level of recursion, and no query has more.
        if steps.len() > LONGEST_QUERY {
            return Err(format!("a formula of {} steps", steps.len()));
        }
        let mut done: Vec<Formula> = Vec::new();
        for step in steps {
            let mut last = || done.pop().map(Box::new).ok_or("a formula without a part");
            let formula = match step {
                Step::Total(at) => Formula::Total(at),
                Step::Number(number) => Formula::Number(number),
                Step::Call(function) => Formula::Call(function, last()?),
                Step::Compute(how) => {
                    let b = last()?;
                    Formula::Compute(how, last()?, b)
                }
            };
            done.push(formula);
        }
        match <[Formula; 1]>::try_from(done) {
            Ok([formula]) => Ok(formula),
            Err(parts) => Err(format!("a formula of {} parts", parts.len())),
        }
    }
}

/// A value, and its derivative by each of the totals.
struct Dual {
    value: f64,
    gradient: Vec<f64>,
}

impl Formula {
    /// The totals in it, each once and in order.
    pub fn totals(&self) -> BTreeSet<usize> {
        match self {
            Formula::Total(at) => BTreeSet::from([*at]),
            Formula::Number(_) => BTreeSet::new(),
            Formula::Call(_, of) => of.totals(),
            Formula::Compute(_, a, b) => {
                let mut all = a.totals();
                all.extend(b.totals());
                all
            }
        }
    }

    /// The same with the number `value` in the place of each of `totals`, which is known.
    pub fn with(&self, totals: &[usize], value: f64) -> Formula {
        let of = |part: &Formula| Box::new(part.with(totals, value));
        match self {
            Formula::Total(at) if totals.contains(at) => Formula::Number(value),
            Formula::Total(_) | Formula::Number(_) => self.clone(),
            Formula::Call(function, part) => Formula::Call(*function, of(part)),
            Formula::Compute(how, a, b) => Formula::Compute(*how, of(a), of(b)),
        }
    }

    fn write(&self, steps: &mut Vec<Step>) {
        match self {
            Formula::Total(at) => steps.push(Step::Total(*at)),
            Formula::Number(number) => steps.push(Step::Number(*number)),
            Formula::Call(function, of) => {
                of.write(steps);
                steps.push(Step::Call(*function));
            }
            Formula::Compute(how, a, b) => {
                a.write(steps);
                b.write(steps);
                steps.push(Step::Compute(*how));
            }
        }
    }

    /// Its value, where `total` gives the totals.
    pub fn value(&self, total: &impl Fn(usize) -> f64) -> Option<f64> {
        let value = match self {
            Formula::Total(at) => total(*at),
            Formula::Number(number) => *number,
            Formula::Call(function, of) => function.value(of.value(total)?),
            Formula::Compute(how, a, b) => compute(*how, a.value(total)?, b.value(total)?)?,
        };
        value.is_finite().then_some(value)
    }

    /// With derivatives by `totals`, whose values are `at`.
    fn dual(&self, totals: &[usize], at: &[f64]) -> Option<Dual> {
        let constant = |value| Dual {
            value,
            gradient: vec![0.0; totals.len()],
        };
        let dual = match self {
            Formula::Number(number) => constant(*number),
            Formula::Total(number) => {
                let place = totals.iter().position(|total| total == number)?;
                let mut dual = constant(at[place]);
                dual.gradient[place] = 1.0;
                dual
            }
            Formula::Call(function, of) => {
                let mut dual = of.dual(totals, at)?;
                let slope = function.slope(dual.value);
                dual.gradient.iter_mut().for_each(|g| *g *= slope);
                dual.value = function.value(dual.value);
                dual
            }
            Formula::Compute(how, a, b) => {
                let (mut a, b) = (a.dual(totals, at)?, b.dual(totals, at)?);
                let value = compute(*how, a.value, b.value)?;
                let (by_a, by_b) = match how {
                    Operator::Add => (1.0, 1.0),
                    Operator::Subtract => (1.0, -1.0),
                    Operator::Multiply => (b.value, a.value),
                    Operator::Divide | Operator::Remainder => (1.0 / b.value, -value / b.value),
                };
                let pairs = a.gradient.iter_mut().zip(&b.gradient);
                pairs.for_each(|(a, b)| *a = by_a * *a + by_b * b);
                a.value = value;
                a
            }
        };
        (dual.value.is_finite() && dual.gradient.iter().all(|g| g.is_finite())).then_some(dual)
    }

    /// The estimate from `disks`: of each, the sums and products of its sample, none of a disk with nothing of the group.
    pub fn estimate(
        &self,
        disks: &[Option<Moments>],
        strata: &[Stratum],
        quantiles: &mut Quantiles,
        within: bool,
    ) -> Option<Estimate> {
        let totals: Vec<usize> = self.totals().into_iter().collect();
        let with = || {
            let both = disks.iter().zip(strata);
            both.filter_map(|(moments, stratum)| Some((moments.as_ref().filter(|_| stratum.drawn > 0)?, stratum)))
        };
        let mut at = vec![0.0; totals.len()];
        for (moments, stratum) in with() {
            let weight = stratum.weight();
            for (sum, total) in at.iter_mut().zip(&totals) {
                *sum += weight * moments.sums[*total].t.value();
            }
        }
        let rows = all_rows(strata).map(|all| {
            let drawn = strata.iter().filter(|stratum| stratum.drawn > 0);
            let found = drawn.map(|stratum| stratum.weight() * stratum.rows.map_or(0.0, |rows| rows.drawn as f64));
            (all, found.sum::<f64>())
        });
        let rows = rows.filter(|&(_, found)| found > 0.0);
        let scale = rows.map_or(1.0, |(all, found)| all / found);
        at.iter_mut().for_each(|total| *total *= scale);
        let Dual { value, mut gradient } = self.dual(&totals, &at)?;
        // Each total is over that of rows, so that all shrink as it grows.
        let by_rows = rows.map(|(_, found)| -gradient.iter().zip(&at).map(|(g, t)| g * t).sum::<f64>() / found);
        gradient.iter_mut().for_each(|g| *g *= scale);
        if totals.is_empty() || strata.iter().all(Stratum::is_whole) && !within {
            return Some(Estimate::exact(value));
        }
        if is_blind(strata) {
            return Some(Estimate { value, interval: None });
        }
        let (mut variance, mut squares) = (0.0, 0.0);
        let none = Moments::default();
        for (moments, &stratum) in disks.iter().zip(strata).filter(|(_, stratum)| stratum.drawn > 0) {
            let of_disk = match (moments, by_rows) {
                (None, None) => continue,
                (None, Some(by_rows)) => none.variance(&[], &[], by_rows, stratum),
                (Some(moments), by_rows) => moments.variance(&totals, &gradient, by_rows.unwrap_or(0.0), stratum),
            };
            variance += of_disk;
            squares += of_disk * of_disk / (stratum.drawn as f64 - 1.0).max(1.0);
        }
        // Partitions that were alike do not tell that the others are.
        if variance == 0.0 {
            return Some(Estimate { value, interval: None });
        }
        let (least, sum) = df_range(strata, within);
        let df = if squares > 0.0 {
            (variance * variance / squares).clamp(least, sum)
        } else {
            sum
        };
        Some(Estimate::symmetric(value, variance.sqrt(), quantiles.of(df), df))
    }
}

/// What is kept of the sample of a disk, of one group: of each aggregate its sums, of each pair their products.
#[derive(Default)]
pub struct Moments {
    pub sums: Vec<Sums>,
    pub products: Products,
}

impl Moments {
    /// Where every aggregate counts the same rows.
    pub fn of_counts(select: &Select, sums: Sums) -> Moments {
        let products = select.pairs().into_iter();
        Moments {
            sums: vec![sums; select.kinds.len()],
            products: Products::new(products.map(|pair| (pair, sums.tt, Doubled::default()))),
        }
    }

    pub fn add(&mut self, other: &Moments) {
        self.sums
            .iter_mut()
            .zip(&other.sums)
            .for_each(|(all, one)| all.add(one));
        self.products.add(&other.products);
    }

    /// Of the total of `Σ g t`, and `by_rows` times the rows of a partition.
    fn variance(&self, totals: &[usize], gradient: &[f64], by_rows: f64, stratum: Stratum) -> f64 {
        let (weight, between) = (stratum.weight(), stratum.between());
        let (mut variance, mut size) = (Doubled::default(), 0.0);
        if let Some((x, xx)) = stratum.rows.map(|rows| rows.sums()) {
            let square = Doubled::product(by_rows, by_rows);
            variance += square * (between * stratum.around(xx, x, x));
            size += by_rows * by_rows * between * xx.value();
            for (&total, &g) in totals.iter().zip(gradient) {
                let of = &self.sums[total];
                variance += Doubled::product(2.0 * g, by_rows) * (between * stratum.around(of.tx, of.t, x));
            }
        }
        for (i, (&a, &ga)) in totals.iter().zip(gradient).enumerate() {
            let of = &self.sums[a];
            let own = between * stratum.around(of.tt, of.t, of.t) + weight * of.within_tt;
            variance += Doubled::product(ga, ga) * own;
            size += ga * ga * (between * of.tt.value() + weight * of.within_tt.value());
            for (&b, &gb) in totals[i + 1..].iter().zip(&gradient[i + 1..]) {
                let (both, within) = self.products.of(a, b);
                let covariance = between * stratum.around(both, of.t, self.sums[b].t) + weight * within;
                variance += Doubled::product(2.0 * ga, gb) * covariance;
            }
        }
        // Totals may go together exactly, as of `count(x) / count(*)` without nulls.
        left(variance, size)
    }
}

/// As in SQL, nothing is divided by zero.
fn compute(how: Operator, a: f64, b: f64) -> Option<f64> {
    match how {
        Operator::Add => Some(a + b),
        Operator::Subtract => Some(a - b),
        Operator::Multiply => Some(a * b),
        Operator::Divide => (b != 0.0).then(|| a / b),
        // Refused where it is read: a remainder jumps, so that no derivative tells how it varies.
        Operator::Remainder => None,
    }
}

impl Function {
    pub const NAMES: [&'static str; 3] = ["sqrt", "ln", "exp"];

    pub fn parse(name: &str) -> Option<Function> {
        match name {
            "sqrt" => Some(Function::Sqrt),
            "ln" => Some(Function::Ln),
            "exp" => Some(Function::Exp),
            _ => None,
        }
    }

    fn value(self, of: f64) -> f64 {
        match self {
            Function::Sqrt => libm::sqrt(of),
            Function::Ln => libm::log(of),
            Function::Exp => libm::exp(of),
        }
    }

    fn slope(self, at: f64) -> f64 {
        match self {
            Function::Sqrt => 0.5 / libm::sqrt(at),
            Function::Ln => 1.0 / at,
            Function::Exp => libm::exp(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::hash;
    use crate::sql::Kind;
    use crate::totals::{Shape, Totals};

    fn total(at: usize) -> Box<Formula> {
        Box::new(Formula::Total(at))
    }

    fn near(value: f64, wanted: f64) {
        assert!((value - wanted).abs() <= 1e-6 * wanted.abs(), "{value} for {wanted}");
    }

    /// Partitions of a disk as (sum, count), whole; and how many there are.
    fn estimate(formula: &Formula, disks: &[(u64, &[(f64, f64)])]) -> Estimate {
        let mut strata = Vec::new();
        let mut moments = Vec::new();
        for (partitions, drawn) in disks {
            let mut totals = Totals::new(Shape::with_pairs(
                vec![Kind::Sum, Kind::Sum],
                vec![(0, 1)],
                false,
                false,
            ));
            for &(t, z) in *drawn {
                totals.begin(0, 0);
                let group = totals.group(b"", hash(b""));
                totals.add(group, 0, t, 0.0);
                totals.add(group, 1, z, 0.0);
            }
            totals.close();
            moments.push(totals.moments(b""));
            strata.push(Stratum::new(*partitions, drawn.len() as u64));
        }
        formula
            .estimate(&moments, &strata, &mut Quantiles::new(0.95), false)
            .unwrap()
    }

    /// Worked example F of the statistics, a mean of two disks: 20.259740, standard error 0.1570451.
    #[test]
    fn a_ratio_is_the_combined_ratio_estimator() {
        let disks: [(u64, &[(f64, f64)]); 2] = [
            (10, &[(200.0, 10.0), (240.0, 12.0), (220.0, 10.0)]),
            (20, &[(400.0, 20.0), (380.0, 19.0), (450.0, 22.0)]),
        ];
        let ratio = Formula::Compute(Operator::Divide, total(0), total(1));
        let found = estimate(&ratio, &disks);
        near(found.value, 20.259_740);
        near(found.interval.unwrap().standard_error, 0.157_045_1);
        let hundred = Formula::Compute(Operator::Multiply, Box::new(Formula::Number(100.0)), Box::new(ratio));
        near(estimate(&hundred, &disks).interval.unwrap().standard_error, 15.704_51);
    }

    /// 12 9 15 10 14 of 50 partitions: 600, standard error 54.083269. Of 2 t + 3 t it is five times that, of t - t no error bar, of its square 1200 times, of its logarithm a 600th.
    #[test]
    fn derivatives_by_hand() {
        let drawn: Vec<(f64, f64)> = [12.0, 9.0, 15.0, 10.0, 14.0].map(|t| (2.0 * t, 3.0 * t)).to_vec();
        let of = |formula: &Formula| estimate(formula, &[(50, &drawn)]);
        let sum = of(&Formula::Compute(Operator::Add, total(0), total(1)));
        near(sum.value, 3000.0);
        near(sum.interval.unwrap().standard_error, 5.0 * 54.083_269);
        near(sum.interval.unwrap().df, 4.0);
        let third = Box::new(Formula::Compute(
            Operator::Divide,
            total(1),
            Box::new(Formula::Number(3.0)),
        ));
        let half = Box::new(Formula::Compute(
            Operator::Divide,
            total(0),
            Box::new(Formula::Number(2.0)),
        ));
        let nothing = of(&Formula::Compute(Operator::Subtract, half.clone(), third.clone()));
        // As of a sum of what is 0 in all partitions drawn, which tells nothing of the others.
        assert_eq!((nothing.value, nothing.interval), (0.0, None));
        let square = of(&Formula::Compute(Operator::Multiply, half.clone(), third));
        near(square.interval.unwrap().standard_error, 1200.0 * 54.083_269);
        let logarithm = of(&Formula::Call(Function::Ln, half.clone()));
        near(logarithm.interval.unwrap().standard_error, 54.083_269 / 600.0);
        let root = of(&Formula::Call(Function::Sqrt, half));
        near(root.interval.unwrap().standard_error, 54.083_269 * 0.5 / 600f64.sqrt());
    }

    /// 5 and 10 in each of the drawn, which does not tell that the others have as much.
    #[test]
    fn what_partitions_that_were_alike_give_has_no_error_bar() {
        let drawn = [(5.0, 10.0); 4];
        for (how, value) in [
            (Operator::Add, 750.0),
            (Operator::Multiply, 125_000.0),
            (Operator::Divide, 0.5),
        ] {
            let found = estimate(&Formula::Compute(how, total(0), total(1)), &[(50, &drawn)]);
            assert_eq!((found.value, found.interval), (value, None), "{how:?}");
        }
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        let ratio = Formula::Compute(Operator::Divide, total(0), total(1));
        assert_eq!(ratio.value(&|_| 0.0), None);
        assert_eq!(Formula::Call(Function::Ln, total(0)).value(&|_| -1.0), None);
    }
}
