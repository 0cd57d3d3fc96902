//! Requests that a program hands to the kernel for later: io_submit and io_uring.
//!
//! # Model
//! After the call, the requests that it took are read in the program's memory and recorded, with what was asked for. A request may
//! fail or move less, which is not seen. Contents are those of whole pages in the program's memory.
//! # Not modelled
//! Rings that a process has from another, and what a ring takes by itself (SQPOLL) after its last call: counted or said. Renames and
//! unlinks by a ring, which are counted.

use rustc_hash::FxHashMap;

use super::calls::{Outcome, Pending};
use super::files::Process;
use super::spools::Out;
use super::{Options, Tid, stack};
use ftlab_record::spool::{NoteKind, Op, OpFacts, PAGE, PAGE_IDS, PageIds, most_pages, op_flags, page_ids};
use ftlab_record::uring::{self, ENTRY, Memory, PARAMETERS, Request, Work};

/// The rings of a process by their descriptors.
#[derive(Default)]
pub struct Rings(FxHashMap<i32, Ring>);

#[derive(Default)]
struct Ring {
    set_up: uring::Ring,
    /// Where queue and entries lie; 0 until they are mapped.
    queue: u64,
    entries: u64,
    /// Requests recorded so far, counted as the kernel does.
    seen: u32,
    /// Table of registered files.
    files: Vec<i32>,
}

/// A piece of the program's memory: address and length.
type Piece = (u64, u64);

fn number(tid: Tid, address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    (stack::read_memory(tid, address, &mut bytes) == 4).then(|| u32::from_le_bytes(bytes))
}

impl Rings {
    pub fn set_up(&mut self, fd: i32, outcome: &Outcome, parameters: u64) {
        let mut bytes = [0; PARAMETERS];
        if stack::read_memory(outcome.tid, parameters, &mut bytes) != PARAMETERS {
            return;
        }
        let set_up = uring::Ring::parse(&bytes);
        let (queue, entries) = set_up.given.unwrap_or((0, 0));
        let ring = Ring {
            set_up,
            queue,
            entries,
            ..Ring::default()
        };
        self.0.insert(fd, ring);
    }

    pub fn mapped(&mut self, fd: i32, offset: u64, address: u64) {
        if let Some(ring) = self.0.get_mut(&fd) {
            match offset {
                uring::QUEUE_AT => ring.queue = address,
                uring::ENTRIES_AT => ring.entries = address,
                _ => {}
            }
        }
    }

    pub fn close(&mut self, fd: i32) {
        self.0.remove(&fd);
    }

    pub fn registered(&mut self, tid: Tid, [fd, what, argument, count, ..]: [u64; 6]) {
        let Some(ring) = self.0.get_mut(&(fd as i32)) else {
            return;
        };
        let word = |at: u64| stack::word(tid, argument + 8 * at).unwrap_or(0);
        let (first, fds, count, all) = match what as u32 {
            uring::REGISTER_FILES => (0, argument, count, true),
            uring::UNREGISTER_FILES => (0, 0, 0, true),
            uring::REGISTER_FILES_UPDATE => (word(0) & 0xffff_ffff, word(1), count, false),
            uring::REGISTER_FILES2 => (0, word(2), word(0) & 0xffff_ffff, true),
            uring::REGISTER_FILES_UPDATE2 => (word(0) & 0xffff_ffff, word(1), word(3) & 0xffff_ffff, false),
            _ => return,
        };
        if all {
            ring.files.clear();
        }
        let (first, count) = (first.min(1 << 16) as usize, count.min(1 << 16) as usize);
        if ring.files.len() < first + count {
            ring.files.resize(first + count, -1);
        }
        for (at, place) in ring.files[first..first + count].iter_mut().enumerate() {
            let fd = number(tid, fds + 4 * at as u64).map_or(-1, |fd| fd as i32);
            // Minus two leaves a place as it is.
            if fds != 0 && fd != -2 {
                *place = fd;
            }
        }
    }

    /// The requests that a ring took since the last time, each with its descriptor; `Err`: so many could not be read.
    fn taken(&mut self, fd: i32, tid: Tid, result: u32) -> Result<Vec<(Option<i32>, Request)>, u32> {
        let Some(ring) = self.0.get_mut(&fd).filter(|ring| ring.queue != 0 && ring.entries != 0) else {
            return Err(result);
        };
        let place = if uring::polls(ring.set_up.flags) {
            ring.set_up.tail
        } else {
            ring.set_up.head
        };
        let upto = number(tid, ring.queue + u64::from(place)).ok_or(result)?;
        let pending = upto.wrapping_sub(ring.seen);
        if pending > ring.set_up.entries {
            ring.seen = upto;
            return Err(pending);
        }
        let mut requests = Vec::new();
        for at in 0..pending {
            let mut place = ring.seen.wrapping_add(at) & ring.set_up.entries.wrapping_sub(1);
            if uring::has_array(ring.set_up.flags) {
                place = number(tid, ring.queue + u64::from(ring.set_up.array) + 4 * u64::from(place)).ok_or(pending)?;
            }
            let mut entry = [0; ENTRY];
            let address = ring.entries + u64::from(place) * uring::stride(ring.set_up.flags);
            if stack::read_memory(tid, address, &mut entry) != ENTRY {
                ring.seen = upto;
                return Err(pending);
            }
            let request = Request::parse(&entry);
            let fd = if request.registered {
                let place = usize::try_from(request.fd).ok();
                place
                    .and_then(|place| ring.files.get(place).copied())
                    .filter(|&fd| fd >= 0)
            } else {
                Some(request.fd)
            };
            requests.push((fd, request));
        }
        ring.seen = upto;
        Ok(requests)
    }
}

impl Pending {
    pub fn submitted(&self, process: &mut Process, outcome: &Outcome, options: &Options, out: &mut Out<'_>) {
        let taken = outcome.result.max(0) as u64;
        for place in 0..taken {
            let Some(block) = stack::word(outcome.tid, self.arguments[2] + 8 * place) else {
                break;
            };
            let word = |at: u64| stack::word(outcome.tid, block + at).unwrap_or(0);
            // Operation and descriptor, buffer, bytes, offset.
            let (operation, fd) = (word(16) as u16, (word(16) >> 32) as i32);
            let (buffer, bytes, offset) = (word(24), word(32), word(40));
            let op = match operation {
                0 | 7 => Op::Read,
                1 | 8 => Op::Write,
                2 => Op::Fsync,
                3 => Op::Fdatasync,
                _ => continue,
            };
            let memory = match operation {
                7 | 8 => Memory::Pieces {
                    address: buffer,
                    count: bytes,
                },
                0 | 1 => Memory::Bytes {
                    address: buffer,
                    length: bytes,
                },
                _ => Memory::Bytes { address: 0, length: 0 },
            };
            let transfer = Work::Transfer {
                op,
                offset: Some(offset),
                memory,
                flags: 0,
            };
            let work = if matches!(op, Op::Fsync | Op::Fdatasync) {
                Work::Sync(op)
            } else {
                transfer
            };
            self.request(fd, &work, process, outcome, options, out);
        }
        out.note(process, NoteKind::Aio, taken);
    }

    pub fn entered(&self, process: &mut Process, outcome: &Outcome, options: &Options, out: &mut Out<'_>) {
        let result = outcome.result.max(0) as u32;
        match process.rings.taken(self.arguments[0] as i32, outcome.tid, result) {
            Err(0) => {}
            Err(missed) => out.note(process, NoteKind::IoUring, missed.into()),
            Ok(requests) => {
                let mut recorded = 0;
                for (fd, request) in requests {
                    match fd {
                        Some(fd) => {
                            recorded += u64::from(self.request(fd, &request.work, process, outcome, options, out));
                        }
                        None if request.work != Work::Other => out.note(process, NoteKind::FileUnknown, 1),
                        None => {}
                    }
                }
                if recorded > 0 {
                    out.note(process, NoteKind::Aio, recorded);
                }
            }
        }
    }

    /// Records a request; false if it is of no interest.
    fn request(
        &self,
        fd: i32,
        work: &Work,
        process: &mut Process,
        outcome: &Outcome,
        options: &Options,
        out: &mut Out<'_>,
    ) -> bool {
        let facts = |op, flags, offset, length| self.facts(op, flags | op_flags::ASYNCHRONOUS, offset, length, outcome);
        let position = |process: &Process, length: u64| {
            let found = process.position_and_flags(fd);
            found.map_or(0, |(position, _)| position.saturating_sub(length))
        };
        let facts: OpFacts = match *work {
            Work::Transfer {
                op,
                offset,
                memory,
                flags,
            } => {
                if op == Op::Read && !options.reads {
                    return false;
                }
                let Some(pieces) = pieces(outcome.tid, memory) else {
                    out.note(process, NoteKind::Unsupported, 1);
                    return false;
                };
                let length = pieces.iter().fold(0u64, |sum, piece| sum.saturating_add(piece.1));
                let Some(known) = process.file(fd, out) else {
                    return false;
                };
                let offset = if op == Op::Write && (flags | known.op_flags()) & op_flags::APPEND != 0 {
                    let status = super::files::status(&process.link(fd), true);
                    status.map_or(0, |status| status.size.saturating_sub(length))
                } else {
                    offset.unwrap_or_else(|| position(process, length))
                };
                if out.op(process, known, facts(op, flags, offset, length)).is_some()
                    && op == Op::Write
                    && options.content
                {
                    contents(process, outcome.tid, offset, length, &pieces, out);
                }
                return true;
            }
            Work::Sync(op) => facts(op, 0, 0, 0),
            Work::SyncRange { offset, length } => facts(Op::SyncRange, 0, offset, length),
            Work::Truncate { size } => facts(Op::Truncate, 0, size, 0),
            Work::Allocate { mode, offset, length } => {
                let (op, flags) = super::calls::allocation(mode);
                facts(op, flags, offset, length)
            }
            Work::Splice { offset, length } => {
                let offset = offset.unwrap_or_else(|| position(process, length));
                facts(Op::Write, op_flags::COPIED, offset, length)
            }
            Work::Close => {
                self.closed(fd, process, outcome, out);
                return false;
            }
            Work::Unrecorded => {
                out.note(process, NoteKind::Unsupported, 1);
                return false;
            }
            Work::Other => return false,
        };
        process
            .file(fd, out)
            .is_some_and(|known| out.op(process, known, facts).is_some())
    }
}

fn pieces(tid: Tid, memory: Memory) -> Option<Vec<Piece>> {
    const MOST: u64 = 1024;
    match memory {
        Memory::Bytes { address, length } => Some(vec![(address, length)]),
        Memory::Pieces { address, count } if count <= MOST => (0..count)
            .map(|at| {
                Some((
                    stack::word(tid, address + 16 * at)?,
                    stack::word(tid, address + 16 * at + 8)?,
                ))
            })
            .collect(),
        Memory::Pieces { .. } => None,
    }
}

/// Content ids of the pages that a request covers whole.
fn contents(process: &mut Process, tid: Tid, offset: u64, length: u64, pieces: &[Piece], out: &mut Out<'_>) {
    let (mut page, past) = (
        offset.div_ceil(PAGE as u64),
        offset.saturating_add(length) / PAGE as u64,
    );
    while page < past {
        let chunk = out.chunk;
        let pages = (past - page).min(most_pages(chunk) as u64) as usize;
        let ids = |page: u64| gather(tid, pieces, page * PAGE as u64 - offset, chunk).unwrap_or([0; PAGE_IDS]);
        if out.content(process, page, pages, ids).is_none() {
            break;
        }
        page += pages as u64;
    }
}

/// Ids of the page that lies `skip` bytes into the pieces.
fn gather(tid: Tid, pieces: &[Piece], mut skip: u64, chunk: usize) -> Option<PageIds> {
    let mut buffer = [0; PAGE];
    let mut held = 0;
    for &(address, length) in pieces {
        if skip >= length {
            skip -= length;
            continue;
        }
        let wanted = ((length - skip) as usize).min(PAGE - held);
        if stack::read_memory(tid, address + skip, &mut buffer[held..held + wanted]) != wanted {
            return None;
        }
        (held, skip) = (held + wanted, 0);
        if held == PAGE {
            return Some(page_ids(&buffer, PAGE, chunk));
        }
    }
    None
}
