//! FineDedup: deduplication by quarters of a unit.
//!
//! # Model
//! Each unit is cut into four chunks, each with a fingerprint. A fingerprint refers to a chunk in a pack or to a
//! quarter of a unit stored whole. A unit
//! * whose four chunks are all found side by side in one unit stored whole is mapped to that unit;
//! * of whose chunks none is found is stored whole (with `packing`; it is programmed at once, as four chunks of one
//!   page are);
//! * otherwise consists of four chunks: those found, and new ones in the **chunk buffer**.
//!
//! The chunk buffer has packs of four chunks. One pack is kept free for a unit of four new chunks, unless the buffer
//! has one pack only. The new chunks of a unit go to one pack, the fullest that has room for all of them, and are split
//! over two only if no pack has: the emptiest takes what it can and is programmed, the rest goes on by the same rule. Among equally
//! full packs the first is taken. A pack is programmed when it is full. A pack whose
//! chunks are all invalid is dropped without a program; the room of single invalid chunks is not used again. Without
//! `packing` there is one pack, and every new chunk is put into it in turn.
//!
//! The **chunk read buffer** keeps the chunks that were read last. Of a unit in chunks, only pages with chunks that are
//! not in this buffer are read. A collection joins the valid chunks of several packs into new packs (`repack`), or
//! moves their pages as they are; then it joins packs only where nothing else would free a page. The map of units and
//! the map of chunks are tables 0 and 2 of the mapping policy, so that `ftl.mapping = dftl` pages both.
//!
//! # Parameters
//! * `entries` (count, default 262,144; 0: any number), `eviction` (`lru`, `count` or `two_level`, default `lru`), `second` (share,
//!   default 0.5): the table of fingerprints, of chunks.
//! * `packing` (bool, default true).
//! * `repack` (bool, default true).
//! * `chunk_buffer_kib` (KiB, default 200): for new chunks.
//! * `read_buffer_kib` (KiB, default 8192; 0: none): for chunks that are read.
//! * `hash_us` (µs, default 10), `hash_units` (count, default 4): time of a fingerprint, and engines that compute them side by side.
//!
//! # Not modelled
//! That the old version of a unit is let go before the new fingerprint is in the table, as with the policies of whole units and units
//! stored whole: of a unit in chunks it goes when the fingerprints of the new one are in the table. Chunks smaller than a quarter (a smaller unit has smaller quarters). Equal new chunks within
//! one unit are both stored. Without protected memory the packs are programmed with every request that is not buffered, full or not; the
//! source's drive has capacitors. Data read from units stored whole is not kept in the chunk read buffer. Of a unit that is
//! known by one id only (traces with an id a page) a quarter equals the same quarter of units with this id and nothing else,
//! so that copies are found whole; a note says so. A quarter that is not known by itself is known by the smallest piece with an id
//! that it is a part of, and its place there. A unit of which some part is not known at all is stored without being looked up.
//!
//! # Errors
//! An unknown `eviction`, 0 engines, a chunk buffer smaller than a unit or with more than 65,535 packs.
//!
//! # Cost
//! O(packs) a unit stored in chunks; 40 bytes a fingerprint, and the two buffers.
//!
//! # Source
//! Kim's dissertation on program contexts in flash storage (Seoul National University 2019), section 5.3, figures 28 to
//! 31. The table's eviction and size are ours.

use ftlab_core::index_list::IndexList;
use ftlab_core::{Error, Lpn, Result};
use serde::{Deserialize, Serialize};

use super::fingerprints::{Fingerprints, Place, PlainEviction, Room};
use super::hashing::Hashing;
use super::quarters::{Quarters, SavedQuarters, place_of_chunk, places_of, quarters_of};
use super::units::{of_place, place_of};
use super::{Alone, AloneWrite, ChunkSource, Decision, DedupPolicy, DedupWrite, Event, Packs, Setup, Work};
use crate::indirection::{CHUNKS, ChunkId, ChunkRow, Of, Vpn};
use crate::{Now, learnt};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub entries: u32,
    pub eviction: PlainEviction,
    pub second: f64,
    pub packing: bool,
    pub repack: bool,
    pub chunk_buffer_kib: u32,
    pub read_buffer_kib: u32,
    pub hash_us: f64,
    pub hash_units: u16,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            entries: 262_144,
            eviction: PlainEviction::Lru,
            second: 0.5,
            packing: true,
            repack: true,
            chunk_buffer_kib: 200,
            read_buffer_kib: 8192,
            hash_us: 10.0,
            hash_units: 4,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn DedupPolicy>> {
    let fault = |text: String| Error::input(format!("dedup policy `finededup`: {text}"));
    let buffer = u64::from(params.chunk_buffer_kib) * 1024 / u64::from(setup.unit_bytes);
    let packs = match u16::try_from(buffer) {
        Ok(packs) if packs > 0 => packs,
        _ => {
            return Err(fault(format!(
                "chunk_buffer_kib = {}, expected 1 to 65535 units of {} bytes",
                params.chunk_buffer_kib, setup.unit_bytes
            )));
        }
    };
    let room = Room {
        entries: params.entries,
        eviction: params.eviction.into(),
        second: params.second,
    };
    let chunk_bytes = u64::from(setup.unit_bytes) / CHUNKS as u64;
    Ok(Box::new(FineDedup {
        hashing: Hashing::new("finededup", params.hash_us, params.hash_units)?,
        table: Quarters::new("finededup", room, params.packing)?,
        packs: if params.packing {
            packs.saturating_sub(1).max(1)
        } else {
            1
        },
        wholes: Wholes::default(),
        read: IndexList::new(0),
        most_read: (u64::from(params.read_buffer_kib) * 1024 / chunk_bytes) as u32,
        buffer_bytes: (u64::from(params.chunk_buffer_kib) + u64::from(params.read_buffer_kib)) * 1024,
        storing: None,
        counts: Counts::default(),
        params,
    }))
}

struct FineDedup {
    params: Params,
    hashing: Hashing,
    table: Quarters,
    packs: u16,
    wholes: Wholes,
    /// The chunk read buffer.
    read: IndexList,
    most_read: u32,
    buffer_bytes: u64,
    storing: Option<Storing>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Counts {
    /// Units by how many of their chunks were found.
    found: [u64; CHUNKS + 1],
    /// Units whose quarters were not known by ids of their own.
    known_whole: u64,
    /// Units with new chunks in one pack, and in several.
    in_one_pack: u64,
    in_several: u64,
    chunk_reads: u64,
    read_buffer_hits: u64,
}

/// The unit that is being stored whole.
#[derive(Clone, Copy)]
enum Storing {
    /// Known by one id, beside others that are.
    Whole(u64),
    Quarters([u64; CHUNKS]),
}

impl Storing {
    fn quarters(self) -> [u64; CHUNKS] {
        match self {
            Storing::Whole(content) => quarters_of(content),
            Storing::Quarters(quarters) => quarters,
        }
    }
}

/// Values that were stored whole and of which no quarter is gone: a bit for each.
#[derive(Default)]
struct Wholes(Vec<u64>);

impl Wholes {
    fn contains(&self, vpn: Vpn) -> bool {
        self.0
            .get(vpn.at() / 64)
            .is_some_and(|word| word >> (vpn.0 % 64) & 1 == 1)
    }

    fn insert(&mut self, vpn: Vpn) {
        let word = vpn.at() / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (vpn.0 % 64);
    }

    fn remove(&mut self, vpn: Vpn) {
        if let Some(word) = self.0.get_mut(vpn.at() / 64) {
            *word &= !(1 << (vpn.0 % 64));
        }
    }

    /// In ascending order.
    fn iter(&self) -> impl Iterator<Item = Vpn> + '_ {
        (0..self.0.len() as u32 * 64).map(Vpn).filter(|&vpn| self.contains(vpn))
    }
}

/// Where a chunk lies: a quarter of an LPN's unit, or one of a value.
enum At {
    Quarter(Lpn, u8),
    Chunk(ChunkId),
}

fn at(place: Place) -> At {
    let number = place >> 1;
    match place & 1 {
        0 => At::Quarter(Lpn((number / CHUNKS as u64) as u32), (number % CHUNKS as u64) as u8),
        _ => At::Chunk(ChunkId(number as u32)),
    }
}

impl FineDedup {
    /// The unit stored whole that holds just these chunks in this order.
    fn whole(&self, places: [Option<Place>; CHUNKS]) -> Option<Of> {
        let first = places[0]?;
        let side_by_side = |(index, place): (usize, Option<Place>)| place == Some(first + 2 * index as u64);
        if !places.into_iter().enumerate().all(side_by_side) {
            return None;
        }
        match at(first) {
            At::Quarter(lpn, 0) => Some(Of::Lpn(lpn)),
            At::Chunk(chunk) if chunk.0.is_multiple_of(CHUNKS as u32) => Some(chunk.value())
                .filter(|&vpn| self.wholes.contains(vpn))
                .map(Of::Vpn),
            _ => None,
        }
    }

    /// The packs for `new` chunks of one unit, and how many of them are needed.
    fn packs_for(&self, packs: Packs<'_>, new: u32) -> ([u16; CHUNKS], u32) {
        let mut taken = [0; CHUNKS];
        let (mut chosen, mut used) = ([0; CHUNKS], 0);
        let mut left = new;
        while left > 0 {
            // A pack that is filled is programmed, and the next chunk begins a new one in its place.
            let room = |number: u16| match taken[..used].contains(&number) {
                true => CHUNKS as u32,
                false => CHUNKS as u32 - packs.filled(number),
            };
            let numbers = 0..self.packs;
            let fits = numbers.clone().filter(|&number| room(number) >= left);
            // Where none has room for all of them, the one with the most room takes what it can; the rest fits into what it leaves.
            let pack = fits.min_by_key(|&number| room(number));
            let pack = pack.or_else(|| numbers.rev().max_by_key(|&number| room(number)));
            let pack = pack.expect("there is a pack");
            let takes = room(pack).min(left);
            (0..takes).for_each(|step| chosen[(new - left + step) as usize] = pack);
            taken[used] = pack;
            used += 1;
            left -= takes;
        }
        (chosen, used as u32)
    }

    /// Looks for a unit that is known by one id, as all others of which anything is known: it is found whole or not at all. The time
    /// of its fingerprints is left to the caller. `None` where quarters are known by themselves.
    #[inline]
    fn look_up_whole(&mut self, content: u64) -> Option<Alone> {
        let table = self.table.together()?;
        self.counts.known_whole += 1;
        let found = table.find(content);
        self.counts.found[if found.is_some() { CHUNKS } else { 0 }] += 1;
        let Some(found) = found else {
            self.storing = Some(Storing::Whole(content));
            return Some(Alone::Store);
        };
        self.storing = None;
        let of = of_place(table.place(found));
        table.hit(found);
        Some(Alone::Share(of))
    }
}

impl DedupPolicy for FineDedup {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let Counts {
            found,
            known_whole,
            in_one_pack,
            in_several,
            chunk_reads,
            read_buffer_hits,
        } = self.counts;
        let figures = [
            ("hashes", self.hashing.count),
            ("fingerprints", u64::from(self.table.count())),
            ("evicted", self.table.evicted()),
            ("none_found", found[0]),
            ("one_found", found[1]),
            ("two_found", found[2]),
            ("three_found", found[3]),
            ("four_found", found[4]),
            ("known_whole", known_whole),
            ("in_one_pack", in_one_pack),
            ("in_several_packs", in_several),
            ("chunk_reads", chunk_reads),
            ("read_buffer_hits", read_buffer_hits),
        ];
        figures.map(|(name, count)| (name, count as f64)).to_vec()
    }

    fn note(&self) -> Option<String> {
        let (whole, all) = (self.counts.known_whole, self.counts.found.iter().sum::<u64>());
        (whole > 0).then(|| {
            format!(
                "{whole} of {all} units are known by one id each, not by quarters: `finededup` finds copies of them only whole"
            )
        })
    }

    fn packs(&self) -> u16 {
        self.packs
    }

    fn repacks(&self) -> bool {
        self.params.repack
    }

    fn fingerprints(&self) -> Option<&Fingerprints> {
        match &self.table {
            Quarters::Together(table, _) => Some(table),
            Quarters::Apart(_) => None,
        }
    }

    fn asks_writer(&self) -> bool {
        false
    }

    fn write_alone(&mut self, write: AloneWrite<'_>) -> (Alone, u64) {
        match self.look_up_whole(write.content) {
            Some(alone) => (alone, (0..CHUNKS).map(|_| self.hashing.hash_alone()).sum()),
            None => (Alone::Ask, 0),
        }
    }

    fn write(&mut self, write: &DedupWrite<'_>, works: &mut Vec<Work>) -> Decision {
        (0..CHUNKS).for_each(|_| self.hashing.hash(works));
        let quarters = write.quarters();
        if quarters.is_none()
            && let Some(alone) = self.look_up_whole(write.content)
        {
            return match alone {
                Alone::Share(of) => Decision::Share(of),
                Alone::Store | Alone::Ask => Decision::Store,
            };
        }
        self.counts.known_whole += u64::from(quarters.is_none());
        let contents = quarters.unwrap_or_else(|| quarters_of(write.content));
        self.storing = Some(Storing::Quarters(contents));
        let table = self.table.apart();
        let places = contents.map(|content| table.find(content).map(|found| table.place(found)));
        let new = places.iter().filter(|place| place.is_none()).count();
        self.counts.found[CHUNKS - new] += 1;
        for content in contents {
            if let Some(found) = table.find(content) {
                table.hit(found);
            }
        }
        if new == CHUNKS && self.params.packing {
            return Decision::Store;
        }
        self.storing = None;
        if let Some(whole) = self.whole(places) {
            return Decision::Share(whole);
        }
        let (packs, used) = self.packs_for(write.packs, new as u32);
        self.counts.in_one_pack += u64::from(used == 1);
        self.counts.in_several += u64::from(used > 1);
        let mut packs = packs.into_iter();
        Decision::Chunks(std::array::from_fn(|index| match places[index].map(at) {
            Some(At::Chunk(chunk)) => ChunkSource::Existing(chunk),
            Some(At::Quarter(lpn, quarter)) => ChunkSource::Quarter {
                of: Of::Lpn(lpn),
                quarter,
            },
            None => ChunkSource::New {
                content: contents[index],
                pack: packs.next().unwrap_or(0),
            },
        }))
    }

    fn on(&mut self, event: Event, _: Now) {
        match event {
            Event::Stored { of, .. } => {
                let Some(storing) = self.storing.take() else { return };
                if let Of::Vpn(vpn) = of {
                    self.wholes.insert(vpn);
                }
                if let (Storing::Whole(content), Some(table)) = (storing, self.table.together()) {
                    table.insert(content, place_of(of), 0);
                    return;
                }
                let table = self.table.apart();
                for (content, place) in storing.quarters().into_iter().zip(places_of(of)) {
                    table.insert(content, place, 0);
                }
            }
            Event::ChunkStored { content, chunk } => {
                self.table.apart().insert(content, place_of_chunk(chunk), 0);
            }
            Event::Became { lpn, vpn } => {
                self.wholes.insert(vpn);
                self.table.became(lpn, vpn);
            }
            Event::Gone(of @ Of::Lpn(_)) => self.table.gone(of),
            Event::Gone(of @ Of::Vpn(vpn)) => {
                self.wholes.remove(vpn);
                self.table.gone(of);
                if !self.read.is_empty() {
                    for index in 0..CHUNKS {
                        self.read.remove(ChunkId::new(vpn, index).0);
                    }
                }
            }
            Event::ChunkGone(chunk) => {
                self.wholes.remove(chunk.value());
                self.table.apart().gone(place_of_chunk(chunk));
                self.read.remove(chunk.0);
            }
        }
    }

    fn read_buffered(&mut self, row: ChunkRow) -> [bool; CHUNKS] {
        if self.most_read == 0 {
            return [false; CHUNKS];
        }
        let held = row.map(|chunk| self.read.contains(chunk.0));
        self.counts.chunk_reads += CHUNKS as u64;
        self.counts.read_buffer_hits += held.iter().filter(|&&is_held| is_held).count() as u64;
        for chunk in row {
            self.read.touch(chunk.0);
        }
        while self.read.len() > self.most_read {
            self.read.pop_back();
        }
        held
    }

    fn forget(&mut self) {
        self.table.clear();
        self.wholes = Wholes::default();
        self.read.clear();
        self.storing = None;
    }

    fn memory_bytes(&self) -> u64 {
        self.table.bytes() + self.buffer_bytes
    }

    fn save(&self) -> Vec<u8> {
        let wholes: Vec<u32> = self.wholes.iter().map(|vpn| vpn.0).collect();
        learnt::save(&(
            self.hashing.count,
            self.table.to_saved(),
            wholes,
            &self.read,
            self.counts,
        ))
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        type Saved = (u64, SavedQuarters, Vec<u32>, IndexList, Counts);
        let (hashes, table, wholes, read, counts): Saved = learnt::load(saved)?;
        self.hashing.count = hashes;
        self.table.take_over(table)?;
        self.wholes = Wholes::default();
        wholes.into_iter().for_each(|vpn| self.wholes.insert(Vpn(vpn)));
        (self.read, self.counts) = (read, counts);
        Ok(())
    }
}
