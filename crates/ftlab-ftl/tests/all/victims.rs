//! Whose choice a victim is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ftlab_core::{Lpn, OpKind, PolicySpec, RuId, Stream};
use ftlab_ftl::units::{Closed, Orders};
use ftlab_ftl::victim::VictimPolicy;
use ftlab_ftl::{Counting, Ftl, HostRequest, Now, Overrides, Ticket};
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

/// [`Fullest`], with the order by valid counts, from which the drive then takes the emptiest unit.
struct FullestOrdered;

impl VictimPolicy for FullestOrdered {
    fn orders(&self) -> Orders {
        Orders {
            by_valid: true,
            ..Orders::default()
        }
    }

    fn choose(&mut self, closed: &mut Closed<'_>, now: Now) -> Option<RuId> {
        Fullest.choose(closed, now)
    }
}

#[test]
fn the_emptiest_unit_is_the_same_with_and_without_an_order() {
    let erases_under = |victim: Box<dyn VictimPolicy>| {
        let mut case = Case::plain(40, 8, 1);
        case.config.gc.hard = 2;
        case.config.logical_units = 200;
        let given = Overrides {
            victim: Some(victim),
            ..Overrides::default()
        };
        let mut ftl = case.build(given).unwrap();
        let mut random = Stream::new(3, "writes");
        for _ in 0..3000 {
            let lpn = Lpn(random.below(200) as u32);
            ftl.admit(&HostRequest::whole(OpKind::Write, lpn, 1), Ticket::NONE);
        }
        ftl.check().unwrap();
        assert!(ftl.counts.emptiest_instead > 100, "{}", ftl.counts.emptiest_instead);
        let erases: Vec<u32> = ftl.units.rus.iter().map(|unit| unit.erases).collect();
        (ftl.counts.emptiest_instead, ftl.counts.total_programmed(), erases)
    };
    assert_eq!(erases_under(Box::new(Fullest)), erases_under(Box::new(FullestOrdered)));
}

/// [`Fullest`], which holds every unit that was collected in place of its choice against the emptiest; of equals, against the one that was
/// erased least.
#[derive(Default)]
struct Witness {
    choice: Option<RuId>,
    /// Valid units and erases of what was closed when it chose.
    closed: Vec<(RuId, (u32, u32))>,
    collected: Arc<AtomicU32>,
}

impl VictimPolicy for Witness {
    fn orders(&self) -> Orders {
        Orders::default()
    }

    fn choose(&mut self, closed: &mut Closed<'_>, now: Now) -> Option<RuId> {
        let seen = closed
            .iter()
            .map(|ru| (ru, (closed.ru(ru).valid, closed.ru(ru).erases)));
        let seen = seen.collect::<Vec<_>>();
        let is_erased = |&&(ru, (_, erases)): &&(RuId, (u32, u32))| {
            !seen.iter().any(|&(now, (_, total))| now == ru && total == erases)
        };
        if let [collected] = self.closed.iter().filter(is_erased).collect::<Vec<_>>()[..]
            && Some(collected.0) != self.choice
        {
            let least = self.closed.iter().map(|&(_, order)| order).min();
            assert_eq!(Some(collected.1), least, "valid units and erases of {:?}", collected.0);
            self.collected.fetch_add(1, Ordering::Relaxed);
        }
        self.closed = seen;
        self.choice = Fullest.choose(closed, now);
        self.choice
    }
}

/// A drive of 24 units of 8, written evenly to the end of its life.
fn worn_out(victim: Option<Box<dyn VictimPolicy>>, logical_units: u32, erase_limit: u32) -> Ftl<Counting> {
    let mut case = Case::plain(24, 8, 1);
    case.config.logical_units = logical_units;
    case.config.erase_limit = Some(erase_limit);
    case.config.verify = false;
    let given = Overrides {
        victim,
        ..Overrides::default()
    };
    let mut ftl = case.build(given).unwrap();
    let mut random = Stream::new(5, "writes");
    while !ftl.end_of_life {
        let lpn = Lpn(random.below(u64::from(logical_units)) as u32);
        ftl.admit(&HostRequest::whole(OpKind::Write, lpn, 1), Ticket::NONE);
    }
    ftl
}

#[test]
fn of_units_that_are_as_empty_the_least_worn_is_taken() {
    let witness = Witness::default();
    let collected = Arc::clone(&witness.collected);
    worn_out(Some(Box::new(witness)), 160, 2000);
    assert!(collected.load(Ordering::Relaxed) > 100, "{collected:?}");
}

#[test]
fn a_choice_that_is_as_empty_as_any_stands() {
    for logical_units in [100, 120, 140, 150, 160] {
        for erase_limit in [2, 5, 9, 20] {
            let instead = worn_out(None, logical_units, erase_limit).counts.emptiest_instead;
            assert_eq!(instead, 0, "{logical_units} units, {erase_limit} erases");
        }
    }
}
