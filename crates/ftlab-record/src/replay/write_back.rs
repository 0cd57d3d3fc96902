//! Dirty pages go to the device: by the background writer, above the limits, and for want of memory.

use ftlab_core::request::flags;
use ftlab_core::{OpKind, Result};

use super::extents::PAGE;
use super::page_cache::{Content, Written};
use super::{Replay, Request};

/// Why pages are written back.
#[derive(Clone, Copy)]
pub(super) struct Urgency {
    flags: u8,
}

const LAZY: Urgency = Urgency { flags: 0 };
pub(super) const AWAITED: Urgency = Urgency { flags: flags::SYNC };

impl Replay {
    /// Lets the background writer work until nothing is dirty.
    pub fn finish(&mut self) -> Result<()> {
        while let Some((since, _)) = self.cache.oldest_dirty() {
            let expired = since.saturating_add(self.options.dirty_expire_ns);
            self.pass_time(expired.max(self.wakeup).saturating_add(self.options.wakeup_ns))?;
        }
        Ok(())
    }

    /// What the background writer does up to `now`.
    pub(super) fn pass_time(&mut self, now: u64) -> Result<()> {
        while self.wakeup <= now {
            let Some((since, _)) = self.cache.oldest_dirty() else {
                // Nothing to do until `now`: no need to wake for it.
                let period = self.options.wakeup_ns;
                self.wakeup += (now - self.wakeup) / period * period + period;
                break;
            };
            // The next time at which a file can have expired, so that years without calls take no time.
            let due = since.saturating_add(self.options.dirty_expire_ns);
            if self.cache.held().1 <= self.background && due >= self.wakeup {
                let steps = (due.min(now) - self.wakeup.min(due.min(now))) / self.options.wakeup_ns;
                self.wakeup = self.wakeup.saturating_add(steps * self.options.wakeup_ns);
            }
            self.now = self.wakeup.max(self.now);
            self.expire()?;
            self.write_in_background()?;
            self.wakeup = self.wakeup.saturating_add(self.options.wakeup_ns);
            if self.wakeup == u64::MAX {
                break;
            }
        }
        self.now = now.max(self.now);
        Ok(())
    }

    /// Writes back every file that has been dirty for longer than allowed.
    pub(super) fn expire(&mut self) -> Result<()> {
        while let Some((since, file)) = self.cache.oldest_dirty() {
            if since.saturating_add(self.options.dirty_expire_ns) >= self.now {
                break;
            }
            self.write_back(file, 0, u64::MAX, u64::MAX, LAZY)?;
        }
        Ok(())
    }

    /// Writes back what is above the background limit, as far as its bandwidth allows.
    pub(super) fn write_in_background(&mut self) -> Result<()> {
        let passed = u128::from(self.now - self.credited) * u128::from(self.options.bandwidth) / 1_000_000_000;
        // At most what it would write while nobody looks, between two times it wakes.
        let most = u128::from(self.options.bandwidth) * u128::from(self.options.wakeup_ns) / 1_000_000_000;
        self.credit = (u128::from(self.credit) + passed).min(most.max(u128::from(PAGE))) as u64;
        self.credited = self.now;
        while self.cache.held().1 > self.background && self.credit >= PAGE {
            let Some((_, file)) = self.cache.oldest_dirty() else {
                break;
            };
            let above = self.cache.held().1 - self.background;
            let written = self.write_back(file, 0, u64::MAX, above.min(self.credit / PAGE), LAZY)?;
            self.credit -= written * PAGE;
        }
        Ok(())
    }

    pub(super) fn write_above_limit(&mut self) -> Result<()> {
        while self.cache.held().1 > self.limit {
            let Some((_, file)) = self.cache.oldest_dirty() else {
                break;
            };
            // In pieces of a request, so that neighbours go together.
            let pages = self.options.max_request / PAGE;
            self.write_back(file, 0, u64::MAX, pages, LAZY)?;
        }
        Ok(())
    }

    /// Forgets pages until the cache fits in memory.
    pub(super) fn make_room(&mut self) -> Result<()> {
        while self.cache.held().0 > self.memory {
            let Some((file, page, dirty)) = self.cache.coldest() else {
                break;
            };
            if dirty {
                self.write_back(file, 0, u64::MAX, u64::MAX, LAZY)?;
            }
            self.cache.forget(file, page, page + 1);
        }
        Ok(())
    }

    /// Writes up to `most` dirty pages of a file in `first..past`; how many there were.
    pub(super) fn write_back(&mut self, file: u32, first: u64, past: u64, most: u64, why: Urgency) -> Result<u64> {
        let pages = self.cache.clean(file, first, past, most);
        let mut at = 0;
        while at < pages.len() {
            // Neighbouring pages get their place together, whoever wrote them.
            let run = pages[at..]
                .iter()
                .zip(pages[at].0..)
                .take_while(|((page, _), n)| page == n)
                .count();
            let start = pages[at].0;
            let map = &mut self.files[file as usize].map;
            map.allocate(&mut self.space, start, start + run as u64)?;
            let run = &pages[at..at + run];
            let mut from = 0;
            while from < run.len() {
                let by = run[from].1;
                let same = |&&(_, w): &&(u64, Written)| (w.context, w.process) == (by.context, by.process);
                let length = run[from..].iter().take_while(same).count();
                let contents: Vec<Content> = run[from..from + length].iter().map(|(_, w)| w.content).collect();
                let request = Request {
                    time_ns: self.now,
                    op: OpKind::Write,
                    offset: 0,
                    length: 0,
                    flags: why.flags,
                    context: by.context,
                    process: by.process,
                    file: Some(file),
                    stream: 0,
                    contents_end: 0,
                };
                let start = run[from].0;
                self.send(request, start, start + length as u64, &contents);
                from += length;
            }
            at += run.len();
        }
        Ok(pages.len() as u64)
    }
}
