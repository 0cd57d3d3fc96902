//! What pages lie on: a file or block device, or one with the delays of a model.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ftlab_core::{Error, Result};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::hold;

/// A disk of bytes. Calls come from many threads.
pub trait Disk: Send + Sync {
    fn size(&self) -> u64;
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()>;
    /// What was written is durable.
    fn sync(&self) -> io::Result<()>;
}

/// A file or a block device.
pub struct FileDisk {
    file: File,
    size: u64,
    is_device: bool,
}

/// How a disk is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    Write,
    /// As `Write`, and makes the file if there is none.
    Create,
}

impl FileDisk {
    /// Opens it; `direct` goes past the page cache. A device that is in use, as by a mounted file system, is not written.
    pub fn open(path: &Path, access: Access, direct: bool) -> Result<Self> {
        let kind = std::fs::metadata(path).map(|facts| facts.file_type());
        let is_device = kind.as_ref().is_ok_and(FileTypeExt::is_block_device);
        if kind.is_ok_and(|kind| !is_device && !kind.is_file()) {
            return Err(Error::input(format!(
                "{}: expected a file or a block device",
                path.display()
            )));
        }
        let mut how = OpenOptions::new();
        how.read(true)
            .write(access != Access::Read)
            .create(access == Access::Create && !is_device);
        let past_cache = if direct { libc::O_DIRECT } else { 0 };
        let alone = if is_device && access != Access::Read {
            libc::O_EXCL
        } else {
            0
        };
        how.custom_flags(past_cache | alone);
        let file = how.open(path).map_err(|cause| match cause.raw_os_error() {
            Some(libc::EBUSY) if is_device => Error::input(format!(
                "{}: is in use, as by a mounted file system: expected a device of its own",
                path.display()
            )),
            Some(libc::EINVAL) if direct => Error::input(format!(
                "{}: its file system has no direct I/O, expected direct=off (--buffered)",
                path.display()
            )),
            _ => Error::io(path, &cause),
        })?;
        let facts = file.metadata().map_err(|cause| Error::io(path, &cause))?;
        let size = if is_device {
            rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).map_err(|cause| Error::io(path, &cause.into()))?
        } else {
            facts.len()
        };
        Ok(FileDisk { file, size, is_device })
    }

    pub fn is_device(&self) -> bool {
        self.is_device
    }

    /// Nobody else holds it; false if somebody does.
    pub fn hold(&self) -> bool {
        rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Makes the file as large as that, without taking space.
    pub fn grow(&mut self, size: u64) -> io::Result<()> {
        self.file.set_len(size)?;
        self.size = size;
        Ok(())
    }
}

impl Disk for FileDisk {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        self.file.write_all_at(from, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Delays of a modelled disk: ranges that each do one thing at a time, and collect after so many writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Model {
    /// Equal ranges, by address, that do not wait for each other.
    pub ranges: u32,
    pub read_us: u64,
    pub write_us: u64,
    /// A collection after each `every` writes to a range takes `collect_us`. 0: none.
    pub every: u64,
    pub collect_us: u64,
    /// Each `fail`-th access is an error of the device. 0: none.
    pub fail: u64,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            ranges: 1,
            read_us: 100,
            write_us: 200,
            every: 0,
            collect_us: 2000,
            fail: 0,
        }
    }
}

impl Model {
    /// `ranges=8,read_us=100,write_us=300`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut pairs = serde_json::Map::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let number = part.split_once('=').and_then(|(key, value)| {
                let value: u64 = value.trim().parse().ok()?;
                Some((key.trim().to_owned(), value))
            });
            let Some((key, value)) = number else {
                return Err(Error::input(format!(
                    "model `{text}`: `{part}`, expected KEY=NUMBER of ranges, read_us, write_us, every, collect_us, fail"
                )));
            };
            pairs.insert(key, value.into());
        }
        let model: Model =
            serde_json::from_value(pairs.into()).map_err(|cause| Error::input(format!("model `{text}`: {cause}")))?;
        if !(1..=1024).contains(&model.ranges) {
            return Err(Error::input(format!(
                "model `{text}`: ranges = {}, expected 1 to 1024",
                model.ranges
            )));
        }
        let longest = model.read_us.max(model.write_us).max(model.collect_us);
        if longest > 10_000_000 {
            return Err(Error::input(format!(
                "model `{text}`: {longest} us, expected at most 10 s"
            )));
        }
        Ok(model)
    }
}

/// What a modelled range has to do.
#[derive(Default)]
struct Range {
    writes: u64,
    /// When it has done all that was asked of it, in order.
    free_at: Option<Instant>,
}

/// A disk that takes at least as long as a model says.
pub struct Modelled<D> {
    below: D,
    model: Model,
    ranges: Vec<Mutex<Range>>,
    accesses: AtomicU64,
}

impl<D: Disk> Modelled<D> {
    pub fn new(below: D, model: Model) -> Self {
        Modelled {
            ranges: (0..model.ranges).map(|_| Mutex::default()).collect(),
            accesses: AtomicU64::new(0),
            below,
            model,
        }
    }

    /// Waits until an access to a range is done: after those before it.
    fn wait(&self, at: u64, is_write: bool) {
        let length = self.below.size().div_ceil(self.ranges.len() as u64).max(1);
        let number = (at / length).min(self.ranges.len() as u64 - 1);
        let mut range = hold(&self.ranges[number as usize]);
        let mut takes_us = self.model.read_us;
        if is_write {
            range.writes += 1;
            takes_us = self.model.write_us;
            if self.model.every > 0 && range.writes.is_multiple_of(self.model.every) {
                takes_us += self.model.collect_us;
            }
        }
        let now = Instant::now();
        let done = range.free_at.map_or(now, |free| free.max(now)) + Duration::from_micros(takes_us);
        range.free_at = Some(done);
        drop(range);
        sleep(done.saturating_duration_since(now));
    }

    fn may_fail(&self) -> io::Result<()> {
        let number = self.accesses.fetch_add(1, Ordering::Relaxed) + 1;
        match self.model.fail {
            0 => Ok(()),
            each if number.is_multiple_of(each) => Err(io::Error::from_raw_os_error(libc::EIO)),
            _ => Ok(()),
        }
    }
}

impl<D: Disk> Disk for Modelled<D> {
    fn size(&self) -> u64 {
        self.below.size()
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.wait(at, false);
        self.may_fail()?;
        self.below.read(at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        self.wait(at, true);
        self.may_fail()?;
        self.below.write(at, from)
    }

    fn sync(&self) -> io::Result<()> {
        self.below.sync()
    }
}
