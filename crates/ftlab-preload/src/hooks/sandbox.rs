//! Calls after which a process may do less than before.
//!
//! # Model
//! A seccomp filter is asked beforehand ([`crate::bpf`]) what it says to the calls that a record takes. If it says anything but yes to one of
//! them, or the process chooses the strict mode, this process is left alone from then on: it would be killed for a call of ours. A
//! note says so before. After a change of its root the process can have no further spool: what fits into the one it has is recorded.
//! # Not modelled
//! Filters installed by system calls that no library function makes, and those that were there when the program was started.

use ftlab_record::spool::NoteKind;

use super::{Real, hooks};
use crate::signature::CallSite;
use crate::{bpf, process, tell, thread};

hooks! {
    prctl => control;
    chroot => confined;
}

const SECCOMP_SET_MODE_STRICT: usize = 0;
const SECCOMP_SET_MODE_FILTER: usize = 1;

pub fn control(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [option, mode, program, ..] = arguments;
    if option as i32 != libc::PR_SET_SECCOMP {
        return real.call(arguments);
    }
    let operation = match mode as u32 {
        libc::SECCOMP_MODE_STRICT => SECCOMP_SET_MODE_STRICT,
        _ => SECCOMP_SET_MODE_FILTER,
    };
    restricted(operation, program, arguments, at, real)
}

/// `seccomp`, which is made by `syscall` only.
pub fn filtered(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    restricted(arguments[0], arguments[2], arguments, at, real)
}

fn restricted(operation: usize, program: usize, arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    let stops = process::wiped().is_some()
        && match operation {
            SECCOMP_SET_MODE_STRICT => true,
            SECCOMP_SET_MODE_FILTER => !allowed(program),
            _ => false,
        };
    if stops {
        tell::note(NoteKind::Sandboxed, 1, b"");
        thread::process_ends();
        process::leave_alone();
    }
    let done = real.call(arguments);
    if stops && done as i32 != 0 {
        process::go_on();
    }
    done
}

/// Whether the filter at an address of the program's lets records be made; one that cannot be read is refused by the kernel as well.
fn allowed(program: usize) -> bool {
    const LONGEST: usize = 4096;
    let mut head = [0u8; size_of::<libc::sock_fprog>()];
    if crate::sys::read_own(program, &mut head) != head.len() {
        return true;
    }
    // SAFETY: any bytes are a `sock_fprog`, which is only looked at.
    let head: libc::sock_fprog = unsafe { core::ptr::read_unaligned(head.as_ptr().cast()) };
    let len = usize::from(head.len);
    let bytes = len * size_of::<libc::sock_filter>();
    let mut last = [0u8; 1];
    if len == 0 || len > LONGEST || crate::sys::read_own(head.filter as usize + bytes - 1, &mut last) != 1 {
        return true;
    }
    // SAFETY: the program hands these instructions to the kernel, and they reach as far as was just read.
    bpf::allows_records(unsafe { core::slice::from_raw_parts(head.filter, len) })
}

pub fn confined(arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    if process::wiped().is_some() {
        tell::note(NoteKind::Confined, 1, b"");
    }
    real.call(arguments)
}
