//! The fuzz target on the stable toolchain: a few seconds of arbitrary bytes. `FTLAB_EFFORT=50` tries so many times more.

use ftlab_core::Stream;
use ftlab_testkit::driving::tries;
use ftlab_testkit::{Late, fuzz_drive};

#[test]
fn arbitrary_bytes_are_a_drive_that_works() {
    // 4807: a collection in steps took the unit that the host write beside it was about to open.
    for number in (0..tries(400)).chain([4807]) {
        let mut random = Stream::new(number, "fuzz");
        let length = random.below(2500);
        let bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        if let Err(fault) = std::panic::catch_unwind(|| fuzz_drive::<Late>(&bytes)) {
            eprintln!("input {number} of {length} bytes fails");
            std::panic::resume_unwind(fault);
        }
    }
}

#[test]
fn short_inputs_are_harmless() {
    (0..12).for_each(|length| fuzz_drive::<Late>(&vec![0x5a; length]));
}
