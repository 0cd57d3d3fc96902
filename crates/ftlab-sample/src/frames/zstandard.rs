//! Frames of zstd: the table of the seekable format, and headers.
//!
//! # Source
//! RFC 8878, section 3.1; zstd's contrib/seekable_format/zstd_seekable_compression_format.md, version 0.1.0.

use ftlab_core::Result;

use super::walker::Walker;
use super::{Border, LARGEST, Told};

const MAGIC: u32 = 0xfd2f_b528;
/// Of frames that are skipped, whatever their last four bits are.
const SKIPPED: u32 = 0x184d_2a50;
/// The skipped frame of a table, and the last four bytes of the file.
const TABLE: u32 = 0x184d_2a5e;
const TABLE_END: u32 = 0x8f92_eab1;
/// Magic number and length of a skipped frame.
const SKIP: u64 = 8;
/// Number of frames, flags, magic number.
const FOOTER: u64 = 9;

/// Whether a file that begins so is of frames.
pub(super) fn begins(head: &[u8]) -> bool {
    let magic = head.first_chunk().map(|&magic| u32::from_le_bytes(magic));
    magic.is_some_and(|magic| magic == MAGIC || is_skipped(magic))
}

fn is_skipped(magic: u32) -> bool {
    magic & !15 == SKIPPED
}

/// What the table at the end says, if there is one.
pub(super) fn told(walker: &mut Walker<'_>) -> Result<Option<Told>> {
    let bytes = walker.bytes;
    let Some(start) = bytes.checked_sub(FOOTER) else {
        return Ok(None);
    };
    let Some(footer) = walker.at::<9>(start)? else {
        return Ok(None);
    };
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |all, &byte| all << 8 | u32::from(byte));
    if number(&footer[5..]) != TABLE_END {
        return Ok(None);
    }
    let (count, flags) = (u64::from(number(&footer)), footer[4]);
    if flags & 0x7c != 0 {
        return walker.refuse(&format!(
            "a seek table with flags {flags:#04x}, expected one of version 0.1.0 of zstd's seekable format"
        ));
    }
    let entry = if flags & 0x80 == 0 { 8 } else { 12 };
    let inside = count * entry + FOOTER;
    let begin = match bytes.checked_sub(SKIP + inside) {
        Some(begin) => begin,
        None => {
            return walker.refuse(&format!(
                "a seek table of {count} frames, for which its {bytes} bytes are too few; expected the table of this file"
            ));
        }
    };
    let table = walker.many(begin, SKIP + inside)?;
    if number(&table[..4]) != TABLE || u64::from(number(&table[4..8])) != inside {
        return walker.refuse(&format!(
            "a seek table of {count} frames that does not begin at byte {begin}; expected the table of this file"
        ));
    }
    let entries = table[SKIP as usize..].chunks_exact(entry as usize).take(count as usize);
    let lengths: Vec<Border> = entries
        .clone()
        .map(|entry| (u64::from(number(&entry[..4])), u64::from(number(&entry[4..8]))))
        .collect();
    let all: u64 = lengths.iter().map(|&(bytes, _)| bytes).sum();
    if all != begin {
        return walker.refuse(&format!(
            "a seek table of {all} bytes of frames, and {begin} bytes in front of it; expected the table of this file"
        ));
    }
    Ok(Some(Told {
        lengths,
        checks: entries.filter_map(|entry| entry.get(8..12)).map(number).collect(),
        teller: "the seek table",
        bytes: 0,
    }))
}

/// From the first frame to the file's end, by headers of frames and blocks.
pub(super) fn walk(walker: &mut Walker<'_>) -> Result<Vec<Border>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < walker.bytes {
        let start = at;
        let Some(magic) = walker.at(at)?.map(u32::from_le_bytes) else {
            return walker.cut_off("frame", start);
        };
        if is_skipped(magic) {
            match walker.at(at + 4)?.map(u32::from_le_bytes) {
                Some(length) if at + SKIP + u64::from(length) <= walker.bytes => at += SKIP + u64::from(length),
                _ => return walker.cut_off("frame", start),
            }
            found.push((at - start, 0));
            continue;
        }
        if magic != MAGIC {
            return walker.refuse(&format!(
                "no frame of zstd at byte {start}, expected frames to the file's end"
            ));
        }
        let mut head = [0; MOST_HEAD];
        let most = MOST_HEAD.min((walker.bytes - at) as usize);
        for (place, byte) in head[..most].iter_mut().enumerate() {
            *byte = walker.at::<1>(at + place as u64)?.unwrap_or_default()[0];
        }
        let Some(header) = Header::of(&head[..most]) else {
            return walker.cut_off("frame", start);
        };
        let text = match header.text {
            Some(text) if text <= LARGEST => text,
            Some(text) => {
                return walker.refuse(&format!(
                    "the frame at byte {start} has {text} bytes unpacked, expected at most 1 GiB"
                ));
            }
            None => {
                return walker.refuse(&format!(
                    "the frame at byte {start} does not say how large its text is, so that it cannot be entered in the middle; expected an unpacked file, frames that do, or BGZF (`zstd -dc FILE | bgzip > NEW.gz`)"
                ));
            }
        };
        at += header.bytes;
        loop {
            let Some(block) = walker.at(at)?.map(Block::of) else {
                return walker.cut_off("frame", start);
            };
            at += block.bytes;
            if block.is_last {
                break;
            }
        }
        at += header.behind;
        if at > walker.bytes {
            return walker.cut_off("frame", start);
        }
        found.push((at - start, text));
    }
    Ok(found)
}

pub(super) const ONE_FRAME: &str = "one frame of zstd, which cannot be entered in the middle; expected an unpacked file, many frames that say how large their text is, or BGZF (`zstd -dc FILE | bgzip > NEW.gz`)";

/// The longest header of a frame.
const MOST_HEAD: usize = 18;

struct Header {
    bytes: u64,
    text: Option<u64>,
    /// Bytes of the sum behind the last block.
    behind: u64,
}

impl Header {
    fn of(frame: &[u8]) -> Option<Header> {
        let flags = *frame.get(4)?;
        let is_single = flags & 0x20 != 0;
        let dictionary = [0, 1, 2, 4][usize::from(flags & 3)];
        let sized = match flags >> 6 {
            0 => usize::from(is_single),
            power => 1 << power,
        };
        let at = 5 + usize::from(!is_single) + dictionary;
        let size = frame.get(at..at + sized)?;
        let text = size.iter().rev().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
        Some(Header {
            bytes: (at + sized) as u64,
            text: match sized {
                0 => None,
                2 => Some(text + 256),
                _ => Some(text),
            },
            behind: if flags & 4 == 0 { 0 } else { 4 },
        })
    }
}

struct Block {
    /// With its header.
    bytes: u64,
    is_last: bool,
}

impl Block {
    fn of(head: [u8; 3]) -> Block {
        let number = u64::from(head[0]) | u64::from(head[1]) << 8 | u64::from(head[2]) << 16;
        // One byte that comes many times is there once.
        let is_run = number >> 1 & 3 == 1;
        Block {
            bytes: 3 + if is_run { 1 } else { number >> 3 },
            is_last: number & 1 == 1,
        }
    }
}

/// Bytes of what begins a frame, up to the end of its first block; none if `head` is too short to tell.
pub(super) fn first_block(head: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let frame = head.get(at..)?;
        let magic = u32::from_le_bytes(*frame.first_chunk()?);
        if is_skipped(magic) {
            at += SKIP as usize + u32::from_le_bytes(*frame[4..].first_chunk()?) as usize;
            continue;
        }
        let header = Header::of(frame)?;
        let block = frame.get(header.bytes as usize..)?.first_chunk()?;
        return Some(at + (header.bytes + Block::of(*block).bytes) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Headers of RFC 8878: a window and no size; one segment of 1, 2, 4 and 8 bytes of size, with and without a sum and a dictionary.
    #[test]
    fn headers_say_how_large_the_text_is() {
        let header = |bytes: &[u8]| {
            let frame = [&MAGIC.to_le_bytes()[..], bytes].concat();
            Header::of(&frame).map(|header| (header.bytes, header.text, header.behind))
        };
        assert_eq!(header(&[0x04, 0x58]), Some((6, None, 4)));
        assert_eq!(header(&[0x20, 7]), Some((6, Some(7), 0)));
        assert_eq!(header(&[0x64, 7, 1]), Some((7, Some(256 + 256 + 7), 4)));
        assert_eq!(header(&[0x80, 0x58, 7, 0, 1, 0]), Some((10, Some(65_543), 0)));
        assert_eq!(
            header(&[0xe3, 1, 2, 3, 4, 1, 0, 0, 0, 1, 0, 0, 0]),
            Some((17, Some((1 << 32) + 1), 0))
        );
        assert_eq!(header(&[0xe3, 1, 2, 3, 4, 1, 0]), None);
    }

    #[test]
    fn blocks_say_how_long_they_are() {
        let block = |number: u32| {
            let bytes = number.to_le_bytes();
            let block = Block::of([bytes[0], bytes[1], bytes[2]]);
            (block.bytes, block.is_last)
        };
        assert_eq!(block(100 << 3 | 2 << 1), (103, false));
        assert_eq!(block(100_000 << 3 | 1), (100_003, true));
        // 5000 times one byte.
        assert_eq!(block(5000 << 3 | 1 << 1), (4, false));
    }
}
