//! LeaFTL: the map is learned as lines through the places of LPNs, so that a run of data in order takes 8 bytes.
//!
//! # Model
//! * **Segments**: LPNs are taken in groups of 256. A segment maps LPNs of one group to a line: place = intercept + slope × offset,
//!   rounded. It takes 8 bytes: first offset 1, length 1, slope 2 (half precision), intercept 4. Places are numbered in the order
//!   in which the drive fills its lanes (`Layout::striped`); virtual page numbers of deduplicated data are learned as well.
//! * **Order**: if each lane collects its own blocks, the lanes are soon no longer filled in step, and consecutive
//!   writes lie far apart. With `geometry.reclaim = "superblock"` they stay in order: overwrites of every fourth unit
//!   in turn take 0.3 bytes a unit there, and 7.9 on the same 8 dies with single blocks.
//! * **Kinds**: an accurate segment maps its LPNs exactly, and they are 1/slope apart (one by one where the slope is steeper than
//!   1), which says which LPNs it maps. An approximate one is off by up to `gamma` places or has LPNs at uneven distances; its
//!   LPNs are listed in the group's conflict buffer, a byte each and one for the list. No LPN is listed twice. The last bit of the
//!   slope says which kind it is, so that nine bits of fraction are left.
//! * **Learning**: changed entries wait in a learning buffer, and are served from it. A full buffer is sorted by LPN and fitted
//!   greedily, each segment as long as the error bound allows. New segments go to the top level of their group; older ones that
//!   they overlap are trimmed, dropped if nothing is left, or pushed down a level, and get a level of their own if they overlap
//!   others there (2 bytes for each level below the first). A look-up asks levels from the top down.
//! * **Compaction**: every `compact` units written, groups in memory drop what newer segments have replaced, and lift segments
//!   to the highest level where they do not overlap; the others when they are next in memory. A translation page whose segments
//!   take more than a page is compacted at once and, if that is not enough, fitted anew.
//! * **Misprediction**: a read whose predicted place is wrong reads the flash page there, whose spare area names the
//!   LPNs near it, and then the right page: one more read of a data page (`spare_reads`), or none if both places are in
//!   one flash page. A write or trim must know the old place to invalidate it: if an approximate segment with `gamma`
//!   above 0 maps it, that page is read (`check_writes`).
//! * **Paging**: a translation page holds the groups of as many LPNs as fit if each is a segment alone, 8 bytes an LPN.
//!   Segments are loaded a translation page at a time, on writes also, and the least recently used page is evicted. A
//!   changed page is then programmed without a read. New segments of a page that is not in memory are merged into it
//!   with a read and a program.
//! * **Collection**: moved entries go to the learning buffer as written ones do. A collection learns at most as many pages that
//!   are not in memory as it has moved units.
//! * **Trims**: the source has none. Trimmed LPNs go through the learning buffer; runs of them become segments "not
//!   mapped", which compaction drops where nothing lies below.
//! * **Power cut**: segments are lost; the groups of a page are fitted anew from the record when it is next needed.
//!
//! # Parameters
//! * `gamma` (places, 0 to 100, default 0): how far off a prediction may be. The source's figures are for 0, 1, 4 and 16.
//! * `buffer` (entries, at least 1, default 2048): of the learning buffer, 8 bytes each; they count against
//!   `ftl.map_cache`. 2048 units of 4 KiB are the 8 MiB of write buffer after which the public code learns.
//! * `compact` (units, at least 1, default 1000000): written between compactions. In the public code, 1000 MB.
//! * `group` (LPNs, 2 to 256, default 256): of a group, but no more than a translation page holds.
//! * `check_writes` (bool, default true): false counts no reads for finding the old place of what is overwritten or trimmed. The
//!   public code looks the places up but loses count of nearly all these reads.
//! * `serial` (bool, default false): as for `dftl`.
//!
//! # Not modelled
//! * Sorting host data is left to the write buffer. The source programs its write buffer in LPN order, so that random
//!   writes become lines as well. That is `buffer.policy = "write_back:order=lpn,share=0.875"` with `buffer.capacity =
//!   "8MiB"`; a comparison with any other buffer, or none, is not one with the source's drive. Without it the drive
//!   programs data in the order in which it comes or leaves its buffer, and only learns in LPN order: random writes
//!   cost up to 8 bytes an LPN, twice a plain table. Data that is written in order, also in several streams with a
//!   frontier each, is learned as in the source.
//! * Sorting the data that a collection moves: it is moved in the order of places. Data that was sorted before keeps
//!   its runs.
//! * Where nothing live lies at a predicted place, which may not be programmed at all, the read goes to the right page's die. The
//!   spare area is taken to name all LPNs within `gamma` places, also those programmed later or in other blocks.
//! * The time of fitting, look-up and compaction; memory that a collection's entries need beyond the buffer while they are learned.
//!
//! # Errors
//! A cache that does not hold the learning buffer and a full page of segments is refused.
//!
//! # Cost
//! A look-up costs a binary search in each level. Learning an entry is O(segments of its group), of which there are up to some
//! 256. Uniform random writes keep pages full, so that every second learning of a page compacts it. The simulator keeps all
//! segments, 12 bytes each, and 800 bytes for a group with approximate ones.
//!
//! # Source
//! Sun, Li, Sun, Sun, Vucinic and Huang, "LeaFTL: A Learning-Based Flash Translation Layer for Solid-State Drives", ASPLOS 2023, and
//! its public code (platformxlab/LeaFTL, wiscsim). Fitting: Xie, Pang, Zhou, Zhang and Deng, "Maximum error-bounded Piecewise Linear
//! Representation for online stream approximation", VLDB Journal 23(6), 2014. Slopes of any sign and above 1, uneven exact
//! lines kept in lists, the merging of levels and the page's size are ours.

use std::sync::Arc;

use ftlab_core::{Error, Layout, Lpn, Result, Slot};
use serde::{Deserialize, Serialize};

use super::arena::Arena;
use super::list::List;
use super::paging::{self, Paging};
use super::{CacheCounts, Charge, HostMemory, MapCause, MappingPolicy, RecordView, Setup, Table, Why, allocated};
use figures::Figures;
use fit::{FIRST_OTHER, Point, UNMAPPED};
use group::Group;

mod figures;
mod fit;
mod group;
mod keys;
mod learned;
mod segment;
#[cfg(test)]
mod tests;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub gamma: u8,
    pub buffer: u32,
    pub compact: u64,
    pub group: u32,
    pub check_writes: bool,
    pub serial: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            gamma: 0,
            buffer: 2048,
            compact: 1_000_000,
            group: 256,
            check_writes: true,
            serial: false,
        }
    }
}

/// Bytes of an entry in the learning buffer (LPN and place), and of a group's place in the directory of those in memory.
const BUFFERED_BYTES: u32 = 8;
const GROUP_BYTES: u32 = 4;

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn MappingPolicy>> {
    if params.gamma > 100 || params.buffer == 0 || params.compact == 0 || !(2..=256).contains(&params.group) {
        return Err(Error::input(format!(
            "mapping policy `leaftl`: gamma = {}, buffer = {}, compact = {}, group = {}: expected at most 100 places, 1 entry and \
             1 unit or more, and 2 to 256 LPNs",
            params.gamma, params.buffer, params.compact, params.group
        )));
    }
    let paging = Paging::new(setup.logical_units, setup.unit_bytes, segment::BYTES);
    let per_group = params.group.min(paging.per_page);
    let groups = paging.per_page.div_ceil(per_group);
    let buffer = u64::from(params.buffer) * u64::from(BUFFERED_BYTES);
    let largest = u64::from(setup.unit_bytes) + u64::from(groups * GROUP_BYTES);
    if setup.cache_bytes < buffer + largest {
        return Err(Error::input(format!(
            "ftl.map_cache = {} bytes: mapping policy `leaftl` expects room for its learning buffer, {buffer} bytes, and a full \
             page of segments, {largest} bytes",
            setup.cache_bytes
        )));
    }
    Ok(Box::new(Leaftl {
        budget: setup.cache_bytes - buffer,
        used: 0,
        layout: setup.layout.clone(),
        unit_bytes: setup.unit_bytes,
        grouping: Grouping {
            per_page: paging.per_page,
            per_group,
            groups_per_page: groups,
        },
        groups: vec![Group::default(); paging.pages() as usize * groups as usize],
        compacted: vec![UNKNOWN; paging.pages() as usize],
        round: 0,
        written: 0,
        directory: Arena::new(0),
        recent: List::default(),
        waiting: Arena::new(params.buffer),
        queue: List::default(),
        sorted: Vec::new(),
        points: Vec::new(),
        paging,
        params,
        counts: CacheCounts::default(),
        figures: Figures::default(),
    }))
}

/// The round of compaction of a page of which nothing is known yet.
const UNKNOWN: u32 = u32::MAX;

/// How a translation page is divided into groups.
#[derive(Clone, Copy, Debug)]
struct Grouping {
    per_page: u32,
    per_group: u32,
    groups_per_page: u32,
}

impl Grouping {
    /// The group of a key and its offset there.
    #[inline]
    fn place_of(self, key: u32) -> (usize, u8) {
        let (tvpn, at) = (key / self.per_page, key % self.per_page);
        let group = tvpn * self.groups_per_page + at / self.per_group;
        (group as usize, (at % self.per_group) as u8)
    }
}

struct Leaftl {
    params: Params,
    paging: Paging,
    layout: Option<Arc<Layout>>,
    unit_bytes: u32,
    grouping: Grouping,
    /// Bytes for segments, and in use by those in memory.
    budget: u64,
    used: u64,
    /// Segments of all groups, in memory or in flash.
    groups: Vec<Group>,
    /// The last round of compaction that each page has seen.
    compacted: Vec<u32>,
    round: u32,
    /// Units written since the last round.
    written: u64,
    /// Pages in memory, by number.
    directory: Arena,
    recent: List,
    /// The learning buffer.
    waiting: Arena,
    queue: List,
    /// What is being learned: keys with their values, and those of one group. Kept for their memory.
    sorted: Vec<(u32, u32)>,
    points: Vec<Point>,
    counts: CacheCounts,
    figures: Figures,
}

impl Leaftl {
    /// Learns what waits, page by page; of pages that are not in memory no more than `most`, unless too much waits.
    fn learn(&mut self, most: u32, cause: MapCause, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        sorted.extend(self.waiting.from_back(&self.queue).map(|id| {
            let node = self.waiting.node(id);
            (node.key, node.entry)
        }));
        sorted.sort_unstable();
        let (paging, mut merged) = (self.paging, 0);
        for of_page in sorted.chunk_by(|a, b| paging.page_of(a.0) == paging.page_of(b.0)) {
            let tvpn = paging.page_of(of_page[0].0);
            let cached = self.directory.find(tvpn);
            if cached.is_none() && merged >= most && self.waiting.len() <= self.params.buffer {
                continue;
            }
            for (key, _) in of_page {
                if let Some(id) = self.waiting.find(*key) {
                    self.waiting.unlink(&mut self.queue, id);
                    self.waiting.remove(id);
                }
            }
            if let Some(id) = cached {
                self.used -= self.bytes_in_memory(tvpn);
                self.learn_sorted(of_page);
                self.tidy(tvpn);
                self.used += self.bytes_in_memory(tvpn);
                self.directory.node_mut(id).dirty = true;
                continue;
            }
            if self.is_known(tvpn) {
                self.learn_sorted(of_page);
            } else {
                self.learn_page(tvpn, record);
            }
            self.tidy(tvpn);
            merged += 1;
            self.figures.merges += 1;
            paging::rewrite(tvpn, cause, charges);
            self.wait(charges);
        }
        self.sorted = sorted;
        self.make_room(0, charges);
    }

    /// A changed entry waits to be learned.
    fn enqueue(&mut self, key: u32, entry: u32) {
        match self.waiting.find(key) {
            Some(id) => self.waiting.node_mut(id).entry = entry,
            None => {
                let id = self.waiting.insert(key, entry);
                self.waiting.push_front(&mut self.queue, id);
            }
        }
    }

    /// Reads a page of segments into memory.
    fn load(&mut self, tvpn: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        if self.is_known(tvpn) {
            self.tidy(tvpn);
        } else {
            self.learn_page(tvpn, record);
        }
        let bytes = self.bytes_in_memory(tvpn);
        self.make_room(bytes, charges);
        let id = self.directory.insert(tvpn, 0);
        self.directory.push_front(&mut self.recent, id);
        self.used += bytes;
        paging::load(tvpn, charges);
    }

    /// Drops pages until `bytes` more fit.
    fn make_room(&mut self, bytes: u64, charges: &mut Vec<Charge>) {
        while self.used + bytes > self.budget {
            let Some(id) = self.recent.back() else { return };
            let node = *self.directory.node(id);
            self.used -= self.bytes_in_memory(node.key);
            self.directory.unlink(&mut self.recent, id);
            self.directory.remove(id);
            self.figures.evictions += 1;
            if node.dirty {
                self.figures.dirty_evictions += 1;
                paging::store(node.key, MapCause::EvictRmw, charges);
                self.wait(charges);
            }
        }
    }

    /// The reads that an inexact answer costs.
    fn correct(&mut self, key: u32, why: Why, charges: &mut Vec<Charge>) {
        let Some(found) = self.find(key) else { return };
        if !found.approximate || found.value >= FIRST_OTHER {
            return;
        }
        let (near, right) = (self.slot_near(found.predicted), self.slot_near(found.value));
        if why != Why::HostRead {
            if self.params.check_writes {
                self.figures.checked_writes += 1;
                charges.push(Charge::ReadSpare { near, lpn: Lpn(key) });
            }
            return;
        }
        self.figures.approximate_reads += 1;
        let page = |slot: Slot| self.layout.as_ref().map_or(slot.0, |layout| layout.page_of(slot));
        if page(near) != page(right) {
            self.figures.mispredictions += 1;
            charges.push(Charge::ReadSpare { near, lpn: Lpn(key) });
        }
    }

    /// The slot of a predicted place, which may lie before the first or after the last one.
    fn slot_near(&self, place: u32) -> Slot {
        let place = (place as i32).max(0) as u32;
        match &self.layout {
            Some(layout) => layout.unstriped(place.min(layout.slots() - 1)),
            None => Slot(place),
        }
    }

    fn compact(&mut self) {
        self.written = 0;
        self.round = (self.round + 1) % UNKNOWN;
        let cached: Vec<u32> = self.directory.from_back(&self.recent).collect();
        for id in cached {
            let tvpn = self.directory.node(id).key;
            self.used -= self.bytes_in_memory(tvpn);
            self.tidy(tvpn);
            self.used += self.bytes_in_memory(tvpn);
        }
    }

    fn wait(&self, charges: &mut Vec<Charge>) {
        if self.params.serial {
            charges.push(Charge::Then);
        }
    }
}

impl MappingPolicy for Leaftl {
    fn report(&self) -> Vec<(&'static str, f64)> {
        self.figures()
    }

    fn tables(&self) -> Vec<Table> {
        self.paging.tables()
    }

    fn look_up(&mut self, _: u8, first: u32, count: u32, why: Why, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        for key in first..first + count {
            self.counts.lookups += 1;
            if self.waiting.find(key).is_some() {
                self.counts.hits += 1;
                continue;
            }
            let tvpn = self.paging.page_of(key);
            match self.directory.find(tvpn) {
                Some(id) => {
                    self.counts.hits += 1;
                    self.directory.touch(&mut self.recent, id);
                }
                None => self.load(tvpn, record, charges),
            }
            if self.params.gamma > 0 {
                self.correct(key, why, charges);
            }
        }
    }

    fn updated(&mut self, _: u8, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        self.enqueue(key, record.entries[key as usize]);
        if self.waiting.len() >= self.params.buffer {
            self.learn(u32::MAX, MapCause::EvictRmw, record, charges);
        }
        self.written += 1;
        if self.written >= self.params.compact {
            self.compact();
        }
    }

    fn moved(&mut self, _: u8, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        keys.iter()
            .for_each(|&key| self.enqueue(key, record.entries[key as usize]));
        if self.waiting.len() >= self.params.buffer {
            self.learn(keys.len() as u32, MapCause::GcUpdate, record, charges);
        }
    }

    fn cached(&self, table: u8, key: u32) -> Option<(u32, bool)> {
        if table != 0 {
            return None;
        }
        if let Some(id) = self.waiting.find(key) {
            return Some((self.waiting.node(id).entry, true));
        }
        let id = self.directory.find(self.paging.page_of(key))?;
        let value = self.find(key).map_or(UNMAPPED, |found| found.value);
        Some((self.entry(value), self.directory.node(id).dirty))
    }

    fn is_cached(&self, key: u32) -> bool {
        self.waiting.find(key).is_some() || self.directory.find(self.paging.page_of(key)).is_some()
    }

    fn counts(&self) -> CacheCounts {
        self.counts
    }

    fn reset_counts(&mut self) {
        self.counts = CacheCounts::default();
        self.figures = Figures::default();
    }

    fn forget(&mut self) {
        self.groups.fill(Group::default());
        self.compacted.fill(UNKNOWN);
        self.directory.clear();
        self.recent = List::default();
        self.waiting.clear();
        self.queue = List::default();
        self.used = 0;
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("map_cache", self.used),
            (
                "learning_buffer",
                u64::from(self.params.buffer) * u64::from(BUFFERED_BYTES),
            ),
            ("gtd", self.paging.directory_bytes()),
        ]
    }

    fn host_memory(&self) -> HostMemory {
        let groups = allocated(&self.groups) + self.groups.iter().map(Group::host_bytes).sum::<u64>();
        HostMemory {
            entries: u64::from(self.recent.len()) * u64::from(self.paging.per_page) + u64::from(self.waiting.len()),
            bytes: groups + self.directory.bytes() + self.waiting.bytes() + allocated(&self.compacted),
        }
    }
}
