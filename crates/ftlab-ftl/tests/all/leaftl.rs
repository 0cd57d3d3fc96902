//! What LeaFTL's wrong predictions cost on the flash.

use ftlab_core::{Lpn, OpKind, PolicySpec, Stream};
use ftlab_ftl::{Class, Counting, Ftl, HostRequest, Overrides, Ticket};
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

/// Forty units are written every seventh first. The buffer holds 39, so the last write empties it if it leaves as a whole: in order
/// of LPN, the forty lie on one line. By age they are learned as they came: one of every seven in order, six runs in a group.
#[test]
fn a_buffer_emptied_in_order_of_lpn_makes_lines_of_random_writes() {
    let segments = |buffer: &str| {
        let mut case = Case::plain(30, 64, 1);
        case.config.logical_units = 600;
        case.config.gc.hard = 2;
        case.config.map_cache_bytes = 2000;
        case.config.mapping = PolicySpec::parse("leaftl:buffer=40").unwrap();
        case.config.buffer.policy = PolicySpec::parse(buffer).unwrap();
        case.config.buffer.capacity_units = 40;
        let mut ftl: Ftl<Counting> = case.build(Overrides::default()).unwrap();
        let lpns = (0..40).map(|i| i * 7 % 40).chain((0..40).map(|i| 256 + i * 7 % 40));
        for lpn in lpns {
            ftl.admit(&HostRequest::whole(OpKind::Write, Lpn(lpn), 1), Ticket::NONE);
        }
        let reports = ftl.policy_reports();
        let (_, figures) = reports.iter().find(|(role, _)| *role == "mapping").unwrap();
        figures.iter().find(|(name, _)| *name == "segments").unwrap().1
    };
    assert_eq!(segments("write_back:order=lpn"), 2.0);
    let by_age = segments("write_back");
    assert!(by_age > 6.0, "{by_age} segments of forty units");
}
