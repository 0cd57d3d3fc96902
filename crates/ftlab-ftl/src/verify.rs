//! Checked runs: every slot carries a stamp of the data in it, and every read is held against the last write.

use ftlab_core::{Lpn, Slot};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::indirection::{CHUNKS, ChunkId, Vpn};

/// Stamps of the chunks of a pack or of a unit.
pub type ChunkStamps = [u32; CHUNKS];

/// In the stamp of a slot: a pack lies there. Other stamps have 31 bits.
const PACK: u32 = 0b10 << 30;
/// In the stamp of a slot: chunks of several values lie there.
const GATHERED: u32 = 0b11 << 30;

/// Stamps of the last write of each LPN and of what each slot holds. 8 bytes a unit, only in checked runs.
#[derive(Clone, Debug)]
pub struct Versions {
    lpn: Vec<u32>,
    /// Of a pack: its number in `packs`, and [`PACK`].
    slot: Vec<u32>,
    /// What each pack ever filled holds, by chunk.
    packs: Vec<ChunkStamps>,
    /// What each gathering ever made holds, by value: 0 of chunks that were dead.
    gatherings: Vec<Vec<(Vpn, ChunkStamps)>>,
    /// The numbers of those that may still be filled.
    filling: FxHashMap<Vpn, u32>,
    /// The unit that four chunks make.
    units: FxHashMap<ChunkStamps, u32>,
    /// Stamps of units of a loaded drive of which it is not known what they hold.
    unknown: FxHashSet<u32>,
    /// What such units turned out to hold when a unit came to share them.
    turned_out: FxHashMap<u32, u32>,
    last: u32,
    /// Stamp that the last write replaced.
    before: u32,
    /// Stamp of the unit that is being stored.
    storing: u32,
}

impl Versions {
    pub fn new(logical_units: u32, slots: u32) -> Self {
        Versions {
            lpn: vec![0; logical_units as usize],
            slot: vec![0; slots as usize],
            packs: Vec::new(),
            gatherings: Vec::new(),
            filling: FxHashMap::default(),
            units: FxHashMap::default(),
            unknown: FxHashSet::default(),
            turned_out: FxHashMap::default(),
            last: 0,
            before: 0,
            storing: 0,
        }
    }

    /// The host has written a new version, which is stored at once unless [`Versions::storing`] says otherwise.
    pub fn written(&mut self, lpn: Lpn) {
        self.last = self.next();
        self.before = std::mem::replace(&mut self.lpn[lpn.at()], self.last);
        self.storing = self.last;
    }

    fn next(&self) -> u32 {
        (self.last.wrapping_add(1) & !PACK).max(1)
    }

    /// The host has written data with a known content: equal contents have equal stamps.
    pub fn written_content(&mut self, lpn: Lpn, content: u64) {
        self.lpn[lpn.at()] = content_stamp(content);
    }

    pub fn trimmed(&mut self, lpn: Lpn) {
        self.lpn[lpn.at()] = 0;
    }

    /// The unit that is stored next has this stamp: what came with the request, or what has left the write buffer.
    pub fn storing(&mut self, stamp: u32) {
        self.storing = stamp;
    }

    /// The unit that is being stored lies in `slot`.
    pub fn programmed(&mut self, slot: Slot) {
        self.slot[slot.at()] = self.storing;
    }

    /// A loaded drive holds this content in `slot`.
    pub fn holds(&mut self, slot: Slot, content: u64) {
        self.slot[slot.at()] = content_stamp(content);
    }

    fn new_unknown(&mut self) -> u32 {
        self.last = self.next();
        self.unknown.insert(self.last);
        self.last
    }

    /// A loaded drive holds one unit in all of `slots`; if it is not known which, it is told from all others.
    pub fn holds_some(&mut self, slots: &[Slot]) {
        if slots.iter().any(|slot| self.slot[slot.at()] == 0) {
            let stamp = self.new_unknown();
            slots.iter().for_each(|slot| self.slot[slot.at()] = stamp);
        }
    }

    /// A loaded drive holds chunks of these values in `slot`.
    pub fn holds_gathered(&mut self, slot: Slot, values: impl Iterator<Item = Vpn>) {
        let with_stamps = values.map(|value| (value, std::array::from_fn(|_| self.new_unknown())));
        let all = with_stamps.collect();
        self.gatherings.push(all);
        self.gathered(slot);
    }

    /// A unit of a loaded drive consists of these chunks.
    pub fn holds_chunks(&mut self, chunks: ChunkStamps) {
        if !self.units.contains_key(&chunks) {
            let stamp = self.new_unknown();
            self.units.insert(chunks, stamp);
        }
    }

    /// The unit that is being stored comes to share what has the stamp `shared`: if that was not known, it is now.
    pub fn shares(&mut self, shared: u32) {
        if self.unknown.remove(&shared) {
            self.turned_out.insert(shared, self.storing);
        }
    }

    /// A stamp, of a unit of a loaded drive by what it turned out to hold.
    pub fn known(&self, stamp: u32) -> u32 {
        self.turned_out.get(&stamp).copied().unwrap_or(stamp)
    }

    pub fn moved(&mut self, from: Slot, to: Slot) {
        self.slot[to.at()] = self.slot[from.at()];
    }

    /// # Panics
    /// If a read of `lpn` that finds `found` does not find the last version: the program is wrong.
    pub fn check(&self, lpn: Lpn, found: u32, place: std::fmt::Arguments<'_>) {
        let expected = self.lpn[lpn.at()];
        assert!(
            expected == found || self.known(expected) == self.known(found),
            "{lpn:?} reads version {found} {place}, the last written is {expected}"
        );
    }

    /// Stamp of the last write; 0 if trimmed or never written.
    pub fn of_lpn(&self, lpn: Lpn) -> u32 {
        self.lpn[lpn.at()]
    }

    pub fn of_slot(&self, slot: Slot) -> u32 {
        self.slot[slot.at()]
    }

    /// The write of `lpn` that was announced last has been refused: the version before it stays.
    pub fn refused(&mut self, lpn: Lpn) {
        self.lpn[lpn.at()] = self.before;
    }

    /// What a run of slots holds.
    pub fn stamps(&self, slots: std::ops::Range<usize>) -> Vec<u32> {
        self.slot[slots].to_vec()
    }

    /// Slots from `first` on hold again what they held.
    pub fn restore(&mut self, first: usize, stamps: &[u32]) {
        self.slot[first..first + stamps.len()].copy_from_slice(stamps);
    }

    /// After a power cut the surviving version is the last one.
    pub fn recovered(&mut self, lpn: Lpn, stamp: u32) {
        self.lpn[lpn.at()] = stamp;
    }

    /// A chunk of `content` has been added to a pack that is being filled.
    pub fn packed(&mut self, chunk: ChunkId, content: u64) {
        if chunk.index() == 0 {
            assert!(self.packs.len() < 1 << 30, "a checked run of 2^30 packs");
            self.filling.insert(chunk.value(), self.packs.len() as u32);
            self.packs.push([0; CHUNKS]);
        }
        let number = self.filling[&chunk.value()];
        self.packs[number as usize][chunk.index()] = content_stamp(content);
    }

    /// A pack that was being filled has got a slot.
    pub fn pack_programmed(&mut self, pack: Vpn, slot: Slot) {
        self.slot[slot.at()] = PACK | self.filling[&pack];
    }

    /// Live chunks of some values, each with the slot where it lies, are put together in one slot.
    pub fn gathering(&mut self, parts: impl Iterator<Item = (Vpn, Slot, [bool; CHUNKS])>) {
        let stamps = |(value, slot, live): (Vpn, Slot, [bool; CHUNKS])| {
            let of_chunk = |index: usize| match live[index] {
                true => self.of_chunk(ChunkId::new(value, index), Some(slot)),
                false => 0,
            };
            (value, std::array::from_fn(of_chunk))
        };
        let all = parts.map(stamps).collect();
        self.gatherings.push(all);
    }

    /// The last gathering lies in `slot`.
    pub fn gathered(&mut self, slot: Slot) {
        self.slot[slot.at()] = GATHERED | (self.gatherings.len() as u32 - 1);
    }

    /// What a chunk of the value at `slot` holds, 0 for nothing; `None`: its pack is still being filled.
    pub fn of_chunk(&self, chunk: ChunkId, slot: Option<Slot>) -> u32 {
        let number = match slot.map(|slot| self.slot[slot.at()]) {
            Some(gathering) if gathering >= GATHERED => {
                let values = self.gatherings.get((gathering & !GATHERED) as usize);
                let mut values = values.into_iter().flatten();
                let found = values.find(|(value, _)| *value == chunk.value());
                return found.map_or(0, |(_, stamps)| stamps[chunk.index()]);
            }
            // A quarter of a unit stored whole is known by the unit.
            Some(stamp) if stamp < PACK => {
                let quarter = u64::from(stamp) << 2 | chunk.index() as u64;
                return content_stamp(quarter.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            }
            Some(pack) => Some(pack & !PACK),
            None => self.filling.get(&chunk.value()).copied(),
        };
        let pack = number.and_then(|number| self.packs.get(number as usize));
        pack.map_or(0, |pack| pack[chunk.index()])
    }

    /// The unit that is being stored consists of these chunks.
    pub fn stored_as(&mut self, chunks: ChunkStamps) {
        match self.units.get(&chunks).copied() {
            Some(unit) if self.unknown.contains(&unit) => self.shares(unit),
            Some(unit) if self.known(unit) == self.storing => {}
            _ => {
                self.units.insert(chunks, self.storing);
            }
        }
    }

    /// The unit that these chunks make, 0 for none that was ever stored.
    pub fn of_chunks(&self, chunks: ChunkStamps) -> u32 {
        self.units.get(&chunks).copied().unwrap_or(0)
    }
}

/// Stamps of contents lie above those of plain versions only by chance; runs use one kind or the other.
pub fn content_stamp(content: u64) -> u32 {
    ((content ^ content >> 32) as u32 & !PACK).max(1)
}
