//! What was stored into shared mappings: their pages are compared with what is known of them.
//!
//! # Model
//! Of each page an id is kept, taken from the file when the mapping is made. What differs from it is recorded as stored into, with what it
//! holds then, and known by that from then on. Children of fork share what is known: a page that one of them or their parent stored into is
//! recorded once, by the first of those that have touched it and compare.
//! # Cost
//! Reading the file once, 8 bytes a page; then reading what was touched at each comparison. At most [`MOST_PAGES`] pages of a mapping are
//! known; others are counted.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use ftlab_record::spool::{NoteKind, Op, PAGE, op_flags, page_ids};

use super::memory::{self, Mapping, Seen};
use crate::content;
use crate::process::{self, Wiped};
use crate::record::{self, Call};
use crate::signature::CallSite;
use crate::thread::Recording;
use crate::{sys, thread};

/// Pages of a mapping that are known: 16 GiB.
const MOST_PAGES: u64 = 4 << 20;
/// Bytes read at once.
const CHUNK: usize = 16 * PAGE;
/// In the place of an id: it was not read.
const UNREAD: u64 = 2;
/// In the place of an id: nothing but zeros.
const ZEROS: u64 = 0;

/// Takes the ids of a mapping's pages from its file; `own`: the descriptor is ours to move.
pub(super) fn begin(wiped: &Wiped, seen: &mut Seen, reader: i32, own: bool) {
    let pages = seen.len / PAGE as u64;
    seen.pages = pages.min(MOST_PAGES);
    if seen.pages < pages {
        wiped.note(NoteKind::Uncompared, pages - seen.pages);
    }
    let (ids, buffer) = (sys::map_shared((seen.pages * 8) as usize), sys::map_anonymous(CHUNK));
    if let (Some(ids), Some(buffer)) = (ids, buffer) {
        (seen.ids, seen.table, seen.table_len) = (ids as u64, ids as u64, seen.pages * 8);
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
pub(super) fn compared(address: u64, len: u64, at: Option<&CallSite>, synced: bool) {
    let Some(wiped) = process::wiped() else { return };
    if !memory::any() {
        return;
    }
    let start_ns = sys::now();
    // The lock is taken within a record: a signal handler that unmaps memory is turned away there, and cannot wait for us.
    thread::with(|recording| {
        for mapping in memory::all() {
            let Some(seen) = wiped.mappings_lock.with(|| mapping.seen_by(wiped)) else {
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
            let mut round = Round {
                mapping,
                seen,
                start_ns,
                at,
            };
            compare(recording, &mut round, first, past);
            if synced {
                let file = memory::file(recording, mapping, &mut round.seen)?;
                record::write(recording, file, round.call(Op::Fdatasync, 0, 0), start_ns)?;
            }
        }
        Some(())
    });
}

/// One comparison of one mapping.
struct Round<'a> {
    mapping: &'static Mapping,
    seen: Seen,
    start_ns: u64,
    at: Option<&'a CallSite>,
}

impl<'a> Round<'a> {
    fn call(&self, op: Op, offset: u64, length: u64) -> Call<'a> {
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
fn compare(recording: &mut Recording<'_>, round: &mut Round<'_>, first: u64, past: u64) -> Option<()> {
    const ENTRIES: usize = 128;
    const PRESENT: u64 = 3 << 62;
    let pagemap = sys::open(c"/proc/self/pagemap", libc::O_RDONLY, 0).ok();
    let table = round.seen.ids as *const AtomicU64;
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
            let place = unsafe { &*table.add(page as usize) };
            let known = place.load(Relaxed);
            let differs = present && {
                let address = round.seen.address + page * PAGE as u64;
                let held = &mut recording.thread.page.0;
                // What lies behind the end of the file cannot be read.
                let read = read_page(address, held);
                let now = if read { id(held) } else { known };
                // Another process may have recorded it just now.
                let known = if now == known { known } else { place.swap(now, Relaxed) };
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

fn record_run(recording: &mut Recording<'_>, round: &mut Round<'_>, (first, past): (u64, u64)) -> Option<()> {
    let offset = round.seen.offset + first * PAGE as u64;
    let call = round.call(Op::MapSync, offset, (past - first) * PAGE as u64);
    let file = memory::file(recording, round.mapping, &mut round.seen)?;
    record::write(recording, file, call, sys::now())?;
    let compared = process::options().is_some_and(|options| options.content);
    let mut page = first;
    while compared && page < past {
        let pages = (past - page).min(ftlab_record::spool::most_pages(content::chunk()) as u64);
        recording.writer()?;
        let (buffer, (writer, space)) = recording.page_and_writer()?;
        let start = round.seen.offset / PAGE as u64;
        writer.content(space, content::chunk(), start + page, pages as usize, |number| {
            let address = round.seen.address + (number - start) * PAGE as u64;
            if read_page(address, buffer) {
                page_ids(buffer, PAGE, content::chunk())
            } else {
                [0; ftlab_record::spool::PAGE_IDS]
            }
        })?;
        page += pages;
    }
    Some(())
}
