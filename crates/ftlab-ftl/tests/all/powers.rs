//! The powers of the seams, proved by policies that use them: the same operations and checks as for the catalogue.

use ftlab_core::{Lpn, PolicySpec, Slot, Stream};
use ftlab_ftl::dedup::DedupPolicy;
use ftlab_ftl::owner::Owner;
use ftlab_ftl::record::Target;
use ftlab_ftl::replication::ReplicationPolicy;
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Counting, Overrides, Survivors};
use ftlab_testkit::case::{Wish, most_units};
use ftlab_testkit::driving::Drives;
use ftlab_testkit::members::chunk_dedup::Shelf;
use ftlab_testkit::members::{ChunkDedup, Lifetimes, MappingCache, OutOfLine, TwoCopies, TwoStreams, UnitDedup};
use ftlab_testkit::operation::Mix;
use ftlab_testkit::{Bench, Case, Double, Instant, Late, Operation};

/// As `conformance`, with policies given by `make`; `inspect` looks at the drive after each operation.
fn drive<B: Double>(
    numbers: std::ops::Range<u64>,
    wish: Wish,
    adapt: impl Fn(&mut Case),
    make: impl Fn(&Case) -> Overrides,
    inspect: impl Fn(&Bench<B>),
) {
    // Roles are given by the tests; a deduplicating one of the case would need tables that a given map does not have.
    let adapt = |case: &mut Case| {
        case.config.dedup = PolicySpec::named("none");
        adapt(case);
    };
    Drives::new(numbers, wish, 400).run::<B>(adapt, make, inspect);
}

fn cached(case: &Case, number: u32) -> MappingCache {
    let units = case.config.logical_units;
    let mut cache = MappingCache::new(units, case.layout.geometry.unit_bytes, 1 + number % 7);
    cache.entry_bytes = [4, 8, 16][number as usize % 3];
    cache.second_table = number % 2 == 1;
    cache.own_pages = if number % 4 > 1 { 3 } else { 0 };
    cache
}

fn with_cache(case: &Case) -> Overrides {
    Overrides {
        mapping: Some(Box::new(cached(case, case.config.seed as u32))),
        ..Overrides::default()
    }
}

/// Room for the tables, and so much spare that a collection frees more than the updates of translation pages that it
/// causes: each unit moved may cost one page in each table.
fn tables_of(case: &mut Case) {
    case.make_room(with_cache);
    while case.build(with_cache(case)).is_err() && case.config.logical_units > 1 {
        case.config.logical_units -= 1 + case.config.logical_units / 64;
    }
    let share = if case.layout.slots_per_ru < 16 { 3 } else { 2 };
    case.config.logical_units = case.config.logical_units.min(case.layout.slots() / share).max(1);
}

fn steps() -> Wish {
    Wish::stepped(2)
}

fn cuts(protected: Option<bool>) -> Wish {
    steps().cut(protected)
}

#[test]
fn every_cached_mapping_entry_equals_the_record() {
    drive::<Counting>(0..60, steps(), tables_of, with_cache, |_| {});
    drive::<Instant>(100..160, steps(), tables_of, with_cache, |_| {});
    drive::<Late>(200..260, steps(), tables_of, with_cache, |_| {});
}

/// Pages of a policy's own fill other reclaim units than translation pages, journal and checkpoints, when they are written and when
/// they are moved.
#[test]
fn pages_of_two_metadata_frontiers_never_share_a_unit() {
    let make = |case: &Case| {
        let mut cache = cached(case, case.config.seed as u32);
        (cache.own_pages, cache.own_units) = (5, true);
        Overrides {
            mapping: Some(Box::new(cache)),
            ..Overrides::default()
        }
    };
    let adapt = |case: &mut Case| {
        tables_of(case);
        case.make_room(make);
        case.config.logical_units = (case.config.logical_units / 2).max(1);
    };
    let met = std::cell::Cell::new([0; 2]);
    fn apart<B: Double>(bench: &Bench<B>, met: &std::cell::Cell<[u32; 2]>) {
        let layout = &bench.ftl.layout;
        for ru in 0..layout.rus {
            let (first, count) = (layout.slots_per_ru * ru, layout.slots_per_ru);
            let mut seen = [0; 2];
            bench.ftl.record.for_each_valid(Slot(first), count, |slot| {
                match Owner::from(bench.ftl.record.owner(slot)) {
                    Owner::Map { .. } | Owner::Journal => seen[0] += 1,
                    Owner::Policy(_) => seen[1] += 1,
                    _ => {}
                }
            });
            assert!(seen[0] == 0 || seen[1] == 0, "unit {ru} holds both: {seen:?}");
            let before = met.get();
            met.set([before[0] + seen[0], before[1] + seen[1]]);
        }
    }
    let wish = |wish: Wish| Wish { reserve: 4, ..wish };
    drive::<Counting>(7000..7040, wish(steps()), adapt, make, |bench| apart(bench, &met));
    drive::<Late>(7100..7140, wish(steps()), adapt, make, |bench| apart(bench, &met));
    drive::<Late>(7200..7230, wish(cuts(Some(false))), adapt, make, |bench| {
        apart(bench, &met)
    });
    drive::<Late>(7300..7330, wish(cuts(Some(true))), adapt, make, |bench| {
        apart(bench, &met)
    });
    assert!(met.get().iter().all(|&pages| pages > 1000), "{:?}", met.get());
}

#[test]
fn a_mapping_cache_survives_power_cuts() {
    drive::<Late>(300..380, cuts(None), tables_of, with_cache, |_| {});
}

#[test]
fn two_streams_and_their_survivors_stay_apart() {
    let make = |_: &Case| Overrides {
        placement: Some(Box::new(TwoStreams)),
        ..Overrides::default()
    };
    let adapt = |case: &mut Case| {
        case.config.gc.survivors = Survivors::Stream;
        case.config.placement = ftlab_core::PolicySpec::named("none");
        case.config.wear = ftlab_core::PolicySpec::named("none");
        // Five frontiers instead of up to three, and some air: a full drive may have to mix.
        let extra = case.layout.slots_per_ru * case.layout.lanes * 5;
        case.config.logical_units = case.config.logical_units.saturating_sub(extra).max(8);
    };
    fn apart<B: Double>(bench: &Bench<B>) {
        for ru in 0..bench.ftl.layout.rus {
            let (first, count) = (bench.ftl.layout.slots_per_ru * ru, bench.ftl.layout.slots_per_ru);
            let mut seen = [false; 2];
            bench.ftl.record.for_each_valid(Slot(first), count, |slot| {
                if let Owner::Lpn(lpn) = Owner::from(bench.ftl.record.owner(slot)) {
                    seen[lpn.at() % 2] = true;
                }
            });
            assert!(seen != [true, true], "unit {ru} holds both streams");
        }
    }
    drive::<Counting>(400..460, steps(), adapt, make, apart);
    drive::<Late>(500..540, steps(), adapt, make, apart);
}

fn roles(dedup: Option<Box<dyn DedupPolicy>>, replication: Option<Box<dyn ReplicationPolicy>>) -> Overrides {
    Overrides {
        roles: Some(Roles::given(dedup, replication)),
        ..Overrides::default()
    }
}

/// Everything may need two places, and copies are padded at once.
fn half(case: &mut Case) {
    case.config.logical_units = (case.config.logical_units / (2 * case.layout.units_per_page)).max(4);
}

fn with_copies(case: &Case) -> Overrides {
    let policy = TwoCopies::new(case.config.logical_units, case.config.seed.is_multiple_of(2));
    roles(None, Some(Box::new(policy)))
}

#[test]
fn two_copies_and_racing_reads_return_the_last_version() {
    drive::<Counting>(600..640, steps(), half, with_copies, |_| {});
    drive::<Instant>(700..740, steps(), half, with_copies, |_| {});
    drive::<Late>(800..880, steps(), half, with_copies, |_| {});
    // Without protection the journal of copies has no bound while a checkpoint is under way (ARCHITECTURE.md 13, S17), and fills drives as
    // small as these; `conformance` has such cuts on drives with room for it.
    drive::<Late>(900..940, cuts(Some(true)), half, with_copies, |_| {});
}

/// At most as many copies as asked for, on different lanes where there are two.
#[test]
fn copies_lie_on_different_lanes() {
    let mut case = Case::plain_lanes(4, 20, 8, 1);
    case.config.logical_units = most_units(&case.layout, &case.config) / 3;
    let policy = TwoCopies::new(case.config.logical_units, false);
    let mut bench = Bench::<Instant>::new(&case, roles(None, Some(Box::new(policy))));
    let mut random = Stream::new(1, "lanes");
    for _ in 0..400 {
        bench.apply(&Operation::Write {
            first: random.below(u64::from(case.config.logical_units)) as u32,
            units: 1,
            head: false,
            tail: false,
            fua: false,
            stream: 0,
            content: 0,
        });
    }
    let placed = |lpn: u32| match bench.ftl.record.entry(Lpn(lpn)).target() {
        Target::Vpn(vpn) => bench.ftl.indirection().copies_of(vpn).collect(),
        _ => Vec::new(),
    };
    for slots in (0..case.config.logical_units)
        .map(placed)
        .filter(|slots| !slots.is_empty())
    {
        let mut lanes: Vec<_> = slots
            .iter()
            .map(|&slot| case.layout.lane_of(case.layout.ru_of(slot)))
            .collect();
        lanes.dedup();
        assert_eq!(lanes.len(), 2, "copies at {slots:?}");
    }
}

fn deduplicating(_: &Case) -> Overrides {
    roles(Some(Box::new(UnitDedup::default())), None)
}

#[test]
fn whole_unit_dedup_returns_the_content_written() {
    drive::<Counting>(1000..1040, steps(), |_| {}, deduplicating, |_| {});
    drive::<Instant>(1100..1140, steps(), |_| {}, deduplicating, |_| {});
    drive::<Late>(1200..1240, steps(), |_| {}, deduplicating, |_| {});
    drive::<Late>(1300..1340, cuts(None), |_| {}, deduplicating, |_| {});
    drive::<Late>(1350..1380, cuts(Some(false)), |_| {}, deduplicating, |_| {});
}

fn out_of_line(_: &Case) -> Overrides {
    roles(Some(Box::new(OutOfLine::default())), None)
}

#[test]
fn units_merged_in_idle_moments_return_the_content_written() {
    let merges = std::cell::Cell::new(0.0);
    fn count<B: Double>(bench: &Bench<B>, merges: &std::cell::Cell<f64>) {
        let reports = bench.ftl.policy_reports();
        let report = reports.iter().find(|(role, _)| *role == "dedup");
        merges.set(merges.get().max(report.map_or(0.0, |(_, figures)| figures[0].1)));
    }
    drive::<Counting>(2000..2040, steps(), |_| {}, out_of_line, |bench| count(bench, &merges));
    drive::<Instant>(2100..2140, steps(), |_| {}, out_of_line, |_| {});
    drive::<Late>(2200..2240, steps(), |_| {}, out_of_line, |_| {});
    drive::<Late>(2300..2340, cuts(None), |_| {}, out_of_line, |_| {});
    drive::<Counting>(2400..2440, cuts(Some(false)), |_| {}, out_of_line, |_| {});
    assert!(merges.get() > 20.0, "{} merges", merges.get());
    let with_copies = |case: &Case| {
        let policy = TwoCopies::new(case.config.logical_units, false);
        roles(Some(Box::new(OutOfLine::default())), Some(Box::new(policy)))
    };
    drive::<Late>(2500..2540, cuts(None), half, with_copies, |_| {});
}

/// That an LPN refers to a value may be known from the spare area of a page that a collection erases after the power cut: it must
/// be known after a second one too, before which the checkpoint has not become complete.
#[test]
fn a_second_power_cut_loses_nothing_that_the_first_has_left() {
    let with_copies = |case: &Case| {
        let policy = TwoCopies::new(case.config.logical_units, false);
        roles(Some(Box::new(OutOfLine::default())), Some(Box::new(policy)))
    };
    drive::<Late>(2950..2970, cuts(None), half, with_copies, |_| {});
}

/// A map in flash, on every second drive with the tables of values and rows, and every kind of sharing.
#[test]
fn sharing_is_told_to_a_map_in_flash() {
    let with = |dedup: fn() -> Box<dyn DedupPolicy>| {
        move |case: &Case| {
            let roles = Roles::given(Some(dedup()), None);
            let mut cache = cached(case, case.config.seed as u32);
            if std::mem::take(&mut cache.second_table) {
                cache.behind = [roles.most_values(&case.layout), roles.most_rows(&case.config)];
            }
            Overrides {
                mapping: Some(Box::new(cache)),
                roles: Some(roles),
                ..Overrides::default()
            }
        }
    };
    let members: [fn() -> Box<dyn DedupPolicy>; 3] = [
        || Box::new(UnitDedup::default()),
        || Box::new(ChunkDedup::default()),
        || Box::new(OutOfLine::default()),
    ];
    let roomy = |wish: Wish| Wish { reserve: 4, ..wish };
    // A drive of chunks has many values, whose tables it pages.
    for (number, member) in members.into_iter().enumerate() {
        let tables_of = |case: &mut Case| {
            tables_of(case);
            case.make_room(with(member));
            case.config.logical_units = (case.config.logical_units / 4).max(4);
        };
        let first = 3000 + 1000 * number as u64;
        drive::<Counting>(first..first + 30, roomy(steps()), tables_of, with(member), |_| {});
        drive::<Late>(
            first + 100..first + 130,
            roomy(steps()),
            tables_of,
            with(member),
            |_| {},
        );
        drive::<Late>(
            first + 200..first + 230,
            roomy(cuts(None)),
            tables_of,
            with(member),
            |_| {},
        );
    }
}

/// DFTL pages the table of values as well; moves of values are no business of a mapping policy that pages the map alone.
#[test]
fn every_mapping_of_the_catalogue_gets_along_with_values() {
    let wish = Wish {
        mapping: true,
        reserve: 3,
        ..steps()
    };
    let cuts = Wish { recovers: true, ..wish };
    let adapt = |case: &mut Case| {
        half(case);
        case.make_room(deduplicating);
    };
    drive::<Counting>(6000..6080, wish, adapt, deduplicating, |_| {});
    drive::<Late>(6100..6160, cuts, adapt, deduplicating, |_| {});
}

#[test]
fn dedup_and_replication_work_together() {
    let make = |case: &Case| {
        let policy = TwoCopies::new(case.config.logical_units, false);
        roles(Some(Box::new(UnitDedup::default())), Some(Box::new(policy)))
    };
    drive::<Late>(1400..1440, steps(), half, make, |_| {});
    drive::<Late>(1450..1480, cuts(Some(false)), half, make, |_| {});
}

/// The contents of every unit that is stored as chunks, as the values hold them.
fn chunks_are_right<B: Double>(bench: &Bench<B>, shelf: &Shelf) {
    let shelf = shelf.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for lpn in 0..bench.reference.len() {
        let Target::Chunks(row) = bench.ftl.record.entry(Lpn(lpn)).target() else {
            continue;
        };
        let chunks = bench.ftl.indirection().row(row);
        let found = chunks.map(|chunk| shelf.get(&chunk).copied());
        let stamp = bench.ftl.stamp(Lpn(lpn));
        assert_eq!(
            found,
            bench.written[&stamp].map(Some),
            "LPN {lpn} should hold the content with stamp {stamp:#x}"
        );
    }
}

fn drive_chunks<B: Double>(numbers: std::ops::Range<u64>, wish: Wish, buffered: bool) -> [f64; 4] {
    let shelf = std::cell::RefCell::new(Shelf::default());
    let make = |_: &Case| {
        let dedup = ChunkDedup::default();
        *shelf.borrow_mut() = dedup.shelf.clone();
        roles(Some(Box::new(dedup)), None)
    };
    let adapt = |case: &mut Case| {
        if !buffered {
            case.config.buffer.policy = ftlab_core::PolicySpec::named("none");
            case.config.buffer.capacity_units = 0;
        }
        case.config.logical_units = (case.config.logical_units / 2).max(8);
    };
    let figures = std::cell::Cell::new([0.0; 4]);
    let sums = std::cell::Cell::new([0.0; 4]);
    drive::<B>(numbers, wish, adapt, make, |bench| {
        // Of a unit in the write buffer the record knows an older version.
        if !buffered {
            chunks_are_right(bench, &shelf.borrow());
        }
        let reports = bench.ftl.policy_reports();
        let report = reports.iter().find(|(role, _)| *role == "dedup");
        let now: [f64; 4] = report.map_or([0.0; 4], |(_, report)| std::array::from_fn(|i| report[i].1));
        let (before, mut sum) = (figures.replace(now), sums.get());
        for i in 0..4 {
            sum[i] += (now[i] - before[i]).max(0.0);
        }
        sums.set(sum);
    });
    sums.get()
}

#[test]
fn quarter_unit_dedup_returns_the_content_written() {
    let mut seen = [0.0; 4];
    let mut add = |sums: [f64; 4]| seen.iter_mut().zip(sums).for_each(|(sum, more)| *sum += more);
    add(drive_chunks::<Counting>(1500..1540, steps(), false));
    add(drive_chunks::<Instant>(1600..1640, steps(), true));
    add(drive_chunks::<Late>(1700..1740, steps(), false));
    add(drive_chunks::<Late>(1750..1790, steps(), true));
    add(drive_chunks::<Late>(1800..1830, cuts(None), false));
    add(drive_chunks::<Late>(1840..1870, cuts(Some(false)), true));
    add(drive_chunks::<Counting>(1880..1900, cuts(Some(false)), false));
    // Units stored whole serve as chunks, and new chunks of a unit go to one pack or to several.
    assert!(seen.iter().all(|&times| times > 50.0), "{seen:?}");
}

#[test]
fn one_object_fills_two_roles() {
    let mut case = Case::plain(40, 8, 1);
    case.config.logical_units = 200;
    case.config.victim = ftlab_core::PolicySpec::named("random");
    let given = Overrides {
        placement: Some(Box::new(Lifetimes::new(case.config.logical_units))),
        ..Overrides::default()
    };
    let mut bench = Bench::<Instant>::new(&case, given);
    let mut random = Stream::new(1, "roles");
    let mix = Mix::draw(200, false, &mut random);
    (0..2000).for_each(|_| bench.apply(&mix.next(&mut random)));
    assert!(bench.ftl.counts.gc_collections > 0);
    let reports = bench.ftl.policy_reports();
    let (_, figures) = reports
        .iter()
        .find(|(role, _)| *role == "placement")
        .expect("it reports");
    assert_eq!(
        figures[..],
        [("victims", bench.ftl.counts.gc_collections as f64)],
        "every victim is its choice"
    );
}

/// A cold cache of two entries over two translation pages: the data read of a miss waits for the load of its translation
/// page, and a second miss on the same page shares it.
#[test]
fn a_data_read_waits_for_the_load_of_its_translation_page() {
    let mut case = Case::plain(60, 8, 1);
    case.config.logical_units = 200;
    case.config.gc.hard = 2;
    let cache = MappingCache::new(200, case.layout.geometry.unit_bytes, 2);
    let given = Overrides {
        mapping: Some(Box::new(cache)),
        ..Overrides::default()
    };
    let mut bench = Bench::<Late>::new(&case, given);
    let write = |first| Operation::Write {
        first,
        units: 1,
        head: false,
        tail: false,
        fua: false,
        stream: 0,
        content: 0,
    };
    let read = |first| Operation::Read {
        first,
        units: 1,
        head: false,
        tail: false,
    };
    for lpn in [0, 1, 2, 3, 150, 151, 152, 153] {
        bench.apply(&write(lpn));
    }
    // Leaves two clean entries behind, so that nothing need be written back.
    bench.apply(&read(150));
    bench.apply(&read(151));
    bench.apply(&Operation::Settle);
    let loads = |bench: &Bench<Late>| bench.ftl.counts.trans_reads[0];
    let before = loads(&bench);
    bench.apply(&read(0));
    let class_of = |bench: &Bench<Late>| bench.ftl.backend.ready().iter().map(|op| op.class).collect::<Vec<_>>();
    assert_eq!(
        class_of(&bench),
        [ftlab_ftl::Class::Mapping],
        "the load goes first, alone"
    );
    bench.apply(&read(1));
    assert_eq!(loads(&bench), before + 1, "one load serves both");
    assert_eq!(class_of(&bench), [ftlab_ftl::Class::Mapping]);
    bench.apply(&Operation::Run(1));
    assert_eq!(
        class_of(&bench),
        [ftlab_ftl::Class::HostRead; 2],
        "then both data reads may start"
    );
}
