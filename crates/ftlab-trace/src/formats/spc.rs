//! SPC block traces (UMass Financial and WebSearch), comma separated.
//!
//! # Origin
//! Storage Performance Council, "SPC Trace File Format Specification", 1.0.1; UMass Trace Repository.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 ASU | application-specific unit, zero-based: the volume | |
//! | 2 LBA | first block, zero-based per ASU | 512 B |
//! | 3 size | length | bytes |
//! | 4 opcode | `r` or `w`, either case | |
//! | 5 timestamp | since the start of the trace, with a fraction | s |
//!
//! White space around a column is allowed.
//!
//! # What is dropped
//! Columns behind the fifth, which the specification leaves to the trace's author.

use ftlab_core::{Batch, Result};

use super::{Claim, Reader, Sample};
use crate::input::Input;
use crate::options::{ReadOptions, TimeUnit};
use crate::text::{Columns, LineParser, Parsed, TextReader, VolumeTable, read_or_write, time, to_bytes, to_length};

struct Spc {
    unit: TimeUnit,
}

impl LineParser for Spc {
    #[inline]
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        let asu = columns.key()?;
        let offset = to_bytes(columns.number()?, 512).ok_or_else(|| columns.defect("a block below 2^51"))?;
        let length = to_length(columns.number()?).ok_or_else(|| columns.defect("a size above 0 and below 4 GiB"))?;
        let op = read_or_write(columns.text()?).ok_or_else(|| columns.defect("r or w"))?;
        let time_ns = time(&mut columns, self.unit)?;
        batch.push(time_ns, op, offset, length, volumes.id(asu)?, 0);
        Ok(())
    }
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let mut parser = Spc {
        unit: TimeUnit::Seconds,
    };
    Sample::fits(&sample.lines, &mut parser).then(|| Claim {
        sure: false,
        reason: "comma separated, a number, block and size, `r` or `w`, then a time: SPC, times in seconds".to_owned(),
    })
}

pub fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>> {
    let unit = options.time_unit.unwrap_or(TimeUnit::Seconds);
    Ok(Box::new(TextReader::new(Spc { unit }, input)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use ftlab_core::OpKind;

    #[test]
    fn three_lines() {
        let (format, batch) =
            read(b"0,20941264,8192,W,0.551706\n 0 , 20939840,8192,w , 0.554041\n1,3436288,15872,r,1.011732,x\n");
        assert_eq!(format, "spc");
        assert_eq!(batch.time_ns, [551_706_000, 554_041_000, 1_011_732_000]);
        assert_eq!(batch.op, [OpKind::Write, OpKind::Write, OpKind::Read]);
        assert_eq!(batch.offset, [20941264 * 512, 20939840 * 512, 3436288 * 512]);
        assert_eq!(batch.length, [8192, 8192, 15872]);
        assert_eq!(batch.volume, [0, 0, 1]);
    }
}
