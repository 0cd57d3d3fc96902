//! DiskSim ASCII traces, five columns between blanks, times in milliseconds.
//!
//! # Origin
//! Bucy et al., "The DiskSim Simulation Environment Version 4.0 Reference Manual", CMU-PDL-08-101, input traces.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 time | arrival, with a fraction | ms, unless `time_unit` says otherwise |
//! | 2 device | volume | |
//! | 3 block | first block | 512 B |
//! | 4 size | length | 512 B |
//! | 5 flags | 0 = write, 1 = read | |
//!
//! The same columns as MQSim's form; what tells them apart is the decimal point in the times.
//!
//! # What is dropped
//! Columns behind the fifth. Flags other than 0 and 1 are bad lines.

use ftlab_core::Result;

use super::mqsim::{FiveColumns, shape};
use super::{Claim, Reader, Sample};
use crate::input::Input;
use crate::options::{ReadOptions, TimeUnit};
use crate::text::TextReader;

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    shape(sample)?.then(|| Claim {
        sure: false,
        reason:
            "five columns, times with a decimal point, the last column 0 or 1: DiskSim ASCII, taken as 1 = read and \
                 times in ms (a time unit can be given)"
                .to_owned(),
    })
}

pub fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>> {
    let unit = options.time_unit.unwrap_or(TimeUnit::Milliseconds);
    Ok(Box::new(TextReader::new(FiveColumns { unit }, input)))
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
}
