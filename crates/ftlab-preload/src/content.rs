//! Content ids of what a write left in the file.
//!
//! # Model
//! Every page that the write touched is read back whole, since the write may have covered only a part of it: through the
//! descriptor, or one opened for reading if the program's own cannot read. The id is XXH3-64 of the page, and of each of its chunks.
//! A page that is written piece by piece is read once it is complete, or before the thread's next call on something else: its content
//! belongs to the last write of a row. Of requests that are done later, whole pages are hashed in the program's memory.
//! # Not modelled
//! A write of another thread or process between the write and the reading: its content is seen instead. Files that the user may write
//! but not read, and pages of which a request for later writes a part: id 0.

use ftlab_record::spool::{CHUNK, Op, PAGE, PAGE_IDS, PageIds, file_flags, most_pages, page_ids};

use crate::files::{self, Known};
use crate::process;
use crate::record::Call;
use crate::sys;
use crate::thread::Recording;

/// A page that was written in part by the last call of a thread, and will be read when that is known to be all. Zeros: none.
#[derive(Clone, Copy, Default)]
pub struct Unfinished {
    /// Id of its file; 0: there is none.
    file: u32,
    flags: u16,
    fd: i32,
    page: u64,
}

/// After a write has been recorded.
pub fn written(recording: &mut Recording<'_>, fd: i32, file: Known, offset: u64, length: u64) {
    if length == 0 {
        return;
    }
    let end = offset + length;
    let (first, mut past) = (offset / PAGE as u64, end.div_ceil(PAGE as u64));
    if !end.is_multiple_of(PAGE as u64) {
        past -= 1;
        recording.thread.unfinished = Unfinished {
            file: file.id,
            flags: file.flags,
            fd,
            page: past,
        };
    }
    read_back(recording, fd, file.flags, first, past);
}

/// Before a thread's next record: a call that writes on in the same page has its content instead.
pub fn settle(recording: &mut Recording<'_>, next: Option<(Known, &Call<'_>)>) {
    let page = core::mem::take(&mut recording.thread.unfinished);
    if page.file == 0 {
        return;
    }
    let goes_on = next.is_some_and(|(file, call)| {
        call.op == Op::Write
            && call.length > 0
            && file.id == page.file
            && call.offset / PAGE as u64 <= page.page
            && page.page <= (call.offset + call.length - 1) / PAGE as u64
    });
    let still_there = files::if_known(recording.wiped, page.fd).is_some_and(|known| known.id == page.file);
    if !goes_on && still_there && recording.has_spool() {
        read_back(recording, page.fd, page.flags, page.page, page.page + 1);
    }
}

fn read_back(recording: &mut Recording<'_>, fd: i32, flags: u16, mut page: u64, past: u64) {
    if page >= past {
        return;
    }
    let own = flags & file_flags::WRITE_ONLY == 0;
    let reader = if own { Some(fd) } else { reopen(fd) };
    while page < past {
        let pages = (past - page).min(most_pages(chunk()) as u64) as usize;
        let ids = |page, buffer: &mut [u8; PAGE]| reader.map_or([0; PAGE_IDS], |reader| ids(reader, page, buffer));
        if record(recording, page, pages, ids).is_none() {
            break;
        }
        page += pages as u64;
    }
    if !own && let Some(reader) = reader {
        sys::close(reader);
    }
}

/// After a request for later has been recorded: the pages that it covers whole.
pub fn handed_in(recording: &mut Recording<'_>, offset: u64, length: u64, pieces: &[libc::iovec]) {
    let (mut page, past) = (
        offset.div_ceil(PAGE as u64),
        offset.saturating_add(length) / PAGE as u64,
    );
    while page < past {
        let pages = (past - page).min(most_pages(chunk()) as u64) as usize;
        let ids = |page: u64, buffer: &mut [u8; PAGE]| {
            if gather(pieces, page * PAGE as u64 - offset, buffer) {
                page_ids(buffer, PAGE, chunk())
            } else {
                [0; PAGE_IDS]
            }
        };
        if record(recording, page, pages, ids).is_none() {
            break;
        }
        page += pages as u64;
    }
}

/// Fills the buffer with what lies `skip` bytes into the pieces; false if it cannot be read.
fn gather(pieces: &[libc::iovec], mut skip: u64, buffer: &mut [u8; PAGE]) -> bool {
    let mut held = 0;
    for piece in pieces {
        let len = piece.iov_len as u64;
        if skip >= len {
            skip -= len;
            continue;
        }
        let wanted = ((len - skip) as usize).min(PAGE - held);
        let Some(place) = buffer.get_mut(held..held + wanted) else {
            return false;
        };
        if sys::read_own(piece.iov_base as usize + skip as usize, place) != wanted {
            return false;
        }
        held += wanted;
        skip = 0;
        if held == PAGE {
            return true;
        }
    }
    false
}

fn record(
    recording: &mut Recording<'_>,
    first: u64,
    pages: usize,
    mut ids: impl FnMut(u64, &mut [u8; PAGE]) -> PageIds,
) -> Option<()> {
    recording.writer()?;
    let (buffer, (writer, space)) = recording.page_and_writer()?;
    writer.content(space, chunk(), first, pages, |page| ids(page, buffer))
}

/// Bytes of a chunk with an id.
pub fn chunk() -> usize {
    process::options().map_or(CHUNK, |options| options.chunk)
}

fn ids(reader: i32, page: u64, buffer: &mut [u8; PAGE]) -> PageIds {
    buffer.fill(0);
    let mut held = 0;
    // Reads end early at the end of the file only, but may be interrupted.
    while let Some(rest) = buffer.get_mut(held..).filter(|rest| !rest.is_empty()) {
        match sys::pread(reader, rest, page * PAGE as u64 + held as u64) {
            Ok(0) => break,
            Ok(read) => held += read,
            Err(libc::EINTR) => {}
            Err(_) => return [0; PAGE_IDS],
        }
    }
    page_ids(buffer, held, chunk())
}

/// The same file, for reading.
fn reopen(fd: i32) -> Option<i32> {
    let mut path = sys::PathBuffer::new();
    let named = path.push(b"/proc/self/fd/") && path.push_number(fd as u64);
    if named {
        sys::open(path.as_c(), libc::O_RDONLY, 0).ok()
    } else {
        None
    }
}
