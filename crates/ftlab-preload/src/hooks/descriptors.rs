//! Calls that open, close and copy descriptors: what a number means changes.

use ftlab_record::spool::Op;
use ftlab_record::spool::lifetime_hints::{F_SET_FILE_RW_HINT, F_SET_RW_HINT};

use super::{Real, hooks};
use crate::files;
use crate::process;
use crate::record::{self, Call, Seen};
use crate::signature::CallSite;

const CWD: i32 = libc::AT_FDCWD;

hooks! {
    open => |arguments, at, real| opened(CWD, arguments[0], arguments[1] as i32, arguments, at, real);
    open64 => |arguments, at, real| opened(CWD, arguments[0], arguments[1] as i32, arguments, at, real);
    __open_2 => |arguments, at, real| opened(CWD, arguments[0], arguments[1] as i32, arguments, at, real);
    __open64_2 => |arguments, at, real| opened(CWD, arguments[0], arguments[1] as i32, arguments, at, real);
    openat => |arguments, at, real| opened(arguments[0] as i32, arguments[1], arguments[2] as i32, arguments, at, real);
    openat64 => |arguments, at, real| opened(arguments[0] as i32, arguments[1], arguments[2] as i32, arguments, at, real);
    __openat_2 => |arguments, at, real| opened(arguments[0] as i32, arguments[1], arguments[2] as i32, arguments, at, real);
    __openat64_2 => |arguments, at, real| opened(arguments[0] as i32, arguments[1], arguments[2] as i32, arguments, at, real);
    creat => |arguments, at, real| opened(CWD, arguments[0], libc::O_WRONLY | libc::O_TRUNC, arguments, at, real);
    creat64 => |arguments, at, real| opened(CWD, arguments[0], libc::O_WRONLY | libc::O_TRUNC, arguments, at, real);
    fopen => stream_opened;
    fopen64 => stream_opened;
    freopen => stream_reopened;
    freopen64 => stream_reopened;
    close => closed;
    fclose => stream_closed;
    dup2 => replaced;
    dup3 => replaced;
    close_range => range_closed;
    closefrom => |arguments, _, real| {
        forget_range(arguments[0] as u32, u32::MAX);
        real.call(arguments)
    };
    dup => made;
    mkstemp => made;
    mkstemp64 => made;
    mkostemp => made;
    mkostemp64 => made;
    mkstemps => made;
    mkstemps64 => made;
    mkostemps => made;
    mkostemps64 => made;
    open_by_handle_at => made;
    memfd_create => made;
    opendir => folder_opened;
    fdopendir => folder_opened;
    closedir => |arguments, _, real| {
        if let Some(fd) = folder_of(arguments[0]) {
            files::forget(fd);
        }
        real.call(arguments)
    };
    tmpfile => temporary;
    tmpfile64 => temporary;
    fcntl => control;
    fcntl64 => control;
}

pub fn opened(dir: i32, path: usize, flags: i32, arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let truncates = flags & libc::O_TRUNC != 0 && flags & libc::O_ACCMODE != libc::O_RDONLY;
    let seen = if truncates {
        record::look(dir, path, flags & libc::O_NOFOLLOW == 0)
    } else {
        None
    };
    let done = real.call(arguments);
    if done as i32 >= 0 {
        files::forget(done as i32);
        truncated(done as i32, seen.as_ref(), at);
    }
    done
}

/// An open took the content of a file away.
fn truncated(fd: i32, seen: Option<&Seen>, at: &CallSite) {
    if let Some(seen) = seen
        && seen.status.size > 0
    {
        let (start_ns, length) = (seen.start_ns, seen.status.size);
        let call = Call {
            op: Op::OpenTruncate,
            flags: 0,
            start_ns,
            offset: 0,
            length,
            at: Some(at),
        };
        record::on_descriptor(fd, call, false);
    }
}

/// A call that gives a descriptor: whatever the number meant, it means something else now.
pub fn made(arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    let done = real.call(arguments);
    if done as i32 >= 0 {
        files::forget(done as i32);
    }
    done
}

fn folder_opened(arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    let folder = real.call(arguments);
    if let Some(fd) = folder_of(folder as usize) {
        files::forget(fd);
    }
    folder
}

fn folder_of(folder: usize) -> Option<i32> {
    if folder == 0 {
        return None;
    }
    // SAFETY: a folder that the program holds; the function reads a field of it.
    let fd = unsafe { libc::dirfd(folder as *mut libc::DIR) };
    (fd >= 0).then_some(fd)
}

fn temporary(arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    let stream = real.call(arguments);
    if let Some(fd) = descriptor_of(stream as usize) {
        files::forget(fd);
    }
    stream
}

unsafe extern "C" {
    fn fileno_unlocked(stream: *mut libc::FILE) -> libc::c_int;
}

fn descriptor_of(stream: usize) -> Option<i32> {
    if stream == 0 {
        return None;
    }
    // SAFETY: a stream that the program holds; the function reads a field of it.
    let fd = unsafe { fileno_unlocked(stream as *mut libc::FILE) };
    (fd >= 0).then_some(fd)
}

/// Whether fopen's mode takes the content away.
fn mode_truncates(mode: usize) -> bool {
    // SAFETY: fopen reads its mode as well; a null is as wrong for it as for us.
    mode != 0 && unsafe { (mode as *const u8).read() } == b'w'
}

fn stream_opened(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [path, mode, ..] = arguments;
    let seen = if mode_truncates(mode) {
        record::look(CWD, path, true)
    } else {
        None
    };
    let stream = real.call(arguments);
    if let Some(fd) = descriptor_of(stream as usize) {
        files::forget(fd);
        truncated(fd, seen.as_ref(), at);
    }
    stream
}

fn stream_reopened(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [path, mode, stream, ..] = arguments;
    if let Some(fd) = descriptor_of(stream) {
        files::forget(fd);
    }
    let seen = if path != 0 && mode_truncates(mode) {
        record::look(CWD, path, true)
    } else {
        None
    };
    let stream = real.call(arguments);
    if let Some(fd) = descriptor_of(stream as usize) {
        files::forget(fd);
        truncated(fd, seen.as_ref(), at);
    }
    stream
}

pub fn closed(arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    close_and_forget(arguments[0] as i32);
    real.call(arguments)
}

/// Before the descriptor is closed: afterwards its number may be another thread's.
pub fn close_and_forget(fd: i32) {
    super::ring::closed(fd);
    if let Some(wiped) = process::wiped()
        && files::if_known(wiped, fd).is_some()
    {
        let start_ns = crate::sys::now();
        record::on_descriptor(
            fd,
            Call {
                op: Op::Close,
                flags: 0,
                start_ns,
                offset: 0,
                length: 0,
                at: None,
            },
            false,
        );
        files::forget(fd);
    } else {
        files::forget(fd);
    }
}

/// The stream's buffer is written and its descriptor closed within libc, where `stdio` sees both; here the number is
/// forgotten in case it does not.
fn stream_closed(arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    let fd = descriptor_of(arguments[0]);
    if let Some(fd) = fd
        && !super::stdio::is_seen()
    {
        close_and_forget(fd);
    }
    real.call(arguments)
}

/// dup2 and dup3: the second descriptor is closed.
pub fn replaced(arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    let [old, new, ..] = arguments;
    if old as i32 != new as i32 {
        close_and_forget(new as i32);
    }
    let done = real.call(arguments);
    if done as i32 >= 0 && old as i32 != new as i32 {
        files::forget(new as i32);
    }
    done
}

pub fn range_closed(arguments: [usize; 6], _: &CallSite, real: &Real) -> isize {
    let [first, last, ..] = arguments;
    forget_range(first as u32, last as u32);
    real.call(arguments)
}

fn forget_range(first: u32, last: u32) {
    if first <= last {
        files::forget_range(first, last);
    }
}

/// fcntl: F_SETFL changes flags, hints say how long data will live, the others that matter make new descriptors.
pub fn control(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [fd, command, argument, ..] = arguments;
    if matches!(command as i32, F_SET_RW_HINT | F_SET_FILE_RW_HINT) {
        return hinted(fd as i32, argument, arguments, at, real);
    }
    let done = real.call(arguments);
    match command as i32 {
        libc::F_SETFL => files::forget(fd as i32),
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC if done as i32 >= 0 => files::forget(done as i32),
        _ => {}
    }
    done
}

/// A write-lifetime hint for the file of a descriptor.
fn hinted(fd: i32, hint: usize, arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let Some(start_ns) = record::begin(fd) else {
        return real.call(arguments);
    };
    let done = real.call(arguments);
    if done as i32 == 0 {
        // SAFETY: the kernel has just read 64 bits there.
        let length = unsafe { (hint as *const u64).read_unaligned() };
        let call = Call {
            op: Op::Hint,
            flags: 0,
            start_ns,
            offset: 0,
            length,
            at: Some(at),
        };
        record::on_descriptor(fd, call, false);
    }
    done
}
