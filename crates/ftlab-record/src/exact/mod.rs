//! The exact tracer: records every system call on files that a program makes, however it makes it.
//!
//! # Model
//! The program runs under ptrace with a seccomp filter that stops it at the calls of interest only ([`filter`]); all others run
//! at full speed. The tracer follows forks, clones and execs, looks at the call's arguments, lets the kernel make it, looks at its result
//! and writes the same spools as the library does. Call paths are unwound from outside ([`stack`]), and give the same signatures as the library's `unwind`.
//!
//! No root is needed. The program gets `no_new_privs`, so set-user-id programs run without the privileges they would get. When the
//! tracer is killed the program is killed too: without it the filtered calls would fail.
//! # Not modelled
//! 32-bit programs (their calls run unseen), io_uring requests (rings are noted), stores into shared mappings. Stops by job
//! control do not last. Programs that trace others themselves (debuggers).
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
mod files;
mod filter;
mod spools;
mod stack;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use ftlab_core::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use self::calls::{Outcome, Pending};

/// What to record.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub content: bool,
    pub reads: bool,
    /// Call paths; without them every signature is 0.
    pub signatures: bool,
}

type Tid = libc::pid_t;

/// Runs the command under the tracer until it and all it started have ended; gives back its own exit status. `folder` exists.
///
/// The calling thread becomes the tracer; signals of the terminal (Ctrl-C) are left to the program meanwhile.
pub fn record(command: &[OsString], folder: &Path, options: &Options) -> Result<ExitStatus> {
    let [program, ..] = command else {
        return Err(Error::input("no command to record"));
    };
    let filter = filter::Filter::new(options.reads);
    let words: std::result::Result<Vec<CString>, _> =
        command.iter().map(|word| CString::new(word.as_bytes())).collect();
    let Ok(words) = words else {
        return Err(Error::input("a command with a zero byte in it cannot be run"));
    };
    let root = start(&words, &filter)?;
    let ignored = IgnoredSignals::new();
    let mut tracer = Tracer {
        options: options.clone(),
        threads: FxHashMap::default(),
        processes: FxHashMap::default(),
        early: FxHashSet::default(),
        binaries: stack::Binaries::default(),
        spools: spools::Spools::new(folder),
    };
    let status = tracer.run(root, Path::new(program));
    drop(ignored);
    status
}

/// The child that becomes the program: it stops until the tracer is ready, and ends with the number of the error if it cannot.
fn start(words: &[CString], filter: &filter::Filter) -> Result<Tid> {
    let mut arguments: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
    arguments.push(std::ptr::null());
    // SAFETY: the child makes system calls only, on memory that exists, and never returns.
    let child = unsafe { libc::fork() };
    if child != 0 {
        check(child.into()).map_err(|cause| Error::Io(format!("no process could be made: {cause}")))?;
        return Ok(child);
    }
    // SAFETY: as above.
    unsafe {
        // What a program expects to find, which the runtimes of Rust and Python change for themselves.
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            libc::signal(signal, libc::SIG_DFL);
        }
        // Without a tracer nobody would end the stop.
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0
            && libc::raise(libc::SIGSTOP) == 0
            && filter.install().is_ok()
        {
            libc::execvp(arguments[0], arguments.as_ptr());
        }
        libc::_exit(*libc::__errno_location());
    }
}

fn check(answer: libc::c_long) -> std::io::Result<()> {
    if answer < 0 {
        Err(std::io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The signals of the terminal go to the whole group: the program decides what they mean, the tracer goes on until it ends.
struct IgnoredSignals([(libc::c_int, libc::sighandler_t); 2]);

impl IgnoredSignals {
    fn new() -> Self {
        // SAFETY: sets a disposition; put back on drop. The program has been started before, with what was set then.
        Self([libc::SIGINT, libc::SIGQUIT].map(|signal| (signal, unsafe { libc::signal(signal, libc::SIG_IGN) })))
    }
}

impl Drop for IgnoredSignals {
    fn drop(&mut self) {
        for (signal, old) in self.0 {
            // SAFETY: what it was before.
            unsafe { libc::signal(signal, old) };
        }
    }
}

struct Thread {
    process: Tid,
    pending: Option<Pending>,
}

struct Tracer {
    options: Options,
    threads: FxHashMap<Tid, Thread>,
    processes: FxHashMap<Tid, files::Process>,
    /// Stopped before the event that announces them.
    early: FxHashSet<Tid>,
    binaries: stack::Binaries,
    spools: spools::Spools,
}

impl Tracer {
    fn run(&mut self, root: Tid, program: &Path) -> Result<ExitStatus> {
        self.attach(root, program)?;
        let mut status = ExitStatus::default();
        while let Some((tid, raw)) = wait() {
            let stopped = ExitStatus::from_raw(raw);
            if libc::WIFSTOPPED(raw) {
                self.stopped(tid, libc::WSTOPSIG(raw), raw >> 16);
            } else {
                if tid == root {
                    status = stopped;
                }
                self.ended(tid);
            }
        }
        self.spools.end_all();
        Ok(status)
    }

    /// Sees the child of [`start`] through its exec.
    fn attach(&mut self, root: Tid, program: &Path) -> Result<()> {
        let options = libc::PTRACE_O_TRACESECCOMP
            | libc::PTRACE_O_TRACEFORK
            | libc::PTRACE_O_TRACEVFORK
            | libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACEEXEC
            | libc::PTRACE_O_TRACESYSGOOD
            | libc::PTRACE_O_EXITKILL;
        let failed = |cause: std::io::Error| {
            Error::Io(format!(
                "{}: cannot be started under the tracer: {cause}",
                program.display()
            ))
        };
        let mut prepared = false;
        loop {
            let mut raw = 0;
            // SAFETY: waits for the child; the kernel writes the status.
            if unsafe { libc::waitpid(root, &raw mut raw, libc::__WALL) } != root {
                return Err(failed(std::io::Error::last_os_error()));
            }
            if !libc::WIFSTOPPED(raw) {
                // The child ends with the number of the error.
                return Err(failed(std::io::Error::from_raw_os_error(libc::WEXITSTATUS(raw))));
            }
            let mut signal = libc::WSTOPSIG(raw);
            if !prepared && signal == libc::SIGSTOP {
                prepared = true;
                signal = 0;
                // SAFETY: our stopped child.
                check(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, root, 0, options) }).map_err(failed)?;
            } else if raw >> 16 == libc::PTRACE_EVENT_EXEC {
                self.begin(root, root);
                self.spools.no_first_stop(root);
                resume(root, libc::PTRACE_CONT, 0);
                return Ok(());
            } else if raw >> 16 != 0 {
                signal = 0;
            }
            resume(root, libc::PTRACE_CONT, signal);
        }
    }

    /// A thread of a process begins.
    fn begin(&mut self, tid: Tid, process: Tid) {
        self.threads.insert(tid, Thread { process, pending: None });
        self.processes
            .entry(process)
            .or_insert_with(|| files::Process::new(process));
    }

    fn stopped(&mut self, tid: Tid, signal: i32, event: i32) {
        match event {
            libc::PTRACE_EVENT_SECCOMP => {
                let request = if self.entered(tid) {
                    libc::PTRACE_SYSCALL
                } else {
                    libc::PTRACE_CONT
                };
                return resume(tid, request, 0);
            }
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                let new = message(tid) as Tid;
                if new != 0 {
                    self.begin(new, files::process_of(new).unwrap_or(new));
                    if self.early.remove(&new) {
                        self.spools.no_first_stop(new);
                        resume(new, libc::PTRACE_CONT, 0);
                    }
                }
            }
            libc::PTRACE_EVENT_EXEC => self.executed(tid, message(tid) as Tid),
            _ if signal == libc::SIGTRAP | 0x80 => self.left(tid),
            _ if event != 0 => {}
            _ if !self.threads.contains_key(&tid) => {
                // A new thread stops before its parent says so; it waits for that.
                self.early.insert(tid);
                return;
            }
            // The stop that every new thread begins with.
            _ if signal == libc::SIGSTOP && self.is_fresh(tid) => {}
            _ => return resume(tid, libc::PTRACE_CONT, signal),
        }
        resume(tid, libc::PTRACE_CONT, 0);
    }

    /// Whether a thread's first stop has yet to come; asked once.
    fn is_fresh(&mut self, tid: Tid) -> bool {
        self.threads.contains_key(&tid) && self.spools.first_stop(tid)
    }

    /// A process became another program: its other threads are gone, and it has the id of its first thread.
    fn executed(&mut self, tid: Tid, former: Tid) {
        if former != tid && former != 0 {
            self.ended(former);
        }
        self.spools.end(tid);
        self.processes.insert(tid, files::Process::new(tid));
        self.threads.insert(
            tid,
            Thread {
                process: tid,
                pending: None,
            },
        );
        self.spools.no_first_stop(tid);
    }

    fn ended(&mut self, tid: Tid) {
        self.spools.end(tid);
        self.early.remove(&tid);
        if let Some(thread) = self.threads.remove(&tid)
            && thread.process == tid
        {
            self.processes.remove(&tid);
        }
    }

    /// At the entry of a call; true: its result is of interest.
    fn entered(&mut self, tid: Tid) -> bool {
        let Some(registers) = registers(tid) else { return false };
        let Some(thread) = self.threads.get_mut(&tid) else {
            return false;
        };
        let Some(process) = self.processes.get_mut(&thread.process) else {
            return false;
        };
        thread.pending = Pending::at_entry(tid, process, &registers);
        thread.pending.is_some()
    }

    /// At the exit of a call.
    fn left(&mut self, tid: Tid) {
        let Some(pending) = self.threads.get_mut(&tid).and_then(|thread| thread.pending.take()) else {
            return;
        };
        let Some(registers) = registers(tid) else { return };
        let result = registers.rax as i64;
        if (-4095..0).contains(&result) {
            return;
        }
        let Some(process) = self
            .threads
            .get(&tid)
            .and_then(|thread| self.processes.get_mut(&thread.process))
        else {
            return;
        };
        let outcome = Outcome {
            tid,
            result,
            end_ns: spools::now(),
        };
        let path = if self.options.signatures {
            process.stack.walk(&mut self.binaries, tid, &registers)
        } else {
            stack::Path::default()
        };
        let mut out = spools::Out {
            spools: &mut self.spools,
            binaries: &self.binaries,
            path,
            tid,
        };
        pending.finish(process, &outcome, &self.options, &mut out);
    }
}

/// The next thread that stopped or ended, with its status; `None`: there is none left.
fn wait() -> Option<(Tid, i32)> {
    loop {
        let mut raw = 0;
        // SAFETY: the kernel writes the status. Only children of this thread are waited for: others are somebody else's.
        let tid = unsafe { libc::waitpid(-1, &raw mut raw, libc::__WALL | libc::__WNOTHREAD) };
        if tid > 0 {
            return Some((tid, raw));
        }
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}

fn resume(tid: Tid, request: libc::c_uint, signal: i32) {
    // SAFETY: a stopped thread that we trace; if it was killed meanwhile the call fails, and its end is reported.
    unsafe { libc::ptrace(request, tid, 0, signal as libc::c_long) };
}

/// What an event says besides.
fn message(tid: Tid) -> u64 {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one word.
    unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message) };
    message
}

fn registers(tid: Tid) -> Option<libc::user_regs_struct> {
    // SAFETY: all zeros is a set of registers; the kernel fills it in.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: a stopped thread that we trace.
    let answer = unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut registers) };
    (answer == 0).then_some(registers)
}
