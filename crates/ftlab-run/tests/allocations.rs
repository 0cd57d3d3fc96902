//! No allocation per request in steady state: a run of twice as many requests allocates hardly more than one of half the
//! length, whatever the drive does. Each run goes through the same door as the command line.

#![allow(unsafe_code, reason = "an allocator that counts is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use ftlab_run::{Members, Unobserved, parse_spec, run};
use serde_json::json;

struct Counted;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

/// Requests of the shorter run: many times what the drive holds, so that it collects all the time.
const REQUESTS: u64 = 40_000;
/// What a longer run may allocate beyond: a vector that reaches a new height.
const FEW: u64 = 100;
/// On a drive that recovers, what is known of an erased unit until nothing can bring it back is kept apart for each erase.
const FOR_AN_ERASE: u64 = 8;

fn allocations(backend: &str, workload: &str, requests: u64, set: &[&str]) -> (u64, u64) {
    let spec = json!({
        "drive": {"name": "tiny", "set": set},
        "workload": {"generator": {"spec": format!("{workload},requests={requests}")}},
        "backend": backend,
        "precondition": "fill",
        "requests": backend == "timed",
    });
    let spec = parse_spec(&spec.to_string()).expect("a spec");
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let outcome = run(&spec, &Members::default(), &mut Unobserved).expect("a run");
    let used = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert_eq!(outcome.summary["complete"], true);
    let erases = outcome.summary["counts"]["erases"].as_u64().expect("a count");
    assert!(erases > requests / 2000, "{erases} erases");
    (used, erases)
}

/// One test, as others beside it would allocate at the same time.
#[test]
fn a_longer_run_allocates_hardly_more() {
    let drives: &[&[&str]] = &[
        &[],
        &[
            "ftl.victim=cost_benefit",
            "ftl.placement=manual:streams=2",
            "gc.pool=drive",
            "ftl.allocation=round_robin",
        ],
        &["buffer.policy=lru", "buffer.capacity=64KiB"],
        &["ftl.mapping=dftl", "ftl.map_cache=4KiB", "gc.hard=4"],
        &["ftl.checkpoint=1MiB", "ftl.wear=static", "gc.hard=3"],
    ];
    let workload = "uniform:read=0.3,trim=0.05,size=8KiB";
    for backend in ["counting", "timed"] {
        for set in drives {
            let (short, fewer) = allocations(backend, workload, REQUESTS, set);
            let (long, erases) = allocations(backend, workload, 2 * REQUESTS, set);
            let recovers = set.iter().any(|change| change.contains("checkpoint"));
            let allowed = FEW + if recovers { FOR_AN_ERASE * (erases - fewer) } else { 0 };
            assert!(
                long <= short + allowed,
                "{backend} {set:?}: {REQUESTS} requests make {short} allocations, twice as many {long}"
            );
        }
    }
}
