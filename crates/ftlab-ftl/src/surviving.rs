//! Values after a power cut, on a drive whose memory is not protected.
//!
//! A spare area names the value that lies there, and, written by the host, the LPN that it was written for. Which other LPNs
//! refer to a value, and which chunks a unit consists of, is known from the last checkpoint and the journal. The number of a
//! dead value is not used again before a checkpoint says that it is free, so a number on flash has one meaning. Of several
//! copies the newest is taken over. Of a value that collection has gathered with others it is the oldest place that is still there:
//! chunks that have died since lie nowhere else, and they live again if the change that ended them is lost. What refers to a value
//! that is not in flash never happened: the older version stays, which is why no unit is erased before everything that
//! replaced its data is in flash (`gc::secure_copies`).

use ftlab_core::{Lpn, Slot};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::backend::Backend;
use crate::changes::What;
use crate::dedup;
use crate::ftl::Ftl;
use crate::indirection::{ChunkRow, Held, Indirection, Vpn};
use crate::owner::{Owner, Packed};
use crate::record::{Entry, Target};
use crate::recovery::{Event, Recovery};
use crate::replication;

/// What the spare area of a slot says beside its owner in the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spare {
    /// The value was written for this LPN; with the length of the log when its page was programmed.
    For(Lpn, u32),
    /// The value was the unit of this LPN when its page was programmed; with the length of the log when it became one.
    Was(Lpn, u32),
}

impl Spare {
    /// Whether it says more than a checkpoint taken when the log was `at` long; if so, its place is counted from there.
    pub fn is_newer_than(&mut self, at: u32) -> bool {
        match self {
            Spare::For(_, ASSEMBLING) => true,
            Spare::For(_, position) | Spare::Was(_, position) => match position.checked_sub(at) {
                Some(shifted) => {
                    *position = shifted;
                    true
                }
                None => false,
            },
        }
    }
}

/// In [`Spare::For`]: the page is still being assembled.
pub(crate) const ASSEMBLING: u32 = u32::MAX;

/// The entries of the map behind which values and rows lie, at a checkpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValuesThen {
    entries: Vec<(Lpn, Entry)>,
    rows: Vec<ChunkRow>,
    /// Values that are gathered with others, and their gatherings.
    gathered: Vec<(Vpn, Vpn, Held)>,
    /// Numbers of dead values that may be used again once the checkpoint is complete.
    pub resting: u32,
}

impl ValuesThen {
    /// Keeps those gathered values of which `lies_in` says that they lie there.
    pub fn retain_gathered(&mut self, lies_in: impl Fn(Vpn, Vpn) -> bool) {
        self.gathered
            .retain(|&(member, gathering, _)| lies_in(member, gathering));
    }
}

/// Spare areas by slot, as far as they say more than the record.
pub(crate) type Spares = FxHashMap<u32, Spare>;

impl<B: Backend> Ftl<B> {
    /// Whether changes of values must be kept for the journal.
    #[inline]
    pub(crate) fn journals_values(&self) -> bool {
        self.recovery.is_some() && !self.config.buffer.power_loss_protected && !self.roles.is_none()
    }

    /// The entry of `lpn` has come to lie behind a value or a row.
    pub(crate) fn journal_entry(&mut self, lpn: Lpn, entry: Entry) {
        if !self.journals_values() {
            return;
        }
        let Some(recovery) = &mut self.recovery else { return };
        match entry.target() {
            Target::Vpn(vpn) => recovery.refers(lpn, vpn),
            Target::Chunks(row) => recovery.consists(lpn, self.indirection.row(row)),
            Target::Unmapped | Target::Slot(_) => {}
        }
    }

    /// What is left of a value has been gathered with others.
    pub(crate) fn journal_gathered(&mut self, member: Vpn, gathering: Vpn) {
        if self.journals_values()
            && let Some(recovery) = &mut self.recovery
        {
            recovery.gathered(member, gathering, self.indirection.live(member));
        }
    }

    /// The unit of `lpn`, which lies directly, becomes a value; `None` if no number is left.
    pub(crate) fn make_value(&mut self, lpn: Lpn, slot: Slot) -> Option<Vpn> {
        let vpn = self.indirection.create()?;
        self.indirection.add_copy(vpn, slot);
        self.record.set_owner(slot, Packed::from(Owner::Vpn(vpn)));
        self.record.set_entry(lpn, Entry::vpn(vpn));
        if self.journals_values() {
            let assembling = self.being_filled(self.layout.page_of(slot));
            if let Some(recovery) = &mut self.recovery {
                if assembling {
                    recovery.spares.insert(slot.0, Spare::For(lpn, ASSEMBLING));
                } else {
                    let at = recovery.log_length();
                    recovery.spares.insert(slot.0, Spare::Was(lpn, at));
                    recovery.lies(vpn, slot);
                }
                recovery.refers(lpn, vpn);
            }
        }
        self.tell_dedup(dedup::Event::Became { lpn, vpn });
        self.tell_replication(replication::Event::Became { lpn, vpn });
        self.tell_place(lpn);
        Some(vpn)
    }

    /// The host has written a value for `lpn` to `slot`.
    pub(crate) fn written_for(&mut self, lpn: Lpn, slot: Slot) {
        if self.journals_values() {
            let assembling = self.being_filled(self.layout.page_of(slot));
            if let Some(recovery) = &mut self.recovery {
                let at = if assembling {
                    ASSEMBLING
                } else {
                    recovery.log_length() - 1
                };
                recovery.spares.insert(slot.0, Spare::For(lpn, at));
            }
        }
    }

    /// The page that ends with `last` is about to be programmed: its spare areas name those LPNs that still refer to what
    /// was written for them.
    #[cold]
    pub(crate) fn fix_spares(&mut self, first: Slot, last: Slot) {
        let Some(recovery) = &mut self.recovery else { return };
        let at = recovery.log_length();
        for slot in first.0..=last.0 {
            if let Some(Spare::For(lpn, page)) = recovery.spares.get_mut(&slot) {
                let (lpn, owner) = (*lpn, Owner::from(self.record.owner(Slot(slot))));
                match (owner, self.record.entry(lpn).target()) {
                    (Owner::Vpn(owner), Target::Vpn(vpn)) if owner == vpn => *page = at,
                    _ => {
                        recovery.spares.remove(&slot);
                    }
                }
            }
        }
    }

    /// What a checkpoint says of values. Everything is in flash by now, the pack that was being filled included.
    pub(crate) fn values_now(&self) -> ValuesThen {
        let mut then = ValuesThen::default();
        if !self.journals_values() {
            return then;
        }
        then.resting = self.indirection.resting();
        let gathered = self.indirection.gathered();
        then.gathered = gathered
            .map(|(member, gathering)| (member, gathering, self.indirection.live(member)))
            .collect();
        for lpn in (0..self.config.logical_units).map(Lpn) {
            match self.record.entry(lpn).target() {
                Target::Unmapped | Target::Slot(_) => {}
                Target::Vpn(vpn) => then.entries.push((lpn, Entry::vpn(vpn))),
                Target::Chunks(row) => {
                    then.entries.push((lpn, Entry::chunks(then.rows.len() as u32)));
                    then.rows.push(self.indirection.row(row));
                }
            }
        }
        then
    }

    /// Finds the newest place of every value.
    pub(crate) fn find_values(&mut self, recovery: &Recovery) {
        self.indirection.clear();
        // Units that became values later, and are in flash.
        let mut units = FxHashSet::default();
        let per_page = self.layout.units_per_page;
        let mut gathered = recovery.base_values.gathered.clone();
        let (indirection, record) = (&mut self.indirection, &self.record);
        let is_lost = |slot: Slot| self.lost.as_ref().is_some_and(|lost| lost.has(slot));
        let found = |indirection: &mut Indirection, slot: Slot, units: &mut FxHashSet<Slot>| {
            if matches!(recovery.spares.get(&slot.0), Some(Spare::Was(..))) {
                units.insert(slot);
            } else if let Owner::Vpn(vpn) = Owner::from(record.owner(slot)) {
                // The newest place, unless that lay on a die that failed: a number is not used again before the next checkpoint, so
                // that all places hold the same.
                let is_good = |place: Slot| !is_lost(place);
                if is_good(slot) || !indirection.first_slot(vpn).is_some_and(is_good) {
                    indirection.recover(vpn, Some(slot));
                }
            }
        };
        recovery.replay(&self.layout, |event| match event {
            Event::Kept(slot) => found(indirection, slot, &mut units),
            Event::Programmed(page) => {
                let first = page * per_page;
                (first..first + per_page).for_each(|slot| found(indirection, Slot(slot), &mut units));
            }
            Event::Changed(What::Lies(vpn, slot), at) => {
                // The unit may be torn, and another one that became a value before it may have come back with its unit.
                let is_it = matches!(recovery.spares.get(&slot.0), Some(Spare::Was(_, then)) if *then == at);
                indirection.recover(vpn, (is_it && units.contains(&slot)).then_some(slot));
            }
            Event::Changed(What::Gathered(member, gathering, held), _) => gathered.push((member, gathering, held)),
            // A number that the journal names must not be given to another value while the journal says so.
            Event::Changed(What::Entry(_, entry), _) => match entry.target() {
                Target::Unmapped | Target::Slot(_) => {}
                Target::Vpn(vpn) => indirection.recover(vpn, None),
                Target::Chunks(row) => {
                    let chunks = recovery.changes.rows()[row as usize];
                    chunks.iter().for_each(|chunk| indirection.recover(chunk.value(), None));
                }
            },
        });
        for (member, gathering, held) in gathered {
            indirection.recover(member, None);
            indirection.recover(gathering, None);
            if indirection.first_slot(member).is_none() && indirection.first_slot(gathering).is_some() {
                indirection.recover_member(member, gathering, held);
            }
        }
    }

    /// Whether all that the entry refers to is in flash.
    fn survives(&self, entry: Entry, rows: &[ChunkRow]) -> bool {
        let is_found = |vpn: Vpn| self.indirection.first_slot(vpn).is_some();
        match entry.target() {
            Target::Unmapped | Target::Slot(_) => true,
            Target::Vpn(vpn) => is_found(vpn),
            Target::Chunks(row) => rows[row as usize]
                .iter()
                .all(|&chunk| is_found(chunk.value()) && self.indirection.lies_there(chunk)),
        }
    }

    /// The entries that the last checkpoint says. Rows go by their numbers in `rows` until [`Ftl::count_references`].
    pub(crate) fn entries_then(&mut self, then: &ValuesThen, rows: &mut Vec<ChunkRow>) {
        rows.extend_from_slice(&then.rows);
        for &(lpn, entry) in &then.entries {
            if self.survives(entry, rows) {
                self.record.set_entry(lpn, entry);
            }
        }
    }

    /// The journal says that the entry of `lpn` has changed; its rows begin at `first_row`.
    pub(crate) fn change_entry(&mut self, lpn: Lpn, entry: Entry, rows: &[ChunkRow], first_row: usize) {
        let entry = match entry.target() {
            Target::Chunks(row) => Entry::chunks(row + first_row as u32),
            _ => entry,
        };
        if self.survives(entry, rows) {
            self.record.set_entry(lpn, entry);
        }
    }

    /// Values and rows as far as the rebuilt map refers to them. LPNs of which only a spare area says that they refer to a value
    /// are added to `by_spare`.
    pub(crate) fn count_references(&mut self, rows: &[ChunkRow], by_spare: &mut Vec<Lpn>) {
        for lpn in (0..self.config.logical_units).map(Lpn) {
            match self.record.entry(lpn).target() {
                Target::Unmapped => {}
                Target::Slot(slot) => match Owner::from(self.record.owner(slot)) {
                    // The journal says that the unit became a value, but has lost that its LPN refers to that.
                    Owner::Vpn(vpn) if self.indirection.lies_at(vpn, slot) => {
                        self.record.set_entry(lpn, Entry::vpn(vpn));
                        self.indirection.acquire(vpn);
                        by_spare.push(lpn);
                    }
                    // That it had become one is not known any more.
                    Owner::Vpn(_) => self.record.set_owner(slot, Packed::lpn(lpn)),
                    _ => {}
                },
                Target::Vpn(vpn) => self.indirection.acquire(vpn),
                Target::Chunks(row) => {
                    let row = self.indirection.recover_row(rows[row as usize]);
                    self.record.set_entry(lpn, Entry::chunks(row));
                }
            }
        }
        self.indirection.rejoin();
        self.indirection.recovered();
    }
}
