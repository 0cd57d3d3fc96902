//! Calls that take names away from files, or move them.

use ftlab_record::spool::{Op, op_flags};

use super::{Real, hooks};
use crate::record::{self, Call, Seen};
use crate::signature::CallSite;

const CWD: i32 = libc::AT_FDCWD;

hooks! {
    unlink => |arguments, at, real| gone(CWD, arguments[0], arguments, at, real);
    remove => |arguments, at, real| gone(CWD, arguments[0], arguments, at, real);
    unlinkat => |arguments, at, real| gone(arguments[0] as i32, arguments[1], arguments, at, real);
    rename => |arguments, at, real| {
        moved(Names { from: (CWD, arguments[0]), to: (CWD, arguments[1]), exchange: false }, arguments, at, real)
    };
    renameat => |arguments, at, real| {
        let [from, old, to, new, ..] = arguments;
        moved(Names { from: (from as i32, old), to: (to as i32, new), exchange: false }, arguments, at, real)
    };
    link => |arguments, at, real| {
        let names = Names { from: (CWD, arguments[0]), to: (CWD, arguments[1]), exchange: false };
        linked(names, 0, arguments, at, real)
    };
    linkat => |arguments, at, real| {
        let [from, old, to, new, flags, _] = arguments;
        let names = Names { from: (from as i32, old), to: (to as i32, new), exchange: false };
        linked(names, flags as i32, arguments, at, real)
    };
    renameat2 => |arguments, at, real| {
        let [from, old, to, new, flags, _] = arguments;
        let exchange = flags as u32 & libc::RENAME_EXCHANGE != 0;
        moved(Names { from: (from as i32, old), to: (to as i32, new), exchange }, arguments, at, real)
    };
}

pub fn gone(dir: i32, path: usize, arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let Some(seen) = record::look(dir, path, false) else {
        return real.call(arguments);
    };
    let done = real.call(arguments);
    if done as i32 == 0 {
        record::on_path(&seen, dir, path, unlinked(&seen, 0, at));
    }
    done
}

fn unlinked<'a>(seen: &Seen, flags: u16, at: &'a CallSite) -> Call<'a> {
    let left = u64::from(seen.status.links.saturating_sub(1));
    Call {
        op: Op::Unlink,
        flags,
        start_ns: seen.start_ns,
        offset: 0,
        length: left,
        at: Some(at),
    }
}

/// Folder and path, twice.
pub struct Names {
    pub from: (i32, usize),
    pub to: (i32, usize),
    /// The two files change places.
    pub exchange: bool,
}

pub fn moved(names: Names, arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let from = record::look(names.from.0, names.from.1, false);
    let replaced = record::look(names.to.0, names.to.1, false);
    let done = real.call(arguments);
    if done as i32 != 0 {
        return done;
    }
    let same = match (&from, &replaced) {
        (Some(a), Some(b)) => (a.status.device, a.status.inode) == (b.status.device, b.status.inode),
        _ => false,
    };
    // Two names of one file: the kernel leaves both.
    if same {
        return done;
    }
    let renamed = |start_ns| given_name(Op::Rename, start_ns, at);
    if let Some(replaced) = &replaced {
        if names.exchange {
            record::on_path(replaced, names.from.0, names.from.1, renamed(replaced.start_ns));
        } else {
            record::on_path(
                replaced,
                names.to.0,
                names.to.1,
                unlinked(replaced, op_flags::REPLACED, at),
            );
        }
    }
    if let Some(from) = &from {
        record::on_path(from, names.to.0, names.to.1, renamed(from.start_ns));
    }
    done
}

/// A file is given one more name; its first, if the program has it open and it has none. `flags`: those of linkat.
pub fn linked(names: Names, flags: i32, arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let follow = flags & libc::AT_SYMLINK_FOLLOW != 0;
    let seen = record::look(names.from.0, names.from.1, follow);
    let start_ns = crate::sys::now();
    let done = real.call(arguments);
    if done as i32 != 0 {
        return done;
    }
    if let Some(fd) = open_file(names.from.0, names.from.1, flags) {
        record::on_named_descriptor(fd, names.to.0, names.to.1, given_name(Op::Rename, start_ns, at));
    } else if let Some(seen) = &seen {
        record::on_path(seen, names.to.0, names.to.1, given_name(Op::Link, start_ns, at));
    }
    done
}

/// The descriptor that a call names instead of a path.
fn open_file(folder: i32, path: usize, flags: i32) -> Option<i32> {
    // SAFETY: the kernel has just read the text.
    let path = unsafe { core::ffi::CStr::from_ptr(path as *const libc::c_char) }.to_bytes();
    if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
        return Some(folder);
    }
    let digits = path.strip_prefix(b"/proc/self/fd/")?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}

fn given_name(op: Op, start_ns: u64, at: &CallSite) -> Call<'_> {
    Call {
        op,
        flags: 0,
        start_ns,
        offset: 0,
        length: 0,
        at: Some(at),
    }
}
