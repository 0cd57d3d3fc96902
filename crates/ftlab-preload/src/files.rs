//! Which file a descriptor means.
//!
//! # Model
//! A table with a word per descriptor, shared by the threads: not known, of no interest, or a file's id and flags. A
//! descriptor is looked at (fstat, its flags, its name) on its first use after it was opened, and forgotten when it is closed or
//! replaced. Regular files only; not those of /proc, /sys, /dev/shm, memory files, and the spools themselves.
//! # Not modelled
//! Descriptors closed and opened again by system calls that pass every hook. Block devices.

use core::sync::atomic::{AtomicU64, Ordering};

use ftlab_record::spool::{FileFacts, NoteKind, file_flags};

use crate::process::{DESCRIPTORS, Wiped};
use crate::sys;
use crate::thread::Recording;

/// What a word of the table says; 0 is "not known".
const IGNORED: u64 = 1;
const FILE: u64 = 2;

/// A file that is recorded.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub id: u32,
    /// Of the descriptor: `file_flags`.
    pub flags: u16,
}

impl Known {
    /// What the descriptor's flags mean for an op.
    pub fn op_flags(self) -> u16 {
        file_flags::of_ops(self.flags)
    }

    fn word(self) -> u64 {
        u64::from(self.id) << 32 | u64::from(self.flags) << 8 | FILE
    }
}

fn entry(wiped: &Wiped, fd: i32) -> Option<&AtomicU64> {
    const { assert!(DESCRIPTORS <= i32::MAX as usize) };
    wiped.descriptors.get(usize::try_from(fd).ok()?)
}

/// Whether a descriptor is known to be of no interest: what most calls of most programs need to know.
#[inline]
pub fn is_ignored(wiped: &Wiped, fd: i32) -> bool {
    fd < 0 || entry(wiped, fd).is_some_and(|entry| entry.load(Ordering::Relaxed) == IGNORED)
}

/// A descriptor that was recorded before.
pub fn if_known(wiped: &Wiped, fd: i32) -> Option<Known> {
    known(entry(wiped, fd)?.load(Ordering::Relaxed))
}

pub fn forget(fd: i32) {
    if let Some(entry) = crate::process::wiped().and_then(|wiped| entry(wiped, fd)) {
        entry.store(0, Ordering::Relaxed);
    }
}

/// Forgets a range, both ends included.
pub fn forget_range(first: u32, last: u32) {
    let Some(wiped) = crate::process::wiped() else { return };
    let last = (last as usize).min(DESCRIPTORS - 1);
    for entry in wiped.descriptors.get(first as usize..=last).unwrap_or(&[]) {
        // Untouched pages of the table are not written to.
        if entry.load(Ordering::Relaxed) != 0 {
            entry.store(0, Ordering::Relaxed);
        }
    }
}

fn known(word: u64) -> Option<Known> {
    (word & 0xff == FILE).then_some(Known {
        id: (word >> 32) as u32,
        flags: (word >> 8) as u16,
    })
}

/// The file of a descriptor, described in the spool on its first use.
pub fn of(recording: &mut Recording<'_>, fd: i32) -> Option<Known> {
    let wiped = recording.wiped;
    let entry = entry(wiped, fd);
    let word = entry.map_or(0, |entry| entry.load(Ordering::Relaxed));
    match word {
        IGNORED => return None,
        0 => {}
        word => return known(word),
    }
    let found = describe(recording, fd);
    if let Some(entry) = entry {
        // A descriptor that another thread closes meanwhile is that program's race; at worst its next file goes by this name.
        entry.store(
            match found {
                Described::File(known) => known.word(),
                Described::Ignored => IGNORED,
                Described::Failed => 0,
            },
            Ordering::Relaxed,
        );
    }
    match found {
        Described::File(known) => Some(known),
        _ => None,
    }
}

/// The file of a descriptor under a new id: of a mapping, which outlives the descriptor.
pub fn another(recording: &mut Recording<'_>, fd: i32) -> Option<Known> {
    match describe(recording, fd) {
        Described::File(known) => Some(known),
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum Described {
    File(Known),
    Ignored,
    Failed,
}

fn describe(recording: &mut Recording<'_>, fd: i32) -> Described {
    let Ok(status) = sys::status(fd, c"", true) else {
        recording.wiped.note(NoteKind::FileUnknown, 1);
        return Described::Failed;
    };
    if !status.regular {
        // A folder's descriptor is closed within the C library (closedir) and its number used again unseen: it is looked at anew.
        return if status.folder {
            Described::Failed
        } else {
            Described::Ignored
        };
    }
    let mut link = sys::PathBuffer::new();
    if !(link.push(b"/proc/self/fd/") && link.push_number(fd as u64)) {
        return Described::Failed;
    }
    let Some(buffer) = recording.thread.path.take() else {
        return Described::Failed;
    };
    let path = sys::read_link(link.as_c(), buffer);
    let described = if is_interesting(path) {
        let flags = sys::fcntl(fd, libc::F_GETFL, 0).map_or(0, |flags| stored_flags(flags as i32));
        introduce(recording, &status, flags, path).map_or(Described::Failed, Described::File)
    } else {
        Described::Ignored
    };
    recording.thread.path = Some(buffer);
    described
}

/// Writes what is known of a file under a new id.
pub fn introduce(recording: &mut Recording<'_>, status: &sys::Status, flags: u16, path: &[u8]) -> Option<Known> {
    let id = recording
        .wiped
        .next_file
        .fetch_add(1, Ordering::Relaxed)
        .wrapping_add(1);
    let facts = FileFacts {
        id,
        flags,
        device: status.device,
        inode: status.inode,
        birth_ns: status.birth_ns,
        size: status.size,
    };
    let (writer, space) = recording.writer()?;
    writer.file(space, &facts, path)?;
    Some(Known { id, flags })
}

/// Whether a file with this name lies on a drive, and is not one of our own.
pub fn is_interesting(path: &[u8]) -> bool {
    let elsewhere = [&b"/proc/"[..], b"/sys/", b"/dev/", b"/memfd:", b"/SYSV"];
    if elsewhere.iter().any(|start| path.starts_with(start)) || !path.starts_with(b"/") {
        return false;
    }
    let own = crate::process::folder();
    !path.strip_prefix(own).is_some_and(|rest| rest.starts_with(b"/"))
}

fn stored_flags(flags: i32) -> u16 {
    let flag = |from: i32, to: u16| if flags & from != 0 { to } else { 0 };
    let mode = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => file_flags::READ_ONLY,
        libc::O_WRONLY => file_flags::WRITE_ONLY,
        _ => 0,
    };
    mode | flag(libc::O_SYNC | libc::O_DSYNC, file_flags::SYNC)
        | flag(libc::O_DIRECT, file_flags::DIRECT)
        | flag(libc::O_APPEND, file_flags::APPEND)
}
