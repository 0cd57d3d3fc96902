//! Calls that change the content of a file.

use ftlab_record::spool::{Op, op_flags};

use super::transfer::transfer;
use super::{Real, hooks};
use crate::record::{self, Call};
use crate::signature::CallSite;

hooks! {
    write => at_position;
    pwrite => at_offset;
    pwrite64 => at_offset;
    writev => at_position;
    pwritev => at_offset;
    pwritev64 => at_offset;
    pwritev2 => |arguments, at, real| with_flags(4, arguments, at, real);
    pwritev64v2 => |arguments, at, real| with_flags(4, arguments, at, real);
    fallocate => allocate;
    fallocate64 => allocate;
    posix_fallocate => posix_allocate;
    posix_fallocate64 => posix_allocate;
    ftruncate => truncate_descriptor;
    ftruncate64 => truncate_descriptor;
    truncate => truncate_path;
    truncate64 => truncate_path;
    copy_file_range => copy_range;
    sendfile => send;
    sendfile64 => send;
    splice => splice_into;
}

pub fn at_position(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    transfer(Op::Write, arguments[0] as i32, None, 0, arguments, at, real)
}

/// The offset is the fourth argument.
pub fn at_offset(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    transfer(
        Op::Write,
        arguments[0] as i32,
        Some(arguments[3]),
        0,
        arguments,
        at,
        real,
    )
}

/// pwritev2: offset −1 means the descriptor's position; the flags are the fifth argument, the sixth of the system call.
pub fn with_flags(flags_at: usize, arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let wanted = arguments.get(flags_at).map_or(0, |&flags| flags as i32);
    let mut flags = 0;
    if wanted & (libc::RWF_SYNC | libc::RWF_DSYNC) != 0 {
        flags |= op_flags::SYNC;
    }
    if wanted & libc::RWF_APPEND != 0 {
        flags |= op_flags::APPEND;
    }
    let offset = (arguments[3] as isize != -1).then_some(arguments[3]);
    transfer(Op::Write, arguments[0] as i32, offset, flags, arguments, at, real)
}

pub fn allocate(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [fd, mode, offset, length, ..] = arguments;
    let Some(start_ns) = record::begin(fd as i32) else {
        return real.call(arguments);
    };
    let done = real.call(arguments);
    if done as i32 == 0 {
        allocated(fd as i32, mode as i32, start_ns, offset as u64, length as u64, at);
    }
    done
}

/// What fallocate did.
pub fn allocated(fd: i32, mode: i32, start_ns: u64, offset: u64, length: u64, at: &CallSite) {
    let taken = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
    let shifted = libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE;
    let op = if mode & (taken | shifted) != 0 {
        Op::Punch
    } else {
        Op::Fallocate
    };
    let mut flags = 0;
    if mode & libc::FALLOC_FL_KEEP_SIZE != 0 {
        flags |= op_flags::KEEP_SIZE;
    }
    if mode & shifted != 0 {
        flags |= op_flags::SHIFTED;
    }
    if mode & libc::FALLOC_FL_INSERT_RANGE != 0 {
        flags |= op_flags::UP;
    }
    record::on_descriptor(
        fd,
        Call {
            op,
            flags,
            start_ns,
            offset,
            length,
            at: Some(at),
        },
        false,
    );
}

/// posix_fallocate gives back an error number, and takes no mode.
fn posix_allocate(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [fd, offset, length, ..] = arguments;
    let Some(start_ns) = record::begin(fd as i32) else {
        return real.call(arguments);
    };
    let done = real.call(arguments);
    if done as i32 == 0 {
        allocated(fd as i32, 0, start_ns, offset as u64, length as u64, at);
    }
    done
}

pub fn truncate_descriptor(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [fd, size, ..] = arguments;
    let Some(start_ns) = record::begin(fd as i32) else {
        return real.call(arguments);
    };
    let old = record::size(fd as i32);
    let done = real.call(arguments);
    if done as i32 == 0 {
        let call = Call {
            op: Op::Truncate,
            flags: 0,
            start_ns,
            offset: size as u64,
            length: old,
            at: Some(at),
        };
        record::on_descriptor(fd as i32, call, false);
    }
    done
}

pub fn truncate_path(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [path, size, ..] = arguments;
    let Some(seen) = record::look(libc::AT_FDCWD, path, true) else {
        return real.call(arguments);
    };
    let done = real.call(arguments);
    if done as i32 == 0 {
        let call = Call {
            op: Op::Truncate,
            flags: 0,
            start_ns: seen.start_ns,
            offset: size as u64,
            length: seen.status.size,
            at: Some(at),
        };
        record::on_path(&seen, libc::AT_FDCWD, path, call);
    }
    done
}

/// Offsets are given by pointers, or are the descriptors' positions.
pub fn copy_range(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    count(copied(
        arguments,
        arguments[2] as i32,
        arguments[3] as *const i64,
        at,
        real,
    ))
}

pub fn splice_into(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    copied(arguments, arguments[2] as i32, arguments[3] as *const i64, at, real)
}

/// Into the first descriptor, at its position.
pub fn send(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    count(copied(arguments, arguments[0] as i32, core::ptr::null(), at, real))
}

fn copied(arguments: [usize; 6], into: i32, offset: *const i64, at: &CallSite, real: &Real) -> isize {
    let Some(start_ns) = record::begin(into) else {
        return real.call(arguments);
    };
    let done = real.call(arguments);
    if done > 0 {
        let length = done as u64;
        let mut call = Call {
            op: Op::Write,
            flags: op_flags::COPIED,
            start_ns,
            offset: 0,
            length,
            at: Some(at),
        };
        if offset.is_null() {
            record::on_descriptor(into, call, true);
        } else {
            // SAFETY: the kernel has just read the old offset there and written the new one.
            call.offset = (unsafe { offset.read() } as u64).saturating_sub(length);
            record::on_descriptor(into, call, false);
        }
    }
    done
}

/// Bytes of a call that the kernel counts as written; a splice's it does not.
fn count(done: isize) -> isize {
    crate::accounts::pass(done);
    done
}
