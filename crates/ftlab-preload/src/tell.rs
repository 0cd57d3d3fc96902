//! Notes on what is not recorded.
//!
//! # Model
//! A note goes into the spool of the thread. Where there can be none (no descriptor left, a folder out of reach) it becomes a *word*: a
//! symbolic link in the folder of the spools, which takes neither a descriptor nor room.
//! # Not modelled
//! A process that may not make links either.

use core::sync::atomic::Ordering;

use ftlab_record::spool::{NoteKind, WORD};

use crate::thread::{self, Recording};
use crate::{process, sys};

/// Leaves a note; an empty name stands for the program of this process.
pub fn note(what: NoteKind, count: u64, program: &[u8]) {
    let told = thread::with(|recording| {
        if into_spool(recording, what, count, program).is_none() {
            word(what, program);
        }
        Some(())
    });
    if told.is_none()
        && let Some(wiped) = process::wiped()
    {
        // In the middle of a record: the next one takes the count along, without a name.
        wiped.note(what, count);
    }
}

/// Writes the counts that wait for the thread's next record.
pub fn pending() {
    let _ = thread::with(|recording| recording.writer().map(|_| ()));
}

fn into_spool(recording: &mut Recording<'_>, what: NoteKind, count: u64, program: &[u8]) -> Option<()> {
    let (writer, space) = recording.writer()?;
    writer.note_about(space, what, count, program)
}

/// Leaves word; the first of its kind in this process image only.
pub fn word(what: NoteKind, program: &[u8]) {
    let Some(wiped) = process::wiped() else { return };
    if wiped.words.fetch_or(1 << what as u32, Ordering::Relaxed) & 1 << what as u32 != 0 {
        return;
    }
    let mut own = [0; 512];
    let program = if program.is_empty() {
        sys::read_link(c"/proc/self/exe", &mut own)
    } else {
        program
    };
    let (mut target, mut path) = (sys::PathBuffer::new(), sys::PathBuffer::new());
    let shown = program.get(..program.len().min(240)).unwrap_or(&[]);
    let named = target.push(if shown.is_empty() { b"?" } else { shown })
        && path.push(process::folder())
        && path.push(b"/")
        && path.push_number(sys::pid().into())
        && path.push(b".")
        && path.push_number(sys::now())
        && path.push(b".")
        && path.push_number(what as u64)
        && path.push(b".")
        && path.push(WORD.as_bytes());
    if named {
        sys::link_to(target.as_c(), path.as_c());
    }
}
