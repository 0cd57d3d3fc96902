//! What the library saw of the writes that happened.
//!
//! # Model
//! A write that happened was seen if a record of its thread has it within its time, and as many of its bytes are left: a record may
//! stand for several system calls (a stream that had to write twice). A record that holds another, of a signal handler, gets what
//! the inner one does not.
//! # Cost
//! O(n log n) time, 32 bytes a record.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ftlab_core::{Error, Result};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::exact::{Happened, Loaded, Program, Write};
use crate::gather::spools_of;
use ftlab_record::spool::{NoteKind, Op, Record, Spool, op_flags};

/// What the library saw of the writes on regular files.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Coverage {
    /// That happened.
    pub writes: u64,
    pub bytes: u64,
    pub seen_writes: u64,
    pub seen_bytes: u64,
    /// What was not seen, by program and system call; most bytes first.
    pub missed: Vec<Missed>,
    /// Records of writes that did not happen; 0, if nothing is wrong.
    pub unfounded: u64,
    /// Requests that the kernel took for later (io_uring, io_submit), and how many of them were looked at.
    pub requests: u64,
    pub seen_requests: u64,
    /// Programs with requests, if some were not looked at.
    pub requesting: Vec<String>,
}

/// Writes that were not seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missed {
    pub program: String,
    /// `statically linked`, `not loaded`, or `past the library`.
    pub why: &'static str,
    /// The system call.
    pub call: &'static str,
    pub writes: u64,
    pub bytes: u64,
}

/// A write as the library has it.
struct Seen {
    start_ns: u64,
    end_ns: u64,
    left: u64,
    met: bool,
    /// Device and inode.
    file: (u64, u64),
    offset: u64,
    /// Handed in to be done later, by another thread.
    later: bool,
}

/// Holds the writes that happened against the spools of a folder.
pub fn coverage(folder: &Path, happened: &Happened) -> Result<Coverage> {
    let Recorded {
        mut by_thread,
        mut later,
        requests: seen_requests,
    } = recorded(folder)?;
    let mut writes: Vec<&Write> = happened.writes.iter().collect();
    writes.sort_by_key(|write| (write.tid, write.start_ns));
    let mut found = Coverage::default();
    let mut unmet = Vec::new();
    for writes in writes.chunk_by(|a, b| a.tid == b.tid) {
        let seen = by_thread.get_mut(&writes[0].tid).map_or(&mut [][..], Vec::as_mut_slice);
        match_up(seen, writes, |write, was_seen| {
            found.writes += 1;
            found.bytes += write.bytes;
            if was_seen {
                found.seen_writes += 1;
                found.seen_bytes += write.bytes;
            } else {
                unmet.push(*write);
            }
        });
    }
    // What another thread did for the one that has the record: the C library's asynchronous I/O, and children that share memory.
    let mut rest: Vec<&mut Seen> = by_thread.values_mut().flatten().filter(|seen| !seen.met).collect();
    rest.extend(later.iter_mut());
    unmet.retain(|write| {
        let was_seen = match_elsewhere(&mut rest, write);
        if was_seen {
            found.seen_writes += 1;
            found.seen_bytes += write.bytes;
        }
        !was_seen
    });
    let mut missed: BTreeMap<(u16, u16), (u64, u64)> = BTreeMap::new();
    for write in unmet {
        let (writes, bytes) = missed.entry((write.program, write.call)).or_default();
        *writes += 1;
        *bytes += write.bytes;
    }
    found.unfounded = by_thread.values().flatten().filter(|seen| !seen.met).count() as u64;
    found.missed = missed
        .into_iter()
        .map(|((program, call), (writes, bytes))| {
            let program = &happened.programs[usize::from(program)];
            Missed {
                program: program.path.display().to_string(),
                why: why(program),
                call: name(call),
                writes,
                bytes,
            }
        })
        .collect();
    found.missed.sort_by_key(|missed| std::cmp::Reverse(missed.bytes));
    found.requests = happened.taken.values().sum();
    found.seen_requests = seen_requests.min(found.requests);
    if found.seen_requests < found.requests {
        let programs = happened
            .taken
            .keys()
            .map(|&program| &happened.programs[usize::from(program)]);
        found.requesting = programs.map(|program| program.path.display().to_string()).collect();
    }
    Ok(found)
}

/// Finds a record of another thread: around the write in time, or handed in before it for the same place.
fn match_elsewhere(records: &mut [&mut Seen], write: &Write) -> bool {
    let of_it = records.iter_mut().find(|seen| {
        let same = seen.file == (write.device, write.inode) && seen.left >= write.bytes;
        let around = seen.start_ns <= write.start_ns && seen.end_ns >= write.end_ns;
        let later = seen.later && seen.start_ns <= write.start_ns && Some(seen.offset) == write.offset;
        same && (around && !seen.later || later)
    });
    if let Some(seen) = of_it {
        seen.left -= write.bytes;
        seen.met = true;
        return true;
    }
    false
}

fn why(program: &Program) -> &'static str {
    match program.loaded {
        Loaded::Yes => "past the library",
        Loaded::No => "not loaded",
        Loaded::Never => "statically linked",
    }
}

fn name(call: u16) -> &'static str {
    match libc::c_long::from(call) {
        libc::SYS_pwrite64 => "pwrite64",
        libc::SYS_writev => "writev",
        libc::SYS_pwritev => "pwritev",
        libc::SYS_pwritev2 => "pwritev2",
        libc::SYS_copy_file_range => "copy_file_range",
        libc::SYS_sendfile => "sendfile",
        libc::SYS_splice => "splice",
        _ => "write",
    }
}

/// What the library has.
struct Recorded {
    /// Its writes by thread, in order of their starts.
    by_thread: FxHashMap<u32, Vec<Seen>>,
    /// Those handed in to be done later.
    later: Vec<Seen>,
    /// Requests of io_uring and io_submit that it looked at.
    requests: u64,
}

fn recorded(folder: &Path) -> Result<Recorded> {
    let mut all = Recorded {
        by_thread: FxHashMap::default(),
        later: Vec::new(),
        requests: 0,
    };
    let mut files: FxHashMap<(u64, u32), (u64, u64)> = FxHashMap::default();
    for path in spools_of(folder)? {
        let bytes = fs::read(&path).map_err(|e| Error::io(&path, &e))?;
        // A damaged spool is told of when the recording is made.
        let Ok(spool) = Spool::parse("", &bytes) else { continue };
        let of_thread = all.by_thread.entry(spool.header.tid).or_default();
        for record in spool.records() {
            match record {
                Ok(Record::File(file)) => {
                    let facts = file.facts;
                    files.insert((spool.header.image, facts.id), (facts.device, facts.inode));
                }
                Ok(Record::Note(NoteKind::Taken, count, _)) => all.requests += count,
                Ok(Record::Op(op)) if op.op == Op::Write => {
                    let endless = op.duration_ns == u32::MAX;
                    let later = op.flags & op_flags::ASYNCHRONOUS != 0;
                    let seen = Seen {
                        start_ns: op.time_ns,
                        end_ns: if endless {
                            u64::MAX
                        } else {
                            op.time_ns + u64::from(op.duration_ns)
                        },
                        left: op.length,
                        met: false,
                        file: files.get(&(spool.header.image, op.file)).copied().unwrap_or_default(),
                        offset: op.offset,
                        later,
                    };
                    if later {
                        all.later.push(seen)
                    } else {
                        of_thread.push(seen)
                    }
                }
                _ => {}
            }
        }
    }
    for of_thread in all.by_thread.values_mut() {
        of_thread.sort_by_key(|seen| seen.start_ns);
    }
    Ok(all)
}

/// Says of each write of a thread, in order of their starts, whether it was seen.
fn match_up(seen: &mut [Seen], writes: &[&Write], mut tell: impl FnMut(&Write, bool)) {
    let mut next = 0;
    // Records that have begun and may not have ended, the latest last.
    let mut open: Vec<usize> = Vec::new();
    for write in writes {
        while next < seen.len() && seen[next].start_ns <= write.start_ns {
            open.push(next);
            next += 1;
        }
        open.retain(|&at| seen[at].end_ns >= write.start_ns);
        let of_it = open
            .iter()
            .rev()
            .copied()
            .find(|&at| seen[at].end_ns >= write.end_ns && seen[at].left >= write.bytes);
        if let Some(at) = of_it {
            seen[at].left -= write.bytes;
            seen[at].met = true;
        }
        tell(write, of_it.is_some());
    }
}

impl Coverage {
    /// Programs and calls to name in [`Self::sentences`]; the rest is added up.
    const NAMED: usize = 8;

    /// As notes of a recording.
    pub fn sentences(&self) -> Vec<String> {
        let Self {
            writes,
            bytes,
            seen_writes,
            seen_bytes,
            ..
        } = self;
        let mut all = vec![format!(
            "coverage: {seen_writes} of {writes} writes on regular files were seen, {seen_bytes} of {bytes} bytes"
        )];
        for missed in self.missed.iter().take(Self::NAMED) {
            let Missed {
                program,
                why,
                call,
                writes,
                bytes,
            } = missed;
            all.push(format!(
                "missed: {program} ({why}): {writes} writes by {call}, {bytes} bytes"
            ));
        }
        let rest = self.missed.iter().skip(Self::NAMED);
        let (writes, bytes) = rest.fold((0, 0), |(writes, bytes), one| (writes + one.writes, bytes + one.bytes));
        if writes > 0 {
            all.push(format!("missed: others: {writes} writes, {bytes} bytes"));
        }
        if self.requests > 0 {
            let (requests, seen) = (self.requests, self.seen_requests);
            let programs = match self.requesting.is_empty() {
                true => String::new(),
                false => format!(": {}", self.requesting.join(", ")),
            };
            all.push(format!(
                "coverage: {seen} of {requests} requests handed in for later (io_uring, io_submit) were seen{programs}"
            ));
        }
        if self.unfounded > 0 {
            all.push(format!(
                "coverage: {} writes were recorded that the tracer did not see",
                self.unfounded
            ));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(start_ns: u64, end_ns: u64, left: u64) -> Seen {
        Seen {
            start_ns,
            end_ns,
            left,
            met: false,
            file: (0, 0),
            offset: 0,
            later: false,
        }
    }

    fn call(start_ns: u64, end_ns: u64, bytes: u64) -> Write {
        Write {
            start_ns,
            end_ns,
            bytes,
            tid: 1,
            program: 0,
            call: 1,
            device: 0,
            inode: 0,
            offset: Some(512),
        }
    }

    fn seen_of(mut seen: Vec<Seen>, writes: &[Write]) -> (Vec<bool>, Vec<bool>) {
        let mut told = Vec::new();
        match_up(&mut seen, &writes.iter().collect::<Vec<_>>(), |_, was_seen| {
            told.push(was_seen)
        });
        (told, seen.iter().map(|seen| seen.met).collect())
    }

    #[test]
    fn a_write_is_seen_by_the_record_that_it_lies_in() {
        // A record of its own; none at its time; a record that ends before it does; one that is for fewer bytes.
        let seen = vec![record(10, 20, 4), record(50, 55, 4), record(70, 90, 4)];
        let writes = [call(11, 19, 4), call(30, 35, 4), call(51, 60, 4), call(71, 75, 5)];
        assert_eq!(
            seen_of(seen, &writes),
            (vec![true, false, false, false], vec![true, false, false])
        );
    }

    #[test]
    fn a_record_of_two_calls_covers_both_and_no_third() {
        let writes = [call(11, 12, 60), call(13, 14, 40), call(15, 16, 1)];
        assert_eq!(seen_of(vec![record(10, 20, 100)], &writes).0, [true, true, false]);
    }

    #[test]
    fn a_signal_handler_within_a_call_has_its_own_record() {
        // The outer call lasts from 11 to 29, the handler's from 15 to 16.
        let seen = vec![record(10, 30, 8), record(14, 17, 8)];
        assert_eq!(
            seen_of(seen, &[call(11, 29, 8), call(15, 16, 8)]),
            (vec![true, true], vec![true, true])
        );
    }

    #[test]
    fn another_thread_may_do_what_a_record_says() {
        let later = |offset| Seen {
            later: true,
            offset,
            ..record(5, 6, 8)
        };
        // Handed in for another place; for this place; by the parent of a child that shares its memory, around it.
        let (mut there, mut here, mut around) = (later(0), later(512), record(10, 20, 8));
        let mut records = vec![&mut there, &mut here, &mut around];
        let told: Vec<bool> = (0..3)
            .map(|_| match_elsewhere(&mut records, &call(11, 12, 8)))
            .collect();
        assert_eq!(told, [true, true, false]);
        assert!(!there.met && here.met && around.met);
    }

    #[test]
    fn sentences_name_the_programs_with_most_and_add_up_the_rest() {
        let missed = |bytes| Missed {
            program: format!("/bin/{bytes}"),
            why: "not loaded",
            call: "write",
            writes: 1,
            bytes,
        };
        let found = Coverage {
            writes: 11,
            bytes: 100,
            seen_writes: 1,
            seen_bytes: 45,
            missed: (1..=10).rev().map(missed).collect(),
            ..Coverage::default()
        };
        let sentences = found.sentences();
        assert_eq!(sentences.len(), 10);
        assert_eq!(
            sentences[0],
            "coverage: 1 of 11 writes on regular files were seen, 45 of 100 bytes"
        );
        assert_eq!(
            sentences[1],
            "missed: /bin/10 (not loaded): 1 writes by write, 10 bytes"
        );
        assert_eq!(sentences[9], "missed: others: 2 writes, 3 bytes");
    }
}
