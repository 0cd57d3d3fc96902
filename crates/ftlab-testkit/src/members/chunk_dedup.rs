//! Quarter-unit deduplication as FineDedup does it: what is shared is shared by quarters, what is new as a whole is stored whole
//! and serves as chunks later, and new quarters of one unit go to one pack if they fit.

use std::sync::{Arc, Mutex, PoisonError};

use ftlab_core::Lpn;
use ftlab_ftl::Now;
use ftlab_ftl::dedup::{ChunkSource, Decision, DedupPolicy, DedupWrite, Event, Packs, Work};
use ftlab_ftl::indirection::{CHUNKS, ChunkId, Of, Vpn};
use rustc_hash::FxHashMap;

/// Which content lies in each chunk of each value; shared with the test that reads it back.
pub type Shelf = Arc<Mutex<FxHashMap<ChunkId, u64>>>;

/// Open packs.
const PACKS: u16 = 3;

/// Where a content lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Chunk(ChunkId),
    /// A quarter of a unit that is known by its LPN.
    Quarter(Lpn, u8),
}

#[derive(Default)]
pub struct ChunkDedup {
    pub shelf: Shelf,
    places: FxHashMap<u64, Place>,
    /// What the units hold that are known by their LPNs.
    units: FxHashMap<Lpn, [u64; CHUNKS]>,
    asked: [u64; CHUNKS],
    /// Units stored whole, and quarters of such that have been shared since.
    wholes: u64,
    quarters: u64,
    /// Units of which some chunks were new, by the packs that took them.
    in_one_pack: u64,
    in_several: u64,
}

impl ChunkDedup {
    /// The pack for `wanted` new chunks: the fullest that has room for all of them.
    fn pack_for(packs: Packs<'_>, wanted: u32) -> Option<u16> {
        let fits = |&number: &u16| packs.filled(number) + wanted <= CHUNKS as u32;
        (0..PACKS).filter(fits).max_by_key(|&number| packs.filled(number))
    }

    fn shelve(&mut self, vpn: Vpn, contents: [u64; CHUNKS]) {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, content) in contents.into_iter().enumerate() {
            shelf.insert(ChunkId::new(vpn, index), content);
        }
    }

    fn forget_place(&mut self, content: u64, place: Place) {
        if self.places.get(&content) == Some(&place) {
            self.places.remove(&content);
        }
    }

    fn on_the_shelf(&self, chunk: ChunkId) -> Option<u64> {
        let shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.get(&chunk).copied()
    }
}

impl DedupPolicy for ChunkDedup {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let names = ["wholes", "quarters", "in_one_pack", "in_several"];
        let figures = [self.wholes, self.quarters, self.in_one_pack, self.in_several];
        names.into_iter().zip(figures.map(|count| count as f64)).collect()
    }

    fn packs(&self) -> u16 {
        PACKS
    }

    fn write(&mut self, write: &DedupWrite<'_>, works: &mut Vec<Work>) -> Decision {
        let Some(contents) = write.quarters() else {
            return Decision::Store;
        };
        works.extend((0..CHUNKS as u16).map(|engine| Work::new(engine, 3_000)));
        self.asked = contents;
        let known = contents.map(|content| self.places.get(&content).copied());
        let new = known.iter().filter(|place| place.is_none()).count() as u32;
        if new == CHUNKS as u32 {
            return Decision::Store;
        }
        let pack = Self::pack_for(write.packs, new);
        if new > 0 {
            self.in_one_pack += u64::from(pack.is_some());
            self.in_several += u64::from(pack.is_none());
        }
        let mut next = (0..PACKS).flat_map(|number| (write.packs.filled(number)..CHUNKS as u32).map(move |_| number));
        Decision::Chunks(std::array::from_fn(|index| match known[index] {
            Some(Place::Chunk(chunk)) => ChunkSource::Existing(chunk),
            Some(Place::Quarter(lpn, quarter)) => {
                self.quarters += 1;
                ChunkSource::Quarter {
                    of: Of::Lpn(lpn),
                    quarter,
                }
            }
            None => ChunkSource::New {
                content: contents[index],
                pack: pack
                    .or_else(|| next.next())
                    .expect("three packs have room for four chunks"),
            },
        }))
    }

    fn on(&mut self, event: Event, _: Now) {
        match event {
            Event::ChunkStored { content, chunk } => {
                self.places.insert(content, Place::Chunk(chunk));
                let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
                shelf.insert(chunk, content);
            }
            Event::Stored { lpn, of } => {
                assert_eq!(of, Of::Lpn(lpn), "nobody makes copies");
                self.wholes += 1;
                self.units.insert(lpn, self.asked);
                for (quarter, content) in self.asked.into_iter().enumerate() {
                    let place = Place::Quarter(lpn, quarter as u8);
                    self.places.entry(content).or_insert(place);
                }
            }
            Event::Became { lpn, vpn } => {
                let contents = self.units.remove(&lpn).expect("a unit that was stored whole");
                self.shelve(vpn, contents);
                for (quarter, content) in contents.into_iter().enumerate() {
                    let place = Place::Quarter(lpn, quarter as u8);
                    if self.places.get(&content) == Some(&place) {
                        self.places.insert(content, Place::Chunk(ChunkId::new(vpn, quarter)));
                    }
                }
            }
            Event::Gone(Of::Lpn(lpn)) => {
                for (quarter, content) in self.units.remove(&lpn).into_iter().flatten().enumerate() {
                    self.forget_place(content, Place::Quarter(lpn, quarter as u8));
                }
            }
            Event::Gone(Of::Vpn(vpn)) => {
                for chunk in (0..CHUNKS).map(|index| ChunkId::new(vpn, index)) {
                    if let Some(content) = self.on_the_shelf(chunk) {
                        self.forget_place(content, Place::Chunk(chunk));
                    }
                }
            }
            Event::ChunkGone(chunk) => {
                // It stays on the shelf: a power cut may bring it back.
                let content = self.on_the_shelf(chunk).expect("a chunk that was stored");
                self.forget_place(content, Place::Chunk(chunk));
            }
        }
    }

    /// The shelf is the flash's, not the controller's.
    fn forget(&mut self) {
        self.places.clear();
        self.units.clear();
    }
}
