//! Fingerprints of quarters of units, and how they are kept while no quarter is known by itself.
//!
//! Of units that are known by one id each the four fingerprints come, are found, move and leave together. Then one entry of a table
//! with a quarter of the room stands for the four, and a write looks up one entry instead of four. With the first unit
//! whose quarters are known the entries are taken apart, and the table is the one that it would be without this.

use serde::{Deserialize, Serialize};

use super::fingerprints::{Fingerprints, Place, Room, SavedTable};
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
        // Otherwise quarters of one unit would leave at different times.
        let is_divisible = room.entries.is_multiple_of(CHUNKS as u32);
        let together = Fingerprints::new(policy, joined)?;
        let halves = together.most_in_second().checked_mul(CHUNKS as u32) == Some(apart.most_in_second());
        Ok(match may_join && is_divisible && (room.entries == 0 || halves) {
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

fn taken_apart(table: &Fingerprints, room: Room) -> Fingerprints {
    let mut apart = table.each_made_of(room, |content, place| {
        let places = places_of(of_place(place));
        quarters_of(content).into_iter().zip(places)
    });
    apart.evicted = table.evicted * CHUNKS as u64;
    apart
}
