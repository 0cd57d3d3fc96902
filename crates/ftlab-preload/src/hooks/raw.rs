//! `syscall`, and the interfaces that hand requests to the kernel for later.

use ftlab_record::spool::{NoteKind, Op, op_flags};

use super::names::Names;
use super::processes::{self, Program};
use super::{Real, descriptors, hooks, names, read, ring, sandbox, sync, write};
use crate::record::{self, Call};
use crate::signature::CallSite;
use crate::{process, sys};

const SYS_LANDLOCK_RESTRICT_SELF: libc::c_long = 446;

thread_local! {
    /// The requests that this thread is handing in by libaio.
    static SUBMITTING: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

hooks! {
    syscall => dispatch;
    io_submit => submit;
    aio_write => |arguments, at, real| asynchronous(Op::Write, arguments, at, real);
    aio_write64 => |arguments, at, real| asynchronous(Op::Write, arguments, at, real);
    aio_read => |arguments, at, real| asynchronous(Op::Read, arguments, at, real);
    aio_read64 => |arguments, at, real| asynchronous(Op::Read, arguments, at, real);
    lio_listio => |arguments, _, real| { note(NoteKind::Unsupported, 1); real.call(arguments) };
    lio_listio64 => |arguments, _, real| { note(NoteKind::Unsupported, 1); real.call(arguments) };
}

fn note(what: NoteKind, count: u64) {
    if let Some(wiped) = process::wiped() {
        wiped.note(what, count);
    }
}

/// The system calls of interest do what the functions of their names do.
fn dispatch(all: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [number, a, b, c, d, e] = all;
    // The seventh argument lies on the caller's stack.
    let arguments = [a, b, c, d, e, at.stack[0] as usize];
    let real = &Real::numbered(real, number);
    const CWD: i32 = libc::AT_FDCWD;
    match number as libc::c_long {
        libc::SYS_write | libc::SYS_writev => write::at_position(arguments, at, real),
        libc::SYS_pwrite64 | libc::SYS_pwritev => write::at_offset(arguments, at, real),
        libc::SYS_pwritev2 => write::with_flags(5, arguments, at, real),
        libc::SYS_fallocate => write::allocate(arguments, at, real),
        libc::SYS_ftruncate => write::truncate_descriptor(arguments, at, real),
        libc::SYS_truncate => write::truncate_path(arguments, at, real),
        libc::SYS_copy_file_range => write::copy_range(arguments, at, real),
        libc::SYS_splice => write::splice_into(arguments, at, real),
        libc::SYS_sendfile => write::send(arguments, at, real),
        libc::SYS_read | libc::SYS_readv => read::at_position(arguments, at, real),
        libc::SYS_pread64 | libc::SYS_preadv => read::at_offset(arguments, at, real),
        libc::SYS_preadv2 => read::with_flags(arguments, at, real),
        libc::SYS_fsync => sync::whole(Op::Fsync, arguments, at, real),
        libc::SYS_fdatasync => sync::whole(Op::Fdatasync, arguments, at, real),
        libc::SYS_sync_file_range => sync::range(arguments, at, real),
        libc::SYS_sync | libc::SYS_syncfs => sync::everything(arguments, at, real),
        libc::SYS_unlink => names::gone(CWD, a, arguments, at, real),
        libc::SYS_unlinkat => names::gone(a as i32, b, arguments, at, real),
        libc::SYS_rename => names::moved(
            Names {
                from: (CWD, a),
                to: (CWD, b),
                exchange: false,
            },
            arguments,
            at,
            real,
        ),
        libc::SYS_renameat | libc::SYS_renameat2 => {
            let exchange = number as libc::c_long == libc::SYS_renameat2 && e as u32 & libc::RENAME_EXCHANGE != 0;
            names::moved(
                Names {
                    from: (a as i32, b),
                    to: (c as i32, d),
                    exchange,
                },
                arguments,
                at,
                real,
            )
        }
        libc::SYS_link | libc::SYS_linkat => {
            let plain = number as libc::c_long == libc::SYS_link;
            let (from, to, flags) = if plain {
                ((CWD, a), (CWD, b), 0)
            } else {
                ((a as i32, b), (c as i32, d), e as i32)
            };
            let exchange = false;
            names::linked(Names { from, to, exchange }, flags, arguments, at, real)
        }
        libc::SYS_open => descriptors::opened(CWD, a, b as i32, arguments, at, real),
        libc::SYS_openat => descriptors::opened(a as i32, b, c as i32, arguments, at, real),
        libc::SYS_openat2 | libc::SYS_dup | libc::SYS_open_by_handle_at | libc::SYS_memfd_create => {
            descriptors::made(arguments, at, real)
        }
        libc::SYS_creat => descriptors::opened(CWD, a, libc::O_WRONLY | libc::O_TRUNC, arguments, at, real),
        libc::SYS_close => descriptors::closed(arguments, at, real),
        libc::SYS_dup2 | libc::SYS_dup3 => descriptors::replaced(arguments, at, real),
        libc::SYS_close_range => descriptors::range_closed(arguments, at, real),
        libc::SYS_fcntl => descriptors::control(arguments, at, real),
        libc::SYS_execve => processes::replaced(Program::At(CWD, a), 2, arguments, real),
        libc::SYS_execveat => processes::replaced(Program::At(a as i32, b), 3, arguments, real),
        libc::SYS_io_uring_setup => ring::set_up(arguments, at, real),
        libc::SYS_io_uring_enter => ring::entered(arguments, at, real),
        libc::SYS_io_uring_register => ring::registered(arguments, at, real),
        libc::SYS_io_submit => submit_by_number(arguments, at, real),
        libc::SYS_seccomp => sandbox::filtered(arguments, at, real),
        libc::SYS_prctl => sandbox::control(arguments, at, real),
        SYS_LANDLOCK_RESTRICT_SELF | libc::SYS_chroot | libc::SYS_pivot_root => sandbox::confined(arguments, at, real),
        _ => real.call(arguments),
    }
}

/// Control block of the kernel's asynchronous I/O.
#[repr(C)]
struct Iocb {
    data: u64,
    key: u32,
    flags: u32,
    operation: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    rest: [u64; 3],
}

/// libaio's function, which makes the system call itself, or by `syscall`: then that is the same call, and not recorded again. A library
/// that only its own user has loaded is not found by its name; the system call is all that its function is.
fn submit(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let start_ns = sys::now();
    let before = SUBMITTING.replace(arguments[2]);
    let done = if real.address() == 0 {
        // SAFETY: the program's own call, as libaio makes it: an error is the negated number.
        unsafe { sys::call(libc::SYS_io_submit, arguments) }
    } else {
        real.call(arguments)
    };
    SUBMITTING.set(before);
    submitted(arguments, done, start_ns, at);
    done
}

/// The system call.
fn submit_by_number(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let start_ns = sys::now();
    let done = real.call(arguments);
    if SUBMITTING.get() != arguments[2] {
        submitted(arguments, done, start_ns, at);
    }
    done
}

/// The requests that were taken are recorded as handed in.
fn submitted(arguments: [usize; 6], done: isize, start_ns: u64, at: &CallSite) {
    if process::wiped().is_none() || done <= 0 {
        return;
    }
    note(NoteKind::Aio, done as u64);
    note(NoteKind::Taken, done as u64);
    let blocks = arguments[2] as *const *const Iocb;
    for place in 0..(done as usize).min(arguments[1]) {
        // SAFETY: the kernel has just read as many pointers, and what they point to.
        let block = unsafe { &**blocks.add(place) };
        let op = match block.operation {
            0 | 7 => Op::Read,
            1 | 8 => Op::Write,
            2 => Op::Fsync,
            3 => Op::Fdatasync,
            _ => continue,
        };
        let length = match block.operation {
            // SAFETY: as above: with 7 and 8 the buffer is a list of pieces.
            7 | 8 => unsafe { length_of(block.buffer as *const libc::iovec, block.bytes as usize) },
            0 | 1 => block.bytes,
            _ => 0,
        };
        let pieces = libc::iovec {
            iov_base: block.buffer as *mut libc::c_void,
            iov_len: block.bytes as usize,
        };
        // SAFETY: as above: with 7 and 8 the buffer is a list of pieces.
        let pieces = match block.operation {
            7 | 8 => unsafe { core::slice::from_raw_parts(block.buffer as *const libc::iovec, block.bytes as usize) },
            _ => core::slice::from_ref(&pieces),
        };
        let call = Call {
            op,
            flags: 0,
            start_ns,
            offset: block.offset.max(0) as u64,
            length,
            at: Some(at),
        };
        hand_in(block.fd as i32, call, pieces);
    }
}

/// # Safety
/// `pieces` points to `count` of them.
unsafe fn length_of(pieces: *const libc::iovec, count: usize) -> u64 {
    // SAFETY: the caller's promise.
    (0..count.min(1024))
        .map(|at| unsafe { (*pieces.add(at)).iov_len } as u64)
        .fold(0, u64::saturating_add)
}

/// The C library's asynchronous I/O, done by threads of its own.
fn asynchronous(op: Op, arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let start_ns = crate::sys::now();
    let done = real.call(arguments);
    if done as i32 == 0 {
        note(NoteKind::Aio, 1);
        // SAFETY: a control block, which the function has just read.
        let block = unsafe { &*(arguments[0] as *const libc::aiocb) };
        let piece = libc::iovec {
            iov_base: block.aio_buf.cast(),
            iov_len: block.aio_nbytes,
        };
        let call = Call {
            op,
            flags: 0,
            start_ns,
            offset: block.aio_offset as u64,
            length: block.aio_nbytes as u64,
            at: Some(at),
        };
        hand_in(block.aio_fildes, call, core::slice::from_ref(&piece));
    }
    done
}

/// Records a request as it was handed in; its data come from `pieces`.
pub fn hand_in(fd: i32, call: Call<'_>, pieces: &[libc::iovec]) {
    let begun = if call.op == Op::Read {
        record::begin_read(fd)
    } else {
        record::begin(fd)
    };
    if begun.is_some() {
        let flags = call.flags | op_flags::ASYNCHRONOUS;
        record::handed_in(fd, Call { flags, ..call }, pieces);
    }
}
