//! CDFTL: two levels, single entries in front of whole translation pages.
//!
//! # Model
//! * **Look-up**: an entry in the first level, or in a page of the second, is a hit; from the second level it is copied to the
//!   first. A miss reads the translation page into the second level and copies the entry.
//! * **Eviction from the first level**: the victim is the first of the `window` least recently used entries that is
//!   clean or whose page is in the second level. A dirty victim is merged into that page, which becomes dirty. If there
//!   is no such entry, the least recently used entry is written back with a read and a program of its translation page,
//!   together with all dirty entries of that page in the first level.
//! * **Eviction from the second level**: the least recently used page. A dirty page is programmed without a read,
//!   because all of it is in memory.
//! * **Split**: with `adapt` above 0 memory moves to the level that needs it more. Each level remembers as ghosts what
//!   it would still hold with one more page of memory: the first level the keys that it evicted last, as many as fit in
//!   a page; the second level the page that it evicted last. After every `adapt` look-ups the level with more misses on
//!   its ghosts gets a page of memory from the other level, which evicts its least recently used entries or page as
//!   above.
//! * **Collection**: moved data changes entries and pages that are in memory; the rest is grouped by translation page, each
//!   read and programmed once.
//!
//! # Parameters
//! * `first_level` (share, above 0 and below 1, default 0.5): of `ftl.map_cache`, for single entries; with `adapt`, in the
//!   beginning. Assumed.
//! * `adapt` (look-ups, default 0): after so many the split may change by a page; 0: it is fixed, as in the version
//!   of 2011. The ghosts, 4 bytes for each key and for the page, take their memory from `ftl.map_cache`.
//! * `window` (count, default 16, at least 1): entries that are examined for one whose eviction costs no flash
//!   operation. Assumed.
//! * `entry_bytes` (bytes, default 8): an entry of the first level, LPN and slot.
//! * `serial` (bool, default false): as for `dftl`.
//!
//! # Not modelled
//! * The rule by which the journal version (Wang, Qin, Chen, Shao and Yang, "An Adaptive Demand-Based Caching Mechanism for NAND Flash
//!   Memory Storage Systems", ACM TODAES 22(1), 2016) adapts the split: only its abstract was at hand. `adapt` is ours, and off
//!   by default, so a comparison with `cdftl` is one with the version of 2011.
//! * The write-backs of dirty entries and pages: `adapt` compares reads of translation pages only.
//!
//! # Errors
//! A cache whose second level does not hold one page, or whose first does not hold two entries (or holds more than 2^28), is refused;
//! so is `adapt` with entries larger than a page.
//!
//! # Cost
//! As for `dftl`. The search remembers the entries that it has examined in vain. Pages are not copied: the simulator
//! has the record.
//!
//! # Source
//! Qin, Wang, Liu, Shao and Guan, "A Two-Level Caching Mechanism for Demand-Based Page-Level Address Mapping in NAND
//! Flash Memory Storage Systems", RTAS 2011. Ghost lists that balance two levels: Megiddo and Modha, "ARC", FAST 2003;
//! comparing what a little more memory is worth to each: Gill and Modha, "SARC", USENIX 2005.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::list::NONE;
use super::lru::{Lru, MARKED};
use super::paging::{self, Copies, Paging, Told};
use super::recency::{Marks, Recency};
use super::{CacheCounts, Charge, HostMemory, MapCause, MappingPolicy, RecordView, Setup, Table, Why, allocated};
use split::{Grows, Split};

mod split;
#[cfg(test)]
mod tests;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub first_level: f64,
    pub adapt: u32,
    pub window: u32,
    pub entry_bytes: u32,
    pub serial: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            first_level: 0.5,
            adapt: 0,
            window: 16,
            entry_bytes: 8,
            serial: false,
        }
    }
}

pub fn new(mut params: Params, setup: &mut Setup) -> Result<Box<dyn MappingPolicy>> {
    params.entry_bytes = params.entry_bytes.saturating_add(setup.beside_slot);
    if !(params.first_level > 0.0 && params.first_level < 1.0) || params.window == 0 {
        return Err(Error::input(format!(
            "mapping policy `cdftl`: first_level = {}, window = {}: expected a share between 0 and 1, and at least 1",
            params.first_level, params.window
        )));
    }
    let step = setup.unit_bytes.checked_div(params.entry_bytes).unwrap_or(0);
    if params.adapt > 0 && step == 0 {
        return Err(Error::input(format!(
            "mapping policy `cdftl`: adapt = {}, entry_bytes = {}: expected entries of 1 to {} bytes, a page, of which one level gives the other",
            params.adapt, params.entry_bytes, setup.unit_bytes
        )));
    }
    let remembered = if params.adapt == 0 { 0 } else { Split::bytes(step) };
    let setup = &mut Setup {
        cache_bytes: setup.cache_bytes.saturating_sub(remembered),
        ..setup.clone()
    };
    let first_bytes = (setup.cache_bytes as f64 * params.first_level) as u64;
    let first = Setup {
        cache_bytes: first_bytes,
        ..setup.clone()
    };
    let capacity = first.entries("cdftl", params.entry_bytes)?;
    let most_pages = (setup.cache_bytes - first_bytes) / u64::from(setup.unit_bytes);
    if most_pages == 0 {
        return Err(Error::input(format!(
            "ftl.map_cache = {} bytes, of which {} are for pages: mapping policy `cdftl` expects room for one of {} bytes",
            setup.cache_bytes,
            setup.cache_bytes - first_bytes,
            setup.unit_bytes
        )));
    }
    let paging = setup.paging();
    let split = (params.adapt > 0).then(|| Split::new(params.adapt, step));
    // As many as the first level may come to hold.
    let most_entries = match &split {
        Some(_) => setup.entries("cdftl", params.entry_bytes)?,
        None => capacity,
    };
    Ok(Box::new(Cdftl {
        capacity,
        most_pages: most_pages.min(u64::from(paging.pages())) as u32,
        split,
        most_entries,
        entries: Lru::new(most_entries),
        told: Told::new(setup.checked, setup.logical_units),
        last: NONE,
        dirty: Marks::new(setup.logical_units),
        costly: 0,
        next: 0,
        again: 0,
        costly_of_page: vec![0; paging.pages() as usize],
        pages: Recency::new(paging.pages()),
        dirty_pages: Marks::new(paging.pages()),
        copies: Copies::new(setup.checked, &paging),
        paging,
        params,
        unit_bytes: setup.unit_bytes,
        counts: CacheCounts::default(),
        figures: Figures::default(),
    }))
}

struct Cdftl {
    params: Params,
    paging: Paging,
    unit_bytes: u32,
    split: Option<Split>,
    /// First level: entries.
    capacity: u32,
    most_entries: u32,
    entries: Lru,
    told: Told,
    /// The number of the entry that the last look-up found or made.
    last: u32,
    /// Which of them are dirty, by key.
    dirty: Marks,
    /// How many of the least recent entries are known to cost a rewrite, where in the order the next one to look at stands, where
    /// those begin that must be looked at again, and how many they are by page.
    costly: u32,
    next: usize,
    again: usize,
    costly_of_page: Vec<u32>,
    /// Second level: translation pages.
    most_pages: u32,
    pages: Recency,
    dirty_pages: Marks,
    copies: Copies,
    counts: CacheCounts,
    figures: Figures,
}

/// The mark of an entry that is known to cost a rewrite.
const COSTLY: u32 = MARKED;

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    entry_hits: u64,
    page_hits: u64,
    merged: u64,
    rewrites: u64,
    batched: u64,
    page_stores: u64,
    first_grew: u64,
    second_grew: u64,
}

impl Cdftl {
    /// Brings a page into the second level.
    fn load(&mut self, tvpn: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        if self.pages.len() >= self.most_pages {
            self.evict_page(charges);
        }
        self.pages.insert(tvpn);
        self.now_cheap(tvpn);
        self.copies.load(tvpn, record.page(self.paging.keys_of(tvpn)));
        paging::load(tvpn, charges);
    }

    fn evict_page(&mut self, charges: &mut Vec<Charge>) {
        let Some(victim) = self.pages.back() else {
            return;
        };
        if self.dirty_pages.replace(victim, false) {
            self.figures.page_stores += 1;
            paging::store(victim, MapCause::EvictRmw, charges);
            self.wait(charges);
        }
        self.pages.remove(victim);
        if let Some(split) = &mut self.split {
            split.page_left(victim);
        }
    }

    /// Moves a page of memory from one level to the other, if that one keeps a page or two entries and this one can use it.
    fn grow(&mut self, level: Grows, step: u32, charges: &mut Vec<Charge>) {
        match level {
            Grows::First if self.most_pages > 1 && self.capacity + step <= self.most_entries => {
                self.figures.first_grew += 1;
                self.most_pages -= 1;
                self.capacity += step;
                while self.pages.len() > self.most_pages {
                    self.evict_page(charges);
                }
            }
            Grows::Second if self.capacity >= step + 2 && self.most_pages < self.paging.pages() => {
                self.figures.second_grew += 1;
                self.capacity -= step;
                self.most_pages += 1;
                while self.entries.len() > self.capacity {
                    self.evict(charges);
                }
            }
            _ => {}
        }
    }

    /// A new entry of the first level, after making room for it.
    fn enter(&mut self, key: u32, entry: u32, charges: &mut Vec<Charge>) -> u32 {
        if self.entries.len() >= self.capacity {
            self.evict(charges);
        }
        if let Some(split) = &mut self.split {
            split.entry_came(key);
        }
        self.told.change(key, entry);
        self.entries.insert(key)
    }

    fn evict(&mut self, charges: &mut Vec<Charge>) {
        let Some(victim) = self.costs_nothing().or_else(|| self.entries.oldest(0)) else {
            return;
        };
        let key = self.entries.key(victim);
        self.uncover(victim);
        if self.dirty.contains(key) {
            let tvpn = self.paging.page_of(key);
            if self.pages.contains(tvpn) {
                self.figures.merged += 1;
                self.dirty.replace(key, false);
                self.dirty_pages.replace(tvpn, true);
            } else {
                self.figures.rewrites += 1;
                paging::rewrite(tvpn, MapCause::EvictRmw, charges);
                self.wait(charges);
                // All dirty entries of the page have been written with it.
                self.now_cheap(tvpn);
                self.figures.batched += self.dirty.clear_range(self.paging.keys_of(tvpn));
            }
        }
        self.entries.remove(victim);
        if let Some(split) = &mut self.split {
            split.entry_left(key);
        }
        // What will probably leave next.
        if let Some((at, entry)) = self.entries.at_or_behind(0, self.next) {
            self.next = at;
            self.dirty.prefetch(self.entries.key(entry));
        }
    }

    /// The first of the `window` least recent entries that costs nothing. Those before it are remembered: they cost something until
    /// they are used, or their page is loaded or rewritten.
    fn costs_nothing(&mut self) -> Option<u32> {
        let found = self.search();
        #[cfg(debug_assertions)]
        self.is_first_cheap(found);
        found
    }

    /// Holds what the search has found against a search without memory.
    #[cfg(debug_assertions)]
    fn is_first_cheap(&self, found: Option<u32>) {
        let (mut place, mut left) = (self.entries.begin(0), self.params.window);
        while let Some((at, entry)) = self.entries.at_or_behind(0, place)
            && left > 0
        {
            if self.is_cheap(entry) {
                assert_eq!(found, Some(entry), "an entry that costs nothing was passed over");
                return;
            }
            (place, left) = (at + 1, left - 1);
        }
        assert_eq!(found, None, "an entry was found behind the window");
    }

    #[inline]
    fn is_cheap(&self, entry: u32) -> bool {
        let key = self.entries.key(entry);
        !self.dirty.contains(key) || self.pages.contains(self.paging.page_of(key))
    }

    fn search(&mut self) -> Option<u32> {
        self.entries.oldest(0)?;
        if self.costly == 0 {
            self.next = self.entries.begin(0);
            self.again = self.next;
        }
        while let Some((at, entry)) = self.entries.at_or_behind(0, self.again)
            && at < self.next
        {
            self.again = at;
            if self.is_cheap(entry) {
                return Some(entry);
            }
            self.again += 1;
        }
        while self.costly < self.params.window.min(self.entries.len()) {
            let Some((at, entry)) = self.entries.at_or_behind(0, self.next) else {
                // More than are looked at, or the search would come back here soon. Those that are known are the first ones.
                self.entries.sort(0, self.params.window.saturating_mul(2));
                self.next = self.costly as usize;
                continue;
            };
            if self.is_cheap(entry) {
                self.next = at;
                self.again = at;
                return Some(entry);
            }
            self.next = at + 1;
            self.entries.set(entry, COSTLY, true);
            self.costly += 1;
            self.costly_of_page[self.paging.page_of(self.entries.key(entry)) as usize] += 1;
        }
        self.again = self.next;
        None
    }

    /// An entry leaves its place in the order of use.
    #[inline]
    fn uncover(&mut self, entry: u32) {
        if self.entries.set(entry, COSTLY, false) {
            self.costly -= 1;
            self.costly_of_page[self.paging.page_of(self.entries.key(entry)) as usize] -= 1;
        }
    }

    /// The entries of a page cost nothing any more.
    fn now_cheap(&mut self, tvpn: u32) {
        if self.costly_of_page[tvpn as usize] > 0 {
            self.again = self.entries.begin(0);
        }
    }

    /// An entry of the first level has changed.
    fn change(&mut self, key: u32, entry: u32) {
        self.told.change(key, entry);
        self.dirty.replace(key, true);
    }

    /// Whether the entry's page is in the second level, where it changes too.
    fn change_in_page(&mut self, key: u32, entry: u32) -> bool {
        let tvpn = self.paging.page_of(key);
        let there = self.pages.contains(tvpn);
        if there {
            self.copies.change(tvpn, self.paging.place_of(key), entry);
        }
        there
    }

    fn wait(&self, charges: &mut Vec<Charge>) {
        if self.params.serial {
            charges.push(Charge::Then);
        }
    }
}

impl MappingPolicy for Cdftl {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let figures = &self.figures;
        vec![
            ("entry_hits", figures.entry_hits as f64),
            ("page_hits", figures.page_hits as f64),
            ("merged_entries", figures.merged as f64),
            ("rewrites", figures.rewrites as f64),
            ("batched_entries", figures.batched as f64),
            ("page_stores", figures.page_stores as f64),
            ("first_level_grew", figures.first_grew as f64),
            ("second_level_grew", figures.second_grew as f64),
            ("capacity_entries", f64::from(self.capacity)),
            ("capacity_pages", f64::from(self.most_pages)),
        ]
    }

    fn tables(&self) -> Vec<Table> {
        self.paging.tables()
    }

    fn look_up(&mut self, _: u8, first: u32, count: u32, _: Why, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        for key in first..first + count {
            self.counts.lookups += 1;
            if let Some(split) = &mut self.split
                && let Some(level) = split.next()
            {
                let step = split.step;
                self.grow(level, step, charges);
            }
            if let Some(id) = self.entries.find(key) {
                self.counts.hits += 1;
                self.figures.entry_hits += 1;
                self.uncover(id);
                self.entries.touch(id);
                self.last = id;
                continue;
            }
            let tvpn = self.paging.page_of(key);
            if self.pages.contains(tvpn) {
                self.counts.hits += 1;
                self.figures.page_hits += 1;
                self.pages.touch(tvpn);
            } else {
                if let Some(split) = &mut self.split {
                    split.missed(key, tvpn);
                }
                self.load(tvpn, record, charges);
            }
            self.last = self.enter(key, record.entries[key as usize], charges);
        }
    }

    fn prefetch(&self, key: u32) {
        self.entries.prefetch(key);
    }

    fn updated(&mut self, _: u8, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let entry = record.entries[key as usize];
        // The page's copy changes with the entry, but only what leaves the first level makes the page dirty.
        self.change_in_page(key, entry);
        if self.entries.find_near(key, self.last).is_none() {
            self.enter(key, entry, charges);
        }
        self.change(key, entry);
    }

    fn moved(&mut self, _: u8, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let paging = self.paging;
        paging::moved(0, &paging, keys, charges, |key| {
            let entry = record.entries[key as usize];
            let page = self.change_in_page(key, entry);
            if self.entries.find(key).is_some() {
                self.change(key, entry);
                return true;
            }
            if page {
                self.dirty_pages.replace(paging.page_of(key), true);
            }
            page
        });
    }

    fn cached(&self, table: u8, key: u32) -> Option<(u32, bool)> {
        if table != 0 {
            return None;
        }
        let tvpn = self.paging.page_of(key);
        let in_page = self.pages.contains(tvpn);
        let page_dirty = in_page && self.dirty_pages.contains(tvpn);
        match self.entries.find(key) {
            // A clean copy of an entry whose page is dirty is not in flash either.
            Some(_) => Some((self.told.entry(key)?, self.dirty.contains(key) || page_dirty)),
            None if in_page => Some((self.copies.entry(tvpn, self.paging.place_of(key))?, page_dirty)),
            None => None,
        }
    }

    fn is_cached(&self, key: u32) -> bool {
        self.entries.find(key).is_some() || self.pages.contains(self.paging.page_of(key))
    }

    fn counts(&self) -> CacheCounts {
        self.counts
    }

    fn reset_counts(&mut self) {
        self.counts = CacheCounts::default();
        self.figures = Figures::default();
    }

    fn forget(&mut self) {
        self.costly = 0;
        self.costly_of_page.fill(0);
        self.entries.clear();
        self.dirty.clear();
        self.pages.clear();
        self.dirty_pages.clear();
        if let Some(split) = &mut self.split {
            split.clear();
        }
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        let entries = u64::from(self.entries.len()) * u64::from(self.params.entry_bytes);
        let pages = u64::from(self.pages.len()) * u64::from(self.unit_bytes);
        let mut memory = vec![("map_cache", entries), ("page_cache", pages)];
        memory.extend(self.split.as_ref().map(|split| ("ghosts", Split::bytes(split.step))));
        memory.push(("gtd", self.paging.directory_bytes()));
        memory
    }

    fn host_memory(&self) -> HostMemory {
        let marks = self.dirty.bytes() + self.dirty_pages.bytes();
        HostMemory {
            entries: u64::from(self.entries.len()) + u64::from(self.pages.len()) * u64::from(self.paging.per_page),
            bytes: self.entries.bytes() + self.pages.bytes() + allocated(&self.costly_of_page) + marks,
        }
    }
}
