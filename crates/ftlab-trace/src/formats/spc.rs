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
//! Columns behind the fifth, which the specification leaves to the trace's author. Requests of no bytes, counted.

use ftlab_core::{Batch, Result};

use super::{Claim, Reader, Sample, Strength};
use crate::input::Input;
use crate::report::Skipped;
use crate::settings::{Setting, Settings, TimeUnit};
use crate::text::{
    Columns, EMPTY, LineParser, Parsed, TextReader, VolumeTable, left_out, read_or_write, time, to_bytes,
};

struct Spc {
    unit: TimeUnit,
    empty: u64,
}

impl LineParser for Spc {
    #[inline]
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        let asu = columns.key()?;
        let offset = to_bytes(columns.number()?, 512).ok_or_else(|| columns.defect("a block below 2^51"))?;
        let length = u32::try_from(columns.number()?).map_err(|_| columns.defect("a size below 4 GiB"))?;
        let op = read_or_write(columns.text()?).ok_or_else(|| columns.defect("r or w"))?;
        let time_ns = time(&mut columns, self.unit)?;
        if length == 0 {
            self.empty += 1;
            return Ok(());
        }
        batch.push(time_ns, op, offset, length, volumes.id(asu)?, 0);
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[(EMPTY, self.empty)])
    }
}

pub const SETTINGS: &[Setting] = &[Setting::TimeUnit];

pub fn sample() -> Vec<u8> {
    b"0,20941264,8192,W,0.551706\n0,20939840,8192,w,0.554041\n1,3436288,15872,r,1.011732,x\n".to_vec()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let unit = TimeUnit::Seconds;
    Sample::fits(&sample.lines, &mut Spc { unit, empty: 0 }).then(|| Claim {
        strength: Strength::Fits,
        reason: "comma separated, a number, block and size, `r` or `w`, then a time, taken as s: SPC".to_owned(),
        guess: Settings {
            time_unit: Some(unit),
            ..Settings::default()
        },
    })
}

pub fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    let unit = settings.time_unit.unwrap_or(TimeUnit::Seconds);
    Ok(Box::new(TextReader::new(Spc { unit, empty: 0 }, input)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use ftlab_core::{Batch, OpKind, Source};

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

    #[test]
    fn lines_out_of_order_and_of_no_bytes() {
        let text = b"0,8126536,8192,R,0.5\n1, 8126536 ,0,R,0.6\n2,8126536,8192 ,r,0.25\r\n10,0,512,W,1e0\n";
        let options = crate::ReadOptions {
            volumes: crate::Volumes::Merge,
            ..crate::ReadOptions::default()
        };
        let mut opened = crate::open_bytes("t", text.to_vec(), &options).unwrap();
        let mut batch = Batch::default();
        opened.next_batch(&mut batch).unwrap();
        // The clock starts at the first line's time and does not go back to the third's.
        assert_eq!(batch.time_ns, [0, 0, 500_000_000]);
        let report = opened.report();
        assert_eq!(
            (report.format.as_str(), report.out_of_order, report.left_out[0].count),
            ("spc", 1, 1)
        );
        assert_eq!(opened.volume_names(), ["0", "2", "10"]);
    }
}
