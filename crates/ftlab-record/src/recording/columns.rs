//! Calls as columns of numbers: what a block of a recording holds before it is compressed.
//!
//! A block stands for itself: predictions (the last call's file, where the last call on a file ended) start anew in each. Numbers
//! are LEB128; signed ones are zigzag. The columns follow each other, one after the other for all calls of the block:
//!
//! | column | what |
//! | --- | --- |
//! | time | ns since the call before; the first since the start of the recording |
//! | duration | ns |
//! | call and flags | call + 16 × flags |
//! | file | less that of the call before, signed |
//! | offset | less the end of the block's last call on the file, signed |
//! | length | bytes; of a hint, its number |
//! | context, process | numbers |
//! | tid | less that of the call before, signed |
//! | pages with contents | 0, or as many as the call touches |
//! | contents | of each of these pages, its number and those of its four chunks: 0 unknown, 1 a new one, else 2 + the newest number less it |
//! | pieces | only where a recording knows smaller chunks: of each new chunk of 1 KiB, in the order of their numbers, the numbers of the two or four that it consists of, likewise |
//!
//! Pages, chunks and pieces are numbered by themselves, from 1 on in the order in which a content was first seen; equal numbers mean equal
//! contents. Those of a block follow on those of the blocks before.

use rustc_hash::FxHashMap;

use super::{Call, LARGEST_HINT, Op};
use crate::replay::Content;

/// Most calls of a block.
pub const MOST_OPS: usize = 1 << 14;
/// Most pages with contents of a block.
pub const MOST_PAGES: usize = 1 << 20;
/// Largest place in a file: what a signed 64-bit offset can say, less room to add to it.
const LARGEST: u64 = 1 << 60;
/// Most bytes of one read or write: more than the kernel moves at once (`MAX_RW_COUNT`).
const LONGEST: u64 = 1 << 31;

/// Highest numbers of contents so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Newest {
    pub page: u64,
    pub chunk: u64,
    pub piece: u64,
}

/// Calls with the contents of the pages they touch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    pub ops: Vec<Op>,
    pub contents: Vec<Content>,
    /// Where the contents of a call end.
    pub ends: Vec<usize>,
    /// Numbers of the smaller chunks that each chunk of 1 KiB consists of which is new in the block, one after the other.
    pub pieces: Vec<u64>,
}

impl Calls {
    pub fn push(&mut self, op: Op, contents: &[Content]) {
        self.ops.push(op);
        self.contents.extend_from_slice(contents);
        self.ends.push(self.contents.len());
    }

    pub fn clear(&mut self) {
        self.ops.clear();
        self.contents.clear();
        self.ends.clear();
        self.pieces.clear();
    }

    /// Contents of the pages that call `i` touches; empty where they are not known.
    pub fn contents_of(&self, i: usize) -> &[Content] {
        let start = i
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or(0);
        self.ends
            .get(i)
            .and_then(|&end| self.contents.get(start..end))
            .unwrap_or(&[])
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Op, &[Content])> {
        self.ops.iter().enumerate().map(|(i, op)| (op, self.contents_of(i)))
    }
}

/// How many of each table calls may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub files: usize,
    pub contexts: usize,
    pub processes: usize,
    /// Smaller chunks with numbers of which a chunk of 1 KiB consists; 1: none.
    pub pieces: usize,
}

/// Appends the columns of a block. `newest` is brought up to date.
pub fn encode(calls: &Calls, time_before: u64, newest: &mut Newest, into: &mut Vec<u8>) {
    let mut time = time_before;
    for op in &calls.ops {
        put(into, op.time_ns - time);
        time = op.time_ns;
    }
    calls.ops.iter().for_each(|op| put(into, op.duration_ns.into()));
    calls.ops.iter().for_each(|op| into.push(op.call as u8 | op.flags << 4));
    let mut file = 0;
    for op in &calls.ops {
        put_signed(into, i64::from(op.file) - file);
        file = op.file.into();
    }
    let mut ends: FxHashMap<u32, u64> = FxHashMap::default();
    for op in &calls.ops {
        let expected = ends.insert(op.file, op.offset.saturating_add(op.length)).unwrap_or(0);
        put_signed(into, op.offset.wrapping_sub(expected) as i64);
    }
    calls.ops.iter().for_each(|op| put(into, op.length));
    calls.ops.iter().for_each(|op| put(into, op.context.into()));
    calls.ops.iter().for_each(|op| put(into, op.process.into()));
    let mut tid = 0;
    for op in &calls.ops {
        put_signed(into, i64::from(op.tid) - tid);
        tid = op.tid.into();
    }
    for i in 0..calls.ops.len() {
        put(into, calls.contents_of(i).len() as u64);
    }
    let number = |into: &mut Vec<u8>, newest: &mut u64, number: u64| {
        if number > *newest {
            *newest = number;
            return put(into, 1);
        }
        put(into, if number == 0 { 0 } else { 2 + (*newest - number) });
    };
    for content in &calls.contents {
        number(into, &mut newest.page, content.page);
        for chunk in content.chunks {
            number(into, &mut newest.chunk, chunk);
        }
    }
    for &piece in &calls.pieces {
        number(into, &mut newest.piece, piece);
    }
}

/// Reads the columns of a block of `n` calls; every number is checked.
pub fn decode(
    bytes: &[u8],
    n: usize,
    time_before: u64,
    newest: &mut Newest,
    limits: Limits,
    calls: &mut Calls,
) -> Result<(), &'static str> {
    if n > MOST_OPS {
        return Err("more calls than a block may have");
    }
    let mut bytes = bytes;
    let from = &mut bytes;
    let blank = Op {
        time_ns: 0,
        duration_ns: 0,
        call: Call::Read,
        flags: 0,
        file: 0,
        offset: 0,
        length: 0,
        context: 0,
        process: 0,
        tid: 0,
    };
    calls.clear();
    calls.ops.resize(n, blank);
    let mut time = time_before;
    for op in &mut calls.ops {
        time = time
            .checked_add(get(from)?)
            .filter(|&t| t <= LARGEST * 8)
            .ok_or("a time beyond 292 years")?;
        op.time_ns = time;
    }
    for op in &mut calls.ops {
        op.duration_ns = u32::try_from(get(from)?).map_err(|_| "a duration beyond 4 s")?;
    }
    for op in &mut calls.ops {
        let (&byte, rest) = from.split_first().ok_or(SHORT)?;
        *from = rest;
        op.call = Call::from_code(byte & 15).ok_or("an unknown call")?;
        op.flags = byte >> 4;
    }
    let mut file = 0i64;
    for op in &mut calls.ops {
        file = file.checked_add(get_signed(from)?).ok_or(NO_FILE)?;
        op.file = u32::try_from(file)
            .ok()
            .filter(|&f| (f as usize) < limits.files)
            .ok_or(NO_FILE)?;
    }
    let mut shifts = Vec::with_capacity(n);
    for _ in 0..n {
        shifts.push(get_signed(from)?);
    }
    for op in &mut calls.ops {
        op.length = get(from)?;
        let longest = match op.call {
            Call::Read | Call::Write => LONGEST,
            Call::Hint => LARGEST_HINT,
            _ => LARGEST,
        };
        if op.length > longest {
            return Err("a call on more bytes than possible");
        }
    }
    let mut ends: FxHashMap<u32, u64> = FxHashMap::default();
    for (op, shift) in calls.ops.iter_mut().zip(shifts) {
        let end = ends.entry(op.file).or_insert(0);
        op.offset = end.wrapping_add(shift as u64);
        if op.offset > LARGEST {
            return Err("a place in a file beyond 2^60");
        }
        *end = op.offset.saturating_add(op.length);
    }
    for op in &mut calls.ops {
        op.context = number_below(from, limits.contexts, "a program context that is not in the table")?;
    }
    for op in &mut calls.ops {
        op.process = number_below(from, limits.processes, "a process that is not in the table")?;
    }
    let mut tid = 0i64;
    for op in &mut calls.ops {
        tid = tid.checked_add(get_signed(from)?).ok_or("a thread beyond 2^32")?;
        op.tid = u32::try_from(tid).map_err(|_| "a thread beyond 2^32")?;
    }
    let mut pages = 0usize;
    for op in &calls.ops {
        let here = get(from)?;
        let (first, past) = op.pages();
        if here != 0 && here != past - first {
            return Err("contents of other pages than the call's");
        }
        pages += usize::try_from(here)
            .ok()
            .filter(|&n| n <= MOST_PAGES)
            .ok_or("too many contents")?;
        calls.ends.push(pages);
    }
    // Each page takes at least five bytes.
    if pages > from.len() {
        return Err(SHORT);
    }
    let chunks_before = newest.chunk;
    for _ in 0..pages {
        let page = content(from, &mut newest.page)?;
        let mut chunks = [0; 4];
        for chunk in &mut chunks {
            *chunk = content(from, &mut newest.chunk)?;
        }
        calls.contents.push(Content { page, chunks });
    }
    let new = if limits.pieces > 1 {
        newest.chunk - chunks_before
    } else {
        0
    };
    for _ in 0..new * limits.pieces as u64 {
        let piece = content(from, &mut newest.piece)?;
        calls.pieces.push(piece);
    }
    match from.is_empty() {
        true => Ok(()),
        false => Err("more bytes than its columns"),
    }
}

const SHORT: &str = "fewer bytes than its columns";
const NO_FILE: &str = "a file that is not in the table";

fn number_below(from: &mut &[u8], limit: usize, what: &'static str) -> Result<u32, &'static str> {
    let number = get(from)?;
    u32::try_from(number).ok().filter(|&n| (n as usize) < limit).ok_or(what)
}

fn content(from: &mut &[u8], newest: &mut u64) -> Result<u64, &'static str> {
    Ok(match get(from)? {
        0 => 0,
        1 => {
            *newest += 1;
            *newest
        }
        back => newest
            .checked_sub(back - 2)
            .filter(|&n| n > 0)
            .ok_or("a content that was not there")?,
    })
}

fn put(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn put_signed(into: &mut Vec<u8>, number: i64) {
    put(into, (number << 1 ^ number >> 63) as u64);
}

fn get(from: &mut &[u8]) -> Result<u64, &'static str> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first().ok_or(SHORT)?;
        *from = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            break;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number beyond 2^64")
}

fn get_signed(from: &mut &[u8]) -> Result<i64, &'static str> {
    let number = get(from)?;
    Ok((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut bytes = Vec::new();
        for number in [0, 1, 127, 128, 1 << 35, u64::MAX] {
            put(&mut bytes, number);
        }
        for number in [0, -1, 63, -64, i64::MIN, i64::MAX] {
            put_signed(&mut bytes, number);
        }
        let from = &mut bytes.as_slice();
        for number in [0, 1, 127, 128, 1 << 35, u64::MAX] {
            assert_eq!(get(from), Ok(number));
        }
        for number in [0, -1, 63, -64, i64::MIN, i64::MAX] {
            assert_eq!(get_signed(from), Ok(number));
        }
        assert_eq!(get(from), Err(SHORT));
        assert!(get(&mut &[0xff; 11][..]).is_err());
        assert_eq!(
            get(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]).ok(),
            None
        );
    }
}
