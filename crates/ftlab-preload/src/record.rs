//! Makes a record of a call that has been made.

use ftlab_record::spool::{Op, OpFacts, file_flags, op_flags};

use crate::files::{self, Known};
use crate::process;
use crate::signature::{self, CallSite};
use crate::sys;
use crate::thread::{self, Recording};
use crate::{content, java};

/// What a hook knows after the call.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub op: Op,
    pub flags: u16,
    pub start_ns: u64,
    pub offset: u64,
    pub length: u64,
    /// `None`: no signature.
    pub at: Option<&'a CallSite>,
}

/// Clock at the start of a call on a descriptor; `None`: this call is not recorded.
#[inline]
pub fn begin(fd: i32) -> Option<u64> {
    let wiped = process::wiped()?;
    (!files::is_ignored(wiped, fd)).then(sys::now)
}

/// As `begin` for a read, which is recorded only if asked for.
#[inline]
pub fn begin_read(fd: i32) -> Option<u64> {
    if process::options().is_some_and(|options| options.reads) {
        begin(fd)
    } else {
        None
    }
}

/// Where the contents of what was written are found.
#[derive(Clone, Copy)]
enum Data<'a> {
    /// In the file.
    Written,
    /// Still in memory.
    HandedIn(&'a [libc::iovec]),
}

/// Where in the file a call took place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// As the call says.
    Given,
    /// As the call says, unless it is a write that appends: that goes to the end whatever it says.
    GivenOrEnd,
    /// Behind it stands the descriptor now.
    Position,
}

/// A call on a descriptor. Without `offset` in the call it is where the descriptor stands now, less the length.
pub fn on_descriptor(fd: i32, call: Call<'_>, at_position: bool) {
    let place = if at_position { Place::Position } else { Place::Given };
    on(fd, call, place, Data::Written);
}

fn on(fd: i32, call: Call<'_>, place: Place, data: Data<'_>) {
    let end_ns = sys::now();
    thread::with(|recording| {
        // What the descriptor's flags are is known from here on, also at its first use.
        let file = files::of(recording, fd)?;
        let mut call = call;
        let appends = call.op == Op::Write && (call.flags | file.op_flags()) & op_flags::APPEND != 0;
        match place {
            Place::Position => call.offset = sys::position(fd).ok()?.saturating_sub(call.length),
            Place::GivenOrEnd if appends => call.offset = size(fd).saturating_sub(call.length),
            Place::Given | Place::GivenOrEnd => {}
        }
        write(recording, file, call, end_ns)?;
        if call.op == Op::Write && process::options().is_some_and(|options| options.content) {
            match data {
                Data::Written => content::written(recording, fd, file, call.offset, call.length),
                Data::HandedIn(pieces) => content::handed_in(recording, call.offset, call.length, pieces),
            }
        }
        Some(())
    });
}

/// A transfer at an offset of the call. With O_APPEND the kernel does not heed that of a write, which goes to the end.
pub fn at_offset(fd: i32, call: Call<'_>) {
    on(fd, call, Place::GivenOrEnd, Data::Written);
}

/// A request for later, whose data are still in the program's memory.
pub fn handed_in(fd: i32, call: Call<'_>, pieces: &[libc::iovec]) {
    on(fd, call, Place::GivenOrEnd, Data::HandedIn(pieces));
}

/// Size of a descriptor's file; 0 if it cannot be told.
pub fn size(fd: i32) -> u64 {
    sys::status(fd, c"", true).map_or(0, |status| status.size)
}

/// A file as it was before a call that names it.
pub struct Seen {
    pub start_ns: u64,
    pub status: sys::Status,
}

/// Looks at the file of a path; `None`: there is none that is recorded. `path` is the program's pointer, which may be wrong.
pub fn look(dir: i32, path: usize, follow: bool) -> Option<Seen> {
    process::wiped()?;
    let start_ns = sys::now();
    let status = sys::status_at(dir, path, follow).ok()?;
    status.regular.then_some(Seen { start_ns, status })
}

/// A call on a file by a path, which was good for the kernel, so `path` points to a string.
pub fn on_path(seen: &Seen, dir: i32, path: usize, call: Call<'_>) {
    let end_ns = sys::now();
    thread::with(|recording| {
        let buffer = recording.thread.path.take()?;
        let file = absolute(dir, path, buffer)
            .filter(|path| files::is_interesting(path))
            .and_then(|path| files::introduce(recording, &seen.status, file_flags::NAMED, path));
        recording.thread.path = Some(buffer);
        write(recording, file?, call, end_ns)
    });
}

/// A call that gives a name to the file of a descriptor. `path` points to a string.
pub fn on_named_descriptor(fd: i32, dir: i32, path: usize, call: Call<'_>) {
    let end_ns = sys::now();
    thread::with(|recording| {
        let file = files::of(recording, fd)?;
        let status = sys::status(fd, c"", true).ok()?;
        let buffer = recording.thread.path.take()?;
        // The name is said by a description of its own, before the call.
        let _ =
            absolute(dir, path, buffer).and_then(|path| files::introduce(recording, &status, file_flags::NAMED, path));
        recording.thread.path = Some(buffer);
        write(recording, file, call, end_ns)
    });
}

/// The path from the root on, not shortened. `path` points to a string.
fn absolute(dir: i32, path: usize, place: &mut [u8]) -> Option<&[u8]> {
    if path == 0 {
        return None;
    }
    // SAFETY: the kernel has just read the string.
    let path = unsafe { core::ffi::CStr::from_ptr(path as *const libc::c_char) }.to_bytes();
    let mut len = 0;
    if !path.starts_with(b"/") {
        let mut link = sys::PathBuffer::new();
        if dir == libc::AT_FDCWD {
            link.push(b"/proc/self/cwd");
        } else if !(link.push(b"/proc/self/fd/") && link.push_number(dir as u64)) {
            return None;
        }
        len = sys::read_link(link.as_c(), place).len();
        *place.get_mut(len)? = b'/';
        len += 1;
    }
    place.get_mut(len..len + path.len())?.copy_from_slice(path);
    place.get(..len + path.len())
}

/// A call on every file there is.
pub fn on_everything(call: Call<'_>) {
    let end_ns = sys::now();
    thread::with(|recording| {
        // A process that has recorded nothing has nothing to sync.
        if !recording.has_spool() {
            return None;
        }
        write(recording, Known { id: 0, flags: 0 }, call, end_ns)
    });
}

/// A call on a file that has been introduced.
pub fn write(recording: &mut Recording<'_>, file: Known, call: Call<'_>, end_ns: u64) -> Option<()> {
    content::settle(recording, Some((file, &call)));
    let signature = call.at.map_or(0, |at| context(recording, at));
    let facts = OpFacts {
        op: call.op,
        flags: (call.flags | file.op_flags()) & op_flags::ALL,
        file: file.id,
        duration_ns: u32::try_from(end_ns.saturating_sub(call.start_ns)).unwrap_or(u32::MAX),
        time_ns: call.start_ns,
        offset: call.offset,
        length: call.length,
        signature,
    };
    let (writer, space) = recording.writer()?;
    writer.op(space, &facts)
}

/// The signature of the path that led here; its frames are written when it is new.
fn context(recording: &mut Recording<'_>, at: &CallSite) -> u64 {
    let Some(options) = process::options() else { return 0 };
    if options.signature != signature::Choice::None
        && let Some(signature) = java::context(recording, at)
    {
        return signature;
    }
    // The window must be there before the walker is borrowed.
    if recording.writer().is_none() {
        return 0;
    }
    let wiped = recording.wiped;
    let (walker, out) = recording.parts();
    let Some(path) = walker.walk(wiped, options.signature, at) else {
        return 0;
    };
    if signature::is_new(wiped, path.signature)
        && let Some((writer, space)) = out
    {
        let _ = signature::write(wiped, &path, writer, space);
    }
    path.signature
}
