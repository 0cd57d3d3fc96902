//! vSCSI traces of virtual disks, binary, versions 1 and 2.
//!
//! # Origin
//! VMware's vscsiStats; the CloudPhysics traces are in this form. Layout: 1a1a11a/libCacheSim,
//! `libCacheSim/traceReader/customizedReader/vscsi.h`. Numbers are little-endian; there is no header, and each record
//! carries the version in the high byte of its `ver`.
//!
//! # Columns
//! | field | version 1, byte | version 2, byte | unit |
//! | --- | --- | --- | --- |
//! | `sn` serial number, u32 | 0 | 4 | |
//! | `len` length, u32 | 4 | 8 | bytes |
//! | `nSG` scatter-gather entries, u32 | 8 | 12 | |
//! | `cmd` SCSI operation code, u16 | 12 | 0 | |
//! | `ver`, u16 | 14 | 2 | |
//! | `lbn` first block, u64 | 16 | 16 | 512 B |
//! | `ts` arrival, u64 | 24 | 24 | µs |
//! | `rt` response time, u64 | | 32 | µs |
//! | record | 32 bytes | 40 bytes | |
//!
//! Codes (SCSI block and primary commands): reads 08, 28, 88, A8; writes 0A, 2A, 8A, AA, and those with verification 2E, 8E,
//! AE; cache synchronisation 35, 91 is a flush.
//!
//! # What is dropped
//! All other commands, counted: the extents of UNMAP (42) and the length of WRITE SAME (41, 93) are in the data, which
//! is not in the trace. Reads and writes of no bytes, counted. Serial numbers and response times.

use ftlab_core::{Batch, OpKind, Result};

use super::{Claim, Reader, Sample, Strength, scsi};
use crate::columns::{to_bytes, to_length};
use crate::health::{Defect, Parsed, left_out};
use crate::input::Input;
use crate::lines::VolumeTable;
use crate::records::{RecordParser, RecordReader, bytes_at};
use crate::report::Skipped;
use crate::settings::{Setting, Settings};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Where a version has its fields.
impl Version {
    fn size(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    /// High byte of `ver`, and where it stands.
    fn mark(self) -> (usize, u8) {
        match self {
            Version::One => (15, 1),
            Version::Two => (3, 2),
        }
    }

    fn command(self) -> usize {
        match self {
            Version::One => 12,
            Version::Two => 0,
        }
    }

    fn length(self) -> usize {
        match self {
            Version::One => 4,
            Version::Two => 8,
        }
    }

    /// Records at the start of `bytes` that carry this version's mark, where damage leaves no doubt: all of the first three,
    /// or nine tenths of the first hundred.
    fn fits(self, bytes: &[u8]) -> Option<usize> {
        let (at, mark) = self.mark();
        let command = self.command() + 1;
        let records: Vec<&[u8]> = bytes.chunks_exact(self.size()).take(100).collect();
        let good = |records: &[&[u8]]| records.iter().filter(|r| r[at] == mark && r[command] == 0).count();
        let first = records.len().min(3);
        let all = good(&records);
        (first > 0 && (good(&records[..first]) == first || all * 10 >= records.len() * 9)).then_some(all)
    }
}

struct Records {
    version: Version,
    volume: Option<u16>,
    unmaps: u64,
    others: u64,
    empty: u64,
}

impl RecordParser for Records {
    fn size(&self) -> usize {
        self.version.size()
    }

    #[inline]
    fn parse(&mut self, record: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let (at, mark) = self.version.mark();
        if record[at] != mark {
            return Err(Defect {
                at: at as u16,
                expected: "the version, as in the records before",
            });
        }
        let command = self.version.command();
        let code = u8::try_from(u16::from_le_bytes(bytes_at(record, command))).map_err(|_| Defect {
            at: command as u16,
            expected: "a SCSI operation code below 256",
        })?;
        let Some(op) = scsi::operation(code) else {
            match code {
                scsi::UNMAP => self.unmaps += 1,
                _ => self.others += 1,
            }
            return Ok(());
        };
        let time = u64::from_le_bytes(bytes_at(record, 24));
        let time_ns = time.checked_mul(1000).ok_or(Defect {
            at: 24,
            expected: "a time below 2^54 microseconds",
        })?;
        let volume = match self.volume {
            Some(volume) => volume,
            None => {
                let volume = volumes.id(b"0").unwrap_or(0);
                *self.volume.insert(volume)
            }
        };
        if op == OpKind::Flush {
            batch.push(time_ns, op, 0, 0, volume, 0);
            return Ok(());
        }
        let block = u64::from_le_bytes(bytes_at(record, 16));
        let offset = to_bytes(block, 512).ok_or(Defect {
            at: 16,
            expected: "a block below 2^51",
        })?;
        let length = u32::from_le_bytes(bytes_at(record, self.version.length()));
        match to_length(u64::from(length)) {
            Some(length) => batch.push(time_ns, op, offset, length, volume, 0),
            None => self.empty += 1,
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[
            ("UNMAP commands, whose extents are not in the trace", self.unmaps),
            ("SCSI commands other than reads, writes and flushes", self.others),
            ("reads and writes of no bytes", self.empty),
        ])
    }
}

pub const SETTINGS: &[Setting] = &[];

/// A write, a flush, an inquiry and two reads, version 2.
pub fn sample() -> Vec<u8> {
    let rows = [
        (0x2au16, 8192u32, 1000u64, 5_000u64),
        (0x35, 0, 0, 5_100),
        (0x12, 36, 0, 5_200),
        (0x28, 4096, 1016, 5_300),
        (0x88, 65536, 1 << 33, 6_000),
    ];
    let mut bytes = Vec::new();
    for (serial, (command, length, block, time)) in rows.into_iter().enumerate() {
        bytes.extend(command.to_le_bytes());
        bytes.extend(0x0200u16.to_le_bytes());
        bytes.extend((serial as u32).to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(block.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.extend(250u64.to_le_bytes());
    }
    bytes
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let fits = |version: Version| version.fits(sample.bytes).map(|n| (version, n));
    let (version, n) = fits(Version::Two).or_else(|| fits(Version::One))?;
    let strength = if n > 2 { Strength::Sure } else { Strength::Likely };
    let (number, size) = (version.mark().1, version.size());
    Some(Claim::new(
        strength,
        format!("records of {size} bytes that carry the mark of vSCSI version {number}"),
    ))
}

pub fn open(mut input: Input, _: &Settings) -> Result<Box<dyn Reader>> {
    if input.bytes().is_empty() {
        input.fill()?;
    }
    // Damage at the start must not decide: the version is that of most of the first records.
    let marked = |version: Version| {
        let (at, mark) = version.mark();
        let records = input.bytes().chunks_exact(version.size()).take(1000);
        records.filter(|r| r[at] == mark).count() * version.size()
    };
    let version = match marked(Version::One) > marked(Version::Two) {
        true => Version::One,
        false => Version::Two,
    };
    let parser = Records {
        version,
        volume: None,
        unmaps: 0,
        others: 0,
        empty: 0,
    };
    Ok(Box::new(RecordReader::new(parser, input)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn version_two() {
        let (format, batch) = read(&sample());
        assert_eq!(format, "vscsi");
        use OpKind::{Flush, Read, Write};
        assert_eq!(batch.op, [Write, Flush, Read, Read]);
        assert_eq!(batch.time_ns, [5_000_000, 5_100_000, 5_300_000, 6_000_000]);
        assert_eq!(batch.offset, [512_000, 0, 520_192, 1 << 42]);
        assert_eq!(batch.length, [8192, 0, 4096, 65536]);
    }

    #[test]
    fn version_one() {
        let mut bytes = Vec::new();
        for (command, time) in [(0x2eu16, 1u64), (0x42, 2), (0x08, 3), (0x0a, 4)] {
            bytes.extend(9u32.to_le_bytes());
            bytes.extend(512u32.to_le_bytes());
            bytes.extend(1u32.to_le_bytes());
            bytes.extend(command.to_le_bytes());
            bytes.extend([3, 1]);
            bytes.extend(7u64.to_le_bytes());
            bytes.extend(time.to_le_bytes());
        }
        let (format, batch) = read(&bytes);
        assert_eq!(format, "vscsi");
        assert_eq!(batch.op, [OpKind::Write, OpKind::Read, OpKind::Write]);
        assert_eq!(batch.time_ns, [1000, 3000, 4000]);
        assert_eq!((batch.offset[0], batch.length[0]), (3584, 512));
    }
}
