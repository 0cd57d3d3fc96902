//! What the record and the tables of values take, as an allocator counts it: at most 10 bytes a raw unit, 8 a value and 16 a row of
//! chunks, the last two with the eighth by which a table grows ahead.

#![allow(unsafe_code, reason = "an allocator that counts is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use ftlab_core::{Lpn, OpKind, Slot};
use ftlab_ftl::indirection::Indirection;
use ftlab_ftl::{HostRequest, Overrides, Ticket};
use ftlab_testkit::Case;

struct Counted;

/// Bytes that are allocated now.
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        BYTES.fetch_add(size as u64, Ordering::Relaxed);
        BYTES.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

const VALUES: u32 = 100_000;
/// What a table may take beside its entries.
const LITTLE: u64 = 4096;

/// Bytes that `make` leaves allocated, in what it returns.
fn bytes_of<T>(make: impl FnOnce() -> T) -> (u64, T) {
    let before = BYTES.load(Ordering::Relaxed);
    let made = make();
    (BYTES.load(Ordering::Relaxed) - before, made)
}

/// One test, as others beside it would allocate at the same time.
#[test]
fn the_record_and_the_tables_of_values_keep_their_limits() {
    let mut case = Case::plain_lanes(4, 64, 256, 4);
    case.config.verify = false;
    let slots = u64::from(case.layout.slots());
    let (bytes, _drive) = bytes_of(|| {
        let mut ftl = case.build(Overrides::default()).expect("a drive");
        (0..ftl.config.logical_units).for_each(|lpn| {
            ftl.admit(&HostRequest::whole(OpKind::Write, Lpn(lpn), 1), Ticket::NONE);
        });
        ftl
    });
    assert!(bytes <= 10 * slots, "{bytes} bytes for {slots} units");

    let (bytes, mut values) = bytes_of(|| {
        let mut values = Indirection::new(VALUES, true);
        for slot in 0..VALUES {
            let vpn = values.create().expect("a number");
            values.add_copy(vpn, Slot(slot));
            values.acquire(vpn);
        }
        values
    });
    let most = 9 * u64::from(VALUES) + LITTLE;
    assert!(bytes <= most, "{bytes} bytes for {VALUES} values");
    // The numbers of dead values wait in the same tables.
    let (more, ()) = bytes_of(|| {
        let mut released = Default::default();
        let all: Vec<_> = values.in_use().collect();
        for vpn in all {
            values.release(vpn, &mut released);
            values.release(vpn, &mut released);
            released.clear();
        }
    });
    assert_eq!((values.resting(), more), (VALUES, 0));

    let (bytes, _rows) = bytes_of(|| {
        let mut rows = Indirection::new(VALUES, false);
        let chunks = std::array::from_fn(|_| rows.new_chunk(0).expect("a number").0);
        for _ in 0..VALUES {
            chunks.iter().for_each(|&chunk| rows.acquire_chunk(chunk));
            rows.new_row(chunks);
        }
        rows
    });
    let most = 18 * u64::from(VALUES) + LITTLE;
    assert!(bytes <= most, "{bytes} bytes for {VALUES} rows");
}
