//! Starting the program to be recorded, and waiting for it.
//!
//! # Model
//! The program runs in the terminal as without us: Ctrl-C reaches it and not only us, we wait for what it makes of that. Signals that
//! ask us to end are passed on to it.

#![expect(unsafe_code, reason = "signal handlers have no safe interface; proofs at each use")]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use ftlab_core::{Error, Result};

use crate::loading::{self, Obstacle};

/// The program's process id, for the handler; 0 while there is none.
static PROGRAM: AtomicI32 = AtomicI32::new(0);

extern "C" fn wait_on(_: libc::c_int) {}

extern "C" fn pass_on(signal: libc::c_int) {
    let pid = PROGRAM.load(Ordering::Relaxed);
    if pid > 0 {
        // SAFETY: `kill` may be called in a signal handler.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Our handlers while a program runs; the ones before come back when it is dropped.
struct Handlers(Vec<(libc::c_int, libc::sigaction)>);

impl Handlers {
    fn install() -> Self {
        let mut before = Vec::new();
        for (signal, handler) in [
            (libc::SIGINT, wait_on as extern "C" fn(libc::c_int)),
            (libc::SIGQUIT, wait_on),
            (libc::SIGTERM, pass_on),
            (libc::SIGHUP, pass_on),
        ] {
            // SAFETY: the structures are plain data, for which zeros are a value; the handlers do nothing that a handler may not.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = handler as usize;
                new.sa_flags = libc::SA_RESTART;
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
}

impl Drop for Handlers {
    fn drop(&mut self) {
        for (signal, old) in &self.0 {
            // SAFETY: the structure is the one that the kernel gave.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
    }
}

/// Does `work` as the program runs; `work` is given a place for its process id.
pub fn attended<T>(work: impl FnOnce(&dyn Fn(u32)) -> T) -> T {
    let _handlers = Handlers::install();
    let done = work(&|pid| PROGRAM.store(pid as i32, Ordering::Relaxed));
    PROGRAM.store(0, Ordering::Relaxed);
    done
}

/// Runs a command to its end.
pub fn run(command: &mut Command, name: &str) -> Result<ExitStatus> {
    attended(|started| {
        let mut child = command.spawn().map_err(|e| Error::Io(format!("{name}: {e}")))?;
        started(child.id());
        child.wait().map_err(|e| Error::Io(format!("{name}: {e}")))
    })
}

/// The exit code as shells give it: 128 and the signal for a program that was killed.
pub fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or(status.signal().map(|signal| 128 + signal))
        .unwrap_or(1)
}

/// The file that a command names, as the shell finds it.
pub fn find(program: &str) -> Result<PathBuf> {
    let candidates: Vec<PathBuf> = match program.contains('/') {
        true => vec![PathBuf::from(program)],
        false => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path)
                .map(|folder| folder.join(program))
                .collect()
        }
    };
    let found = candidates.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| Error::input(format!("{program}: expected a program that can be found")))
}

pub fn is_root() -> bool {
    // SAFETY: it only answers.
    unsafe { libc::geteuid() == 0 }
}

/// Refuses a program that would run without being recorded: one sentence why.
pub fn check_recordable(path: &Path) -> Result<()> {
    // SAFETY: they only answer.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let found = match loading::obstacle(path, user, group) {
        // An interpreter that does not exist is refused by the kernel, in its own words.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|e| Error::io(path, &e))?,
    };
    let Some((file, obstacle)) = found else { return Ok(()) };
    let name = file.display();
    Err(Error::input(match obstacle {
        Obstacle::Static => format!(
            "{name} is linked statically, so that nothing can be loaded into it: expected a dynamic program, or --exact, which sees every system call"
        ),
        Obstacle::OtherMachine => {
            format!("{name} is not a 64-bit x86 program, so that nothing can be loaded into it: expected one that is")
        }
        Obstacle::Rights => format!(
            "{name} gets other rights than who starts it (set-user-id, set-group-id or capabilities), so that nothing can be loaded into it: expected a program that runs as who starts it"
        ),
    }))
}
