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

use super::merge::spools_of;
use crate::exact::{Happened, Loaded, Program, Write};
use crate::spool::{Op, Record, Spool, op_flags};

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
}

/// Holds the writes that happened against the spools of a folder.
pub fn coverage(folder: &Path, happened: &Happened) -> Result<Coverage> {
    let mut seen = seen(folder)?;
    let mut writes: Vec<&Write> = happened.writes.iter().collect();
    writes.sort_by_key(|write| (write.tid, write.start_ns));
    let mut found = Coverage::default();
    let mut missed: BTreeMap<(u16, u16), (u64, u64)> = BTreeMap::new();
    for writes in writes.chunk_by(|a, b| a.tid == b.tid) {
        let seen = seen.get_mut(&writes[0].tid).map_or(&mut [][..], Vec::as_mut_slice);
        match_up(seen, writes, |write, was_seen| {
            found.writes += 1;
            found.bytes += write.bytes;
            if was_seen {
                found.seen_writes += 1;
                found.seen_bytes += write.bytes;
            } else {
                let (writes, bytes) = missed.entry((write.program, write.call)).or_default();
                *writes += 1;
                *bytes += write.bytes;
            }
        });
    }
    found.unfounded = seen.values().flatten().filter(|seen| !seen.met).count() as u64;
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
    Ok(found)
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

/// The library's writes by thread, in order of their starts.
fn seen(folder: &Path) -> Result<FxHashMap<u32, Vec<Seen>>> {
    let mut all: FxHashMap<u32, Vec<Seen>> = FxHashMap::default();
    for path in spools_of(folder)? {
        let bytes = fs::read(&path).map_err(|e| Error::io(&path, &e))?;
        // A damaged spool is told of when the recording is made.
        let Ok(spool) = Spool::parse("", &bytes) else { continue };
        let of_thread = all.entry(spool.header.tid).or_default();
        for record in spool.records() {
            if let Ok(Record::Op(op)) = record
                && op.op == Op::Write
                && op.flags & op_flags::ASYNCHRONOUS == 0
            {
                let endless = op.duration_ns == u32::MAX;
                of_thread.push(Seen {
                    start_ns: op.time_ns,
                    end_ns: if endless {
                        u64::MAX
                    } else {
                        op.time_ns + u64::from(op.duration_ns)
                    },
                    left: op.length,
                    met: false,
                });
            }
        }
    }
    for of_thread in all.values_mut() {
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
            unfounded: 0,
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
