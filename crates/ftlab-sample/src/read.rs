//! Partitions off the disks, in the order of the sample, by threads that belong to one disk each.
//!
//! # Model
//! Each disk has `depth` threads of its own, which read its partitions with `pread` and wait for no other disk. Each partition comes with the byte in front of it and a few
//! kilobytes behind it, so that its records are whole; more is read where a record is longer. A disk has at most so many partitions in memory, which are handed
//! out in the order of the sample, so that results do not depend on which read ends first.
//!
//! Reads go through the system's cache, without read-ahead; with `direct` past it, a little quicker where the files are not in memory (docs/measured.md).
//!
//! # Not modelled
//! `io_uring`: of 64 KiB a disk's threads read as much.
//!
//! # Errors
//! What the system refuses, files that have changed, records of more than 64 MiB.
//!
//! # Source
//! Zhou, PhD thesis, University of Central Florida 2018, section 1.4.2: decoupled threads of each disk.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use ftlab_core::{Error, Result};
use rustix::fs::OFlags;

use crate::frames::{self, Unpacker};
use crate::layout::Place;
use crate::record::Pick;

/// Read behind a partition for its last record, beyond the next border of this size.
const BEHIND: u64 = 4096;
pub(crate) const LONGEST_RECORD: u64 = 64 << 20;
/// What places, lengths and memory of reads past the cache are multiples of: no smaller than blocks of disks are.
const ALIGNED: usize = 4096;
/// Bytes that are read past the cache at once.
const AT_ONCE: usize = 1 << 20;

thread_local! {
    /// Where reads past the cache go first, as memory of the caller is not aligned.
    static ALIGNING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Where the records of a partition stand in a buffer, and what was read for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub records: Range<usize>,
    /// Place in the file of the buffer's first byte; of unpacked text in that.
    pub offset: u64,
    pub bytes_read: u64,
}

/// Reads a partition: all records whose first byte lies in it; of Parquet the picked columns, one behind the other; of compressed text what `unpack` needs.
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
    if let Some(packed) = &piece.frames {
        return frames::load(packed, place, buffer);
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

/// Puts the text of a compressed partition in its place; it takes a core's time, so that threads which read leave it to others.
pub fn unpack(place: Place<'_>, loaded: &mut Loaded, buffer: &mut Vec<u8>, room: &mut Unpacker) -> Result<()> {
    match &place.piece.frames {
        Some(packed) => frames::unpack(packed, place, loaded, buffer, room),
        None => Ok(()),
    }
}

/// Reads bytes `from..to` of the file to `at` in the buffer.
pub(crate) fn fill(place: Place<'_>, buffer: &mut Vec<u8>, from: u64, to: u64, at: usize) -> Result<()> {
    let end = at + (to - from) as usize;
    if buffer.len() < end {
        buffer.resize(end, 0);
    }
    let path = &place.piece.path;
    let read = match &place.piece.direct {
        Some(direct) => read_direct(direct, &mut buffer[at..end], from),
        None => place.piece.file.read_exact_at(&mut buffer[at..end], from),
    };
    read.map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof => Error::input(format!(
            "{}: ends before byte {to}, where it had {} when it was opened; expected a file that does not change",
            path.display(),
            place.piece.bytes
        )),
        _ => Error::Io(format!("{}: bytes {from} to {to}: {e}", path.display())),
    })
}

/// A file for reads past the system's cache, if its file system has them.
pub fn past_cache(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(path)
        .ok()?;
    // Some refuse not before the first read.
    read_direct(&file, &mut [0; 1], 0).ok()?;
    Some(file)
}

fn read_direct(file: &File, mut to: &mut [u8], mut from: u64) -> std::io::Result<()> {
    ALIGNING.with_borrow_mut(|memory| {
        memory.resize(AT_ONCE + 2 * ALIGNED, 0);
        let start = memory.as_ptr().align_offset(ALIGNED);
        while !to.is_empty() {
            let before = (from % ALIGNED as u64) as usize;
            let length = (before + to.len()).next_multiple_of(ALIGNED).min(AT_ONCE);
            let count = match file.read_at(&mut memory[start..start + length], from - before as u64) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                count => count?,
            };
            if count <= before {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let length = to.len().min(count - before);
            let (here, rest) = std::mem::take(&mut to).split_at_mut(length);
            here.copy_from_slice(&memory[start + before..][..here.len()]);
            from += here.len() as u64;
            to = rest;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Cut, Dataset, open};

    fn opened(path: &Path, direct: bool) -> Dataset {
        let cut = Cut {
            disks: Vec::new(),
            partition_bytes: 2048,
            form: None,
            delimiter: None,
            header: true,
            no_quoted_newlines: true,
            direct,
            stop: Default::default(),
        };
        open(&path.to_string_lossy(), &cut).unwrap()
    }

    /// Places and lengths around borders of blocks and of what is read at once, from a file of 3 MiB and a bit.
    #[test]
    fn reads_past_the_cache_are_those_through_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        let content: Vec<u8> = (0..(3 << 20) + 77u32).map(|n| (n % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        // Where the file system refuses them there is nothing to compare.
        let Some(file) = past_cache(&path) else { return };
        for from in [
            0,
            1,
            511,
            4095,
            4096,
            AT_ONCE - 1,
            AT_ONCE,
            2 * AT_ONCE + 5,
            content.len() - 1,
        ] {
            for length in [1, 4096, 5000, AT_ONCE, AT_ONCE + 1] {
                let length = length.min(content.len() - from);
                let mut found = vec![0; length];
                read_direct(&file, &mut found, from as u64).unwrap();
                assert!(found == content[from..from + length], "{from} {length}");
            }
        }
        let past = read_direct(&file, &mut [0; 100], content.len() as u64 - 50);
        assert_eq!(past.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    /// 100 lines of 100 bytes, of which half are cut off when the file is open.
    #[test]
    fn a_file_that_is_cut_while_it_is_sampled_is_an_error_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        for direct in [false, true] {
            let path = folder.path().join("a.txt");
            std::fs::write(&path, [&[b'x'; 99][..], b"\n"].concat().repeat(100)).unwrap();
            let dataset = opened(&path, direct);
            assert_eq!(dataset.partitions(), 5);
            OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(5000)
                .unwrap();
            let mut buffer = Vec::new();
            let loaded: Vec<_> = (0..5)
                .map(|number| load(dataset.place(0, number), &[], &mut buffer))
                .collect();
            assert!(loaded[4].is_err() && loaded[3].is_err());
            let said = loaded[4].as_ref().unwrap_err().to_string();
            assert!(
                said.contains("a.txt: ends before byte 10000, where it had 10000 when it was opened; expected a file that does not change"),
                "{said}"
            );
        }
    }
}
