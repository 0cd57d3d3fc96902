//! Correlated pages in use: reads that search them, changes that make them stale, sets that replace them.

use super::Cpftl;
use super::balance::Balance;
use super::figures::Because;
use super::params::{Bring, Removal, RemovalKind, WriteCheck};
use crate::mapping::grouped::{CORRELATED, WANTED};
use crate::mapping::{Charge, RecordView};

impl Cpftl {
    /// A read that misses: the correlated pages that may hold the entry, one after the other.
    pub(super) fn search(&mut self, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) -> bool {
        if self.pages.live() == 0 {
            return false;
        }
        self.look_for_room(key, record, charges);
        self.figures.searches += 1;
        let mut found = std::mem::take(&mut self.found);
        self.directory.ask(key, &self.pages, &mut found);
        let mut served = false;
        for &page in &found {
            charges.push(Charge::Probe { page });
            self.pages.page_mut(page).loads += 1;
            served = self.pages.holds(page, key);
            if let Some(balance) = &mut self.balance {
                balance.read(page, self.paging.page_of(key), served);
            }
            if served {
                self.figures.true_reads += 1;
                self.preload(page, key, record, charges);
            } else {
                self.figures.false_reads += 1;
                charges.push(Charge::Then);
            }
            if self.fails(page) {
                self.remove(page, Because::Quality, charges);
            }
            if served {
                break;
            }
        }
        self.found = found;
        served
    }

    /// The page has been read for the entry of `key`, which it holds: what it holds beside it comes into the cache too.
    pub(super) fn preload(&mut self, page: u32, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let mut group = std::mem::take(&mut self.group);
        group.clear();
        self.pages
            .correlated(page, key, self.params.bring == Bring::Keyed, &mut group);
        self.cache.make_room(self.paging.page_of(key), charges);
        let wanted = self.cache.insert(key, record.entries[key as usize], WANTED);
        // The best one in any case, or a tiny cache would get nothing for its read.
        let most = (self.params.load_limit * self.cache.budget as f64) as u64;
        let mut brought = 0;
        for &(lpn, entry) in &group {
            debug_assert_eq!(
                entry, record.entries[lpn as usize],
                "page {page} is stale for LPN {lpn}"
            );
            if self.holds(lpn) {
                continue;
            }
            let tvpn = self.paging.page_of(lpn);
            let price = self.cache.price(tvpn);
            let too_many = brought > 0 && brought + price > most;
            if too_many || !self.cache.make_room_beside(wanted, tvpn, charges) {
                break;
            }
            brought += price;
            let id = self.cache.insert(lpn, entry, CORRELATED);
            if self.origins.len() <= id as usize {
                self.origins.resize(id as usize + 1, 0);
            }
            self.origins[id as usize] = self.first_origin.wrapping_add(page);
            self.figures.preloaded += 1;
        }
        self.group = group;
    }

    /// Whether the rule of removal gives the page up.
    fn fails(&self, page: u32) -> bool {
        match self.params.removal {
            Removal::Named(RemovalKind::Off) => false,
            Removal::Named(RemovalKind::Balance) => self.balance.as_ref().is_some_and(|balance| balance.fails(page)),
            _ => self.quality.fails(self.pages.page(page)),
        }
    }

    /// Gives up the pages that cost more than they save, also those that nothing reads, and tries as many new ones as there is
    /// something to lose for.
    pub(super) fn reckon(&mut self, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        for page in 0..self.pages.len() as u32 {
            if self.pages.page(page).live && self.fails(page) {
                self.remove(page, Because::Quality, charges);
            }
        }
        if self.look_ups >= self.params.start && self.may_try() {
            self.admit(0, record, charges);
        }
        self.share(charges);
    }

    /// Tries the next pages: as many as the rule `balance` affords, at least so many.
    fn admit(&mut self, least: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let Some(left_behind) = self.leaves_behind() else {
            return;
        };
        let Some(balance) = &mut self.balance else { return };
        let live = (0..self.pages.len() as u32).filter(|&page| self.pages.page(page).live);
        let more = balance
            .affords(live, left_behind)
            .max(least)
            .min(self.pages.len() as u32 - self.admitted);
        if more > 0 {
            let tried = self.admitted;
            self.admitted += more;
            self.write(tried..self.admitted, record, charges);
        } else if self.pages.live() == 0 && self.admitted < self.pages.len() as u32 {
            balance.refrain(left_behind);
        }
    }

    pub(super) fn remove(&mut self, page: u32, because: Because, charges: &mut Vec<Charge>) {
        if let Some(balance) = &mut self.balance {
            balance.close(page);
        }
        self.pages.remove(page);
        self.directory.remove(page);
        self.has_orphans = self.cache.unused > 0;
        if matches!(because, Because::Quality)
            && let Some(tail) = self.cache.tail.as_mut().filter(|tail| tail.is_looking())
        {
            tail.look();
        }
        self.share(charges);
        self.figures.removed[because as usize] += 1;
        charges.push(Charge::Drop { page });
    }

    /// The entry of `key` changes: no page that holds it may be believed any more.
    pub(super) fn invalidate(&mut self, key: u32, because: Because, charges: &mut Vec<Charge>) {
        if self.pages.live() == 0 {
            return;
        }
        let mut found = std::mem::take(&mut self.found);
        self.directory.ask(key, &self.pages, &mut found);
        let mut holds_any = false;
        for &page in &found {
            let holds = self.pages.holds(page, key);
            holds_any |= holds;
            if self.params.write_check == WriteCheck::Load {
                let again = matches!(because, Because::Collection)
                    && std::mem::replace(&mut self.probed[page as usize], self.calls) == self.calls;
                if !again {
                    charges.push(Charge::Probe { page });
                    if let Some(balance) = &mut self.balance {
                        balance.checked(page);
                    }
                    self.figures.check_true_reads += u64::from(holds);
                    self.figures.check_false_reads += u64::from(!holds);
                }
                if !holds {
                    continue;
                }
            }
            self.remove(page, because, charges);
        }
        self.figures.updates += u64::from(holds_any);
        self.found = found;
        debug_assert!(self.pages.with(key).next().is_none(), "a filter denied LPN {key}");
    }

    /// Groups that have just been mined: their pages, due now, replace those there are.
    pub(super) fn replace(&mut self, groups: &[Vec<u32>], charges: &mut Vec<Charge>) {
        // Only a directory that has no room for the smallest set is refused, and that has been tried.
        let Ok(laid_out) = self.plan.lay_out(groups) else {
            return;
        };
        for page in 0..self.pages.len() as u32 {
            if self.pages.page(page).live {
                self.remove(page, Because::Mining, charges);
            }
        }
        self.first_origin = self.first_origin.wrapping_add(self.pages.len() as u32);
        self.probed.fill(0);
        (self.pages, self.directory) = (laid_out.pages, laid_out.directory);
        self.admitted = 0;
        self.pages_left_out = laid_out.left_out;
        self.due = (self.pages.len() > 0).then_some(self.look_ups);
    }

    /// Writes the pages that are due and not in flash.
    pub(super) fn write_pages(&mut self, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        if self.balance.is_some() {
            // One page before there is anything to lose, or a set that would save would never be known.
            let left_behind = self.leaves_behind().unwrap_or(f64::MAX);
            let has_credit = |balance: &Balance| balance.has_credit(left_behind);
            let least = u32::from(self.balance.as_ref().is_some_and(has_credit));
            self.admitted = 0;
            self.admit(least, record, charges);
        } else {
            self.admitted = self.pages.len() as u32;
            self.write(0..self.admitted, record, charges);
        }
        self.due = (self.params.renew > 0).then(|| self.look_ups + self.params.renew);
    }

    fn write(&mut self, pages: std::ops::Range<u32>, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        for page in pages {
            if !self.pages.page(page).live && self.pages.fill(page, record) {
                self.directory.add(page, &self.pages);
                if let Some(balance) = &mut self.balance {
                    balance.open(page);
                }
                self.figures.written += 1;
                charges.push(Charge::Write { page });
            }
        }
        self.share(charges);
    }
}
