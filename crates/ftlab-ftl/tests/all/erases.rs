//! What erases wait for on a drive that recovers from power cuts.

use crate::common::{config, one_lane, write};
use ftlab_core::Stream;
use ftlab_ftl::{Ftl, Ticket};
use ftlab_testkit::{Double, Late};

/// Overwrites at random of a drive whose flash completes nothing: every erase comes while every program before it is under way.
/// Returns how many operations were issued and how many dependencies were named.
fn issued_and_named(writes: u32) -> (u64, u64) {
    let layout = one_lane(32, 16);
    let mut config = config(&layout, 0.5);
    config.gc.hard = 3;
    config.checkpoint_units = 128;
    let units = u64::from(config.logical_units);
    let late = Late::new(&layout, 1);
    let mut ftl = Ftl::new(layout, config).unwrap().with_backend(late);
    let mut random = Stream::new(1, "writes");
    for _ in 0..writes {
        ftl.admit(&write(random.below(units) as u32, 0), Ticket::NONE);
    }
    assert!(ftl.counts.erases > u64::from(writes) / 64, "{:?}", ftl.counts);
    ftl.backend.issued_and_named()
}

/// A copy waits for its read, an erase for what has been programmed since the erase before it, and for that erase's own programs
/// through one operation.
#[test]
fn erases_name_each_program_once_however_many_are_under_way() {
    for writes in [1000, 4000] {
        let (issued, named) = issued_and_named(writes);
        assert!(
            named < 2 * issued,
            "{writes} writes: {named} names for {issued} operations"
        );
    }
}
