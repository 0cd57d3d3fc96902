//! How often intervals hold the true value, over many samples of one population (partitions of 60 to 140 records).

use ftlab_core::Stream;
use ftlab_sample::estimate::{Estimate, Estimator, Quantiles, Rows, Stratum, widened};
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
    check_error(100, 0.90);
}

#[test]
#[ignore = "takes a minute: cargo test --release -p ftlab-sample -- --ignored"]
fn a_size_that_a_pilot_fixes_covers_as_well_over_many_seeds() {
    check_error(2000, 0.93);
}

/// Groups that every partition has are given out as reliable from five partitions drawn on: their intervals hold the truth as those of larger samples do.
#[test]
fn groups_of_every_partition_from_five_on() {
    check_few_partitions(1000);
}

#[test]
#[ignore = "half a minute"]
fn groups_of_every_partition_from_five_on_over_many_samples() {
    check_few_partitions(4000);
}

fn check_few_partitions(samples: u32) {
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
                let (held, bias, _) = repeated(&disks, drawn, 1.0, kind, samples, &mut random);
                let said = format!("{name} {kind:?} of {drawn}: {held:.4}, bias {bias:+.4}");
                println!("{said}");
                if held < worst.0 {
                    worst = (held, said);
                }
            }
        }
    }
    // Three standard errors below 0.93.
    let least = 0.93 - 3.0 * (0.93 * 0.07 / f64::from(samples)).sqrt();
    assert!(worst.0 > least, "{}", worst.1);
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

/// What the rows of a row group add up to.
#[derive(Clone, Copy, Debug)]
enum Adds {
    /// Values within a third of a hundredth of each other, as the column that `x = 3` nearly is.
    Nearly,
    /// Those around the mean of the row group, which differ by a sixth.
    Around,
    /// Ones of rows that a condition keeps: about a tenth, in some row groups three times as many as in others.
    Kept,
    /// Exponentials of a bell curve.
    Skewed,
    /// Nothing but in one of four row groups, which have it in a row of three.
    Somewhere,
}

/// Row groups as (rows, total): sizes are alike, within a factor of ten, or of a hundred.
fn row_groups(count: usize, factor: f64, adds: Adds, random: &mut Stream) -> Vec<(u64, f64)> {
    let group = |_| {
        let rows = (50.0 * factor.powf(random.unit())).round() as u64;
        let level = 1.0 + bell(random) / 6.0;
        let has = random.unit() < 0.25;
        let chance = 0.05 + 0.1 * random.unit();
        let value = |random: &mut Stream| match adds {
            Adds::Nearly => 3.0 * (1.0 + bell(random) / 300.0),
            Adds::Around => level * (50.0 + 12.0 * bell(random)),
            Adds::Kept => f64::from(u8::from(random.unit() < chance)),
            Adds::Skewed => level * bell(random).exp(),
            Adds::Somewhere => f64::from(u8::from(has && random.unit() < 0.3)),
        };
        (rows, (0..rows).map(|_| value(random)).sum())
    };
    (0..count).map(group).collect()
}

/// Of `samples` of a share of each disk's row groups: the share of intervals that hold the truth, the bias, and the mean width over that of totals that are expanded by the number of row groups.
fn by_rows(disks: &[Vec<(u64, f64)>], drawn: usize, samples: u32, random: &mut Stream) -> (f64, f64, f64) {
    let truth: f64 = disks.iter().flatten().map(|group| group.1).sum();
    let all: u64 = disks.iter().flatten().map(|group| group.0).sum();
    let (mut held, mut given, mut bias, mut width, mut expanded) = (0, 0, 0.0, 0.0, 0.0);
    let mut quantiles = Quantiles::new(0.95);
    for _ in 0..samples {
        let (mut strata, mut of_disks) = (Vec::new(), Vec::new());
        let mut estimators = [Estimator::of_rows(Some(all as f64)), Estimator::default()];
        for disk in disks {
            let mut totals = Totals::new(Shape::with_pairs(vec![Kind::Sum], Vec::new(), false, true));
            for (rows, total) in first_of(disk, drawn, random) {
                totals.begin(rows, rows);
                let group = totals.group(b"", hash(b""));
                totals.add(group, 0, total, 0.0);
            }
            totals.close();
            let (rows, squares, cubes) = totals.sizes();
            let stratum = Stratum::new(disk.len() as u64, drawn as u64).with_rows(Some(Rows {
                all: disk.iter().map(|group| group.0).sum(),
                drawn: rows,
                squares,
                cubes,
            }));
            of_disks.push(totals.groups().next().unwrap().2[0]);
            strata.push(stratum);
        }
        let strata = widened(strata);
        for (stratum, sums) in strata.iter().zip(&of_disks) {
            estimators
                .iter_mut()
                .for_each(|estimator| estimator.add(*stratum, sums));
        }
        let [found, plain] = estimators.map(|estimator| {
            estimator
                .finish(Kind::Sum, &strata, &mut quantiles, false, true)
                .unwrap()
        });
        bias += (found.value / truth - 1.0) / f64::from(samples);
        // Where all are alike, as without the group in any, or a few outweigh the others, there is no error bar.
        let (Some(bar), Some(plain)) = (found.interval, plain.interval) else {
            continue;
        };
        given += 1;
        held += u32::from(bar.low <= truth && truth <= bar.high);
        width += bar.half_width;
        expanded += plain.half_width;
    }
    (f64::from(held) / f64::from(given), bias, width / expanded)
}

/// Totals of row groups whose numbers of rows are known.
fn check_by_rows(samples: u32, slack: f64) {
    let mut wrong = Vec::new();
    for (sizes, drawn) in [(&[400][..], 20), (&[60], 24), (&[400], 60), (&[100, 60, 40], 8)] {
        for factor in [1.0, 10.0, 100.0] {
            for adds in [Adds::Nearly, Adds::Around, Adds::Kept, Adds::Skewed, Adds::Somewhere] {
                let mut random = Stream::new(29, "row groups");
                let disks: Vec<_> = sizes
                    .iter()
                    .map(|&count| row_groups(count, factor, adds, &mut random))
                    .collect();
                let (covered, bias, width) = by_rows(&disks, drawn, samples, &mut random);
                let said = format!(
                    "{sizes:?}, {drawn} drawn, sizes within {factor}, {adds:?}: {covered:.3}, bias {bias:+.4}, width {width:.3}"
                );
                println!("{said}");
                // Of few row groups that a few outweigh, or of which few have anything, less.
                let least = match (factor > 10.0 || drawn < 20, adds) {
                    (true, Adds::Somewhere) => continue,
                    (false, Adds::Somewhere) => 0.88,
                    (true, _) => 0.88,
                    (false, _) => 0.93,
                };
                if !(least - slack..=0.965 + slack).contains(&covered) || bias.abs() > 0.01 + slack {
                    wrong.push(said);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Of `samples` of so many partitions of each disk: the share of intervals of a sum that hold the truth.
fn sums_held(disks: &[Vec<f64>], drawn: usize, samples: u32, random: &mut Stream) -> f64 {
    let truth: f64 = disks.iter().flatten().sum();
    let mut quantiles = Quantiles::new(0.95);
    let mut held = 0;
    for _ in 0..samples {
        let (mut strata, mut estimator) = (Vec::new(), Estimator::default());
        for disk in disks {
            let mut totals = Totals::new(Shape::new(vec![Kind::Sum], false));
            for total in first_of(disk, drawn, random) {
                totals.begin(0, 0);
                let group = totals.group(b"", hash(b""));
                totals.add(group, 0, total, 0.0);
            }
            totals.close();
            let stratum = Stratum::new(disk.len() as u64, drawn as u64);
            estimator.add(stratum, &totals.groups().next().unwrap().2[0]);
            strata.push(stratum);
        }
        let found = estimator.finish(Kind::Sum, &strata, &mut quantiles, false, false);
        let bar = found.unwrap().interval.unwrap();
        held += u32::from(bar.low <= truth && truth <= bar.high);
    }
    f64::from(held) / f64::from(samples)
}

/// What the guide warns of: intervals that hold less than they say, and are not marked, as no sample of that size shows it; and that more partitions help.
#[test]
#[ignore = "a table"]
fn intervals_of_few_unequal_partitions_hold_less() {
    const SAMPLES: u32 = 4000;
    let mut random = Stream::new(31, "few unequal");
    // Rows of partitions of one size in bytes, whose records are long, shorter and short.
    let densities = |of: [(f64, usize); 3], random: &mut Stream| -> Vec<Vec<f64>> {
        let own = |&(rows, count): &(f64, usize)| vec![rows; count];
        let rows: Vec<f64> = of.iter().flat_map(own).collect();
        vec![rows.iter().map(|rows| rows * (1.0 + 0.05 * bell(random))).collect()]
    };
    let even = densities([(1.0, 70), (3.0, 70), (10.0, 70)], &mut random);
    let rare = densities([(1.0, 126), (2.0, 63), (20.0, 21)], &mut random);
    let skewed = |random: &mut Stream| (0..600).map(|_| bell(random).exp()).collect::<Vec<f64>>();
    let disks: Vec<Vec<f64>> = (0..5).map(|_| skewed(&mut random)).collect();
    for (name, disks, few, many) in [
        ("three densities, 1 : 3 : 10, as many of each", &even, 11, 40),
        ("three densities, 1 : 2 : 20, of 60, 30 and 10 %", &rare, 11, 60),
        (
            "five disks, of each, totals skewed as exp of a bell curve",
            &disks,
            4,
            30,
        ),
    ] {
        let [less, more] = [few, many].map(|drawn| sums_held(disks, drawn, SAMPLES, &mut random));
        println!("{name}: {few} drawn {less:.3}, {many} drawn {more:.3}");
        assert!(less < 0.93 && more > less, "{name}: {less}, {more}");
    }
    // Row groups of 50 to 10,000 rows, whose mean is larger the more rows they have.
    let group = |random: &mut Stream| {
        let factor = 200f64.powf(random.unit());
        let rows = (50.0 * factor).round();
        (rows as u64, rows * factor.sqrt() * (1.0 + bell(random) / 6.0))
    };
    let groups: Vec<(u64, f64)> = (0..400).map(|_| group(&mut random)).collect();
    let [less, more] = [12, 80].map(|drawn| by_rows(std::slice::from_ref(&groups), drawn, SAMPLES, &mut random));
    println!(
        "row groups within a factor of 200, larger ones with larger means: 12 drawn {:.3}, bias {:+.3}, 80 drawn {:.3}, bias {:+.3}",
        less.0, less.1, more.0, more.1
    );
    assert!(less.0 < 0.93 && more.0 > less.0 && more.1.abs() < less.1.abs());
}

#[test]
fn totals_by_rows_cover_what_they_say() {
    check_by_rows(500, 0.02);
}

#[test]
#[ignore = "takes a minute: cargo test --release -p ftlab-sample -- --ignored"]
fn totals_by_rows_cover_what_they_say_of_many_samples() {
    check_by_rows(4000, 0.0);
}
