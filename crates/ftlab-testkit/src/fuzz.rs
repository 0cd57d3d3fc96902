//! The fuzz target of the FTL: arbitrary bytes become a drive and operations on it.

use ftlab_ftl::Overrides;

use crate::bench::Bench;
use crate::case::{Case, Wish};
use crate::late::Late;
use crate::operation::decode;

/// The first two bytes choose the drive, the rest are operations; everything is held against the reference.
///
/// # Panics
/// If the FTL is wrong.
pub fn fuzz_drive(bytes: &[u8]) {
    let Some((drive, operations)) = bytes.split_at_checked(2) else {
        return;
    };
    let wish = Wish {
        recovers: drive[1] & 1 != 0,
        steps: drive[1] & 2 != 0,
        wears_out: drive[1] & 4 != 0,
        ..Wish::default()
    };
    let case = Case::draw(u64::from(drive[0]) + 256 * u64::from(drive[1] >> 3), wish);
    let mut bench = Bench::<Late>::new(&case, Overrides::default());
    for operation in decode(operations, case.config.logical_units) {
        bench.apply(&operation);
    }
    bench.check();
}
