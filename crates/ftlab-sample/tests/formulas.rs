//! How often intervals of formulas hold the true value, over many samples of one population.

use ftlab_core::Stream;
use ftlab_sample::estimate::{Quantiles, Stratum};
use ftlab_sample::expression::Operator;
use ftlab_sample::formula::Formula;
use ftlab_sample::sql::Kind;
use ftlab_sample::totals::{Shape, Totals};

/// A bell curve of mean 0 and standard deviation 1: twelve uniform draws.
fn bell(random: &mut Stream) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// Two values of a record, which go together.
type Disk = Vec<Vec<(f64, f64)>>;

fn population(sizes: &[usize], random: &mut Stream) -> Vec<Disk> {
    let partition = |number: usize, random: &mut Stream| -> Vec<(f64, f64)> {
        let mean = 50.0 + 6.0 * number as f64 + 8.0 * bell(random);
        let records = 60 + random.below(81);
        let record = |random: &mut Stream| {
            let x = mean + 12.0 * bell(random);
            (x, 0.5 * x + 20.0 + 6.0 * bell(random))
        };
        (0..records).map(|_| record(random)).collect()
    };
    let disk = |(number, &size): (usize, &usize)| (0..size).map(|_| partition(number, random)).collect();
    sizes.iter().enumerate().map(disk).collect()
}

fn first_of<T: Clone>(all: &[T], count: usize, random: &mut Stream) -> Vec<T> {
    let mut all = all.to_vec();
    for at in 0..count {
        let other = at + random.below((all.len() - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(count);
    all
}

/// `sum(x) / sum(y)`, `avg(x) - avg(y)` and `sum(x) - 2 * sum(y)`, of the totals x, y and count.
fn formulas() -> [Formula; 3] {
    let total = |at| Box::new(Formula::Total(at));
    let compute = |how, a, b| Formula::Compute(how, a, b);
    let mean = |at| Box::new(compute(Operator::Divide, total(at), total(2)));
    let twice = Box::new(compute(Operator::Multiply, Box::new(Formula::Number(2.0)), total(1)));
    [
        compute(Operator::Divide, total(0), total(1)),
        compute(Operator::Subtract, mean(0), mean(1)),
        compute(Operator::Subtract, total(0), twice),
    ]
}

/// Of each formula the share of intervals that hold the truth.
fn covered(sizes: &[usize], drawn: usize, share: f64, samples: usize) -> [f64; 3] {
    let mut random = Stream::new(5, "population");
    let disks = population(sizes, &mut random);
    let all = || disks.iter().flatten().flatten();
    let truths = [
        all().map(|(x, _)| x).sum::<f64>(),
        all().map(|(_, y)| y).sum(),
        all().count() as f64,
    ];
    let formulas = formulas();
    let pairs = vec![(0, 1), (0, 2), (1, 2)];
    let shape = Shape::with_pairs(vec![Kind::Sum, Kind::Sum, Kind::Count], pairs, share < 1.0, false);
    let mut quantiles = Quantiles::new(0.95);
    let mut held = [0; 3];
    for _ in 0..samples {
        let (mut strata, mut moments) = (Vec::new(), Vec::new());
        for disk in &disks {
            let mut totals = Totals::new(shape.clone());
            for partition in first_of(disk, drawn, &mut random) {
                let taken = ((share * partition.len() as f64).round() as usize).max(2);
                totals.begin(partition.len() as u64, taken as u64);
                for (x, y) in first_of(&partition, taken, &mut random) {
                    totals.record();
                    let group = totals.group(b"", ftlab_sample::keys::hash(b""));
                    totals.add(group, 0, x, 0.0);
                    totals.add(group, 1, y, 0.0);
                    totals.add(group, 2, 1.0, 0.0);
                }
            }
            totals.close();
            moments.push(totals.moments(b""));
            strata.push(Stratum::new(disk.len() as u64, drawn as u64));
        }
        for (held, formula) in held.iter_mut().zip(&formulas) {
            let truth = formula.value(&|at| truths[at]).unwrap();
            let found = formula.estimate(&moments, &strata, &mut quantiles, share < 1.0);
            let interval = found.unwrap().interval.unwrap();
            *held += u32::from(interval.low <= truth && truth <= interval.high);
        }
    }
    held.map(|held| f64::from(held) / samples as f64)
}

const UNEQUAL: &[usize] = &[20, 30, 40, 50, 60, 65, 70, 80];

/// The binomial standard error of 600 samples is 0.009.
#[test]
fn intervals_of_formulas_cover_as_they_say() {
    for covered in covered(UNEQUAL, 4, 0.2, 600) {
        assert!((0.91..=0.985).contains(&covered), "{covered}");
    }
}

#[test]
#[ignore = "takes a minute: cargo test --release -p ftlab-sample --test formulas -- --ignored --nocapture"]
fn intervals_of_formulas_cover_as_they_say_over_many_samples() {
    for (name, sizes, drawn, share, (low, high)) in [
        ("one disk, 20", &[400][..], 20, 1.0, (0.93, 0.965)),
        ("one disk, 20, records too", &[400], 20, 0.2, (0.93, 0.965)),
        ("8 disks, 4 of each", UNEQUAL, 4, 1.0, (0.93, 0.97)),
        ("8 disks, 4 of each, records too", UNEQUAL, 4, 0.2, (0.93, 0.97)),
        ("8 disks, 2 of each", UNEQUAL, 2, 1.0, (0.93, 0.985)),
    ] {
        let found = covered(sizes, drawn, share, 4000);
        println!("{name}: {found:.3?}");
        for covered in found {
            assert!((low..=high).contains(&covered), "{name}: {covered}");
        }
    }
}
