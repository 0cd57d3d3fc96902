//! What members that share whole units have in common: fingerprints of units, kept up by the mechanism's events.

use ftlab_core::{Lpn, Result};
use serde::Serialize;

use super::fingerprints::{Fingerprints, Found, Left, Place, Room, SavedTable};
use super::{Decision, Event};
use crate::indirection::{Of, Vpn};

/// Fingerprints of units, and the one that is being stored.
pub struct Units {
    pub table: Fingerprints,
    storing: Option<(u64, u32)>,
    /// Duplicates found since the drive was new.
    pub found: u64,
}

pub fn place_of(of: Of) -> Place {
    match of {
        Of::Lpn(lpn) => u64::from(lpn.0) << 1,
        Of::Vpn(vpn) => u64::from(vpn.0) << 1 | 1,
    }
}

fn of_place(place: Place) -> Of {
    match place & 1 {
        0 => Of::Lpn(Lpn((place >> 1) as u32)),
        _ => Of::Vpn(Vpn((place >> 1) as u32)),
    }
}

/// What became of a unit whose fingerprint has been looked up.
pub enum Looked {
    /// It is mapped to what a fingerprint stands for, which was of this context.
    Shared {
        decision: Decision,
        context: u32,
        left: Option<Left>,
    },
    /// It is stored, and its fingerprint comes into the table then.
    New,
}

impl Units {
    /// # Errors
    /// As [`Fingerprints::new`].
    pub fn new(policy: &str, room: Room) -> Result<Self> {
        Ok(Units {
            table: Fingerprints::new(policy, room)?,
            storing: None,
            found: 0,
        })
    }

    /// Looks for the fingerprint of a unit that is written by `context`.
    #[inline]
    pub fn look_up(&mut self, content: u64, context: u32) -> Looked {
        let Some(found) = self.table.find(content) else {
            self.storing = Some((content, context));
            return Looked::New;
        };
        self.storing = None;
        self.shared(found)
    }

    fn shared(&mut self, found: Found) -> Looked {
        self.found += 1;
        let (place, context) = (self.table.place(found), self.table.context(found));
        Looked::Shared {
            decision: Decision::Share(of_place(place)),
            context,
            left: self.table.hit(found),
        }
    }

    /// Where the content of an examined unit lies, if its fingerprint is there.
    pub fn elsewhere(&self, content: u64) -> Option<Of> {
        self.table.find(content).map(|found| of_place(self.table.place(found)))
    }

    /// The unit that is written next is stored without a fingerprint.
    pub fn pass(&mut self) {
        self.storing = None;
    }

    /// The content whose unit is being stored and gets a fingerprint.
    pub fn storing(&self) -> Option<u64> {
        self.storing.map(|(content, _)| content)
    }

    /// An examined unit gets a fingerprint, which is not in the table. Who had to leave.
    pub fn knows(&mut self, content: u64, lpn: Lpn) -> Option<Left> {
        self.table.insert(content, place_of(Of::Lpn(lpn)), 0)
    }

    /// What is gone takes its fingerprint with it.
    #[inline]
    pub fn gone(&mut self, of: Of) -> Option<Left> {
        self.table.gone(place_of(of))
    }

    /// Follows what the mechanism has done. A fingerprint that had to leave for the new one.
    #[inline]
    pub fn on(&mut self, event: Event) -> Option<Left> {
        match event {
            Event::Stored { of, .. } => {
                let (content, context) = self.storing.take()?;
                self.table.insert(content, place_of(of), context)
            }
            Event::Became { lpn, vpn } => {
                self.table.renamed(place_of(Of::Lpn(lpn)), place_of(Of::Vpn(vpn)));
                None
            }
            // A fingerprint that is gone has not been evicted.
            Event::Gone(of) => {
                self.gone(of);
                None
            }
            Event::ChunkStored { .. } | Event::ChunkGone(_) => None,
        }
    }

    pub fn forget(&mut self) {
        self.table.clear();
        self.storing = None;
    }

    pub fn report(&self) -> [(&'static str, f64); 3] {
        [
            ("duplicates", self.found as f64),
            ("fingerprints", f64::from(self.table.len())),
            ("evicted", self.table.evicted as f64),
        ]
    }

    pub fn to_saved(&self) -> impl Serialize + use<> {
        (self.table.to_saved(), self.found)
    }

    /// # Errors
    /// As [`Fingerprints::take_over`].
    pub fn take_over(&mut self, (table, found): (SavedTable, u64)) -> std::result::Result<(), String> {
        self.found = found;
        self.table.take_over(table)
    }
}
