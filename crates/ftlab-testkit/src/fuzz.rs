//! The fuzz target of the FTL: arbitrary bytes become a drive and operations on it.

use ftlab_ftl::Overrides;

use crate::bench::Bench;
use crate::case::{Case, Wish};
use crate::double::Double;
use crate::operation::decode;

/// The first three bytes choose the drive, with any members of the catalogues and options of theirs, the rest are operations;
/// everything is held against the reference, on the backend `B`.
///
/// # Panics
/// If the FTL is wrong.
pub fn fuzz_drive<B: Double>(bytes: &[u8]) {
    let Some((drive, operations)) = bytes.split_at_checked(3) else {
        return;
    };
    let wish = Wish {
        recovers: drive[2] & 1 != 0,
        steps: drive[2] & 2 != 0,
        wears_out: drive[2] & 4 != 0,
        mapping: drive[2] & 8 != 0,
        ..Wish::default()
    };
    let number = u64::from(u16::from_le_bytes([drive[0], drive[1]]));
    let case = Case::draw(number + 65_536 * u64::from(drive[2] >> 4), wish);
    let mut bench = Bench::<B>::new(&case, Overrides::default());
    for operation in decode(operations, case.config.logical_units) {
        bench.apply(&operation);
    }
    bench.check();
}
