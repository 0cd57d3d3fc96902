//! ftlab's own binary form: columns in blocks, made to be read fast.
//!
//! # Origin
//! ftlab, version 3. All numbers are little-endian. Version 1 had no blocks of names, version 2 no ids of chunks.
//!
//! # Columns
//! The file is a header, blocks, and an end block.
//!
//! | header | bytes |
//! | --- | --- |
//! | magic `89 46 54 4c 41 42 0d 0a` | 8 |
//! | version, 3 (1 and 2 are read as well) | 4 |
//! | flags: bit 0 = the volumes lie in one address space | 4 |
//! | length of the names | 4 |
//! | CRC-32 of the 20 bytes before and of the names | 4 |
//! | names: JSON `{"volumes":[…],"labels":[…]}` | as given |
//!
//! | block | bytes |
//! | --- | --- |
//! | requests n, at most 65536; 0 in the end block and in a block of names | 4 |
//! | length of the columns | 4 |
//! | form of each column, two bits each, lowest first: 0 absent, 1 one value for all, 2 n values | 4 |
//! | CRC-32 of the 12 bytes before and of the columns | 4 |
//! | the columns that are not absent, in the order below | as given |
//!
//! | column | type | unit |
//! | --- | --- | --- |
//! | time | u64 | ns since the start |
//! | op | u8: 0 read, 1 write, 2 trim, 3 flush | |
//! | offset | u64 | bytes |
//! | length | u32, 0 for a flush and only there | bytes |
//! | volume | u16 | |
//! | flags | u8: 1 FUA, 2 synchronous, 4 metadata | |
//! | stream | u16 | |
//! | pc | u64 | |
//! | pid | u32 | |
//! | label | u16 | |
//! | end of the request's content ids | u32 | |
//! | content ids; their count is the last end | u64 |
//! | ids of chunks, four for each content id (of 1 KiB), or eight or sixteen (512 and 256 B); 0 is unknown | u64 | |
//!
//! The first six are always there. The end block's columns are the number of requests as a u64; a file without an end
//! block is cut off. A block of names has 1 in the place of the forms, and JSON like the header's instead of columns.
//! Its names follow those read so far, and come before the requests that use them.
//!
//! # What is dropped
//! Nothing.

use ftlab_core::request::{CHUNKS, CHUNKS_EACH};
use ftlab_core::{Batch, Error, OpKind, Result};

use super::{Claim, Progress, Reader, Sample, Strength};
use crate::columns::LARGEST;
use crate::input::{Input, LONGEST};
use crate::settings::{Setting, Settings};

pub(crate) const MAGIC: [u8; 8] = *b"\x89FTLAB\r\n";
pub(crate) const VERSION: u32 = 3;
/// In the place of a block's forms: a block of names.
pub(crate) const NAMES: u32 = 1;
/// Most bytes of names, in the header or in a block.
const MOST_NAMES: usize = 1 << 24;
/// Flag of the header.
pub(crate) const ONE_ADDRESS_SPACE: u32 = 1;
pub(crate) const MOST_RECORDS: usize = 1 << 16;
pub(crate) const HEADER: usize = 24;
pub(crate) const BLOCK_HEADER: usize = 16;
/// Columns of a block, in order, the ids of chunks being the last.
pub(crate) const COLUMNS: usize = 13;

/// How a block stores a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Form {
    Absent = 0,
    Constant = 1,
    Plain = 2,
}

impl Form {
    fn of(word: u32, column: usize) -> Option<Self> {
        match word >> (2 * column) & 3 {
            0 => Some(Form::Absent),
            1 => Some(Form::Constant),
            2 => Some(Form::Plain),
            _ => None,
        }
    }
}

/// The names of the header.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Names {
    #[serde(default)]
    pub volumes: Vec<String>,
    #[serde(default)]
    pub labels: Vec<String>,
}

struct Blocks {
    input: Input,
    names: Names,
    name_bytes: usize,
    one_address_space: bool,
    records: u64,
    blocks: u64,
    ended: bool,
}

pub const SETTINGS: &[Setting] = &[];

/// Five requests with every column.
pub fn sample() -> Vec<u8> {
    let mut batch = Batch::default();
    for i in 0..5u16 {
        let time = u64::from(i);
        batch.push(time, OpKind::ALL[usize::from(i) % 4], time << 12, 4096, i % 2, 1);
        if batch.op.last() == Some(&OpKind::Flush) {
            batch.length[usize::from(i)] = 0;
        }
        batch.stream.push(i);
        batch.pc.push(time << 40);
        batch.pid.push(7);
        batch.label.push(i % 3);
        batch.content.push(time);
        batch.content_end.push(batch.content.len() as u32);
    }
    let names = Names {
        volumes: vec!["a".to_owned(), "b".to_owned()],
        labels: vec!["log".to_owned(), "data".to_owned(), "index".to_owned()],
    };
    crate::write::to_bytes("ftlab", &batch, &names).unwrap_or_default()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    sample
        .bytes
        .starts_with(&MAGIC)
        .then(|| Claim::new(Strength::Sure, "the magic number of ftlab's own form"))
}

pub fn open(mut input: Input, _: &Settings) -> Result<Box<dyn Reader>> {
    let fixed: [u8; HEADER] = copy_of(need(&mut input, HEADER, "a header of 24 bytes")?);
    let word = |i: usize| u32_at(&fixed, i);
    if fixed[..8] != MAGIC {
        return Err(damaged(&input, 0, "expected the magic number of ftlab's own form"));
    }
    if !(1..=VERSION).contains(&word(8)) {
        let found = format!("version {} is not known, expected at most {VERSION}", word(8));
        return Err(damaged(&input, 8, &found));
    }
    let length = word(16) as usize;
    if length > MOST_NAMES {
        return Err(damaged(&input, 16, "expected names of at most 16 MiB"));
    }
    let bytes = &need(&mut input, HEADER + length, "the names of the header")?[HEADER..];
    let crc = checksum(&fixed[..20], bytes);
    let names: Option<Names> = serde_json::from_slice(bytes).ok();
    if crc != word(20) {
        return Err(damaged(&input, 0, "the checksum of the header does not match"));
    }
    let names = names.ok_or_else(|| damaged(&input, HEADER as u64, "expected the names as JSON"))?;
    let one_address_space = word(12) & ONE_ADDRESS_SPACE != 0;
    input.consume(HEADER + length);
    Ok(Box::new(Blocks {
        input,
        names,
        name_bytes: length,
        one_address_space,
        records: 0,
        blocks: 0,
        ended: false,
    }))
}

impl Reader for Blocks {
    fn read(&mut self, batch: &mut Batch) -> Result<()> {
        while !self.ended && batch.is_empty() {
            self.block(batch)?;
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress::default()
    }

    fn volumes(&self) -> &[String] {
        &self.names.volumes
    }

    fn labels(&self) -> &[String] {
        &self.names.labels
    }

    fn input(&self) -> &Input {
        &self.input
    }

    fn one_address_space(&self) -> bool {
        self.one_address_space
    }
}

impl Blocks {
    /// The next block: requests, names, or the end.
    fn block(&mut self, batch: &mut Batch) -> Result<()> {
        let what = "a block's header (the file has no end block)";
        let header: [u8; BLOCK_HEADER] = copy_of(need(&mut self.input, BLOCK_HEADER, what)?);
        let (n, length, forms) = (
            u32_at(&header, 0) as usize,
            u32_at(&header, 4) as usize,
            u32_at(&header, 8),
        );
        if n > MOST_RECORDS || length > LONGEST {
            return Err(damaged(
                &self.input,
                0,
                "expected at most 65536 requests in a block of at most 64 MiB",
            ));
        }
        let what = "the columns of a block";
        let columns = &need(&mut self.input, BLOCK_HEADER + length, what)?[BLOCK_HEADER..];
        if checksum(&header[..12], columns) != u32_at(&header, 12) {
            let block = self.blocks;
            return Err(damaged(
                &self.input,
                0,
                &format!("the checksum of block {block} does not match"),
            ));
        }
        if n == 0 && forms == NAMES {
            let new: Option<Names> = serde_json::from_slice(columns).ok();
            let room = MOST_NAMES.saturating_sub(self.name_bytes);
            let Some(new) = new.filter(|_| columns.len() <= room) else {
                return Err(damaged(
                    &self.input,
                    0,
                    "expected names as JSON, all of them at most 16 MiB",
                ));
            };
            self.name_bytes += columns.len();
            self.names.volumes.extend(new.volumes);
            self.names.labels.extend(new.labels);
        } else if n == 0 {
            let total = (columns.len() == 8).then(|| u64_at(columns, 0));
            if total != Some(self.records) {
                let counted = self.records;
                let found = format!("the end block does not say {counted}, the number of requests before it");
                return Err(damaged(&self.input, 0, &found));
            }
        } else if let Err(what) = decode(columns, n, forms, batch) {
            batch.clear();
            return Err(damaged(&self.input, 0, &format!("block {}: {what}", self.blocks)));
        }
        self.input.consume(BLOCK_HEADER + length);
        self.records += n as u64;
        self.blocks += 1;
        if n == 0 && forms != NAMES {
            self.ended = true;
            if self.input.bytes().is_empty() {
                self.input.fill()?;
            }
            if !self.input.bytes().is_empty() {
                return Err(damaged(&self.input, 0, "expected nothing behind the end block"));
            }
        }
        let highest = batch.volume.iter().fold(0, |a, &b| a.max(b));
        while self.names.volumes.len() <= usize::from(highest) && n > 0 {
            self.names.volumes.push(self.names.volumes.len().to_string());
        }
        Ok(())
    }
}

/// CRC-32 of a header's part and what follows it.
pub(crate) fn checksum(head: &[u8], body: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(head);
    crc.update(body);
    crc.finalize()
}

/// At least `n` bytes of the input, or a sentence that it is cut off.
fn need<'a>(input: &'a mut Input, n: usize, what: &str) -> Result<&'a [u8]> {
    while input.bytes().len() < n {
        if input.ended() {
            let missing = n - input.bytes().len();
            return Err(damaged(
                input,
                0,
                &format!("cut off, expected {what}: {missing} bytes are missing"),
            ));
        }
        input.fill()?;
    }
    Ok(&input.bytes()[..n])
}

fn damaged(input: &Input, at: u64, what: &str) -> Error {
    Error::input(format!("{}, byte {}: {what}", input.name(), input.offset() + at))
}

/// Fills an empty batch from a block's columns; every length and code is checked first.
fn decode(bytes: &[u8], n: usize, forms: u32, batch: &mut Batch) -> std::result::Result<(), String> {
    if forms >> (2 * COLUMNS) != 0 {
        return Err("unknown columns".to_owned());
    }
    let mut columns = BlockColumns {
        bytes,
        n,
        forms,
        next: 0,
    };
    columns.read(&mut batch.time_ns, u64::from_le_bytes, true)?;
    let mut codes = Vec::new();
    columns.read(&mut codes, u8::from_le_bytes, true)?;
    if codes.iter().any(|&code| OpKind::from_code(code).is_none()) {
        return Err("an operation other than 0 to 3".to_owned());
    }
    batch
        .op
        .extend(codes.iter().map(|&code| OpKind::ALL[usize::from(code & 3)]));
    columns.read(&mut batch.offset, u64::from_le_bytes, true)?;
    if batch.offset.iter().fold(0, |a, &b| a.max(b)) > LARGEST {
        return Err("an offset beyond 2^60".to_owned());
    }
    columns.read(&mut batch.length, u32::from_le_bytes, true)?;
    let empty = |(&op, &length): (&OpKind, &u32)| (op == OpKind::Flush) == (length == 0);
    if !batch.op.iter().zip(&batch.length).all(empty) {
        return Err("a request of no bytes that is not a flush, or a flush with bytes".to_owned());
    }
    columns.read(&mut batch.volume, u16::from_le_bytes, true)?;
    columns.read(&mut batch.flags, u8::from_le_bytes, true)?;
    columns.read(&mut batch.stream, u16::from_le_bytes, false)?;
    columns.read(&mut batch.pc, u64::from_le_bytes, false)?;
    columns.read(&mut batch.pid, u32::from_le_bytes, false)?;
    columns.read(&mut batch.label, u16::from_le_bytes, false)?;
    columns.read(&mut batch.content_end, u32::from_le_bytes, false)?;
    if !batch.content_end.is_sorted() {
        return Err("the ends of content ids decrease".to_owned());
    }
    columns.n = batch.content_end.last().map_or(0, |&end| end as usize);
    columns.read(&mut batch.content, u64::from_le_bytes, columns.n > 0)?;
    let ids = columns.n;
    // The last column's length says how many there are for each id.
    let each = CHUNKS_EACH
        .into_iter()
        .find(|each| columns.bytes.len() == 8 * each * ids);
    columns.n = ids * each.unwrap_or(CHUNKS);
    columns.read(&mut batch.chunk, u64::from_le_bytes, false)?;
    let chunks_fit = batch.chunk.is_empty() || batch.chunk.len() == columns.n;
    if batch.content.len() != ids || !chunks_fit || !columns.bytes.is_empty() {
        return Err("the columns have another length than the block".to_owned());
    }
    Ok(())
}

/// The columns of a block that have not been read yet.
struct BlockColumns<'a> {
    bytes: &'a [u8],
    n: usize,
    forms: u32,
    next: usize,
}

impl BlockColumns<'_> {
    fn read<T: Clone, const SIZE: usize>(
        &mut self,
        into: &mut Vec<T>,
        value: impl Fn([u8; SIZE]) -> T,
        needed: bool,
    ) -> std::result::Result<(), String> {
        let (column, form) = (self.next, Form::of(self.forms, self.next));
        self.next += 1;
        let length = match form {
            Some(Form::Absent) if !needed => 0,
            Some(Form::Constant) => SIZE,
            Some(Form::Plain) => self.n.saturating_mul(SIZE),
            _ => return Err(format!("column {column} is missing or has an unknown form")),
        };
        if length > self.bytes.len() {
            return Err(format!("column {column} is longer than the block"));
        }
        // A content column of one value may stand for more ids than a block can hold; nothing writes that.
        if form == Some(Form::Constant) && self.n > 16 * MOST_RECORDS {
            return Err(format!("column {column} has too many values"));
        }
        let (here, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        into.clear();
        if form == Some(Form::Constant) {
            into.resize(self.n, value(copy_of(here)));
        } else {
            into.extend(here.as_chunks::<SIZE>().0.iter().map(|chunk| value(*chunk)));
        }
        Ok(())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(copy_of(&bytes[at..]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(copy_of(&bytes[at..]))
}

/// The first `N` bytes; callers have checked that they are there.
fn copy_of<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut copy = [0; N];
    copy.copy_from_slice(&bytes[..N]);
    copy
}

#[cfg(test)]
mod tests {
    use super::super::testing::{read, read_all};
    use super::*;
    use crate::write::{Options, Writer};

    fn sample() -> (Batch, Vec<u8>) {
        let mut batch = Batch::default();
        batch.push(0, OpKind::Write, 4096, 8192, 0, 2);
        batch.push(5, OpKind::Read, 0, 512, 1, 0);
        batch.push(5, OpKind::Flush, 0, 0, 0, 0);
        batch.pc = vec![7, 8, 9];
        batch.content = vec![11, 12];
        batch.content_end = vec![2, 2, 2];
        batch.chunk = (21..29).collect();
        let bytes = crate::write::to_bytes("ftlab", &batch, &Names::default()).unwrap();
        (batch, bytes)
    }

    fn open_bytes(bytes: Vec<u8>) -> Result<Batch> {
        let input = Input::from_bytes("t.ftlab", bytes)?;
        let mut reader = open(input, &Settings::default())?;
        read_all(reader.as_mut())
    }

    #[test]
    fn three_requests() {
        let (mut batch, bytes) = sample();
        assert_eq!(read(&bytes), ("ftlab", batch.clone()));
        for each in [8, 16] {
            batch.chunk = (21..21 + 2 * each).collect();
            let bytes = crate::write::to_bytes("ftlab", &batch, &Names::default()).unwrap();
            assert_eq!(read(&bytes), ("ftlab", batch.clone()));
        }
    }

    #[test]
    fn names_that_come_later_are_there_in_time() {
        let (batch, _) = sample();
        let mut writer = Writer::new("ftlab", &Options::default(), Vec::new()).unwrap();
        let mut names = Names::default();
        names.volumes.push("a".to_owned());
        writer.names(&names);
        let mut first = Batch::default();
        for i in 0..Batch::TARGET as u64 {
            first.push(i, OpKind::Read, 0, 512, 0, 0);
        }
        writer.write(&first).unwrap();
        names.volumes.push("b".to_owned());
        names.labels.push("log".to_owned());
        writer.names(&names);
        writer.write(&batch).unwrap();
        let input = Input::from_bytes("t", writer.finish().unwrap().sink).unwrap();
        let mut reader = open(input, &Settings::default()).unwrap();
        let mut read = Batch::default();
        reader.read(&mut read).unwrap();
        assert_eq!((read.len(), reader.volumes()), (Batch::TARGET, &["a".to_owned()][..]));
        read.clear();
        reader.read(&mut read).unwrap();
        assert_eq!(
            (&read, reader.volumes()),
            (&batch, &["a".to_owned(), "b".to_owned()][..])
        );
        assert_eq!(reader.labels(), ["log"]);
    }

    #[test]
    fn damage_is_one_sentence_with_a_byte() {
        let (_, bytes) = sample();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let error = open_bytes(damaged).unwrap_err().to_string();
            assert!(error.starts_with("t.ftlab, byte "), "{at}: {error}");
            let error = open_bytes(bytes[..at].to_vec()).unwrap_err().to_string();
            assert!(error.contains("cut off"), "{at}: {error}");
        }
    }

    #[test]
    fn a_lost_block_is_noticed_at_the_end() {
        let (_, bytes) = sample();
        let end = bytes.len() - BLOCK_HEADER - 8;
        let first = bytes.iter().position(|&b| b == b'}').unwrap() + 1;
        let error = open_bytes([&bytes[..first], &bytes[end..]].concat())
            .unwrap_err()
            .to_string();
        assert!(error.contains("the end block does not say 0"), "{error}");
        let error = open_bytes([&bytes[..], b"x"].concat()).unwrap_err().to_string();
        assert!(error.contains("expected nothing behind the end block"), "{error}");
    }

    #[test]
    fn what_lies_before_the_damage_is_kept() {
        let (batch, mut bytes) = sample();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let mut reader = open(Input::from_bytes("t", bytes).unwrap(), &Settings::default()).unwrap();
        let mut first = Batch::default();
        reader.read(&mut first).unwrap();
        assert_eq!(first, batch);
        first.clear();
        assert!(
            reader
                .read(&mut first)
                .unwrap_err()
                .to_string()
                .contains("checksum of block 1")
        );
    }
}
