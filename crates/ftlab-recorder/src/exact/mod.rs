//! The exact tracer: records every system call on files that a program makes, however it makes it.
//!
//! # Model
//! The program runs under ptrace, and stops at the calls of interest ([`tracing`]). The tracer looks at a call's arguments, lets the
//! kernel make it, looks at its result and writes the same spools as the library does. Call paths are unwound from outside ([`stack`]), and give the same signatures as the library's `unwind`.
//!
//! No root is needed; but without it set-user-id programs run without the rights they would get, which is counted. When the
//! tracer is killed the program is killed too: without it the filtered calls would fail.
//!
//! The same tracing counts the writes of a program that the library records meanwhile ([`count`]), to measure what that sees.
//! # Not modelled
//! What [`handed`], [`stored`] and [`tracing`] do not follow.
//! # Errors
//! The program cannot be started; the kernel refuses ptrace or seccomp. A full disk stops the recording, not the program.
//! # Cost
//! Three switches between program and tracer per call, some 10 to 20 µs; nothing for other calls.
//! # Source
//! seccomp(2), ptrace(2): SECCOMP_RET_TRACE.

#![expect(
    unsafe_code,
    reason = "ptrace and friends are system calls on numbers; each place has its proof"
)]

mod calls;
mod count;
mod files;
mod filter;
mod handed;
mod spools;
mod stack;
mod stored;
mod tracing;

use std::ffi::OsString;
use std::path::Path;

use ftlab_core::Result;
use rustc_hash::FxHashMap;

use self::calls::{Outcome, Pending};
pub use self::count::{Happened, Loaded, Program, Write, count};
use self::tracing::{Registers, Watcher};
pub use self::tracing::{Traced, completed};

/// What to record.
#[derive(Debug, Clone)]
pub struct Options {
    pub content: bool,
    /// Bytes of a chunk with a content id.
    pub chunk: usize,
    pub reads: bool,
    /// Call paths; without them every signature is 0.
    pub signatures: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            content: false,
            chunk: ftlab_record::spool::CHUNK,
            reads: false,
            signatures: false,
        }
    }
}

type Tid = libc::pid_t;

/// Runs the command under the tracer until it and all it started have ended. `folder` exists.
///
/// The calling thread becomes the tracer; signals of the terminal (Ctrl-C) are left to the program meanwhile.
pub fn record(command: &[OsString], folder: &Path, options: &Options, tell: &dyn Fn(&str)) -> Result<Traced> {
    let mut recorder = Recorder {
        options: options.clone(),
        threads: FxHashMap::default(),
        processes: FxHashMap::default(),
        binaries: stack::Binaries::default(),
        spools: spools::Spools::new(folder),
    };
    let filter = filter::Filter::recording(options.reads);
    let traced = tracing::run(command, &[], &filter, &mut recorder, tell);
    recorder.spools.end_all();
    traced
}

fn check(answer: libc::c_long) -> std::io::Result<()> {
    if answer < 0 {
        Err(std::io::Error::last_os_error())
    } else {
        Ok(())
    }
}

struct Thread {
    process: Tid,
    pending: Option<Pending>,
}

/// Writes spools of what a program does.
struct Recorder {
    options: Options,
    threads: FxHashMap<Tid, Thread>,
    processes: FxHashMap<Tid, files::Process>,
    binaries: stack::Binaries,
    spools: spools::Spools,
}

impl Recorder {
    /// What was stored into mappings of a process that ends, or becomes another program.
    fn image_ends(&mut self, tid: Tid, process: Tid) {
        if let Some(process) = self.processes.get_mut(&process) {
            let mut out = spools::Out {
                spools: &mut self.spools,
                binaries: &self.binaries,
                path: stack::Path::default(),
                tid,
                chunk: self.options.chunk,
            };
            calls::stored(process, 0, u64::MAX, None, &self.options, &mut out);
        }
    }
}

impl Watcher for Recorder {
    fn began(&mut self, tid: Tid, process: Tid, maker: Option<Tid>) {
        self.threads.insert(tid, Thread { process, pending: None });
        if self.processes.contains_key(&process) {
            return;
        }
        let mut new = files::Process::new(process);
        let maker = maker.and_then(|maker| self.threads.get(&maker));
        if let Some(parent) = maker.and_then(|maker| self.processes.get(&maker.process)) {
            new.mappings = parent.mappings.of_child();
        }
        self.processes.insert(process, new);
    }

    fn executed(&mut self, process: Tid) {
        self.image_ends(process, process);
        self.spools.end(process);
        self.processes.insert(process, files::Process::new(process));
        self.threads.insert(process, Thread { process, pending: None });
    }

    fn ended(&mut self, tid: Tid) {
        if self.threads.get(&tid).is_some_and(|thread| thread.process == tid) {
            self.image_ends(tid, tid);
        }
        self.spools.end(tid);
        if let Some(thread) = self.threads.remove(&tid)
            && thread.process == tid
        {
            self.processes.remove(&tid);
        }
    }

    fn entered(&mut self, tid: Tid, registers: &Registers) -> bool {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return false;
        };
        let Some(process) = self.processes.get_mut(&thread.process) else {
            return false;
        };
        thread.pending = Pending::at_entry(tid, process, registers);
        thread.pending.is_some()
    }

    fn left(&mut self, tid: Tid, registers: &Registers) {
        let Some(pending) = self.threads.get_mut(&tid).and_then(|thread| thread.pending.take()) else {
            return;
        };
        let Some(process) = self
            .threads
            .get(&tid)
            .and_then(|thread| self.processes.get_mut(&thread.process))
        else {
            return;
        };
        let outcome = Outcome {
            tid,
            result: registers.rax as i64,
            end_ns: spools::now(),
        };
        let path = if self.options.signatures {
            process.stack.walk(&mut self.binaries, tid, registers)
        } else {
            stack::Path::default()
        };
        let mut out = spools::Out {
            spools: &mut self.spools,
            binaries: &self.binaries,
            path,
            tid,
            chunk: self.options.chunk,
        };
        pending.finish(process, &outcome, &self.options, &mut out);
    }
}
