//! Running a program under ptrace: follows its forks, clones and execs, and stops at the filter's system calls.
//!
//! # Model
//! A seccomp filter stops the program at the calls of interest only ([`super::filter`]); all others run at full speed. What a call
//! means is for the [`Watcher`] to say, who is asked at its entry and, if it wants to know the result, at its exit.
//!
//! Set-user-id programs keep their rights if who traces has the right to install a filter without `no_new_privs` (root has);
//! else they run without them, which is counted ([`Traced::weakened`]).
//! # Not modelled
//! Stops by job control do not last. Programs that trace others themselves (debuggers). 32-bit programs (their calls run unseen).

use std::ffi::{CString, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use ftlab_core::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Tid, check, files, filter};
use crate::obstacles;
use crate::supervise::{self, Handlers};

pub type Registers = libc::user_regs_struct;

/// Told what the threads of a traced program do.
pub trait Watcher {
    /// A thread of a process begins, made by a thread of the same process or another; the first by nobody.
    fn began(&mut self, tid: Tid, process: Tid, maker: Option<Tid>);
    /// A process became another program; it has one thread, whose id is its own.
    fn executed(&mut self, process: Tid);
    /// A thread ended.
    fn ended(&mut self, tid: Tid);
    /// A thread is about to make a call; true: its result is of interest.
    fn entered(&mut self, tid: Tid, registers: &Registers) -> bool;
    /// The call was made and did not fail.
    fn left(&mut self, tid: Tid, registers: &Registers);
}

/// What came of a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traced {
    pub status: ExitStatus,
    /// Programs that ran without the rights that their file gives them.
    pub weakened: u64,
    /// Processes that went on when the program had ended were asked to end.
    pub asked_to_end: bool,
}

/// Runs the command until it and all it started have ended. `environment` is added to ours.
///
/// The calling thread becomes the tracer; signals of the terminal (Ctrl-C) are left to the program meanwhile. When that has ended and others
/// go on, Ctrl-C asks them to end (SIGTERM), and a second one ends them: they cannot run without their tracer.
pub fn run(
    command: &[OsString],
    environment: &[(&str, OsString)],
    filter: &filter::Filter,
    watcher: &mut dyn Watcher,
    tell: &dyn Fn(&str),
) -> Result<Traced> {
    let [program, ..] = command else {
        return Err(Error::input("no command to record"));
    };
    let words = supervise::texts(command.iter().map(OsString::as_os_str))?;
    let root = start(
        &words,
        &supervise::texts(completed(environment).iter().map(OsString::as_os_str))?,
        filter,
    )?;
    let handlers = Handlers::install();
    Handlers::pass_to(root);
    let mut tracer = Tracer {
        watcher,
        threads: FxHashMap::default(),
        early: FxHashSet::default(),
        begun: FxHashSet::default(),
        weakened: 0,
        ended: None,
        asked_to_end: false,
    };
    let status = tracer.run(root, Path::new(program), tell);
    let (weakened, asked_to_end) = (tracer.weakened, tracer.asked_to_end);
    drop(handlers);
    status.map(|status| Traced {
        status,
        weakened,
        asked_to_end,
    })
}

/// Our environment with what is added or replaced, as NAME=value.
pub fn completed(added: &[(&str, OsString)]) -> Vec<OsString> {
    let ours = std::env::vars_os().filter(|(name, _)| !added.iter().any(|(new, _)| name == new));
    let added = added.iter().map(|(name, value)| (OsString::from(name), value.clone()));
    ours.chain(added)
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            name
        })
        .collect()
}

/// The child that becomes the program: it stops until the tracer is ready, and ends with the number of the error if it cannot.
fn start(words: &[CString], environment: &[CString], filter: &filter::Filter) -> Result<Tid> {
    let list = |texts: &[CString]| -> Vec<*const libc::c_char> {
        let ended = std::iter::once(std::ptr::null());
        texts.iter().map(|text| text.as_ptr()).chain(ended).collect()
    };
    let (arguments, environment) = (list(words), list(environment));
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
            libc::execvpe(arguments[0], arguments.as_ptr(), environment.as_ptr());
        }
        libc::_exit(*libc::__errno_location());
    }
}

struct Tracer<'a> {
    watcher: &'a mut dyn Watcher,
    /// Processes of the threads.
    threads: FxHashMap<Tid, Tid>,
    /// Stopped before the event that announces them.
    early: FxHashSet<Tid>,
    /// Threads whose first stop has been.
    begun: FxHashSet<Tid>,
    weakened: u64,
    /// How often we had been asked to end when the program ended.
    ended: Option<u32>,
    asked_to_end: bool,
}

impl Tracer<'_> {
    fn run(&mut self, root: Tid, program: &Path, tell: &dyn Fn(&str)) -> Result<ExitStatus> {
        self.attach(root, program)?;
        let mut status = ExitStatus::default();
        while let Some((tid, raw)) = self.wait() {
            let stopped = ExitStatus::from_raw(raw);
            if libc::WIFSTOPPED(raw) {
                self.stopped(tid, libc::WSTOPSIG(raw), raw >> 16);
            } else {
                self.ended(tid);
                if tid == root {
                    status = stopped;
                    Handlers::pass_to(0);
                    self.ended = Some(Handlers::asked());
                    if !self.threads.is_empty() {
                        tell(
                            "the program has ended, and processes that it started are still running: recording goes on until they end, or Ctrl-C ends them",
                        );
                    }
                }
            }
        }
        Ok(status)
    }

    /// The next thread that stopped or ended, with its status; `None`: there is none left.
    fn wait(&mut self) -> Option<(Tid, i32)> {
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
            if let Some(before) = self.ended
                && Handlers::asked() > before
            {
                self.end_all();
            }
        }
    }

    /// Asks every process to end, or ends it if it was asked before.
    fn end_all(&mut self) {
        let signal = if self.asked_to_end {
            libc::SIGKILL
        } else {
            libc::SIGTERM
        };
        self.asked_to_end = true;
        self.ended = Some(Handlers::asked());
        for process in self.threads.values().copied().collect::<FxHashSet<Tid>>() {
            // SAFETY: a process that we trace, which has not been waited for.
            unsafe { libc::kill(process, signal) };
        }
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
                self.begin(root, root, None);
                self.begun.insert(root);
                self.look_at_rights(root);
                resume(root, libc::PTRACE_CONT, 0);
                return Ok(());
            } else if raw >> 16 != 0 {
                signal = 0;
            }
            resume(root, libc::PTRACE_CONT, signal);
        }
    }

    /// A thread of a process begins.
    fn begin(&mut self, tid: Tid, process: Tid, maker: Option<Tid>) {
        self.threads.insert(tid, process);
        self.watcher.began(tid, process, maker);
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
                    self.begin(new, files::process_of(new).unwrap_or(new), Some(tid));
                    if self.early.remove(&new) {
                        self.begun.insert(new);
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
        self.threads.contains_key(&tid) && self.begun.insert(tid)
    }

    /// A process became another program: its other threads are gone, and it has the id of its first thread.
    fn executed(&mut self, tid: Tid, former: Tid) {
        if former != tid && former != 0 {
            self.ended(former);
        }
        self.begun.insert(tid);
        self.threads.insert(tid, tid);
        self.watcher.executed(tid);
        self.look_at_rights(tid);
    }

    /// A new program whose file would give it rights, did the filter not forbid that.
    fn look_at_rights(&mut self, process: Tid) {
        let field = |name| files::status_field(process, name);
        if field("NoNewPrivs:") == Some(1)
            && let (Some(user), Some(group)) = (field("Uid:"), field("Gid:"))
        {
            let gives = obstacles::gives_rights(&files::exe(process), user, group);
            self.weakened += u64::from(gives.unwrap_or(false));
        }
    }

    fn ended(&mut self, tid: Tid) {
        self.begun.remove(&tid);
        self.early.remove(&tid);
        self.threads.remove(&tid);
        self.watcher.ended(tid);
    }

    fn entered(&mut self, tid: Tid) -> bool {
        registers(tid).is_some_and(|registers| self.watcher.entered(tid, &registers))
    }

    /// At the exit of a call.
    fn left(&mut self, tid: Tid) {
        if let Some(registers) = registers(tid)
            && !(-4095..0).contains(&(registers.rax as i64))
        {
            self.watcher.left(tid, &registers);
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
