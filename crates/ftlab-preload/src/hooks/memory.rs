//! Shared writable mappings of files: stores into them are no calls, so pages are compared.
//!
//! # Model
//! When a mapping is made its file is read, and of each page an id kept (holes are zeros and not read). At msync, at the end of the
//! mapping and at the end of the program, the pages that this process has touched are compared with that, and those that differ are
//! recorded as stored into, with what they hold then. msync with MS_SYNC is recorded as fdatasync besides. A mapping has a description of
//! its file of its own, and its end is told as the close of that: it keeps the file as a descriptor does.
//!
//! The table of mappings lies in memory that a child of fork has a copy of, as it has the mappings. It describes their files anew
//! when it has something to tell of them.
//! # Not modelled
//! When a page was written to, and what it held in between. Pages that the kernel has taken away from the process before they
//! were compared. What others write into a page that is mapped counts as a store; a child's store counts for its parent if
//! that has touched the page and compares first. Mappings in a program that is killed. What remains behind a hole that is cut into a mapping.

use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use ftlab_record::spool::{NoteKind, Op, PAGE};

use super::stored::{begin, compared};
use super::{Real, hooks, ring};
use crate::files::{self, Known};
use crate::process::Wiped;
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
        let replaces = arguments[3] as i32 & libc::MREMAP_FIXED != 0;
        compared(old, old_len, Some(at), false);
        if replaces {
            compared(arguments[4] as u64, new_len, Some(at), false);
        }
        let done = real.call(arguments);
        if done != libc::MAP_FAILED as isize {
            if replaces {
                ended(done as u64, new_len);
            }
            moved(old, old_len, done as u64, new_len);
        }
        done
    };
}

const MAPPINGS: usize = 256;

/// Not wiped in a child, as its mappings are not.
static ALL: [Mapping; MAPPINGS] = [const { Mapping::none() }; MAPPINGS];
/// At least as many as there are.
static USED: AtomicU32 = AtomicU32::new(0);

/// A mapping; length 0: none. Within one page of memory, so that a child has it as it was at one moment.
#[repr(align(128))]
pub(super) struct Mapping {
    /// Odd while the others change; in a child for good, if it was born then.
    version: AtomicU32,
    len: AtomicU64,
    rest: [AtomicU64; 11],
}

/// What a mapping was at one moment.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) offset: u64,
    /// The file's id in the spools of `image`; another process image than this: of the parent.
    pub(super) file: u32,
    image: u64,
    device: u64,
    inode: u64,
    birth_ns: u64,
    size: u64,
    /// Ids of its pages, of ours; 0: not writable yet.
    pub(super) ids: u64,
    pub(super) pages: u64,
    /// The memory that they lie in.
    pub(super) table: u64,
    pub(super) table_len: u64,
}

impl Mapping {
    const fn none() -> Self {
        Self {
            version: AtomicU32::new(0),
            len: AtomicU64::new(0),
            rest: [const { AtomicU64::new(0) }; 11],
        }
    }

    fn seen(&self) -> Option<Seen> {
        let len = self.len.load(Relaxed);
        if len == 0 || !self.version.load(Relaxed).is_multiple_of(2) {
            return None;
        }
        let word = |place: usize| self.rest.get(place).map_or(0, |word| word.load(Relaxed));
        Some(Seen {
            len,
            address: word(0),
            offset: word(1),
            file: word(2) as u32,
            image: word(3),
            device: word(4),
            inode: word(5),
            birth_ns: word(6),
            size: word(7),
            ids: word(8),
            pages: word(9),
            table: word(10),
            table_len: (word(2) >> 32) * PAGE as u64,
        })
    }

    /// As `seen`; one that was changing when this process was born is counted and forgotten.
    pub(super) fn seen_by(&self, wiped: &Wiped) -> Option<Seen> {
        if !self.version.load(Relaxed).is_multiple_of(2) {
            wiped.note(
                NoteKind::Uncompared,
                self.len.load(Relaxed).div_ceil(PAGE as u64).max(1),
            );
            self.len.store(0, Relaxed);
            self.version.fetch_add(1, Release);
        }
        self.seen()
    }

    /// The caller holds the lock.
    fn set(&self, seen: &Seen) {
        self.version.fetch_add(1, Acquire);
        let words = [
            seen.address,
            seen.offset,
            u64::from(seen.file) | seen.table_len.div_ceil(PAGE as u64) << 32,
            seen.image,
            seen.device,
            seen.inode,
            seen.birth_ns,
            seen.size,
            seen.ids,
            seen.pages,
            seen.table,
        ];
        for (place, word) in self.rest.iter().zip(words) {
            place.store(word, Relaxed);
        }
        self.len.store(seen.len, Relaxed);
        self.version.fetch_add(1, Release);
    }
}

/// Whether there may be mappings.
pub(super) fn any() -> bool {
    USED.load(Relaxed) != 0
}

pub(super) fn all() -> &'static [Mapping] {
    &ALL
}

/// The file of a mapping, described anew if only the parent's spools have it.
pub(super) fn file(recording: &mut Recording<'_>, mapping: &Mapping, seen: &mut Seen) -> Option<Known> {
    let wiped = recording.wiped;
    let image = wiped.image();
    if seen.image != image {
        let buffer = recording.thread.path.take()?;
        let named = modules::file_of(wiped, seen.address, buffer);
        let known = named.and_then(|(len, _)| {
            let status = sys::Status {
                device: seen.device,
                inode: seen.inode,
                birth_ns: seen.birth_ns,
                size: seen.size,
                ..sys::Status::default()
            };
            files::introduce(recording, &status, 0, buffer.get(..len)?)
        });
        recording.thread.path = Some(buffer);
        let Some(known) = known else {
            wiped.note(NoteKind::FileUnknown, 1);
            return None;
        };
        (seen.file, seen.image) = (known.id, image);
        let (address, seen) = (seen.address, *seen);
        wiped.mappings_lock.with(|| {
            if let Some(now) = mapping.seen().filter(|now| now.address == address) {
                mapping.set(&Seen {
                    file: seen.file,
                    image,
                    ..now
                });
            }
        });
    }
    Some(Known {
        id: seen.file,
        flags: 0,
    })
}

/// A mapping at a given place replaces what is there.
fn map(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [address, len, _, flags, ..] = arguments;
    if flags as i32 & libc::MAP_FIXED == 0 || !any() {
        return made(arguments, at, |arguments| real.call(arguments));
    }
    let (address, len) = (address as u64, (len as u64).next_multiple_of(PAGE as u64));
    compared(address, len, Some(at), false);
    made(arguments, at, |arguments| {
        let done = real.call(arguments);
        if done != libc::MAP_FAILED as isize {
            ended(address, len);
        }
        done
    })
}

fn made(arguments: [usize; 6], at: &CallSite, call: impl Fn([usize; 6]) -> isize) -> isize {
    let [_, len, access, flags, fd, offset] = arguments;
    let kind = flags as i32 & libc::MAP_TYPE;
    let shared = kind == libc::MAP_SHARED || kind == libc::MAP_SHARED_VALIDATE;
    if !shared || flags as i32 & libc::MAP_ANONYMOUS != 0 {
        return call(arguments);
    }
    let Some(start_ns) = record::begin(fd as i32) else {
        let done = call(arguments);
        if done != libc::MAP_FAILED as isize {
            ring::mapped(fd as i32, offset as u64, done as u64);
        }
        return done;
    };
    let done = call(arguments);
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
        let status = sys::status(fd as i32, c"", true).ok()?;
        let mut seen = Seen {
            address: done as u64,
            len: (len as u64).next_multiple_of(PAGE as u64),
            offset: offset as u64,
            file: 0,
            // Until it is described.
            image: 0,
            device: status.device,
            inode: status.inode,
            birth_ns: status.birth_ns,
            size: status.size,
            ids: 0,
            pages: 0,
            table: 0,
            table_len: 0,
        };
        let own_description = if writable {
            files::another(recording, fd as i32)
        } else {
            None
        };
        if let Some(known) = own_description {
            (seen.file, seen.image) = (known.id, recording.wiped.image());
        }
        if writable {
            // A descriptor of our own: looking for holes would move the program's.
            let own = reopen(fd as i32);
            begin(recording.wiped, &mut seen, own.unwrap_or(fd as i32), own.is_some());
            if let Some(own) = own {
                sys::close(own);
            }
        }
        remember(recording.wiped, &seen);
        let file = own_description?;
        let call = Call {
            op: Op::Map,
            flags: 0,
            start_ns,
            offset: offset as u64,
            length: len as u64,
            at: Some(at),
        };
        record::write(recording, Known { flags: 0, ..file }, call, end_ns)
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
        let free = ALL.iter().find(|mapping| mapping.seen_by(wiped).is_none())?;
        USED.fetch_add(1, Relaxed);
        free.set(seen);
        Some(())
    });
    if kept.is_none() {
        forget_ids(seen);
        wiped.note(NoteKind::Uncompared, seen.len.div_ceil(PAGE as u64));
    }
}

fn forget_ids(seen: &Seen) {
    if seen.table != 0 {
        // SAFETY: our mapping, which no table names any more.
        unsafe { sys::unmap(seen.table as *mut u8, seen.table_len as usize) };
    }
}

/// The process ends, or another program takes its place.
pub fn all_end() {
    compared(0, u64::MAX, None, false);
}

/// A range of memory was unmapped: whole pages, whatever part of the last one was named.
fn ended(address: u64, len: u64) {
    let len = len.checked_next_multiple_of(PAGE as u64).unwrap_or(u64::MAX);
    if !any() {
        return;
    }
    thread::with(|recording| {
        let wiped = recording.wiped;
        for mapping in &ALL {
            let gone = wiped
                .mappings_lock
                .with(|| cut(wiped, mapping, address, address.saturating_add(len)));
            if let Some(seen) = gone.filter(|seen| seen.image == wiped.image()) {
                let start_ns = sys::now();
                let call = Call {
                    op: Op::Close,
                    flags: 0,
                    start_ns,
                    offset: 0,
                    length: 0,
                    at: None,
                };
                let file = Known {
                    id: seen.file,
                    flags: 0,
                };
                record::write(recording, file, call, start_ns);
            }
        }
        Some(())
    });
}

/// Takes a range out of a mapping. What is left behind a hole in the middle is not known any more. Gives back a mapping of which nothing
/// is left.
fn cut(wiped: &Wiped, mapping: &Mapping, address: u64, past: u64) -> Option<Seen> {
    let mut seen = mapping.seen_by(wiped)?;
    let end = seen.address + seen.len;
    let (from, to) = (seen.address.max(address), end.min(past));
    if from >= to {
        return None;
    }
    if from > seen.address {
        if to < end && seen.ids != 0 {
            wiped.note(NoteKind::Uncompared, (end - to) / PAGE as u64);
        }
        seen.len = from - seen.address;
        mapping.set(&seen);
        return None;
    }
    let gone = to - seen.address;
    if to == end {
        mapping.set(&Seen { len: 0, ids: 0, ..seen });
        USED.fetch_sub(1, Relaxed);
        forget_ids(&seen);
        return Some(seen);
    }
    // The table stays as a whole, as other processes have it too: what is used of it begins further on.
    let left = seen.pages.saturating_sub(gone / PAGE as u64);
    if seen.ids != 0 {
        seen.ids += (seen.pages - left) * 8;
        seen.pages = left;
    }
    seen.address = to;
    seen.offset += gone;
    seen.len -= gone;
    mapping.set(&seen);
    None
}

/// Shows the mappings that are known to `visit`, until it says that there is no need to go on.
fn for_each_mapping(mut visit: impl FnMut(&mut Recording<'_>, &Mapping, Seen) -> bool) {
    if !any() {
        return;
    }
    thread::with(|recording| {
        let wiped = recording.wiped;
        for mapping in &ALL {
            let seen = wiped.mappings_lock.with(|| mapping.seen_by(wiped));
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
            if let Some(file) = file(recording, mapping, &mut seen) {
                let start_ns = sys::now();
                let call = Call {
                    op: Op::Map,
                    flags: 0,
                    start_ns,
                    offset: seen.offset,
                    length: seen.len,
                    at: None,
                };
                record::write(recording, file, call, start_ns);
            }
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
            (seen.ids, seen.pages, seen.table, seen.table_len) = (0, 0, 0, 0);
            known_by_name(recording, &mut seen);
        }
        recording.wiped.mappings_lock.with(|| mapping.set(&seen));
        forget_ids(&was);
        false
    });
}
