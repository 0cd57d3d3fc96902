//! MQSim ASCII traces, five columns between blanks.
//!
//! # Origin
//! CMU-SAFARI/MQSim, `src/exec/ASCII_Trace_Definition.h` and README. SSDSim's form (huaicheng/ssdsim) has the same columns
//! and codes, with times in ns.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 time | arrival | ns, unless `time_unit` says otherwise (MQSim keeps the unit in its workload file) |
//! | 2 device | volume | |
//! | 3 address | first sector | 512 B |
//! | 4 size | length | 512 B |
//! | 5 type | 0 = write, 1 = read | |
//!
//! # What is dropped
//! Columns behind the fifth.

use ftlab_core::{Batch, OpKind, Result};

use super::{Claim, Reader, Sample};
use crate::input::Input;
use crate::options::{ReadOptions, TimeUnit};
use crate::text::{Columns, LineParser, Parsed, TextReader, VolumeTable, time, to_bytes, to_length};

/// The five columns, which DiskSim's form shares.
pub(super) struct FiveColumns {
    pub unit: TimeUnit,
}

impl LineParser for FiveColumns {
    #[inline]
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut columns = Columns::<b' '>::new(line);
        let time_ns = time(&mut columns, self.unit)?;
        let device = columns.key()?;
        let offset = to_bytes(columns.number()?, 512).ok_or_else(|| columns.defect("a sector below 2^51"))?;
        let length = to_bytes(columns.number()?, 512)
            .and_then(to_length)
            .ok_or_else(|| columns.defect("a size above 0 and below 2^23 sectors"))?;
        let op = match columns.number()? {
            0 => OpKind::Write,
            1 => OpKind::Read,
            _ => return Err(columns.defect("0 (write) or 1 (read)")),
        };
        batch.push(time_ns, op, offset, length, volumes.id(device)?, 0);
        Ok(())
    }
}

/// Whether five columns fit, and whether a time has a decimal point.
pub(super) fn shape(sample: &Sample<'_>) -> Option<bool> {
    let mut parser = FiveColumns {
        unit: TimeUnit::Nanoseconds,
    };
    let has_point = |line: &&[u8]| {
        line.split(|b| b.is_ascii_whitespace())
            .find(|w| !w.is_empty())
            .is_some_and(|w| w.contains(&b'.'))
    };
    Sample::fits(&sample.lines, &mut parser).then(|| sample.lines.iter().any(has_point))
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    (!shape(sample)?).then(|| Claim {
        sure: false,
        reason:
            "five columns of whole numbers, the last 0 or 1: MQSim or SSDSim ASCII, taken as 1 = read and times in ns \
                 (a time unit can be given)"
                .to_owned(),
    })
}

pub fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>> {
    let unit = options.time_unit.unwrap_or(TimeUnit::Nanoseconds);
    Ok(Box::new(TextReader::new(FiveColumns { unit }, input)))
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
}
