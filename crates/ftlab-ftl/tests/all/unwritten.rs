//! A read of an erased or unwritten page is an assertion, whatever the backend: entries of the map are falsified here.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::{config, one_lane, write};
use ftlab_core::{Lpn, OpKind, Slot};
use ftlab_ftl::record::Entry;
use ftlab_ftl::units::RuState;
use ftlab_ftl::{Backend, Counting, Ftl, HostRequest, Ticket};
use ftlab_testkit::{Double, Instant, Late};

/// Writes most of a drive, so that there are closed, open and free units, and lets the map say that unit 0 lies in the last page
/// of one in `state`. Whether reading it panics.
fn panics<B: Backend>(backend: B, state: RuState) -> bool {
    let layout = one_lane(20, 16);
    let mut config = config(&layout, 0.3);
    config.buffer.power_loss_protected = true;
    let units = config.logical_units;
    let mut ftl = Ftl::new(layout, config).unwrap().with_backend(backend);
    for lpn in 0..units - 5 {
        ftl.admit(&write(lpn, 0), Ticket::NONE);
    }
    let ru = ftl.units.rus.iter().position(|ru| ru.state == state).expect("a unit");
    let slot = Slot((ru as u32 + 1) * ftl.layout.slots_per_ru - 1);
    ftl.record.set_entry(Lpn(0), Entry::slot(slot));
    let read = HostRequest::whole(OpKind::Read, Lpn(0), 1);
    catch_unwind(AssertUnwindSafe(|| ftl.admit(&read, Ticket::NONE))).is_err()
}

#[test]
fn what_is_not_in_flash_is_never_read() {
    let layout = one_lane(20, 16);
    for (state, expected) in [(RuState::Closed, false), (RuState::Open, true), (RuState::Free, true)] {
        assert_eq!(panics(Counting, state), expected, "counting, {state:?}");
        assert_eq!(panics(Instant::new(&layout, 1), state), expected, "instant, {state:?}");
        assert_eq!(panics(Late::new(&layout, 1), state), expected, "late, {state:?}");
    }
}
