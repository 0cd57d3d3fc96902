//! TPFTL: entries are cached one by one but grouped by translation page, loaded ahead and written back together.
//!
//! # Model
//! A *node* holds the cached entries of one translation page, in LRU order. Nodes are ordered by hotness: the mean,
//! over a node's entries, of the look-up number of their last use, rounded down. A prefetched entry counts as used by the
//! look-up that loaded it. Among nodes of equal hotness, the one with the lowest page number is the coldest.
//! * **Request-level prefetching** (`request_prefetch`): a miss loads, from the one translation page that it reads, every entry
//!   that the rest of the host request will need there.
//! * **Selective prefetching** (`selective_prefetch`): a counter goes up when a node is created and down when a node is
//!   removed. At −`threshold` prefetching is switched on, at +`threshold` off, and the counter starts again at 0. While
//!   it is on, a miss also loads the next `n` entries, `n` being the number of entries that are cached without a gap right
//!   before the requested one. Prefetching stays within the translation page.
//! * **A miss, step by step**:
//!     1. The coldest node gives up an entry, until the requested one fits, with a node if its page has none.
//!     2. What is to be prefetched is settled: the counter and the preceding entries count as they are now. What is cached
//!        already or unmapped is left out, and nothing further takes its place.
//!     3. The requested entry enters at the most recent end of its node, which is created, and counted, only now.
//!     4. One node gives up entries until the others fit too, or it has none left: the one that step 1 took from last, even
//!        if it is empty by now, or else the coldest. Where that is the request's own node, the requested entry stays. So in
//!        a full cache no more is prefetched than that node had, and no entry is prefetched and evicted by one load.
//!     5. The translation page is read. The others enter in ascending order while there is room, among them any that step 4
//!        has given up, each at the least recent end of its node, so that the last one is the least recent.
//! * **Clean first** (`clean_first`): the victim is the least recently used clean entry of the coldest node; if it has
//!   no clean entry, its least recently used one.
//! * **Batch update** (`batch`): when a dirty entry is evicted, all dirty entries of its node are written back with one
//!   read and one program of the translation page. The others stay in the cache, clean. When collection rewrites a
//!   translation page for entries that are not cached, the node's dirty entries are written with it.
//!
//! # Parameters
//! * `request_prefetch`, `selective_prefetch`, `clean_first`, `batch` (bool, default true): the four techniques.
//! * `threshold` (count, default 3, at least 1): limit of the counter of selective prefetching.
//! * `order` (`mean` or `mru`, default `mean`): nodes by the mean hotness of their entries, or by their last use.
//! * `entry_bytes` (bytes, default 6): a cached entry: 10 bits of offset, 4 bytes of slot, a dirty bit, rounded up.
//! * `node_bytes` (bytes, default 16): a node. Assumed; the paper does not say.
//! * `serial` (bool, default false): as for `dftl`.
//!
//! # Not modelled
//! The time of ordering nodes.
//!
//! # Errors
//! A cache that does not hold two nodes with an entry each is refused.
//!
//! # Cost
//! As for `dftl`; a miss takes O(log nodes) more, to find the coldest node. An entry takes 34 bytes of the simulator's
//! memory.
//!
//! # Source
//! Zhou, Wu, Wei, et al., "An Efficient Page-level FTL to Optimize Address Translation in Flash Memory", EuroSys 2015.
//! The paper does not say how hotness is counted; look-up numbers are ours. That the coldest node limits what is prefetched is
//! the paper's rule as two public simulators have it (FEMU with LearnedFTL, and a simulator in Python whose comments quote the authors).

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::grouped::Grouped;
use super::paging::{self, Paging};
use super::{CacheCounts, Charge, HostMemory, MappingPolicy, RecordView, Setup, Table, Why};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub request_prefetch: bool,
    pub selective_prefetch: bool,
    pub clean_first: bool,
    pub batch: bool,
    pub threshold: i32,
    pub order: NodeOrder,
    pub entry_bytes: u32,
    pub node_bytes: u32,
    pub serial: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeOrder {
    Mean,
    Mru,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            request_prefetch: true,
            selective_prefetch: true,
            clean_first: true,
            batch: true,
            threshold: 3,
            order: NodeOrder::Mean,
            entry_bytes: 6,
            node_bytes: 16,
            serial: false,
        }
    }
}

pub fn new(mut params: Params, setup: &mut Setup) -> Result<Box<dyn MappingPolicy>> {
    params.entry_bytes = params.entry_bytes.saturating_add(setup.beside_slot);
    if params.threshold < 1 {
        return Err(Error::input(format!(
            "mapping policy `tpftl`: threshold = {}: expected at least 1",
            params.threshold
        )));
    }
    // Two entries in nodes of their own must fit, so that a miss finds room without giving up what it has just loaded.
    setup.entries("tpftl", params.entry_bytes.saturating_add(params.node_bytes))?;
    let paging = setup.paging();
    Ok(Box::new(Tpftl {
        paging,
        cache: Grouped::new(params, paging, setup.cache_bytes, setup.checked),
        counts: CacheCounts::default(),
    }))
}

struct Tpftl {
    paging: Paging,
    cache: Grouped,
    counts: CacheCounts,
}

impl MappingPolicy for Tpftl {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let figures = self.cache.counted();
        vec![
            ("evictions", figures.evictions as f64),
            ("dirty_evictions", figures.dirty_evictions as f64),
            ("batched_entries", figures.batched as f64),
            ("prefetched_entries", figures.prefetched as f64),
            ("prefetched_used", figures.prefetched_used as f64),
            ("selective_prefetch_share", self.cache.selective_share()),
            ("nodes", figures.nodes as f64),
        ]
    }

    fn tables(&self) -> Vec<Table> {
        self.paging.tables()
    }

    fn look_up(&mut self, _: u8, first: u32, count: u32, _: Why, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        for key in first..first + count {
            self.counts.lookups += 1;
            self.cache.tick();
            match self.cache.find(key) {
                Some(id) => {
                    self.counts.hits += 1;
                    self.cache.hit(key, id);
                }
                None => {
                    self.cache.miss(key, record, charges);
                    paging::load(self.paging.page_of(key), charges);
                }
            }
        }
    }

    fn prefetch(&self, key: u32) {
        self.cache.prefetch(key);
    }

    fn updated(&mut self, _: u8, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        self.cache.updated(key, record, charges);
    }

    fn moved(&mut self, _: u8, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        self.cache.moved(keys, record, charges);
    }

    fn cached(&self, table: u8, key: u32) -> Option<(u32, bool)> {
        self.cache.cached(key).filter(|_| table == 0)
    }

    fn is_cached(&self, key: u32) -> bool {
        self.cache.find(key).is_some()
    }

    fn counts(&self) -> CacheCounts {
        self.counts
    }

    fn reset_counts(&mut self) {
        self.counts = CacheCounts::default();
        self.cache.reset_counts();
    }

    fn forget(&mut self) {
        self.cache.clear();
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![("map_cache", self.cache.used), ("gtd", self.paging.directory_bytes())]
    }

    fn host_memory(&self) -> HostMemory {
        self.cache.host_memory()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Harness;

    /// Translation pages of 16 entries; room for so many nodes and entries.
    fn harness(params: &str, nodes: u64, entries: u64) -> Harness {
        Harness::new(&format!("tpftl:{params}"), 256, 64, 16 * nodes + 6 * entries)
    }

    #[test]
    fn a_request_that_misses_costs_one_load_a_translation_page() {
        let mut h = harness("", 4, 40);
        // 12 entries of page 1.
        assert_eq!(h.read_run(16, 12), "load 1");
        assert_eq!(h.hits(), (11, 12));
        assert_eq!(h.read_run(28, 8), "load 1 load 2");
        let mut without = harness("request_prefetch=false,selective_prefetch=false", 4, 40);
        assert_eq!(without.read_run(16, 3), "load 1 load 1 load 1");
    }

    #[test]
    fn a_stream_switches_prefetching_on_and_hardly_misses() {
        let mut h = harness("", 8, 20);
        // Eight nodes of an entry each, which the stream replaces by one node of many: the counter falls.
        (0..8).for_each(|page| drop(h.read(16 * page)));
        (128..160).for_each(|key| drop(h.read(key)));
        let (hits, lookups) = h.hits();
        (160..256).for_each(|key| drop(h.read(key)));
        let (more, all) = h.hits();
        // With 0, 1, 3 and 7 entries before the missed one, as many behind it are loaded: at most 5 misses in a page of 16.
        let misses = (all - lookups) - (more - hits);
        assert!(misses <= 5 * 6, "{misses} misses in 6 pages");
        assert!(h.figure("prefetched_used") >= 60.0);
        let mut without = harness("selective_prefetch=false", 8, 20);
        (0..256).for_each(|key| drop(without.read(key)));
        assert_eq!(without.hits().0, 0);
    }

    #[test]
    fn clean_entries_go_first_and_dirty_ones_together() {
        let mut h = harness("selective_prefetch=false", 2, 4);
        h.write(0);
        h.read(1);
        h.write(2);
        // Page 0 holds 0 (dirty), 1 (clean), 2 (dirty); page 1 gets an entry: full.
        h.read(16);
        assert_eq!(h.figure("nodes"), 2.0);
        // Page 0 is the colder node: its clean entry goes for nothing, then both dirty ones cost one write-back.
        assert_eq!(h.read(17), "load 1");
        assert!(h.policy.cached(0, 1).is_none() && h.policy.cached(0, 0).is_some());
        assert_eq!(h.read(18), "evict 0 load 1");
        assert_eq!(h.policy.cached(0, 2).map(|(_, dirty)| dirty), Some(false));
        assert_eq!(h.read(19), "load 1");
        assert_eq!((h.figure("dirty_evictions"), h.figure("batched_entries")), (1.0, 1.0));
    }

    /// The only node holds six entries, and gives them up for six others of its own translation page.
    #[test]
    fn a_load_gives_up_nothing_that_it_brought() {
        let mut h = harness("selective_prefetch=false", 2, 4);
        assert_eq!(h.read_run(0, 6), "load 0");
        assert_eq!(h.read_run(8, 6), "load 0");
        assert!((8..14).all(|key| h.policy.cached(0, key).is_some()));
    }

    /// Page 0, the coldest, has one entry, which makes room for entry 32; page 1 gives up nothing for what would come with it.
    #[test]
    fn a_load_gives_up_entries_of_one_page() {
        let mut h = harness("selective_prefetch=false", 2, 4);
        h.read(0);
        (16..19).for_each(|key| drop(h.read(key)));
        // Nothing comes with 32; page 1 is the coldest then, and entry 33 comes with 34.
        assert_eq!(h.read_run(32, 3), "load 2 load 2");
        assert!(h.policy.cached(0, 0).is_none() && h.policy.cached(0, 18).is_some());
    }

    #[test]
    fn without_batching_each_dirty_entry_costs_its_own() {
        let mut h = harness("selective_prefetch=false,batch=false", 2, 3);
        h.write(0);
        h.write(1);
        h.read(16);
        assert_eq!(
            (h.read(17), h.read(18)),
            ("evict 0 load 1".into(), "evict 0 load 1".into())
        );
    }

    #[test]
    fn a_rewrite_by_collection_takes_the_dirty_entries_with_it() {
        let mut h = harness("", 2, 6);
        h.write(0);
        assert_eq!(h.moved(&[0, 3]), "gc 0");
        assert_eq!(h.policy.cached(0, 0).map(|(_, dirty)| dirty), Some(false));
    }

    #[test]
    fn the_coldest_node_has_the_lowest_mean() {
        let mut h = harness("selective_prefetch=false,request_prefetch=false", 2, 4);
        // Look-ups 1 to 4: page 0 holds stamps 1 and 4 (mean 2), page 1 holds 2 and 3 (mean 2): a tie, the lower page goes.
        h.read(0);
        h.read(16);
        h.read(17);
        h.read(1);
        h.read(0);
        // Now 0 has stamp 5: means 4 and 2. Page 1 gives up its least recent entry.
        h.read(2);
        assert!(h.policy.cached(0, 16).is_none() && h.policy.cached(0, 0).is_some());
    }
}
