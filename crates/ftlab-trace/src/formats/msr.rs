//! MSR Cambridge block traces, comma separated.
//!
//! # Origin
//! Narayanan et al., "Write Off-Loading", FAST 2008; SNIA IOTTA trace set 388: 36 volumes of 13 servers, one week of 2007.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 Timestamp | arrival, Windows file time (since 1601) | 100 ns |
//! | 2 Hostname | server | |
//! | 3 DiskNumber | disk of that server; numbers repeat across servers, so the volume is `host.disk` | |
//! | 4 Type | `Read` or `Write` | |
//! | 5 Offset | first byte | bytes |
//! | 6 Size | length | bytes |
//! | 7 ResponseTime | of the traced system | 100 ns |
//!
//! A header line is skipped.
//!
//! # What is dropped
//! The response time, which belongs to the traced disks and may be missing. Requests of no bytes, counted.

use ftlab_core::Result;

use super::text_format::TextFormat;
use crate::columns::Columns;
use crate::health::Parsed;
use crate::lines::{LineParser, Requests};
use crate::settings::Settings;

pub struct Msr;

impl TextFormat for Msr {
    const HEADER: &[&str] = &["timestamp,"];
    const REASON: &str = "comma separated, a file time, host, disk, `Read` or `Write`, offset, size: MSR Cambridge";
    const SAMPLE: &[u8] = b"128166372003061629,hm,0,Read,383496192,32768,413\n\
                            128166372016382155,prxy,1,Write,2822144,4096,1121\n\
                            128166372026382245,hm,0,Write,0,512,55\n";

    fn new(_: &Settings) -> Result<Self> {
        Ok(Msr)
    }
}

impl LineParser for Msr {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        let time_ns = columns.number()?.checked_mul(100);
        let time_ns = time_ns.ok_or_else(|| columns.defect("100 ns ticks below 2^64 ns"))?;
        let from = columns.position();
        columns.text()?;
        columns.text()?;
        // Host and disk with the comma between them, without the one behind.
        let device = line[from..columns.position()].trim_ascii_end();
        let device = device.strip_suffix(b",").unwrap_or(device);
        let op = columns.read_or_write("Read or Write")?;
        let offset = columns.address(1, "an offset below 2^60 bytes")?;
        let length = columns.length(1, "a size below 4 GiB")?;
        to.push(time_ns, op, offset, length, device)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use ftlab_core::OpKind;

    #[test]
    fn three_lines_of_two_hosts_with_equal_disk_numbers() {
        let (format, batch) = read(
            b"128166372003061629,hm,0,Read,383496192,32768,413\n\
              128166372016382155,hm,0,Write,2822144,4096,1121\r\n\
              128166372026382245,prxy,0,Read,0,512,55\n",
        );
        assert_eq!(format, "msr");
        assert_eq!(batch.time_ns[1] - batch.time_ns[0], 1_332_052_600);
        assert_eq!(batch.op, [OpKind::Read, OpKind::Write, OpKind::Read]);
        assert_eq!(batch.offset, [383496192, 2822144, 0]);
        assert_eq!(batch.length, [32768, 4096, 512]);
        assert_eq!(batch.volume, [0, 0, 1]);
    }

    #[test]
    fn a_header_is_passed_over() {
        let (format, batch) = read(
            b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n128166372003061629,hm,0,Read,383496192,32768,413\n",
        );
        assert_eq!((format, batch.len()), ("msr", 1));
    }

    #[test]
    fn a_missing_response_time_and_a_request_of_no_bytes() {
        let (format, batch) = read(
            b"128166372003061629,src1,0,read,512,4096\n128166372003061630,src1,0,write,0,0,5\n\
              128166372003061631,src1,1,W,0,512,\n",
        );
        assert_eq!(
            (format, batch.op.as_slice()),
            ("msr", [OpKind::Read, OpKind::Write].as_slice())
        );
        assert_eq!((batch.length, batch.volume), (vec![4096, 512], vec![0, 1]));
    }
}
