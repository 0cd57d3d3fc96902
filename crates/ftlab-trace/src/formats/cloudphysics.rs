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
//! | 1 version | of the record, passed over | |
//! | 2 time | arrival, whole seconds | s, or `time_unit` (inferred: the file at hand spans 7 200) |
//! | 3 op | SCSI operation code, hexadecimal | |
//! | 4 size | length | bytes |
//! | 5 lbn | first block | 512 B |
//!
//! # What is dropped
//! The version. Commands other than READ, WRITE and SYNCHRONIZE CACHE of 6, 10, 12 and 16 bytes are left out and counted
//! (an UNMAP names its ranges outside the record); so are transfers of no bytes.

use ftlab_core::{Batch, OpKind, Result};

use super::{Claim, Reader, Sample, Strength, scsi};
use crate::input::Input;
use crate::report::Skipped;
use crate::settings::{Setting, Settings, TimeUnit};
use crate::text::{Columns, EMPTY, LineParser, Parsed, TextReader, VolumeTable, hexadecimal, left_out, time, to_bytes};

const HEADER: [&str; 1] = ["version,time,op,size,lbn"];

struct CloudPhysics {
    unit: TimeUnit,
    other: u64,
    empty: u64,
}

impl CloudPhysics {
    fn new(settings: &Settings) -> Self {
        CloudPhysics {
            unit: settings.time_unit.unwrap_or(TimeUnit::Seconds),
            other: 0,
            empty: 0,
        }
    }
}

impl LineParser for CloudPhysics {
    #[inline]
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        columns.number()?;
        let time_ns = time(&mut columns, self.unit)?;
        let code = hexadecimal(columns.text()?, 2).and_then(|code| u8::try_from(code).ok());
        let code = code.ok_or_else(|| columns.defect("two hexadecimal digits"))?;
        let length = u32::try_from(columns.number()?).map_err(|_| columns.defect("a size below 4 GiB"))?;
        let offset = to_bytes(columns.number()?, 512).ok_or_else(|| columns.defect("a block below 2^51"))?;
        match scsi::operation(code) {
            None => self.other += 1,
            Some(OpKind::Flush) => batch.push(time_ns, OpKind::Flush, 0, 0, volumes.id(b"0")?, 0),
            Some(_) if length == 0 => self.empty += 1,
            Some(op) => batch.push(time_ns, op, offset, length, volumes.id(b"0")?, 0),
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[
            (EMPTY, self.empty),
            ("another SCSI command than a transfer or a flush", self.other),
        ])
    }
}

pub const SETTINGS: &[Setting] = &[Setting::TimeUnit];

pub fn sample() -> Vec<u8> {
    b"version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633898,28,4096,42932746\n1,5633899,35,0,0\n\
      1,5633899,0,0,0\n"
        .to_vec()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let (lines, header) = sample.body(&HEADER);
    let parser = CloudPhysics::new(&Settings::default());
    let unit = parser.unit;
    (header && (lines.is_empty() || Sample::fits(lines, &mut { parser }))).then(|| Claim {
        strength: Strength::Sure,
        reason: "a header line version,time,op,size,lbn: a vSCSI trace of CloudPhysics, with times in s".to_owned(),
        guess: Settings {
            time_unit: Some(unit),
            ..Settings::default()
        },
    })
}

pub fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    Ok(Box::new(TextReader::with_header(
        CloudPhysics::new(settings),
        input,
        &HEADER,
    )?))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
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
        let mut parser = CloudPhysics::new(&Settings::default());
        let (mut batch, mut volumes) = (Batch::default(), VolumeTable::default());
        for line in ["1,0,0,0,0", "1,0,42,24,0", "1,0,2a,0,9", "1,0,0x35,0,9"] {
            parser.parse(line.as_bytes(), &mut batch, &mut volumes).unwrap();
        }
        let counts: Vec<u64> = parser.left_out().iter().map(|s| s.count).collect();
        assert_eq!((counts, batch.op), (vec![1, 2], vec![OpKind::Flush]));
        assert_eq!(
            parser
                .parse(b"1,0,2ax,0,9", &mut Batch::default(), &mut volumes)
                .unwrap_err()
                .column,
            3
        );
    }
}
