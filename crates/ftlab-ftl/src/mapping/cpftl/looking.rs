//! Before a page is tried: what its memory would push out of the cache. And what a page that was given up leaves in it.
//!
//! A page on trial pushes out the tail of the cache, the entries that were used least recently. When the page goes they come back by
//! loads, one by one. In a loop that just fits that is the whole tail, and one entry too many is enough for a cache that thrashes.

use super::Cpftl;
use super::figures::Because;
use crate::mapping::{Charge, RecordView};

/// Entries that must have left the tail, used again or given up, before what has been seen counts: this share of all entries.
const SEEN: f64 = 0.25;

impl Cpftl {
    /// Before an entry comes in, with those of the rest of its request. If the cache is full what pages that were given up have left
    /// there goes first. The first time the pages go, too, but for those that have saved what their memory may cost; then
    /// trials begin anew.
    pub(super) fn look_for_room(&mut self, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        if self.balance.is_none() || self.has_room(key, record) {
            return;
        }
        self.discard_unused();
        if self.filled || self.has_room(key, record) {
            return;
        }
        self.filled = true;
        for page in 0..self.pages.len() as u32 {
            let memory = self.cache.tail.as_ref().map_or(0, |tail| tail.size());
            let covered = self
                .balance
                .as_ref()
                .is_some_and(|balance| balance.covers(page, memory));
            if self.pages.page(page).live && !covered {
                self.remove(page, Because::Quality, charges);
                self.admitted = 0;
            }
        }
        self.discard_unused();
    }

    fn has_room(&self, key: u32, record: RecordView<'_>) -> bool {
        let more = u64::from(record.request_end.saturating_sub(key + 1)) * u64::from(self.params.entry_bytes);
        self.cache.used + self.cache.price(self.paging.page_of(key)) + more <= self.cache.budget
    }

    /// Loads that a page on trial will leave behind, by what it pushes out; none: that is not known. A cache that has never been full
    /// has room for it, and a page that takes no memory needs none.
    pub(super) fn leaves_behind(&self) -> Option<f64> {
        match &self.cache.tail {
            Some(tail) if self.filled && tail.size() > 0 => {
                let is_known = tail.seen() >= SEEN * f64::from(self.cache.entries());
                is_known.then(|| tail.used() * f64::from(tail.size()))
            }
            _ => Some(0.0),
        }
    }

    /// The page has been given up by the rule `balance`. Its entries stay as long as there is room, and it is looked anew.
    pub(super) fn give_up(&mut self, page: u32) {
        if self.balance.is_some() && self.cache.unused > 0 {
            self.given_up.push(self.first_origin.wrapping_add(page));
        }
        if let Some(tail) = &mut self.cache.tail {
            tail.look();
        }
    }

    /// What pages that were given up have brought, and nothing has used, leaves the cache.
    pub(super) fn discard_unused(&mut self) {
        if self.given_up.is_empty() {
            return;
        }
        let given_up = std::mem::take(&mut self.given_up);
        for id in 0..self.origins.len() as u32 {
            if self.cache.is_unused(id) && given_up.contains(&self.origins[id as usize]) {
                self.cache.discard(self.cache.key(id), id);
            }
        }
    }
}
