//! Units that several logical pages share or that lie in several places: how they are stored and read.

use crate::backend::{Backend, Cause, Class, Need, Ticket};
use crate::dedup::{Decision, DedupWrite};
use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::indirection::{CHUNKS, MAX_COPIES, Released};
use crate::mapping::Why;
use crate::owner::{Owner, Packed};
use crate::record::{Entry, Target};
use crate::request::WriteContext;
use ftlab_core::{LaneId, Lpn, Slot};

impl<B: Backend> Ftl<B> {
    /// Stores one unit on a drive that deduplicates or replicates. False at end of life.
    pub(crate) fn store_with_roles(
        &mut self,
        lpn: Lpn,
        frontier: Frontier,
        context: &WriteContext,
        ticket: Ticket,
    ) -> bool {
        let content = context.content;
        let now = self.now();
        let decision = match (&mut self.roles.dedup, content) {
            (Some(dedup), Some(content)) => dedup.write(&DedupWrite {
                lpn,
                content,
                pc: context.pc,
                now,
            }),
            _ => Decision::Bypass,
        };
        match decision {
            Decision::Existing(vpn) => {
                self.counts.dedup_hits += 1;
                self.indirection.acquire(vpn);
                self.repoint(lpn, Entry::vpn(vpn));
                true
            }
            Decision::New => {
                let copies = self
                    .roles
                    .replication
                    .as_mut()
                    .map_or(1, |policy| policy.copies(lpn, now));
                let Some(vpn) = self.program_copies(lpn, frontier, ticket, copies) else {
                    return false;
                };
                if let (Some(dedup), Some(content)) = (&mut self.roles.dedup, content) {
                    dedup.stored(content, vpn);
                }
                true
            }
            Decision::Bypass => {
                let copies = self
                    .roles
                    .replication
                    .as_mut()
                    .map_or(1, |policy| policy.copies(lpn, now));
                if copies > 1 {
                    self.program_copies(lpn, frontier, ticket, copies).is_some()
                } else {
                    self.program_unit(lpn, frontier, Cause::Host, Class::HostWrite, ticket)
                }
            }
            Decision::Chunks(sources) => self.store_chunks(lpn, frontier, sources, ticket),
        }
    }

    /// A virtual page has been made or has got another place: its entry in table 1 changes.
    pub(crate) fn vpn_changed(&mut self, vpn: u32, ticket: Ticket) {
        if !self.plain_mapping {
            self.look_up(1, vpn..vpn + 1, vpn + 1, Why::HostWrite, ticket);
            self.map_changed(1, vpn, ticket);
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
            Target::Slot(slot) => self.invalidate(slot),
            Target::Vpn(_) | Target::Chunks(_) => self.release(old),
        }
    }

    /// Gives up a reference to a value, or a row.
    #[cold]
    pub(crate) fn release(&mut self, entry: Entry) {
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
        released.slots.iter().for_each(|&slot| self.invalidate(slot));
        if let Some(dedup) = &mut self.roles.dedup {
            released.dead_chunks.iter().for_each(|&chunk| dedup.chunk_dead(chunk));
            released.dead.iter().for_each(|&vpn| dedup.dead(vpn));
        }
        released.clear();
        self.roles.released = released;
    }

    /// Adds the slots in which the unit of `entry` lies to `slots`; those of a pack being filled are none.
    pub(crate) fn places_into(&self, entry: Entry, slots: &mut Vec<Slot>) {
        match entry.target() {
            Target::Unmapped => {}
            Target::Slot(slot) => slots.push(slot),
            Target::Vpn(vpn) => self.indirection.copies_into(vpn, slots),
            Target::Chunks(row) => {
                let chunks = self.indirection.row(row);
                slots.extend(
                    chunks
                        .iter()
                        .filter_map(|chunk| self.indirection.first_slot(chunk.pack())),
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

    /// Programs `lpn` behind a new VPN, in so many copies. Returns the VPN.
    pub(crate) fn program_copies(&mut self, lpn: Lpn, frontier: Frontier, ticket: Ticket, copies: u8) -> Option<u32> {
        let wanted = usize::from(copies).clamp(1, MAX_COPIES);
        // The VPN exists before its slots, so that a collection in between can move a copy that has been made.
        let vpn = self.indirection.create();
        let mut lanes: Vec<LaneId> = Vec::with_capacity(wanted);
        for copy in 0..wanted {
            let place = if copy == 0 {
                self.place_for(lpn, frontier)
            } else {
                let lane = self.other_lane(&lanes);
                self.open_for_copy(frontier, lane)
            };
            let Some(place) = place else {
                if copy == 0 {
                    self.release(Entry::vpn(vpn));
                    return None;
                }
                // A drive that is too full for a further copy does without.
                break;
            };
            let cause = if copy == 0 { Cause::Host } else { Cause::Replication };
            // Two requests may not wait for one page, and a copy shares its page with whoever comes next: only the
            // first copy is waited for.
            let waits = if copy == 0 { ticket } else { Ticket::NONE };
            let slot = self.append(place, Packed::from(Owner::Vpn(vpn)), cause, Class::HostWrite, waits);
            self.stamp_slot(slot, lpn);
            self.counts.replica_programs += u64::from(copy > 0);
            lanes.push(self.frontiers.of_place(place).1);
            self.indirection.add_copy(vpn, slot);
            self.written_for(lpn, slot);
            if copy == 0 {
                self.repoint(lpn, Entry::vpn(vpn));
            } else {
                self.pad(place);
            }
        }
        self.vpn_changed(vpn, ticket);
        Some(vpn)
    }

    pub(crate) fn stamp_slot(&mut self, slot: Slot, lpn: Lpn) {
        if let Some(versions) = &mut self.versions {
            versions.programmed(slot, lpn);
        }
    }

    /// The lane after the last one used, if there is one that has no copy yet.
    pub(crate) fn other_lane(&self, used: &[LaneId]) -> LaneId {
        let lanes = self.layout.lanes;
        let last = used.last().map_or(0, |lane| lane.0);
        (1..=lanes)
            .map(|step| LaneId((last + step) % lanes))
            .find(|lane| !used.contains(lane))
            .unwrap_or(LaneId(last))
    }

    pub(crate) fn open_for_copy(&mut self, frontier: Frontier, lane: LaneId) -> Option<usize> {
        let place = self.frontiers.place(frontier, lane);
        if self.frontiers.open[place].ru != crate::frontier::NO_RU {
            return Some(place);
        }
        let pool = self.units.pool_of_lane(lane);
        if !self.make_room(pool) {
            return None;
        }
        self.open_in_pool(frontier, lane, false)
    }

    /// Reads a unit behind a virtual page number.
    pub(crate) fn read_indirect(&mut self, lpn: Lpn, vpn: u32, bytes: u32, ticket: Ticket) {
        if !self.plain_mapping {
            self.look_up(1, vpn..vpn + 1, vpn + 1, Why::HostRead, ticket);
        }
        let mut slots = std::mem::take(&mut self.roles.slots);
        slots.clear();
        self.indirection.copies_into(vpn, &mut slots);
        slots.iter().for_each(|&slot| self.check_read(lpn, slot));
        match slots[..] {
            [] => panic!("{lpn:?} is mapped to VPN {vpn}, which is nowhere"),
            [only] => {
                self.issue_host_read(self.layout.page_of(only), bytes, ticket);
            }
            _ => self.race(lpn, vpn, &slots, bytes, ticket),
        }
        self.roles.slots = slots;
    }

    /// Reads a unit that is stored as chunks: each page that holds some of them once.
    pub(crate) fn read_chunks(&mut self, lpn: Lpn, row: u32, bytes: u32, ticket: Ticket) {
        if !self.plain_mapping {
            self.look_up(2, row..row + 1, row + 1, Why::HostRead, ticket);
        }
        let chunks = self.indirection.row(row);
        if let Some(versions) = &self.versions {
            versions.check_stamp(lpn, versions.of_chunks(self.chunk_stamps(chunks)));
        }
        let mut slots = std::mem::take(&mut self.roles.slots);
        slots.clear();
        self.places_into(Entry::chunks(row), &mut slots);
        // The rest lies in the pack that is being filled in the controller.
        self.counts.buffer_read_hits += (CHUNKS - slots.len()) as u64;
        slots.sort_unstable_by_key(|slot| slot.0);
        let per_page = self.layout.units_per_page;
        for run in slots.chunk_by(|a, b| a.0 / per_page == b.0 / per_page) {
            self.issue_host_read(run[0].0 / per_page, bytes / CHUNKS as u32 * run.len() as u32, ticket);
        }
        self.roles.slots = slots;
    }
}
