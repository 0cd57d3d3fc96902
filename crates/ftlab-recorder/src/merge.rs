//! The spools of a program become one recording.
//!
//! # Model
//! Two passes. The first ([`gather`](crate::gather)) finds what the tables say; the second
//! takes the calls in order of time (ties: spools in order of their names) and writes them, with contents numbered in the order in
//! which they were first seen. A spool is in memory only while calls of it are outstanding.
//!
//! Calls of one thread whose times go back are given the time of the call before.
//! # Not modelled
//! Which of two calls of two threads came first within their durations.
//! # Cost
//! Memory of the longest-lived threads' spools together, and 40 bytes for each content that differs from all others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::io::Write;
use std::path::Path;

use ftlab_core::request::together;
use ftlab_core::{Error, Result};
use rustc_hash::FxHashMap;

use crate::gather::Gathered;
use crate::opened::Opened;
use ftlab_record::recording::{Call, LARGEST_HINT, Op, Writer, op_flags};
use ftlab_record::replay::Content;
use ftlab_record::spool::{self, CHUNK, Header, PageIds, Record, Spool};

/// A spool of which calls are outstanding.
struct OpenSpool {
    bytes: Vec<u8>,
    name: String,
    /// Records behind the call at hand.
    at: usize,
    call: spool::Operation,
    /// Contents that follow it.
    pages: Vec<(u64, PageIds)>,
    header: Header,
    last: u64,
}

/// Writes the calls of a gathered folder; `into` is the file.
pub fn write<W: Write>(gathered: &Gathered, into: W) -> Result<(u64, W)> {
    let mut writer = Writer::new(into, &gathered.tables)?;
    let mut numbers = Numbers::of(gathered.tables.pieces());
    // Bytes of the chunks whose contents were compared; none if none were.
    let chunk = gathered.tables.content.then_some(CHUNK / gathered.tables.pieces());
    let mut opened = Opened::default();
    // Spools of each process image that have calls outstanding.
    let mut left: FxHashMap<u64, usize> = FxHashMap::default();
    for facts in &gathered.spools {
        *left.entry(facts.image).or_default() += 1;
    }
    let mut waiting = gathered.spools.iter().enumerate().peekable();
    let mut open: FxHashMap<usize, OpenSpool> = FxHashMap::default();
    let mut queue: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    loop {
        let next = queue.peek().map_or(u64::MAX, |&Reverse((time, _))| time);
        if let Some((which, facts)) = waiting.next_if(|(_, facts)| facts.first_op <= next) {
            if let Some(spool) = OpenSpool::open(&facts.path, chunk)? {
                queue.push(Reverse((spool.last, which)));
                open.insert(which, spool);
            }
            continue;
        }
        let Some(Reverse((time, which))) = queue.pop() else {
            break;
        };
        let Some(spool) = open.get_mut(&which) else {
            continue;
        };
        if spool.call.op == spool::Op::Map {
            let by = (spool.header.image, spool.call.file);
            if let Some(&file) = gathered.files.get(&by) {
                opened.mapped(file, by);
            }
        }
        let last = gathered.op(spool, time);
        if let Some(op) = last {
            let by = (spool.header.image, spool.call.file);
            let nameless = gathered.nameless.contains(&by);
            let by = (op.file != 0 && !gathered.named.contains(&by)).then_some(by);
            let [before, op] = opened.pass(op, by, nameless);
            if let Some(before) = before {
                writer.push(before, &[])?;
            }
            if let Some(op) = op {
                numbers.look_up(&op, &spool.pages);
                writer.push_pieces(&numbers.new);
                writer.push(op, &numbers.contents)?;
            }
        }
        if spool.advance(chunk) {
            queue.push(Reverse((spool.last, which)));
            continue;
        }
        let header = spool.header;
        drop(open.remove(&which));
        let spools = left.entry(header.image).or_default();
        *spools = spools.saturating_sub(1);
        if *spools == 0 {
            for file in opened.end(header.image) {
                let close = Op {
                    time_ns: time.saturating_sub(gathered.start),
                    duration_ns: 0,
                    call: Call::Close,
                    flags: 0,
                    file,
                    offset: 0,
                    length: 0,
                    context: 0,
                    process: gathered.processes.get(&header.image).copied().unwrap_or(0),
                    tid: header.tid,
                };
                writer.push(close, &[])?;
            }
        }
    }
    writer.finish()
}

impl Gathered {
    /// The call at hand of a spool as the recording has it; none if it means nothing to a replay.
    fn op(&self, spool: &OpenSpool, time: u64) -> Option<Op> {
        let said = &spool.call;
        let call = match said.op {
            spool::Op::Read => Call::Read,
            spool::Op::Write => Call::Write,
            spool::Op::Fsync => Call::Sync,
            spool::Op::Fdatasync => Call::SyncData,
            spool::Op::SyncRange => Call::SyncRange,
            spool::Op::Sync => Call::SyncAll,
            spool::Op::Truncate | spool::Op::OpenTruncate => Call::Truncate,
            spool::Op::Unlink if said.length == 0 => Call::Remove,
            spool::Op::Unlink | spool::Op::Rename | spool::Op::Link | spool::Op::Map => return None,
            spool::Op::Fallocate => Call::Allocate,
            spool::Op::Punch => Call::Punch,
            spool::Op::MapSync => Call::Mapped,
            spool::Op::Close => Call::Close,
            spool::Op::Hint => Call::Hint,
        };
        let (offset, length) = match said.op {
            spool::Op::OpenTruncate => (0, 0),
            spool::Op::Truncate => (said.offset, 0),
            spool::Op::Unlink | spool::Op::Close | spool::Op::Fsync | spool::Op::Fdatasync | spool::Op::Sync => (0, 0),
            _ => (said.offset, said.length),
        };
        let file = match said.op {
            spool::Op::Sync => 0,
            _ => self.files.get(&(spool.header.image, said.file)).copied()?,
        };
        let mut flags = 0;
        for (from, to) in [
            (spool::op_flags::SYNC, op_flags::SYNC),
            (spool::op_flags::DIRECT, op_flags::DIRECT),
            (spool::op_flags::KEEP_SIZE, op_flags::KEEP_SIZE),
            (spool::op_flags::STORED, op_flags::STORED),
            (spool::op_flags::SHIFTED, op_flags::SHIFTED),
            (spool::op_flags::UP, op_flags::UP),
        ] {
            flags |= if said.flags & from != 0 { to } else { 0 };
        }
        // What no file can hold, and hints that there are not: a damaged record, or a program that tries what the kernel refuses.
        let most = match call {
            Call::Read | Call::Write => 1 << 31,
            Call::Hint => LARGEST_HINT,
            _ => 1 << 60,
        };
        if offset > 1 << 60 || length > most {
            return None;
        }
        Some(Op {
            time_ns: time.saturating_sub(self.start),
            duration_ns: said.duration_ns,
            call,
            flags,
            file,
            offset,
            length,
            context: self.contexts.get(&said.signature).copied().unwrap_or(0),
            process: self.processes.get(&spool.header.image).copied().unwrap_or(0),
            tid: spool.header.tid,
        })
    }
}

impl OpenSpool {
    /// Opens a spool at its first call.
    fn open(path: &Path, chunk: Option<usize>) -> Result<Option<Self>> {
        let bytes = fs::read(path).map_err(|e| Error::io(path, &e))?;
        let name = path.display().to_string();
        let Ok(spool) = Spool::parse(&name, &bytes) else {
            return Ok(None);
        };
        let header = spool.header;
        let nothing = spool::Operation {
            op: spool::Op::Close,
            flags: 0,
            file: 0,
            duration_ns: 0,
            time_ns: 0,
            offset: 0,
            length: 0,
            signature: 0,
        };
        let mut open = OpenSpool {
            bytes,
            name,
            at: 0,
            call: nothing,
            pages: Vec::new(),
            header,
            last: 0,
        };
        Ok(open.advance(chunk).then_some(open))
    }

    /// Goes to the next call; false at the end.
    fn advance(&mut self, chunk: Option<usize>) -> bool {
        let Ok(spool) = Spool::parse(&self.name, &self.bytes) else {
            return false;
        };
        let mut records = match self.at {
            0 => spool.records(),
            at => spool.records_from(at),
        };
        self.pages.clear();
        let mut found = false;
        loop {
            let before = records.at();
            match records.next() {
                Some(Ok(Record::Op(op))) => {
                    if found {
                        self.at = before;
                        return true;
                    }
                    found = true;
                    self.last = self.last.max(op.time_ns);
                    self.call = op;
                }
                Some(Ok(Record::Content(said))) if found => {
                    // Of another size than the recording's: left by a process of another one.
                    if chunk == Some(said.chunk) {
                        self.pages.extend(said.pages());
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => {
                    self.at = self.bytes.len();
                    return found;
                }
            }
        }
    }
}

/// Contents as numbers that are equal when they are.
#[derive(Default)]
struct Numbers {
    /// Of how many smaller chunks a chunk of 1 KiB consists; 1: there are none.
    each: usize,
    pages: FxHashMap<u64, u64>,
    chunks: FxHashMap<u64, u64>,
    pieces: FxHashMap<u64, u64>,
    /// Contents of the pages of the call that was looked up last; none if none is known.
    contents: Vec<Content>,
    /// Numbers of the smaller chunks of its chunks of 1 KiB that are new, in order.
    new: Vec<u64>,
}

impl Numbers {
    fn of(each: usize) -> Self {
        Numbers {
            each,
            ..Numbers::default()
        }
    }

    fn look_up(&mut self, op: &Op, hashes: &[(u64, PageIds)]) {
        self.contents.clear();
        self.new.clear();
        let (first, past) = op.pages();
        if hashes.is_empty() || past - first > 1 << 20 {
            return;
        }
        // A page that is told twice counts with what is told last, and only that is numbered.
        let mut told: Vec<Option<&PageIds>> = vec![None; (past - first) as usize];
        for (page, ids) in hashes {
            if let Some(at) = page.checked_sub(first).and_then(|at| told.get_mut(at as usize)) {
                *at = Some(ids);
            }
        }
        for ids in told {
            let content = ids.map_or_else(Content::default, |ids| self.content(ids));
            self.contents.push(content);
        }
    }

    fn content(&mut self, ids: &PageIds) -> Content {
        let page = number(&mut self.pages, ids[0]);
        let mut chunks = [0; 4];
        for (chunk, pieces) in chunks.iter_mut().zip(ids[1..].chunks_exact(self.each)) {
            let known = self.chunks.len();
            // A larger chunk is known by what it is made of.
            let id = if pieces.contains(&0) {
                0
            } else {
                together(pieces).unwrap_or(0).max(1)
            };
            *chunk = number(&mut self.chunks, id);
            if self.each > 1 && self.chunks.len() > known {
                self.new
                    .extend(pieces.iter().map(|&piece| number(&mut self.pieces, piece)));
            }
        }
        Content { page, chunks }
    }
}

/// The number of a hash; 0 is unknown.
fn number(numbers: &mut FxHashMap<u64, u64>, hash: u64) -> u64 {
    let next = numbers.len() as u64 + 1;
    if hash == 0 {
        0
    } else {
        *numbers.entry(hash).or_insert(next)
    }
}
