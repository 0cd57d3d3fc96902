//! Any mapping policy, watched: no change of an entry may get lost on its way to flash.

use std::collections::BTreeSet;

use ftlab_core::Slot;
use ftlab_ftl::Frontier;
use ftlab_ftl::mapping::{CacheCounts, Charge, MappingPolicy, RecordView, Table, Why};
use ftlab_ftl::owner::Owner;

/// Passes everything on, and after each call holds every changed entry against what became of it: it is dirty in the cache, or
/// its translation page has been programmed since.
pub struct Watched {
    inner: Box<dyn MappingPolicy>,
    /// Entries of a translation page, by table.
    per_page: Vec<u32>,
    /// Table and key of the entries whose change is not in flash.
    pending: BTreeSet<(u8, u32)>,
}

impl Watched {
    /// # Panics
    /// Its calls panic when a change is lost.
    pub fn new(inner: Box<dyn MappingPolicy>, unit_bytes: u32) -> Self {
        let tables = inner.tables();
        Watched {
            inner,
            per_page: tables.iter().map(|table| unit_bytes / table.entry_bytes).collect(),
            pending: BTreeSet::new(),
        }
    }

    fn check(&mut self, charges: &[Charge]) {
        let stored = |of: u8, key: u32| {
            let page = key / self.per_page[usize::from(of)];
            let is_it = |c: &Charge| matches!(c, Charge::Store { table, tvpn, .. } if (*table, *tvpn) == (of, page));
            charges.iter().any(is_it)
        };
        let inner = &self.inner;
        self.pending.retain(|&(table, key)| match inner.cached(table, key) {
            Some((_, true)) => true,
            state => {
                assert!(
                    stored(table, key),
                    "the change of entry {key} of table {table} is lost: {state:?} in the cache, and its page was not programmed: {charges:?}"
                );
                false
            }
        });
    }
}

impl MappingPolicy for Watched {
    fn report(&self) -> Vec<(&'static str, f64)> {
        self.inner.report()
    }

    fn tables(&self) -> Vec<Table> {
        self.inner.tables()
    }

    fn look_up(
        &mut self,
        table: u8,
        first: u32,
        count: u32,
        why: Why,
        record: RecordView<'_>,
        charges: &mut Vec<Charge>,
    ) {
        self.inner.look_up(table, first, count, why, record, charges);
        self.check(charges);
    }

    fn updated(&mut self, table: u8, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        self.pending.insert((table, key));
        self.inner.updated(table, key, record, charges);
        self.check(charges);
    }

    fn moved(&mut self, table: u8, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        self.pending.extend(keys.iter().map(|&key| (table, key)));
        self.inner.moved(table, keys, record, charges);
        self.check(charges);
    }

    fn frontiers(&self) -> Frontier {
        self.inner.frontiers()
    }

    fn frontier_of(&self, page: Owner) -> Frontier {
        self.inner.frontier_of(page)
    }

    fn own_pages(&self) -> u32 {
        self.inner.own_pages()
    }

    fn is_live(&self, page: u32) -> bool {
        self.inner.is_live(page)
    }

    fn page_moved(&mut self, owner: Owner, slot: Slot) {
        self.inner.page_moved(owner, slot);
    }

    fn cached(&self, table: u8, key: u32) -> Option<(u32, bool)> {
        self.inner.cached(table, key)
    }

    fn is_cached(&self, key: u32) -> bool {
        self.inner.is_cached(key)
    }

    fn counts(&self) -> CacheCounts {
        self.inner.counts()
    }

    fn loads_take_time(&mut self) {
        self.inner.loads_take_time();
    }

    fn shared(&mut self, charge: Charge) {
        self.inner.shared(charge);
    }

    fn reset_counts(&mut self) {
        self.inner.reset_counts();
    }

    fn forget(&mut self) {
        self.pending.clear();
        self.inner.forget();
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        self.inner.memory()
    }
}
