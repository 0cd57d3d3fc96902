//! BGZF: gzip whose members, of at most 64 KiB, say how long they are.
//!
//! # Source
//! SAM format specification 1.6, section 4.1; the index of htslib's bgzip: the number of entries, then for each block but the first its places in the file and in the text.

use std::fs;
use std::path::Path;

use ftlab_core::{Error, Result};

use super::walker::Walker;
use super::{Border, Told};

/// Of a member's header, up to its compressed data.
pub(super) const HEAD: usize = 18;
/// A member's sum and the size of its text.
pub(super) const TAIL: usize = 8;
/// The member without text at the end of each file.
const END: [u8; 28] = *b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x1b\0\x03\0\0\0\0\0\0\0\0\0";

/// Whether a file that begins so is BGZF.
pub(super) fn begins(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|head| length(head).is_some())
}

/// Bytes of the member that begins so, if it says them.
pub(super) fn length(head: &[u8; HEAD]) -> Option<usize> {
    let is_one = head[..4] == *b"\x1f\x8b\x08\x04" && head[10..16] == *b"\x06\0BC\x02\0";
    let bytes = usize::from(u16::from_le_bytes([head[16], head[17]])) + 1;
    (is_one && bytes >= HEAD + TAIL).then_some(bytes)
}

/// A file that lacks its last member has lost others as well, perhaps.
pub(super) fn expect_end(walker: &mut Walker<'_>) -> Result<()> {
    let found = match walker.bytes.checked_sub(END.len() as u64) {
        Some(place) => walker.at(place)?,
        None => None,
    };
    if found == Some(END) {
        return Ok(());
    }
    walker.refuse(
        "BGZF without the empty block that bgzip writes at its end, so it may be cut off; expected the whole file",
    )
}

/// What the index beside the file says, if there is one.
pub(super) fn told(path: &Path, walker: &mut Walker<'_>) -> Result<Option<Told>> {
    let mut name = path.as_os_str().to_owned();
    name.push(".gzi");
    let beside = Path::new(&name);
    if !beside.is_file() {
        return Ok(None);
    }
    let content = fs::read(beside).map_err(|e| Error::io(beside, &e))?;
    let refuse = |what: String| Err(Error::input(format!("{}: {what}", beside.display())));
    let (numbers, rest) = content.as_chunks::<8>();
    let numbers: Vec<u64> = numbers.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect();
    let pairs = match numbers.split_first() {
        Some((&count, pairs)) if rest.is_empty() && count.checked_mul(2) == Some(pairs.len() as u64) => pairs,
        _ => {
            return refuse(format!(
                "{} bytes that are no index of BGZF, expected what `bgzip -r` writes",
                content.len()
            ));
        }
    };
    let mut borders: Vec<Border> = vec![(0, 0)];
    borders.extend(pairs.as_chunks::<2>().0.iter().map(|&[bytes, text]| (bytes, text)));
    let is_right = borders
        .windows(2)
        .all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
    let last = borders[borders.len() - 1].0;
    if !is_right || last >= walker.bytes {
        return refuse(format!(
            "places that go back or beyond the {} bytes of {}, expected what `bgzip -r` writes",
            walker.bytes,
            path.display()
        ));
    }
    if walker.at(last)?.is_none_or(|head| length(&head).is_none()) {
        return refuse(format!(
            "a block at byte {last} of {}, where none begins; expected what `bgzip -r` writes",
            path.display()
        ));
    }
    let mut lengths: Vec<Border> = borders
        .windows(2)
        .map(|two| (two[1].0 - two[0].0, two[1].1 - two[0].1))
        .collect();
    lengths.extend(walk(walker, last)?);
    Ok(Some(Told {
        lengths,
        checks: Vec::new(),
        teller: "the .gzi beside it",
        bytes: content.len() as u64,
    }))
}

/// From a member on to the file's end, by the length that each says.
pub(super) fn walk(walker: &mut Walker<'_>, from: u64) -> Result<Vec<Border>> {
    let mut found = Vec::new();
    let mut at = from;
    while at < walker.bytes {
        let Some(head) = walker.at::<HEAD>(at)? else {
            return walker.cut_off("block", at);
        };
        let Some(bytes) = length(&head) else {
            return walker.refuse(&format!(
                "no block of BGZF at byte {at}, expected blocks to the file's end"
            ));
        };
        let Some(text) = walker.at(at + bytes as u64 - 4)? else {
            return walker.cut_off("block", at);
        };
        found.push((bytes as u64, u64::from(u32::from_le_bytes(text))));
        at += bytes as u64;
    }
    Ok(found)
}
