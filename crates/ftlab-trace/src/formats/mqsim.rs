//! MQSim ASCII traces, five columns between blanks.
//!
//! # Origin
//! CMU-SAFARI/MQSim, `src/exec/ASCII_Trace_Definition.h` and README.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 time | arrival | ns, unless that gives no plausible pace or `time_unit` says otherwise (MQSim keeps the unit in its workload file) |
//! | 2 device | volume | |
//! | 3 address | first sector | 512 B, or `address_unit` |
//! | 4 size | length | 512 B, or `size_unit` |
//! | 5 type | 0 = write, 1 = read, or `codes` | |
//!
//! Detection of the units from the values, and of MQSim's form against SSDSim's and DiskSim's: `five_columns.rs`.
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
    b"938513000 4 264719034 16 0\n938828000\t3 197570570  16 1\n938944000 4 93230992 32 0\n".to_vec()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    five_columns::claim(sample, Dialect::Mqsim)
}

pub fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    five_columns::open(input, settings, Dialect::Mqsim)
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use ftlab_core::OpKind;

    #[test]
    fn three_lines() {
        let (format, batch) =
            read(b"938513000 4 264719034 16 0\n938828000\t3 197570570  16 1\n938944000 4 93230992 32 0\n");
        assert_eq!(format, "mqsim");
        assert_eq!(batch.time_ns, [938_513_000, 938_828_000, 938_944_000]);
        assert_eq!(batch.op, [OpKind::Write, OpKind::Read, OpKind::Write]);
        assert_eq!(batch.offset, [264719034 * 512, 197570570 * 512, 93230992 * 512]);
        assert_eq!(batch.length, [8192, 8192, 16384]);
        assert_eq!(batch.volume, [0, 1, 0]);
    }

    #[test]
    fn nanoseconds_since_1970_are_known() {
        // In DiskSim's milliseconds these times would not fit 64 bits of nanoseconds.
        let (format, batch) = read(b"1577808000000000046 0 8 16 1\n1577808000000100046 0 800 16 0\n");
        assert_eq!(format, "mqsim");
        assert_eq!(batch.time_ns[1] - batch.time_ns[0], 100_000);
    }
}
