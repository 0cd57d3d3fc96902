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
//! A header line is passed over.
//!
//! # What is dropped
//! The response time: it belongs to the traced disks.

use ftlab_core::{Batch, Result};

use super::{Claim, Reader, Sample, refuse_time_unit};
use crate::input::Input;
use crate::options::ReadOptions;
use crate::text::{Columns, LARGEST, LineParser, Parsed, TextReader, VolumeTable, read_or_write, to_length};

const HEADER: [&str; 1] = ["timestamp,"];

struct Msr;

impl LineParser for Msr {
    #[inline]
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        let ticks = columns.number()?;
        let time_ns = ticks
            .checked_mul(100)
            .ok_or_else(|| columns.defect("100 ns ticks below 2^64 ns"))?;
        let from = columns.position();
        columns.text()?;
        columns.text()?;
        // Host and disk with the comma between them, without the one behind.
        let device = line[from..columns.position()].trim_ascii_end();
        let device = device.strip_suffix(b",").unwrap_or(device);
        let op = read_or_write(columns.text()?).ok_or_else(|| columns.defect("Read or Write"))?;
        let offset = columns.number()?;
        if offset > LARGEST {
            return Err(columns.defect("an offset below 2^60 bytes"));
        }
        let length = to_length(columns.number()?).ok_or_else(|| columns.defect("a size above 0 and below 4 GiB"))?;
        batch.push(time_ns, op, offset, length, volumes.id(device)?, 0);
        Ok(())
    }
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let (lines, header) = sample.body(&HEADER);
    Sample::fits(lines, &mut Msr).then(|| Claim {
        sure: header,
        reason: "comma separated, a file time, host, disk, `Read` or `Write`, offset, size: MSR Cambridge".to_owned(),
    })
}

pub fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>> {
    refuse_time_unit("msr", options)?;
    Ok(Box::new(TextReader::with_header(Msr, input, &HEADER)?))
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
}
