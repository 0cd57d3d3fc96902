//! The C library's buffered streams, whose system calls are made within it.
//!
//! # Model
//! Streams of glibc reach the kernel through a table of functions, `_IO_file_jumps` (`_IO_wfile_jumps` for wide characters),
//! which lies in memory that is read-only after start. The entries for read, write and close are replaced by hooks that call the old
//! ones, so every flush is seen, whatever printed into the buffer, also the one at exit. The tables keep their place, which is all
//! that glibc checks. Only if the entries are the functions that the library exports under their names: otherwise nothing
//! is touched, and a note says so.
//! # Not modelled
//! Other C libraries. Streams with functions of their own (fopencookie): those make calls that are seen. dprintf since glibc 2.37.

use core::sync::atomic::{AtomicBool, Ordering};

use ftlab_record::spool::{NoteKind, Op, op_flags};

use super::transfer::transfer;
use super::{Real, hooks};
use crate::modules;
use crate::process;
use crate::signature::CallSite;
use crate::sys;

hooks! {
    ftlab_stream_read => read;
    ftlab_stream_write => write;
    ftlab_stream_close => close;
}

/// Places in the table.
const READ: usize = 14;
const WRITE: usize = 15;
const CLOSE: usize = 17;

static SEEN: AtomicBool = AtomicBool::new(false);

/// Whether streams are seen.
pub fn is_seen() -> bool {
    SEEN.load(Ordering::Relaxed)
}

unsafe extern "C" {
    fn fileno_unlocked(stream: *mut libc::FILE) -> libc::c_int;
}

/// Called once, before `main`, when there is one thread.
pub fn start() {
    let find = |name: &core::ffi::CStr| {
        // SAFETY: a name with its NUL.
        (unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }) as usize
    };
    let own = [
        (
            READ,
            find(c"_IO_file_read"),
            ftlab_stream_read as *const () as usize,
            &real::ftlab_stream_read,
        ),
        (
            WRITE,
            find(c"_IO_file_write"),
            ftlab_stream_write as *const () as usize,
            &real::ftlab_stream_write,
        ),
        (
            CLOSE,
            find(c"_IO_file_close"),
            ftlab_stream_close as *const () as usize,
            &real::ftlab_stream_close,
        ),
    ];
    let mut seen = true;
    for (_, old, _, real) in &own {
        seen &= *old != 0;
        real.set(*old);
    }
    for table in [find(c"_IO_file_jumps"), find(c"_IO_wfile_jumps")] {
        seen = seen && replace(table as *mut usize, &own.map(|(place, old, new, _)| (place, old, new))).is_some();
    }
    SEEN.store(seen, Ordering::Relaxed);
    if !seen && let Some(wiped) = process::wiped() {
        wiped.note(NoteKind::StdioUnseen, 1);
    }
}

/// Replaces entries (place, old, new) of a table; `None`: it is not as expected, and stays as it is.
fn replace(table: *mut usize, entries: &[(usize, usize, usize); 3]) -> Option<()> {
    let writable = modules::memory_of(process::wiped()?, table as u64)?.writable;
    for &(place, old, _) in entries {
        // SAFETY: the table is mapped and readable, as `memory_of` found, and has 21 words at least in every glibc since 2.1.
        if unsafe { table.add(place).read() } != old {
            return None;
        }
    }
    let first = table as usize / 4096 * 4096;
    // SAFETY: as above; one past the last place used.
    let last = (unsafe { table.add(CLOSE + 1) } as usize).next_multiple_of(4096);
    if !writable && !sys::protect(first, last - first, libc::PROT_READ | libc::PROT_WRITE) {
        return None;
    }
    for &(place, _, new) in entries {
        // SAFETY: writable now; nobody else runs yet.
        unsafe { table.add(place).write(new) };
    }
    if !writable {
        sys::protect(first, last - first, libc::PROT_READ);
    }
    Some(())
}

/// Of a stream, buffer and length, as `read`.
fn write(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    transfer(
        Op::Write,
        descriptor(arguments),
        None,
        op_flags::STDIO,
        arguments,
        at,
        real,
    )
}

fn read(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    transfer(
        Op::Read,
        descriptor(arguments),
        None,
        op_flags::STDIO,
        arguments,
        at,
        real,
    )
}

fn descriptor(arguments: [usize; 6]) -> i32 {
    // SAFETY: libc's own argument is a stream.
    unsafe { fileno_unlocked(arguments[0] as *mut libc::FILE) }
}

fn close(arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    super::descriptors::close_and_forget(descriptor(arguments));
    real.call(arguments)
}
