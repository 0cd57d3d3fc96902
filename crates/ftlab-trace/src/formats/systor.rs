//! SYSTOR '17 traces of virtual desktops (VDI), comma separated, one file per LUN and hour.
//!
//! # Origin
//! Lee et al., "Understanding Storage Traffic Characteristics on Enterprise Virtual Desktop Infrastructure", SYSTOR 2017;
//! SNIA IOTTA trace set 4964, README.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 Timestamp | arrival, since 1970; nine decimals of which the README calls six valid | s |
//! | 2 Response | of the traced system; may be blank | s |
//! | 3 IOType | `R`, `W` or blank | |
//! | 4 LUN | volume | |
//! | 5 Offset | first byte | bytes |
//! | 6 Size | length | bytes |
//!
//! A header line is passed over.
//!
//! # What is dropped
//! The response time: it belongs to the traced array. Requests whose type is blank are left out and counted, since nothing
//! says what they did; so are requests of no bytes.

use ftlab_core::{Batch, Result};

use super::{Claim, Reader, Sample, Strength};
use crate::input::Input;
use crate::report::Skipped;
use crate::settings::{Setting, Settings, TimeUnit};
use crate::text::{
    Columns, EMPTY, LineParser, Parsed, TextReader, VolumeTable, left_out, read_or_write, time, to_bytes,
};

const HEADER: [&str; 1] = ["timestamp,response,iotype"];

#[derive(Default)]
struct Systor {
    blank: u64,
    empty: u64,
}

impl LineParser for Systor {
    #[inline]
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        let time_ns = time(&mut columns, TimeUnit::Seconds)?;
        if columns.peek() == Some(b',') {
            columns.skip();
        } else {
            time(&mut columns, TimeUnit::Seconds)?;
        }
        let kind = columns.text()?;
        let op = match kind {
            b"" => None,
            letter => Some(read_or_write(letter).ok_or_else(|| columns.defect("R, W or nothing"))?),
        };
        let lun = columns.key()?;
        let offset = to_bytes(columns.number()?, 1).ok_or_else(|| columns.defect("an offset below 2^60 bytes"))?;
        let length = u32::try_from(columns.number()?).map_err(|_| columns.defect("a size below 4 GiB"))?;
        match op {
            None => self.blank += 1,
            Some(_) if length == 0 => self.empty += 1,
            Some(op) => batch.push(time_ns, op, offset, length, volumes.id(lun)?, 0),
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[(EMPTY, self.empty), ("a request whose type is blank", self.blank)])
    }
}

pub const SETTINGS: &[Setting] = &[];

pub fn sample() -> Vec<u8> {
    b"Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
      1456095145.133399000,0.000131000,W,0,36864,4096\n1456095145.140000000,,,0,0,0\n\
      1456095146.000001000,0.000090000,W,3,40960,512\n"
        .to_vec()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let (lines, header) = sample.body(&HEADER);
    Sample::fits(lines, &mut Systor::default()).then(|| {
        Claim::new(
            if header { Strength::Sure } else { Strength::Fits },
            "comma separated, a time, a response time, `R`, `W` or nothing, LUN, offset, size: SYSTOR '17",
        )
    })
}

pub fn open(input: Input, _: &Settings) -> Result<Box<dyn Reader>> {
    Ok(Box::new(TextReader::with_header(Systor::default(), input, &HEADER)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadOptions;
    use ftlab_core::{OpKind, Source};

    #[test]
    fn a_blank_type_is_left_out_and_counted() {
        let mut opened = crate::open_bytes(
            "t",
            b"Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
              1456095145.133399000,0.000131000,,0,36864,4096\n1456095145.133400000,,W,3,40960,512\n"
                .to_vec(),
            &ReadOptions {
                volumes: crate::Volumes::Merge,
                ..ReadOptions::default()
            },
        )
        .unwrap();
        let mut batch = Batch::default();
        opened.next_batch(&mut batch).unwrap();
        assert_eq!(batch.time_ns, [0, 324_000]);
        assert_eq!(batch.op, [OpKind::Read, OpKind::Write]);
        assert_eq!(
            (batch.offset, batch.length),
            (vec![899_056_122_368, 40_960], vec![131_072, 512])
        );
        let report = opened.report();
        assert_eq!(report.format, "systor");
        assert_eq!(
            (report.left_out[0].count, report.left_out[0].reason.as_str()),
            (1, "a request whose type is blank")
        );
    }

    #[test]
    fn another_type_is_a_defect() {
        let line = b"1456095145.2,0.1,x,3,40960,512";
        let defect = Systor::default().parse(line, &mut Batch::default(), &mut VolumeTable::default());
        assert_eq!(defect.unwrap_err().column, 3);
    }
}
