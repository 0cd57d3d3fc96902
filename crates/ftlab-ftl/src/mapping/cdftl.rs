//! CDFTL: two levels, single entries in front of whole translation pages.
//!
//! # Model
//! * **Look-up**: an entry in the first level, or in a page of the second, is a hit; from the second level it is copied to the
//!   first. A miss reads the translation page into the second level and copies the entry.
//! * **Leaving the first level**: of the `window` least recent entries, the first clean one or one whose page is in the second
//!   level (a dirty one is merged into that page, which becomes dirty). If there is none, the least recent entry is written back
//!   with a read and a program of its page, and with it all dirty entries of that page in the first level.
//! * **Leaving the second level**: the least recent page; a dirty one is programmed, without a read, as all of it is in memory.
//! * **Collection**: moved data changes entries and pages that are in memory; the rest is grouped by translation page, each
//!   read and programmed once.
//!
//! # Parameters
//! * `first_level` (share, above 0 and below 1, default 0.5): of `ftl.map_cache`, for single entries. Assumed: the journal version
//!   adapts it.
//! * `window` (count, default 16, at least 1): entries looked at for one that costs nothing. Assumed.
//! * `entry_bytes` (bytes, default 8): an entry of the first level, LPN and slot.
//! * `serial` (bool, default false): as for `dftl`.
//!
//! # Not modelled
//! The adaptive split of the journal version.
//!
//! # Errors
//! A cache whose second level does not hold one page, or whose first does not hold two entries (or holds more than 2^28), is refused.
//!
//! # Cost
//! As of `dftl`; entries that were looked at in vain are remembered. Pages are not copied: the simulator has the record.
//!
//! # Source
//! Qin, Wang, Liu, Shao and Guan, "A Two-Level Caching Mechanism for Demand-Based Page-Level Address Mapping in NAND Flash Memory
//! Storage Systems", RTAS 2011.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::list::NONE;
use super::lru::{Lru, MARKED};
use super::paging::{self, Copies, Paging, Told};
use super::recency::{Marks, Recency};
use super::{CacheCounts, Charge, HostMemory, MapCause, MappingPolicy, RecordView, Setup, Table, Why, allocated};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub first_level: f64,
    pub window: u32,
    pub entry_bytes: u32,
    pub serial: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            first_level: 0.5,
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
    Ok(Box::new(Cdftl {
        capacity,
        most_pages: most_pages.min(u64::from(paging.pages())) as u32,
        entries: Lru::new(capacity),
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
    /// First level: entries.
    capacity: u32,
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
}

impl Cdftl {
    /// Brings a page into the second level.
    fn load(&mut self, tvpn: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        if self.pages.len() >= self.most_pages
            && let Some(victim) = self.pages.back()
        {
            if self.dirty_pages.replace(victim, false) {
                self.figures.page_stores += 1;
                paging::store(victim, MapCause::EvictRmw, charges);
                self.wait(charges);
            }
            self.pages.remove(victim);
        }
        self.pages.insert(tvpn);
        self.now_cheap(tvpn);
        self.copies.load(tvpn, record.page(self.paging.keys_of(tvpn)));
        paging::load(tvpn, charges);
    }

    /// A new entry of the first level, after making room for it.
    fn enter(&mut self, key: u32, entry: u32, charges: &mut Vec<Charge>) -> u32 {
        if self.entries.len() >= self.capacity {
            self.evict(charges);
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
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![
            (
                "map_cache",
                u64::from(self.entries.len()) * u64::from(self.params.entry_bytes),
            ),
            ("page_cache", u64::from(self.pages.len()) * u64::from(self.unit_bytes)),
            ("gtd", self.paging.directory_bytes()),
        ]
    }

    fn host_memory(&self) -> HostMemory {
        let marks = self.dirty.bytes() + self.dirty_pages.bytes();
        HostMemory {
            entries: u64::from(self.entries.len()) + u64::from(self.pages.len()) * u64::from(self.paging.per_page),
            bytes: self.entries.bytes() + self.pages.bytes() + allocated(&self.costly_of_page) + marks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Harness;

    /// Pages of 16 entries, 64 bytes; room for `pages` pages and `entries` entries.
    fn harness(params: &str, pages: u64, entries: u64) -> Harness {
        let (pages, entries) = (64 * pages, 8 * entries);
        let share = entries as f64 / (pages + entries) as f64 + 1e-9;
        Harness::new(&format!("cdftl:first_level={share},{params}"), 256, 64, pages + entries)
    }

    #[test]
    fn neighbours_hit_in_the_second_level() {
        let mut h = harness("", 2, 4);
        assert_eq!(h.read(0), "load 0");
        assert_eq!(
            (h.read(1), h.read(15), h.read(0)),
            (String::new(), String::new(), String::new())
        );
        assert_eq!((h.figure("page_hits"), h.figure("entry_hits")), (2.0, 1.0));
    }

    #[test]
    fn a_dirty_entry_is_merged_into_its_page_and_the_page_programmed_without_a_read() {
        let mut h = harness("window=1", 1, 2);
        assert_eq!(h.write(0), "load 0");
        h.read(1);
        // 0 leaves for 2 and is merged; then page 1 replaces page 0, which is dirty.
        assert_eq!(h.read(2), "");
        assert_eq!(h.figure("merged_entries"), 1.0);
        assert_eq!(h.read(16), "store 0 load 1");
    }

    #[test]
    fn without_its_page_a_dirty_entry_costs_a_rewrite_that_takes_the_others_with_it() {
        let mut h = harness("window=1", 1, 3);
        h.write(0);
        h.write(1);
        assert_eq!(h.read(16), "load 1");
        assert_eq!(h.read(17), "evict 0");
        // 1 is clean now.
        assert_eq!(h.read(18), "");
        assert_eq!(h.figure("batched_entries"), 2.0);
    }

    #[test]
    fn what_costs_nothing_goes_first() {
        let mut h = harness("window=3", 1, 3);
        h.write(0);
        h.read(16);
        h.read(17);
        // 0 is the least recent, but dirty and without its page: 16 goes.
        assert_eq!(h.read(18), "");
        assert!(h.policy.cached(0, 0).is_some());
    }

    #[test]
    fn collection_changes_both_levels() {
        let mut h = harness("", 2, 2);
        h.read(0);
        assert_eq!(h.moved(&[0, 1, 16, 17]), "gc 1");
        // Page 0 became dirty with 1.
        h.read(32);
        assert_eq!(h.read(48), "store 0 load 3");
    }
}
