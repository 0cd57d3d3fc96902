//! Before a page is tried: what its memory would push out of the cache. And what a page that has gone leaves in it.
//!
//! A page on trial pushes out the tail of the cache, the entries that were used least recently. When the page goes they come back by
//! loads, one by one. In a loop that just fits that is the whole tail, and one entry too many is enough for a cache that thrashes.
//! So few bytes are enough, too: the rule keeps nothing itself while the cache is full and nothing is given up, and looks at
//! the tail only while a page would be tried otherwise.

use super::Cpftl;
use super::balance::{ALONE, Balance};
use super::figures::Because;
use crate::mapping::lingering::Lingering;
use crate::mapping::tail::Tail;
use crate::mapping::{Charge, RecordView};

impl Cpftl {
    /// Before an entry comes in, with those of the rest of its request. If the cache is full what pages that have gone have left
    /// there goes first. The first time the pages go, too, but for those that have saved what their memory may cost; then
    /// trials begin anew, once an entry has been given up.
    pub(super) fn look_for_room(&mut self, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        if self.balance.is_none() {
            return;
        }
        let lingering = self.cache.lingering.as_ref().map_or(0, Lingering::bytes);
        if self.judges != self.may_judge() || self.lingering_bytes != lingering {
            self.share(charges);
        }
        if self.has_room(key, record) {
            return;
        }
        self.discard_orphans();
        if self.filled || self.has_room(key, record) {
            return;
        }
        self.filled = true;
        self.filled_after = self.cache.figures.evictions;
        for page in 0..self.pages.len() as u32 {
            let memory = self.cache.tail.as_ref().map_or(0, Tail::size);
            let covered = self
                .balance
                .as_ref()
                .is_some_and(|balance| balance.covers(page, memory));
            if self.pages.page(page).live && !covered {
                self.remove(page, Because::Quality, charges);
                self.admitted = 0;
            }
        }
        self.discard_orphans();
        self.share(charges);
    }

    fn has_room(&self, key: u32, record: RecordView<'_>) -> bool {
        let more = u64::from(record.request_end.saturating_sub(key + 1)) * u64::from(self.params.entry_bytes);
        self.cache.used + self.cache.price(self.paging.page_of(key)) + more <= self.cache.budget
    }

    /// Loads that a page on trial will leave behind, by what it pushes out; none: that is not known. A cache that has never been full
    /// has room for it, and a page that takes no memory needs none.
    pub(super) fn leaves_behind(&self) -> Option<f64> {
        match &self.cache.tail {
            Some(tail) if self.filled && tail.size() > 0 => tail.used().map(|used| used * f64::from(tail.size())),
            _ => Some(0.0),
        }
    }

    /// Whether a page may be tried some time. Not where loads are shared, nor until that is known: what few bytes more or less do to the
    /// order of such loads is more than a page saves.
    fn may_come(&self) -> bool {
        let is_left = self.online.is_some() || self.due.is_some() || self.admitted < self.pages.len() as u32;
        is_left && self.sharing.is_known() && self.sharing.read() >= ALONE
    }

    /// Whether the cache has room, or has given something up since it had none.
    fn gives_up(&self) -> bool {
        !self.filled || self.cache.figures.evictions > self.filled_after
    }

    /// Whether the rule `balance` has something to count.
    fn may_judge(&self) -> bool {
        self.pages.live() > 0 || (self.may_come() && self.gives_up())
    }

    /// Whether the rule `balance` keeps accounts, and whether it looks at the tail: both take memory.
    pub(super) fn decide(&mut self) {
        let Some(balance) = &self.balance else {
            self.judges = false;
            return;
        };
        let live = self.pages.live();
        self.judges = self.may_judge();
        self.rests = live == 0 && self.may_come() && !self.gives_up();
        let would_try = || {
            let is_due = self.due.is_some_and(|due| self.look_ups >= due);
            let is_next = self.look_ups >= self.params.start && self.admitted < self.pages.len() as u32;
            (is_due && balance.has_credit(0.0)) || ((is_due || is_next) && balance.affords(std::iter::empty(), 0.0) > 0)
        };
        // A page that is there pays for what the tail answers.
        let looks = self.judges && self.filled && (live > 0 || would_try());
        if !self.judges && !self.rests {
            self.balance = Some(Balance::new(self.params.patience));
        }
        if let Some(balance) = &mut self.balance {
            balance.count(self.judges && (live > 0 || looks || !self.filled));
        }
        if let Some(tail) = &mut self.cache.tail {
            match (looks, tail.is_looking()) {
                (true, false) => tail.look(),
                (false, true) => tail.stop(),
                _ => {}
            }
        }
    }

    /// What pages that have gone have brought, and nothing has used, leaves the cache. A changed entry is worth more.
    pub(super) fn discard_orphans(&mut self) {
        if !std::mem::take(&mut self.has_orphans) || self.balance.is_none() {
            return;
        }
        for id in 0..self.origins.len() as u32 {
            let is_orphan = |page: Option<u32>| page.is_none_or(|page| !self.pages.page(page).live);
            if self.cache.is_unused(id) && is_orphan(self.origin(id)) {
                let key = self.cache.key(id);
                if !self.cache.is_dirty(key) {
                    self.cache.discard(key, id);
                }
            }
        }
    }
}
