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
//! A flush follows what has to be durable, and with `journal=on` a block of a journal of 64 MiB at the device's start is written
//! before the flush. Places are given when pages are written back (delayed allocation). Removing, truncating and punching frees
//! and trims. What a file held before the recording gets its place, in pieces of 1 MiB, when it is touched first.
//! # Not modelled
//! Read-ahead; metadata of the file system other than the optional journal block; a writer slowed down by the limits (the
//! recording's times stay as they are); memory that programs need themselves; memory control groups; unwritten extents (a read of
//! room that `fallocate` took goes to the device).
//! # Source
//! Linux: `Documentation/admin-guide/sysctl/vm.rst` (`dirty_*`), `fs/fs-writeback.c` (dirty inodes by age), `mm/filemap.c` (direct
//! I/O and the cache). Last writer's context: T. Kim, PhD thesis, Seoul National University 2019, chapter 4.

mod columns;
pub mod extents;
mod options;
pub mod page_cache;

use ftlab_core::request::flags;
use ftlab_core::{OpKind, Result};

pub use self::columns::Columns;
use self::extents::{FileMap, PAGE, Space};
pub use self::options::{Amount, Options, Placement};
use self::page_cache::PageCache;
pub use self::page_cache::{Content, Written};
use crate::recording::{Call, FileEntry, Op, Tables, op_flags};

/// Pages in which the data of a file that was there before get their place.
const EARLIER: u64 = (1 << 20) / PAGE;
/// Pages of the journal.
const JOURNAL: u64 = (64 << 20) / PAGE;
/// Pages of a trim, so that its length fits.
const LONGEST_TRIM: u64 = (1 << 30) / PAGE;

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
}

/// Why pages are written back.
#[derive(Clone, Copy)]
struct Urgency {
    flags: u8,
}

const LAZY: Urgency = Urgency { flags: 0 };
const AWAITED: Urgency = Urgency { flags: flags::SYNC };

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
        }
    }

    /// Lets the background writer work until nothing is dirty.
    pub fn finish(&mut self) -> Result<()> {
        while let Some((since, _)) = self.cache.oldest_dirty() {
            let expired = since.saturating_add(self.options.dirty_expire_ns);
            self.pass_time(expired.max(self.wakeup).saturating_add(self.options.wakeup_ns))?;
        }
        Ok(())
    }

    /// What the background writer does up to `now`.
    fn pass_time(&mut self, now: u64) -> Result<()> {
        while self.wakeup <= now {
            let Some((since, _)) = self.cache.oldest_dirty() else {
                // Nothing to do until `now`: no need to wake for it.
                let period = self.options.wakeup_ns;
                self.wakeup += (now - self.wakeup) / period * period + period;
                break;
            };
            // The next time at which a file can have expired, so that years without calls take no time.
            let due = since.saturating_add(self.options.dirty_expire_ns);
            if self.cache.held().1 <= self.background && due >= self.wakeup {
                let steps = (due.min(now) - self.wakeup.min(due.min(now))) / self.options.wakeup_ns;
                self.wakeup = self.wakeup.saturating_add(steps * self.options.wakeup_ns);
            }
            self.now = self.wakeup.max(self.now);
            self.expire()?;
            self.write_in_background()?;
            self.wakeup = self.wakeup.saturating_add(self.options.wakeup_ns);
            if self.wakeup == u64::MAX {
                break;
            }
        }
        self.now = now.max(self.now);
        Ok(())
    }

    /// Writes back every file that has been dirty for longer than allowed.
    fn expire(&mut self) -> Result<()> {
        while let Some((since, file)) = self.cache.oldest_dirty() {
            if since.saturating_add(self.options.dirty_expire_ns) >= self.now {
                break;
            }
            self.write_back(file, 0, u64::MAX, u64::MAX, LAZY)?;
        }
        Ok(())
    }

    /// Writes back what is above the background limit, as far as its bandwidth allows.
    fn write_in_background(&mut self) -> Result<()> {
        let passed = u128::from(self.now - self.credited) * u128::from(self.options.bandwidth) / 1_000_000_000;
        // At most what it would write while nobody looks, between two times it wakes.
        let most = u128::from(self.options.bandwidth) * u128::from(self.options.wakeup_ns) / 1_000_000_000;
        self.credit = (u128::from(self.credit) + passed).min(most.max(u128::from(PAGE))) as u64;
        self.credited = self.now;
        while self.cache.held().1 > self.background && self.credit >= PAGE {
            let Some((_, file)) = self.cache.oldest_dirty() else {
                break;
            };
            let above = self.cache.held().1 - self.background;
            let written = self.write_back(file, 0, u64::MAX, above.min(self.credit / PAGE), LAZY)?;
            self.credit -= written * PAGE;
        }
        Ok(())
    }

    fn read(&mut self, op: &Op) -> Result<()> {
        let (first, past) = self.within(op.file, op.pages());
        self.place_earlier(op.file, first, past)?;
        if !self.options.page_cache {
            self.transfer(op, OpKind::Read, first, past, flags::SYNC, &[]);
            return Ok(());
        }
        if op.flags & op_flags::DIRECT != 0 {
            self.write_back(op.file, first, past, u64::MAX, AWAITED)?;
            self.transfer(op, OpKind::Read, first, past, flags::SYNC, &[]);
            return Ok(());
        }
        let mut at = first;
        while at < past {
            let mut end = at;
            while end < past && !self.cache.contains(op.file, end) {
                end += 1;
            }
            self.transfer(op, OpKind::Read, at, end, flags::SYNC, &[]);
            while end < past && self.cache.contains(op.file, end) {
                end += 1;
            }
            for page in at..end {
                self.cache.touch(op.file, page);
            }
            at = end;
        }
        self.make_room()
    }

    fn write(&mut self, op: &Op, contents: &[Content]) -> Result<()> {
        let (first, past) = op.pages();
        if first >= past {
            return Ok(());
        }
        let end = op.offset.saturating_add(op.length);
        let direct = op.flags & op_flags::DIRECT != 0;
        if self.options.page_cache && !direct {
            self.read_partial(op, first, past)?;
            let size = &mut self.files[op.file as usize].size;
            *size = end.max(*size);
            for page in first..past {
                let content = contents.get((page - first) as usize).copied().unwrap_or_default();
                let written = Written {
                    context: op.context,
                    process: op.process,
                    content,
                };
                self.cache.write(op.file, page, written, self.now);
                if self.cache.held().1 > self.limit {
                    self.write_above_limit()?;
                }
                if self.cache.held().0 > self.memory {
                    self.make_room()?;
                }
            }
            if op.flags & op_flags::SYNC != 0 {
                self.write_back(op.file, first, past, u64::MAX, AWAITED)?;
                self.make_durable();
            }
            return self.write_in_background();
        }
        if self.options.page_cache {
            self.write_back(op.file, first, past, u64::MAX, AWAITED)?;
            self.cache.forget(op.file, first, past);
        }
        let file = &mut self.files[op.file as usize];
        file.size = end.max(file.size);
        file.map.allocate(&mut self.space, first, past)?;
        let sync = op.flags & op_flags::SYNC != 0;
        let bits = if sync || direct { flags::SYNC } else { 0 };
        self.transfer(op, OpKind::Write, first, past, bits, contents);
        if sync {
            self.make_durable();
        }
        Ok(())
    }

    /// The pages of a mapping of which the contents are given are those that were written, or all.
    fn write_changed(&mut self, op: &Op, contents: &[Content]) -> Result<()> {
        let (first, past) = op.pages();
        if op.flags & op_flags::STORED != 0 {
            // The kernel reads what is mapped, and keeps a file's size.
            let end = self.files[op.file as usize].size;
            let (offset, length) = (op.offset, op.length.min(end.saturating_sub(op.offset)));
            let stored = Op {
                offset,
                length,
                flags: 0,
                ..*op
            };
            self.read_whole(op, first, past.min(end.div_ceil(PAGE)))?;
            return self.write(&stored, contents);
        }
        for (page, content) in (first..).zip(contents).filter(|(_, content)| content.page != 0) {
            let one = Op {
                offset: page * PAGE,
                length: PAGE,
                flags: 0,
                ..*op
            };
            self.write(&one, std::slice::from_ref(content))?;
        }
        Ok(())
    }

    /// Reads the first and last page of a write before, where only a part of them is written.
    fn read_partial(&mut self, op: &Op, first: u64, past: u64) -> Result<()> {
        let size = self.files[op.file as usize].size;
        let head = (!op.offset.is_multiple_of(PAGE)).then_some(first);
        let tail = (!(op.offset + op.length).is_multiple_of(PAGE)).then_some(past - 1);
        for page in [head, tail.filter(|&tail| Some(tail) != head)].into_iter().flatten() {
            if page * PAGE < size && !self.cache.contains(op.file, page) {
                self.place_earlier(op.file, page, page + 1)?;
                self.transfer(op, OpKind::Read, page, page + 1, flags::SYNC, &[]);
            }
        }
        Ok(())
    }

    /// Reads what is not in memory, page by page as it is touched.
    fn read_whole(&mut self, op: &Op, first: u64, past: u64) -> Result<()> {
        for page in first..past {
            if !self.cache.contains(op.file, page) {
                self.place_earlier(op.file, page, page + 1)?;
                self.transfer(op, OpKind::Read, page, page + 1, flags::SYNC, &[]);
                self.cache.touch(op.file, page);
            }
        }
        Ok(())
    }

    fn write_above_limit(&mut self) -> Result<()> {
        while self.cache.held().1 > self.limit {
            let Some((_, file)) = self.cache.oldest_dirty() else {
                break;
            };
            // In pieces of a request, so that neighbours go together.
            let pages = self.options.max_request / PAGE;
            self.write_back(file, 0, u64::MAX, pages, LAZY)?;
        }
        Ok(())
    }

    /// Forgets pages until the cache fits in memory.
    fn make_room(&mut self) -> Result<()> {
        while self.cache.held().0 > self.memory {
            let Some((file, page, dirty)) = self.cache.coldest() else {
                break;
            };
            if dirty {
                self.write_back(file, 0, u64::MAX, u64::MAX, LAZY)?;
            }
            self.cache.forget(file, page, page + 1);
        }
        Ok(())
    }

    /// Writes up to `most` dirty pages of a file in `first..past`; how many there were.
    fn write_back(&mut self, file: u32, first: u64, past: u64, most: u64, why: Urgency) -> Result<u64> {
        let pages = self.cache.clean(file, first, past, most);
        let mut at = 0;
        while at < pages.len() {
            // Neighbouring pages get their place together, whoever wrote them.
            let run = pages[at..]
                .iter()
                .zip(pages[at].0..)
                .take_while(|((page, _), n)| page == n)
                .count();
            let start = pages[at].0;
            let map = &mut self.files[file as usize].map;
            map.allocate(&mut self.space, start, start + run as u64)?;
            let run = &pages[at..at + run];
            let mut from = 0;
            while from < run.len() {
                let by = run[from].1;
                let same = |&&(_, w): &&(u64, Written)| (w.context, w.process) == (by.context, by.process);
                let length = run[from..].iter().take_while(same).count();
                let contents: Vec<Content> = run[from..from + length].iter().map(|(_, w)| w.content).collect();
                let request = Request {
                    time_ns: self.now,
                    op: OpKind::Write,
                    offset: 0,
                    length: 0,
                    flags: why.flags,
                    context: by.context,
                    process: by.process,
                    file: Some(file),
                    contents_end: 0,
                };
                let start = run[from].0;
                self.send(request, start, start + length as u64, &contents);
                from += length;
            }
            at += run.len();
        }
        Ok(pages.len() as u64)
    }

    /// A request of a call for pages of its file, as far as they have a place.
    fn transfer(&mut self, op: &Op, kind: OpKind, first: u64, past: u64, bits: u8, contents: &[Content]) {
        let request = Request {
            time_ns: self.now,
            op: kind,
            offset: 0,
            length: 0,
            flags: bits,
            context: op.context,
            process: op.process,
            file: Some(op.file),
            contents_end: 0,
        };
        self.send(request, first, past, contents);
    }

    /// Cuts pages of a file into requests: by their places, and by the largest request.
    fn send(&mut self, like: Request, first: u64, past: u64, contents: &[Content]) {
        let Some(file) = like.file else {
            return;
        };
        let map = &self.files[file as usize].map;
        let mut at = first;
        while at < past {
            let Some((place, pages)) = map.find(at) else {
                // A hole: reads of it go nowhere, and writes have been given a place.
                at = map.next_placed(at, past);
                continue;
            };
            let pages = pages.min(past - at).min(self.options.max_request / PAGE);
            let from = (at - first) as usize;
            if like.op == OpKind::Write {
                let known = contents.get(from..from + pages as usize).unwrap_or(&[]);
                self.contents.extend_from_slice(known);
                self.contents
                    .resize(self.contents.len() + pages as usize - known.len(), Content::default());
            }
            let request = Request {
                offset: place * PAGE,
                length: (pages * PAGE) as u32,
                contents_end: self.contents.len(),
                ..like
            };
            // Requests that touch on the device are one, as the block layer merges them.
            let joined = self.requests.last_mut().filter(|last| {
                (last.time_ns, last.op, last.flags) == (request.time_ns, request.op, request.flags)
                    && (last.context, last.process, last.file) == (request.context, request.process, request.file)
                    && last.offset + u64::from(last.length) == request.offset
                    && u64::from(last.length) + u64::from(request.length) <= self.options.max_request
            });
            match joined {
                Some(last) => {
                    last.length += request.length;
                    last.contents_end = request.contents_end;
                }
                None => self.requests.push(request),
            }
            at += pages;
        }
    }

    fn make_durable(&mut self) {
        let contents_end = self.contents.len();
        let request = Request {
            time_ns: self.now,
            op: OpKind::Write,
            offset: self.journal * PAGE,
            length: PAGE as u32,
            flags: flags::SYNC | flags::METADATA,
            context: 0,
            process: 0,
            file: None,
            contents_end,
        };
        if self.options.journal {
            // Its content is nobody's: a page without a number.
            self.contents.push(Content::default());
            let contents_end = self.contents.len();
            self.requests.push(Request {
                contents_end,
                ..request
            });
            self.journal = (self.journal + 1) % JOURNAL;
        }
        self.requests.push(Request {
            op: OpKind::Flush,
            offset: 0,
            length: 0,
            flags: flags::SYNC,
            contents_end: self.contents.len(),
            ..request
        });
    }

    fn allocate(&mut self, op: &Op) -> Result<()> {
        let (first, past) = op.pages();
        let file = &mut self.files[op.file as usize];
        if op.flags & op_flags::KEEP_SIZE == 0 {
            file.size = file.size.max(op.offset.saturating_add(op.length));
        }
        file.map.allocate(&mut self.space, first, past)
    }

    fn truncate(&mut self, file: u32, size: u64) -> Result<()> {
        self.discard(file, size.div_ceil(PAGE), u64::MAX)?;
        let state = &mut self.files[file as usize];
        state.size = size;
        state.earlier = state.earlier.min(size);
        Ok(())
    }

    /// A page of which a part is taken away stays, and the kernel writes zeros into that part.
    fn zero_rest(&mut self, op: &Op, at: u64) -> Result<()> {
        let page = at / PAGE;
        let file = &self.files[op.file as usize];
        let holds = page * PAGE < file.earlier || self.cache.contains(op.file, page) || file.map.find(page).is_some();
        if at.is_multiple_of(PAGE) || at >= file.size || !holds || !self.options.page_cache {
            return Ok(());
        }
        let size = file.size;
        let zeroed = Op {
            offset: page * PAGE,
            length: PAGE.min(size - page * PAGE),
            flags: 0,
            ..*op
        };
        self.read_whole(&zeroed, page, page + 1)?;
        self.write(&zeroed, &[])
    }

    /// What follows the range moves down, or up to make room for it: the kernel writes it back and forgets it before.
    fn shift(&mut self, op: &Op) -> Result<()> {
        let (file, first) = (op.file, op.offset / PAGE);
        let pages = op.length / PAGE;
        let past = self.files[file as usize].size.div_ceil(PAGE);
        self.place_earlier(file, first, past)?;
        self.write_back(file, first, u64::MAX, u64::MAX, AWAITED)?;
        self.cache.forget(file, first, u64::MAX);
        let up = op.flags & op_flags::UP != 0;
        if !up {
            self.discard(file, first, first + pages)?;
        }
        let state = &mut self.files[file as usize];
        // All of it has its place now.
        state.earlier = 0;
        state.map.release_kept(&mut self.space);
        state.map.shift(first, pages, up);
        state.size = match up {
            true => state.size + op.length,
            false => state.size.saturating_sub(op.length),
        };
        Ok(())
    }

    /// Drops pages of a file: from memory, and from the device with a trim.
    fn discard(&mut self, file: u32, first: u64, past: u64) -> Result<()> {
        if first >= past {
            return Ok(());
        }
        // What was there before the recording has a place only if it was touched; all of it goes.
        let earlier = self.files[file as usize].earlier.div_ceil(PAGE).min(past);
        self.place_earlier(file, first, earlier)?;
        self.cache.forget(file, first, past);
        let freed = self.files[file as usize].map.free(&mut self.space, first, past);
        // What lies together goes together, though the file has it in pieces.
        let mut runs: Vec<(u64, u64)> = Vec::with_capacity(freed.len());
        for (place, pages) in freed {
            match runs.last_mut().filter(|(start, length)| start + length == place) {
                Some(last) => last.1 += pages,
                None => runs.push((place, pages)),
            }
        }
        for (mut place, mut pages) in runs {
            while pages > 0 {
                let length = pages.min(LONGEST_TRIM);
                self.requests.push(Request {
                    time_ns: self.now,
                    op: OpKind::Trim,
                    offset: place * PAGE,
                    length: (length * PAGE) as u32,
                    flags: 0,
                    context: 0,
                    process: 0,
                    file: Some(file),
                    contents_end: self.contents.len(),
                });
                (place, pages) = (place + length, pages - length);
            }
        }
        Ok(())
    }

    fn close(&mut self, file: u32) -> Result<()> {
        let state = &mut self.files[file as usize];
        state.map.release_kept(&mut self.space);
        if state.removed {
            // It was written after its last name was gone; now nobody can reach it.
            return self.truncate(file, 0);
        }
        Ok(())
    }

    /// Pages that exist: up to the file's size.
    fn within(&self, file: u32, (first, past): (u64, u64)) -> (u64, u64) {
        let size = self.files.get(file as usize).map_or(0, |f| f.size);
        (first, past.min(size.div_ceil(PAGE)))
    }

    /// Gives a place to what the file held before the recording, around pages that are touched.
    fn place_earlier(&mut self, file: u32, first: u64, past: u64) -> Result<()> {
        let state = &mut self.files[file as usize];
        let earlier = state.earlier.div_ceil(PAGE);
        if first >= past || first >= earlier {
            return Ok(());
        }
        let past = past.min(earlier).next_multiple_of(EARLIER).min(earlier);
        state.map.allocate(&mut self.space, first / EARLIER * EARLIER, past)
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
        }
    }
}

#[cfg(test)]
mod tests;
