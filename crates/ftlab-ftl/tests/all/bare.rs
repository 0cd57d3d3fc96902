//! Writes that ask nobody do what others do, to the last unit and to the end of the drive's life.

use ftlab_core::{Layout, Lpn, PolicySpec, ReclaimKind, Stream};
use ftlab_ftl::placement::{HostWrite, PlacementPolicy};
use ftlab_ftl::{Admitted, Counting, Frontier, Ftl, FtlConfig, Overrides, Ticket};

use crate::common::{config, layout, one_lane, write};

/// All that a drive has done and holds.
pub fn everything(ftl: &Ftl<Counting>) -> String {
    let erases: Vec<u32> = ftl.units.rus.iter().map(|ru| ru.erases).collect();
    let record = (&ftl.record.map, &ftl.record.owners, ftl.record.validity());
    format!("{:?} {record:?} {erases:?} {}", ftl.counts, ftl.tick)
}

/// A placement policy that only looks on.
struct Watcher;

impl PlacementPolicy for Watcher {
    fn host_frontiers(&self) -> Frontier {
        1
    }

    fn host(&mut self, _: &HostWrite<'_>) -> Frontier {
        0
    }
}

/// How the drive ended after at most `writes` writes of one unit.
fn same_both_ways(layout: &Layout, config: &FtlConfig, writes: u32) -> Admitted {
    let built = |given| Ftl::<Counting>::with(layout.clone(), config.clone(), given).unwrap();
    let [mut asking, mut bare] = [(); 2].map(|()| built(Overrides::default()));
    let mut watched = built(Overrides {
        placement: Some(Box::new(Watcher)),
        ..Overrides::default()
    });
    let mut random = Stream::new(7, "bare");
    for number in 0..writes {
        assert!(bare.is_bare());
        let lpn = random.below(u64::from(config.logical_units)) as u32;
        let admitted = asking.admit(&write(lpn, 0), Ticket::NONE);
        assert_eq!(bare.write_bare(Lpn(lpn)), admitted, "write {number}");
        assert_eq!(watched.admit(&write(lpn, 0), Ticket::NONE), admitted, "write {number}");
        if number % 1009 == 0 || admitted == Admitted::EndOfLife {
            assert_eq!(everything(&bare), everything(&asking), "after write {number}");
            assert_eq!(everything(&watched), everything(&asking), "after write {number}");
            bare.check().unwrap();
        }
        if admitted == Admitted::EndOfLife {
            assert!(!bare.is_bare(), "a drive at its end takes nothing");
            return admitted;
        }
    }
    Admitted::Done
}

#[test]
fn writes_that_ask_nobody_do_what_others_do() {
    let layouts = [
        one_lane(60, 16),
        layout(1, 1, 60, 8, 4, ReclaimKind::Block),
        layout(2, 2, 30, 8, 1, ReclaimKind::Block),
        layout(2, 2, 30, 8, 4, ReclaimKind::Block),
    ];
    for layout in &layouts {
        for victim in ["greedy", "cost_benefit", "d_choices:d=3"] {
            let mut config = config(layout, 0.3);
            config.victim = PolicySpec::parse(victim).unwrap();
            assert_eq!(same_both_ways(layout, &config, 20_000), Admitted::Done, "{victim}");
            config.erase_limit = Some(6);
            assert_eq!(
                same_both_ways(layout, &config, 200_000),
                Admitted::EndOfLife,
                "{victim}"
            );
        }
    }
}

#[test]
fn a_drive_with_somebody_to_ask_is_not_bare() {
    let layout = one_lane(60, 16);
    let is_bare = |change: &dyn Fn(&mut FtlConfig)| {
        let mut config = config(&layout, 0.3);
        config.gc.hard = 4;
        change(&mut config);
        Ftl::<Counting>::new(layout.clone(), config).unwrap().is_bare()
    };
    assert!(is_bare(&|_| {}));
    assert!(!is_bare(&|config| config.verify = true));
    assert!(!is_bare(&|config| config.checkpoint_units = 64));
    assert!(!is_bare(&|config| config.dedup = PolicySpec::named("page_dedup")));
    assert!(!is_bare(&|config| {
        config.mapping = PolicySpec::named("dftl");
        config.map_cache_bytes = 64 << 10;
    }));
    assert!(!is_bare(&|config| {
        config.buffer.policy = PolicySpec::named("lru");
        config.buffer.capacity_units = 16;
    }));
}
