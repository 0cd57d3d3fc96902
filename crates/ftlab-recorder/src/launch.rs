//! The program to be recorded: where it is, whether it can be, and how it ended.

#![expect(unsafe_code, reason = "who we are has no safe interface")]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use ftlab_core::{Error, Result};

use ftlab_record::loading::Obstacle;

use crate::obstacles;

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
    let found = match obstacles::obstacle(path, user, group) {
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
