//! Page-based deduplication: every unit that is written is hashed, and looked up in one table of fingerprints.
//!
//! # Model
//! A unit whose fingerprint is in the table is mapped to the data with that fingerprint. Any other unit is stored, and
//! its fingerprint enters the table. A fingerprint is removed when nothing refers to its data any more. A full table
//! evicts one for each new one:
//! * `eviction = count`: the one with the fewest hits, among equals the least recent.
//! * `eviction = lru`: the one that was written or found least recently.
//! * `eviction = two_level`: new fingerprints enter the first level; a hit moves a fingerprint to the front of the
//!   second level. A hit that makes the second level larger than its share evicts that level's least recent fingerprint,
//!   also while the table is not full, as the levels are queues of their own. A new fingerprint in a full table evicts
//!   the first level's. So data that has been deduplicated can lose its fingerprint as well. This is right where a value
//!   repeats only a few times (the pairs of an LSM tree).
//!
//! With `entries = 0` and known contents this is deduplication without any limit.
//!
//! # Parameters
//! * `entries` (count, default 65,536; 0: any number): fingerprints in the table, 40 bytes each.
//! * `eviction` (`lru`, `count` or `two_level`, default `count`).
//! * `second` (share, default 0.5): of the table, for the second level.
//! * `prefetch` (bool, default false): when the host reads a page whose fingerprint was evicted, the fingerprint
//!   returns to the table from the page's spare area. This helps programs that copy data: they read first what they
//!   then write.
//! * `hash_us` (µs, default 12), `hash_units` (count, default 1): time of a fingerprint, and engines that compute them side by side.
//!
//! # Not modelled
//! Collisions of fingerprints, and reading the data found to compare it. The contents of the table after a power cut
//! without protected memory: it is empty then.
//!
//! # Errors
//! An unknown `eviction` (`contexts` belongs to `pcdedup`), a share outside 0 to 1, 0 engines.
//!
//! # Cost
//! O(1) a unit; 40 bytes a fingerprint.
//!
//! # Source
//! Kim's dissertation on program contexts in flash storage (Seoul National University 2019), sections 5.2.1 (the baseline "dedup",
//! figure 19), 5.2.2 (two levels, figure 24) and 6.2.3 (prefetching, an outlook). The share of the second level is ours.

use ftlab_core::{Lpn, Result};
use serde::{Deserialize, Serialize};

use super::fingerprints::{Fingerprints, PlainEviction, Room};
use super::hashing::Hashing;
use super::units::{Looked, Units};
use super::{Alone, AloneWrite, Decision, DedupPolicy, DedupWrite, Event, Setup, Work};
use crate::indirection::Of;
use crate::{Now, learnt};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub entries: u32,
    pub eviction: PlainEviction,
    pub second: f64,
    pub prefetch: bool,
    pub hash_us: f64,
    pub hash_units: u16,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            entries: 65_536,
            eviction: PlainEviction::Count,
            second: 0.5,
            prefetch: false,
            hash_us: 12.0,
            hash_units: 1,
        }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn DedupPolicy>> {
    let room = Room {
        entries: params.entries,
        eviction: params.eviction.into(),
        second: params.second,
    };
    let hashing = Hashing::new("page_dedup", params.hash_us, params.hash_units)?;
    Ok(Box::new(PageDedup {
        hashing,
        units: Units::new("page_dedup", room)?.prefetching(params.prefetch),
        beside_bytes: 0,
    }))
}

/// Hashes and looks up every unit. `beside_bytes` of a drive's memory are taken by other tables.
pub(super) struct PageDedup {
    pub hashing: Hashing,
    pub units: Units,
    pub beside_bytes: u64,
}

impl DedupPolicy for PageDedup {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let mut report = vec![("hashes", self.hashing.count as f64)];
        report.extend(self.units.report());
        report
    }

    fn fingerprints(&self) -> Option<&Fingerprints> {
        Some(&self.units.table)
    }

    fn asks_writer(&self) -> bool {
        false
    }

    #[inline]
    fn write(&mut self, write: &DedupWrite<'_>, works: &mut Vec<Work>) -> Decision {
        self.hashing.hash(works);
        match self.units.look_up(write.content, 0) {
            Looked::Shared { of, .. } => Decision::Share(of),
            Looked::New => Decision::Store,
        }
    }

    #[inline]
    fn write_alone(&mut self, write: AloneWrite<'_>) -> (Alone, u64) {
        let ns = self.hashing.hash_alone();
        (self.units.look_up(write.content, 0).alone(), ns)
    }

    fn asks_reads(&self) -> bool {
        self.units.prefetches()
    }

    fn read(&mut self, of: Of, _: Now) {
        self.units.read(of);
    }

    #[inline]
    fn on(&mut self, event: Event, _: Now) {
        self.units.on(event);
    }

    #[inline]
    fn replaced(&mut self, lpn: Lpn, _: Now) {
        self.units.replaced(lpn);
    }

    fn forget(&mut self) {
        self.units.forget();
    }

    fn memory_bytes(&self) -> u64 {
        self.units.table.bytes() + self.beside_bytes
    }

    fn contents(&self) -> Vec<(Of, u64)> {
        self.units.contents()
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&(self.hashing.count, self.units.to_saved()))
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let (hashes, units) = learnt::load(saved)?;
        self.hashing.count = hashes;
        self.units.take_over(units)
    }
}
