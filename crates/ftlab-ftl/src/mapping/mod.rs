//! Mapping: what look-ups and updates of the map cost in translation pages.
//!
//! The record (LPN → slot) is the mechanism's and always right. A mapping policy owns what of it is cached in the
//! controller's memory and what is dirty there, and answers each access with *charges*: the translation pages to read and
//! to program. The mechanism turns charges into flash operations, keeps the global translation directory (where each
//! translation page lies) and lets host requests wait for their loads.

use ftlab_core::{Catalogue, Result, Slot, member};

use crate::owner::Owner;

pub mod page;

/// A demand-paged table: `keys` entries of `entry_bytes`, as many to a translation page as fit a mapping unit.
///
/// Table 0 is the map from LPNs. A wider entry (a policy that stores a time with it) means fewer entries a page.
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
/// The request that caused the answer waits for every [`Charge::Load`] with `MissLoad` and every probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charge {
    /// Read translation page `tvpn`; free if it has never been written.
    Load { table: u8, tvpn: u32, cause: MapCause },
    /// Program translation page `tvpn` at a new place.
    Store { table: u8, tvpn: u32, cause: MapCause },
    /// Read a page that the policy owns; the request waits for it.
    Probe { page: u32 },
    /// Program a page that the policy owns (owner `Policy(page)`), replacing its old copy.
    Write { page: u32 },
    /// The policy gives up its page.
    Drop { page: u32 },
    /// Everything after this waits for everything before it: an eviction that must be in flash before the load.
    Then,
}

/// The record as a policy may read it: the raw entry of each LPN (`u32::MAX`: unmapped).
#[derive(Clone, Copy)]
pub struct RecordView<'a> {
    pub entries: &'a [u32],
    /// The key after the last one of the host request that this access belongs to, for prefetching within a request. The
    /// key after the accessed ones where there is no request (an eviction from the write buffer, a collection).
    pub request_end: u32,
}

/// Counters of a mapping cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    pub lookups: u64,
    pub hits: u64,
}

pub trait MappingPolicy: Send {
    /// Figures of the policy's own for the summary, since the drive was new.
    fn report(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Everything is in memory: nothing need be asked or told.
    fn is_page(&self) -> bool {
        false
    }

    /// The tables that lie in flash; at most 3. Table 1, if there is one, is keyed by virtual page number.
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

    /// The record's entry of `key` has changed (after `look_up` with `HostWrite` or `Trim`).
    fn updated(&mut self, table: u8, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>);

    /// Garbage collection has moved the data of `keys`; called once per victim, in ascending order of keys.
    fn moved(&mut self, table: u8, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>);

    /// Whether the policy still needs the page with this number that it wrote.
    fn is_live(&self, _page: u32) -> bool {
        false
    }

    /// A translation page or policy page has been moved by garbage collection.
    fn page_moved(&mut self, _owner: Owner, _slot: Slot) {}

    /// The cached entry of `key` as (raw record entry, dirty), for the test that holds it against the record.
    fn cached(&self, table: u8, key: u32) -> Option<(u32, bool)>;

    fn counts(&self) -> CacheCounts;

    fn reset_counts(&mut self);

    /// Everything in memory is lost (a power cut); the record has been rebuilt.
    fn forget(&mut self);

    /// Bytes of the controller's memory in use, by structure.
    fn memory(&self) -> Vec<(&'static str, u64)>;
}

/// What a mapping policy is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub logical_units: u32,
    pub unit_bytes: u32,
}

pub fn catalogue() -> Catalogue<dyn MappingPolicy, Setup> {
    member!(Catalogue::new("mapping"), page)
}

/// For policies made outside the catalogue (tests, Python).
pub type MakeMapping = fn(&mut Setup) -> Result<Box<dyn MappingPolicy>>;
