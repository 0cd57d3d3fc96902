//! Every member of every seam against the naive reference: random operations on tiny drives, and after each of them
//! every LPN reads its last version and the invariants hold.

use std::sync::Arc;

use ftlab_core::Stream;
use ftlab_ftl::{Counting, Overrides, mapping};
use ftlab_testkit::case::Wish;
use ftlab_testkit::driving::{Drives, tries};
use ftlab_testkit::members::Watched;
use ftlab_testkit::operation::Mix;
use ftlab_testkit::shrink::run_or_shrink;
use ftlab_testkit::{Bench, Case, Double, Instant, Late, Operation};

/// `length` random operations on each of `count` drives from number `first` on.
fn drive<B: Double>(first: u64, count: u64, wish: Wish, cuts: bool, length: usize) {
    let drives = Drives {
        cuts,
        ..Drives::new(first..first + count, wish, length)
    };
    drives.run::<B>(|_| {}, watched, |_| {});
}

/// The mapping policy of the case, watched for changes that get lost.
fn watched(case: &Case) -> Overrides {
    let mut setup = mapping::Setup {
        logical_units: case.config.logical_units,
        values: 0,
        rows: 0,
        unit_bytes: case.layout.geometry.unit_bytes,
        cache_bytes: case.config.map_cache_bytes,
        layout: Some(Arc::new(case.layout.clone())),
        checked: true,
        beside_slot: 0,
    };
    let policy = mapping::catalogue().build(&case.config.mapping, &mut setup).unwrap();
    if policy.is_page() {
        return Overrides::default();
    }
    Overrides {
        mapping: Some(Box::new(Watched::new(policy, setup.unit_bytes))),
        ..Overrides::default()
    }
}

#[test]
fn counting_drives_read_back_what_was_written() {
    drive::<Counting>(0, 300, Wish::default(), false, 600);
}

#[test]
fn no_rule_of_flash_is_broken_in_order_of_issue() {
    let wish = Wish {
        steps: true,
        ..Wish::default()
    };
    drive::<Instant>(1000000, 300, wish, false, 600);
}

#[test]
fn late_completions_change_no_data() {
    let wish = Wish {
        steps: true,
        ..Wish::default()
    };
    drive::<Late>(2000000, 200, wish, false, 400);
}

#[test]
fn worn_out_drives_stay_readable() {
    let wish = Wish {
        wears_out: true,
        ..Wish::default()
    };
    drive::<Instant>(3000000, 200, wish, false, 800);
}

#[test]
fn power_cuts_lose_only_what_the_standard_allows() {
    let wish = Wish {
        recovers: true,
        ..Wish::default()
    };
    drive::<Counting>(4000000, 150, wish, true, 400);
    drive::<Instant>(5000000, 100, wish, true, 400);
    let wish = Wish { steps: true, ..wish };
    drive::<Late>(6000000, 300, wish, true, 300);
}

/// Near the end of its life a drive may have no page left for the journal of trims. Then nothing may be erased: in what would
/// be erased lie the newest traces of what was trimmed, and elsewhere older versions of it.
#[test]
fn without_room_for_the_journal_of_trims_nothing_is_erased() {
    let wish = Wish {
        recovers: true,
        wears_out: true,
        protected: Some(false),
        ..Wish::default()
    };
    drive::<Counting>(8000000, 150, wish, true, 600);
    drive::<Late>(8100000, 150, Wish { steps: true, ..wish }, true, 500);
}

#[test]
fn every_mapping_cache_serves_the_last_version() {
    let wish = Wish {
        mapping: true,
        ..Wish::default()
    };
    drive::<Counting>(7000000, 200, wish, false, 500);
    let steps = Wish { steps: true, ..wish };
    drive::<Instant>(7100000, 100, steps, false, 500);
    drive::<Late>(7200000, 150, steps, false, 300);
    let worn = Wish {
        wears_out: true,
        ..wish
    };
    drive::<Instant>(7300000, 60, worn, false, 700);
}

#[test]
fn every_mapping_cache_survives_power_cuts() {
    let wish = Wish {
        mapping: true,
        recovers: true,
        ..Wish::default()
    };
    drive::<Counting>(7400000, 60, wish, true, 400);
    drive::<Late>(7500000, 120, Wish { steps: true, ..wish }, true, 300);
}

#[test]
fn drives_that_replicate_read_back_what_was_written() {
    let wish = Wish {
        replicates: true,
        ..Wish::default()
    };
    drive::<Counting>(8_000_000, 120, wish, false, 500);
    drive::<Instant>(8_100_000, 120, Wish { mapping: true, ..wish }, false, 400);
    let steps = Wish { steps: true, ..wish };
    drive::<Late>(8_200_000, 120, steps, false, 400);
    let recovers = Wish {
        recovers: true,
        ..steps
    };
    drive::<Late>(8_300_000, 120, recovers, true, 300);
}

/// Drives that nobody has tried: the day chooses the range, so that every day's long tests go further. `FTLAB_DAY` repeats one.
#[test]
#[ignore = "takes minutes"]
fn a_day_of_drives_that_nobody_has_tried() {
    let today = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let days = today.map_or(0, |since| since.as_secs() / 86_400);
    let day = std::env::var("FTLAB_DAY").map_or(days, |day| day.parse().expect("FTLAB_DAY is a number"));
    println!("FTLAB_DAY={day} repeats these drives");
    let first = 1_000_000_000 + day * 1_000_000;
    let plain = Wish::default();
    drive::<Counting>(first, 3000, plain, false, 600);
    let cached = Wish { mapping: true, ..plain };
    let steps = Wish { steps: true, ..cached };
    drive::<Instant>(first + 100_000, 3000, steps, false, 600);
    drive::<Late>(first + 200_000, 2000, steps, false, 400);
    let worn = Wish {
        wears_out: true,
        ..steps
    };
    drive::<Instant>(first + 300_000, 2000, worn, false, 800);
    let recovers = Wish {
        recovers: true,
        ..plain
    };
    drive::<Late>(
        first + 400_000,
        3000,
        Wish {
            steps: true,
            ..recovers
        },
        true,
        300,
    );
    let all = Wish { recovers: true, ..worn };
    drive::<Late>(first + 500_000, 3000, all, true, 400);
    let replicates = Wish {
        replicates: true,
        ..steps
    };
    drive::<Late>(first + 600_000, 2000, replicates, false, 400);
}

const FIGURES: [&str; 8] = [
    "corr_reads_true",
    "corr_reads_false",
    "preloaded_used",
    "corr_programs",
    "corr_pages_moved",
    "corr_removed_by_write",
    "corr_removed_by_collection",
    "corr_removed_by_quality",
];

/// Drives with correlated pages under reads, some writes and power cuts; the sums of the figures, and the cuts.
fn correlated<B: Double>(numbers: std::ops::Range<u64>, wish: Wish) -> ([f64; 8], u32) {
    let mut seen = [0.0; 8];
    let mut cuts = 0;
    for number in numbers.start..numbers.start + tries(numbers.end - numbers.start) {
        let mut case = Case::draw(number, wish);
        if !case.config.mapping.show().contains("pairs") {
            continue;
        }
        // Pages stay in three of four cases: the default rule gives most of them up here.
        if !number.is_multiple_of(4) {
            case.config.mapping.params.insert("removal".to_owned(), "off".into());
        }
        // A dozen entries beside the directory, so that reads miss.
        case.config.map_cache_bytes = 300;
        let mut random = Stream::new(number, "operations");
        let mix = Mix::draw(case.config.logical_units, true, &mut random).mostly_reads();
        let operations: Vec<Operation> = (0..1200).map(|_| mix.next(&mut random)).collect();
        let sums = std::cell::Cell::new(([0.0; 8], 0));
        run_or_shrink(&format!("case {number}: {}", case.show()), operations, |operations| {
            let mut bench = Bench::<B>::new(&case, watched(&case));
            operations.iter().for_each(|operation| bench.apply(operation));
            bench.check();
            let reports = bench.ftl.policy_reports();
            let mapping = reports.iter().find(|(role, _)| *role == "mapping");
            let report = mapping.map(|(_, report)| report.clone()).unwrap_or_default();
            let figure = |name: &str| {
                report
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map_or(0.0, |(_, value)| *value)
            };
            sums.set((FIGURES.map(figure), bench.cuts));
        });
        let (figures, more) = sums.get();
        seen.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
        cuts += more;
    }
    (seen, cuts)
}

/// Nobody would notice a stale correlated page on drives that hardly read one.
#[test]
fn correlated_pages_serve_no_stale_entry() {
    let wish = Wish {
        mapping: true,
        recovers: true,
        ..Wish::default()
    };
    let (counting, cuts) = correlated::<Counting>(7_600_000..7_600_800, wish);
    let (late, more) = correlated::<Late>(7_700_000..7_700_800, Wish { steps: true, ..wish });
    assert!(cuts > 20 && more > 20, "{cuts} and {more} power cuts");
    for (at, name) in FIGURES.iter().enumerate() {
        let times = counting[at] + late[at];
        assert!(times >= 10.0, "{name}: {times}");
    }
}
