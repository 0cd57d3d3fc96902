//! How often intervals hold the true value, over many samples of one population (partitions of 60 to 140 records).

use ftlab_core::Stream;
use ftlab_sample::estimate::{Estimate, Estimator, Quantiles, Stratum};
use ftlab_sample::keys::hash;
use ftlab_sample::sql::Kind;
use ftlab_sample::totals::{Shape, Totals};
use ftlab_sample::{SampleSpec, sample};

/// A bell curve of mean 0 and standard deviation 1: twelve uniform draws.
fn bell(random: &mut Stream) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

type Disk = Vec<Vec<f64>>;

#[derive(Clone, Copy)]
enum Values {
    /// Around the partition's mean, with a standard deviation of 12.
    Bell,
    /// The exponential of a bell curve of standard deviation 1, times the partition's mean.
    Skewed,
    /// 1 with about one chance in ten, 0 else.
    Hits,
}

/// Disks of so many partitions, whose means are so far apart.
fn population(sizes: &[usize], apart: f64, values: Values, random: &mut Stream) -> Vec<Disk> {
    let partition = |number: usize, random: &mut Stream| -> Vec<f64> {
        let mean = 50.0 + apart * number as f64 + 8.0 * bell(random);
        let records = 60 + random.below(81);
        (0..records)
            .map(|_| match values {
                Values::Bell => mean + 12.0 * bell(random),
                Values::Skewed => mean * bell(random).exp(),
                Values::Hits => f64::from(u8::from(random.unit() < mean / 500.0)),
            })
            .collect()
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

/// An estimate from `drawn` partitions of each disk and a share of their records, through the sums that the engine keeps.
fn estimate(disks: &[Disk], drawn: usize, share: f64, kind: Kind, random: &mut Stream) -> Estimate {
    let within = share < 1.0;
    let mut strata = Vec::new();
    let mut estimator = Estimator::default();
    for disk in disks {
        let mut totals = Totals::new(Shape::new(vec![kind], within));
        for partition in first_of(disk, drawn, random) {
            let taken = ((share * partition.len() as f64).round() as usize).max(2);
            totals.begin(partition.len() as u64, taken as u64);
            for value in first_of(&partition, taken, random) {
                totals.record();
                let group = totals.group(b"", hash(b""));
                totals.add(group, 0, value, 1.0);
            }
        }
        totals.close();
        let stratum = Stratum::new(disk.len() as u64, drawn as u64);
        let (_, _, sums) = totals.groups().next().unwrap();
        estimator.add(stratum, &sums[0]);
        strata.push(stratum);
    }
    estimator
        .finish(kind, &strata, &mut Quantiles::new(0.95), within, true)
        .unwrap()
}

/// The share of intervals that hold the truth, the bias, and the mean variance over the observed one.
fn repeated(
    disks: &[Disk],
    drawn: usize,
    share: f64,
    kind: Kind,
    samples: u32,
    random: &mut Stream,
) -> (f64, f64, f64) {
    let all = || disks.iter().flatten().flatten();
    let total: f64 = all().sum();
    let truth = if kind.is_ratio() {
        total / all().count() as f64
    } else {
        total
    };
    let (mut held, mut bias, mut variance, mut spread) = (0, 0.0, 0.0, 0.0);
    for _ in 0..samples {
        let found = estimate(disks, drawn, share, kind, random);
        let bar = found.interval.unwrap();
        held += u32::from(bar.low <= truth && truth <= bar.high);
        bias += (found.value - truth) / f64::from(samples);
        variance += bar.standard_error.powi(2) / f64::from(samples);
        spread += (found.value - truth).powi(2) / f64::from(samples);
    }
    (f64::from(held) / f64::from(samples), bias / truth, variance / spread)
}

struct Design {
    name: &'static str,
    sizes: &'static [usize],
    apart: f64,
    values: Values,
    drawn: usize,
    share: f64,
    kind: Kind,
    /// What the coverage must be.
    covers: (f64, f64),
}

const UNEQUAL: &[usize] = &[20, 30, 40, 50, 60, 65, 70, 80];
const ALIKE: &[usize] = &[50; 8];

/// The binomial standard error of 2000 samples is 0.005.
const DESIGNS: &[Design] = &[
    design(
        "sum, one stage, 20",
        &[400],
        0.0,
        Values::Bell,
        (20, 1.0),
        Kind::Sum,
        (0.93, 0.965),
    ),
    design(
        "sum, records too, 20",
        &[400],
        0.0,
        Values::Bell,
        (20, 0.2),
        Kind::Sum,
        (0.93, 0.965),
    ),
    design(
        "sum, records too, 5",
        &[400],
        0.0,
        Values::Bell,
        (5, 0.2),
        Kind::Sum,
        (0.93, 0.965),
    ),
    design(
        "mean, records too, 20",
        &[400],
        0.0,
        Values::Bell,
        (20, 0.2),
        Kind::Average,
        (0.93, 0.965),
    ),
    design(
        "mean, records too, 5",
        &[400],
        0.0,
        Values::Bell,
        (5, 0.2),
        Kind::Average,
        (0.93, 0.965),
    ),
    design(
        "proportion, one stage, 40",
        &[400],
        0.0,
        Values::Hits,
        (40, 1.0),
        Kind::Proportion,
        (0.93, 0.965),
    ),
    design(
        "proportion, records too, 20",
        &[400],
        0.0,
        Values::Hits,
        (20, 0.2),
        Kind::Proportion,
        (0.93, 0.965),
    ),
    design(
        "sum, skewed, 80",
        &[400],
        0.0,
        Values::Skewed,
        (80, 0.2),
        Kind::Sum,
        (0.925, 0.965),
    ),
    design(
        "sum, 8 disks, 4 of each",
        ALIKE,
        0.0,
        Values::Bell,
        (4, 0.2),
        Kind::Sum,
        (0.93, 0.97),
    ),
    design(
        "sum, disks apart",
        ALIKE,
        6.0,
        Values::Bell,
        (4, 0.2),
        Kind::Sum,
        (0.93, 0.97),
    ),
    design(
        "sum, disks apart and unequal",
        UNEQUAL,
        6.0,
        Values::Bell,
        (4, 0.2),
        Kind::Sum,
        (0.93, 0.97),
    ),
    design(
        "mean, disks apart and unequal",
        UNEQUAL,
        6.0,
        Values::Bell,
        (4, 1.0),
        Kind::Average,
        (0.93, 0.97),
    ),
    design(
        "sum, two of each disk",
        UNEQUAL,
        6.0,
        Values::Bell,
        (2, 0.2),
        Kind::Sum,
        (0.93, 0.985),
    ),
];

const fn design(
    name: &'static str,
    sizes: &'static [usize],
    apart: f64,
    values: Values,
    (drawn, share): (usize, f64),
    kind: Kind,
    covers: (f64, f64),
) -> Design {
    Design {
        name,
        sizes,
        apart,
        values,
        drawn,
        share,
        kind,
        covers,
    }
}

fn check(samples: u32, slack: f64) {
    for design in DESIGNS {
        let mut random = Stream::new(23, design.name);
        let disks = population(design.sizes, design.apart, design.values, &mut random);
        let (covered, bias, variance) = repeated(&disks, design.drawn, design.share, design.kind, samples, &mut random);
        println!("{}: {covered:.3}, bias {bias:.4}, variance {variance:.3}", design.name);
        let (low, high) = design.covers;
        assert!(
            (low - slack..=high + slack).contains(&covered),
            "{}: {covered}",
            design.name
        );
        assert!(bias.abs() < 0.01 + slack, "{}: {bias}", design.name);
        assert!(
            (variance - 1.0).abs() < 0.1 + 5.0 * slack,
            "{}: {variance}",
            design.name
        );
    }
}

#[test]
fn intervals_cover_what_they_say() {
    check(500, 0.02);
}

#[test]
#[ignore = "takes a minute: cargo test --release -p ftlab-sample -- --ignored"]
fn intervals_cover_what_they_say_of_many_samples() {
    check(4000, 0.0);
}

/// A pilot of 60 of 1000 partitions fixes the size for half-widths of 5 % of a mean and of a count: the intervals that come of it hold the truth as
/// often as they say, and few are wider than was asked for.
fn check_error(seeds: u64, low: f64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.csv");
    let mut random = Stream::new(5, "values");
    let mut text = String::from("v,w\n");
    let (mut sum, mut count, mut hits) = (0.0, 0.0, 0.0);
    while text.len() < 2_000_000 {
        // Runs of neighbours that are alike, of about a partition.
        let mean = 50.0 + 15.0 * bell(&mut random);
        for _ in 0..150 {
            let value = (mean * bell(&mut random).exp()).round();
            let hit = random.unit() < mean / 200.0;
            text += &format!("{value},{}\n", u8::from(hit));
            sum += value;
            count += 1.0;
            hits += f64::from(u8::from(hit));
        }
    }
    std::fs::write(&path, text).unwrap();
    let (mut held, mut wide) = (0, 0);
    for seed in 0..seeds {
        let query = format!("select avg(v), sum(w) from '{}'", path.display());
        let spec = SampleSpec::parse(
            &serde_json::json!({"query": query, "error": 0.05, "partition": "2KiB", "pilot": 60, "seed": seed, "no_quoted_newlines": true, "depth": 1, "threads": 1})
                .to_string(),
        )
        .unwrap();
        let found = sample(&spec, &mut || Ok(())).unwrap();
        assert!(found["sample"]["ratio"].as_f64().unwrap() < 1.0);
        let values = &found["rows"][0]["values"];
        for (value, truth) in [(&values[0], sum / count), (&values[1], hits)] {
            held += u64::from(value["low"].as_f64().unwrap() <= truth && truth <= value["high"].as_f64().unwrap());
        }
        wide += u64::from(!found["sample"]["asked"]["is_met"].as_bool().unwrap());
    }
    let (covered, wide) = (held as f64 / (2 * seeds) as f64, wide as f64 / seeds as f64);
    println!("--error: {covered:.3} covered, {wide:.3} wider than asked");
    assert!((low..=0.975).contains(&covered), "{covered}");
    assert!(wide < 0.2, "{wide}");
}

#[test]
fn a_size_that_a_pilot_fixes_covers_as_well() {
    check_error(200, 0.91);
}

#[test]
#[ignore = "takes a minute: cargo test --release -p ftlab-sample -- --ignored"]
fn a_size_that_a_pilot_fixes_covers_as_well_over_many_seeds() {
    check_error(2000, 0.93);
}

/// Groups that every partition has are given out as reliable from five partitions drawn on: their intervals hold the truth as those of larger samples do.
#[test]
fn groups_of_every_partition_from_five_on() {
    let mut random = Stream::new(9, "few partitions");
    let mut worst = (1.0, String::new());
    for (name, values) in [
        ("bell", Values::Bell),
        ("skewed", Values::Skewed),
        ("hits", Values::Hits),
    ] {
        let disks = population(&[400], 0.0, values, &mut random);
        for kind in [Kind::Sum, Kind::Average] {
            for drawn in 5..10 {
                let (held, bias, _) = repeated(&disks, drawn, 1.0, kind, 4000, &mut random);
                let said = format!("{name} {kind:?} of {drawn}: {held:.4}, bias {bias:+.4}");
                println!("{said}");
                if held < worst.0 {
                    worst = (held, said);
                }
            }
        }
    }
    // Three standard errors of 4000 samples below 0.93.
    assert!(worst.0 > 0.918, "{}", worst.1);
}

/// A number of Poisson's distribution, by Knuth's product of uniform draws.
fn poisson(mean: f64, random: &mut Stream) -> u64 {
    let (least, mut product, mut count) = ((-mean).exp(), random.unit(), 0);
    while product > least {
        product *= random.unit();
        count += 1;
    }
    count
}

/// The share of the intervals of a count that hold the truth, of `samples` of `drawn` partitions in all of which the group was seen. 20 are drawn of each `population`.
fn seen_in_all(
    drawn: usize,
    samples: u32,
    random: &mut Stream,
    population: &mut dyn FnMut(&mut Stream) -> Vec<f64>,
) -> f64 {
    let (mut held, mut seen) = (0, 0);
    while seen < samples {
        let counts = population(random);
        let truth: f64 = counts.iter().sum();
        for _ in 0..20 {
            let taken = first_of(&counts, drawn, random);
            if taken.contains(&0.0) {
                continue;
            }
            let mut totals = Totals::new(Shape::new(vec![Kind::Count], false));
            for &count in &taken {
                totals.begin(0, 0);
                let group = totals.group(b"", hash(b""));
                totals.add(group, 0, count, 0.0);
            }
            totals.close();
            let stratum = Stratum::new(counts.len() as u64, drawn as u64);
            let mut estimator = Estimator::default();
            estimator.add(stratum, &totals.groups().next().unwrap().2[0]);
            let found = estimator.finish(Kind::Count, &[stratum], &mut Quantiles::new(0.95), false, false);
            // Where all are alike there is no error bar.
            let Some(bar) = found.unwrap().interval else { continue };
            held += u32::from(bar.low <= truth && truth <= bar.high);
            seen += 1;
        }
    }
    f64::from(held) / f64::from(seen)
}

/// Groups that not every partition has, but that were seen in all of five to nine drawn, which are given out as reliable: of counts that chance makes, intervals hold the truth in
/// those samples alone as well.
#[test]
fn groups_seen_in_all_of_few_partitions() {
    let mut random = Stream::new(10, "seen in all");
    for mean in [3.0, 4.0, 6.0] {
        for drawn in 5..10 {
            // Another population now and then, as one of 400 has a mean of its own.
            let mut population = |random: &mut Stream| (0..400).map(|_| poisson(mean, random) as f64).collect();
            let share = seen_in_all(drawn, 2000, &mut random, &mut population);
            println!("about {mean} in a partition, seen in all of {drawn}: {share:.4}");
            // Three standard errors of 2000 samples below 0.93.
            assert!(share > 0.913, "{mean} {drawn}: {share}");
        }
    }
}

/// Not so groups that some partitions lack for a reason: no sample in which all have them can show it.
#[test]
#[ignore = "a table"]
fn groups_that_some_partitions_lack() {
    let mut random = Stream::new(11, "lacking");
    for have in [388, 360] {
        for drawn in 5..=10 {
            let mut population = |random: &mut Stream| {
                let own = |at| if at < have { 90.0 + 20.0 * random.unit() } else { 0.0 };
                (0..400).map(own).collect()
            };
            let share = seen_in_all(drawn, 3000, &mut random, &mut population);
            println!("{have} of 400 partitions have the group, seen in all of {drawn}: {share:.4}");
            assert!(share < 0.93, "{have} {drawn}: the guide says that these are too narrow");
        }
    }
}
