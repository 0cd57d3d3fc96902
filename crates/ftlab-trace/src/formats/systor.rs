//! SYSTOR '17 traces of virtual desktops (VDI), comma separated, one file per LUN and hour.
//!
//! # Origin
//! Lee et al., "Understanding Storage Traffic Characteristics on Enterprise Virtual Desktop Infrastructure", SYSTOR 2017;
//! SNIA IOTTA trace set 4964, README.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 Timestamp | arrival, since 1970; nine decimals, of which six are valid according to the README | s |
//! | 2 Response | of the traced system; may be blank | s |
//! | 3 IOType | `R`, `W` or blank | |
//! | 4 LUN | volume | |
//! | 5 Offset | first byte | bytes |
//! | 6 Size | length | bytes |
//!
//! A header line is skipped.
//!
//! # What is dropped
//! The response time: it belongs to the traced array. Requests with a blank type are left out and counted, because
//! their operation is not known; so are requests of no bytes.

use ftlab_core::Result;

use super::text_format::TextFormat;
use crate::columns::{Columns, read_or_write};
use crate::health::{Parsed, left_out};
use crate::lines::{LineParser, Requests};
use crate::report::Skipped;
use crate::settings::{Settings, TimeUnit};

#[derive(Default)]
pub struct Systor {
    blank: u64,
}

impl TextFormat for Systor {
    const HEADER: &[&str] = &["timestamp,response,iotype"];
    const REASON: &str = "comma separated, a time, a response time, `R`, `W` or nothing, LUN, offset, size: SYSTOR '17";
    const SAMPLE: &[u8] = b"Timestamp,Response,IOType,LUN,Offset,Size\n\
                            1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
                            1456095145.133399000,0.000131000,W,0,36864,4096\n\
                            1456095145.140000000,,,0,0,0\n\
                            1456095146.000001000,0.000090000,W,3,40960,512\n";

    fn new(_: &Settings) -> Result<Self> {
        Ok(Systor::default())
    }
}

impl LineParser for Systor {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        let time_ns = columns.time(TimeUnit::Seconds)?;
        if columns.peek() == Some(b',') {
            columns.skip();
        } else {
            columns.time(TimeUnit::Seconds)?;
        }
        let op = match columns.text()? {
            b"" => None,
            letter => Some(read_or_write(letter).ok_or_else(|| columns.defect("R, W or nothing"))?),
        };
        let lun = columns.key()?;
        let offset = columns.address(1, "an offset below 2^60 bytes")?;
        let length = columns.length(1, "a size below 4 GiB")?;
        let Some(op) = op else {
            self.blank += 1;
            return Ok(());
        };
        to.push(time_ns, op, offset, length, lun)
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[("a request whose type is blank", self.blank)])
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bad_lines, read_as};
    use super::*;
    use crate::ReadOptions;
    use ftlab_core::{Batch, OpKind, Source};

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
        let good = "1456095145.2,0.1,W,3,40960,512";
        bad_lines::<Systor>(good, &["1456095145.2,0.1,x,3,40960,512"]);
        let text = "1456095145.2,0.1,x,3,40960,512\n".repeat(10);
        let error = read_as::<Systor>(text.as_bytes(), &Settings::NONE).err().unwrap();
        assert!(
            error.to_string().contains("column 3: expected R, W or nothing"),
            "{error}"
        );
    }
}
