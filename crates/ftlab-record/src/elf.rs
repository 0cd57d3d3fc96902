//! What of a module's ELF headers names it and lets its frames be unwound; in memory or in a file.
//!
//! # Model
//! 64-bit little-endian ELF. A module is named by its build id, or by its headers if it has none.
//! # Not modelled
//! Sections, symbols, debugging information.

use core::ops::Range;

/// The program headers of a module.
#[derive(Debug, Clone, Copy)]
pub struct Headers<'a> {
    /// From the start of the module to the end of the program headers.
    bytes: &'a [u8],
    entries: &'a [u8],
}

/// What of the module lies where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub kind: u32,
    pub offset: u64,
    /// Address the module was linked for.
    pub address: u64,
    pub file_len: u64,
    pub len: u64,
}

pub const LOAD: u32 = 1;
pub const NOTE: u32 = 4;
pub const EH_FRAME_HDR: u32 = 0x6474_e550;
/// Bytes of the first header, which says how long the others are.
pub const FIRST: usize = 64;
const ENTRY: usize = 56;
const PAGE: u64 = 4096;

/// Bytes from the start of the module that [`Headers::parse`] needs, by its first [`FIRST`].
pub fn needed(first: &[u8]) -> Option<u64> {
    if !first.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let entries = u64::from(u16_at(first, 56)?);
    u64_at(first, 32)?.checked_add(entries * ENTRY as u64)
}

impl<'a> Headers<'a> {
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let end = usize::try_from(needed(bytes)?).ok()?;
        let start = usize::try_from(u64_at(bytes, 32)?).ok()?;
        Some(Self {
            bytes: bytes.get(..end)?,
            entries: bytes.get(start..end)?,
        })
    }

    pub fn segments(&self, kind: u32) -> impl Iterator<Item = Segment> + 'a {
        let read = |entry: &[u8]| {
            Some(Segment {
                kind: u32_at(entry, 0)?,
                offset: u64_at(entry, 8)?,
                address: u64_at(entry, 16)?,
                file_len: u64_at(entry, 32)?,
                len: u64_at(entry, 40)?,
            })
        };
        self.entries
            .chunks_exact(ENTRY)
            .filter_map(read)
            .filter(move |segment| segment.kind == kind)
    }

    /// The lowest address the module was linked for, which lies at its start.
    pub fn lowest(&self) -> Option<u64> {
        self.segments(LOAD).map(|segment| segment.address / PAGE * PAGE).min()
    }

    /// Id of the module; `build_id` from its notes.
    pub fn id(&self, build_id: Option<&[u8]>) -> u64 {
        // 0 and 1 have meanings of their own.
        xxhash_rust::xxh3::xxh3_64(build_id.unwrap_or(self.bytes)).max(2)
    }
}

/// The build id among the notes of a segment.
pub fn build_id(notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u32 = 3;
    note(notes, b"GNU\0", BUILD_ID)
}

/// The text of a note by its name of four bytes and its kind, among the notes of a segment.
pub fn note<'a>(mut notes: &'a [u8], wanted: &[u8; 4], kind: u32) -> Option<&'a [u8]> {
    while notes.len() >= 12 {
        let (name, text) = (u32_at(notes, 0)? as usize, u32_at(notes, 4)? as usize);
        let text_at = 12usize.checked_add(name.checked_next_multiple_of(4)?)?;
        if u32_at(notes, 8) == Some(kind) && notes.get(12..16) == Some(wanted) {
            return notes.get(text_at..text_at.checked_add(text)?);
        }
        notes = notes.get(text_at.checked_add(text.checked_next_multiple_of(4)?)?..)?;
    }
    None
}

/// Where .eh_frame starts, by the header of its index, which lies at `at`: version 1, with the pointer relative to itself in
/// 4 bytes, is what all linkers write.
pub fn eh_frame_start(header: &[u8], at: u64) -> Option<u64> {
    if header.len() < 12 || header[..2] != [1, 0x1b] {
        return None;
    }
    at.checked_add(4)?
        .checked_add_signed(i64::from(u32_at(header, 4)? as i32))
}

/// Stretches of the unwind tables, by the addresses the module was linked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnwindTables<'a> {
    pub lowest: u64,
    pub eh_frame_hdr: (Range<u64>, &'a [u8]),
    pub eh_frame: (Range<u64>, &'a [u8]),
}

impl<'a> UnwindTables<'a> {
    /// `memory` gives the bytes at such an address, at most so many.
    pub fn find(headers: &Headers<'_>, memory: impl Fn(u64, u64) -> Option<&'a [u8]>) -> Option<Self> {
        let segment = headers.segments(EH_FRAME_HDR).next()?;
        let header = memory(segment.address, segment.len)?;
        let start = eh_frame_start(header, segment.address)?;
        let tables = memory(start, u64::MAX)?;
        let range = |at: u64, bytes: &[u8]| at..at.saturating_add(bytes.len() as u64);
        Some(Self {
            lowest: headers.lowest()?,
            eh_frame_hdr: (range(segment.address, header), header),
            eh_frame: (range(start, tables), tables),
        })
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A note of another name (4 + 1 bytes, padded to 8 and 4), then the build id ab cd.
    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let mut notes = Vec::new();
        for word in [5u32, 1, 1] {
            notes.extend(word.to_le_bytes());
        }
        notes.extend(b"Other\0\0\0");
        notes.extend([9, 0, 0, 0]);
        for word in [4u32, 2, 3] {
            notes.extend(word.to_le_bytes());
        }
        notes.extend(b"GNU\0");
        notes.extend([0xab, 0xcd]);
        assert_eq!(build_id(&notes), Some(&[0xab, 0xcd][..]));
        notes.pop();
        assert_eq!(build_id(&notes), None, "cut off");
    }

    #[test]
    fn this_program_has_headers_and_tables() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let headers = Headers::parse(&bytes).unwrap();
        assert!(headers.segments(LOAD).count() >= 2);
        let at_address = |address: u64, len: u64| {
            let segment = headers
                .segments(LOAD)
                .find(|s| (s.address..s.address + s.file_len).contains(&address))?;
            let from = (address - segment.address + segment.offset) as usize;
            let len = len.min(segment.address + segment.file_len - address) as usize;
            bytes.get(from..from + len)
        };
        let tables = UnwindTables::find(&headers, at_address).unwrap();
        assert!(tables.eh_frame.1.len() > 1000);
        assert_eq!(
            tables.eh_frame_hdr.0.end - tables.eh_frame_hdr.0.start,
            tables.eh_frame_hdr.1.len() as u64
        );
        assert!(Headers::parse(&bytes[..63]).is_none());
        assert!(Headers::parse(b"#!/bin/sh").is_none());
    }
}
