//! Content ids of what a write left in the file.
//!
//! # Model
//! Every page that the write touched is read back whole, since the write may have covered only a part of it: through the
//! descriptor, or one opened for reading if the program's own cannot read. The id is XXH3-64 of the page, and of each of its chunks.
//! # Not modelled
//! A write of another thread or process between the write and the reading: its content is seen instead. Files that the user may write
//! but not read: id 0.

use ftlab_record::spool::{MOST_PAGES, PAGE, PAGE_IDS, file_flags, page_ids};

use crate::files::Known;
use crate::sys;
use crate::thread::Recording;

pub fn write(recording: &mut Recording<'_>, fd: i32, file: Known, offset: u64, length: u64) {
    if length == 0 {
        return;
    }
    let own = file.flags & file_flags::WRITE_ONLY == 0;
    let reader = if own { Some(fd) } else { reopen(fd) };
    let mut page = offset / PAGE as u64;
    let end = (offset + length).div_ceil(PAGE as u64);
    while page < end {
        let pages = (end - page).min(MOST_PAGES as u64) as usize;
        if record(recording, reader, page, pages).is_none() {
            break;
        }
        page += pages as u64;
    }
    if !own && let Some(reader) = reader {
        sys::close(reader);
    }
}

fn record(recording: &mut Recording<'_>, reader: Option<i32>, first: u64, pages: usize) -> Option<()> {
    recording.writer()?;
    let (buffer, (writer, space)) = recording.page_and_writer()?;
    writer.content(space, first, pages, |page| {
        reader.map_or([0; PAGE_IDS], |reader| ids(reader, page, buffer))
    })
}

fn ids(reader: i32, page: u64, buffer: &mut [u8; PAGE]) -> [u64; PAGE_IDS] {
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
    page_ids(buffer, held)
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
