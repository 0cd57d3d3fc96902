//! Where a file lies on its device, by what the kernel says (`FS_IOC_FIEMAP`).
//!
//! # Not modelled
//! Extents that are not at a known place (inline, delayed, encoded) are left out. Not every file system answers.
//! # Source
//! Linux: `Documentation/filesystems/fiemap.rst`.

#![expect(unsafe_code, reason = "one system call that has no safe wrapper; proof at its use")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
/// Write what is delayed first.
const SYNC: u32 = 1;
const LAST: u32 = 1;
/// Unknown place, delayed, encoded, encrypted, not aligned, inline, tail.
const UNPLACED: u32 = 2 | 4 | 8 | 0x80 | 0x100 | 0x200 | 0x400;
const AT_ONCE: usize = 256;
/// A file of more pieces is not described: it would fill the recording.
const MOST: usize = 1 << 16;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more: [u32; 3],
}

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; AT_ONCE],
}

/// Extents of a file: byte in the file, byte on the device, bytes; ascending. None if the file system does not say.
pub fn extents(path: &Path) -> Option<Vec<(u64, u64, u64)>> {
    let file = File::open(path).ok()?;
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let mut map = Fiemap {
            start,
            length: u64::MAX - start,
            flags: SYNC,
            mapped: 0,
            count: AT_ONCE as u32,
            reserved: 0,
            extents: [Extent::default(); AT_ONCE],
        };
        // SAFETY: the kernel reads the fixed part of the structure and writes at most `count` extents behind it, for which there
        // is room; the descriptor is open.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
        if answer != 0 || found.len() > MOST {
            return None;
        }
        let extents = &map.extents[..(map.mapped as usize).min(AT_ONCE)];
        let placed = extents.iter().filter(|extent| extent.flags & UNPLACED == 0);
        found.extend(placed.map(|extent| (extent.logical, extent.physical, extent.length)));
        match extents.last() {
            Some(last) if last.flags & LAST == 0 => start = last.logical.saturating_add(last.length),
            _ => return Some(found),
        }
    }
}
