//! Saved states of drives with values: the loaded drive goes on as the saved one does.

use ftlab_core::Stream;
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Counting, Ftl, Overrides, Ticket};
use ftlab_testkit::bench::write_content;
use ftlab_testkit::case::most_units;
use ftlab_testkit::members::{ChunkDedup, TwoCopies, UnitDedup};
use ftlab_testkit::operation::Mix;
use ftlab_testkit::{Bench, Case};

fn with_copies(case: &Case) -> Overrides {
    let copies = TwoCopies::new(case.config.logical_units, false);
    let dedup = Box::new(UnitDedup::default());
    Overrides {
        roles: Some(Roles::given(Some(dedup), Some(Box::new(copies)))),
        ..Overrides::default()
    }
}

fn saved(ftl: &mut Ftl<Counting>) -> Vec<u8> {
    let mut bytes = Vec::new();
    ftl.save(&mut bytes).expect("memory takes everything");
    bytes
}

fn used(case: &Case, make: fn(&Case) -> Overrides) -> Bench<Counting> {
    let mut bench = Bench::<Counting>::new(case, make(case));
    let mut random = Stream::new(case.config.seed, "operations");
    let mix = Mix::draw(case.config.logical_units, false, &mut random);
    (0..400).for_each(|_| bench.apply(&mix.next(&mut random)));
    bench.ftl.shut_down();
    bench
}

fn go_on(ftl: &mut Ftl<Counting>) -> Vec<u8> {
    ftl.resume();
    let mut random = Stream::new(ftl.config.seed, "more");
    for _ in 0..500 {
        let lpn = random.below(u64::from(ftl.config.logical_units)) as u32;
        write_content(ftl, lpn, random.below(12) as u8, Ticket::NONE);
    }
    ftl.shut_down();
    saved(ftl)
}

/// One lane and a greedy choice of victims: nothing is drawn, and no lane has its turn.
#[test]
fn a_loaded_drive_goes_on_as_the_saved_one_does() {
    let (mut shared, mut copies) = (0, 0);
    for (number, (units, checkpoint_units)) in [(1, 0), (4, 0), (1, 150), (4, 150)].into_iter().enumerate() {
        let mut case = Case::plain(60, 8, units);
        case.config.seed = number as u64;
        case.config.checkpoint_units = checkpoint_units;
        case.config.gc.hard = 2;
        case.config.logical_units = most_units(&case.layout, &case.config) / (3 * units);
        let mut bench = used(&case, with_copies);
        let bytes = saved(&mut bench.ftl);
        // Stamps of versions are not saved.
        case.config.verify = false;
        let mut loaded = case.build(with_copies(&case)).expect("the same drive");
        loaded.load(&mut &bytes[..]).expect("a whole state");
        loaded.check().expect("the saved drive was sound");
        assert!(saved(&mut loaded) == bytes, "drive {number} is saved as it was loaded");
        let values = loaded.indirection();
        shared += values.in_use().filter(|&vpn| values.references(vpn) > 1).count();
        assert!(
            go_on(&mut loaded) == go_on(&mut bench.ftl),
            "drive {number} goes on otherwise"
        );
        assert_eq!(loaded.counts, bench.ftl.counts);
        assert!(loaded.counts.dedup_hits > 100, "{:?}", loaded.counts);
        copies += loaded.counts.replica_programs;
    }
    assert!(shared > 5 && copies > 20, "{shared} shared values, {copies} copies");
}

/// Rows, packs and quarters of units stored whole; and a state in which something is wrong is refused, or found by the check.
#[test]
fn chunks_are_saved_and_what_is_wrong_with_them_is_found() {
    let mut case = Case::plain(60, 8, 1);
    case.config.logical_units = most_units(&case.layout, &case.config) / 3;
    let make = |_: &Case| Overrides {
        roles: Some(Roles::given(Some(Box::new(ChunkDedup::default())), None)),
        ..Overrides::default()
    };
    let mut bench = used(&case, make);
    assert!(bench.ftl.indirection().in_use_count().1 > 10, "rows");
    let bytes = saved(&mut bench.ftl);
    let load = |bytes: &[u8]| {
        let mut ftl = case.build(make(&case)).expect("the same drive");
        let loaded = ftl.load(&mut &bytes[..]).map_err(|fault| fault.to_string());
        loaded.and_then(|()| ftl.check()).map(|()| ftl)
    };
    let mut whole = load(&bytes).expect("a whole state");
    assert_eq!(saved(&mut whole), bytes);
    // Numbers near the end are those of chunks and rows: another one is refused, or found by the check.
    let tail = bytes.len() - 32 - 400..bytes.len() - 32;
    let found = tail.step_by(4).filter(|&at| {
        let mut broken = bytes.clone();
        broken[at] ^= 1;
        load(&broken).is_err()
    });
    assert!(found.count() > 40, "most of a hundred faults are found");
    assert!(load(&bytes[..bytes.len() - 1]).is_err());
}
