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

use ftlab_core::Result;

use super::text_format::TextFormat;
use crate::columns::Columns;
use crate::health::Parsed;
use crate::lines::{LineParser, Requests};
use crate::settings::{Setting, Settings, TimeUnit};

pub struct Spc {
    unit: TimeUnit,
}

impl TextFormat for Spc {
    const SETTINGS: &[Setting] = &[Setting::TimeUnit];
    const DEFAULTS: Settings = Settings::NONE.with_time_unit(TimeUnit::Seconds);
    const REASON: &str = "comma separated, a number, block and size, `r` or `w`, then a time, taken as s: SPC";
    const SAMPLE: &[u8] = b"0,20941264,8192,W,0.551706\n0,20939840,8192,w,0.554041\n1,3436288,15872,r,1.011732,x\n";

    fn new(settings: &Settings) -> Result<Self> {
        let unit = settings.units().time;
        Ok(Spc { unit })
    }
}

impl LineParser for Spc {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        let asu = columns.key()?;
        let offset = columns.address(512, "a block below 2^51")?;
        let length = columns.length(1, "a size below 4 GiB")?;
        let op = columns.read_or_write("r or w")?;
        let time_ns = columns.time(self.unit)?;
        to.push(time_ns, op, offset, length, asu)
    }
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
