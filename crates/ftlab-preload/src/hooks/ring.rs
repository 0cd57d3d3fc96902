//! io_uring: requests are read from the queue when they have been handed to the kernel.
//!
//! # Model
//! A ring is known from the function that sets it up: liburing's, or `syscall` and `mmap`. After each call that hands requests in, the entries
//! that the kernel has taken since the last one are recorded, with what was asked for: a request may fail or move less, which is not
//! seen. Where the kernel takes requests by itself (SQPOLL), everything up to the queue's tail. The kernel counts what it takes;
//! when a ring ends, what it has counted more than was seen is a note.
//! # Not modelled
//! Rings that are set up, used and ended by instructions of the program's own. Files that the kernel puts into a ring's table itself.
//! Renames and unlinks by a ring, which are counted.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

use ftlab_record::spool::NoteKind;
use ftlab_record::uring::{self, ENTRY, PARAMETERS, Request};

use super::ring_request::one;
use super::{Real, hooks};
use crate::process::{self, Wiped};
use crate::signature::CallSite;
use crate::{files, modules, sys};

hooks! {
    io_uring_submit => by_struct;
    io_uring_submit_and_wait => by_struct;
    io_uring_submit_and_wait_timeout => by_struct;
    io_uring_submit_and_wait_min_timeout => by_struct;
    io_uring_submit_and_wait_reg => by_struct;
    io_uring_submit_and_get_events => by_struct;
    io_uring_wait_cqes => by_struct;
    io_uring_wait_cqes_min_timeout => by_struct;
    io_uring_wait_cqe_timeout => by_struct;
    io_uring_queue_exit => |arguments, at, real| {
        if let Some((wiped, ring)) = known(arguments[0]) {
            take(wiped, ring, at);
            end(wiped, ring);
        }
        real.call(arguments)
    };
    io_uring_register_files => |arguments, _, real| {
        let done = real.call(arguments);
        files_registered(arguments[0], done, 0, arguments[1], arguments[2], true);
        done
    };
    io_uring_register_files_update => |arguments, _, real| {
        let done = real.call(arguments);
        files_registered(arguments[0], done, arguments[1], arguments[2], arguments[3], false);
        done
    };
    io_uring_unregister_files => |arguments, _, real| {
        files_registered(arguments[0], 0, 0, 0, 0, true);
        real.call(arguments)
    };
    io_uring_setup => set_up;
    io_uring_enter => entered;
    io_uring_enter2 => entered;
    io_uring_register => registered;
}

/// Rings of a process that are known.
pub const RINGS: usize = 64;
/// Files of a ring's table that are known.
const FILES: usize = 4096;

/// In the place of a descriptor: its ring has ended.
const ENDED: i32 = -1;

/// A ring; descriptor 0: none, else one more than it.
pub struct Ring {
    fd: AtomicI32,
    flags: AtomicU32,
    mask: AtomicU32,
    /// Offsets in the queue's memory, until it is mapped.
    offsets: [AtomicU32; 3],
    /// Addresses; 0 until they are known.
    head: AtomicU64,
    tail: AtomicU64,
    array: AtomicU64,
    entries: AtomicU64,
    /// Requests recorded so far, counted as the kernel does.
    seen: AtomicU32,
    /// Table of registered files, of ours.
    files: AtomicU64,
}

/// liburing's `struct io_uring`, the same since version 2.0.
#[repr(C)]
struct Liburing {
    head: *const u32,
    tail: *const u32,
    mask: *const u32,
    entries_count: *const u32,
    flags: *const u32,
    dropped: *const u32,
    array: *const u32,
    entries: *const u8,
    rest_of_queue: [u64; 5],
    completions: [u64; 11],
    ring_flags: u32,
    fd: i32,
}

fn find(wiped: &Wiped, fd: i32) -> Option<&Ring> {
    if fd < 0 || wiped.rings_used.load(Relaxed) == 0 {
        return None;
    }
    wiped.rings.iter().find(|ring| ring.fd.load(Relaxed) == fd + 1)
}

/// The ring of liburing's struct, put into the table if it is not there.
fn known(at: usize) -> Option<(&'static Wiped, &'static Ring)> {
    let wiped = process::wiped()?;
    // SAFETY: the program gives liburing's function its ring.
    let said = unsafe { (at as *const Liburing).as_ref() }?;
    if said.head.is_null() || said.fd < 0 {
        return None;
    }
    let head = said.head as u64;
    if let Some(ring) = find(wiped, said.fd) {
        if ring.head.load(Relaxed) == head {
            return Some((wiped, ring));
        }
        if ring.head.load(Relaxed) != 0 {
            // Another ring under the same number.
            end(wiped, ring);
        }
    }
    let ring = find(wiped, said.fd).or_else(|| add(wiped, said.fd))?;
    ring.flags.store(said.ring_flags, Relaxed);
    // SAFETY: the struct is set up, so its pointers lead into the ring's memory.
    ring.mask.store(unsafe { said.mask.read() }, Relaxed);
    ring.tail.store(said.tail as u64, Relaxed);
    ring.array.store(said.array as u64, Relaxed);
    ring.entries.store(said.entries as u64, Relaxed);
    ring.head.store(head, Relaxed);
    Some((wiped, ring))
}

fn add(wiped: &'static Wiped, fd: i32) -> Option<&'static Ring> {
    wiped.rings_lock.with(|| {
        let with = |fd: i32| wiped.rings.iter().find(|ring| ring.fd.load(Relaxed) == fd);
        let ring = with(0).or_else(|| with(ENDED))?;
        for word in [&ring.head, &ring.tail, &ring.array, &ring.entries] {
            word.store(0, Relaxed);
        }
        ring.seen.store(0, Relaxed);
        ring.fd.store(fd + 1, Relaxed);
        wiped.rings_used.fetch_add(1, Relaxed);
        Some(ring)
    })
}

/// A ring ends: what the kernel took and was not seen is counted.
fn end(wiped: &Wiped, ring: &Ring) {
    let missed = word(ring.head.load(Relaxed)).map_or(0, |head| head.wrapping_sub(ring.seen.load(Relaxed)));
    if missed > 0 && missed < 1 << 31 {
        wiped.note(NoteKind::IoUring, missed.into());
    }
    ring.seen.store(ring.seen.load(Relaxed).wrapping_add(missed), Relaxed);
    // Its memory may be mapped for longer: it stays known by that, as descriptor -1.
    ring.fd.store(ENDED, Relaxed);
}

/// A word of a ring, if it is still there.
fn word(address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    (address != 0 && sys::read_own(address as usize, &mut bytes) == 4).then(|| u32::from_le_bytes(bytes))
}

/// The process ends: its rings end, and those that were set up unseen are told by their mappings.
pub fn all_end() {
    let Some(wiped) = process::wiped() else { return };
    let mut starts = [0u64; RINGS];
    for (start, ring) in starts.iter_mut().zip(&wiped.rings) {
        *start = ring.head.load(Relaxed) / 4096 * 4096;
        if ring.fd.load(Relaxed) > 0 {
            end(wiped, ring);
        }
    }
    let unseen = modules::rings(wiped, |start| {
        if starts.contains(&start) {
            return 0;
        }
        // The head is the first word of a ring's memory.
        word(start).unwrap_or(0).into()
    });
    if unseen > 0 {
        wiped.note(NoteKind::IoUring, unseen);
    }
}

/// A descriptor is closed.
pub fn closed(fd: i32) {
    if let Some(wiped) = process::wiped()
        && let Some(ring) = find(wiped, fd)
    {
        end(wiped, ring);
    }
}

/// Memory was mapped from a descriptor: it may be a ring's.
pub fn mapped(fd: i32, offset: u64, address: u64) {
    let Some(wiped) = process::wiped() else { return };
    let Some(ring) = find(wiped, fd) else {
        if offset == uring::QUEUE_AT && is_ring(fd) {
            // Set up by an instruction of the program's own: its head, which is the first word of the queue's memory, is all that is known.
            if let Some(ring) = add(wiped, fd) {
                ring.head.store(address, Relaxed);
            }
        }
        return;
    };
    match offset {
        uring::QUEUE_AT => ring.lies_at(address),
        uring::ENTRIES_AT => ring.entries.store(address, Relaxed),
        _ => {}
    }
}

fn is_ring(fd: i32) -> bool {
    let (mut path, mut link) = (sys::PathBuffer::new(), [0; 64]);
    path.push(b"/proc/self/fd/")
        && path.push_number(fd as u64)
        && sys::read_link(path.as_c(), &mut link) == b"anon_inode:[io_uring]"
}

/// Memory is unmapped: a ring in it is used no more.
pub fn unmapped(address: u64, len: u64) {
    let Some(wiped) = process::wiped() else { return };
    if wiped.rings_used.load(Relaxed) == 0 {
        return;
    }
    for ring in &wiped.rings {
        if (address..address.saturating_add(len)).contains(&ring.head.load(Relaxed)) {
            if ring.fd.load(Relaxed) > 0 {
                end(wiped, ring);
            }
            ring.head.store(0, Relaxed);
        }
    }
}

impl Ring {
    fn lies_at(&self, queue: u64) {
        let [head, tail, array] = [0, 1, 2].map(|place: usize| u64::from(self.offsets[place].load(Relaxed)));
        self.tail.store(queue + tail, Relaxed);
        self.array.store(queue + array, Relaxed);
        self.head.store(queue + head, Relaxed);
    }

    /// The descriptor that a request names.
    pub(super) fn descriptor(&self, request: &Request) -> Option<i32> {
        if !request.registered {
            return Some(request.fd);
        }
        let table = self.files.load(Relaxed) as *const i32;
        let place = usize::try_from(request.fd).ok().filter(|&place| place < FILES)?;
        if table.is_null() {
            return None;
        }
        // SAFETY: a mapping of ours with room for FILES of them, which is never unmapped.
        Some(unsafe { table.add(place).read() } - 1).filter(|&fd| fd >= 0)
    }

    /// The number of a request's entry in the queue.
    fn entry(&self, number: u32) -> Option<[u8; ENTRY]> {
        let (mask, flags) = (self.mask.load(Relaxed), self.flags.load(Relaxed));
        let (array, entries) = (self.array.load(Relaxed), self.entries.load(Relaxed));
        let mut place = number & mask;
        if uring::has_array(flags) {
            if array == 0 {
                return None;
            }
            place = word(array + 4 * u64::from(place))?;
        }
        let mut entry = [0; ENTRY];
        let at = entries + u64::from(place) * uring::stride(flags);
        (entries != 0 && sys::read_own(at as usize, &mut entry) == ENTRY).then_some(entry)
    }
}

fn by_struct(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let done = real.call(arguments);
    if let Some((wiped, ring)) = known(arguments[0]) {
        take(wiped, ring, at);
    }
    done
}

pub fn set_up(arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    let done = real.call(arguments);
    let mut parameters = [0; PARAMETERS];
    if done >= 0
        && let Some(wiped) = process::wiped()
        && sys::read_own(arguments[1], &mut parameters) == PARAMETERS
    {
        files::forget(done as i32);
        let said = uring::Ring::parse(&parameters);
        if let Some(ring) = find(wiped, done as i32) {
            end(wiped, ring);
        }
        if let Some(ring) = add(wiped, done as i32) {
            ring.flags.store(said.flags, Relaxed);
            ring.mask.store(said.entries.wrapping_sub(1), Relaxed);
            for (place, offset) in ring.offsets.iter().zip([said.head, said.tail, said.array]) {
                place.store(offset, Relaxed);
            }
            if let Some((queue, entries)) = said.given {
                ring.entries.store(entries, Relaxed);
                ring.lies_at(queue);
            }
        }
    }
    done
}

pub fn entered(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let done = real.call(arguments);
    let Some(wiped) = process::wiped() else { return done };
    match find(wiped, arguments[0] as i32) {
        Some(ring) if ring.head.load(Relaxed) != 0 => take(wiped, ring, at),
        _ if done > 0 && arguments[1] > 0 => wiped.note(NoteKind::IoUring, done as u64),
        _ => {}
    }
    done
}

pub fn registered(arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    let [fd, what, argument, count, ..] = arguments;
    let done = real.call(arguments);
    if done < 0 {
        return done;
    }
    if let Some(ring) = process::wiped().and_then(|wiped| find(wiped, fd as i32)) {
        let mut update = [0u64; 4];
        // SAFETY: the bytes of an array of numbers.
        let bytes = unsafe { core::slice::from_raw_parts_mut(update.as_mut_ptr().cast::<u8>(), size_of_val(&update)) };
        match what as u32 {
            uring::REGISTER_FILES => ring.register(0, argument, count, true),
            uring::UNREGISTER_FILES => ring.register(0, 0, 0, true),
            // The kernel reads offset, padding and the address of the descriptors.
            uring::REGISTER_FILES_UPDATE if sys::read_own(argument, &mut bytes[..16]) == 16 => {
                ring.register(update[0] as u32 as usize, update[1] as usize, count, false);
            }
            // Number, flags, padding, address of the descriptors, of their tags.
            uring::REGISTER_FILES2 if sys::read_own(argument, &mut bytes[..32]) == 32 => {
                ring.register(0, update[2] as usize, update[0] as u32 as usize, true);
            }
            uring::REGISTER_FILES_UPDATE2 if sys::read_own(argument, &mut bytes[..32]) == 32 => {
                ring.register(
                    update[0] as u32 as usize,
                    update[1] as usize,
                    (update[3] as u32) as usize,
                    false,
                );
            }
            _ => {}
        }
    }
    done
}

fn files_registered(ring: usize, done: isize, first: usize, fds: usize, count: usize, all: bool) {
    if done as i32 >= 0
        && let Some((_, ring)) = known(ring)
    {
        ring.register(first, fds, count as u32 as usize, all);
    }
}

impl Ring {
    /// Descriptors of the table from `first` on.
    fn register(&self, first: usize, fds: usize, count: usize, all: bool) {
        let mut table = self.files.load(Relaxed) as *mut i32;
        if table.is_null() {
            let Some(memory) = sys::map_anonymous(FILES * 4) else {
                return;
            };
            table = memory.cast();
            self.files.store(table as u64, Relaxed);
        }
        let (from, past) = if all {
            (0, FILES)
        } else {
            (first, first.saturating_add(count))
        };
        for place in from..past.min(FILES) {
            let given = place.checked_sub(first).filter(|&at| at < count);
            let fd = given
                .and_then(|at| word(fds as u64 + 4 * at as u64))
                .map_or(-1, |fd| fd as i32);
            // Minus two leaves a place as it is.
            if fd != -2 {
                // SAFETY: a mapping of ours with room for FILES of them.
                unsafe { table.add(place).write(fd.max(-1) + 1) };
            }
        }
    }
}

/// Records what the kernel has taken since the last time.
fn take(wiped: &Wiped, ring: &Ring, at: &CallSite) {
    let start_ns = sys::now();
    let upto = if uring::polls(ring.flags.load(Relaxed)) {
        &ring.tail
    } else {
        &ring.head
    };
    let Some(upto) = word(upto.load(Relaxed)) else { return };
    let from = wiped.rings_lock.with(|| {
        let from = ring.seen.load(Relaxed);
        // Another thread may have seen further.
        let ahead = upto.wrapping_sub(from);
        if ahead == 0 || ahead >= 1 << 31 {
            return upto;
        }
        ring.seen.store(upto, Relaxed);
        from
    });
    // The program has used older entries again.
    let held = ring.mask.load(Relaxed).wrapping_add(1);
    let missed = upto.wrapping_sub(from).saturating_sub(held);
    if missed > 0 {
        wiped.note(NoteKind::IoUring, missed.into());
    }
    let mut number = from.wrapping_add(missed);
    let mut recorded = 0;
    while number != upto {
        match ring.entry(number) {
            Some(entry) => recorded += u64::from(one(wiped, ring, &Request::parse(&entry), start_ns, at)),
            None => wiped.note(NoteKind::IoUring, 1),
        }
        number = number.wrapping_add(1);
    }
    if recorded > 0 {
        wiped.note(NoteKind::Aio, recorded);
    }
    wiped.note(NoteKind::Taken, upto.wrapping_sub(from).into());
}
