//! Partitions of a disk, one behind another, and the index of their ends.
//!
//! # Model
//! The log begins with a head: a magic number, the store's id, the disk's number. Each partition is its length (4 bytes), its number of records (4), a check
//! (8) and its records. The check is XXH3 of all that, seeded by store, disk and place, so that a partition in a wrong place is as wrong as a
//! changed one. The index has the same head, and 8 bytes for each partition: where it ends. Numbers are little-endian.
//!
//! # Errors
//! Files of another store or disk, shorter than committed; an index or a partition whose check fails. What is behind the committed length is not looked at.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use ftlab_core::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use super::manifest::Manifest;
use crate::read::Loaded;

/// Bytes of the head of a log or index.
pub(super) const HEAD: u64 = 32;
/// Bytes in front of a partition's records.
pub(super) const FRAME: usize = 16;
const MAGIC: &[u8; 16] = b"ftlab LDD log 1\n";

/// A log of committed partitions.
#[derive(Debug)]
pub struct Log {
    pub path: Arc<Path>,
    file: File,
    /// Of each partition, and of what is behind the last.
    starts: Vec<u64>,
    seed: u64,
    /// Whether line ends may stand within quotes.
    pub quoted: bool,
}

impl Log {
    pub(super) fn open(home: &Path, manifest: &Manifest, disk: usize) -> Result<Log> {
        let (path, of) = (manifest.log(home, disk), &manifest.disks[disk]);
        manifest.check_newest(home, &path)?;
        let file = open(&path)?;
        expect_head(&path, &file, manifest.id, disk)?;
        expect_length(&path, &file, of.bytes)?;
        let starts = read_index(&path.with_extension("index"), manifest, disk)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).map_err(|e| Error::io(&path, &e.into()))?;
        Ok(Log {
            path: path.into(),
            file,
            starts,
            seed: seed(manifest.id, disk),
            quoted: manifest.quoted,
        })
    }

    pub fn partitions(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    /// First byte of a partition, and of what is behind it.
    pub fn ends(&self, number: u64) -> (u64, u64) {
        (self.starts[number as usize], self.starts[number as usize + 1])
    }

    pub(super) fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(|e| Error::io(&self.path, &e))
    }

    /// Bytes behind what was committed.
    pub(super) fn behind(&self) -> Result<u64> {
        let bytes = self.file.metadata().map_err(|e| Error::io(&self.path, &e))?.len();
        Ok(bytes.saturating_sub(self.starts[self.starts.len() - 1]))
    }

    /// Reads a partition, and holds it against its check.
    pub fn load(&self, number: u64, buffer: &mut Vec<u8>) -> Result<Loaded> {
        let (start, end) = self.ends(number);
        let length = (end - start) as usize;
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        let bytes = &mut buffer[..length];
        self.file.read_exact_at(bytes, start).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => self.wrong(number, "the file ends before"),
            _ => Error::Io(format!("{}: bytes {start} to {end}: {e}", self.path.display())),
        })?;
        let frame = bytes.first_chunk::<FRAME>();
        let is_sound =
            frame.is_some_and(|frame| *frame == frame_of(self.seed, start, &bytes[FRAME..], records_of(frame)));
        if !is_sound {
            return Err(self.wrong(number, "its check fails"));
        }
        Ok(Loaded {
            records: FRAME..length,
            offset: start,
            bytes_read: end - start,
        })
    }

    fn wrong(&self, number: u64, what: &str) -> Error {
        let (start, end) = self.ends(number);
        Error::input(format!(
            "{}, partition {number} (bytes {start} to {end}): {what}, expected what was written",
            self.path.display()
        ))
    }
}

/// What stands in front of a partition's records.
pub(super) fn frame_of(seed: u64, start: u64, records: &[u8], count: u32) -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    frame[..4].copy_from_slice(&(records.len() as u32).to_le_bytes());
    frame[4..8].copy_from_slice(&count.to_le_bytes());
    let mut check = Xxh3::with_seed(seed ^ start);
    check.update(&frame[..8]);
    check.update(records);
    frame[8..].copy_from_slice(&check.digest().to_le_bytes());
    frame
}

fn records_of(frame: &[u8; FRAME]) -> u32 {
    u32::from_le_bytes([frame[4], frame[5], frame[6], frame[7]])
}

pub(super) fn seed(id: u64, disk: usize) -> u64 {
    id ^ (disk as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub(super) fn head(id: u64, disk: usize) -> [u8; HEAD as usize] {
    let mut head = [0; HEAD as usize];
    head[..16].copy_from_slice(MAGIC);
    head[16..24].copy_from_slice(&id.to_le_bytes());
    head[24..].copy_from_slice(&(disk as u64).to_le_bytes());
    head
}

/// The check of an index.
pub(super) fn check_of(ends: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(ends)
}

/// Starts of the committed partitions of a disk, and the end of the last.
pub(super) fn read_index(path: &Path, manifest: &Manifest, disk: usize) -> Result<Vec<u64>> {
    let of = &manifest.disks[disk];
    let file = open(path)?;
    expect_head(path, &file, manifest.id, disk)?;
    expect_length(path, &file, HEAD + 8 * of.partitions)?;
    let mut bytes = vec![0; 8 * of.partitions as usize];
    file.read_exact_at(&mut bytes, HEAD).map_err(|e| Error::io(path, &e))?;
    if check_of(&bytes) != of.index {
        return Err(Error::input(format!(
            "{}: its check is not that of ldd.json, expected what the last commit wrote",
            path.display()
        )));
    }
    let mut starts = Vec::with_capacity(of.partitions as usize + 1);
    starts.push(HEAD);
    starts.extend(
        bytes
            .chunks_exact(8)
            .map(|end| u64::from_le_bytes(end.try_into().unwrap_or_default())),
    );
    Ok(starts)
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|e| Error::io(path, &e))
}

/// A log or index of this store and disk.
fn expect_head(path: &Path, file: &File, id: u64, disk: usize) -> Result<()> {
    let mut found = [0; HEAD as usize];
    match file.read_exact_at(&mut found, 0) {
        Ok(()) if found == head(id, disk) => Ok(()),
        Err(e) if e.kind() != ErrorKind::UnexpectedEof => Err(Error::io(path, &e)),
        _ => Err(Error::input(format!(
            "{}: not of disk {disk} of this LDD, expected the head that was written",
            path.display()
        ))),
    }
}

fn expect_length(path: &Path, file: &File, committed: u64) -> Result<()> {
    let bytes = file.metadata().map_err(|e| Error::io(path, &e))?.len();
    match bytes >= committed {
        true => Ok(()),
        false => Err(Error::input(format!(
            "{}: {bytes} bytes, expected at least the {committed} that were committed",
            path.display()
        ))),
    }
}
