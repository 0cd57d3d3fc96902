//! Fingerprints of quarters of units, and how they are kept while no quarter is known by itself.
//!
//! Of units that are known by one id each the four fingerprints come, are found, move and leave together. Then one entry of a table
//! with a quarter of the room stands for the four, and a write looks up one entry instead of four. With the first unit
//! whose quarters are known the entries are taken apart, and the table is the one that it would be without this.

use serde::{Deserialize, Serialize};

use super::fingerprints::{Eviction, Fingerprints, Place, Room, SavedTable};
use super::units::{of_place, place_of};
use crate::indirection::{CHUNKS, ChunkId, Of, Vpn};
use ftlab_core::request::paired;
use ftlab_core::{Lpn, Result};

/// Ids of the quarters of a unit that is known by one id.
pub fn quarters_of(content: u64) -> [u64; CHUNKS] {
    std::array::from_fn(|quarter| paired(content, quarter as u64))
}

pub fn place_of_quarter(lpn: Lpn, quarter: usize) -> Place {
    (u64::from(lpn.0) * CHUNKS as u64 + quarter as u64) << 1
}

pub fn place_of_chunk(chunk: ChunkId) -> Place {
    u64::from(chunk.0) << 1 | 1
}

/// Places of the quarters of what lies whole at `of`.
pub fn places_of(of: Of) -> [Place; CHUNKS] {
    std::array::from_fn(|quarter| match of {
        Of::Lpn(lpn) => place_of_quarter(lpn, quarter),
        Of::Vpn(vpn) => place_of_chunk(ChunkId::new(vpn, quarter)),
    })
}

/// The table of fingerprints.
pub enum Quarters {
    /// An entry for the four quarters of each unit, by [`place_of`]; and the room for quarters.
    Together(Fingerprints, Room),
    Apart(Fingerprints),
}

impl Quarters {
    /// `may_join`: whether units that are known by one id each are all stored whole or found whole.
    ///
    /// # Errors
    /// As [`Fingerprints::new`].
    pub fn new(policy: &str, room: Room, may_join: bool) -> Result<Self> {
        let apart = Fingerprints::new(policy, room)?;
        let joined = Room {
            entries: room.entries / CHUNKS as u32,
            ..room
        };
        let together = Fingerprints::new(policy, joined)?;
        Ok(match may_join && leave_together(room, &apart, &together) {
            true => Quarters::Together(together, room),
            false => Quarters::Apart(apart),
        })
    }

    /// The table of quarters; what was kept together is taken apart.
    pub fn apart(&mut self) -> &mut Fingerprints {
        if let Quarters::Together(table, room) = self {
            *self = Quarters::Apart(taken_apart(table, *room));
        }
        match self {
            Quarters::Apart(table) | Quarters::Together(table, _) => table,
        }
    }

    /// The table whose entries stand for whole units.
    pub fn together(&mut self) -> Option<&mut Fingerprints> {
        match self {
            Quarters::Together(table, _) => Some(table),
            Quarters::Apart(_) => None,
        }
    }

    pub fn count(&self) -> u32 {
        match self {
            Quarters::Together(table, _) => table.count() * CHUNKS as u32,
            Quarters::Apart(table) => table.count(),
        }
    }

    pub fn evicted(&self) -> u64 {
        match self {
            Quarters::Together(table, _) => table.evicted * CHUNKS as u64,
            Quarters::Apart(table) => table.evicted,
        }
    }

    /// Bytes in a drive's memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Quarters::Together(table, _) => table.bytes() * CHUNKS as u64,
            Quarters::Apart(table) => table.bytes(),
        }
    }

    /// What lay whole at an LPN is a value from now on.
    pub fn became(&mut self, lpn: Lpn, vpn: Vpn) {
        let (old, new) = (Of::Lpn(lpn), Of::Vpn(vpn));
        match self {
            Quarters::Together(table, _) => table.renamed(place_of(old), place_of(new)),
            Quarters::Apart(table) => {
                let places = places_of(old).into_iter().zip(places_of(new));
                places.for_each(|(old, new)| table.renamed(old, new));
            }
        }
    }

    /// Nothing is left of what lay at `of`.
    #[inline]
    pub fn gone(&mut self, of: Of) {
        match self {
            Quarters::Together(table, _) => {
                table.gone(place_of(of));
            }
            Quarters::Apart(table) => places_of(of).into_iter().for_each(|place| {
                table.gone(place);
            }),
        }
    }

    pub fn clear(&mut self) {
        match self {
            Quarters::Together(table, _) | Quarters::Apart(table) => table.clear(),
        }
    }

    /// The table of quarters for a saved state.
    pub fn to_saved(&self) -> impl Serialize + use<> {
        match self {
            Quarters::Together(table, room) => taken_apart(table, *room).to_saved(),
            Quarters::Apart(table) => table.to_saved(),
        }
    }

    /// # Errors
    /// As [`Fingerprints::take_over`].
    pub fn take_over(&mut self, SavedQuarters(saved): SavedQuarters) -> std::result::Result<(), String> {
        self.apart().take_over(saved)
    }
}

/// What [`Quarters::to_saved`] has made bytes of.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct SavedQuarters(SavedTable);

/// Whether the quarters of a unit leave one after the other.
fn leave_together(room: Room, apart: &Fingerprints, together: &Fingerprints) -> bool {
    let is_divisible = room.entries.is_multiple_of(CHUNKS as u32);
    let (second, of_units) = (apart.most_in_second(), together.most_in_second());
    match room.eviction {
        _ if room.entries == 0 => true,
        Eviction::Lru => is_divisible,
        // While somebody else is in the first level.
        Eviction::TwoLevel => {
            is_divisible && second < room.entries && of_units.checked_mul(CHUNKS as u32) == Some(second)
        }
        // Where all others have been found before, the first quarter of a new unit leaves for its second.
        Eviction::Count | Eviction::Contexts => false,
    }
}

fn taken_apart(table: &Fingerprints, room: Room) -> Fingerprints {
    let mut apart = table.each_made_of(room, |content, place| {
        let places = places_of(of_place(place));
        quarters_of(content).into_iter().zip(places)
    });
    apart.evicted = table.evicted * CHUNKS as u64;
    apart
}

#[cfg(test)]
mod tests {
    use ftlab_core::Stream;

    use super::*;
    use crate::learnt;

    /// One drive's worth of units that are known by one id each, by both tables. At each step the same is found, and taken apart the
    /// one is the other.
    #[test]
    fn entries_of_whole_units_are_those_of_their_quarters() {
        let rules = [Eviction::Lru, Eviction::TwoLevel];
        let bounded = rules.into_iter().flat_map(|rule| [8, 40, 400].map(|most| (rule, most)));
        for (eviction, entries) in bounded.chain([(Eviction::Count, 0)]) {
            let room = Room {
                entries,
                eviction,
                second: 0.5,
            };
            let mut joined = Quarters::new("test", room, true).unwrap();
            let mut parts = Quarters::new("test", room, false).unwrap();
            let mut random = Stream::new(u64::from(entries), "quarters");
            let mut hits = 0;
            for step in 0..3000 {
                let what = format!("{eviction:?} with room for {entries}, step {step}");
                let (lpn, vpn) = (Lpn(random.below(60) as u32), Vpn(step));
                let content = random.below(20) + random.below(40);
                let table = joined.together().expect("no quarter is known by itself");
                let found = table.find(content);
                let place = found.map(|found| table.place(found));
                found.map(|found| table.hit(found));
                let each = quarters_of(content).map(|content| parts.apart().find(content));
                let places = each.map(|found| found.map(|found| parts.apart().place(found)));
                for content in quarters_of(content) {
                    let table = parts.apart();
                    let found = table.find(content);
                    found.map(|found| table.hit(found));
                }
                match place.map(of_place) {
                    Some(of) => {
                        hits += 1;
                        assert_eq!(places, places_of(of).map(Some), "{what}");
                        if let Of::Lpn(lpn) = of {
                            joined.became(lpn, vpn);
                            parts.became(lpn, vpn);
                        }
                    }
                    None => {
                        assert_eq!(places, [None; CHUNKS], "{what}");
                        let of = Of::Lpn(lpn);
                        joined.gone(of);
                        parts.gone(of);
                        joined.together().unwrap().insert(content, place_of(of), 0);
                        for (content, place) in quarters_of(content).into_iter().zip(places_of(of)) {
                            parts.apart().insert(content, place, 0);
                        }
                    }
                }
                let figures = |table: &Quarters| (table.count(), table.evicted(), table.bytes());
                assert_eq!(figures(&joined), figures(&parts), "{what}");
                // Without a bound there is no order to compare.
                if entries > 0 {
                    let saved = |table: &Quarters| learnt::save(&table.to_saved());
                    assert_eq!(saved(&joined), saved(&parts), "{what}");
                }
            }
            assert!(hits > 100, "{eviction:?} with room for {entries}: {hits} hits");
            let count = joined.count();
            assert_eq!(joined.apart().count(), count);
        }
    }

    /// Where quarters of one unit would leave at different times, or units are stored in chunks from the start.
    #[test]
    fn quarters_are_apart_where_they_do_not_leave_together() {
        let is_together = |entries, eviction, second, may_join| {
            let room = Room {
                entries,
                eviction,
                second,
            };
            let mut table = Quarters::new("test", room, may_join).unwrap();
            table.together().is_some()
        };
        assert!(is_together(400, Eviction::TwoLevel, 0.5, true));
        assert!(!is_together(400, Eviction::TwoLevel, 0.503, true));
        assert!(!is_together(400, Eviction::TwoLevel, 1.0, true));
        assert!(!is_together(400, Eviction::Count, 0.5, true));
        assert!(!is_together(402, Eviction::Lru, 0.5, true));
        assert!(!is_together(400, Eviction::Lru, 0.5, false));
    }
}
