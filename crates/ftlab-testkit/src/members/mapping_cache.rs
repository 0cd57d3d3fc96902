//! A mapping cache of a few entries: least recently used, dirty entries written back by reading and programming their page.

use ftlab_core::{IndexList, Slot};
use ftlab_ftl::Frontier;
use ftlab_ftl::mapping::{CacheCounts, Charge, MapCause, MappingPolicy, RecordView, Table, Why};
use ftlab_ftl::owner::Owner;
use rustc_hash::{FxHashMap, FxHashSet};

pub struct MappingCache {
    units: u32,
    unit_bytes: u32,
    capacity: u32,
    pub entry_bytes: u32,
    /// A second table, as wide as the first, in which every miss and every write-back needs a page too.
    pub second_table: bool,
    /// Policy-owned pages: written with every third update, probed with every fifth look-up, dropped now and then.
    pub own_pages: u32,
    /// They fill units of their own.
    pub own_units: bool,
    order: IndexList,
    /// Entry and whether it is dirty.
    cached: FxHashMap<u32, (u32, bool)>,
    alive: FxHashSet<u32>,
    counts: CacheCounts,
    updates: u32,
}

impl MappingCache {
    pub fn new(units: u32, unit_bytes: u32, capacity: u32) -> Self {
        MappingCache {
            units,
            unit_bytes,
            capacity,
            entry_bytes: 4,
            second_table: false,
            own_pages: 0,
            own_units: false,
            order: IndexList::new(capacity),
            cached: FxHashMap::default(),
            alive: FxHashSet::default(),
            counts: CacheCounts::default(),
            updates: 0,
        }
    }

    fn page_of(&self, key: u32) -> u32 {
        key / (self.unit_bytes / self.entry_bytes)
    }

    fn insert(&mut self, key: u32, entry: u32, dirty: bool, charges: &mut Vec<Charge>) {
        self.order.touch(key);
        let was_dirty = self.cached.get(&key).is_some_and(|&(_, dirty)| dirty);
        self.cached.insert(key, (entry, dirty || was_dirty));
        while self.order.len() > self.capacity {
            let Some(victim) = self.order.pop_back() else { return };
            if let Some((_, true)) = self.cached.remove(&victim) {
                self.write_back(self.page_of(victim), MapCause::EvictRmw, charges);
            }
        }
    }

    fn write_back(&self, tvpn: u32, cause: MapCause, charges: &mut Vec<Charge>) {
        for table in 0..=u8::from(self.second_table) {
            charges.push(Charge::Load { table, tvpn, cause });
            charges.push(Charge::Store { table, tvpn, cause });
        }
    }

    fn tend_own_pages(&mut self, charges: &mut Vec<Charge>) {
        self.updates += 1;
        if self.own_pages == 0 || !self.updates.is_multiple_of(3) {
            return;
        }
        let page = self.updates % self.own_pages;
        if self.updates.is_multiple_of(7) {
            if self.alive.remove(&page) {
                charges.push(Charge::Drop { page });
            }
        } else {
            self.alive.insert(page);
            charges.push(Charge::Write { page });
        }
    }
}

impl MappingPolicy for MappingCache {
    fn tables(&self) -> Vec<Table> {
        let table = Table {
            keys: self.units,
            entry_bytes: self.entry_bytes,
        };
        vec![table; 1 + usize::from(self.second_table)]
    }

    fn look_up(&mut self, _: u8, first: u32, count: u32, _: Why, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        // Numbers of values may go beyond the units, as those of dead ones rest; here such values cost nothing.
        for key in first..(first + count).min(self.units) {
            self.counts.lookups += 1;
            if self.cached.contains_key(&key) {
                self.counts.hits += 1;
                self.order.touch(key);
            } else {
                let (tvpn, cause) = (self.page_of(key), MapCause::MissLoad);
                for table in 0..=u8::from(self.second_table) {
                    charges.push(Charge::Load { table, tvpn, cause });
                }
                self.insert(key, record.entries[key as usize], false, charges);
            }
            if self.own_pages > 0 && self.counts.lookups.is_multiple_of(5) {
                let page = key % self.own_pages;
                charges.push(Charge::Probe { page });
            }
        }
    }

    fn updated(&mut self, _: u8, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        if key >= self.units {
            return;
        }
        self.insert(key, record.entries[key as usize], true, charges);
        self.tend_own_pages(charges);
    }

    fn moved(&mut self, _: u8, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        assert!(
            keys.is_sorted_by(|a, b| a < b),
            "moved keys are not in ascending order: {keys:?}"
        );
        let per_page = self.unit_bytes / self.entry_bytes;
        let known = keys.partition_point(|&key| key < self.units);
        for of_page in keys[..known].chunk_by(|&a, &b| a / per_page == b / per_page) {
            let mut missing = false;
            for key in of_page {
                match self.cached.get_mut(key) {
                    Some(cached) => *cached = (record.entries[*key as usize], true),
                    None => missing = true,
                }
            }
            if missing {
                self.write_back(self.page_of(of_page[0]), MapCause::GcUpdate, charges);
            }
        }
    }

    fn frontiers(&self) -> Frontier {
        1 + Frontier::from(self.own_units)
    }

    fn frontier_of(&self, page: Owner) -> Frontier {
        Frontier::from(self.own_units && matches!(page, Owner::Policy(_)))
    }

    fn own_pages(&self) -> u32 {
        self.own_pages
    }

    fn is_live(&self, page: u32) -> bool {
        self.alive.contains(&page)
    }

    fn page_moved(&mut self, owner: Owner, _: Slot) {
        if let Owner::Policy(page) = owner {
            assert!(self.alive.contains(&page), "dropped page {page} was moved");
        }
    }

    fn cached(&self, table: u8, key: u32) -> Option<(u32, bool)> {
        (table == 0).then(|| self.cached.get(&key).copied()).flatten()
    }

    fn is_cached(&self, key: u32) -> bool {
        self.cached.contains_key(&key)
    }

    fn counts(&self) -> CacheCounts {
        self.counts
    }

    fn reset_counts(&mut self) {
        self.counts = CacheCounts::default();
    }

    fn forget(&mut self) {
        self.cached.clear();
        self.order.clear();
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![("cache", u64::from(self.capacity * self.entry_bytes))]
    }
}
