//! The catalogue's replication policies on random drives: copies of a value lie on chips of their own, power cuts and wear-out
//! included, and copies are in fact made, read and given up.

use std::sync::atomic::{AtomicU64, Ordering};

use ftlab_core::PolicySpec;
use ftlab_ftl::config::PoolScope;
use ftlab_ftl::dedup::DedupPolicy;
use ftlab_ftl::replication::Setup;
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Backend, Counting, Ftl, Overrides, replication};
use ftlab_testkit::case::Wish;
use ftlab_testkit::driving::Drives;
use ftlab_testkit::members::UnitDedup;
use ftlab_testkit::{Bench, Case, Double, Instant, Late};

fn member(case: &Case, policy: &str, dedup: bool) -> Overrides {
    let mut setup = Setup::new(case.config.logical_units, &case.layout, case.config.seed);
    let spec = PolicySpec::parse(policy).unwrap();
    let built = replication::catalogue().build(&spec, &mut setup).unwrap();
    let of_dedup: Option<Box<dyn DedupPolicy>> = dedup.then(|| Box::new(UnitDedup::default()) as _);
    Overrides {
        roles: Some(Roles::given(of_dedup, Some(built))),
        ..Overrides::default()
    }
}

/// Room for copies; collection stays on its chip.
fn roomy(case: &mut Case) {
    case.config.logical_units = (case.config.logical_units / (3 * case.layout.units_per_page)).max(4);
    if case.config.gc.pool == PoolScope::Drive {
        case.config.gc.pool = PoolScope::Lane;
    }
}

fn chips<B: Backend>(ftl: &Ftl<B>) -> Vec<u32> {
    Setup::new(ftl.config.logical_units, &ftl.layout, 0).chips
}

/// Copies of every value lie on distinct chips, where chips are what the drive collects by.
fn distinct<B: Backend>(ftl: &Ftl<B>, most: usize) {
    let chips = chips(ftl);
    let indirection = ftl.indirection();
    for vpn in indirection.in_use() {
        let lanes = indirection
            .copies_of(vpn)
            .map(|slot| ftl.layout.lane_of(ftl.layout.ru_of(slot)));
        let mut of: Vec<u32> = lanes.map(|lane| chips[lane.at()]).collect();
        let copies = of.len();
        of.sort_unstable();
        of.dedup();
        assert_eq!(of.len(), copies, "{vpn:?} twice on a chip of {chips:?}");
        assert!(copies <= most, "{copies} copies of {vpn:?}");
    }
}

const SELECTIVE: [&str; 5] = [
    "rr_ssd:alpha=60,day_units=40,idle_units=5",
    "rr_ssd:alpha=60,when=on_line,copies=all,idle_us=50,idle_units=5",
    "random:alpha=60,day_units=30,idle_units=5,copies=count",
    "static:alpha=60,day_units=50,idle_units=5,mirror=false,idle_us=50",
    "static:alpha=10,day_units=20,idle_units=5,copies=all",
];

const DYNAMIC: [&str; 2] = [
    "pblru:k=3,deadline_us=60,read_us=20,write_us=60,blocked=late,epoch_s=0.001",
    "pblru:k=3,deadline_us=60,read_us=20,write_us=60,blocked=late,further=idle,space=0.05,epoch_s=0.001",
];

static COPIED: AtomicU64 = AtomicU64::new(0);
static REDIRECTED: AtomicU64 = AtomicU64::new(0);

fn look<B: Double>(bench: &Bench<B>) {
    let counts = &bench.ftl.counts;
    COPIED.fetch_add(counts.replica_programs, Ordering::Relaxed);
    REDIRECTED.fetch_add(counts.copied_reads, Ordering::Relaxed);
    distinct(&bench.ftl, 64);
}

#[test]
fn selective_copies_lie_on_distinct_chips_and_are_never_read_dead() {
    let steps = || Wish::stepped(2);
    for (number, policy) in (0..).zip(SELECTIVE) {
        let first = 10_000 + 1000 * number;
        for dedup in [false, true] {
            let make = |case: &Case| member(case, policy, dedup);
            Drives::new(first..first + 25, steps(), 400).run::<Counting>(roomy, make, look);
            Drives::new(first + 100..first + 120, steps(), 400).run::<Instant>(roomy, make, look);
            Drives::new(first + 200..first + 225, steps(), 300).run::<Late>(roomy, make, look);
            Drives::new(first + 300..first + 325, steps().cut(None), 300).run::<Late>(roomy, make, look);
        }
    }
    let (copied, redirected) = (COPIED.load(Ordering::Relaxed), REDIRECTED.load(Ordering::Relaxed));
    assert!(
        copied > 1000 && redirected > 300,
        "{copied} copies, {redirected} reads of copied units"
    );
}

#[test]
fn dynamic_replicas_are_at_most_k_and_never_read_dead() {
    for (number, policy) in (0..).zip(DYNAMIC) {
        let first = 20_000 + 1000 * number;
        for dedup in [false, true] {
            let make = |case: &Case| member(case, policy, dedup);
            let look = |bench: &Bench<Late>| distinct(&bench.ftl, 3);
            Drives::new(first..first + 60, Wish::stepped(2), 300).run::<Late>(roomy, make, look);
            Drives::new(first + 100..first + 150, Wish::stepped(2).cut(None), 300).run::<Late>(roomy, make, look);
        }
    }
}

static OF_ONE_CHIP: AtomicU64 = AtomicU64::new(0);

/// Where all dies make one reclaim unit there is one chip to choose from, and nothing is copied.
#[test]
fn a_drive_of_one_chip_copies_nothing() {
    for policy in SELECTIVE.into_iter().chain(DYNAMIC) {
        let make = |case: &Case| member(case, policy, true);
        let nothing = |bench: &Bench<Late>| {
            let chips = chips(&bench.ftl);
            if chips.iter().all(|&chip| chip == chips[0]) {
                OF_ONE_CHIP.fetch_add(1, Ordering::Relaxed);
                assert_eq!(bench.ftl.counts.replica_programs, 0);
            }
        };
        Drives::new(30_000..30_030, Wish::stepped(2), 200).run::<Late>(roomy, make, nothing);
    }
    assert!(OF_ONE_CHIP.load(Ordering::Relaxed) > 20);
}
