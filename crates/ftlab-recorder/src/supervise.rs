//! A process between us and the program, to which everything that the program starts and leaves behind falls.
//!
//! # Model
//! A daemon's parent has ended: it belongs to the nearest ancestor that asked for such processes (a *subreaper*), else to the first
//! process of the system, and nobody else learns of its end. We may have other children, so a process of our own stands between: it
//! starts the program, takes what is left behind, and ends with the last of it. It says on a pipe which process the program is, how it
//! ended, and by closing it that nothing is left.
//!
//! The program runs in the terminal as without us: Ctrl-C reaches it and not only us, we wait for what it makes of that. Signals that ask us
//! to end are passed on to it. When it has ended and others go on, such a signal, or Ctrl-C, ends the recording: what still runs
//! goes on, unrecorded.
//! # Not modelled
//! Processes that another ancestor of theirs takes over, within the program.
//! # Source
//! prctl(2), PR_SET_CHILD_SUBREAPER.

#![expect(
    unsafe_code,
    reason = "processes and signals have no safe interface; proofs at each use"
)]

use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ftlab_core::{Error, Result};

/// How a program ended, and what was still running when nobody waited any longer.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub status: ExitStatus,
    /// Names of processes.
    pub running: Vec<String>,
}

/// The program's process id, for the handler; 0 while there is none.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// Signals that asked us to end.
static ASKED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    ASKED.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn pass_on(signal: libc::c_int) {
    ASKED.fetch_add(1, Ordering::Relaxed);
    let pid = PROGRAM.load(Ordering::Relaxed);
    if pid > 0 {
        // SAFETY: `kill` may be called in a signal handler.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Our handlers while a program runs; the ones before come back when it is dropped.
pub struct Handlers(Vec<(libc::c_int, libc::sigaction)>);

impl Handlers {
    /// For a program that gets Ctrl-C from the terminal itself.
    pub fn install() -> Self {
        let mut before = Vec::new();
        for (signal, handler) in [
            (libc::SIGINT, count as extern "C" fn(libc::c_int)),
            (libc::SIGQUIT, count),
            (libc::SIGTERM, pass_on),
            (libc::SIGHUP, pass_on),
        ] {
            // SAFETY: the structures are plain data, for which zeros are a value; the handlers do nothing that a handler may not.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = handler as usize;
                libc::sigaction(signal, std::ptr::null(), &raw mut old);
                // What is ignored stays so, for the program as well: it was started in the background.
                if old.sa_sigaction != libc::SIG_IGN
                    && libc::sigaction(signal, &raw const new, std::ptr::null_mut()) == 0
                {
                    before.push((signal, old));
                }
            }
        }
        Handlers(before)
    }

    /// How often we were asked to end, so far.
    pub fn asked() -> u32 {
        ASKED.load(Ordering::Relaxed)
    }

    /// Signals that ask us to end are passed on to this process; 0: to none.
    pub fn pass_to(pid: i32) {
        PROGRAM.store(pid, Ordering::Relaxed);
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        PROGRAM.store(0, Ordering::Relaxed);
        for (signal, old) in &self.0 {
            // SAFETY: the structure is the one that the kernel gave.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
    }
}

/// What the process between says: a kind and a number.
const STARTED: i32 = 1;
const NOT_STARTED: i32 = 2;
const ENDED: i32 = 3;
type Word = [i32; 2];

/// Runs a command until it and everything that it leaves behind have ended. `environment` is the whole of it, as NAME=value. `tell` is given
/// sentences for whoever waits.
pub fn run(words: &[CString], environment: &[CString], tell: &dyn Fn(&str)) -> Result<Outcome> {
    let name = words
        .first()
        .map_or_else(String::new, |word| word.to_string_lossy().into_owned());
    let failed = |cause: std::io::Error| Error::Io(format!("{name}: {cause}"));
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors, which are ours.
    let pipe = unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(failed(std::io::Error::last_os_error()));
        }
        ends.map(|end| OwnedFd::from_raw_fd(end))
    };
    let [reader, writer] = pipe;
    let _handlers = Handlers::install();
    let between = start(words, environment, writer.as_raw_fd()).map_err(failed)?;
    drop(writer);
    let mut waiting = Waiting {
        reader,
        between,
        status: None,
        tell,
    };
    let outcome = waiting.wait().map_err(failed);
    Handlers::pass_to(0);
    let mut raw = 0;
    // SAFETY: our own child; the kernel writes the status.
    while unsafe { libc::waitpid(between, &raw mut raw, 0) } == -1
        && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
    {}
    outcome
}

struct Waiting<'a> {
    reader: OwnedFd,
    between: libc::pid_t,
    /// Of the program, once it has ended, when that was, and how often we had been asked before.
    status: Option<(ExitStatus, Instant, u32)>,
    tell: &'a dyn Fn(&str),
}

impl Waiting<'_> {
    fn wait(&mut self) -> std::io::Result<Outcome> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let begun = Handlers::asked();
        let mut told = false;
        loop {
            match self.word()? {
                Some([STARTED, pid]) => Handlers::pass_to(pid),
                Some([NOT_STARTED, cause]) => return Err(std::io::Error::from_raw_os_error(cause)),
                Some([ENDED, raw]) => {
                    Handlers::pass_to(0);
                    self.status = Some((ExitStatus::from_raw(raw), Instant::now(), Handlers::asked()));
                }
                Some(_) => {
                    let status = self.status.map(|(status, ..)| status).unwrap_or_default();
                    let running = Vec::new();
                    return Ok(Outcome { status, running });
                }
                None => {}
            }
            let Some((status, since, asked)) = self.status else {
                continue;
            };
            // Whoever ended the program by Ctrl-C wants to see an end.
            let was_asked = Handlers::asked() > asked || asked > begun && since.elapsed() > PATIENCE;
            if was_asked {
                let running = names(&children(self.between));
                // SAFETY: our own child, which has not been waited for.
                unsafe { libc::kill(self.between, libc::SIGKILL) };
                return Ok(Outcome { status, running });
            }
            if !told && since.elapsed() > Duration::from_secs(1) {
                told = true;
                let running = children(self.between);
                if !running.is_empty() {
                    let (count, names) = (running.len(), names(&running).join(", "));
                    (self.tell)(&format!(
                        "the program has ended, and {count} processes that it started are still running ({names}): recording goes on until they end, or Ctrl-C"
                    ));
                }
            }
        }
    }

    /// The next word; none within a moment; one of kind 0 at the end.
    fn word(&self) -> std::io::Result<Option<Word>> {
        let mut poll = libc::pollfd {
            fd: self.reader.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure, which the kernel writes.
        if unsafe { libc::poll(&raw mut poll, 1, 200) } <= 0 {
            return Ok(None);
        }
        let mut word: Word = [0; 2];
        // SAFETY: the kernel writes at most as many bytes; words are written as a whole.
        let read = unsafe { libc::read(poll.fd, word.as_mut_ptr().cast(), size_of::<Word>()) };
        match read {
            -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => Ok(None),
            -1 => Err(std::io::Error::last_os_error()),
            read if read as usize == size_of::<Word>() => Ok(Some(word)),
            _ => Ok(Some([0; 2])),
        }
    }
}

/// The process between; it never returns here.
fn start(words: &[CString], environment: &[CString], pipe: i32) -> std::io::Result<libc::pid_t> {
    let list = |texts: &[CString]| -> Vec<*const libc::c_char> {
        let ended = std::iter::once(std::ptr::null());
        texts.iter().map(|text| text.as_ptr()).chain(ended).collect()
    };
    let (arguments, environment) = (list(words), list(environment));
    // No signal must come before each has its own mind about it.
    // SAFETY: sets of signals are plain data; the child makes system calls only, on memory that exists, and never returns.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let between = libc::fork();
        if between == 0 {
            stand_between(&arguments, &environment, pipe, &before);
        }
        let error = std::io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        if between < 0 { Err(error) } else { Ok(between) }
    }
}

/// # Safety
/// In a fresh child with all signals blocked; the lists end with a null.
unsafe fn stand_between(
    arguments: &[*const libc::c_char],
    environment: &[*const libc::c_char],
    pipe: i32,
    mask: &libc::sigset_t,
) -> ! {
    let say = |word: Word| {
        // SAFETY: the bytes of a word; less than a pipe takes at once.
        unsafe { libc::write(pipe, word.as_ptr().cast(), size_of::<Word>()) };
    };
    // SAFETY: system calls only.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        let program = libc::fork();
        if program == 0 {
            // What a program expects to find, which the runtimes of Rust and Python change for themselves.
            for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
                libc::signal(signal, libc::SIG_DFL);
            }
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
                let mut old: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &raw mut old);
                if old.sa_sigaction != libc::SIG_IGN {
                    libc::signal(signal, libc::SIG_DFL);
                }
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
            libc::execvpe(arguments[0], arguments.as_ptr(), environment.as_ptr());
            say([NOT_STARTED, *libc::__errno_location()]);
            libc::_exit(127);
        }
        if program < 0 {
            say([NOT_STARTED, *libc::__errno_location()]);
            libc::_exit(1);
        }
        say([STARTED, program]);
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
        // What our parent has open is none of this process's business: a pipe would not end.
        if pipe > 0 {
            libc::syscall(libc::SYS_close_range, 0, pipe - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, pipe + 1, u32::MAX, 0);
        loop {
            let mut raw = 0;
            let ended = libc::waitpid(-1, &raw mut raw, libc::__WALL);
            if ended == program {
                say([ENDED, raw]);
            } else if ended < 0 && *libc::__errno_location() != libc::EINTR {
                libc::_exit(0);
            }
        }
    }
}

/// Children of a process.
fn children(pid: libc::pid_t) -> Vec<libc::pid_t> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn names(pids: &[libc::pid_t]) -> Vec<String> {
    const SHOWN: usize = 4;
    let name = |pid: &libc::pid_t| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let names = pids.iter().take(SHOWN).map(|pid| name(pid).trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// Words of a command or an environment as the kernel takes them.
pub fn texts<'a>(words: impl Iterator<Item = &'a OsStr>) -> Result<Vec<CString>> {
    let texts: std::result::Result<_, _> = words.map(|word| CString::new(word.as_bytes())).collect();
    texts.map_err(|_| Error::input("a command with a zero byte in it cannot be run"))
}
