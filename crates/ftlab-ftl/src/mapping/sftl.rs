//! S-FTL: whole translation pages are cached, compressed by the runs of consecutive places in them.
//!
//! # Model
//! * **Object**: a translation page of E entries takes `bitmap_bits` × E / 8 bytes for a bit map that marks where runs begin and
//!   `head_bytes` for each run. A run is a sequence of keys whose data lies at consecutive places in the order in which the
//!   drive fills its lanes (`Layout::striped`), or that are all unmapped. Overwrites split runs and join them, so an update
//!   changes the size of a cached page, and may push others out.
//! * **Look-up**: a hit if the page is cached, or (for a read) the entry is in the dirty buffer. A miss reads the page
//!   and merges the entries that the dirty buffer holds for it. The least recently used page is evicted.
//! * **Eviction**: a clean page is dropped. A page with at most `sparse` dirty entries moves them to the dirty buffer,
//!   at `buffered_bytes` each. Any other dirty page is programmed without a read, because all of it is in memory. A
//!   full buffer writes back the entries of the page that has the most entries in it, with a read and a program.
//! * **Collection**: moved data changes cached pages and buffered entries in memory; the rest is grouped by translation page,
//!   each read and programmed once, with the buffered entries of the page.
//!
//! # Parameters
//! * `buffer` (share, 0 to 0.5, default 0.1): of `ftl.map_cache`, for the dirty buffer. Assumed; not stated by the source.
//! * `sparse` (count, default 8): most dirty entries of a page that go to the buffer. Assumed.
//! * `buffered_bytes` (bytes, default 8): LPN and slot. Assumed.
//! * `bitmap_bits` (1 or 2, default 1): 2 keeps a second bit for each entry. An overwrite inside a run then leaves the
//!   rest of the run whole, and costs one head instead of two.
//! * `head_bytes` (bytes, default 4): the slot at which a run begins.
//! * `serial` (bool, default false): as for `dftl`.
//!
//! # Not modelled
//! The time of counting bits.
//!
//! # Errors
//! A cache that does not hold one page without any run of two is refused.
//!
//! # Cost
//! Constant, O(log pages) where the dirty buffer takes part. The runs of a page are counted once, O(E), and followed from then on;
//! pages are not copied. Two bits of the simulator's memory for each unit.
//!
//! # Source
//! Jiang, Zhang, Yuan, Hu and Wang, "S-FTL: An efficient address translation for flash memory by exploiting spatial locality",
//! MSST 2011. The second bit: the S-FTL baseline in the public code of LeaFTL (ASPLOS 2023).

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::paging::{self, Copies, Paging, SLOT_BYTES};
use super::places::Places;
use super::recency::{Lowest, Marks, Recency};
use super::{CacheCounts, Charge, HostMemory, MapCause, MappingPolicy, RecordView, Setup, Table, Why, allocated};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub buffer: f64,
    pub sparse: u32,
    pub buffered_bytes: u32,
    pub bitmap_bits: u32,
    pub head_bytes: u32,
    pub serial: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            buffer: 0.1,
            sparse: 8,
            buffered_bytes: 8,
            bitmap_bits: 1,
            head_bytes: 4,
            serial: false,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn MappingPolicy>> {
    if !(0.0..=0.5).contains(&params.buffer) || !(1..=2).contains(&params.bitmap_bits) {
        return Err(Error::input(format!(
            "mapping policy `sftl`: buffer = {}, bitmap_bits = {}: expected a share up to 0.5, and 1 or 2 bits",
            params.buffer, params.bitmap_bits
        )));
    }
    let paging = Paging::new(setup.logical_units, setup.unit_bytes, SLOT_BYTES);
    let buffer = (setup.cache_bytes as f64 * params.buffer) as u64;
    let budget = setup.cache_bytes - buffer;
    let largest = size(&params, paging.per_page, paging.per_page);
    if largest > budget {
        return Err(Error::input(format!(
            "ftl.map_cache = {} bytes, of which {buffer} are the dirty buffer: mapping policy `sftl` expects room for a \
             translation page without runs, {largest} bytes",
            setup.cache_bytes
        )));
    }
    let buffer_entries = (buffer / u64::from(params.buffered_bytes.max(1))) as u32;
    let most_sparse = params.sparse.min(buffer_entries).min(paging.per_page);
    Ok(Box::new(Sftl {
        buffer_entries,
        budget,
        used: 0,
        places: Places::new(setup.layout.clone()),
        cached: Recency::new(paging.pages()),
        pages: vec![UNKNOWN; paging.pages() as usize],
        heads: Marks::new(setup.logical_units),
        dirty: Marks::new(setup.logical_units),
        copies: Copies::new(setup.checked, &paging),
        buffered: 0,
        fullest: Lowest::new(u64::from(most_sparse) * u64::from(paging.pages())),
        most_sparse,
        paging,
        params,
        counts: CacheCounts::default(),
        figures: Figures::default(),
    }))
}

/// Bytes of a page of `entries` with so many runs.
fn size(params: &Params, entries: u32, runs: u32) -> u64 {
    u64::from((entries * params.bitmap_bits).div_ceil(8)) + u64::from(params.head_bytes) * u64::from(runs)
}

/// The number under which a page with so many entries in the dirty buffer waits there: the fullest page first, of several the
/// lowest.
fn rank(paging: &Paging, most: u32, entries: u32, tvpn: u32) -> u64 {
    u64::from(most - entries) * u64::from(paging.pages()) + u64::from(tvpn)
}

/// A translation page, cached or not.
#[derive(Clone, Debug)]
struct Page {
    /// Followed once they have been counted.
    runs: Option<u32>,
    /// Its dirty entries. Those of a page that is not cached wait in the dirty buffer.
    dirty: u32,
}

const UNKNOWN: Page = Page { runs: None, dirty: 0 };

struct Sftl {
    params: Params,
    paging: Paging,
    places: Places,
    /// Bytes for pages, and in use by them.
    budget: u64,
    used: u64,
    cached: Recency,
    pages: Vec<Page>,
    /// By key: whether a run begins there, of pages whose runs are known; and what is dirty, in cached pages and in the dirty buffer.
    heads: Marks,
    dirty: Marks,
    copies: Copies,
    /// Entries that the dirty buffer holds at most, and now; the pages with entries in it by `rank`.
    buffer_entries: u32,
    buffered: u32,
    fullest: Lowest,
    /// The most entries of a page that go there.
    most_sparse: u32,
    counts: CacheCounts,
    figures: Figures,
}

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    evictions: u64,
    dirty_evictions: u64,
    buffered: u64,
    buffer_flushes: u64,
    loads: u64,
    loaded_runs: u64,
}

impl Sftl {
    /// Whether a run begins at `at`. With the second bit, a run goes on behind one entry that lies elsewhere.
    #[inline(always)]
    fn is_head(&self, entries: &[u32], at: usize) -> bool {
        let near = at >= 1 && self.places.follows(entries[at - 1], entries[at]);
        let beyond =
            self.params.bitmap_bits == 2 && at >= 2 && self.places.lies_behind(entries[at - 2], entries[at], 2);
        !near && !beyond
    }

    /// The runs of a page, counted if they are not known.
    fn runs_of(&mut self, tvpn: u32, entries: &[u32]) -> u32 {
        if let Some(runs) = self.pages[tvpn as usize].runs {
            return runs;
        }
        let mut runs = 0;
        for (at, key) in self.paging.keys_of(tvpn).enumerate() {
            let head = self.is_head(entries, at);
            self.heads.replace(key, head);
            runs += u32::from(head);
        }
        self.pages[tvpn as usize].runs = Some(runs);
        runs
    }

    /// The entry `at` of a page has changed: whether runs begin there and right behind it is looked at again. Returns the change
    /// of the number of runs.
    #[inline]
    fn follow(&mut self, tvpn: u32, entries: &[u32], at: usize) -> i32 {
        let Some(runs) = self.pages[tvpn as usize].runs else {
            return 0;
        };
        let first = self.paging.keys_of(tvpn).start;
        let end = entries.len().min(at + 1 + self.params.bitmap_bits as usize);
        let mut change = 0;
        for at in at..end {
            let head = self.is_head(entries, at);
            let was = self.heads.replace(first + at as u32, head);
            change += i32::from(head) - i32::from(was);
        }
        self.pages[tvpn as usize].runs = runs.checked_add_signed(change);
        change
    }

    fn size_of(&self, tvpn: u32) -> u64 {
        let entries = self.paging.keys_of(tvpn).len() as u32;
        size(&self.params, entries, self.pages[tvpn as usize].runs.unwrap_or(0))
    }

    /// The record's entry of `key` has changed; a cached page changes with it. Returns whether the page is cached.
    fn change(&mut self, tvpn: u32, key: u32, record: RecordView<'_>) -> bool {
        let at = self.paging.place_of(key);
        let change = self.follow(tvpn, record.page(self.paging.keys_of(tvpn)), at);
        let cached = self.cached.contains(tvpn);
        if cached {
            self.used = self
                .used
                .wrapping_add_signed(i64::from(self.params.head_bytes) * i64::from(change));
            self.copies.change(tvpn, at, record.entries[key as usize]);
            self.pages[tvpn as usize].dirty += u32::from(!self.dirty.replace(key, true));
        }
        cached
    }

    /// Reads a translation page into the cache.
    fn load(&mut self, tvpn: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let entries = record.page(self.paging.keys_of(tvpn));
        let runs = self.runs_of(tvpn, entries);
        let bytes = self.size_of(tvpn);
        self.make_room(bytes, None, charges);
        // What waits in the dirty buffer is dirty in the page.
        self.pages[tvpn as usize].dirty = self.leave_buffer(tvpn);
        self.cached.insert(tvpn);
        self.copies.load(tvpn, entries);
        self.used += bytes;
        self.figures.loads += 1;
        self.figures.loaded_runs += u64::from(runs);
        paging::load(tvpn, charges);
    }

    /// Takes the entries of a page that is not cached out of the dirty buffer. Returns how many there were.
    fn leave_buffer(&mut self, tvpn: u32) -> u32 {
        let entries = self.pages[tvpn as usize].dirty;
        if entries > 0 {
            self.fullest.remove(rank(&self.paging, self.most_sparse, entries, tvpn));
            self.buffered -= entries;
        }
        entries
    }

    /// The entries of a page that is not cached have been written with it.
    fn written(&mut self, tvpn: u32) {
        if self.leave_buffer(tvpn) > 0 {
            self.pages[tvpn as usize].dirty = 0;
            self.dirty.clear_range(self.paging.keys_of(tvpn));
        }
    }

    /// Drops pages until `bytes` more fit; `kept` stays.
    fn make_room(&mut self, bytes: u64, kept: Option<u32>, charges: &mut Vec<Charge>) {
        while self.used + bytes > self.budget {
            let Some(tvpn) = self.cached.back_beside(kept) else {
                return;
            };
            self.evict(tvpn, charges);
        }
    }

    fn evict(&mut self, tvpn: u32, charges: &mut Vec<Charge>) {
        self.used -= self.size_of(tvpn);
        self.cached.remove(tvpn);
        self.figures.evictions += 1;
        let dirty = self.pages[tvpn as usize].dirty;
        if dirty == 0 {
            return;
        }
        if dirty <= self.most_sparse {
            while self.buffered + dirty > self.buffer_entries {
                self.flush_fullest(charges);
            }
            self.buffered += dirty;
            self.figures.buffered += u64::from(dirty);
            self.fullest.insert(rank(&self.paging, self.most_sparse, dirty, tvpn));
        } else {
            self.figures.dirty_evictions += 1;
            self.pages[tvpn as usize].dirty = 0;
            self.dirty.clear_range(self.paging.keys_of(tvpn));
            paging::store(tvpn, MapCause::EvictRmw, charges);
            self.wait(charges);
        }
    }

    /// Writes the buffered entries of the page that has most of them; of several, of the first.
    fn flush_fullest(&mut self, charges: &mut Vec<Charge>) {
        let Some(fullest) = self.fullest.first() else {
            return;
        };
        let tvpn = (fullest % u64::from(self.paging.pages())) as u32;
        self.figures.buffer_flushes += 1;
        paging::rewrite(tvpn, MapCause::EvictRmw, charges);
        self.wait(charges);
        self.written(tvpn);
    }

    fn wait(&self, charges: &mut Vec<Charge>) {
        if self.params.serial {
            charges.push(Charge::Then);
        }
    }
}

impl MappingPolicy for Sftl {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let figures = &self.figures;
        let pages = f64::from(self.cached.len());
        vec![
            ("pages_cached", pages),
            ("bytes_per_page", self.used as f64 / pages.max(1.0)),
            (
                "runs_per_loaded_page",
                figures.loaded_runs as f64 / figures.loads.max(1) as f64,
            ),
            ("evictions", figures.evictions as f64),
            ("dirty_evictions", figures.dirty_evictions as f64),
            ("buffered_entries", figures.buffered as f64),
            ("buffer_flushes", figures.buffer_flushes as f64),
        ]
    }

    fn tables(&self) -> Vec<Table> {
        self.paging.tables()
    }

    fn look_up(&mut self, _: u8, first: u32, count: u32, why: Why, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        for key in first..first + count {
            self.counts.lookups += 1;
            let tvpn = self.paging.page_of(key);
            if self.cached.contains(tvpn) {
                self.counts.hits += 1;
                self.cached.touch(tvpn);
            } else if why == Why::HostRead && self.dirty.contains(key) {
                self.counts.hits += 1;
            } else {
                self.load(tvpn, record, charges);
            }
        }
    }

    fn prefetch(&self, key: u32) {
        self.heads.prefetch(key);
        self.dirty.prefetch(key);
    }

    fn updated(&mut self, _: u8, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let tvpn = self.paging.page_of(key);
        if !self.change(tvpn, key, record) {
            // Pushed out again by the rest of a long request.
            self.load(tvpn, record, charges);
            self.change(tvpn, key, record);
        }
        self.make_room(0, Some(tvpn), charges);
    }

    fn moved(&mut self, _: u8, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let paging = self.paging;
        for of_page in keys.chunk_by(|&a, &b| paging.page_of(a) == paging.page_of(b)) {
            let tvpn = paging.page_of(of_page[0]);
            let mut missing = false;
            for &key in of_page {
                if self.change(tvpn, key, record) {
                    continue;
                }
                match self.dirty.contains(key) {
                    true => self
                        .copies
                        .change(tvpn, self.paging.place_of(key), record.entries[key as usize]),
                    false => missing = true,
                }
            }
            if missing {
                paging::rewrite(tvpn, MapCause::GcUpdate, charges);
                self.written(tvpn);
            }
        }
        self.make_room(0, None, charges);
    }

    fn cached(&self, table: u8, key: u32) -> Option<(u32, bool)> {
        let tvpn = self.paging.page_of(key);
        let at = self.paging.place_of(key);
        if table != 0 {
            return None;
        }
        let dirty = self.dirty.contains(key);
        match self.cached.contains(tvpn) || dirty {
            true => Some((self.copies.entry(tvpn, at)?, dirty)),
            false => None,
        }
    }

    fn is_cached(&self, key: u32) -> bool {
        self.cached.contains(self.paging.page_of(key)) || self.dirty.contains(key)
    }

    fn counts(&self) -> CacheCounts {
        self.counts
    }

    fn reset_counts(&mut self) {
        self.counts = CacheCounts::default();
        self.figures = Figures::default();
    }

    fn forget(&mut self) {
        self.cached.clear();
        self.pages.fill(UNKNOWN);
        self.dirty.clear();
        self.buffered = 0;
        self.fullest.clear();
        self.used = 0;
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("map_cache", self.used),
            (
                "dirty_buffer",
                u64::from(self.buffered) * u64::from(self.params.buffered_bytes),
            ),
            ("gtd", self.paging.directory_bytes()),
        ]
    }

    fn host_memory(&self) -> HostMemory {
        let pages = self.cached.bytes() + allocated(&self.pages) + self.heads.bytes() + self.dirty.bytes();
        HostMemory {
            entries: u64::from(self.cached.len()) * u64::from(self.paging.per_page) + u64::from(self.buffered),
            bytes: pages + self.fullest.bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Harness;

    /// Translation pages of 1024 entries over 8192 keys, which lie one behind the other at first.
    fn harness(params: &str, bytes: u64) -> Harness {
        Harness::new(&format!("sftl:{params}"), 8192, 4096, bytes)
    }

    #[test]
    fn a_page_written_in_sequence_takes_its_bit_map_and_one_head() {
        let mut h = harness("", 20_000);
        for key in 0..4096 {
            let charges = h.read(key);
            assert_eq!(charges.is_empty(), key % 1024 != 0, "key {key}: {charges}");
        }
        // 1024 bits and one head of 4 bytes.
        assert_eq!((h.figure("pages_cached"), h.figure("bytes_per_page")), (4.0, 132.0));
        assert_eq!(h.hits(), (4092, 4096));
    }

    #[test]
    fn an_overwrite_inside_a_run_costs_two_heads_or_with_the_second_bit_one() {
        for (params, bytes) in [("", 128.0 + 3.0 * 4.0), ("bitmap_bits=2", 256.0 + 2.0 * 4.0)] {
            let mut h = harness(params, 20_000);
            h.write(500);
            assert_eq!(h.figure("bytes_per_page"), bytes, "{params}");
        }
    }

    #[test]
    fn a_growing_page_pushes_others_out() {
        // Room for a page without runs (4224 bytes) and a little: overwriting every second key of page 0 takes 128 + 4 × 1024.
        let mut h = harness("buffer=0.01", 4390);
        h.read(1024);
        (0..1024).step_by(2).for_each(|key| drop(h.write(key)));
        assert_eq!(h.figure("pages_cached"), 1.0);
        assert!(h.policy.cached(0, 1024).is_none() && h.policy.cached(0, 0).is_some());
    }

    #[test]
    fn few_dirty_entries_wait_in_the_buffer_and_many_are_programmed_without_a_read() {
        let mut h = harness("sparse=2,buffer=0.05", 4500);
        // 4275 bytes for pages, 225 for 28 buffered entries. Scattered writes fill page 0 up.
        for key in (0..1000).step_by(2) {
            h.write(key);
        }
        h.read(1024);
        let charges = (1024..2048)
            .step_by(2)
            .map(|key| h.write(key))
            .find(|charges| !charges.is_empty());
        assert_eq!(charges.as_deref(), Some("store 0"));
        let mut h = harness("sparse=2,buffer=0.05", 4500);
        h.write(1);
        h.write(3);
        // Page 1 grows until page 0 must go: its two dirty entries go to the buffer, for nothing.
        let charges = (1024..2048)
            .step_by(2)
            .map(|key| h.write(key))
            .filter(|charges| !charges.is_empty());
        assert_eq!(charges.collect::<Vec<_>>(), ["load 1"]);
        assert_eq!((h.figure("buffered_entries"), h.read(3).as_str()), (2.0, ""));
        assert_eq!(h.policy.cached(0, 3).map(|(_, dirty)| dirty), Some(true));
        // The page is loaded for another key and takes its entries back.
        assert!(h.read(2).contains("load 0"));
    }

    #[test]
    fn collection_changes_what_is_in_memory_and_rewrites_the_rest() {
        let mut h = harness("", 20_000);
        h.read(5);
        assert_eq!(h.moved(&[5, 6, 1024, 1025, 2048]), "gc 1 gc 2");
    }

    #[test]
    fn runs_that_are_followed_are_those_that_are_counted() {
        for params in ["", "bitmap_bits=2"] {
            // One page is cached at a time; others change while they are not.
            let mut h = harness(params, 5000);
            let mut random = ftlab_core::Stream::new(3, "sftl");
            for _ in 0..3000 {
                let key = random.below(2048) as u32;
                match random.below(3) {
                    0 => drop(h.read(key)),
                    1 => drop(h.write(key)),
                    _ => drop(h.moved(&[key, (key + 1).min(2047)])),
                }
            }
            // A policy that has seen nothing of this counts from the start.
            for page in 0..2 {
                h.read(1024 * page);
                let mut counted = harness(params, 20_000);
                counted.entries = h.entries.clone();
                counted.read(1024 * page);
                assert_eq!(h.figure("pages_cached"), 1.0);
                assert_eq!(h.figure("bytes_per_page"), counted.figure("bytes_per_page"), "{params}");
            }
        }
    }
}
