//! Reads and writes of a program: through the page cache, past it, or through a mapping.

use ftlab_core::request::flags;
use ftlab_core::{OpKind, Result};

use super::Replay;
use super::extents::PAGE;
use super::page_cache::{Content, Written};
use super::write_back::AWAITED;
use crate::recording::{Op, op_flags};

impl Replay {
    pub(super) fn read(&mut self, op: &Op) -> Result<()> {
        let (first, past) = self.within(op.file, op.pages());
        self.place_earlier(op.file, first, past)?;
        if !self.options.page_cache {
            self.transfer(op, OpKind::Read, first, past, flags::SYNC, &[]);
            return Ok(());
        }
        if op.flags & op_flags::DIRECT != 0 {
            self.write_back(op.file, first, past, u64::MAX, AWAITED)?;
            self.transfer(op, OpKind::Read, first, past, flags::SYNC, &[]);
            return Ok(());
        }
        let mut at = first;
        while at < past {
            let mut end = at;
            while end < past && !self.cache.contains(op.file, end) {
                end += 1;
            }
            self.transfer(op, OpKind::Read, at, end, flags::SYNC, &[]);
            while end < past && self.cache.contains(op.file, end) {
                end += 1;
            }
            for page in at..end {
                self.cache.touch(op.file, page);
            }
            at = end;
        }
        self.make_room()
    }

    pub(super) fn write(&mut self, op: &Op, contents: &[Content]) -> Result<()> {
        let (first, past) = op.pages();
        if first >= past {
            return Ok(());
        }
        let end = op.offset.saturating_add(op.length);
        let direct = op.flags & op_flags::DIRECT != 0;
        if self.options.page_cache && !direct {
            self.read_partial(op, first, past)?;
            let size = &mut self.files[op.file as usize].size;
            *size = end.max(*size);
            for page in first..past {
                let content = contents.get((page - first) as usize).copied().unwrap_or_default();
                let written = Written {
                    context: op.context,
                    process: op.process,
                    content,
                };
                self.cache.write(op.file, page, written, self.now);
                if self.cache.held().1 > self.limit {
                    self.write_above_limit()?;
                }
                if self.cache.held().0 > self.memory {
                    self.make_room()?;
                }
            }
            if op.flags & op_flags::SYNC != 0 {
                self.write_back(op.file, first, past, u64::MAX, AWAITED)?;
                self.make_durable();
            }
            return self.write_in_background();
        }
        if self.options.page_cache {
            self.write_back(op.file, first, past, u64::MAX, AWAITED)?;
            self.cache.forget(op.file, first, past);
        }
        let file = &mut self.files[op.file as usize];
        file.size = end.max(file.size);
        file.map.allocate(&mut self.space, first, past)?;
        let sync = op.flags & op_flags::SYNC != 0;
        let bits = if sync || direct { flags::SYNC } else { 0 };
        self.transfer(op, OpKind::Write, first, past, bits, contents);
        if sync {
            self.make_durable();
        }
        Ok(())
    }

    /// The pages of a mapping of which the contents are given are those that were written, or all.
    pub(super) fn write_changed(&mut self, op: &Op, contents: &[Content]) -> Result<()> {
        let (first, past) = op.pages();
        if op.flags & op_flags::STORED != 0 {
            // The kernel reads what is mapped, and keeps a file's size.
            let end = self.files[op.file as usize].size;
            let (offset, length) = (op.offset, op.length.min(end.saturating_sub(op.offset)));
            let stored = Op {
                offset,
                length,
                flags: 0,
                ..*op
            };
            self.read_whole(op, first, past.min(end.div_ceil(PAGE)))?;
            return self.write(&stored, contents);
        }
        for (page, content) in (first..).zip(contents).filter(|(_, content)| content.page != 0) {
            let one = Op {
                offset: page * PAGE,
                length: PAGE,
                flags: 0,
                ..*op
            };
            self.write(&one, std::slice::from_ref(content))?;
        }
        Ok(())
    }

    /// Reads the first and last page of a write before, where only a part of them is written.
    pub(super) fn read_partial(&mut self, op: &Op, first: u64, past: u64) -> Result<()> {
        let size = self.files[op.file as usize].size;
        let head = (!op.offset.is_multiple_of(PAGE)).then_some(first);
        let tail = (!(op.offset + op.length).is_multiple_of(PAGE)).then_some(past - 1);
        for page in [head, tail.filter(|&tail| Some(tail) != head)].into_iter().flatten() {
            if page * PAGE < size && !self.cache.contains(op.file, page) {
                self.place_earlier(op.file, page, page + 1)?;
                self.transfer(op, OpKind::Read, page, page + 1, flags::SYNC, &[]);
            }
        }
        Ok(())
    }

    /// Reads what is not in memory, page by page as it is touched.
    pub(super) fn read_whole(&mut self, op: &Op, first: u64, past: u64) -> Result<()> {
        for page in first..past {
            if !self.cache.contains(op.file, page) {
                self.place_earlier(op.file, page, page + 1)?;
                self.transfer(op, OpKind::Read, page, page + 1, flags::SYNC, &[]);
                self.cache.touch(op.file, page);
            }
        }
        Ok(())
    }

    /// A page of which a part is taken away stays, and the kernel writes zeros into that part.
    pub(super) fn zero_rest(&mut self, op: &Op, at: u64) -> Result<()> {
        let page = at / PAGE;
        let file = &self.files[op.file as usize];
        let holds = page * PAGE < file.earlier || self.cache.contains(op.file, page) || file.map.find(page).is_some();
        if at.is_multiple_of(PAGE) || at >= file.size || !holds || !self.options.page_cache {
            return Ok(());
        }
        let size = file.size;
        let zeroed = Op {
            offset: page * PAGE,
            length: PAGE.min(size - page * PAGE),
            flags: 0,
            ..*op
        };
        self.read_whole(&zeroed, page, page + 1)?;
        self.write(&zeroed, &[])
    }
}
