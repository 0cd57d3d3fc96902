//! lcs, libCacheSim's binary form with a header.
//!
//! # Origin
//! 1a1a11a/libCacheSim, `libCacheSim/traceReader/customizedReader/lcs.h` (versions 1 to 8), earlier states of that file
//! (versions 1 and 2 with a shorter header) and `libCacheSim/traceReader/generalReader/lcs.h` (fields named by a format string).
//! Numbers are little-endian.
//!
//! # Columns
//! Three headers exist. All begin and end with the mark `123456789abcdef0`, so that the end of the second mark gives
//! their length.
//!
//! | header | bytes | says |
//! | --- | --- | --- |
//! | present | 8192 | at 8 the version (1 to 8), at 24 the number of records |
//! | earlier | 1024 | the same, and at 124 the unit of time (1 s, 2 ms, 3 µs, 4 ns) |
//! | oldest | 1024 or 512 | at 8 a format string of Python's `struct`, from 248 on the places of the fields, at 488 the number of records (where it is 1024 bytes long) |
//!
//! | field | version 1 | 2 | 3 to 8 | unit |
//! | --- | --- | --- | --- | --- |
//! | time, u32 | 0 | 0 | 0 | s, unless the header or `time_unit` says otherwise |
//! | object id, u64 | 4 | 4 | 4 | `address_unit`, or a hash: as in oracleGeneral |
//! | size, u32 (i64 from version 3 on) | 12 | 12 | 12 | bytes |
//! | operation, u8 | | 16 | 20 | |
//! | tenant, u24 | | 17 | 21 | volume |
//! | time to live, u32 | | | 24 | s |
//! | next access, i64 | 16 | 20 | 28 | |
//! | record | 24 | 28 | 36, 40, 44, 52, 68, 100 | bytes |
//!
//! A file with fewer records than its header names is cut off.
//!
//! # What is dropped
//! Next accesses, times to live, features (versions 4 to 8), the statistics of the header. Objects of no bytes, counted.

use ftlab_core::{Error, Result};

use super::objects::{self, Field, Kind, Layout, Objects};
use super::{Claim, Reader, Sample, Strength};
use crate::input::Input;
use crate::records::{RecordReader, bytes_at};
use crate::settings::{Setting, Settings, TimeUnit};

const MARK: [u8; 8] = 0x1234_5678_9abc_def0u64.to_le_bytes();
/// Lengths of headers, the longest last.
const LENGTHS: [usize; 3] = [512, 1024, 8192];

/// What a header says.
struct Header {
    length: usize,
    /// As the reason of a claim names it.
    name: String,
    layout: Layout,
    unit: TimeUnit,
    records: Option<u64>,
}

/// The header at the start of `bytes`, or what is wrong with it and where.
fn header(bytes: &[u8]) -> std::result::Result<Header, (usize, String)> {
    if !bytes.starts_with(&MARK) {
        return Err((0, "expected the mark of an lcs header".to_owned()));
    }
    let ends = |length: &&usize| bytes.get(**length - 8..**length) == Some(&MARK[..]);
    let Some(&length) = LENGTHS.iter().find(ends) else {
        return Err((
            0,
            "expected a second mark at the end of an lcs header of 512, 1024 or 8192 bytes".to_owned(),
        ));
    };
    if bytes[8] == b'<' {
        return named_fields(bytes, length);
    }
    let version = u64::from_le_bytes(bytes_at(bytes, 8));
    let layout = of_version(version).ok_or_else(|| (8, format!("version {version} is not known, expected 1 to 8")))?;
    // The earlier header has the unit of time where the present one counts common object sizes.
    let unit = match (length, u32::from_le_bytes(bytes_at(bytes, 124))) {
        (1024, 2) => TimeUnit::Milliseconds,
        (1024, 3) => TimeUnit::Microseconds,
        (1024, 4) => TimeUnit::Nanoseconds,
        _ => TimeUnit::Seconds,
    };
    let records = u64::from_le_bytes(bytes_at(bytes, 24));
    Ok(Header {
        length,
        name: format!("lcs version {version}"),
        layout,
        unit,
        records: Some(records).filter(|&n| n > 0 && n < 1 << 62),
    })
}

fn of_version(version: u64) -> Option<Layout> {
    let size = match version {
        1 => 24,
        2 => 28,
        3 => 36,
        4 => 40,
        5 => 44,
        6 => 52,
        7 => 68,
        8 => 100,
        _ => return None,
    };
    let (length, op, next) = match version {
        1 => (Field::unsigned(12, 4), None, 16),
        2 => (Field::unsigned(12, 4), Some(16), 20),
        _ => (Field::signed(12, 8), Some(20), 28),
    };
    Some(Layout {
        size,
        time: Field::unsigned(0, 4),
        id: Field::unsigned(4, 8),
        length,
        op: op.map(|at| Field::unsigned(at, 1)),
        tenant: op.map(|at| Field::unsigned(at + 1, 3)),
        next: Some(Field::signed(next, 8)),
    })
}

/// The oldest header: a format string, and which of its fields are which.
fn named_fields(bytes: &[u8], length: usize) -> std::result::Result<Header, (usize, String)> {
    let format = bytes.get(9..248).unwrap_or(&[]);
    let format = &format[..format.iter().position(|&b| b == 0).unwrap_or(format.len())];
    let mut fields = Vec::with_capacity(format.len());
    let mut at = 0u16;
    for (i, letter) in format.iter().enumerate() {
        let kind = match letter {
            b'b' | b'c' => Kind::Signed(1),
            b'B' => Kind::Unsigned(1),
            b'h' => Kind::Signed(2),
            b'H' => Kind::Unsigned(2),
            b'i' | b'l' => Kind::Signed(4),
            b'I' | b'L' => Kind::Unsigned(4),
            b'q' => Kind::Signed(8),
            b'Q' => Kind::Unsigned(8),
            b'f' => Kind::Float,
            b'd' => Kind::Double,
            _ => return Err((9 + i, "expected a format string of the letters bBhHiIlLqQfd".to_owned())),
        };
        fields.push(Field { at, kind });
        // At most 239 fields of 8 bytes.
        at += kind.size() as u16;
    }
    let field = |place: usize| usize::from(bytes[place]).checked_sub(1).map(|i| fields.get(i).copied());
    let needed = |place: usize, what: &str| {
        field(place).flatten().ok_or_else(|| {
            let n = fields.len();
            (
                place,
                format!("field {} holds the {what}, expected 1 to {n}", bytes[place]),
            )
        })
    };
    let whole = |field: Field| matches!(field.kind, Kind::Signed(_) | Kind::Unsigned(_));
    let id = needed(248, "object id")?;
    if !whole(id) {
        return Err((
            248,
            "the object id is a floating-point number, expected a whole one".to_owned(),
        ));
    }
    let layout = Layout {
        size: at.into(),
        time: needed(250, "time")?,
        id,
        length: needed(249, "size")?,
        op: field(253).flatten().filter(|&f| whole(f)),
        tenant: field(255).flatten().filter(|&f| whole(f)),
        next: field(252).flatten().filter(|&f| matches!(f.kind, Kind::Signed(8))),
    };
    let records = u64::from_le_bytes(bytes_at(bytes, 488));
    let shown = String::from_utf8_lossy(format);
    Ok(Header {
        length,
        name: format!("lcs with fields {shown}"),
        layout,
        unit: TimeUnit::Seconds,
        records: Some(records).filter(|&n| length == 1024 && n > 0 && n < 1 << 62),
    })
}

pub const SETTINGS: &[Setting] = objects::SETTINGS;

/// Version 2 with the header of today: a set, two gets of two tenants, a delete.
pub fn sample() -> Vec<u8> {
    let rows = [
        (0u32, 64u64, 4096u32, 3u8),
        (0, 72, 4096, 1),
        (1, 64, 4096, 1),
        (5, 64, 4096, 9),
    ];
    let mut bytes = vec![0; 8192];
    bytes[..8].copy_from_slice(&MARK);
    bytes[8] = 2;
    bytes[24] = rows.len() as u8;
    bytes[8184..].copy_from_slice(&MARK);
    for (i, (time, id, size, op)) in rows.into_iter().enumerate() {
        bytes.extend(time.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend([op, (i % 2) as u8, 0, 0]);
        bytes.extend((-1i64).to_le_bytes());
    }
    bytes
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    if !sample.bytes.starts_with(&MARK) {
        return None;
    }
    let Ok(header) = header(sample.bytes) else {
        // Opening says what is wrong.
        return Some(Claim::new(Strength::Sure, "the mark of an lcs header"));
    };
    let records = sample.bytes.get(header.length..).unwrap_or(&[]);
    let (guess, why) = objects::guess(&header.layout, records, header.unit);
    let reason = format!("the header of {}; {why}", header.name);
    Some(Claim {
        strength: Strength::Sure,
        reason,
        guess,
    })
}

pub fn open(mut input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    while input.bytes().len() < 8192 && !input.ended() {
        input.fill()?;
    }
    let header =
        header(input.bytes()).map_err(|(at, what)| Error::input(format!("{}, byte {at}: {what}", input.name())))?;
    if header.layout.size == 0 {
        let name = input.name();
        return Err(Error::input(format!(
            "{name}, byte 9: expected a format string that is not empty"
        )));
    }
    input.consume(header.length);
    let parser = Objects::new(header.layout, settings, header.records);
    Ok(Box::new(RecordReader::new(parser, input)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use crate::{ReadOptions, Volumes};
    use ftlab_core::{Batch, OpKind, Source};

    #[test]
    fn version_2() {
        let (format, batch) = read(&sample());
        assert_eq!(format, "lcs");
        use OpKind::{Read, Trim, Write};
        assert_eq!(batch.op, [Write, Read, Read, Trim]);
        assert_eq!(batch.time_ns, [0, 0, 1_000_000_000, 5_000_000_000]);
        assert_eq!(batch.offset, [64 * 512, 72 * 512, 64 * 512, 64 * 512]);
        assert_eq!(batch.volume, [0, 1, 0, 1]);
    }

    #[test]
    fn every_version_has_its_fields() {
        for (version, size) in [(3u8, 36usize), (4, 40), (5, 44), (6, 52), (7, 68), (8, 100)] {
            let mut bytes = sample()[..8192].to_vec();
            (bytes[8], bytes[24]) = (version, 2);
            for i in 0..2u8 {
                let mut record = vec![0xaa; size];
                record[..28].fill(0);
                record[28..36].fill(0xff);
                (record[0], record[4], record[13], record[20], record[21]) = (i, 8 * i, 16, 13, 7);
                bytes.extend(record);
            }
            let (format, batch) = read(&bytes);
            assert_eq!(format, "lcs");
            assert_eq!(
                (&batch.length[..], &batch.offset[..]),
                (&[4096, 4096][..], &[0, 4096][..]),
                "{version}"
            );
            assert_eq!(batch.op, [OpKind::Write; 2]);
        }
    }

    #[test]
    fn version_1_with_the_earlier_header() {
        let mut bytes = vec![0; 1024];
        bytes[..8].copy_from_slice(&MARK);
        (bytes[8], bytes[24], bytes[124]) = (1, 5, 3);
        bytes[1016..].copy_from_slice(&MARK);
        bytes.extend(super::super::oracle_general::sample());
        let (format, batch) = read(&bytes);
        assert_eq!(format, "lcs");
        assert_eq!(batch.time_ns, [10_000, 10_000, 12_000, 13_000, 15_000], "microseconds");
    }

    fn oldest(format: &[u8], places: [u8; 9], records: u64) -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        bytes[..8].copy_from_slice(&MARK);
        bytes[8..8 + format.len()].copy_from_slice(format);
        bytes[248..257].copy_from_slice(&places);
        bytes[488..496].copy_from_slice(&records.to_le_bytes());
        bytes[1016..].copy_from_slice(&MARK);
        bytes
    }

    #[test]
    fn fields_by_a_format_string() {
        let mut bytes = oldest(b"<IQIQ", [2, 3, 1, 0, 4, 0, 0, 0, 0], 5);
        bytes.extend(super::super::oracle_general::sample());
        let (format, batch) = read(&bytes);
        assert_eq!((format, batch.len(), batch.offset[1]), ("lcs", 5, 413_696));
        // A double for the time, the operation last.
        let mut bytes = oldest(b"<dqhB", [2, 3, 1, 0, 0, 4, 0, 0, 0], 0);
        bytes.extend(0.25f64.to_le_bytes());
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3]);
        let (_, batch) = read(&bytes);
        assert_eq!(
            (batch.time_ns[0], batch.offset[0], batch.length[0]),
            (250_000_000, 512, 512)
        );
        assert_eq!(batch.op, [OpKind::Write]);
    }

    fn error(bytes: Vec<u8>) -> (usize, String) {
        let options = ReadOptions {
            volumes: Volumes::Merge,
            ..ReadOptions::default()
        };
        let mut requests = 0;
        let mut opened = match crate::open_bytes("t.lcs", bytes, &options) {
            Ok(opened) => opened,
            Err(error) => return (0, error.to_string()),
        };
        let mut batch = Batch::default();
        loop {
            match opened.next_batch(&mut batch) {
                Ok(()) => {
                    assert!(!batch.is_empty());
                    requests += batch.len();
                }
                Err(error) => return (requests, error.to_string()),
            }
        }
    }

    #[test]
    fn a_file_shorter_than_its_header_says_is_cut_off() {
        let (requests, error) = error(sample()[..8192 + 3 * 28].to_vec());
        assert_eq!(requests, 3);
        let expected =
            "t.lcs, byte 8276: the file ends after 3 records, expected the 4 of its header, after 3 requests";
        assert_eq!(error, expected);
    }

    #[test]
    fn a_wrong_header_is_one_sentence_with_a_byte() {
        let mut bytes = sample();
        bytes[8] = 9;
        assert_eq!(error(bytes).1, "t.lcs, byte 8: version 9 is not known, expected 1 to 8");
        assert!(
            error(sample()[..5000].to_vec())
                .1
                .starts_with("t.lcs, byte 0: expected a second mark")
        );
        assert_eq!(
            error(oldest(b"<IQxQ", [2, 3, 1, 0, 4, 0, 0, 0, 0], 5)).1,
            "t.lcs, byte 11: expected a format string of the letters bBhHiIlLqQfd"
        );
        assert_eq!(
            error(oldest(b"<IQIQ", [2, 9, 1, 0, 4, 0, 0, 0, 0], 5)).1,
            "t.lcs, byte 249: field 9 holds the size, expected 1 to 4"
        );
        assert!(
            error(oldest(b"<", [2, 9, 1, 0, 4, 0, 0, 0, 0], 5))
                .1
                .contains("byte 248")
        );
    }
}
