//! Partitions off the disks, in the order of the sample, by threads that belong to one disk each.
//!
//! # Model
//! Each disk has `depth` threads of its own, which read its partitions with `pread` and wait for no other disk. Each partition comes with the byte in front of it and a few
//! kilobytes behind it, so that its records are whole; more is read where a record is longer. A disk has at most so many partitions in memory, which are handed
//! out in the order of the sample, so that results do not depend on which read ends first.
//!
//! # Not modelled
//! Caches of the operating system are used as they are (without read-ahead).
//!
//! # Errors
//! What the system refuses, files that have changed, records of more than 64 MiB.
//!
//! # Source
//! Zhou, PhD thesis, University of Central Florida 2018, section 1.4.2: decoupled threads of each disk.

use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use ftlab_core::{Error, Result};

use crate::layout::Place;
use crate::record::Pick;

/// Read behind a partition for its last record, beyond the next border of this size.
const BEHIND: u64 = 4096;
const LONGEST_RECORD: u64 = 64 << 20;

/// Where the records of a partition stand in a buffer, and what was read for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub records: Range<usize>,
    /// Place in the file of the buffer's first byte.
    pub offset: u64,
    pub bytes_read: u64,
}

/// Reads a partition: all records whose first byte lies in it; of Parquet the picked columns, one behind the other.
pub fn load(place: Place<'_>, picks: &[Pick], buffer: &mut Vec<u8>) -> Result<Loaded> {
    let piece = place.piece;
    if let Some(log) = &piece.log {
        return log.load(place.number, buffer);
    }
    if let Some(groups) = &piece.row_groups {
        let mut at = 0;
        for (start, length) in groups.extents(place.number, picks) {
            fill(place, buffer, start, start + length, at)?;
            at += length as usize;
        }
        return Ok(Loaded {
            records: 0..at,
            offset: 0,
            bytes_read: at as u64,
        });
    }
    if let Some(index) = &piece.index {
        let number = place.number as usize;
        let (start, end) = (index.starts[number].max(piece.header), index.starts[number + 1]);
        let start = start.min(end);
        fill(place, buffer, start, end, 0)?;
        return Ok(Loaded {
            records: 0..(end - start) as usize,
            offset: start,
            bytes_read: end - start,
        });
    }
    let offset = place.start.saturating_sub(1);
    let mut until = (place.end.next_multiple_of(BEHIND) + BEHIND).min(piece.bytes);
    fill(place, buffer, offset, until, 0)?;
    let none = |until: u64| Loaded {
        records: 0..0,
        offset,
        bytes_read: until - offset,
    };
    let last = (place.end - 1 - offset) as usize;
    let first = if place.start == 0 {
        piece.header.min(place.end) as usize
    } else {
        match memchr::memchr(b'\n', &buffer[..last]) {
            Some(at) => at + 1,
            None => return Ok(none(until)),
        }
    };
    if offset + first as u64 >= place.end {
        return Ok(none(until));
    }
    // From the partition's last byte on, the line end that its last record has.
    let mut searched = last;
    let end = loop {
        let read = (until - offset) as usize;
        if let Some(at) = memchr::memchr(b'\n', &buffer[searched..read]) {
            break searched + at + 1;
        }
        if until == piece.bytes {
            break read;
        }
        if until - place.start > LONGEST_RECORD {
            return Err(Error::input(format!(
                "{}: no line end within {LONGEST_RECORD} bytes behind byte {}, expected shorter records",
                piece.path.display(),
                place.start
            )));
        }
        searched = read;
        let more = (until + (until - offset)).min(piece.bytes);
        fill(place, buffer, until, more, read)?;
        until = more;
    };
    Ok(Loaded {
        records: first..end,
        offset,
        bytes_read: until - offset,
    })
}

/// Reads bytes `from..to` of the file to `at` in the buffer.
fn fill(place: Place<'_>, buffer: &mut Vec<u8>, from: u64, to: u64, at: usize) -> Result<()> {
    let end = at + (to - from) as usize;
    if buffer.len() < end {
        buffer.resize(end, 0);
    }
    let path = &place.piece.path;
    place
        .piece
        .file
        .read_exact_at(&mut buffer[at..end], from)
        .map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => Error::input(format!(
                "{}: ends before byte {to}, where it had {} when it was opened; expected a file that does not change",
                path.display(),
                place.piece.bytes
            )),
            _ => Error::Io(format!("{}: bytes {from} to {to}: {e}", path.display())),
        })
}
