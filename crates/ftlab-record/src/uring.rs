//! What stands in an entry of an io_uring submission queue.
//!
//! # Model
//! A ring is two arrays in memory that program and kernel share: the queue with its two counters, and the entries. The kernel counts the
//! head up as it takes requests, the program the tail; both run over after 2³².
//! # Not modelled
//! Requests that do not move data of files; the result of a request, which comes later.
//! # Source
//! Linux `include/uapi/linux/io_uring.h`; io_uring_setup(2), io_uring_enter(2).

use crate::spool::{Op, op_flags};

/// Bytes of an entry; twice as many where the ring has large ones.
pub const ENTRY: usize = 64;
/// Bytes of the parameters of a ring.
pub const PARAMETERS: usize = 120;

/// Where `mmap` gives the queue and the entries of a ring.
pub const QUEUE_AT: u64 = 0;
pub const ENTRIES_AT: u64 = 0x1000_0000;

pub const REGISTER_FILES: u32 = 2;
pub const UNREGISTER_FILES: u32 = 3;
pub const REGISTER_FILES_UPDATE: u32 = 6;
pub const REGISTER_FILES2: u32 = 13;
pub const REGISTER_FILES_UPDATE2: u32 = 14;

const SQPOLL: u32 = 1 << 1;
const LARGE_ENTRIES: u32 = 1 << 10;
const NO_MMAP: u32 = 1 << 14;
const NO_ARRAY: u32 = 1 << 16;

/// What a ring is like, as its setup tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// As `io_uring_setup` was given them.
    pub flags: u32,
    /// Of the queue.
    pub entries: u32,
    /// Offsets in the memory of the queue.
    pub head: u32,
    pub tail: u32,
    pub array: u32,
    /// Where queue and entries lie, if the program has given the memory itself.
    pub given: Option<(u64, u64)>,
}

impl Ring {
    pub fn parse(parameters: &[u8; PARAMETERS]) -> Self {
        let u32_at = |at: usize| number(parameters, at, 4) as u32;
        let flags = u32_at(8);
        let given = (number(parameters, 112, 8), number(parameters, 72, 8));
        Ring {
            flags,
            entries: u32_at(0),
            head: u32_at(40),
            tail: u32_at(44),
            array: u32_at(64),
            given: (flags & NO_MMAP != 0).then_some(given),
        }
    }
}

/// Whether the kernel takes requests by itself, without being called.
pub fn polls(flags: u32) -> bool {
    flags & SQPOLL != 0
}

/// Whether the queue names entries by an array of their numbers.
pub fn has_array(flags: u32) -> bool {
    flags & NO_ARRAY == 0
}

/// Bytes from an entry to the next.
pub fn stride(flags: u32) -> u64 {
    if flags & LARGE_ENTRIES != 0 {
        2 * ENTRY as u64
    } else {
        ENTRY as u64
    }
}

/// Where data come from or go to, in the program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Bytes {
        address: u64,
        length: u64,
    },
    /// A list of `iovec`.
    Pieces {
        address: u64,
        count: u64,
    },
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A read or a write; without an offset where the descriptor stands. `flags`: `op_flags`.
    Transfer {
        op: Op,
        offset: Option<u64>,
        memory: Memory,
        flags: u16,
    },
    Sync(Op),
    SyncRange {
        offset: u64,
        length: u64,
    },
    Allocate {
        mode: i32,
        offset: u64,
        length: u64,
    },
    Truncate {
        size: u64,
    },
    /// Into the file, from a pipe or another file.
    Splice {
        offset: Option<u64>,
        length: u64,
    },
    Close,
    /// It changes files in a way that has no record.
    Unrecorded,
    /// Nothing that a recording has.
    Other,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub fd: i32,
    /// The descriptor is a place in the table of registered files.
    pub registered: bool,
    pub work: Work,
}

impl Request {
    pub fn parse(entry: &[u8; ENTRY]) -> Self {
        let u32_at = |at: usize| number(entry, at, 4) as u32;
        let u64_at = |at: usize| number(entry, at, 8);
        let (offset, address, length, flags) = (u64_at(8), u64_at(16), u64::from(u32_at(24)), u32_at(28));
        let position = (offset != u64::MAX).then_some(offset);
        let transfer = |op: Op, memory: Memory| Work::Transfer {
            op,
            offset: position,
            memory,
            flags: transfer_flags(flags),
        };
        let bytes = Memory::Bytes { address, length };
        let pieces = Memory::Pieces { address, count: length };
        let work = match entry[0] {
            1 => transfer(Op::Read, pieces),
            2 => transfer(Op::Write, pieces),
            3 => Work::Sync(if flags & 1 != 0 { Op::Fdatasync } else { Op::Fsync }),
            4 | 22 => transfer(Op::Read, bytes),
            5 | 23 => transfer(Op::Write, bytes),
            8 => Work::SyncRange { offset, length },
            17 => Work::Allocate {
                mode: length as i32,
                offset,
                length: address,
            },
            // Opening takes a file's content away only if it is asked to.
            18 if flags as i32 & O_TRUNC != 0 => Work::Unrecorded,
            19 => Work::Close,
            30 => Work::Splice {
                offset: position,
                length,
            },
            // Renames and unlinks: what they took away is gone when they are seen.
            35 | 36 => Work::Unrecorded,
            55 => Work::Truncate { size: offset },
            // Reads and writes of pieces in registered memory.
            60 => transfer(Op::Read, pieces),
            61 => transfer(Op::Write, pieces),
            _ => Work::Other,
        };
        Request {
            fd: u32_at(4) as i32,
            registered: entry[1] & 1 != 0,
            work,
        }
    }
}

const O_TRUNC: i32 = 0o1000;

fn transfer_flags(flags: u32) -> u16 {
    // RWF_DSYNC and RWF_SYNC, RWF_APPEND.
    let sync = if flags & 6 != 0 { op_flags::SYNC } else { 0 };
    let append = if flags & 16 != 0 { op_flags::APPEND } else { 0 };
    sync | append
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let all = bytes.get(at..at + len).unwrap_or(&[]);
    all.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(code: u8, flags: u8, fd: i32, offset: u64, address: u64, length: u32, more: u32) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        (bytes[0], bytes[1]) = (code, flags);
        bytes[4..8].copy_from_slice(&fd.to_le_bytes());
        bytes[8..16].copy_from_slice(&offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&address.to_le_bytes());
        bytes[24..28].copy_from_slice(&length.to_le_bytes());
        bytes[28..32].copy_from_slice(&more.to_le_bytes());
        bytes
    }

    #[test]
    fn entries_say_what_they_ask_for() {
        let memory = Memory::Bytes {
            address: 0x1000,
            length: 512,
        };
        let write = Request::parse(&entry(23, 1, 7, 4096, 0x1000, 512, 2));
        let expected = Work::Transfer {
            op: Op::Write,
            offset: Some(4096),
            memory,
            flags: op_flags::SYNC,
        };
        assert_eq!((write.fd, write.registered, write.work), (7, true, expected));
        let here = Request::parse(&entry(22, 0, 7, u64::MAX, 0x1000, 512, 0)).work;
        assert!(matches!(
            here,
            Work::Transfer {
                op: Op::Read,
                offset: None,
                ..
            }
        ));
        assert_eq!(
            Request::parse(&entry(3, 0, 7, 0, 0, 0, 1)).work,
            Work::Sync(Op::Fdatasync)
        );
        let allocate = Work::Allocate {
            mode: 3,
            offset: 8,
            length: 100,
        };
        assert_eq!(Request::parse(&entry(17, 0, 7, 8, 100, 3, 0)).work, allocate);
        assert_eq!(Request::parse(&entry(36, 0, 7, 0, 0x1000, 0, 0)).work, Work::Unrecorded);
        assert_eq!(Request::parse(&entry(6, 0, 7, 0, 0, 0, 0)).work, Work::Other);
    }
}
