//! What members that share whole units have in common: fingerprints of units, kept up by the mechanism's events.

use ftlab_core::{Lpn, Result};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::fingerprints::{Fingerprints, Found, Left, Place, Room, SavedTable};
use super::{Alone, Event};
use crate::indirection::{Of, Vpn};

/// Fingerprints of units, and the one that is being stored.
pub struct Units {
    pub table: Fingerprints,
    storing: Option<Storing>,
    /// Fingerprints that had to leave while their data lives, as its spare areas say them; kept if they come back with reads.
    given_up: Option<FxHashMap<Place, (u64, u32)>>,
    prefetched: u64,
    /// Duplicates found since the drive was new.
    pub found: u64,
}

/// A unit whose fingerprint was not in the table when it was looked up.
#[derive(Clone, Copy)]
struct Storing {
    content: u64,
    context: u32,
    /// [`Fingerprints::entered`] at that time: a collection may have brought it in since.
    entered: u64,
}

#[inline]
pub fn place_of(of: Of) -> Place {
    match of {
        Of::Lpn(lpn) => u64::from(lpn.0) << 1,
        Of::Vpn(vpn) => u64::from(vpn.0) << 1 | 1,
    }
}

#[inline]
pub fn of_place(place: Place) -> Of {
    match place & 1 {
        0 => Of::Lpn(Lpn((place >> 1) as u32)),
        _ => Of::Vpn(Vpn((place >> 1) as u32)),
    }
}

/// What [`Units::to_saved`] has made bytes of.
#[derive(Deserialize)]
pub struct SavedUnits(SavedTable, u64, Vec<(Place, u64, u32)>, u64);

/// What became of a unit whose fingerprint has been looked up.
pub enum Looked {
    /// It is mapped to what lies there, whose fingerprint was of this context.
    Shared { of: Of, context: u32, left: Option<Left> },
    /// It is stored, and its fingerprint comes into the table then.
    New,
}

impl Looked {
    #[inline]
    pub fn alone(self) -> Alone {
        match self {
            Looked::Shared { of, .. } => Alone::Share(of),
            Looked::New => Alone::Store,
        }
    }
}

impl Units {
    /// # Errors
    /// As [`Fingerprints::new`].
    pub fn new(policy: &str, room: Room) -> Result<Self> {
        Ok(Units {
            table: Fingerprints::new(policy, room)?,
            storing: None,
            given_up: None,
            prefetched: 0,
            found: 0,
        })
    }

    /// Fingerprints come back when their data is read.
    #[must_use]
    pub fn prefetching(self, prefetches: bool) -> Self {
        Units {
            given_up: prefetches.then(FxHashMap::default),
            ..self
        }
    }

    pub fn prefetches(&self) -> bool {
        self.given_up.is_some()
    }

    fn gives_up(&mut self, left: Option<Left>) -> Option<Left> {
        if let (Some(given_up), Some(left)) = (&mut self.given_up, left) {
            let (content, place) = self.table.left_last();
            given_up.insert(place, (content, left.context));
        }
        left
    }

    /// The host reads what lies at `of`: its fingerprint comes back, if it had to leave. Who had to leave for it.
    pub fn read(&mut self, of: Of) -> Option<Left> {
        let place = place_of(of);
        let given_up = self.given_up.as_mut()?;
        let &(content, context) = given_up.get(&place)?;
        // Another place of the same content has the fingerprint at present.
        if self.table.find(content).is_some() {
            return None;
        }
        given_up.remove(&place);
        self.prefetched += 1;
        let left = self.table.insert(content, place, context);
        self.gives_up(left)
    }

    /// Looks for the fingerprint of a unit that is written by `context`.
    #[inline]
    pub fn look_up(&mut self, content: u64, context: u32) -> Looked {
        let Some(found) = self.table.find(content) else {
            self.look_for_absent(content, context);
            return Looked::New;
        };
        self.storing = None;
        self.shared(found)
    }

    /// The same of one that is known not to be there.
    #[inline]
    pub fn look_for_absent(&mut self, content: u64, context: u32) {
        self.storing = Some(Storing {
            content,
            context,
            entered: self.table.entered(),
        });
    }

    #[inline]
    fn shared(&mut self, found: Found) -> Looked {
        self.found += 1;
        let (place, context) = (self.table.place(found), self.table.context(found));
        let left = self.table.hit(found);
        Looked::Shared {
            of: of_place(place),
            context,
            left: self.gives_up(left),
        }
    }

    /// Where the content of an examined unit lies, if its fingerprint is there; that is a hit of it.
    pub fn elsewhere(&mut self, content: u64) -> Option<Of> {
        let found = self.table.find(content)?;
        let of = of_place(self.table.place(found));
        let left = self.table.hit(found);
        self.gives_up(left);
        Some(of)
    }

    /// The unit that is written next is stored without a fingerprint.
    pub fn pass(&mut self) {
        self.storing = None;
    }

    /// An examined unit gets a fingerprint, which is not in the table.
    pub fn knows(&mut self, content: u64, lpn: Lpn) {
        let left = self.table.insert(content, place_of(Of::Lpn(lpn)), 0);
        self.gives_up(left);
    }

    /// What is gone takes its fingerprint with it.
    #[inline]
    pub fn gone(&mut self, of: Of) {
        if let Some(given_up) = &mut self.given_up {
            given_up.remove(&place_of(of));
        }
        self.table.gone(place_of(of));
    }

    /// The unit of `lpn` is gone, and the one that is being stored has its place. A fingerprint that had to leave for the new one.
    #[inline]
    pub fn replaced(&mut self, lpn: Lpn) -> Option<Left> {
        let of = Of::Lpn(lpn);
        match self.storing {
            Some(storing) if storing.entered == self.table.entered() => {
                self.storing = None;
                if let Some(given_up) = &mut self.given_up {
                    given_up.remove(&place_of(of));
                }
                let left = self.table.replace(place_of(of), storing.content, storing.context);
                self.gives_up(left)
            }
            _ => {
                self.gone(of);
                self.on(Event::Stored { lpn, of })
            }
        }
    }

    /// Follows what the mechanism has done. A fingerprint that had to leave for the new one.
    #[inline]
    pub fn on(&mut self, event: Event) -> Option<Left> {
        match event {
            Event::Stored { of, .. } => {
                let Storing {
                    content,
                    context,
                    entered,
                } = self.storing.take()?;
                let left = if entered == self.table.entered() {
                    self.table.insert_absent(content, place_of(of), context)
                } else {
                    self.table.insert(content, place_of(of), context)
                };
                self.gives_up(left)
            }
            Event::Became { lpn, vpn } => {
                let (old, new) = (place_of(Of::Lpn(lpn)), place_of(Of::Vpn(vpn)));
                self.table.renamed(old, new);
                if let Some(given_up) = &mut self.given_up
                    && let Some(fingerprint) = given_up.remove(&old)
                {
                    given_up.insert(new, fingerprint);
                }
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
        self.given_up.iter_mut().for_each(FxHashMap::clear);
    }

    /// Contents that are known, with what holds them.
    pub fn contents(&self) -> Vec<(Of, u64)> {
        let given_up = self.given_up.iter().flatten();
        let given_up = given_up.map(|(&place, &(content, _))| (content, place));
        let all = self.table.contents().chain(given_up);
        all.map(|(content, place)| (of_place(place), content)).collect()
    }

    pub fn report(&self) -> Vec<(&'static str, f64)> {
        let mut report = vec![
            ("duplicates", self.found as f64),
            ("fingerprints", f64::from(self.table.count())),
            ("evicted", self.table.evicted as f64),
        ];
        if self.prefetches() {
            report.push(("prefetched", self.prefetched as f64));
        }
        report
    }

    pub fn to_saved(&self) -> impl Serialize + use<> {
        let mut given_up: Vec<(Place, u64, u32)> = match &self.given_up {
            Some(given_up) => given_up
                .iter()
                .map(|(&place, &(content, context))| (place, content, context))
                .collect(),
            None => Vec::new(),
        };
        given_up.sort_unstable();
        (self.table.to_saved(), self.found, given_up, self.prefetched)
    }

    /// # Errors
    /// As [`Fingerprints::take_over`].
    pub fn take_over(&mut self, saved: SavedUnits) -> std::result::Result<(), String> {
        let SavedUnits(table, found, given_up, prefetched) = saved;
        (self.found, self.prefetched) = (found, prefetched);
        self.given_up = self.given_up.is_some().then(|| {
            let fingerprints = given_up.into_iter();
            fingerprints
                .map(|(place, content, context)| (place, (content, context)))
                .collect()
        });
        self.table.take_over(table)
    }
}
