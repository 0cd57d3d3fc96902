//! CloudPhysics vSCSI traces as CSV, as libCacheSim carries one.
//!
//! # Origin
//! Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015 (vscsiStats of VMware ESXi);
//! cacheMon/libCacheSim, `data/cloudPhysicsIO.csv`. The binary form is `vscsi`.
//!
//! # Columns
//! Named by a header line, in this order:
//!
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 version | of the record, skipped | |
//! | 2 time | arrival, whole seconds | s, or `time_unit` (inferred: the known file spans 7 200) |
//! | 3 op | SCSI operation code, hexadecimal | |
//! | 4 size | length | bytes |
//! | 5 lbn | first block | 512 B |
//!
//! # What is dropped
//! The version. Commands other than READ, WRITE and SYNCHRONIZE CACHE of 6, 10, 12 and 16 bytes are left out and
//! counted (the ranges of an UNMAP are outside the record); so are transfers of no bytes.

use ftlab_core::{OpKind, Result};

use super::scsi;
use super::text_format::TextFormat;
use crate::columns::{Columns, hexadecimal};
use crate::health::{Parsed, left_out};
use crate::lines::{LineParser, Requests};
use crate::report::Skipped;
use crate::settings::{Setting, Settings, TimeUnit};

pub struct CloudPhysics {
    unit: TimeUnit,
    other: u64,
}

impl TextFormat for CloudPhysics {
    const SETTINGS: &[Setting] = &[Setting::TimeUnit];
    const DEFAULTS: Settings = Settings::NONE.with_time_unit(TimeUnit::Seconds);
    const HEADER: &[&str] = &["version,time,op,size,lbn"];
    const ALWAYS_HAS_HEADER: bool = true;
    const REASON: &str = "a header line version,time,op,size,lbn: a vSCSI trace of CloudPhysics, with times in s";
    const SAMPLE: &[u8] = b"version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633898,28,4096,42932746\n\
                            1,5633899,35,0,0\n1,5633899,0,0,0\n";

    fn new(settings: &Settings) -> Result<Self> {
        let unit = settings.units().time;
        Ok(CloudPhysics { unit, other: 0 })
    }
}

impl LineParser for CloudPhysics {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        columns.number()?;
        let time_ns = columns.time(self.unit)?;
        let code = hexadecimal(columns.text()?, 2).and_then(|code| u8::try_from(code).ok());
        let code = code.ok_or_else(|| columns.defect("two hexadecimal digits"))?;
        let length = columns.length(1, "a size below 4 GiB")?;
        let offset = columns.address(512, "a block below 2^51")?;
        match scsi::operation(code) {
            None => self.other += 1,
            Some(OpKind::Flush) => to.flush(time_ns, b"0")?,
            Some(op) => to.push(time_ns, op, offset, length, b"0")?,
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[("another SCSI command than a transfer or a flush", self.other)])
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bad_lines, read, read_as};
    use super::*;

    #[test]
    fn three_lines_and_two_that_are_no_transfers() {
        let (format, batch) = read(
            b"version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633898,12,36,0\n1,5633899,88,4096,8\n\
              1,5633900,8A,0,8\n1,5633901,8A,8192,16\n",
        );
        assert_eq!(format, "cloudphysics");
        assert_eq!(
            batch.time_ns,
            [5_633_898, 5_633_899, 5_633_901].map(|s: u64| s * 1_000_000_000)
        );
        assert_eq!(batch.op, [OpKind::Write, OpKind::Read, OpKind::Write]);
        assert_eq!(
            (batch.offset, batch.length),
            (vec![42_932_745 * 512, 4096, 8192], vec![512, 4096, 8192])
        );
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let text = b"1,0,0,0,0\n1,0,42,24,0\n1,0,2a,0,9\n1,0,0x35,0,9\n";
        let (reader, batch) = read_as::<CloudPhysics>(text, &Settings::NONE).unwrap();
        let counts: Vec<u64> = reader.progress().left_out.iter().map(|s| s.count).collect();
        assert_eq!((counts, batch.op), (vec![1, 2], vec![OpKind::Flush]));
        bad_lines::<CloudPhysics>("1,0,2a,512,9", &["1,0,2ax,512,9"]);
        let error = read_as::<CloudPhysics>(&b"1,0,2ax,0,9\n".repeat(10), &Settings::NONE)
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("column 3: expected two hexadecimal digits"),
            "{error}"
        );
    }
}
