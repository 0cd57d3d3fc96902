//! Notes of a recording as sentences: what was missed, how much of it, and by which programs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ftlab_record::spool::NoteKind;

/// Names of programs that a note is about, those with most first.
pub(super) fn named(programs: &BTreeMap<&str, u64>) -> String {
    const SHOWN: usize = 4;
    let mut names: Vec<(&str, u64)> = programs
        .iter()
        .map(|(&name, &count)| (if name.is_empty() { "unknown program" } else { name }, count))
        .collect();
    names.sort_by_key(|&(name, count)| (Reverse(count), name));
    let shown: Vec<&str> = names.iter().take(SHOWN).map(|&(name, _)| name).collect();
    let others = names.len() - shown.len();
    let others = if others > 0 {
        format!(" and {others} more")
    } else {
        String::new()
    };
    format!(": {}{others}", shown.join(", "))
}

/// What a note says, but for the names of the programs.
pub(super) fn sentence(kind: NoteKind, count: u64) -> String {
    match kind {
        NoteKind::IoUring => format!(
            "io_uring: {count} requests were handed in past every library function and are missing; `--exact` records them"
        ),
        NoteKind::Aio => format!("asynchronous I/O: {count} requests, recorded when they were handed in"),
        NoteKind::Interrupted => format!("{count} calls of signal handlers in the middle of a record were left out"),
        NoteKind::NoRoom => {
            format!("{count} calls were left out for want of a descriptor, of memory or of a place for the spool")
        }
        NoteKind::ContextsFull => format!("{count} program contexts were too many: their call paths are unknown"),
        NoteKind::StdioUnseen => "buffered streams of a C library were not seen (its layout is not known)".to_owned(),
        NoteKind::FileUnknown => format!("{count} calls were left out because their file could not be told"),
        NoteKind::NotLoaded => {
            format!(
                "{count} programs were started that the library is not loaded into (linked statically, set-user-id, or not 64-bit x86): what they did is missing; `--exact` sees static ones"
            )
        }
        NoteKind::Unsupported => format!("{count} calls moved data in ways that have no record"),
        NoteKind::PastLibrary => format!(
            "{count} bytes were written (to files, pipes or terminals) by system calls that passed the library and are missing; `--exact` sees them"
        ),
        NoteKind::Sandboxed => format!(
            "{count} processes forbade themselves system calls (seccomp) that a record takes, and were left alone from then on: what they did is missing"
        ),
        NoteKind::Confined => format!(
            "{count} processes put the recording out of their own reach (chroot, Landlock): what they and their children did later may be missing"
        ),
        NoteKind::Go => format!(
            "{count} programs of the Go runtime, which makes its system calls itself: what they wrote is missing; `--exact` sees it"
        ),
        NoteKind::Uncompared => {
            format!("{count} pages of shared mappings could not be compared: what was stored in them may be missing")
        }
        NoteKind::Compiled => format!(
            "{count} call paths end in code that lies in no file, as the runtimes of Java and JavaScript make it: who called that is unknown; without `--exact` the functions of Java are recorded"
        ),
        NoteKind::Taken => format!("{count} requests were looked at"),
        NoteKind::Unreachable => {
            format!(
                "{count} programs were started where the library cannot be reached (another root): what they did is missing"
            )
        }
    }
}
