//! DiskSim ASCII traces, five columns between blanks, times in milliseconds.
//!
//! # Origin
//! Bucy et al., "The DiskSim Simulation Environment Version 4.0 Reference Manual", CMU-PDL-08-101, input traces; its reader
//! takes the flags as a hexadecimal word.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 time | arrival, with a fraction | ms, unless the values or `time_unit` say otherwise |
//! | 2 device | volume | |
//! | 3 block | first block | 512 B, or `address_unit` |
//! | 4 size | length | 512 B, or `size_unit` |
//! | 5 flags | hexadecimal; bit 0: 0 = write, 1 = read, or `codes` | |
//!
//! Detection of the units from the values, and of DiskSim's form against MQSim's: `five_columns.rs`.
//!
//! # What is dropped
//! The other flags (deadlines, synchronous, mapped: hints to the simulated disk scheduler) and columns behind the fifth,
//! such as the batch number of the form with batches. Requests of no bytes, counted.

use ftlab_core::Result;

use super::five_columns::{self, Dialect};
use super::{Claim, Reader, Sample};
use crate::input::Input;
use crate::settings::{Setting, Settings};

pub const SETTINGS: &[Setting] = Setting::UNITS;

pub fn sample() -> Vec<u8> {
    b"26.214000\t0\t303574\t1\t0\n26.5\t0\t240840\t1\t1\n1.5e3 0 55596 8 81\n".to_vec()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    five_columns::claim(sample, Dialect::Disksim)
}

pub fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    five_columns::open(input, settings, Dialect::Disksim)
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use ftlab_core::OpKind;

    #[test]
    fn three_lines() {
        let (format, batch) = read(b"26.214000\t0\t303574\t1\t0\n26.5\t0\t240840\t1\t1\n78 0 55596 8 1\n");
        assert_eq!(format, "disksim");
        assert_eq!(batch.time_ns, [26_214_000, 26_500_000, 78_000_000]);
        assert_eq!(batch.op, [OpKind::Write, OpKind::Read, OpKind::Read]);
        assert_eq!(batch.length, [512, 512, 4096]);
    }

    #[test]
    fn the_lowest_flag_is_the_operation() {
        // 0x80 synchronous, 0x102 asynchronous and time-critical; a sixth column is passed over.
        let (format, batch) = read(b"1 0 0 8 80 3\n2 0 8 8 0x103 4\n3 0 16 8 f 5\n");
        assert_eq!(format, "disksim");
        assert_eq!(batch.op, [OpKind::Write, OpKind::Read, OpKind::Read]);
        assert_eq!(batch.time_ns, [1_000_000, 2_000_000, 3_000_000]);
    }
}
