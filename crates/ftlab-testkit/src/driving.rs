//! Many random drives one after the other, each under random operations.

use std::ops::Range;

use ftlab_core::Stream;
use ftlab_ftl::Overrides;

use crate::bench::Bench;
use crate::case::{Case, Wish};
use crate::double::Double;
use crate::operation::{Mix, Operation};
use crate::shrink::run_or_shrink;

/// How many of `count` random cases a test tries: half of them, `FTLAB_EFFORT` times as many if that is set.
///
/// # Panics
/// If it is no number.
pub fn tries(count: u64) -> u64 {
    let effort = std::env::var("FTLAB_EFFORT").map_or(0.5, |effort| effort.parse().expect("FTLAB_EFFORT is a number"));
    (count as f64 * effort).ceil() as u64
}

/// Times as many drives as usual after which a test gives up what it waits for.
const PATIENCE: u64 = 8;

/// Numbers of random cases from `first` on: as many of `count` as [`tries`] says, and further ones until `enough` says that the test
/// has seen what it is about. Another member in a catalogue changes which drives are drawn, and a few of them hold most of what is
/// rare: so a test waits for it, and fails where it does not come.
pub fn until(first: u64, count: u64, enough: impl Fn() -> bool) -> impl Iterator<Item = u64> {
    numbers(first, count, PATIENCE, enough)
}

fn numbers(first: u64, count: u64, patience: u64, enough: impl Fn() -> bool) -> impl Iterator<Item = u64> {
    let usual = tries(count);
    let only: Option<u64> = std::env::var("FTLAB_CASE").ok().and_then(|number| number.parse().ok());
    (first..first + patience * usual.max(count))
        .filter(move |&number| only.is_none_or(|only| only == number))
        .take_while(move |&number| only.is_some() || number < first + usual || !enough())
}

/// The drives of one test.
#[derive(Clone, Debug)]
pub struct Drives {
    /// Their numbers: half of them are tried, with `FTLAB_EFFORT=50` so many times as many, with `FTLAB_CASE=4711` that one only.
    pub numbers: Range<u64>,
    pub wish: Wish,
    /// Power may fail.
    pub cuts: bool,
    /// Operations on each.
    pub length: usize,
}

impl Drives {
    /// `length` operations on each of the drives; power fails if they recover.
    pub fn new(numbers: Range<u64>, wish: Wish, length: usize) -> Self {
        Drives {
            numbers,
            wish,
            cuts: wish.recovers,
            length,
        }
    }

    /// Runs them all on the backend `B`: `adapt` changes a case, `make` gives policies, for which the drive gets room, `inspect`
    /// looks at the drive after each operation.
    ///
    /// # Panics
    /// If a run fails, with the number of the case and the operations made short.
    pub fn run<B: Double>(
        &self,
        adapt: impl Fn(&mut Case),
        make: impl Fn(&Case) -> Overrides,
        inspect: impl Fn(&Bench<B>),
    ) {
        self.run_some(
            numbers(self.numbers.start, self.count(), 1, || true),
            adapt,
            make,
            inspect,
        );
    }

    /// The same, and goes on with the numbers behind until `enough` (see [`until`]).
    ///
    /// # Panics
    /// If a run fails, with the number of the case and the operations made short.
    pub fn run_until<B: Double>(
        &self,
        adapt: impl Fn(&mut Case),
        make: impl Fn(&Case) -> Overrides,
        inspect: impl Fn(&Bench<B>),
        enough: impl Fn() -> bool,
    ) {
        self.run_some(until(self.numbers.start, self.count(), enough), adapt, make, inspect);
    }

    fn count(&self) -> u64 {
        self.numbers.end - self.numbers.start
    }

    fn run_some<B: Double>(
        &self,
        numbers: impl Iterator<Item = u64>,
        adapt: impl Fn(&mut Case),
        make: impl Fn(&Case) -> Overrides,
        inspect: impl Fn(&Bench<B>),
    ) {
        for number in numbers {
            let mut case = Case::draw(number, self.wish);
            adapt(&mut case);
            case.make_room(&make);
            let mut random = Stream::new(number, "operations");
            let mix = Mix::draw(case.config.logical_units, self.cuts, &mut random);
            let operations: Vec<Operation> = (0..self.length).map(|_| mix.next(&mut random)).collect();
            let backend = B::show(&case.layout, case.config.seed);
            let name = format!("case {number}: {}{backend}", case.show());
            run_or_shrink(&name, operations, |operations| {
                let mut bench = Bench::<B>::new(&case, make(&case));
                for operation in operations {
                    bench.apply(operation);
                    inspect(&bench);
                }
                bench.check();
            });
        }
    }
}
