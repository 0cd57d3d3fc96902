//! The same seed gives the same state; without steps in time the counting and the timed path give the same counters.

use ftlab_core::{PolicySpec, Stream};
use ftlab_ftl::{Counting, Overrides};
use ftlab_testkit::case::Wish;
use ftlab_testkit::operation::Mix;
use ftlab_testkit::{Bench, Case, Double, Instant, Late};

fn hash_of<B: Double>(number: u64, wish: Wish) -> (u64, String) {
    let case = Case::draw(number, wish);
    result_of::<B>(number, &case, wish)
}

fn result_of<B: Double>(number: u64, case: &Case, wish: Wish) -> (u64, String) {
    let mut random = Stream::new(number, "operations");
    let mix = Mix::draw(case.config.logical_units, wish.recovers, &mut random);
    let mut bench = Bench::<B>::new(case, Overrides::default());
    (0..500).for_each(|_| bench.apply(&mix.next(&mut random)));
    (bench.state_hash(), format!("{:?} {}", bench.ftl.counts, case.show()))
}

#[test]
fn the_same_seed_gives_the_same_state_twice() {
    let wish = Wish {
        recovers: true,
        steps: true,
        ..Wish::default()
    };
    for number in 0..40 {
        assert_eq!(hash_of::<Counting>(number, wish), hash_of::<Counting>(number, wish));
        assert_eq!(hash_of::<Late>(number, wish), hash_of::<Late>(number, wish));
    }
}

#[test]
fn counting_and_timed_paths_give_the_same_counters() {
    for recovers in [false, true] {
        let wish = Wish {
            recovers,
            ..Wish::default()
        };
        for number in 100..200 {
            let mut case = Case::draw(number, wish);
            // It merges in idle moments, which are those of time, or come by units where there is none.
            if case.config.dedup.name == "caftl" {
                case.config.dedup = PolicySpec::named("none");
            }
            let counting = result_of::<Counting>(number, &case, wish);
            let timed = result_of::<Instant>(number, &case, wish);
            assert_eq!(counting.1, timed.1, "counters of case {number}");
            assert_eq!(counting.0, timed.0, "state of case {number}: {}", counting.1);
        }
    }
}
