//! Places of files on the device: given, taken away with a trim, moved within a file.

use ftlab_core::{OpKind, Result};

use super::extents::PAGE;
use super::write_back::AWAITED;
use super::{Replay, Request};
use crate::recording::{Op, op_flags};

/// Pages in which the data of a file that was there before get their place.
const EARLIER: u64 = (1 << 20) / PAGE;
/// Pages of a trim, so that its length fits.
const LONGEST_TRIM: u64 = (1 << 30) / PAGE;

impl Replay {
    pub(super) fn allocate(&mut self, op: &Op) -> Result<()> {
        let (first, past) = op.pages();
        let file = &mut self.files[op.file as usize];
        if op.flags & op_flags::KEEP_SIZE == 0 {
            file.size = file.size.max(op.offset.saturating_add(op.length));
        }
        file.map.allocate(&mut self.space, first, past)
    }

    pub(super) fn truncate(&mut self, file: u32, size: u64) -> Result<()> {
        self.discard(file, size.div_ceil(PAGE), u64::MAX)?;
        let state = &mut self.files[file as usize];
        state.size = size;
        state.earlier = state.earlier.min(size);
        Ok(())
    }

    /// What follows the range moves down, or up to make room for it: the kernel writes it back and forgets it before.
    pub(super) fn shift(&mut self, op: &Op) -> Result<()> {
        let (file, first) = (op.file, op.offset / PAGE);
        let pages = op.length / PAGE;
        let past = self.files[file as usize].size.div_ceil(PAGE);
        self.place_earlier(file, first, past)?;
        self.write_back(file, first, u64::MAX, u64::MAX, AWAITED)?;
        self.cache.forget(file, first, u64::MAX);
        let up = op.flags & op_flags::UP != 0;
        if !up {
            self.discard(file, first, first + pages)?;
        }
        let state = &mut self.files[file as usize];
        // All of it has its place now.
        state.earlier = 0;
        state.map.release_kept(&mut self.space);
        state.map.shift(first, pages, up);
        state.size = match up {
            true => state.size + op.length,
            false => state.size.saturating_sub(op.length),
        };
        Ok(())
    }

    /// Drops pages of a file: from memory, and from the device with a trim.
    pub(super) fn discard(&mut self, file: u32, first: u64, past: u64) -> Result<()> {
        if first >= past {
            return Ok(());
        }
        // What was there before the recording has a place only if it was touched; all of it goes.
        let earlier = self.files[file as usize].earlier.div_ceil(PAGE).min(past);
        self.place_earlier(file, first, earlier)?;
        self.cache.forget(file, first, past);
        let freed = self.files[file as usize].map.free(&mut self.space, first, past);
        // What lies together goes together, though the file has it in pieces.
        let mut runs: Vec<(u64, u64)> = Vec::with_capacity(freed.len());
        for (place, pages) in freed {
            match runs.last_mut().filter(|(start, length)| start + length == place) {
                Some(last) => last.1 += pages,
                None => runs.push((place, pages)),
            }
        }
        for (mut place, mut pages) in runs {
            while pages > 0 {
                let length = pages.min(LONGEST_TRIM);
                self.requests.push(Request {
                    time_ns: self.now,
                    op: OpKind::Trim,
                    offset: place * PAGE,
                    length: (length * PAGE) as u32,
                    flags: 0,
                    context: 0,
                    process: 0,
                    file: Some(file),
                    stream: 0,
                    contents_end: self.contents.len(),
                });
                (place, pages) = (place + length, pages - length);
            }
        }
        Ok(())
    }

    pub(super) fn close(&mut self, file: u32) -> Result<()> {
        let state = &mut self.files[file as usize];
        state.map.release_kept(&mut self.space);
        if state.removed {
            // It was written after its last name was gone; now nobody can reach it.
            return self.truncate(file, 0);
        }
        Ok(())
    }

    /// Pages that exist: up to the file's size.
    pub(super) fn within(&self, file: u32, (first, past): (u64, u64)) -> (u64, u64) {
        let size = self.files.get(file as usize).map_or(0, |f| f.size);
        (first, past.min(size.div_ceil(PAGE)))
    }

    /// Gives a place to what the file held before the recording, around pages that are touched.
    pub(super) fn place_earlier(&mut self, file: u32, first: u64, past: u64) -> Result<()> {
        let state = &mut self.files[file as usize];
        let earlier = state.earlier.div_ceil(PAGE);
        if first >= past || first >= earlier {
            return Ok(());
        }
        let past = past.min(earlier).next_multiple_of(EARLIER).min(earlier);
        state.map.allocate(&mut self.space, first / EARLIER * EARLIER, past)
    }
}
