//! The way of a unit into flash: frontier, lane, open unit, page, program.

use ftlab_core::{LaneId, Lpn, Slot};

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, Ticket};
use crate::frontier::NO_RU;
use crate::ftl::Ftl;
use crate::owner::Packed;
use crate::record::Entry;

impl<B: Backend> Ftl<B> {
    /// Programs the present version of `lpn` at `frontier` and lets the record point to it. False at end of life.
    #[inline]
    pub(crate) fn program_unit(&mut self, lpn: Lpn, frontier: u8, cause: Cause, class: Class, ticket: Ticket) -> bool {
        let Some(place) = self.place_for(lpn, frontier) else {
            return false;
        };
        let old = self.record.entry(lpn);
        if let Some(slot) = old.as_slot() {
            self.kill(slot);
        } else if old != Entry::UNMAPPED {
            self.release(old);
        }
        let slot = self.append(place, Packed::lpn(lpn), cause, class, ticket);
        self.record.set_entry(lpn, Entry::slot(slot));
        true
    }

    /// An open place of `frontier` for a page that holds `lpn`, after making room if a unit must be opened.
    #[inline]
    pub(crate) fn place_for(&mut self, lpn: Lpn, frontier: u8) -> Option<usize> {
        let lane = self.next_lane(lpn, frontier);
        let place = self.frontiers.place(frontier, lane);
        if self.frontiers.open[place].ru != NO_RU {
            Some(place)
        } else {
            self.open_for_host(frontier, lane)
        }
    }

    #[inline]
    pub(crate) fn next_lane(&mut self, lpn: Lpn, frontier: u8) -> LaneId {
        if self.layout.lanes == 1 {
            return LaneId(0);
        }
        if !self.by_address {
            // A page is filled before the next lane gets one.
            let current = self.current_lane[frontier as usize];
            let open = &self.frontiers.open[self.frontiers.place(frontier, current)];
            if open.ru != NO_RU && open.next % self.layout.units_per_page != 0 {
                return current;
            }
        }
        let (layout, backend) = (&self.layout, &self.backend);
        let mut load = |lane: LaneId| backend.load(layout.die_of_plane(layout.lane_planes(lane)[0]));
        let lane = self.allocation.lane(lpn, frontier, &mut load);
        self.current_lane[frontier as usize] = lane;
        lane
    }

    pub(crate) fn lane_by_address(&mut self, lpn: Lpn, frontier: u8) -> LaneId {
        self.allocation
            .lane(lpn, frontier, &mut |_| crate::backend::Load::default())
    }

    #[cold]
    pub(crate) fn open_for_host(&mut self, frontier: u8, lane: LaneId) -> Option<usize> {
        let pool = self.units.pool_of_lane(lane);
        // Translation pages written on behalf of a collection use the reserve, as its copies do.
        if self.gc.depth == 0 && !self.make_room(pool) {
            self.end_of_life = true;
            return None;
        }
        let place = self.open_in_pool(frontier, lane, false);
        if place.is_none() {
            self.end_of_life = true;
        }
        place
    }

    /// The open place of `frontier` on `lane`, or on the pool's lane with the most free units when `lane` has none.
    pub(crate) fn open_in_pool(&mut self, frontier: u8, lane: LaneId, most_worn: bool) -> Option<usize> {
        let place = self.frontiers.place(frontier, lane);
        if self.frontiers.open[place].ru != NO_RU || self.open_unit(frontier, lane, most_worn) {
            return Some(place);
        }
        let pool = self.units.pool_of_lane(lane);
        let richest = self.units.pools[pool]
            .lanes
            .iter()
            .copied()
            .max_by_key(|&l| (self.units.free_in_lane(l), u32::MAX - l.0))?;
        let place = self.frontiers.place(frontier, richest);
        if self.frontiers.open[place].ru != NO_RU || self.open_unit(frontier, richest, most_worn) {
            self.current_lane[frontier as usize] = richest;
            return Some(place);
        }
        None
    }

    pub(crate) fn open_unit(&mut self, frontier: u8, lane: LaneId, most_worn: bool) -> bool {
        let place = self.frontiers.place(frontier, lane);
        let Some(ru) = self.units.open(lane, frontier, place as u32, most_worn) else {
            return false;
        };
        let base = self.layout.first_slot(ru).0;
        let open = &mut self.frontiers.open[place];
        (open.ru, open.base, open.next) = (ru, base, 0);
        if let Some(recovery) = &mut self.recovery {
            let backend = &self.backend;
            let owners = &self.record.owners[base as usize..][..self.layout.slots_per_ru as usize];
            recovery.reused(ru, owners, |id| backend.is_done(id));
        }
        true
    }

    /// Puts a unit into the next slot of an open place; the page is programmed when it is full.
    #[inline]
    pub(crate) fn append(&mut self, place: usize, owner: Packed, cause: Cause, class: Class, ticket: Ticket) -> Slot {
        let open = &mut self.frontiers.open[place];
        let slot = Slot(open.base + open.next);
        let ru = open.ru;
        if B::TIMED {
            if open.next % self.layout.units_per_page == 0 {
                (open.class, open.cause) = (class, cause as u8);
            } else if (class as u8) < open.class as u8 {
                open.class = class;
            }
            if ticket != Ticket::NONE {
                debug_assert!(
                    open.ticket == Ticket::NONE || open.ticket == ticket,
                    "two requests wait for one page"
                );
                open.ticket = ticket;
            }
            if cause == Cause::Host {
                open.inputs.extend_from_slice(&self.map_ready);
            }
        }
        open.next += 1;
        let next = open.next;
        self.record.set_owner(slot, owner);
        self.record.set_live(slot);
        self.units.rus[ru.at()].valid += 1;
        self.counts.programmed[cause as usize] += 1;
        if let Some(versions) = &mut self.versions
            && let Some(lpn) = owner.as_lpn()
            && cause == Cause::Host
        {
            versions.programmed(slot, lpn);
        }
        if self.layout.units_per_page == 1 || next % self.layout.units_per_page == 0 {
            self.finish_page(place, slot);
        }
        slot
    }

    /// The page whose last slot is `last` is full: program it, and close the unit if it was its last page.
    #[inline]
    pub(crate) fn finish_page(&mut self, place: usize, last: Slot) {
        self.counts.page_programs += 1;
        let page = self.layout.page_of(last);
        if let Some(recovery) = &mut self.recovery {
            recovery.programmed(page);
            // A unit superseded while its page was being assembled is written as padding: it must not come back.
            for slot in (page * self.layout.units_per_page..=last.0).map(Slot) {
                if !self.record.is_live(slot) {
                    self.record.set_owner(slot, Packed::NONE);
                }
            }
        }
        if B::TIMED {
            let open = &mut self.frontiers.open[place];
            let op = FlashOp {
                kind: FlashOpKind::Program,
                class: open.class,
                cause: Cause::ALL[open.cause as usize],
                page,
                bytes: self.layout.geometry.page_bytes,
                ticket: std::mem::replace(&mut open.ticket, Ticket::NONE),
                notice: 0,
            };
            let id = self.backend.issue(op, &open.inputs);
            open.inputs.clear();
            if self.gc.collecting {
                self.gc.copies.push(open.ru, id);
            }
            if op.class == Class::HostWrite && !self.plain_buffer && op.ticket == Ticket::NONE {
                self.buffering.in_flight.push_back(id);
            }
        }
        let open = &mut self.frontiers.open[place];
        if open.next == self.layout.slots_per_ru {
            let ru = std::mem::replace(&mut open.ru, NO_RU);
            self.units.close(ru, self.tick);
        }
    }

    /// Fills the rest of the page being assembled at `place` with padding and programs it.
    pub(crate) fn pad(&mut self, place: usize) {
        let per_page = self.layout.units_per_page;
        let open = &mut self.frontiers.open[place];
        if open.ru == NO_RU || open.next % per_page == 0 {
            return;
        }
        let first = open.base + open.next;
        let missing = per_page - open.next % per_page;
        open.next += missing;
        for slot in first..first + missing {
            self.record.set_owner(Slot(slot), Packed::NONE);
        }
        self.counts.padding += u64::from(missing);
        self.finish_page(place, Slot(first + missing - 1));
    }

    /// The unit in `slot` is superseded or gone.
    #[inline(always)]
    pub(crate) fn kill(&mut self, slot: Slot) {
        debug_assert!(self.record.is_live(slot), "{slot:?} died twice");
        self.record.clear_live(slot);
        self.units.lose_one(self.layout.ru_of(slot));
    }
}
