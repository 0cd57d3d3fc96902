//! Units that go to consecutive slots are moved together.

use ftlab_core::{Lpn, RuId, Slot};

use crate::backend::{Backend, OpId, PageCopies};
use crate::config::PoolScope;
use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::gc::mover::{AHEAD, Moving, Way};
use crate::owner::Packed;

impl<B: Backend> Ftl<B> {
    /// Whether units are moved in runs: no policy is asked about each, and with time no page is assembled of several of them.
    pub(super) fn moves_in_runs(&self) -> bool {
        let by_address = self.by_address && self.layout.lanes > 1 && self.config.gc.pool == PoolScope::Drive;
        let assembles = B::TIMED && (self.layout.units_per_page > 1 || !self.roles.is_none());
        !self.placing.sees_survivors && self.recovery.is_none() && self.lost.is_none() && !by_address && !assembles
    }

    /// Moves as many units from number `at` on as LPNs own and as go to consecutive slots. Returns their number; 0 when there
    /// is no room. `page` is the page read last, by `read`.
    pub(super) fn move_run(&mut self, moving: &Moving, at: usize, way: Way, page: &mut u32, read: OpId) -> u32 {
        let owner = moving.owner(at);
        let frontier = self.survivor_frontier(owner, Some(Slot(moving.slots[at])), &way);
        let Some(place) = self.survivor_place(owner.as_lpn(), frontier, way) else {
            return 0;
        };
        let room = self.room_at(place, frontier, way) as usize;
        let end = moving.owners.len().min(at + room);
        let run = &moving.owners[at..end];
        let run = &run[..run
            .iter()
            .position(|&owner| Packed(owner).as_lpn().is_none())
            .unwrap_or(run.len())];
        let slots = &moving.slots[at..at + run.len()];
        self.count_reads(slots, way, page);
        if self.layout.units_per_page > 1 {
            self.touch(place);
        }
        let ru = self.frontiers.open[place].ru;
        let new = self.append_run(place, run, way.cause);
        if B::TIMED {
            let copies = PageCopies {
                from: slots,
                read,
                to: new.0,
                bytes: self.layout.geometry.page_bytes,
                cause: way.cause,
            };
            self.copy(ru, &copies);
        }
        let ahead = &moving.owners[(at + AHEAD).min(moving.owners.len())..];
        self.record.repoint_run(run, new, ahead);
        self.left_behind(run, slots, way);
        run.len() as u32
    }

    /// The units of the LPNs `run`, which lay in `slots`, lie where the map says now.
    pub(super) fn left_behind(&mut self, run: &[u32], slots: &[u32], way: Way) {
        if !self.plain_mapping {
            self.translation.moved[0].extend_from_slice(run);
        }
        if let Some(tenants) = &mut self.tenants {
            run.iter().for_each(|&lpn| tenants.moved(Some(Lpn(lpn)), way.cause));
        }
        if let Some(versions) = &mut self.versions {
            for (&lpn, &slot) in run.iter().zip(slots) {
                versions.moved(Slot(slot), Slot(self.record.map[lpn as usize]));
            }
        }
        self.record
            .clear_valid_range(Slot(slots[0]), slots[slots.len() - 1] + 1 - slots[0]);
        self.units.remove_valid(way.victim, run.len() as u32);
    }

    /// Issues copies to unit `ru`, pages of one unit each.
    fn copy(&mut self, ru: RuId, copies: &PageCopies<'_>) {
        // The last of each of the unit's blocks is what an erase must wait for.
        let width = self.layout.width as usize;
        let (most, last) = copies.from.split_at(copies.from.len().saturating_sub(width - 1).max(1));
        self.last_program = self.backend.copy(&PageCopies { from: most, ..*copies });
        self.gc.copies.push(ru, self.last_program);
        for (step, _) in last.iter().enumerate() {
            let number = most.len() + step;
            let read = self.backend.issue(copies.read_of(number), &[]);
            self.last_program = self.backend.issue(copies.program_of(number), &[read]);
            self.gc.copies.push(ru, self.last_program);
        }
    }

    /// Units that go to `place` before the destination is asked for again.
    fn room_at(&self, place: usize, frontier: Frontier, way: Way) -> u32 {
        let next = self.frontiers.open[place].next;
        let (lane, room) = if self.stays_on_lane() || self.units.pools[way.pool].lanes.len() == 1 {
            (way.lane, self.layout.slots_per_ru - next)
        } else {
            let per_page = self.layout.units_per_page;
            (self.lane_in_turn(frontier, way.pool), per_page - next % per_page)
        };
        // Elsewhere only because the lane had no free unit: the next unit looks again.
        if place == self.frontiers.place(frontier, lane) {
            room
        } else {
            1
        }
    }

    /// Counts the reads of the pages in which `slots` lie, but for the first.
    pub(super) fn count_reads(&mut self, slots: &[u32], way: Way, page: &mut u32) {
        let mut reads = slots.len() as u64 - 1;
        if self.layout.units_per_page == 1 {
            *page = slots[slots.len() - 1];
        } else {
            reads = 0;
            for &slot in slots {
                let holds = self.layout.page_of(Slot(slot));
                reads += u64::from(holds != *page);
                *page = holds;
            }
        }
        self.counts.gc_page_reads += reads;
        self.counts.gc_trans_reads += if way.of_map { reads } else { 0 };
    }
}
