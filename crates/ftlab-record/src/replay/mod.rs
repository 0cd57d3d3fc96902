//! Recorded calls become requests to a device: through the kernel's page cache and a file system's extents.
//!
//! # Model
//! With the page cache (`page_cache=on`, the default) a write makes pages of 4 KiB dirty and returns. They go to the device
//! * by `fsync`, `fdatasync`, `sync_file_range`, `sync`, or at once where the file is open with `O_SYNC` or `O_DSYNC`;
//! * when the background writer, which wakes every 5 s, finds that their file has been dirty for more than 30 s: all dirty pages
//!   of the file then;
//! * above 10 % of `memory` in the background, file by file, the one that has been dirty the longest first, at `bandwidth`;
//! * above 20 % at once, by the writer itself;
//! * when memory is full of them.
//!
//! What is overwritten, truncated or removed before that never reaches the device. Each page carries its last writer's program
//! context; neighbouring pages of one writer make one request of up to `max_request`. After the last call the background writer
//! goes on until nothing is dirty. Reads go to the device for pages that are not in memory; a page of which a part is written is
//! read before. Direct I/O passes by: dirty pages in its way are written before, cached ones are forgotten.
//!
//! Without it (`page_cache=off`) every write goes down at once, in whole pages, and so does every read.
//!
//! A file's write-lifetime hint goes with what is written to it while it holds, at the time of the write-back for pages of the cache: as
//! the stream of the request, none for the hints not set and none, then 1 (short) to 4 (extreme).
//!
//! A flush follows what has to be durable, and with `journal=on` a block of a journal of 64 MiB at the device's start is written
//! before the flush. Places are given when pages are written back (delayed allocation). Removing, truncating and punching frees
//! and trims. What a file held before the recording gets its place, in pieces of 1 MiB, when it is touched first.
//! # Not modelled
//! Read-ahead; metadata of the file system other than the optional journal block; a writer slowed down by the limits (the
//! recording's times stay as they are); hints of a descriptor, which are taken as its file's; memory that programs need themselves; memory control groups; unwritten extents (a read of
//! room that `fallocate` took goes to the device).
//! # Source
//! Linux: `Documentation/admin-guide/sysctl/vm.rst` (`dirty_*`), `fs/fs-writeback.c` (dirty inodes by age), `mm/filemap.c` (direct
//! I/O and the cache), `fs/fcntl.c` and `fs/buffer.c` (hints belong to inodes), `drivers/nvme/host/core.c` of 4.13 to 5.17 (hints
//! as streams: `nvme_assign_write_stream`). Last writer's context: T. Kim, PhD thesis, Seoul National University 2019, chapter 4.

mod columns;
pub mod extents;
mod options;
pub mod page_cache;
mod places;
mod reads_and_writes;
mod sending;
mod write_back;

use ftlab_core::{OpKind, Result};

pub use self::columns::Columns;
use self::extents::{FileMap, PAGE, Space};
pub use self::options::{Amount, Labels, Options, Placement};
use self::page_cache::PageCache;
pub use self::page_cache::{Content, Written};
use self::write_back::AWAITED;
use crate::recording::{Call, FileEntry, Op, Tables, op_flags};

/// Pages of the journal.
const JOURNAL: u64 = (64 << 20) / PAGE;

/// A request to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub time_ns: u64,
    pub op: OpKind,
    pub offset: u64,
    pub length: u32,
    /// Bits of `ftlab_core::request::flags`.
    pub flags: u8,
    /// Number of the program context in the recording; 0 is none.
    pub context: u32,
    pub process: u32,
    /// Number of the file; none for the journal and flushes.
    pub file: Option<u32>,
    /// The stream of its file's hint; 0 is none.
    pub stream: u16,
    /// Where the contents of its pages end in [`Replay::contents`].
    pub contents_end: usize,
}

/// The machine between calls and requests.
pub struct Replay {
    options: Options,
    background: u64,
    limit: u64,
    memory: u64,
    files: Vec<File>,
    cache: PageCache,
    space: Space,
    /// Next time the background writer wakes.
    wakeup: u64,
    /// Pages that the background may write, in bytes, and since when that has been counted.
    credit: u64,
    credited: u64,
    journal: u64,
    requests: Vec<Request>,
    contents: Vec<Content>,
    now: u64,
}

#[derive(Default)]
struct File {
    map: FileMap,
    size: u64,
    /// Bytes from the start that were there before the recording and have not been truncated since.
    earlier: u64,
    removed: bool,
    /// What its hint makes of its writes.
    stream: u16,
}

impl Replay {
    pub fn new(options: Options, tables: &Tables) -> Self {
        let mut space = Space::new(options.device);
        if options.journal {
            space.reserve(0, JOURNAL);
        }
        let files = tables
            .files
            .iter()
            .map(|entry| File::new(entry, &options, &mut space))
            .collect();
        Replay {
            background: options.background.of(options.memory) / PAGE,
            limit: options.limit.of(options.memory) / PAGE,
            memory: options.memory / PAGE,
            files,
            cache: PageCache::default(),
            space,
            wakeup: options.wakeup_ns,
            credit: 0,
            credited: 0,
            journal: 0,
            requests: Vec::new(),
            contents: Vec::new(),
            now: 0,
            options,
        }
    }

    /// Requests since [`Replay::clear`].
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// Contents of their pages, one after the other; see [`Request::contents_end`].
    pub fn contents(&self) -> &[Content] {
        &self.contents
    }

    pub fn clear(&mut self) {
        self.requests.clear();
        self.contents.clear();
    }

    /// Carries out a call; `contents` has the contents of the pages it touches, or is empty.
    pub fn apply(&mut self, op: &Op, contents: &[Content]) -> Result<()> {
        self.pass_time(op.time_ns)?;
        if self.files.len() <= op.file as usize {
            self.files.resize_with(op.file as usize + 1, File::default);
        }
        match op.call {
            Call::Read => self.read(op),
            Call::Write => self.write(op, contents),
            // Which pages of a mapping were written is known from their contents only.
            Call::Mapped => self.write_changed(op, contents),
            Call::Sync | Call::SyncData => {
                self.write_back(op.file, 0, u64::MAX, u64::MAX, AWAITED)?;
                self.make_durable();
                Ok(())
            }
            Call::SyncRange => {
                let (first, past) = if op.length == 0 {
                    (op.offset / PAGE, u64::MAX)
                } else {
                    op.pages()
                };
                self.write_back(op.file, first, past, u64::MAX, AWAITED).map(drop)
            }
            Call::SyncAll => {
                for file in self.cache.dirty_files() {
                    self.write_back(file, 0, u64::MAX, u64::MAX, AWAITED)?;
                }
                self.make_durable();
                Ok(())
            }
            Call::Truncate => {
                if op.offset < self.files[op.file as usize].size {
                    self.zero_rest(op, op.offset)?;
                }
                self.truncate(op.file, op.offset)
            }
            Call::Remove => {
                self.files[op.file as usize].removed = true;
                // What is open can still be written back.
                if op.flags & op_flags::OPEN != 0 {
                    return Ok(());
                }
                self.truncate(op.file, 0)
            }
            Call::Allocate => self.allocate(op),
            Call::Punch if op.flags & op_flags::SHIFTED != 0 => self.shift(op),
            Call::Punch => {
                let end = op.offset.saturating_add(op.length);
                self.zero_rest(op, op.offset)?;
                if end / PAGE != op.offset / PAGE && end < self.files[op.file as usize].size {
                    self.zero_rest(op, end)?;
                }
                let (first, past) = (op.offset.div_ceil(PAGE), op.offset.saturating_add(op.length) / PAGE);
                self.discard(op.file, first, past)
            }
            Call::Close => self.close(op.file),
            Call::Hint => {
                // As the kernel's driver for NVMe made streams of hints: not set and none are no stream, short is the first.
                self.files[op.file as usize].stream = op.length.saturating_sub(1) as u16;
                Ok(())
            }
        }
    }
}

impl File {
    fn new(entry: &FileEntry, options: &Options, space: &mut Space) -> Self {
        let real = match options.extents {
            Placement::Real => entry.extents.as_slice(),
            Placement::Simulated => &[],
        };
        let pages = |&(at, place, length): &(u64, u64, u64)| (at / PAGE, place / PAGE, length / PAGE);
        let real: Vec<(u64, u64, u64)> = real.iter().map(pages).filter(|run| run.2 > 0).collect();
        for &(_, place, pages) in &real {
            space.reserve(place, pages);
        }
        File {
            map: FileMap::with_real(real),
            size: entry.size,
            earlier: entry.size,
            removed: false,
            stream: 0,
        }
    }
}

#[cfg(test)]
mod tests;
