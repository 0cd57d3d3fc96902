//! Tables of values and rows of chunks in flash: DFTL pages them as it pages the map, held against the record, and checkpoints hold them.

use std::cell::Cell;
use std::sync::Arc;

use ftlab_core::{PolicySpec, Slot};
use ftlab_ftl::dedup::DedupPolicy;
use ftlab_ftl::owner::Owner;
use ftlab_ftl::replication::ReplicationPolicy;
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Overrides, mapping};
use ftlab_testkit::case::Wish;
use ftlab_testkit::driving::Drives;
use ftlab_testkit::members::{ChunkDedup, MappingCache, OutOfLine, TwoCopies, UnitDedup, Watched};
use ftlab_testkit::{Bench, Case, Double, Late};

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
    Wish {
        steps: true,
        reserve: 4,
        ..Wish::default()
    }
}

fn cuts(protected: bool) -> Wish {
    Wish {
        recovers: true,
        protected: Some(protected),
        ..steps()
    }
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
        drives(first, steps()).run::<ftlab_ftl::Counting>(adapt, make, |bench| look(bench, &most));
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
            let mut bench = Bench::<ftlab_ftl::Counting>::new(&case, make(&case));
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
