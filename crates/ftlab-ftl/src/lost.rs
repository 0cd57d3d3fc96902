//! A die that fails: what lay on it is lost.
//!
//! # Model
//! Every page of the die loses what it holds, present and older versions alike; pages that are still being assembled in the controller
//! do not. A spare die takes its place at once, so that lanes, blocks and counts stay what they are. A unit whose every place is lost
//! can't be read; it stays lost wherever collection moves it, and through power cuts, until it is written or trimmed. The dedup policy
//! forgets the fingerprints of what is lost, so that nothing new comes to share it, and what is known of values is put into the
//! journal. What a read cache holds can be read until it leaves it.
//!
//! # Not modelled
//! Translation pages, journal and checkpoints are not lost: a controller keeps them on two dies. Parity over dies. The time in which
//! the spare die is made ready. A saved state does not say what is lost.
//!
//! # Cost
//! A bit a slot, from the first failure on; until then a look at an empty pointer a program.

use std::ops::Range;

use ftlab_core::{Layout, Lpn, Slot};

use crate::backend::{Backend, Ticket};
use crate::dedup::Event;
use crate::ftl::Ftl;
use crate::indirection::{Of, Vpn};
use crate::record::Target;

/// Slots whose data is lost.
pub(crate) struct Lost {
    slots: Vec<u64>,
}

impl Lost {
    fn new(layout: &Layout) -> Self {
        Lost {
            slots: vec![0; layout.slots().div_ceil(64) as usize],
        }
    }

    pub fn has(&self, slot: Slot) -> bool {
        self.slots[slot.0 as usize / 64] >> (slot.0 % 64) & 1 == 1
    }

    /// Which of `slots` are lost; empty: none.
    pub fn of(&self, slots: Range<usize>) -> Vec<bool> {
        let all: Vec<bool> = slots.map(|slot| self.has(Slot(slot as u32))).collect();
        if all.contains(&true) { all } else { Vec::new() }
    }

    /// The `count` slots from `first` on hold again what they did when [`Lost::of`] was asked.
    pub fn restore(&mut self, first: usize, count: usize, lost: &[bool]) {
        for at in 0..count {
            self.set(Slot((first + at) as u32), lost.get(at).copied().unwrap_or(false));
        }
    }

    fn set(&mut self, slot: Slot, lost: bool) {
        let (word, bit) = (&mut self.slots[slot.0 as usize / 64], 1 << (slot.0 % 64));
        *word = if lost { *word | bit } else { *word & !bit };
    }
}

impl<B: Backend> Ftl<B> {
    /// Die number `die` fails. Returns how many logical units hold data that can't be read now, those of earlier failures among them.
    ///
    /// # Panics
    /// If there is no such die.
    pub fn fail_die(&mut self, die: u32) -> u64 {
        let layout = &self.layout;
        assert!(
            die < layout.geometry.total_dies(),
            "die {die} of {}",
            layout.geometry.total_dies()
        );
        let mut lost = self.lost.take().unwrap_or_else(|| Box::new(Lost::new(layout)));
        let per_page = layout.units_per_page;
        let on_die = |page| layout.die_of_plane(layout.address(page).plane) == die;
        for page in (0..layout.slots() / per_page).filter(|&page| on_die(page) && !self.being_filled(page)) {
            (page * per_page..(page + 1) * per_page).for_each(|slot| lost.set(Slot(slot), true));
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.lose(layout, |slot| on_die(layout.page_of(slot)));
        }
        self.lost = Some(lost);
        self.forget_what_is_lost();
        // Which copies are left must not depend on what a power cut forgets.
        if !self.end_of_life && self.journals_values() && self.program_packs(Ticket::NONE) {
            self.write_journal(Ticket::NONE);
        }
        let units = (0..self.config.logical_units).filter(|&lpn| self.is_lost(Lpn(lpn)));
        units.count() as u64
    }

    /// The dedup policy is told of lost units as of those that are gone, so that nothing new comes to share them.
    fn forget_what_is_lost(&mut self) {
        if self.roles.dedup.is_none() {
            return;
        }
        let is_lost = |lpn: &Lpn| {
            let slot = self.record.entry(*lpn).as_slot();
            slot.is_some_and(|slot| self.is_slot_lost(slot))
        };
        let lpns = (0..self.config.logical_units).map(Lpn).filter(is_lost);
        let values = self.indirection.in_use().filter(|&vpn| self.is_value_lost(vpn));
        let all: Vec<Of> = lpns.map(Of::Lpn).chain(values.map(Of::Vpn)).collect();
        all.into_iter().for_each(|of| self.tell_dedup(Event::Gone(of)));
    }

    /// Whether what `lpn` holds lay on a die that failed.
    pub fn is_lost(&self, lpn: Lpn) -> bool {
        let Some(lost) = &self.lost else { return false };
        if self.buffer.held(lpn).is_some() {
            return false;
        }
        match self.record.entry(lpn).target() {
            Target::Unmapped => false,
            Target::Slot(slot) => lost.has(slot),
            Target::Vpn(vpn) => self.is_value_lost(vpn),
            Target::Chunks(row) => {
                let chunks = self.indirection.row(row);
                chunks.iter().any(|chunk| self.is_value_lost(chunk.value()))
            }
        }
    }

    /// Whether the write buffer holds a version of `lpn` that flash does not have yet.
    pub fn is_dirty(&self, lpn: Lpn) -> bool {
        self.buffer.is_dirty(lpn)
    }

    /// Whether every copy of a value is lost. One that is in flash nowhere yet is not.
    pub(crate) fn is_value_lost(&self, vpn: Vpn) -> bool {
        let Some(lost) = &self.lost else { return false };
        let mut copies = self.indirection.copies_of(vpn).peekable();
        copies.peek().is_some() && copies.all(|slot| lost.has(slot))
    }

    pub(crate) fn is_slot_lost(&self, slot: Slot) -> bool {
        self.lost.as_ref().is_some_and(|lost| lost.has(slot))
    }

    /// Something was programmed into `slot`, which is lost if what it is a copy of was.
    #[inline(always)]
    pub(crate) fn lost_or_not(&mut self, slot: Slot, is_lost: bool) {
        if let Some(lost) = &mut self.lost {
            lost.set(slot, is_lost);
        }
    }
}
