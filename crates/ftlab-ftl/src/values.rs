//! Units behind values and rows of chunks: what refers to them, where they lie, and how they are read.

use crate::backend::{Backend, Need, Ticket};
use crate::dedup;
use crate::ftl::Ftl;
use crate::indirection::{CHUNKS, ChunkRow, Of, Released, Vpn};
use crate::mapping::Why;
use crate::pages_to_read::{PagesToRead, Shared};
use crate::record::{Entry, Target};
use crate::replication::Event;
use ftlab_core::{Lpn, Slot};

impl<B: Backend> Ftl<B> {
    /// A virtual page has been made or has got another place: its entry in table 1 changes.
    pub(crate) fn vpn_changed(&mut self, vpn: Vpn, ticket: Ticket) {
        if !self.plain_mapping {
            self.look_up(1, vpn.0..vpn.0 + 1, vpn.0 + 1, Why::HostWrite, ticket);
            self.map_changed(1, vpn.0, ticket);
        }
    }

    /// A row of chunks has been made: its entry in table 2 changes.
    pub(crate) fn row_changed(&mut self, row: u32, ticket: Ticket) {
        if !self.plain_mapping {
            self.look_up(2, row..row + 1, row + 1, Why::HostWrite, ticket);
            self.map_changed(2, row, ticket);
        }
    }

    /// Lets the record of `lpn` point to a value or a row and gives up what it pointed to.
    pub(crate) fn repoint(&mut self, lpn: Lpn, entry: Entry) {
        let old = self.record.entry(lpn);
        self.record.set_entry(lpn, entry);
        self.journal_entry(lpn, entry);
        match old.target() {
            Target::Unmapped => {}
            Target::Slot(slot) => {
                self.invalidate(slot);
                self.tell_dedup(dedup::Event::Gone(Of::Lpn(lpn)));
            }
            Target::Vpn(_) | Target::Chunks(_) => self.release(old),
        }
        self.tell_place(lpn);
    }

    /// Gives up a reference to a value, or a row.
    #[inline]
    pub(crate) fn release(&mut self, entry: Entry) {
        let is_done = match entry.target() {
            Target::Vpn(vpn) => self.indirection.release_one_of_several(vpn),
            _ => false,
        };
        if !is_done {
            self.release_whole(entry);
        }
    }

    #[cold]
    fn release_whole(&mut self, entry: Entry) {
        let mut released = std::mem::take(&mut self.roles.released);
        match entry.target() {
            Target::Unmapped | Target::Slot(_) => {}
            Target::Vpn(vpn) => self.indirection.release(vpn, &mut released),
            Target::Chunks(row) => self.indirection.release_row(row, &mut released),
        }
        self.end_of(released);
    }

    /// What a release has ended is no longer valid, and whoever knew of it is told.
    pub(crate) fn end_of(&mut self, mut released: Released) {
        self.roles.further -= released.further;
        released.slots.iter().for_each(|&slot| self.invalidate(slot));
        for &chunk in &released.dead_chunks {
            self.tell_dedup(dedup::Event::ChunkGone(chunk));
        }
        for &vpn in &released.dead {
            self.tell_replication(Event::Gone(Of::Vpn(vpn)));
            self.tell_dedup(dedup::Event::Gone(Of::Vpn(vpn)));
        }
        released.clear();
        self.roles.released = released;
    }

    /// Adds the slots in which the unit of `entry` lies to `slots`; those of a pack being filled are none.
    pub(crate) fn places_into(&self, entry: Entry, slots: &mut Vec<Slot>) {
        match entry.target() {
            Target::Unmapped => {}
            Target::Slot(slot) => slots.push(slot),
            Target::Vpn(vpn) => slots.extend(self.indirection.copies_of(vpn)),
            Target::Chunks(row) => {
                let chunks = self.indirection.row(row);
                slots.extend(
                    chunks
                        .iter()
                        .filter_map(|chunk| self.indirection.first_slot(chunk.value())),
                );
            }
        }
    }

    /// A request that is not acknowledged from memory waits for the programs of what its units refer to: a write whose content
    /// was there may have found it on its way to flash.
    pub(crate) fn wait_for_values(&mut self, units: std::ops::Range<u32>, ticket: Ticket) {
        if !B::TIMED || ticket == Ticket::NONE {
            return;
        }
        let (mut slots, mut programs) = (
            std::mem::take(&mut self.roles.slots),
            std::mem::take(&mut self.roles.programs),
        );
        slots.clear();
        units.for_each(|lpn| self.places_into(self.record.entry(Lpn(lpn)), &mut slots));
        programs.clear();
        let pages = slots.iter().map(|&slot| self.layout.page_of(slot));
        let under_way = pages.filter_map(|page| self.roles.program_of(page));
        programs.extend(under_way.filter(|&program| !self.backend.is_done(program)));
        if !programs.is_empty() {
            self.backend.join(&programs, Need::All, ticket, None);
        }
        (self.roles.slots, self.roles.programs) = (slots, programs);
    }

    /// The unit that is being stored lies in `slot` (checked runs).
    pub(crate) fn stamp_slot(&mut self, slot: Slot) {
        if let Some(versions) = &mut self.versions {
            versions.programmed(slot);
        }
    }

    /// Looks up where the values and rows lie that units of a read refer to.
    pub(crate) fn look_up_behind(&mut self, units: std::ops::Range<u32>, ticket: Ticket) {
        for lpn in units.map(Lpn) {
            if !self.plain_buffer && self.buffer.held(lpn).is_some() {
                continue;
            }
            match self.record.entry(lpn).target() {
                Target::Unmapped | Target::Slot(_) => {}
                Target::Vpn(vpn) => self.look_up(1, vpn.0..vpn.0 + 1, vpn.0 + 1, Why::HostRead, ticket),
                Target::Chunks(row) => {
                    self.look_up(2, row..row + 1, row + 1, Why::HostRead, ticket);
                    self.look_up_values(self.indirection.row(row), ticket);
                }
            }
        }
    }

    /// Reads a unit behind a virtual page number, with others of its request if `pages` are gathered.
    pub(crate) fn read_value(
        &mut self,
        lpn: Lpn,
        vpn: Vpn,
        bytes: u32,
        pages: Option<&mut PagesToRead>,
        ticket: Ticket,
    ) {
        match (pages, self.indirection.first_slot(vpn)) {
            (Some(pages), Some(slot)) if self.roles.replication.is_none() => {
                self.check_read(lpn, slot);
                pages.add_shared(self.layout.page_of(slot), bytes, Shared::Unit(slot));
            }
            _ => self.read_copies(lpn, vpn, bytes, ticket),
        }
    }

    /// Looks up each value that holds some of `chunks` once, but for those that are being filled in the controller.
    fn look_up_values(&mut self, chunks: ChunkRow, ticket: Ticket) {
        for (number, chunk) in chunks.into_iter().enumerate() {
            let (vpn, earlier) = (chunk.value(), &chunks[..number]);
            let again = earlier.iter().any(|other| other.value() == vpn);
            if again || self.indirection.first_slot(vpn).is_none() {
                continue;
            }
            self.look_up(1, vpn.0..vpn.0 + 1, vpn.0 + 1, Why::HostRead, ticket);
            if let Some(gathering) = self.indirection.gathered_in(vpn) {
                self.look_up(1, gathering.0..gathering.0 + 1, gathering.0 + 1, Why::HostRead, ticket);
            }
        }
    }

    /// Reads a unit that is stored as chunks: each page that holds some of them once, and with others of its request if `pages`
    /// are gathered.
    pub(crate) fn read_chunks(
        &mut self,
        lpn: Lpn,
        row: u32,
        bytes: u32,
        pages: Option<&mut PagesToRead>,
        ticket: Ticket,
    ) {
        let chunks = self.indirection.row(row);
        if let Some(versions) = &self.versions {
            let found = versions.of_chunks(self.chunk_stamps(chunks));
            versions.check(lpn, found, format_args!("from its chunks"));
        }
        let held = match &mut self.roles.dedup {
            Some(dedup) => dedup.read_buffered(chunks),
            None => [false; CHUNKS],
        };
        let gathers = pages.is_some();
        let mut slots = std::mem::take(&mut self.roles.slots);
        slots.clear();
        let wanted = chunks.into_iter().zip(held).filter(|(_, is_held)| !is_held);
        let in_flash = wanted.filter_map(|(chunk, _)| Some((chunk, self.indirection.first_slot(chunk.value())?)));
        let of_chunk = bytes / CHUNKS as u32;
        match pages {
            Some(pages) => {
                for (chunk, slot) in in_flash {
                    slots.push(slot);
                    pages.add_shared(self.layout.page_of(slot), of_chunk, Shared::Chunk(chunk));
                }
            }
            None => slots.extend(in_flash.map(|(_, slot)| slot)),
        }
        // The rest lies in memory: the policy's, or a pack that is being filled.
        self.counts.buffer_read_hits += (CHUNKS - slots.len()) as u64;
        if !gathers {
            slots.sort_unstable_by_key(|slot| slot.0);
            let per_page = self.layout.units_per_page;
            for run in slots.chunk_by(|a, b| a.0 / per_page == b.0 / per_page) {
                self.issue_host_read(run[0].0 / per_page, of_chunk * run.len() as u32, ticket);
            }
        }
        self.roles.slots = slots;
    }
}
