//! Whose choice a victim is.

use ftlab_core::{Lpn, OpKind, PolicySpec, RuId, Stream};
use ftlab_ftl::units::{Closed, Orders};
use ftlab_ftl::victim::VictimPolicy;
use ftlab_ftl::{HostRequest, Now, Overrides, Ticket};
use ftlab_testkit::Case;

/// Translation pages that a collection writes may use up part of the reserve. That is no reason to set the policy aside:
/// first in, first out, the drive must look so.
#[test]
fn a_map_in_flash_leaves_victims_to_the_policy() {
    for mapping in ["dftl", "tpftl", "sftl"] {
        let mut case = Case::plain(120, 32, 1);
        case.config.victim = PolicySpec::named("fifo");
        case.config.mapping = PolicySpec::named(mapping);
        case.config.map_cache_bytes = 4000;
        case.config.gc.hard = 3;
        case.config.verify = false;
        case.config.logical_units = 2200;
        let mut ftl = case.build(Overrides::default()).unwrap();
        ftl.precondition_fill();
        let mut random = Stream::new(1, "writes");
        for _ in 0..60_000 {
            let lpn = Lpn(random.below(2200) as u32);
            ftl.admit(&HostRequest::whole(OpKind::Write, lpn, 1), Ticket::NONE);
        }
        ftl.check().unwrap();
        assert!(!ftl.end_of_life);
        let (collections, instead) = (ftl.counts.gc_collections, ftl.counts.emptiest_instead);
        assert!(
            instead * 200 < collections,
            "{mapping}: the emptiest unit instead of the oldest in {instead} of {collections} collections"
        );
    }
}

/// Takes whatever has the most valid units: no drive could live on that, so the mechanism must step in, and say so.
struct Fullest;

impl VictimPolicy for Fullest {
    fn orders(&self) -> Orders {
        Orders::default()
    }

    fn choose(&mut self, closed: &mut Closed<'_>, _: Now) -> Option<RuId> {
        closed.iter().max_by_key(|&ru| (closed.ru(ru).valid, ru))
    }
}

#[test]
fn a_policy_that_gains_nothing_is_set_aside_and_counted() {
    let mut case = Case::plain(40, 8, 1);
    case.config.gc.hard = 2;
    case.config.logical_units = 200;
    let given = Overrides {
        victim: Some(Box::new(Fullest)),
        ..Overrides::default()
    };
    let mut ftl = case.build(given).unwrap();
    let mut random = Stream::new(2, "writes");
    for _ in 0..3000 {
        let lpn = Lpn(random.below(200) as u32);
        ftl.admit(&HostRequest::whole(OpKind::Write, lpn, 1), Ticket::NONE);
    }
    ftl.check().unwrap();
    assert!(!ftl.end_of_life);
    assert!(ftl.counts.emptiest_instead > 100, "{}", ftl.counts.emptiest_instead);
}
