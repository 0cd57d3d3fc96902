//! Writes that ask nobody do what others do, to the last unit and to the end of the drive's life.

use ftlab_core::{IoContext, Layout, Lpn, PolicySpec, ReclaimKind, Stream};
use ftlab_ftl::placement::{self, HostWrite, PlacementPolicy};
use ftlab_ftl::{Admitted, Counting, Frontier, Ftl, FtlConfig, HostRequest, Overrides, Ticket};

use crate::common::{config, layout, one_lane, write};

/// All that a drive has done and holds.
pub fn everything(ftl: &Ftl<Counting>) -> String {
    let erases: Vec<u32> = ftl.units.rus.iter().map(|ru| ru.erases).collect();
    let record = (&ftl.record.map, &ftl.record.owners, ftl.record.validity());
    format!("{:?} {record:?} {erases:?} {}", ftl.counts, ftl.tick)
}

/// The same of drives that deduplicate.
#[test]
fn contents_that_nobody_else_is_asked_about_lead_where_others_do() {
    let layouts = [one_lane(60, 16), layout(2, 2, 30, 8, 4, ReclaimKind::Block)];
    let policies = [
        "page_dedup:entries=0",
        "page_dedup:entries=60,eviction=two_level,prefetch=true",
        "caftl:entries=40,idle_units=16",
        "caftl:entries=40,crc=false",
        "ca_ssd:entries=100",
        "pcdedup:entries=200,trial=100,by=volume",
        "finededup:entries=400",
        "finededup:entries=402",
        "finededup:entries=400,packing=false",
    ];
    for (layout, dedup) in layouts.iter().flat_map(|layout| policies.map(|dedup| (layout, dedup))) {
        let mut config = config(layout, 0.3);
        config.dedup = PolicySpec::parse(dedup).unwrap();
        config.gc.hard = config.gc.hard.max(3);
        config.erase_limit = Some(30);
        let [mut asking, mut bare] = [(); 2].map(|()| Ftl::<Counting>::new(layout.clone(), config.clone()).unwrap());
        let mut random = Stream::new(8, "contents");
        let ended = (0..400_000).any(|number| {
            let lpn = random.below(u64::from(config.logical_units)) as u32;
            let contents = [1 + random.below(400) * random.below(20)];
            let io = IoContext {
                contents: &contents,
                content_bytes: layout.geometry.unit_bytes,
                volume: random.below(5) as u16,
                ..IoContext::NONE
            };
            let request = HostRequest {
                context: &io,
                ..write(lpn, 0)
            };
            let admitted = asking.admit(&request, Ticket::NONE);
            assert!(bare.is_bare_but_for_contents());
            let here = bare.write_bare_content(Lpn(lpn), contents[0], || io);
            assert_eq!(here, admitted, "{dedup}, write {number}");
            if number % 1009 == 0 || admitted == Admitted::EndOfLife {
                assert_eq!(everything(&bare), everything(&asking), "{dedup}, after write {number}");
                assert_eq!(
                    bare.policy_reports(),
                    asking.policy_reports(),
                    "{dedup}, after write {number}"
                );
                bare.check().unwrap();
            }
            admitted == Admitted::EndOfLife
        });
        assert!(
            ended && !bare.is_bare_but_for_contents(),
            "{dedup}: the drive wears out"
        );
        let (hits, erases) = (bare.counts.dedup_hits, bare.counts.erases);
        assert!(hits > 100 && erases > 100, "{dedup}: {hits} hits, {erases} erases");
    }
}

/// The same of drives that only placement is asked on.
#[test]
fn writes_that_only_placement_is_asked_about_lead_where_others_do() {
    let layouts = [one_lane(80, 16), layout(2, 2, 60, 8, 4, ReclaimKind::Block)];
    let mut members = 0;
    for (layout, name) in layouts.iter().flat_map(|layout| {
        placement::catalogue()
            .names()
            .into_iter()
            .map(move |name| (layout, name))
    }) {
        let mut config = config(layout, 0.4);
        config.gc.hard = 6;
        config.placement = PolicySpec::named(name);
        config.erase_limit = Some(30);
        let setup = &mut placement::Setup::of(&config, layout);
        let policy = placement::catalogue().build(&config.placement, setup).unwrap();
        if policy.is_none() || policy.asks().future {
            continue;
        }
        members += 1;
        let [mut asking, mut bare] = [(); 2].map(|()| Ftl::<Counting>::new(layout.clone(), config.clone()).unwrap());
        let mut random = Stream::new(9, "placed");
        let ended = (0..400_000).any(|number| {
            let stream = random.below(4) as u16;
            let lpn = random.below(u64::from(config.logical_units) >> (2 * stream)) as u32;
            let request = write(lpn, stream);
            let admitted = asking.admit(&request, Ticket::NONE);
            assert!(bare.is_bare_but_for_placement() && !bare.is_bare(), "{name}");
            let here = bare.write_bare_placed(Lpn(lpn), request.context);
            assert_eq!(here, admitted, "{name}, write {number}");
            if number % 1009 == 0 || admitted == Admitted::EndOfLife {
                assert_eq!(everything(&bare), everything(&asking), "{name}, after write {number}");
                assert_eq!(
                    bare.frontier_counts(),
                    asking.frontier_counts(),
                    "{name}, after write {number}"
                );
                bare.check().unwrap();
            }
            admitted == Admitted::EndOfLife
        });
        assert!(
            ended && !bare.is_bare_but_for_placement(),
            "{name}: the drive wears out"
        );
    }
    assert!(members > 30, "{members}");
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
    let with_contents = |dedup: &str, verify: bool| {
        let mut config = config(&layout, 0.3);
        (config.gc.hard, config.verify) = (4, verify);
        config.dedup = PolicySpec::named(dedup);
        let ftl = Ftl::<Counting>::new(layout.clone(), config).unwrap();
        ftl.is_bare_but_for_contents()
    };
    assert!(with_contents("page_dedup", false));
    assert!(!with_contents("page_dedup", true), "a checked run keeps versions");
    assert!(
        with_contents("finededup", false),
        "also where units may be stored in chunks"
    );
    assert!(!with_contents("none", false));
    assert!(!is_bare(&|config| {
        config.mapping = PolicySpec::named("dftl");
        config.map_cache_bytes = 64 << 10;
    }));
    assert!(!is_bare(&|config| {
        config.buffer.policy = PolicySpec::named("lru");
        config.buffer.capacity_units = 16;
    }));
}
