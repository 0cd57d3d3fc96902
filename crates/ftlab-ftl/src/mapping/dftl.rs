//! DFTL: single mapping entries are cached, the rest of the map lies in translation pages.
//!
//! # Model
//! The map is table 0. On a drive that deduplicates or replicates, the tables of values (8 bytes each: slot, count of references) and
//! of rows of chunks (16 bytes) lie in flash as well, and their entries compete for the same cache.
//! * **Look-up**: a cached entry is a hit. A miss evicts the least valuable entry of a full cache, reads the translation page
//!   and caches the one entry that was asked for.
//! * **Eviction**: a clean entry is dropped. A dirty one costs a read and a program of its translation page; with `batch`,
//!   all dirty entries of that page are written with it and stay cached, clean.
//! * **Update**: a host write makes the cached entry dirty. A trim writes "unmapped" like any other update.
//! * **Collection**: entries of moved data that are cached are changed there and become dirty (lazy copying); the others are
//!   grouped by translation page, each of which is read and programmed once (batch updates).
//!
//! Replacement (`policy`):
//! * `slru`: two segments in LRU order. A loaded entry enters the probationary segment. A hit there moves it to the
//!   protected segment (share `protected`), whose least recently used entry moves back to the probationary one. The
//!   victim is the least recently used probationary entry.
//! * `lru`: one list in LRU order.
//! * `flashsim_age`: the rule of FlashSim's source. A hit adds 1 to the entry's age; a loaded entry gets the greatest
//!   protected age + 1; a probationary entry that is hit changes places with the protected entry of the lowest age if its own
//!   is at least that; the victim is the probationary entry of the lowest age. It is nearer to frequency than to recency.
//!
//! # Parameters
//! * `policy` (`slru`, `lru` or `flashsim_age`; default `slru`).
//! * `protected` (share, 0 to 1, default 0.8): of the cache, for `slru` and `flashsim_age`.
//! * `batch` (bool, default false): write back all dirty entries of the evicted one's translation page.
//! * `serial` (bool, default false): a miss starts its load when the write-back that made room is in flash, as in
//!   FlashSim; otherwise both run in parallel.
//! * `entry_bytes` (bytes, default 8): what a cached entry takes of `ftl.map_cache`: LPN and slot.
//!
//! # Not modelled
//! The larger size of a cached row of chunks. The time of searching the cache. FlashSim's omission of the dirty mark on
//! entries whose data collection has moved, which loses updates.
//!
//! # Errors
//! A cache of fewer than two entries is refused, and one of more than 2^28.
//!
//! # Cost
//! A look-up reads one line of the processor's cache and a hit writes one word there; the order of use is sorted, a part at a time,
//! when it is asked for. `flashsim_age` also takes two operations on trees. An entry takes 18 bytes of the simulator's memory.
//!
//! # Source
//! Gupta, Kim and Urgaonkar, ASPLOS 2009. Shares and ages: FlashSim's source (`dftl.c`), which holds 6,552 + 1,640
//! entries. A write-back of one entry only: Zhou et al. (TPFTL), EuroSys 2015.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::list::NONE;
use super::lru::{DIRTY, Lru};
use super::paging::{self, Told};
use super::replacement::{Order, Replacement};
use super::tables::Tables;
use super::{CacheCounts, Charge, HostMemory, MapCause, MappingPolicy, RecordView, Setup, Table, Why};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub policy: Replacement,
    pub protected: f64,
    pub batch: bool,
    pub serial: bool,
    pub entry_bytes: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            policy: Replacement::Slru,
            protected: 0.8,
            batch: false,
            serial: false,
            entry_bytes: 8,
        }
    }
}

pub fn new(mut params: Params, setup: &mut Setup) -> Result<Box<dyn MappingPolicy>> {
    params.entry_bytes = params.entry_bytes.saturating_add(setup.beside_slot);
    if !(0.0..=1.0).contains(&params.protected) {
        return Err(Error::input(format!(
            "mapping policy `dftl`: protected = {}: expected a share from 0 to 1",
            params.protected
        )));
    }
    let tables = setup.tables();
    let capacity = setup.entries_of("dftl", params.entry_bytes, tables.entries())?;
    Ok(Box::new(Dftl {
        order: Order::new(params.policy, capacity, params.protected),
        entries: Lru::new(capacity),
        told: Told::new(setup.checked, tables.entries()),
        tables,
        last: NONE,
        capacity,
        params,
        counts: CacheCounts::default(),
        figures: Figures::default(),
    }))
}

struct Dftl {
    params: Params,
    tables: Tables,
    capacity: u32,
    /// By number ([`Tables`]).
    entries: Lru,
    told: Told,
    order: Order,
    /// The number of the entry that the last look-up found or made.
    last: u32,
    counts: CacheCounts,
    figures: Figures,
}

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    evictions: u64,
    dirty_evictions: u64,
    /// Dirty entries written with another one's page.
    batched: u64,
}

impl Dftl {
    /// A new entry, after making room for it.
    fn enter(&mut self, number: u32, entry: u32, charges: &mut Vec<Charge>) -> u32 {
        if self.entries.len() >= self.capacity
            && let Some(victim) = self.order.victim(&mut self.entries)
        {
            self.evict(victim, charges);
        }
        self.told.change(number, entry);
        self.order.enter(&mut self.entries, number)
    }

    fn evict(&mut self, victim: u32, charges: &mut Vec<Charge>) {
        self.figures.evictions += 1;
        if self.entries.set(victim, DIRTY, false) {
            self.figures.dirty_evictions += 1;
            let (table, tvpn) = self.tables.page_of(self.entries.key(victim));
            paging::rewrite_of(table, tvpn, MapCause::EvictRmw, charges);
            if self.params.batch {
                self.clean(table, tvpn);
            }
            if self.params.serial {
                charges.push(Charge::Then);
            }
        }
        self.order.leave(&mut self.entries, victim);
    }

    /// All dirty entries of the page have been written with it.
    fn clean(&mut self, table: u8, tvpn: u32) {
        for number in self.tables.numbers_of(table, tvpn) {
            if let Some(entry) = self.entries.find(number) {
                self.figures.batched += u64::from(self.entries.set(entry, DIRTY, false));
            }
        }
    }
}

impl MappingPolicy for Dftl {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let figures = &self.figures;
        vec![
            ("capacity_entries", f64::from(self.capacity)),
            ("evictions", figures.evictions as f64),
            ("dirty_evictions", figures.dirty_evictions as f64),
            ("batched_entries", figures.batched as f64),
        ]
    }

    fn tables(&self) -> Vec<Table> {
        self.tables.tables()
    }

    fn look_up(
        &mut self,
        table: u8,
        first: u32,
        count: u32,
        _: Why,
        record: RecordView<'_>,
        charges: &mut Vec<Charge>,
    ) {
        for key in first..first + count {
            self.counts.lookups += 1;
            let number = self.tables.number(table, key);
            match self.entries.find(number) {
                Some(found) => {
                    self.counts.hits += 1;
                    self.order.hit(&mut self.entries, found);
                    self.last = found;
                }
                None => {
                    self.last = self.enter(number, record.entry(key), charges);
                    paging::load_of(table, self.tables.paging(table).page_of(key), charges);
                }
            }
        }
    }

    fn prefetch(&self, key: u32) {
        self.entries.prefetch(key);
    }

    fn updated(&mut self, table: u8, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let (number, entry) = (self.tables.number(table, key), record.entry(key));
        // A long request through a small cache may have pushed the entry out again before it is changed.
        let found = match self.entries.find_near(number, self.last) {
            Some(found) => found,
            None => self.enter(number, entry, charges),
        };
        self.entries.set(found, DIRTY, true);
        self.told.change(number, entry);
    }

    fn moved(&mut self, table: u8, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let tables = &self.tables;
        paging::moved(table, tables.paging(table), keys, charges, |key| {
            let number = tables.number(table, key);
            match self.entries.find(number) {
                Some(found) => {
                    self.entries.set(found, DIRTY, true);
                    self.told.change(number, record.entry(key));
                    true
                }
                None => false,
            }
        });
    }

    fn cached(&self, table: u8, key: u32) -> Option<(u32, bool)> {
        if !self.tables.has(table) {
            return None;
        }
        let number = self.tables.number(table, key);
        let found = self.entries.find(number)?;
        Some((self.told.entry(number)?, self.entries.is(found, DIRTY)))
    }

    fn is_cached(&self, key: u32) -> bool {
        self.entries.find(key).is_some()
    }

    fn counts(&self) -> CacheCounts {
        self.counts
    }

    fn reset_counts(&mut self) {
        self.counts = CacheCounts::default();
        self.figures = Figures::default();
    }

    fn forget(&mut self) {
        self.entries.clear();
        self.order.clear();
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![
            (
                "map_cache",
                u64::from(self.entries.len()) * u64::from(self.params.entry_bytes),
            ),
            ("gtd", self.tables.directory_bytes()),
        ]
    }

    fn host_memory(&self) -> HostMemory {
        HostMemory {
            entries: u64::from(self.entries.len()),
            bytes: self.entries.bytes() + self.order.bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Harness;

    /// A cache of three entries over translation pages of four.
    fn harness(params: &str) -> Harness {
        Harness::new(&format!("dftl:{params}"), 16, 16, 24)
    }

    #[test]
    fn a_miss_loads_and_a_dirty_victim_is_read_and_programmed() {
        let mut h = harness("policy=lru");
        assert_eq!(h.read(0), "load 0");
        assert_eq!(h.read(0), "");
        assert_eq!(h.write(5), "load 1");
        assert_eq!(h.read(9), "load 2");
        // Three entries: 0 is the least recent and clean, then 5, which is dirty.
        assert_eq!(h.read(1), "load 0");
        assert_eq!(h.read(2), "evict 1 load 0");
        assert_eq!(h.hits(), (1, 6));
    }

    #[test]
    fn the_simulators_memory_is_counted_by_what_is_allocated() {
        let mut h = harness("policy=lru");
        (0..2).for_each(|key| drop(h.read(key)));
        // One group of eight slots of 8 bytes, and its counter; nothing has been put in order yet.
        let host = h.policy.host_memory();
        assert_eq!((host.entries, host.bytes), (2, 8 * 8 + 1));
        (2..5).for_each(|key| drop(h.read(key)));
        assert_eq!(h.policy.host_memory().bytes, 8 * 8 + 1 + 3 * 8);
    }

    #[test]
    fn batch_writes_all_dirty_entries_of_the_page() {
        let mut h = harness("policy=lru,batch=true");
        h.write(4);
        h.write(5);
        h.write(6);
        assert_eq!(h.read(0), "evict 1 load 0");
        // 5 and 6 are clean now and leave for nothing.
        assert_eq!((h.read(1), h.read(2)), ("load 0".into(), "load 0".into()));
    }

    #[test]
    fn serial_waits_for_the_write_back() {
        let mut h = harness("policy=lru,serial=true");
        (4..7).for_each(|key| drop(h.write(key)));
        assert_eq!(h.read(0), "evict 1 then load 0");
    }

    #[test]
    fn what_collection_moves_is_changed_in_the_cache_or_once_a_page() {
        let mut h = harness("policy=lru");
        h.read(0);
        h.read(4);
        // 0 and 4 are cached: no traffic for them; 5 (page 1), 8, 9 (page 2) are not.
        assert_eq!(h.moved(&[0, 4, 5, 8, 9]), "gc 1 gc 2");
        assert_eq!(h.moved(&[0, 4]), "");
        // Both are dirty by now.
        h.read(1);
        assert_eq!(h.read(2), "evict 0 load 0");
    }
}
