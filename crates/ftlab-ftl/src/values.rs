//! Units that several logical pages share or that lie in several places: how they are stored and read.

use crate::backend::{Backend, Cause, Class, Ticket};
use crate::dedup::{Decision, DedupWrite};
use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::indirection::{Body, CHUNKS, MAX_COPIES, Released};
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

    /// Lets the record of `lpn` point elsewhere and gives up what it pointed to.
    pub(crate) fn repoint(&mut self, lpn: Lpn, entry: Entry) {
        let old = self.record.entry(lpn);
        self.record.set_entry(lpn, entry);
        match old.target() {
            Target::Unmapped => {}
            Target::Slot(slot) => self.invalidate(slot),
            Target::Vpn(_) => self.release(old),
        }
    }

    /// Gives up a reference to a virtual page.
    #[cold]
    pub(crate) fn release(&mut self, entry: Entry) {
        let Target::Vpn(vpn) = entry.target() else { return };
        let mut released = Released::default();
        self.indirection.release(vpn, &mut released);
        released.slots.iter().for_each(|&slot| self.invalidate(slot));
        if let Some(dedup) = &mut self.roles.dedup {
            released.dead.iter().for_each(|&vpn| dedup.dead(vpn));
            released
                .dead_chunks
                .iter()
                .for_each(|chunk| dedup.chunk_dead(chunk.pack, chunk.index));
        }
    }

    /// Programs `lpn` behind a new VPN, in so many copies. Returns the VPN.
    pub(crate) fn program_copies(&mut self, lpn: Lpn, frontier: Frontier, ticket: Ticket, copies: u8) -> Option<u32> {
        let wanted = usize::from(copies).clamp(1, MAX_COPIES);
        // The VPN exists before its slots, so that a collection in between can move a copy that has been made.
        let vpn = self.indirection.create(Body::Copies(Vec::with_capacity(wanted)), 1);
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
            if let Body::Copies(slots) = self.indirection.body_mut(vpn) {
                slots.push(slot);
            }
            if copy > 0 {
                self.pad(place);
            }
        }
        self.repoint(lpn, Entry::vpn(vpn));
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
        match &self.indirection.get(vpn).body {
            Body::Copies(slots) if slots.len() == 1 => {
                let slot = slots[0];
                self.check_read(lpn, slot);
                self.issue_host_read(self.layout.page_of(slot), bytes, ticket);
            }
            Body::Copies(slots) => {
                let slots = slots.clone();
                slots.iter().for_each(|&slot| self.check_read(lpn, slot));
                self.race(lpn, vpn, &slots, bytes, ticket);
            }
            Body::Vector(chunks) => {
                let mut pages: Vec<u32> = Vec::with_capacity(CHUNKS);
                for chunk in chunks {
                    match self.indirection.first_slot(chunk.pack) {
                        Some(slot) => pages.push(self.layout.page_of(slot)),
                        // The pack is still being filled in the controller.
                        None => self.counts.buffer_read_hits += 1,
                    }
                }
                pages.sort_unstable();
                for run in pages.chunk_by(|a, b| a == b) {
                    self.issue_host_read(run[0], bytes / CHUNKS as u32 * run.len() as u32, ticket);
                }
            }
            other => panic!("{lpn:?} is mapped to VPN {vpn}, which is {other:?}"),
        }
    }
}
