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
    /// A second table, as wide as the first, in which every miss and every write-back needs a page too; on drives without
    /// values.
    pub second_table: bool,
    /// Entries of the tables of values and of rows; 0: they are not paged.
    pub behind: [u32; 2],
    /// Policy-owned pages: written with every third update, probed with every fifth look-up, dropped now and then.
    pub own_pages: u32,
    /// They fill units of their own.
    pub own_units: bool,
    /// A fault: it does not hear that entries of this table have changed.
    pub deaf_to: Option<u8>,
    order: IndexList,
    /// By number of the entry: what it says, and whether it is dirty.
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
            behind: [0; 2],
            own_pages: 0,
            own_units: false,
            deaf_to: None,
            order: IndexList::new(capacity),
            cached: FxHashMap::default(),
            alive: FxHashSet::default(),
            counts: CacheCounts::default(),
            updates: 0,
        }
    }

    fn per_page(&self) -> u32 {
        self.unit_bytes / self.entry_bytes
    }

    /// The entries of all tables are numbered one after the other.
    fn number(&self, table: u8, key: u32) -> u32 {
        match table {
            0 => key,
            1 => self.units + key,
            _ => self.units + self.behind[0] + key,
        }
    }

    /// Table and page of an entry.
    fn page_of(&self, number: u32) -> (u8, u32) {
        let (table, key) = match number.checked_sub(self.units) {
            None => (0, number),
            Some(value) if value < self.behind[0] => (1, value),
            Some(value) => (2, value - self.behind[0]),
        };
        (table, key / self.per_page())
    }

    fn insert(&mut self, number: u32, entry: u32, dirty: bool, charges: &mut Vec<Charge>) {
        self.order.touch(number);
        let was_dirty = self.cached.get(&number).is_some_and(|&(_, dirty)| dirty);
        self.cached.insert(number, (entry, dirty || was_dirty));
        while self.order.len() > self.capacity {
            let Some(victim) = self.order.pop_back() else { return };
            if let Some((_, true)) = self.cached.remove(&victim) {
                self.write_back(self.page_of(victim), MapCause::EvictRmw, charges);
            }
        }
    }

    fn write_back(&self, (table, tvpn): (u8, u32), cause: MapCause, charges: &mut Vec<Charge>) {
        for table in table..=table + u8::from(self.second_table) {
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
        let further = if self.second_table {
            [self.units, 0]
        } else {
            self.behind
        };
        let keys = std::iter::once(self.units).chain(further.into_iter().take_while(|&keys| keys > 0));
        let entry_bytes = self.entry_bytes;
        keys.map(|keys| Table { keys, entry_bytes }).collect()
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
            let number = self.number(table, key);
            if self.cached.contains_key(&number) {
                self.counts.hits += 1;
                self.order.touch(number);
            } else {
                let (tvpn, cause) = (key / self.per_page(), MapCause::MissLoad);
                for table in table..=table + u8::from(self.second_table) {
                    charges.push(Charge::Load { table, tvpn, cause });
                }
                self.insert(number, record.entry(key), false, charges);
            }
            if self.own_pages > 0 && self.counts.lookups.is_multiple_of(5) {
                let page = key % self.own_pages;
                charges.push(Charge::Probe { page });
            }
        }
    }

    fn updated(&mut self, table: u8, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        if self.deaf_to == Some(table) {
            return;
        }
        self.insert(self.number(table, key), record.entry(key), true, charges);
        self.tend_own_pages(charges);
    }

    fn moved(&mut self, table: u8, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        assert!(
            keys.is_sorted_by(|a, b| a < b),
            "moved keys are not in ascending order: {keys:?}"
        );
        if self.deaf_to == Some(table) {
            return;
        }
        let per_page = self.per_page();
        for of_page in keys.chunk_by(|&a, &b| a / per_page == b / per_page) {
            let mut missing = false;
            for &key in of_page {
                match self.cached.get_mut(&self.number(table, key)) {
                    Some(cached) => *cached = (record.entry(key), true),
                    None => missing = true,
                }
            }
            if missing {
                self.write_back((table, of_page[0] / per_page), MapCause::GcUpdate, charges);
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
        let paged = table == 0 || self.behind[usize::from(table) - 1] > 0;
        paged
            .then(|| self.cached.get(&self.number(table, key)).copied())
            .flatten()
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
