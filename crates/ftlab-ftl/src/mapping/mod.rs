//! Mapping: what look-ups and updates of the map cost in translation pages.
//!
//! The record (LPN → slot) is the mechanism's and always right. A mapping policy owns what of it is cached in the
//! controller's memory and what is dirty there, and answers each access with *charges*: the translation pages to read and
//! to program. The mechanism turns charges into flash operations, keeps the global translation directory (where each
//! translation page lies) and lets host requests wait for their loads.

use std::ops::Range;
use std::sync::Arc;

use ftlab_core::{Catalogue, Error, Layout, Lpn, PolicySpec, Result, Slot, member};

use crate::frontier::Frontier;
use crate::indirection::{Indirection, ROW_BYTES, VALUE_BYTES};
use crate::owner::Owner;
use crate::record::Entry;

pub mod arena;
pub mod cdftl;
pub mod coldest;
pub mod cpftl;
pub mod dftl;
pub mod ghost;
pub mod grouped;
pub mod leaftl;
pub mod lingering;
pub mod list;
pub mod lru;
pub mod page;
pub mod paging;
pub mod places;
pub mod recency;
pub mod replacement;
pub mod rows;
pub mod sftl;
pub mod slots;
pub mod table;
pub mod tables;
mod tail;
#[cfg(test)]
mod testing;
pub mod tpftl;

/// A demand-paged table: `keys` entries of `entry_bytes`, as many to a translation page as fit a mapping unit.
///
/// Table 0 is the map from LPNs, table 1 that of values, table 2 that of rows of chunks. A wider entry (a policy that stores a
/// time with it) means fewer entries a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    pub keys: u32,
    pub entry_bytes: u32,
}

/// Why a table is accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    HostRead,
    HostWrite,
    Trim,
}

/// Why a translation page is read or programmed (the causes of `trans_reads` and `trans_programs`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum MapCause {
    /// Load of a missing entry.
    MissLoad,
    /// Read-modify-write of a translation page for evicted dirty entries.
    EvictRmw,
    /// Update for data that garbage collection moved.
    GcUpdate,
    /// A page that the policy keeps for itself.
    Policy,
}

/// One flash access that a mapping policy asks for. Charges of one answer are issued in order and run side by side, except
/// that a store waits for the load of the same page and that [`Charge::Then`] makes what follows wait for what precedes.
/// The request that caused the answer waits for every [`Charge::Load`] with `MissLoad`, every probe and every spare area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charge {
    /// Read translation page `tvpn`; free if it has never been written.
    Load { table: u8, tvpn: u32, cause: MapCause },
    /// Program translation page `tvpn` at a new place.
    Store { table: u8, tvpn: u32, cause: MapCause },
    /// Read a page that the policy owns; the request waits for it. Like a load, it is not read twice while it is on its way.
    Probe { page: u32 },
    /// Program a page that the policy owns (owner `Policy(page)`), replacing its old copy. Not done if the collection that
    /// makes room for it has moved data and the policy has given the page up for it.
    Write { page: u32 },
    /// The policy gives up its page.
    Drop { page: u32 },
    /// Read the data page at `near`, whose spare area says where `lpn` lies; the request waits for it. If nothing live is there
    /// (it may not be programmed), the page where the unit lies is read in its stead. For policies that know places only
    /// nearly. Counted as `spare_reads`, not among translation pages.
    ReadSpare { near: Slot, lpn: Lpn },
    /// Everything after this waits for everything before it: an eviction that must be in flash before the load.
    Then,
}

/// The record as a policy may read it, of the table that it is asked about.
#[derive(Clone, Copy)]
pub struct RecordView<'a> {
    /// Table 0: the raw entry of each LPN (see [`Entry`]). Of other tables, nothing.
    pub entries: &'a [u32],
    /// Of tables 1 and 2: the number of the table, and what it says.
    behind: Option<(u8, &'a Indirection)>,
    /// The key after the last one of the host request that this access belongs to, for prefetching within a request. The
    /// key after the accessed ones where there is no request (an eviction from the write buffer, a collection).
    pub request_end: u32,
}

impl<'a> RecordView<'a> {
    /// Of table 0.
    pub fn of_map(entries: &'a [u32], request_end: u32) -> Self {
        RecordView {
            entries,
            behind: None,
            request_end,
        }
    }

    /// Of table 1 or 2.
    pub fn of_values(table: u8, indirection: &'a Indirection, request_end: u32) -> Self {
        RecordView {
            entries: &[],
            behind: Some((table, indirection)),
            request_end,
        }
    }

    /// The entry of `key` in one word: of table 0 the raw one, of the others see [`Indirection::entry`].
    /// [`Entry::UNMAPPED`] for nothing.
    #[inline]
    pub fn entry(&self, key: u32) -> u32 {
        match self.behind {
            None => self.entries[key as usize],
            Some((table, indirection)) => indirection.entry(table, key).unwrap_or(Entry::UNMAPPED.0),
        }
    }

    /// The entries of a run of keys.
    pub fn page(&self, keys: Range<u32>) -> &'a [u32] {
        &self.entries[keys.start as usize..keys.end as usize]
    }

    /// The same for a single access.
    pub fn alone(self, key: u32) -> Self {
        RecordView {
            request_end: key + 1,
            ..self
        }
    }
}

/// Counters of a mapping cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    pub lookups: u64,
    /// Look-ups whose entry was in memory.
    pub hits: u64,
    /// Look-ups by writes whose entry was not, and for which nothing was read all the same: the entry is written unseen.
    pub deferred: u64,
}

/// What a mapping cache costs the simulator, beside what the model says that it costs the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostMemory {
    /// Entries that can be looked up without reading flash.
    pub entries: u64,
    /// Bytes that are allocated to keep track of them.
    pub bytes: u64,
}

/// Bytes allocated by a vector.
pub fn allocated<T>(vector: &Vec<T>) -> u64 {
    (vector.capacity() * size_of::<T>()) as u64
}

pub trait MappingPolicy: Send {
    /// Figures of the policy's own for the summary: counts since [`MappingPolicy::reset_counts`], states as they are now.
    fn report(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Everything is in memory: nothing need be asked or told.
    fn is_page(&self) -> bool {
        false
    }

    /// The tables that lie in flash; at most 3. Table 1, if there is one, is keyed by virtual page number, table 2 by number of
    /// the row of chunks. A table that is not among them is in memory: the policy is neither asked nor told about it.
    fn tables(&self) -> Vec<Table>;

    /// The request needs the entries of `count` keys from `first` on. On a write or trim they will be changed.
    fn look_up(
        &mut self,
        table: u8,
        first: u32,
        count: u32,
        why: Why,
        record: RecordView<'_>,
        charges: &mut Vec<Charge>,
    );

    /// A look-up of `key` will come soon: brings what it will touch into the processor's cache. No effect on the model.
    fn prefetch(&self, _key: u32) {}

    /// From now on loads take time, and one that is under way when another wants the same page is shared.
    fn loads_take_time(&mut self) {}

    /// A load or a probe of the last answer is under way already, so that nothing is read for it.
    fn shared(&mut self, _charge: Charge) {}

    /// The record's entry of `key` has changed (after `look_up` with `HostWrite` or `Trim`).
    fn updated(&mut self, table: u8, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>);

    /// Garbage collection has moved the data of `keys`; called once per victim, in ascending order of keys.
    fn moved(&mut self, table: u8, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>);

    /// Frontiers that the policy's pages fill, at least one: pages of different frontiers never share a reclaim unit while there
    /// is room.
    fn frontiers(&self) -> Frontier {
        1
    }

    /// Which of them a translation page or a page of the policy's own belongs to, when it is programmed and when it is moved.
    fn frontier_of(&self, _page: Owner) -> Frontier {
        0
    }

    /// The most pages of its own that the policy keeps in flash at once; the drive must have room for them.
    fn own_pages(&self) -> u32 {
        0
    }

    /// Whether the policy still needs the page with this number that it wrote.
    fn is_live(&self, _page: u32) -> bool {
        false
    }

    /// A translation page or policy page has been moved by garbage collection.
    fn page_moved(&mut self, _owner: Owner, _slot: Slot) {}

    /// The cached entry of `key` as (what [`RecordView::entry`] said, dirty), for the test that holds it against the record. The record
    /// knows what is cached, so policies may keep copies, and answer, only if [`Setup::checked`].
    fn cached(&self, table: u8, key: u32) -> Option<(u32, bool)>;

    /// Whether the entry of `key` of table 0 can be had without reading flash.
    fn is_cached(&self, key: u32) -> bool;

    fn counts(&self) -> CacheCounts;

    fn reset_counts(&mut self);

    /// Everything in memory is lost (a power cut); the record has been rebuilt.
    fn forget(&mut self);

    /// Bytes of the controller's memory in use, by structure.
    fn memory(&self) -> Vec<(&'static str, u64)>;

    /// The simulator's memory for the same; nothing where nothing is cached.
    fn host_memory(&self) -> HostMemory {
        HostMemory::default()
    }
}

/// What a mapping policy is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub logical_units: u32,
    /// Values and rows of chunks that there may be; 0 on a drive that has none.
    pub values: u32,
    pub rows: u32,
    pub unit_bytes: u32,
    /// Bytes of the controller's memory for everything that a policy keeps of the map, the global translation directory
    /// (GTD), which all members need alike, excepted.
    pub cache_bytes: u64,
    pub layout: Option<Arc<Layout>>,
    /// What is cached will be held against the record.
    pub checked: bool,
    /// Bytes of each entry, cached or in a translation page, that belong to the placement policy.
    pub beside_slot: u32,
}

/// Entries of a cache that the simulator can number.
const MOST_ENTRIES: u64 = 1 << 28;

impl Setup {
    /// How many entries of `entry_bytes` the budget holds; at least two, at most all, and no more than the simulator can number.
    pub fn entries(&self, policy: &str, entry_bytes: u32) -> Result<u32> {
        self.entries_of(policy, entry_bytes, self.logical_units)
    }

    /// The same, where `all` entries are all.
    pub fn entries_of(&self, policy: &str, entry_bytes: u32, all: u32) -> Result<u32> {
        let entries = self.cache_bytes.checked_div(u64::from(entry_bytes)).unwrap_or(0);
        if entries < 2 {
            return Err(Error::input(format!(
                "ftl.map_cache = {} bytes holds {entries} entries of {entry_bytes} bytes: mapping policy `{policy}` expects \
                 room for at least 2",
                self.cache_bytes
            )));
        }
        let entries = entries.min(u64::from(all)).max(2);
        if entries > MOST_ENTRIES {
            return Err(Error::input(format!(
                "ftl.map_cache = {} bytes holds {entries} entries: mapping policy `{policy}` expects at most {MOST_ENTRIES}",
                self.cache_bytes
            )));
        }
        Ok(entries as u32)
    }

    /// Table 0, and those of values and of rows if the drive has such.
    pub fn tables(&self) -> tables::Tables {
        let behind = [(self.values, VALUE_BYTES), (self.rows, ROW_BYTES)];
        let behind = behind.into_iter().take_while(|&(keys, _)| keys > 0);
        let paging = |(keys, bytes)| paging::Paging::new(keys, self.unit_bytes, bytes);
        tables::Tables::new(std::iter::once(self.paging()).chain(behind.map(paging)).collect())
    }

    /// Table 0 with a slot an entry, and what the placement policy keeps beside it.
    pub fn paging(&self) -> paging::Paging {
        paging::Paging::new(
            self.logical_units,
            self.unit_bytes,
            paging::SLOT_BYTES + self.beside_slot,
        )
    }
}

/// Demand-paged tables of a policy of the catalogue on a drive that has values, and rows of chunks.
pub fn tables_in_flash(policy: &PolicySpec, values: bool, rows: bool) -> u32 {
    match policy.name.as_str() {
        "page" => 0,
        "dftl" => 1 + u32::from(values) + u32::from(values && rows),
        _ => 1,
    }
}

pub fn catalogue() -> Catalogue<dyn MappingPolicy, Setup> {
    member!(Catalogue::new("mapping"), page, dftl, sftl, tpftl, cdftl, cpftl, leaftl)
}

/// Frontiers of the pages of a policy of the catalogue, which need not be made for the answer (it may have a file to read).
pub fn frontiers(policy: &PolicySpec) -> Frontier {
    match policy.name.as_str() {
        "page" => 0,
        "cpftl" => cpftl::frontiers(policy),
        _ => 1,
    }
}

/// For policies made outside the catalogue (tests, Python).
pub type MakeMapping = fn(&mut Setup) -> Result<Box<dyn MappingPolicy>>;

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a policy that has not been made is what it says when it has.
    #[test]
    fn frontiers_and_tables_of_a_policy_are_known_before_it_is_made() {
        let names = catalogue().names();
        let more = ["cpftl:own_blocks=true", "cpftl:own_blocks=false"];
        let drives = [[0, 0], [1000, 0], [1000, 257]];
        let all = names.into_iter().chain(more);
        for (spec, [values, rows]) in all.flat_map(|spec| drives.map(|drive| (spec, drive))) {
            let mut setup = Setup {
                logical_units: 256,
                values,
                rows,
                unit_bytes: 64,
                cache_bytes: 1 << 20,
                layout: None,
                checked: false,
                beside_slot: 0,
            };
            let spec = PolicySpec::parse(spec).unwrap();
            let built = catalogue().build(&spec, &mut setup).unwrap();
            let tables = built.tables().len() as u32;
            assert_eq!(tables_in_flash(&spec, values > 0, rows > 0), tables, "{}", spec.show());
            let expected = if tables == 0 { 0 } else { built.frontiers() };
            assert_eq!(frontiers(&spec), expected, "{}", spec.show());
        }
    }

    /// What may stand in a report behind a reset without anything having happened: states, and the sizes of structures.
    const STATES: [&str; 20] = [
        "accurate_segments",
        "approximate_segments",
        "bytes_per_mapped_unit",
        "bytes_per_page",
        "capacity_entries",
        "capacity_pages",
        "corr_false_positive",
        "corr_lpns_left_out",
        "corr_pages_left_out",
        "corr_pages_live",
        "corr_threshold",
        "dirty_nodes",
        "groups_cached",
        "levels_max",
        "levels_mean",
        "mining_pairs",
        "mining_peak_bytes",
        "nodes",
        "pages_cached",
        "segments",
    ];

    /// Every count of every member begins again, and some of each have counted before.
    #[test]
    fn the_counts_of_a_report_begin_at_the_reset() {
        for spec in catalogue().names() {
            let mut h = testing::Harness::new(spec, 10_000, 256, 17_000);
            h.checked = false;
            for key in 0..20_000 {
                h.write(key * 7 % 10_000);
                h.read(key * 13 % 10_000);
            }
            let counts = |h: &testing::Harness| -> Vec<(&str, f64)> {
                let report = h.policy.report().into_iter();
                report.filter(|(name, _)| !STATES.contains(name)).collect()
            };
            let before = counts(&h);
            assert_eq!(before.is_empty(), spec == "page", "{spec}");
            assert!(
                before.is_empty() || before.iter().any(|(_, count)| *count > 0.0),
                "{spec}"
            );
            h.policy.reset_counts();
            assert_eq!(h.policy.counts(), CacheCounts::default(), "{spec}");
            for (name, count) in counts(&h) {
                assert_eq!(count, 0.0, "{spec}: {name}");
            }
        }
    }

    #[test]
    fn a_budget_holds_two_entries_to_as_many_as_can_be_numbered() {
        let entries = |cache_bytes, logical_units| {
            let setup = Setup {
                logical_units,
                values: 0,
                rows: 0,
                unit_bytes: 4096,
                cache_bytes,
                layout: None,
                checked: false,
                beside_slot: 0,
            };
            setup.entries("dftl", 8).map_err(|error| error.to_string())
        };
        assert_eq!((entries(16, 9), entries(80, 9)), (Ok(2), Ok(9)));
        assert_eq!(entries(8 << 28, u32::MAX), Ok(1 << 28));
        let too_few = entries(15, 9).unwrap_err();
        let too_many = entries((8 << 28) + 8, u32::MAX).unwrap_err();
        assert!(too_few.contains("expects room for at least 2"), "{too_few}");
        assert!(
            too_many.contains("holds 268435457 entries") && too_many.contains("at most 268435456"),
            "{too_many}"
        );
    }
}
