//! Shared writable mappings of files: stores into them are no calls, so pages are compared.
//!
//! # Model
//! When a mapping is made its file is read, and of each page an id kept (holes are zeros and not read). At msync, at the end of the
//! mapping and at the end of the program, the pages that this process has touched are compared with that, and those that differ are
//! recorded as stored into, with what they hold then. msync with MS_SYNC is recorded as fdatasync besides.
//! # Not modelled
//! When a page was written to, and what it held in between. Pages that the kernel has taken away from the process before they
//! were compared. Stores of a child made by fork into mappings of its parent count for the parent, if that has touched the
//! page; what others write into a page that is mapped counts as a store. Mappings in a program that is killed.
//! # Cost
//! Reading the file once, 8 bytes a page; then reading what was touched at each comparison. At most [`MOST_PAGES`] pages of a mapping are
//! known; others are counted.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ftlab_record::spool::{NoteKind, Op, PAGE, op_flags, page_ids};

use super::{Real, hooks, ring};
use crate::files::{self, Known};
use crate::process::{self, Wiped};
use crate::record::{self, Call};
use crate::signature::CallSite;
use crate::thread::Recording;
use crate::{modules, sys, thread};

hooks! {
    mmap => map;
    mmap64 => map;
    msync => |arguments, at, real| {
        let done = real.call(arguments);
        if done as i32 == 0 {
            compared(arguments[0] as u64, arguments[1] as u64, Some(at), arguments[2] as i32 & libc::MS_SYNC != 0);
        }
        done
    };
    munmap => |arguments, at, real| {
        let (address, len) = (arguments[0] as u64, arguments[1] as u64);
        ring::unmapped(address, len);
        compared(address, len, Some(at), false);
        let done = real.call(arguments);
        if done as i32 == 0 {
            ended(address, len);
        }
        done
    };
    mprotect => |arguments, _, real| {
        if arguments[2] as i32 & libc::PROT_WRITE != 0 {
            made_writable(arguments[0] as u64, arguments[1] as u64);
        }
        real.call(arguments)
    };
    mremap => |arguments, at, real| {
        let (old, old_len, new_len) = (arguments[0] as u64, arguments[1] as u64, arguments[2] as u64);
        compared(old, old_len, Some(at), false);
        let done = real.call(arguments);
        if done != libc::MAP_FAILED as isize {
            moved(old, old_len, done as u64, new_len);
        }
        done
    };
}

/// Places for mappings, in the memory that is zero in a child.
pub const MAPPINGS: usize = 256;
/// Pages of a mapping that are known: 16 GiB.
const MOST_PAGES: u64 = 4 << 20;
/// Bytes read at once.
const CHUNK: usize = 16 * PAGE;

/// A mapping; length 0: none.
pub struct Mapping {
    address: AtomicU64,
    len: AtomicU64,
    offset: AtomicU64,
    file: AtomicU64,
    /// Ids of its pages, of ours, from `first_known` on; 0: not writable yet.
    ids: AtomicU64,
    pages: AtomicU64,
}

/// What a mapping was at one moment.
#[derive(Clone, Copy)]
struct Seen {
    address: u64,
    len: u64,
    offset: u64,
    file: u32,
    ids: u64,
    pages: u64,
}

/// In the place of an id: it was not read.
const UNREAD: u64 = 2;
/// In the place of an id: nothing but zeros.
const ZEROS: u64 = 0;

impl Mapping {
    fn seen(&self) -> Option<Seen> {
        let seen = Seen {
            address: self.address.load(Relaxed),
            len: self.len.load(Relaxed),
            offset: self.offset.load(Relaxed),
            file: self.file.load(Relaxed) as u32,
            ids: self.ids.load(Relaxed),
            pages: self.pages.load(Relaxed),
        };
        (seen.len != 0).then_some(seen)
    }

    fn set(&self, seen: &Seen) {
        self.address.store(seen.address, Relaxed);
        self.offset.store(seen.offset, Relaxed);
        self.file.store(seen.file.into(), Relaxed);
        self.ids.store(seen.ids, Relaxed);
        self.pages.store(seen.pages, Relaxed);
        self.len.store(seen.len, Relaxed);
    }
}

fn map(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [_, len, access, flags, fd, offset] = arguments;
    let kind = flags as i32 & libc::MAP_TYPE;
    let shared = kind == libc::MAP_SHARED || kind == libc::MAP_SHARED_VALIDATE;
    if !shared || flags as i32 & libc::MAP_ANONYMOUS != 0 {
        return real.call(arguments);
    }
    let Some(start_ns) = record::begin(fd as i32) else {
        let done = real.call(arguments);
        if done != libc::MAP_FAILED as isize {
            ring::mapped(fd as i32, offset as u64, done as u64);
        }
        return done;
    };
    let done = real.call(arguments);
    if done == libc::MAP_FAILED as isize {
        return done;
    }
    ring::mapped(fd as i32, offset as u64, done as u64);
    let writable = access as i32 & libc::PROT_WRITE != 0;
    let end_ns = sys::now();
    thread::with(|recording| {
        let file = files::of(recording, fd as i32)?;
        if !writable && file.flags & ftlab_record::spool::file_flags::READ_ONLY != 0 {
            return None;
        }
        let mut seen = Seen {
            address: done as u64,
            len: (len as u64).next_multiple_of(PAGE as u64),
            offset: offset as u64,
            file: file.id,
            ids: 0,
            pages: 0,
        };
        if writable {
            // A descriptor of our own: looking for holes would move the program's.
            let own = reopen(fd as i32);
            begin(recording.wiped, &mut seen, own.unwrap_or(fd as i32), own.is_some());
            if let Some(own) = own {
                sys::close(own);
            }
        }
        remember(recording.wiped, &seen);
        if !writable {
            return None;
        }
        let call = Call {
            op: Op::Map,
            flags: 0,
            start_ns,
            offset: offset as u64,
            length: len as u64,
            at: Some(at),
        };
        record::write(recording, file, call, end_ns)
    });
    done
}

fn reopen(fd: i32) -> Option<i32> {
    let mut path = sys::PathBuffer::new();
    let named = path.push(b"/proc/self/fd/") && path.push_number(fd as u64);
    if named {
        sys::open(path.as_c(), libc::O_RDONLY | libc::O_NONBLOCK, 0).ok()
    } else {
        None
    }
}

fn remember(wiped: &Wiped, seen: &Seen) {
    let kept = wiped.mappings_lock.with(|| {
        let free = wiped.mappings.iter().find(|mapping| mapping.len.load(Relaxed) == 0)?;
        free.set(seen);
        wiped.mapped.fetch_add(1, Relaxed);
        Some(())
    });
    if kept.is_none() {
        forget_ids(seen);
        wiped.note(NoteKind::Uncompared, seen.len.div_ceil(PAGE as u64));
    }
}

fn forget_ids(seen: &Seen) {
    if seen.ids != 0 {
        // SAFETY: our mapping, which no table names any more.
        unsafe { sys::unmap(seen.ids as *mut u8, (seen.pages * 8) as usize) };
    }
}

/// Takes the ids of a mapping's pages from its file; `own`: the descriptor is ours to move.
fn begin(wiped: &Wiped, seen: &mut Seen, reader: i32, own: bool) {
    let pages = seen.len / PAGE as u64;
    seen.pages = pages.min(MOST_PAGES);
    if seen.pages < pages {
        wiped.note(NoteKind::Uncompared, pages - seen.pages);
    }
    let (ids, buffer) = (sys::map_anonymous((seen.pages * 8) as usize), sys::map_anonymous(CHUNK));
    if let (Some(ids), Some(buffer)) = (ids, buffer) {
        seen.ids = ids as u64;
        let table = ids.cast::<u64>();
        // SAFETY: a mapping of CHUNK bytes of ours.
        let bytes = unsafe { core::slice::from_raw_parts_mut(buffer, CHUNK) };
        let end = seen.offset + seen.pages * PAGE as u64;
        let mut at = seen.offset;
        while at < end {
            if own {
                match sys::seek(reader, at, libc::SEEK_DATA) {
                    Ok(data) => at = data.max(at) / PAGE as u64 * PAGE as u64,
                    // Nothing but holes from here on.
                    Err(libc::ENXIO) => break,
                    Err(_) => {}
                }
            }
            if at >= end {
                break;
            }
            let wanted = ((end - at) as usize).min(CHUNK);
            let Ok(read) = sys::pread(reader, &mut bytes[..wanted], at) else {
                mark_unread(table, (at - seen.offset) / PAGE as u64, seen.pages);
                break;
            };
            if read == 0 {
                break;
            }
            let held = read.next_multiple_of(PAGE);
            bytes[read..held].fill(0);
            for (page, bytes) in bytes[..held].chunks_exact(PAGE).enumerate() {
                let place = (at - seen.offset) / PAGE as u64 + page as u64;
                // SAFETY: less than `pages`, for which the table has room.
                unsafe { table.add(place as usize).write(id(bytes)) };
            }
            at += held as u64;
        }
    } else {
        wiped.note(NoteKind::Uncompared, pages);
    }
    if let Some(buffer) = buffer {
        // SAFETY: our mapping, used no more.
        unsafe { sys::unmap(buffer, CHUNK) };
    }
}

fn mark_unread(table: *mut u64, from: u64, past: u64) {
    for place in from..past {
        // SAFETY: callers stay within the table.
        unsafe { table.add(place as usize).write(UNREAD) };
    }
}

/// Id of a page as the table has it.
fn id(bytes: &[u8]) -> u64 {
    if bytes.iter().all(|&byte| byte == 0) {
        ZEROS
    } else {
        xxhash_rust::xxh3::xxh3_64(bytes).max(UNREAD + 1)
    }
}

/// A range of memory may have been stored into.
fn compared(address: u64, len: u64, at: Option<&CallSite>, synced: bool) {
    let Some(wiped) = process::wiped() else { return };
    if wiped.mapped.load(Relaxed) == 0 {
        return;
    }
    let start_ns = sys::now();
    // The lock is taken within a record: a signal handler that unmaps memory is turned away there, and cannot wait for us.
    thread::with(|recording| {
        for mapping in &wiped.mappings {
            let Some(seen) = wiped.mappings_lock.with(|| mapping.seen()) else {
                continue;
            };
            let from = seen.address.max(address);
            let to = (seen.address + seen.len).min(address.saturating_add(len));
            if from >= to || seen.ids == 0 {
                continue;
            }
            let (first, past) = (
                (from - seen.address) / PAGE as u64,
                (to - seen.address).div_ceil(PAGE as u64).min(seen.pages),
            );
            let round = Round { seen, start_ns, at };
            compare(recording, &round, first, past);
            if synced {
                let call = Call {
                    op: Op::Fdatasync,
                    ..round.call(Op::Fdatasync, 0, 0)
                };
                record::write(recording, round.file(), call, start_ns)?;
            }
        }
        Some(())
    });
}

/// One comparison of one mapping.
struct Round<'a> {
    seen: Seen,
    start_ns: u64,
    at: Option<&'a CallSite>,
}

impl Round<'_> {
    fn file(&self) -> Known {
        Known {
            id: self.seen.file,
            flags: 0,
        }
    }

    fn call(&self, op: Op, offset: u64, length: u64) -> Call<'_> {
        Call {
            op,
            flags: if op == Op::MapSync { op_flags::STORED } else { 0 },
            start_ns: self.start_ns,
            offset,
            length,
            at: self.at,
        }
    }
}

/// Records the pages in `first..past` of a mapping that differ from what is known of them, and knows them from then on.
fn compare(recording: &mut Recording<'_>, round: &Round<'_>, first: u64, past: u64) -> Option<()> {
    const ENTRIES: usize = 128;
    const PRESENT: u64 = 3 << 62;
    let pagemap = sys::open(c"/proc/self/pagemap", libc::O_RDONLY, 0).ok();
    let table = round.seen.ids as *mut u64;
    let mut unread = 0;
    // Neighbouring pages that differ are one record.
    let mut run: Option<(u64, u64)> = None;
    let mut at = first;
    while at < past {
        let count = ((past - at) as usize).min(ENTRIES);
        let mut entries = [u64::MAX; ENTRIES];
        if let Some(pagemap) = pagemap {
            let place = (round.seen.address / PAGE as u64 + at) * 8;
            // SAFETY: the bytes of an array of numbers.
            let bytes = unsafe { core::slice::from_raw_parts_mut(entries.as_mut_ptr().cast::<u8>(), count * 8) };
            if sys::pread(pagemap, bytes, place) != Ok(count * 8) {
                entries = [u64::MAX; ENTRIES];
            }
        }
        for page in at..at + count as u64 {
            let present = entries[(page - at) as usize] & PRESENT != 0;
            // SAFETY: less than `pages`, for which the table has room.
            let known = unsafe { table.add(page as usize).read() };
            let differs = present && {
                let address = round.seen.address + page * PAGE as u64;
                let held = &mut recording.thread.page.0;
                // What lies behind the end of the file cannot be read.
                let read = read_page(address, held);
                let now = if read { id(held) } else { known };
                // SAFETY: as above.
                unsafe { table.add(page as usize).write(now) };
                unread += u64::from(known == UNREAD);
                now != known && known != UNREAD
            };
            match (&mut run, differs) {
                (Some((_, end)), true) => *end += 1,
                (None, true) => run = Some((page, page + 1)),
                (Some(stored), false) => {
                    let stored = *stored;
                    run = None;
                    record_run(recording, round, stored)?;
                }
                (None, false) => {}
            }
        }
        at += count as u64;
    }
    if let Some(stored) = run {
        record_run(recording, round, stored)?;
    }
    if unread > 0 {
        recording.wiped.note(NoteKind::Uncompared, unread);
    }
    if let Some(pagemap) = pagemap {
        sys::close(pagemap);
    }
    Some(())
}

/// Reads a page of a mapping; false if there is none. Memory that may only be written to is read as a debugger does.
fn read_page(address: u64, held: &mut [u8; PAGE]) -> bool {
    if sys::read_own(address as usize, held) == PAGE {
        return true;
    }
    let Ok(memory) = sys::open(c"/proc/self/mem", libc::O_RDONLY, 0) else {
        return false;
    };
    let read = sys::pread(memory, held, address) == Ok(PAGE);
    sys::close(memory);
    read
}

fn record_run(recording: &mut Recording<'_>, round: &Round<'_>, (first, past): (u64, u64)) -> Option<()> {
    let offset = round.seen.offset + first * PAGE as u64;
    let call = round.call(Op::MapSync, offset, (past - first) * PAGE as u64);
    record::write(recording, round.file(), call, sys::now())?;
    let content = process::options().is_some_and(|options| options.content);
    let mut page = first;
    while content && page < past {
        let pages = (past - page).min(ftlab_record::spool::MOST_PAGES as u64);
        recording.writer()?;
        let (buffer, (writer, space)) = recording.page_and_writer()?;
        let start = round.seen.offset / PAGE as u64;
        writer.content(space, start + page, pages as usize, |number| {
            let address = round.seen.address + (number - start) * PAGE as u64;
            if read_page(address, buffer) {
                page_ids(buffer, PAGE)
            } else {
                [0; ftlab_record::spool::PAGE_IDS]
            }
        })?;
        page += pages;
    }
    Some(())
}

/// The process ends, or another program takes its place.
pub fn all_end() {
    compared(0, u64::MAX, None, false);
}

/// A range of memory was unmapped.
fn ended(address: u64, len: u64) {
    let Some(wiped) = process::wiped() else { return };
    if wiped.mapped.load(Relaxed) == 0 {
        return;
    }
    thread::with(|recording| {
        for mapping in &recording.wiped.mappings {
            wiped
                .mappings_lock
                .with(|| cut(wiped, mapping, address, address.saturating_add(len)));
        }
        Some(())
    });
}

/// Takes a range out of a mapping. What is left behind a hole in the middle is not known any more.
fn cut(wiped: &Wiped, mapping: &Mapping, address: u64, past: u64) {
    let Some(mut seen) = mapping.seen() else { return };
    let end = seen.address + seen.len;
    let (from, to) = (seen.address.max(address), end.min(past));
    if from >= to {
        return;
    }
    if from > seen.address {
        if to < end && seen.ids != 0 {
            wiped.note(NoteKind::Uncompared, (end - to) / PAGE as u64);
        }
        mapping.len.store(from - seen.address, Relaxed);
        return;
    }
    let gone = to - seen.address;
    if to == end {
        mapping.len.store(0, Relaxed);
        mapping.ids.store(0, Relaxed);
        wiped.mapped.fetch_sub(1, Relaxed);
        forget_ids(&seen);
        return;
    }
    // The table stays as a whole: its start moves with the mapping's.
    let left = seen.pages.saturating_sub(gone / PAGE as u64);
    if seen.ids != 0 {
        let table = seen.ids as *mut u64;
        // SAFETY: within the table.
        unsafe { core::ptr::copy(table.add((seen.pages - left) as usize), table, left as usize) };
        mark_unread(table, left, seen.pages);
    }
    seen.address = to;
    seen.offset += gone;
    seen.len -= gone;
    mapping.set(&seen);
}

/// A mapping may be stored into from now on.
fn made_writable(address: u64, len: u64) {
    let Some(wiped) = process::wiped() else { return };
    if wiped.mapped.load(Relaxed) == 0 {
        return;
    }
    thread::with(|recording| {
        for mapping in &wiped.mappings {
            let Some(mut seen) = wiped.mappings_lock.with(|| mapping.seen()) else {
                continue;
            };
            if seen.ids == 0 && seen.address < address.saturating_add(len) && address < seen.address + seen.len {
                known_by_name(recording, &mut seen);
                wiped.mappings_lock.with(|| mapping.set(&seen));
            }
        }
        Some(())
    });
}

/// Ids of the pages of a mapping whose descriptor is not known any more: its file is opened by its name.
fn known_by_name(recording: &mut Recording<'_>, seen: &mut Seen) {
    let wiped = recording.wiped;
    let Some(buffer) = recording.thread.path.take() else {
        return;
    };
    let named = modules::file_of(wiped, seen.address, buffer);
    let reader = named.and_then(|(len, inode)| {
        let path = core::ffi::CStr::from_bytes_with_nul(buffer.get(..=len)?).ok()?;
        let reader = sys::open(path, libc::O_RDONLY | libc::O_NONBLOCK, 0).ok()?;
        let same = sys::status(reader, c"", true).is_ok_and(|status| status.inode == inode);
        if same {
            return Some(reader);
        }
        sys::close(reader);
        None
    });
    recording.thread.path = Some(buffer);
    match reader {
        Some(reader) => {
            begin(wiped, seen, reader, true);
            sys::close(reader);
        }
        None => wiped.note(NoteKind::Uncompared, seen.len / PAGE as u64),
    }
}

/// A mapping has another place or length.
fn moved(old: u64, old_len: u64, new: u64, new_len: u64) {
    let Some(wiped) = process::wiped() else { return };
    if wiped.mapped.load(Relaxed) == 0 {
        return;
    }
    thread::with(|recording| {
        for mapping in &wiped.mappings {
            let Some(mut seen) = wiped.mappings_lock.with(|| mapping.seen()) else {
                continue;
            };
            if seen.address != old || seen.len > old_len.next_multiple_of(PAGE as u64) {
                continue;
            }
            let was = seen;
            seen.address = new;
            seen.len = new_len.next_multiple_of(PAGE as u64);
            if seen.ids != 0 {
                // Nothing has been stored since the comparison just before.
                (seen.ids, seen.pages) = (0, 0);
                known_by_name(recording, &mut seen);
            }
            wiped.mappings_lock.with(|| mapping.set(&seen));
            forget_ids(&was);
            return Some(());
        }
        None
    });
}
