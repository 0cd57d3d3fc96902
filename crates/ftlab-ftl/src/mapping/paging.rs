//! What mapping caches share: which translation page holds a key, and the charges of reading and rewriting pages.

use std::ops::Range;

use ftlab_core::geometry::Divisor;

use super::{Charge, MapCause, Table};

/// Bytes of a slot in a translation page.
pub const SLOT_BYTES: u32 = 4;

/// A demand-paged table; table 0 with [`SLOT_BYTES`] an entry unless a policy stores more beside the slot.
#[derive(Clone, Copy, Debug)]
pub struct Paging {
    pub keys: u32,
    entry_bytes: u32,
    /// Entries of a translation page.
    pub per_page: u32,
    by_page: Divisor,
}

impl Paging {
    pub fn new(keys: u32, unit_bytes: u32, entry_bytes: u32) -> Self {
        let per_page = (unit_bytes / entry_bytes).max(1);
        Paging {
            keys,
            entry_bytes,
            per_page,
            by_page: Divisor::new(per_page),
        }
    }

    /// What [`MappingPolicy::tables`](super::MappingPolicy::tables) answers.
    pub fn tables(&self) -> Vec<Table> {
        vec![Table {
            keys: self.keys,
            entry_bytes: self.entry_bytes,
        }]
    }

    /// Number of the translation page (TVPN) that holds `key`.
    #[inline]
    pub fn page_of(&self, key: u32) -> u32 {
        self.by_page.quotient(key)
    }

    /// The keys of a translation page; of the last one, those that exist.
    #[inline]
    pub fn keys_of(&self, tvpn: u32) -> Range<u32> {
        let first = tvpn * self.per_page;
        first..first.saturating_add(self.per_page).min(self.keys)
    }

    /// Where in its translation page `key` stands.
    #[inline]
    pub fn place_of(&self, key: u32) -> usize {
        self.by_page.split(key).1 as usize
    }

    pub fn pages(&self) -> u32 {
        self.keys.div_ceil(self.per_page)
    }

    /// Bytes of the global translation directory (GTD): 4 for each translation page.
    pub fn directory_bytes(&self) -> u64 {
        4 * u64::from(self.pages())
    }
}

/// What cached translation pages hold, as far as the policy was told: only of drives that are checked, as the record has it all.
#[derive(Clone, Debug)]
pub struct Copies(Option<Vec<Vec<u32>>>);

impl Copies {
    pub fn new(checked: bool, paging: &Paging) -> Self {
        Copies(checked.then(|| vec![Vec::new(); paging.pages() as usize]))
    }

    /// The page is cached from now on.
    #[inline]
    pub fn load(&mut self, tvpn: u32, entries: &[u32]) {
        if let Some(pages) = &mut self.0 {
            pages[tvpn as usize].clear();
            pages[tvpn as usize].extend_from_slice(entries);
        }
    }

    #[inline]
    pub fn change(&mut self, tvpn: u32, place: usize, entry: u32) {
        if let Some(pages) = &mut self.0 {
            pages[tvpn as usize][place] = entry;
        }
    }

    pub fn entry(&self, tvpn: u32, place: usize) -> Option<u32> {
        Some(self.0.as_ref()?[tvpn as usize][place])
    }
}

/// The same for entries that are cached one by one, by key.
#[derive(Clone, Debug)]
pub struct Told(Option<Vec<u32>>);

impl Told {
    pub fn new(checked: bool, keys: u32) -> Self {
        Told(checked.then(|| vec![u32::MAX; keys as usize]))
    }

    #[inline]
    pub fn change(&mut self, key: u32, entry: u32) {
        if let Some(entries) = &mut self.0 {
            entries[key as usize] = entry;
        }
    }

    pub fn entry(&self, key: u32) -> Option<u32> {
        Some(self.0.as_ref()?[key as usize])
    }
}

/// The read that brings a missing entry of table 0; the request waits for it.
pub fn load(tvpn: u32, charges: &mut Vec<Charge>) {
    load_of(0, tvpn, charges);
}

/// The same of any table.
pub fn load_of(table: u8, tvpn: u32, charges: &mut Vec<Charge>) {
    let cause = MapCause::MissLoad;
    charges.push(Charge::Load { table, tvpn, cause });
}

/// Read-modify-write of a translation page of table 0.
pub fn rewrite(tvpn: u32, cause: MapCause, charges: &mut Vec<Charge>) {
    rewrite_of(0, tvpn, cause, charges);
}

/// The same of any table.
pub fn rewrite_of(table: u8, tvpn: u32, cause: MapCause, charges: &mut Vec<Charge>) {
    charges.push(Charge::Load { table, tvpn, cause });
    charges.push(Charge::Store { table, tvpn, cause });
}

/// Program of a translation page of table 0 whose content is all in memory.
pub fn store(tvpn: u32, cause: MapCause, charges: &mut Vec<Charge>) {
    charges.push(Charge::Store { table: 0, tvpn, cause });
}

/// Charges of a collection that has moved the data of `keys` of a table, in ascending order: `cached` takes a change into the
/// cache and says whether it could; the rest costs one read-modify-write per translation page.
pub fn moved(table: u8, paging: &Paging, keys: &[u32], charges: &mut Vec<Charge>, mut cached: impl FnMut(u32) -> bool) {
    for of_page in keys.chunk_by(|&a, &b| paging.page_of(a) == paging.page_of(b)) {
        // Every key is asked, or cached entries of the page would keep the old place.
        let missing = of_page.iter().filter(|&&key| !cached(key)).count();
        if missing > 0 {
            rewrite_of(table, paging.page_of(of_page[0]), MapCause::GcUpdate, charges);
        }
    }
}
