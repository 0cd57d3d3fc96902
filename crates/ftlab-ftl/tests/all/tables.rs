//! Tables of values and rows of chunks in flash: DFTL pages them as it pages the map, held against the record, and checkpoints hold them.

use std::cell::Cell;
use std::sync::Arc;

use ftlab_core::{PolicySpec, Slot};
use ftlab_ftl::dedup::DedupPolicy;
use ftlab_ftl::mapping::{CacheCounts, Charge, MapCause, MappingPolicy, RecordView, Table, Why};
use ftlab_ftl::owner::Owner;
use ftlab_ftl::replication::ReplicationPolicy;
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Cause, Counting, Overrides, mapping};
use ftlab_testkit::case::Wish;
use ftlab_testkit::driving::Drives;
use ftlab_testkit::members::{ChunkDedup, MappingCache, OutOfLine, TwoCopies, UnitDedup, Watched};
use ftlab_testkit::{Bench, Case, Double, Instant, Late, Operation};

type MakeDedup = fn() -> Box<dyn DedupPolicy>;

const DEDUP: [MakeDedup; 3] = [
    || Box::new(UnitDedup::default()),
    || Box::new(ChunkDedup::default()),
    || Box::new(OutOfLine::default()),
];
const OPTIONS: [&str; 4] = [
    "dftl",
    "dftl:policy=lru,batch=true",
    "dftl:policy=flashsim_age,serial=true",
    "dftl:protected=0.5,batch=true",
];

fn roles(dedup: Option<Box<dyn DedupPolicy>>, replication: Option<Box<dyn ReplicationPolicy>>) -> Roles {
    Roles::given(dedup, replication)
}

/// DFTL with the tables of a drive with these roles, watched for changes that get lost.
fn paged(case: &Case, roles: Roles) -> Overrides {
    let mut setup = mapping::Setup {
        logical_units: case.config.logical_units,
        values: roles.most_values(&case.layout),
        rows: roles.most_rows(&case.config),
        unit_bytes: case.layout.geometry.unit_bytes,
        cache_bytes: 8 * (2 + case.config.seed % 40),
        layout: Some(Arc::new(case.layout.clone())),
        checked: true,
        beside_slot: 0,
    };
    let spec = PolicySpec::parse(OPTIONS[case.config.seed as usize % OPTIONS.len()]).unwrap();
    let policy = mapping::catalogue().build(&spec, &mut setup).unwrap();
    Overrides {
        mapping: Some(Box::new(Watched::new(policy, setup.unit_bytes))),
        roles: Some(roles),
        ..Overrides::default()
    }
}

/// Room for the tables and for what a collection changes in each of them.
fn roomy(case: &mut Case, make: impl Fn(&Case) -> Overrides, share: u32) {
    case.config.mapping = PolicySpec::named("page");
    case.make_room(make);
    case.config.logical_units = (case.config.logical_units / share).max(4);
}

fn steps() -> Wish {
    Wish::stepped(4)
}

fn cuts(protected: bool) -> Wish {
    steps().cut(Some(protected))
}

/// Pages of each table that lie in flash.
fn pages_of<B: Double>(bench: &Bench<B>) -> [u32; 4] {
    let mut pages = [0; 4];
    let (record, layout) = (&bench.ftl.record, &bench.ftl.layout);
    record.for_each_valid(Slot(0), layout.slots(), |slot| {
        if let Owner::Map { table, .. } = Owner::from(record.owner(slot)) {
            pages[usize::from(table)] += 1;
        }
    });
    pages
}

#[test]
fn dftl_pages_values_and_rows_as_it_pages_the_map() {
    for (number, dedup) in DEDUP.into_iter().enumerate() {
        let make = |case: &Case| paged(case, roles(Some(dedup()), None));
        let adapt = |case: &mut Case| roomy(case, make, 6);
        let most = Cell::new([0; 4]);
        fn look<B: Double>(bench: &Bench<B>, most: &Cell<[u32; 4]>) {
            let (pages, before) = (pages_of(bench), most.get());
            most.set(std::array::from_fn(|table| pages[table].max(before[table])));
        }
        let first = 10_000 * number as u64;
        let drives = |first: u64, wish: Wish| Drives::new(first..first + 24, wish, 400);
        drives(first, steps()).run::<Counting>(adapt, make, |bench| look(bench, &most));
        drives(first + 100, steps()).run::<Late>(adapt, make, |bench| look(bench, &most));
        drives(first + 200, cuts(false)).run::<Late>(adapt, make, |_| {});
        drives(first + 300, cuts(true)).run::<Late>(adapt, make, |_| {});
        let seen = most.get();
        assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
        assert_eq!(seen[2] > 0, number == 1, "rows are those of chunks: {seen:?}");
    }
}

#[test]
fn dftl_pages_the_table_of_copied_values() {
    let make = |case: &Case| {
        let copies = TwoCopies::new(case.config.logical_units, false);
        paged(case, roles(None, Some(Box::new(copies))))
    };
    let adapt = |case: &mut Case| roomy(case, make, 3 * case.layout.units_per_page);
    Drives::new(40_000..40_024, steps(), 400).run::<Late>(adapt, make, |_| {});
    Drives::new(41_000..41_024, cuts(false), 400).run::<Late>(adapt, make, |_| {});
}

/// Units that a checkpoint takes: 4 bytes a logical unit, 8 for each place of a value, 16 a row of chunks.
fn checkpoint_units<B: Double>(bench: &Bench<B>) -> u64 {
    let (indirection, unit_bytes) = (bench.ftl.indirection(), 512);
    let rows = u64::from(indirection.in_use_count().1);
    let places: usize = indirection.in_use().map(|vpn| indirection.copy_count(vpn).max(1)).sum();
    let map = u64::from(bench.reference.len()).div_ceil(unit_bytes / 4);
    map + (8 * places as u64 + 16 * rows).div_ceil(unit_bytes)
}

fn metadata(bench: &Bench<impl Double>) -> u64 {
    bench.ftl.counts.programmed[Cause::Metadata as usize]
}

fn write(first: u32, units: u32, content: u8) -> Operation {
    Operation::Write {
        first,
        units,
        head: false,
        tail: false,
        fua: false,
        stream: 0,
        content,
    }
}

/// A drive of 400 units that takes no checkpoint by itself.
fn recovering(protected: bool) -> Case {
    let mut case = Case::plain(100, 16, 1);
    case.config.logical_units = 400;
    case.config.checkpoint_units = 1_000_000;
    case.config.buffer.power_loss_protected = protected;
    case.config.gc.hard = 3;
    case
}

fn sharing(dedup: Option<Box<dyn DedupPolicy>>, replication: Option<Box<dyn ReplicationPolicy>>) -> Overrides {
    Overrides {
        roles: Some(roles(dedup, replication)),
        ..Overrides::default()
    }
}

/// Values, further copies of them, and rows are in the checkpoint, and are read after a power cut; a checkpoint of fewer is shorter.
#[test]
fn a_checkpoint_holds_values_and_rows() {
    let members: [fn() -> Overrides; 3] = [
        || sharing(Some(Box::new(UnitDedup::default())), None),
        || sharing(Some(Box::new(ChunkDedup::default())), None),
        || sharing(None, Some(Box::new(TwoCopies::new(400, false)))),
    ];
    for (number, member) in members.into_iter().enumerate() {
        for protected in [false, true] {
            let mut bench = Bench::<Counting>::new(&recovering(protected), member());
            (0..400).for_each(|lpn| bench.apply(&write(lpn, 1, (lpn % 12) as u8)));
            let full = checkpoint_units(&bench);
            assert!(full > 4, "member {number}: {full} units, no more than those of the map");
            let before = metadata(&bench);
            bench.ftl.checkpoint();
            assert_eq!(metadata(&bench) - before, full, "member {number}");
            bench.check();
            let report = bench.ftl.power_cut();
            assert_eq!(report.checkpoint_units, full, "member {number}");
            bench.ftl.power_on();
            bench.check();
            bench.apply(&Operation::Trim {
                first: 0,
                units: 400,
                head: false,
                tail: false,
            });
            let before = metadata(&bench);
            bench.ftl.checkpoint();
            bench.check();
            assert_eq!(metadata(&bench) - before, 4, "member {number}: only the map is left");
            assert_eq!(
                pages_of(&bench)[3],
                4,
                "member {number}: the rest of the last one is still there"
            );
            assert_eq!(bench.ftl.power_cut().checkpoint_units, 4);
        }
    }
}

/// A mapping policy whose look-up of a value rewrites pages of the map, so that collections make room.
struct Rewrites([Table; 2]);

impl MappingPolicy for Rewrites {
    fn tables(&self) -> Vec<Table> {
        self.0.to_vec()
    }

    fn look_up(&mut self, table: u8, _: u32, _: u32, why: Why, _: RecordView<'_>, charges: &mut Vec<Charge>) {
        let cause = MapCause::EvictRmw;
        if (table, why) == (1, Why::HostRead) {
            charges.extend((0..40).map(|number| Charge::Store {
                table: 0,
                tvpn: number % 2,
                cause,
            }));
        }
    }

    fn updated(&mut self, _: u8, _: u32, _: RecordView<'_>, _: &mut Vec<Charge>) {}

    fn moved(&mut self, _: u8, _: &[u32], _: RecordView<'_>, _: &mut Vec<Charge>) {}

    fn cached(&self, _: u8, _: u32) -> Option<(u32, bool)> {
        None
    }

    fn is_cached(&self, _: u32) -> bool {
        false
    }

    fn counts(&self) -> CacheCounts {
        CacheCounts::default()
    }

    fn reset_counts(&mut self) {}

    fn forget(&mut self) {}

    fn memory(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// A request reads units that lie directly and units behind values: the look-up of a value may lead to a collection, which moves a
/// unit that is still to be read and erases where it lay.
#[test]
fn a_look_up_of_a_value_leaves_what_is_still_to_be_read() {
    let mut case = Case::plain(40, 4, 1);
    case.config.logical_units = 48;
    case.config.gc.hard = 4;
    // In turn all units are collected, those of data too.
    case.config.victim = PolicySpec::named("fifo");
    let of = |keys: u32| Table { keys, entry_bytes: 16 };
    let given = Overrides {
        mapping: Some(Box::new(Rewrites([of(48), of(case.layout.slots())]))),
        ..sharing(Some(Box::new(UnitDedup::default())), None)
    };
    let mut bench = Bench::<Instant>::new(&case, given);
    for round in 0..60 {
        for lpn in 0..48 {
            // Every third unit is like others; what the rest hold is their own.
            let own = ((5 * lpn + round) % 190) as u8;
            let content = if lpn % 3 == 2 { 200 + 10 * (lpn % 4) as u8 } else { own };
            bench.apply(&write(lpn, 1, content));
        }
        for first in 0..42 {
            bench.apply(&Operation::Read {
                first,
                units: 6,
                head: false,
                tail: false,
            });
        }
    }
}

/// A policy that does not hear of moved values, or of changed rows, keeps entries that are wrong.
#[test]
fn an_entry_of_a_value_or_a_row_that_is_out_of_date_is_noticed() {
    for (table, name) in [(1, "value"), (2, "row")] {
        let make = |case: &Case| {
            let mut cache = MappingCache::new(case.config.logical_units, case.layout.geometry.unit_bytes, 30);
            let roles = roles(Some(Box::new(ChunkDedup::default())), None);
            cache.behind = [roles.most_values(&case.layout), roles.most_rows(&case.config)];
            cache.deaf_to = Some(table);
            Overrides {
                mapping: Some(Box::new(cache)),
                roles: Some(roles),
                ..Overrides::default()
            }
        };
        let mut faults = Vec::new();
        for number in 0..12 {
            let mut case = Case::draw(number, steps());
            roomy(&mut case, make, 6);
            let mut random = ftlab_core::Stream::new(number, "operations");
            let mix = ftlab_testkit::operation::Mix::draw(case.config.logical_units, false, &mut random);
            let mut bench = Bench::<Counting>::new(&case, make(&case));
            for _ in 0..600 {
                let operation = mix.next(&mut random);
                let run = std::panic::AssertUnwindSafe(|| bench.apply(&operation));
                if let Err(fault) = std::panic::catch_unwind(run) {
                    faults.push(fault.downcast_ref::<String>().cloned().unwrap_or_default());
                    break;
                }
            }
        }
        let expected = format!("the cached entry of {name} ");
        assert!(
            faults.iter().any(|fault| fault.contains(&expected)),
            "{expected}: {faults:?}"
        );
    }
}
