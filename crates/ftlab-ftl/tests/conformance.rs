//! Every member of every seam against the naive reference: random operations on tiny drives, and after each of them
//! every LPN reads its last version and the invariants hold.

use ftlab_core::Stream;
use ftlab_ftl::{Counting, Overrides};
use ftlab_testkit::case::Wish;
use ftlab_testkit::operation::Mix;
use ftlab_testkit::shrink::run_or_shrink;
use ftlab_testkit::{Bench, Case, Double, Instant, Late, Operation};

/// `length` random operations on each of `count` drives from number `first` on. `FTLAB_CASE=4711` runs that drive only,
/// `FTLAB_EFFORT=50` so many times as many drives.
fn drive<B: Double>(first: u64, count: u64, wish: Wish, cuts: bool, length: usize) {
    let effort = std::env::var("FTLAB_EFFORT").map_or(1, |effort| effort.parse().expect("FTLAB_EFFORT is a number"));
    let numbers = first..first + count * effort;
    let only: Option<u64> = std::env::var("FTLAB_CASE").ok().and_then(|number| number.parse().ok());
    for number in numbers.filter(|&number| only.is_none_or(|only| only == number)) {
        let case = Case::draw(number, wish);
        let mut random = Stream::new(number, "operations");
        let mix = Mix::draw(case.config.logical_units, cuts, &mut random);
        let operations: Vec<Operation> = (0..length).map(|_| mix.next(&mut random)).collect();
        run_or_shrink(&format!("case {number}: {}", case.show()), operations, |operations| {
            let mut bench = Bench::<B>::new(&case, Overrides::default());
            operations.iter().for_each(|operation| bench.apply(operation));
            bench.check();
        });
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
