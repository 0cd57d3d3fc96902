//! Shared writable mappings of files: stores into them are no calls, and are not seen.
//!
//! # Model
//! Making such a mapping is recorded, and so are msync and the end of the mapping, with the range that may have been written to.
//! The 256 latest mappings of a process are known.
//! # Not modelled
//! Which pages were written to, and when. mprotect that makes a mapping writable later, mremap, mappings held over a fork.

use core::sync::atomic::{AtomicU64, Ordering};

use ftlab_record::spool::Op;

use super::{Real, hooks};
use crate::files::{self, Known};
use crate::process::{self, Wiped};
use crate::record::{self, Call};
use crate::signature::CallSite;
use crate::{sys, thread};

hooks! {
    mmap => map;
    mmap64 => map;
    msync => |arguments, at, real| {
        let done = real.call(arguments);
        if done as i32 == 0 {
            synced(arguments[0] as u64, arguments[1] as u64, false, at);
        }
        done
    };
    munmap => |arguments, at, real| {
        synced(arguments[0] as u64, arguments[1] as u64, true, at);
        real.call(arguments)
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
}

fn map(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [_, len, access, flags, fd, offset] = arguments;
    let kind = flags as i32 & libc::MAP_TYPE;
    let shared = kind == libc::MAP_SHARED || kind == libc::MAP_SHARED_VALIDATE;
    let anonymous = flags as i32 & libc::MAP_ANONYMOUS != 0;
    if !shared || anonymous || access as i32 & libc::PROT_WRITE == 0 {
        return real.call(arguments);
    }
    let Some(start_ns) = record::begin(fd as i32) else {
        return real.call(arguments);
    };
    let done = real.call(arguments);
    if done != libc::MAP_FAILED as isize {
        let end_ns = sys::now();
        thread::with(|recording| {
            let file = files::of(recording, fd as i32)?;
            remember(recording.wiped, done as u64, len as u64, offset as u64, file);
            let (offset, length) = (offset as u64, len as u64);
            let call = Call {
                op: Op::Map,
                flags: 0,
                start_ns,
                offset,
                length,
                at: Some(at),
            };
            record::write(recording, file, call, end_ns)
        });
    }
    done
}

fn remember(wiped: &Wiped, address: u64, len: u64, offset: u64, file: Known) {
    wiped.mappings_lock.with(|| {
        let free = wiped
            .mappings
            .iter()
            .find(|mapping| mapping.len.load(Ordering::Relaxed) == 0);
        if let Some(mapping) = free {
            mapping.address.store(address, Ordering::Relaxed);
            mapping.len.store(len, Ordering::Relaxed);
            mapping.offset.store(offset, Ordering::Relaxed);
            mapping.file.store(u64::from(file.id), Ordering::Relaxed);
            wiped.mapped.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// A range of memory was synced, or will be unmapped.
fn synced(address: u64, len: u64, ends: bool, at: &CallSite) {
    let Some(wiped) = process::wiped() else { return };
    if wiped.mapped.load(Ordering::Relaxed) == 0 {
        return;
    }
    let start_ns = sys::now();
    // The lock is taken within a record: a signal handler that unmaps memory is turned away there, and cannot wait for us.
    thread::with(|recording| {
        for mapping in &wiped.mappings {
            let found = wiped.mappings_lock.with(|| overlap(wiped, mapping, address, len, ends));
            if let Some((file, offset, length)) = found {
                let call = Call {
                    op: Op::MapSync,
                    flags: 0,
                    start_ns,
                    offset,
                    length,
                    at: Some(at),
                };
                record::write(recording, Known { id: file, flags: 0 }, call, start_ns)?;
            }
        }
        Some(())
    });
}

/// File, offset and length of what of the mapping lies in the range; taken out of the table if that is where it ends.
fn overlap(wiped: &Wiped, mapping: &Mapping, address: u64, len: u64, ends: bool) -> Option<(u32, u64, u64)> {
    let (start, mapped) = (
        mapping.address.load(Ordering::Relaxed),
        mapping.len.load(Ordering::Relaxed),
    );
    let from = start.max(address);
    let to = start.saturating_add(mapped).min(address.saturating_add(len));
    if mapped == 0 || from >= to {
        return None;
    }
    let offset = mapping.offset.load(Ordering::Relaxed).saturating_add(from - start);
    if ends {
        // What is left of a mapping with a hole counts as the part before it.
        let rest = if from > start {
            from - start
        } else {
            (start + mapped).saturating_sub(to)
        };
        if from == start && rest > 0 {
            mapping.address.store(to, Ordering::Relaxed);
            mapping
                .offset
                .store(offset.saturating_add(to - from), Ordering::Relaxed);
        }
        mapping.len.store(rest, Ordering::Relaxed);
        if rest == 0 {
            wiped.mapped.fetch_sub(1, Ordering::Relaxed);
        }
    }
    Some((mapping.file.load(Ordering::Relaxed) as u32, offset, to - from))
}
