//! SSDSim ASCII traces, five columns between blanks, times in nanoseconds.
//!
//! # Origin
//! Hu et al., "Performance Impact and Interplay of SSD Parallelism through Advanced Commands, Allocation Strategy and Data
//! Granularity", ICS 2011; huaicheng/ssdsim, README.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 time | arrival | ns, unless that gives no plausible pace or `time_unit` says otherwise |
//! | 2 device | volume (an ASU, in files made from SPC traces) | |
//! | 3 address | first sector, held in 32 bits by SSDSim | 512 B, or `address_unit` |
//! | 4 size | length | 512 B, or `size_unit` |
//! | 5 operation | 0 = write, 1 = read, or `codes` | |
//!
//! Detection of the units from the values, and of SSDSim's form against MQSim's: `five_columns.rs`.
//!
//! # What is dropped
//! Columns behind the fifth. Requests of no bytes, counted.

use ftlab_core::Result;

use super::five_columns::{self, Dialect};
use super::{Claim, Reader, Sample};
use crate::input::Input;
use crate::settings::{Setting, Settings};

pub const SETTINGS: &[Setting] = Setting::UNITS;

pub fn sample() -> Vec<u8> {
    b"0 0 303567 7 0\n0 1 55590 6 1\n26214000 2 303574 7 0\n26214000 1 240840 6 0\n".to_vec()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    five_columns::claim(sample, Dialect::Ssdsim)
}

pub fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    five_columns::open(input, settings, Dialect::Ssdsim)
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use ftlab_core::OpKind;

    #[test]
    fn three_lines() {
        let (format, batch) = read(b"0 0 303567 7 0\n0 1 55590 6 1\n26214000 2 240840 6 0\n");
        assert_eq!(format, "ssdsim");
        assert_eq!(batch.time_ns, [0, 0, 26_214_000]);
        assert_eq!(batch.op, [OpKind::Write, OpKind::Read, OpKind::Write]);
        assert_eq!(batch.offset, [303_567 * 512, 55_590 * 512, 240_840 * 512]);
        assert_eq!(batch.length, [3584, 3072, 3072]);
        assert_eq!(batch.volume, [0, 1, 2]);
    }

    #[test]
    fn two_devices_or_wide_addresses_are_left_to_mqsim() {
        assert_eq!(read(b"0 0 303567 7 0\n5 1 55590 6 1\n9 0 240840 6 0\n").0, "mqsim");
        assert_eq!(read(b"0 0 3035670000 7 0\n5 1 55590 6 1\n9 2 240840 6 0\n").0, "mqsim");
    }
}
