//! The powers of the placement seam, proved by policies that need them: random drives, with and without a write buffer,
//! protected and unprotected memory, power cuts, a map in flash.

use ftlab_core::{Lpn, PolicySpec, RuId, Slot, Stream};
use ftlab_ftl::future::Recorder;
use ftlab_ftl::owner::Owner;
use ftlab_ftl::record::Target;
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Counting, Ftl, Overrides, Survivors};
use ftlab_testkit::case::Wish;
use ftlab_testkit::driving::{Drives, until};
use ftlab_testkit::members::knowing::stream_of;
use ftlab_testkit::members::many_streams::{self, OPEN_AT_ONCE};
use ftlab_testkit::members::three_streams::{self, stream_of as stream_of_lpn};
use ftlab_testkit::members::two_groups::half_of;
use ftlab_testkit::members::{ByParity, Knowing, ManyStreams, Mirror, Seer, ThreeStreams, TwoCopies, TwoGroups};
use ftlab_testkit::operation::Mix;
use ftlab_testkit::{Bench, Case, Double, Instant, Late, Operation};

fn placed_by(policy: impl ftlab_ftl::placement::PlacementPolicy + 'static) -> Overrides {
    Overrides {
        placement: Some(Box::new(policy)),
        ..Overrides::default()
    }
}

/// The policy alone, with room for its frontiers.
fn with_room(case: &mut Case, make: impl Fn(&Case) -> Overrides) {
    case.config.placement = PolicySpec::named("none");
    case.config.gc.hard += 3;
    case.config.gc.soft += 3;
    case.make_room(make);
}

/// A full drive may have to help itself where it should not.
fn half_full(case: &mut Case, make: impl Fn(&Case) -> Overrides) {
    case.config.logical_units = (case.config.logical_units / 2).max(8);
    while case.config.logical_units > 8 && case.build(make(case)).is_err() {
        case.config.logical_units = (case.config.logical_units * 3 / 4).max(8);
    }
}

fn steps(mapping: bool) -> Wish {
    Wish {
        steps: true,
        mapping,
        ..Wish::default()
    }
}

/// Figures of the placement policy.
fn figure<B: Double>(bench: &Bench<B>, name: &str) -> f64 {
    let reports = bench.ftl.policy_reports();
    let placement = reports.iter().find(|(role, _)| *role == "placement");
    let figures = placement.map(|(_, figures)| figures.clone()).unwrap_or_default();
    figures
        .iter()
        .find(|(key, _)| *key == name)
        .map_or(0.0, |(_, value)| *value)
}

fn counts_agree<B: Double>(bench: &Bench<B>) {
    let counts = bench.ftl.frontier_counts();
    let collections: u64 = counts.iter().map(|count| count.collections).sum();
    let own = bench.ftl.counts.gc_collections + bench.ftl.counts.wear_collections;
    assert!(
        collections <= own,
        "{collections} collections by frontier, {own} in all"
    );
    assert_eq!(figure(bench, "collections"), own as f64);
    assert!(figure(bench, "erases") <= own as f64);
}

#[test]
fn a_placement_knows_requests_last_writes_openings_and_cached_entries() {
    let knowing = |case: &Case| placed_by(Knowing::new(case.config.logical_units, false));
    let adapt = |case: &mut Case| with_room(case, knowing);
    Drives::new(0..80, steps(false), 400).run::<Counting>(adapt, knowing, counts_agree);
    Drives::new(100..160, steps(true), 400).run::<Counting>(adapt, knowing, counts_agree);
    Drives::new(200..280, steps(true), 400).run::<Instant>(adapt, knowing, counts_agree);
    Drives::new(300..380, steps(true), 300).run::<Late>(adapt, knowing, counts_agree);
}

/// Entries are cached and not cached, seen from one drive with a map in flash.
#[test]
fn some_survivors_are_cached_and_some_are_not() {
    let mut case = Case::plain(60, 8, 1);
    case.config.gc.hard = 4;
    case.config.logical_units = 250;
    case.config.mapping = PolicySpec::named("dftl");
    case.config.map_cache_bytes = 400;
    let make = |case: &Case| placed_by(Knowing::new(case.config.logical_units, false));
    let mut bench = Bench::<Instant>::new(&case, make(&case));
    let mut random = Stream::new(5, "operations");
    let mix = Mix::draw(250, false, &mut random);
    (0..3000).for_each(|_| bench.apply(&mix.next(&mut random)));
    assert!(figure(&bench, "cached") > 20.0 && figure(&bench, "not_cached") > 20.0);
}

/// Behind a write buffer units leave their requests; what was said of each must not be mixed up.
#[test]
fn the_borders_of_requests_are_known_behind_a_buffer() {
    for policy in ["none", "write_back", "lru", "write_through"] {
        let mut case = Case::plain(60, 8, 4);
        case.config.buffer.policy = PolicySpec::named(policy);
        case.config.buffer.capacity_units = if policy == "none" { 0 } else { 40 };
        case.config.gc.hard = 4;
        case.config.logical_units = 600;
        let mut bench = Bench::<Instant>::new(&case, placed_by(Knowing::new(600, true)));
        let mut random = Stream::new(3, "operations");
        let mix = Mix::draw(600, false, &mut random);
        for _ in 0..2000 {
            let mut operation = mix.next(&mut random);
            if let Operation::Write {
                first, units, stream, ..
            } = &mut operation
            {
                *stream = stream_of(*first, *units);
            }
            bench.apply(&operation);
        }
        assert!(bench.ftl.counts.host_writes > 1000);
    }
}

#[test]
fn reclaim_groups_keep_to_their_lanes() {
    let make = |_: &Case| placed_by(TwoGroups);
    let adapt = |case: &mut Case| {
        case.config.wear = PolicySpec::named("none");
        with_room(case, make);
        half_full(case, make);
    };
    fn kept<B: Double>(bench: &Bench<B>) {
        let layout = &bench.ftl.layout;
        if layout.lanes == 1 {
            return;
        }
        bench.ftl.record.for_each_valid(Slot(0), layout.slots(), |slot| {
            if let Owner::Lpn(lpn) = Owner::from(bench.ftl.record.owner(slot)) {
                let lane = layout.lane_of(layout.ru_of(slot));
                assert_eq!(
                    half_of(lane, layout),
                    lpn.0 % 2,
                    "{lpn:?} lies on {lane:?} of {}",
                    layout.lanes
                );
            }
        });
    }
    let several = |case: &mut Case| {
        let mut geometry = case.layout.geometry.clone();
        geometry.channels = geometry.channels.max(2);
        let order = ftlab_ftl::allocation::plane_order(&case.config.allocation).unwrap();
        case.layout = ftlab_core::Layout::new(geometry, ftlab_core::ReclaimKind::Block, order).unwrap();
        adapt(case);
    };
    Drives::new(400..460, steps(false), 400).run::<Counting>(several, make, kept);
    Drives::new(500..560, steps(false), 300).run::<Late>(several, make, kept);
}

/// Further copies of a unit lie on lanes of its group as well, whether they are written with the first one or in idle time.
#[test]
fn copies_stay_in_their_group() {
    let make = |case: &Case| {
        let copies = TwoCopies::new(case.config.logical_units, case.config.seed.is_multiple_of(2));
        Overrides {
            roles: Some(Roles::given(None, Some(Box::new(copies)))),
            ..placed_by(TwoGroups)
        }
    };
    let adapt = |case: &mut Case| {
        let mut geometry = case.layout.geometry.clone();
        geometry.channels = 4;
        let order = ftlab_ftl::allocation::plane_order(&case.config.allocation).unwrap();
        case.layout = ftlab_core::Layout::new(geometry, ftlab_core::ReclaimKind::Block, order).unwrap();
        case.config.wear = PolicySpec::named("none");
        case.config.dedup = PolicySpec::named("none");
        with_room(case, make);
        half_full(case, make);
    };
    let copies = std::cell::Cell::new(0);
    fn look<B: Double>(bench: &Bench<B>) -> u64 {
        let (layout, indirection) = (&bench.ftl.layout, bench.ftl.indirection());
        for lpn in (0..bench.ftl.config.logical_units).map(Lpn) {
            if let Target::Vpn(vpn) = bench.ftl.record.entry(lpn).target() {
                for slot in indirection.copies_of(vpn) {
                    let lane = layout.lane_of(layout.ru_of(slot));
                    assert_eq!(half_of(lane, layout), lpn.0 % 2, "a copy of {lpn:?} lies on {lane:?}");
                }
            }
        }
        bench.ftl.counts.replica_programs
    }
    let count = |made| copies.set(copies.get() + made);
    Drives::new(7000..7030, steps(false), 200).run::<Counting>(adapt, make, |bench| count(look(bench)));
    Drives::new(7100..7130, steps(false), 200).run_until::<Late>(
        adapt,
        make,
        |bench| count(look(bench)),
        || copies.get() > 1000,
    );
    assert!(copies.get() > 1000, "{} copies", copies.get());
}

/// Streams whose data a reclaim unit holds.
fn streams_in<B: Double>(bench: &Bench<B>, ru: RuId) -> usize {
    let mut seen = [false; three_streams::STREAMS as usize];
    let record = &bench.ftl.record;
    record.for_each_valid(bench.ftl.layout.first_slot(ru), bench.ftl.layout.slots_per_ru, |slot| {
        if let Owner::Lpn(lpn) = Owner::from(record.owner(slot)) {
            seen[stream_of_lpn(lpn) as usize] = true;
        }
    });
    seen.iter().filter(|&&seen| seen).count()
}

/// With survivors that go back to their stream, or to the internal one of their stream, no reclaim unit holds data of two, wear
/// levelling included; where they share a frontier, only they and what wear levelling has moved are mixed. (A drive that is short
/// of free units after a power cut uses what is open.)
#[test]
fn streams_are_mixed_among_survivors_only_and_only_where_these_share_a_frontier() {
    let make = |_: &Case| placed_by(ThreeStreams);
    let mixed = std::cell::Cell::new(0);
    for (start, survivors) in [
        (0, Survivors::Shared),
        (200, Survivors::Stream),
        (400, Survivors::Internal),
    ] {
        let adapt = |case: &mut Case| {
            case.config.gc.survivors = survivors;
            with_room(case, make);
            half_full(case, make);
        };
        let apart = |mixes: bool, ru: u32, streams: usize, frontier: u16| {
            let of_host = frontier < three_streams::STREAMS;
            assert!(
                streams < 2 || (mixes && !of_host),
                "{survivors:?}: unit {ru} of frontier {frontier} holds {streams} streams"
            );
            mixed.set(mixed.get() + usize::from(streams > 1));
        };
        let mixes = survivors == Survivors::Shared;
        // Where they share no frontier, none are mixed and nothing is waited for.
        let enough = || !mixes || mixed.get() > 1000;
        Drives::new(start + 5000..start + 5060, steps(false), 500).run::<Counting>(adapt, make, |bench| {
            for ru in 0..bench.ftl.layout.rus {
                let frontier = bench.ftl.units.rus[ru as usize].frontier;
                apart(mixes, ru, streams_in(bench, RuId(ru)), frontier);
            }
        });
        let look = |bench: &Bench<Late>| {
            for ru in 0..bench.ftl.layout.rus {
                let frontier = bench.ftl.units.rus[ru as usize].frontier;
                apart(mixes, ru, streams_in(bench, RuId(ru)), frontier);
            }
        };
        Drives::new(start + 5100..start + 5140, steps(false), 300).run_until::<Late>(adapt, make, look, enough);
    }
    assert!(
        mixed.get() > 1000,
        "survivors that share a frontier hardly ever met: {}",
        mixed.get()
    );
}

/// FDP: units that handles refer to hold the data of one, survivors meet within their group with `initially` and nowhere with
/// `persistently`, and nothing leaves its group. The host's stream of a unit is told by its LPN.
#[test]
fn handles_of_a_group_share_survivors_or_nothing() {
    for (start, isolation, groups) in [
        (0, "initially", 1),
        (100, "initially", 2),
        (200, "persistently", 1),
        (300, "persistently", 2),
    ] {
        let mixed = std::cell::Cell::new(0);
        // Odd and even LPNs by handle, units of 16 by group: `by = volume` with two volumes, as the drive chooses groups by address.
        let make = |case: &Case| {
            let spec = format!("fdp:handles=2,groups={groups},isolation={isolation},by=volume");
            let mut setup = ftlab_ftl::placement::Setup::of(&case.config, &case.layout);
            let fdp = ftlab_ftl::placement::catalogue().build(&PolicySpec::parse(&spec).unwrap(), &mut setup);
            placed_by(ByParity(fdp.unwrap()))
        };
        let adapt = |case: &mut Case| {
            let mut geometry = case.layout.geometry.clone();
            geometry.channels = geometry.channels.next_multiple_of(2);
            let order = ftlab_ftl::allocation::plane_order(&case.config.allocation).unwrap();
            case.layout = ftlab_core::Layout::new(geometry, ftlab_core::ReclaimKind::Block, order).unwrap();
            with_room(case, make);
            half_full(case, make);
        };
        fn look<B: Double>(bench: &Bench<B>, persistently: bool, groups: u32) -> usize {
            let (layout, record) = (&bench.ftl.layout, &bench.ftl.record);
            let mut mixed = 0;
            for ru in (0..layout.rus).map(RuId) {
                let (lane, frontier) = (layout.lane_of(ru), bench.ftl.units.rus[ru.at()].frontier);
                let mut seen = [false; 2];
                record.for_each_valid(layout.first_slot(ru), layout.slots_per_ru, |slot| {
                    if let Owner::Lpn(lpn) = Owner::from(record.owner(slot)) {
                        seen[lpn.at() % 2] = true;
                        assert_eq!(lane.0 % groups, lpn.0 / 16 % groups, "{lpn:?} on {lane:?}");
                    }
                });
                let both = seen == [true, true];
                let of_host = u32::from(frontier) < 2 * groups;
                assert!(
                    !both || !(persistently || of_host),
                    "{ru:?} of frontier {frontier} holds both"
                );
                mixed += usize::from(both);
            }
            mixed
        }
        let persistently = isolation == "persistently";
        Drives::new(start + 6000..start + 6040, steps(false), 500).run::<Counting>(adapt, make, |bench| {
            mixed.set(mixed.get() + look(bench, persistently, groups));
        });
        let enough = || persistently || mixed.get() > 10;
        Drives::new(start + 6050..start + 6080, steps(false), 300).run_until::<Late>(
            adapt,
            make,
            |bench| mixed.set(mixed.get() + look(bench, persistently, groups)),
            enough,
        );
        assert!(enough(), "{isolation}: {} mixed units", mixed.get());
    }
}

#[test]
fn no_more_frontiers_are_open_than_may_be() {
    let make = |_: &Case| placed_by(ManyStreams);
    let adapt = |case: &mut Case| {
        // Survivors that went back to three hundred frontiers would close one for another for ever.
        case.config.gc.survivors = Survivors::Shared;
        with_room(case, make);
        case.config.logical_units = case.config.logical_units.min(case.layout.slots() / 3).max(8);
    };
    fn few<B: Double>(bench: &Bench<B>) {
        let lanes = bench.ftl.layout.lanes as usize;
        let mut open = vec![0; lanes];
        for (ru, _) in bench.ftl.open_units() {
            let of_policy = bench.ftl.units.rus[ru.at()].frontier < many_streams::STREAMS;
            open[bench.ftl.layout.lane_of(ru).at()] += u16::from(of_policy);
        }
        assert!(open.iter().all(|&count| count <= OPEN_AT_ONCE), "{open:?} open");
    }
    Drives::new(600..640, steps(false), 400).run::<Counting>(adapt, make, few);
    Drives::new(700..740, steps(false), 300).run::<Late>(adapt, make, few);
}

/// Power cuts take the open units and the buffer; what the policy knew by itself it knows no more (here it is left to it).
#[test]
fn placements_survive_power_cuts() {
    let groups = |_: &Case| placed_by(TwoGroups);
    let many = |_: &Case| placed_by(ManyStreams);
    for protected in [true, false] {
        let wish = Wish {
            recovers: true,
            protected: Some(protected),
            ..steps(protected)
        };
        let start = 800 + 100 * u64::from(protected);
        Drives::new(start..start + 40, wish, 300).run::<Late>(
            |case| {
                with_room(case, groups);
                half_full(case, groups);
            },
            groups,
            |_| {},
        );
        Drives::new(start + 50..start + 80, wish, 300).run::<Late>(
            |case| {
                case.config.gc.survivors = Survivors::Shared;
                with_room(case, many);
                half_full(case, many);
            },
            many,
            |_| {},
        );
    }
}

/// The same operations twice: the second time the placement is told when each version will die, and it is true.
#[test]
fn the_future_is_true_with_and_without_a_buffer() {
    let deaths = std::cell::Cell::new(0.0);
    for number in until(3000, 120, || deaths.get() > 5000.0) {
        let mut case = Case::draw(number, steps(number % 2 == 0));
        with_room(&mut case, |_| placed_by(Seer::new(50)));
        let units = case.config.logical_units;
        let mut random = Stream::new(number, "operations");
        let mix = Mix::draw(units, false, &mut random);
        let operations: Vec<Operation> = (0..400).map(|_| mix.next(&mut random)).collect();
        let (recorder, recorded) = Recorder::new(units);
        let mut first = Bench::<Counting>::new(&case, placed_by(recorder));
        operations.iter().for_each(|operation| first.apply(operation));
        let given = Overrides {
            future: Some(recorded.into_future().unwrap()),
            ..placed_by(Seer::new(50))
        };
        let mut second = Bench::<Counting>::new(&case, given);
        operations.iter().for_each(|operation| second.apply(operation));
        deaths.set(deaths.get() + figure(&second, "deaths"));
    }
    assert!(deaths.get() > 5000.0, "{} deaths", deaths.get());
}

#[test]
fn what_a_placement_has_learnt_is_saved_and_loaded() {
    let mut case = Case::plain(60, 8, 1);
    case.config.gc.hard = 4;
    case.config.logical_units = 250;
    let make = || placed_by(Knowing::new(250, false));
    let mut bench = Bench::<Counting>::new(&case, make());
    let mut random = Stream::new(7, "operations");
    let mix = Mix::draw(250, false, &mut random);
    (0..1500).for_each(|_| bench.apply(&mix.next(&mut random)));
    bench.ftl.shut_down();
    let mut saved = Vec::new();
    bench.ftl.save(&mut saved).unwrap();
    let mut loaded: Ftl<Counting> = case.build(make()).unwrap();
    loaded.load(&mut saved.as_slice()).unwrap();
    loaded.check().unwrap();
    let mut again = Vec::new();
    loaded.save(&mut again).unwrap();
    assert!(saved == again, "the state differs after loading");
    // Ticks of openings and last writes must be those of before, or the policy complains.
    loaded.resume();
    for lpn in (0..250).cycle().take(2000) {
        let request = ftlab_ftl::HostRequest::whole(ftlab_core::OpKind::Write, ftlab_core::Lpn(lpn), 1);
        loaded.admit(&request, ftlab_ftl::Ticket::NONE);
    }
    let refused = case
        .build(placed_by(Knowing::new(249, false)))
        .unwrap()
        .load(&mut saved.as_slice());
    assert!(refused.unwrap_err().to_string().contains("placement policy"));
}

fn mirror(case: &Case) -> Overrides {
    let c = &case.config;
    let is_plain = |policy: &PolicySpec, name: &str| policy.name == name;
    let is_all = is_plain(&c.mapping, "page")
        && is_plain(&c.dedup, "none")
        && is_plain(&c.replication, "none")
        && c.checkpoint_units == 0;
    placed_by(Mirror::new(c.logical_units, case.layout.rus, is_all))
}

/// What it was told of is where the record says that every unit lies.
fn mirrors<B: Double>(bench: &Bench<B>) {
    let ftl = &bench.ftl;
    let lpns = (0..ftl.config.logical_units).map(Lpn);
    let places = lpns.filter_map(|lpn| Some((lpn, ftl.layout.ru_of(ftl.record.entry(lpn).as_slot()?))));
    assert_eq!(figure(bench, "mark"), Mirror::mark(places));
}

#[test]
fn a_placement_knows_where_every_unit_lies() {
    let adapt = |case: &mut Case| with_room(case, mirror);
    Drives::new(1100..1180, steps(false), 400).run::<Counting>(adapt, mirror, mirrors);
    Drives::new(1200..1260, steps(true), 400).run::<Counting>(adapt, mirror, mirrors);
    Drives::new(1300..1360, steps(true), 400).run::<Instant>(adapt, mirror, mirrors);
    Drives::new(1400..1460, steps(true), 300).run::<Late>(adapt, mirror, mirrors);
    for protected in [true, false] {
        let wish = Wish {
            recovers: true,
            protected: Some(protected),
            ..steps(protected)
        };
        let start = 1500 + 100 * u64::from(protected);
        Drives::new(start..start + 40, wish, 300).run::<Late>(adapt, mirror, mirrors);
    }
}

/// Of a drive that was set up or loaded, all units are told of.
#[test]
fn a_placement_is_told_where_everything_lies_that_it_has_not_placed() {
    let mut case = Case::plain(60, 8, 1);
    case.config.gc.hard = 4;
    case.config.logical_units = 250;
    let mut bench = Bench::<Counting>::new(&case, mirror(&case));
    bench.ftl.precondition_theory();
    assert!(figure(&bench, "mark") > 0.0);
    mirrors(&bench);
    let mut saved = Vec::new();
    bench.ftl.save(&mut saved).unwrap();
    let mut again = Bench::<Counting>::new(&case, mirror(&case));
    again.ftl.load(&mut saved.as_slice()).unwrap();
    again.ftl.resume();
    mirrors(&again);
}
