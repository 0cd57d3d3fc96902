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

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ftlab_record::spool::{NoteKind, Op, PAGE};

use super::stored::{begin, compared, mark_unread};
use super::{Real, hooks, ring};
use crate::files;
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
pub(super) struct Seen {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) offset: u64,
    pub(super) file: u32,
    pub(super) ids: u64,
    pub(super) pages: u64,
}

impl Mapping {
    pub(super) fn seen(&self) -> Option<Seen> {
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

/// Shows the mappings that are known to `visit`, until it says that there is no need to go on.
fn for_each_mapping(mut visit: impl FnMut(&mut Recording<'_>, &Mapping, Seen) -> bool) {
    let Some(wiped) = process::wiped() else { return };
    if wiped.mapped.load(Relaxed) == 0 {
        return;
    }
    thread::with(|recording| {
        for mapping in &wiped.mappings {
            let seen = wiped.mappings_lock.with(|| mapping.seen());
            if let Some(seen) = seen
                && !visit(recording, mapping, seen)
            {
                break;
            }
        }
        Some(())
    });
}

/// A mapping may be stored into from now on.
fn made_writable(address: u64, len: u64) {
    for_each_mapping(|recording, mapping, mut seen| {
        if seen.ids == 0 && seen.address < address.saturating_add(len) && address < seen.address + seen.len {
            known_by_name(recording, &mut seen);
            recording.wiped.mappings_lock.with(|| mapping.set(&seen));
        }
        true
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
    for_each_mapping(|recording, mapping, mut seen| {
        if seen.address != old || seen.len > old_len.next_multiple_of(PAGE as u64) {
            return true;
        }
        let was = seen;
        seen.address = new;
        seen.len = new_len.next_multiple_of(PAGE as u64);
        if seen.ids != 0 {
            // Nothing has been stored since the comparison just before.
            (seen.ids, seen.pages) = (0, 0);
            known_by_name(recording, &mut seen);
        }
        recording.wiped.mappings_lock.with(|| mapping.set(&seen));
        forget_ids(&was);
        false
    });
}
