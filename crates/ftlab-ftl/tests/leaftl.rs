//! What LeaFTL's wrong predictions cost on the flash.

use ftlab_core::{PolicySpec, Stream};
use ftlab_ftl::{Class, Overrides};
use ftlab_testkit::operation::Mix;
use ftlab_testkit::{Bench, Case, Instant, Late, Operation};

/// A read of data whose place was predicted wrong reads the page there first, and only then the right one.
#[test]
fn a_data_read_waits_for_the_page_that_was_predicted() {
    let mut case = Case::plain(30, 32, 1);
    case.config.logical_units = 200;
    case.config.gc.hard = 2;
    case.config.map_cache_bytes = 2000;
    case.config.mapping = PolicySpec::parse("leaftl:gamma=4,buffer=9").unwrap();
    let mut bench = Bench::<Late>::new(&case, Overrides::default());
    // Units 0 to 5 lie at 0, 1, 2, 6, 7, 8: on no line.
    for first in [0, 1, 2, 100, 101, 102, 3, 4, 5] {
        bench.apply(&Operation::Write {
            first,
            units: 1,
            head: false,
            tail: false,
            fua: false,
            stream: 0,
            content: 0,
        });
    }
    let mut spare = 0;
    for first in [0, 1, 2, 3, 4, 5, 100, 101, 102] {
        bench.apply(&Operation::Settle);
        bench.apply(&Operation::Read {
            first,
            units: 1,
            head: false,
            tail: false,
        });
        let classes = |bench: &Bench<Late>| bench.ftl.backend.ready().iter().map(|op| op.class).collect::<Vec<_>>();
        if bench.ftl.counts.spare_reads > spare {
            assert!(first < 6, "{first} lies on a line");
            spare += 1;
            assert_eq!(bench.ftl.counts.spare_reads, spare);
            assert_eq!(classes(&bench), [Class::Mapping]);
            bench.apply(&Operation::Run(1));
        }
        assert_eq!(classes(&bench), [Class::HostRead]);
    }
    assert!(spare > 0 && spare < 6, "{spare} of 6");
    let loads: u64 = bench.ftl.counts.trans_reads.iter().sum();
    assert_eq!(loads, 0, "everything is in memory");
}

/// An evicted group is stored before the correction is read, the store makes room, and a collection erases the page where
/// the unit lay when the policy answered: the correction reads where it lies now.
#[test]
fn a_correction_follows_a_unit_that_the_same_answer_has_moved() {
    let mut corrections = 0;
    for seed in 0..60 {
        let mut case = Case::plain(30, 4, 4);
        case.config.logical_units = 200;
        case.config.gc.hard = 2;
        case.config.map_cache_bytes = 700;
        case.config.seed = seed;
        case.config.victim = PolicySpec::named("random");
        case.config.mapping = PolicySpec::parse("leaftl:gamma=4,buffer=16").unwrap();
        let mut bench = Bench::<Instant>::new(&case, Overrides::default());
        let mut random = Stream::new(seed, "operations");
        let mix = Mix::draw(200, false, &mut random);
        (0..600).for_each(|_| bench.apply(&mix.next(&mut random)));
        corrections += bench.ftl.counts.spare_reads;
    }
    assert!(corrections > 1000, "{corrections} corrections");
}
