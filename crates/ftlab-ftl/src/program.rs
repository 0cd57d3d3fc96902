//! The way of a unit into flash: frontier, lane, open unit, page, program.

use ftlab_core::{LaneId, Lpn, Slot};

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, OpId, Ticket};
use crate::frontier::{Frontier, NO_RU};
use crate::ftl::Ftl;
use crate::owner::Packed;
use crate::record::Entry;
use crate::recovery::Content;

impl<B: Backend> Ftl<B> {
    /// Programs the present version of `lpn` at `frontier` and lets the record point to it. False at end of life.
    #[inline]
    pub(crate) fn program_unit(
        &mut self,
        lpn: Lpn,
        frontier: Frontier,
        cause: Cause,
        class: Class,
        ticket: Ticket,
    ) -> bool {
        let Some(place) = self.place_for(lpn, frontier) else {
            return false;
        };
        self.program_at::<false>(place, lpn, cause, class, ticket);
        true
    }

    /// As [`Ftl::program_unit`], at an open place. `BARE`: on a drive that [is bare](Ftl::is_bare), which keeps nothing that would
    /// have to be told.
    #[inline(always)]
    pub(crate) fn program_at<const BARE: bool>(
        &mut self,
        place: usize,
        lpn: Lpn,
        cause: Cause,
        class: Class,
        ticket: Ticket,
    ) {
        let old = self.record.entry(lpn);
        if let Some(slot) = old.as_slot() {
            self.invalidate(slot);
        } else if old != Entry::UNMAPPED {
            self.release(old);
        }
        let slot = self.append_to::<BARE>(place, Packed::lpn(lpn), cause, class, ticket);
        self.record.set_entry(lpn, Entry::slot(slot));
    }

    /// An open place of `frontier` for a page that holds `lpn`, after making room if a unit must be opened.
    #[inline]
    pub(crate) fn place_for(&mut self, lpn: Lpn, frontier: Frontier) -> Option<usize> {
        let lane = self.next_lane(lpn, frontier);
        let place = self.frontiers.place(frontier, lane);
        if self.frontiers.open[place].ru != NO_RU {
            Some(place)
        } else {
            self.open_for_host(frontier, lane)
        }
    }

    /// An open place of `frontier` for a page of the drive's own, which has no address: the lanes take turns.
    pub(crate) fn place_for_own(&mut self, frontier: Frontier) -> Option<usize> {
        if !self.by_address || self.layout.lanes == 1 {
            return self.place_for(Lpn(0), frontier);
        }
        let current = self.current_lane[frontier as usize];
        let open = &self.frontiers.open[self.frontiers.place(frontier, current)];
        let filling = open.ru != NO_RU && !open.next.is_multiple_of(self.layout.units_per_page);
        let lane = if filling {
            current
        } else {
            self.placing.lanes_after(frontier, current, self.layout.lanes).next()?
        };
        self.current_lane[frontier as usize] = lane;
        let place = self.frontiers.place(frontier, lane);
        if self.frontiers.open[place].ru != NO_RU {
            Some(place)
        } else {
            self.open_for_host(frontier, lane)
        }
    }

    #[inline]
    pub(crate) fn next_lane(&mut self, lpn: Lpn, frontier: Frontier) -> LaneId {
        if self.layout.lanes == 1 {
            return LaneId(0);
        }
        if !self.by_address {
            // A page is filled before the next lane gets one.
            let current = self.current_lane[frontier as usize];
            let open = &self.frontiers.open[self.frontiers.place(frontier, current)];
            if open.ru != NO_RU && !open.next.is_multiple_of(self.layout.units_per_page) {
                return current;
            }
        }
        let lane = match self.bound_lane(lpn, frontier) {
            Some(lane) => lane,
            None => {
                let (layout, backend) = (&self.layout, &self.backend);
                let mut load = |lane: LaneId| backend.load(layout.lane_dies(lane)[0]);
                self.allocation.lane(lpn, frontier, &mut load)
            }
        };
        self.current_lane[frontier as usize] = lane;
        lane
    }

    pub(crate) fn lane_by_address(&mut self, lpn: Lpn, frontier: Frontier) -> LaneId {
        self.allocation
            .lane(lpn, frontier, &mut |_| crate::backend::Load::default())
    }

    #[cold]
    pub(crate) fn open_for_host(&mut self, frontier: Frontier, lane: LaneId) -> Option<usize> {
        let pool = self.units.pool_of_lane(lane);
        // Translation pages written on behalf of a collection use the reserve, as its copies do.
        if self.gc.depth == 0 && !self.make_room_at(pool, Some(self.frontiers.place(frontier, lane))) {
            let place = self.open_elsewhere(frontier, pool);
            self.end_of_life |= place.is_none();
            return place;
        }
        let place = self.open_in_pool(frontier, lane, false);
        if place.is_none() {
            self.end_of_life = true;
        }
        place
    }

    /// A place in another pool: the one of `full` has nothing left to collect.
    fn open_elsewhere(&mut self, frontier: Frontier, full: usize) -> Option<usize> {
        for pool in (0..self.units.pools.len()).filter(|&pool| pool != full) {
            let mut lanes = self.units.pools[pool].lanes.clone();
            if let Some(bound) = self.placing.lanes_of(frontier) {
                lanes.retain(|lane| bound.contains(lane));
            }
            let Some(&first) = lanes.first() else { continue };
            let mut places = lanes.iter().map(|&lane| self.frontiers.place(frontier, lane));
            let place = match places.find(|&place| self.frontiers.open[place].ru != NO_RU) {
                None if self.make_room(pool) => self.open_in_pool(frontier, first, false),
                open => open,
            };
            if let Some(place) = place {
                self.current_lane[frontier as usize] = self.frontiers.of_place(place).1;
                return Some(place);
            }
        }
        None
    }

    /// The open place of `frontier` on `lane`, or on the pool's lane with the most free units when `lane` has none.
    pub(crate) fn open_in_pool(&mut self, frontier: Frontier, lane: LaneId, most_worn: bool) -> Option<usize> {
        let place = self.frontiers.place(frontier, lane);
        if self.frontiers.open[place].ru != NO_RU || self.open_unit(frontier, lane, most_worn) {
            return Some(place);
        }
        let pool = self.units.pool_of_lane(lane);
        let of_pool = |lane: &LaneId| self.units.pool_of_lane(*lane) == pool;
        let bound = self.placing.lanes_of(frontier);
        let richest = bound
            .unwrap_or(&self.units.pools[pool].lanes)
            .iter()
            .copied()
            .filter(of_pool)
            .max_by_key(|&l| (self.units.free_in_lane(l), u32::MAX - l.0))?;
        let place = self.frontiers.place(frontier, richest);
        if self.frontiers.open[place].ru != NO_RU || self.open_unit(frontier, richest, most_worn) {
            self.current_lane[frontier as usize] = richest;
            return Some(place);
        }
        let lanes = &self.units.pools[pool].lanes;
        self.any_open(frontier, lanes.iter().copied())
            .or_else(|| self.open_any(frontier, most_worn))
    }

    /// No free unit is left: what is open on `lanes` takes the data, of the same frontier if it can be.
    fn any_open(&self, frontier: Frontier, lanes: impl Iterator<Item = LaneId> + Clone) -> Option<usize> {
        std::iter::once(frontier)
            .chain(0..self.frontiers.count)
            .flat_map(|frontier| lanes.clone().map(move |lane| self.frontiers.place(frontier, lane)))
            .find(|&place| self.frontiers.open[place].ru != NO_RU)
    }

    /// The pool has no room at all (after a power cut): the rest of the drive helps.
    fn open_any(&mut self, frontier: Frontier, most_worn: bool) -> Option<usize> {
        let all = (0..self.layout.lanes).map(LaneId);
        let lanes: Vec<LaneId> = match self.placing.lanes_of(frontier) {
            Some(bound) => bound.to_vec(),
            None => all.collect(),
        };
        let lanes = || lanes.iter().copied();
        match lanes().find(|&lane| self.units.free_in_lane(lane) > 0) {
            Some(lane) => {
                let place = self.frontiers.place(frontier, lane);
                let open = self.frontiers.open[place].ru != NO_RU || self.open_unit(frontier, lane, most_worn);
                open.then_some(place)
            }
            None => self.any_open(frontier, lanes()),
        }
    }

    pub(crate) fn open_unit(&mut self, frontier: Frontier, lane: LaneId, most_worn: bool) -> bool {
        self.keep_open_at_once(frontier, lane);
        let place = self.frontiers.place(frontier, lane);
        let Some(ru) = self.units.open(lane, frontier, place as u32, most_worn) else {
            return false;
        };
        self.placing.opened(ru, self.tick);
        let base = self.layout.first_slot(ru).0;
        let open = &mut self.frontiers.open[place];
        (open.ru, open.base, open.next) = (ru, base, 0);
        if let Some(recovery) = &mut self.recovery {
            let backend = &self.backend;
            let slots = base as usize..(base + self.layout.slots_per_ru) as usize;
            let stamps = self.versions.as_ref().map(|versions| versions.stamps(slots.clone()));
            let lost = self.lost.as_ref().map(|lost| lost.of(slots.clone()));
            let owners = &self.record.owners;
            let range = slots.start as u32..slots.end as u32;
            let content = |spares| Content {
                owners: owners[slots].to_vec(),
                stamps: stamps.unwrap_or_default(),
                spares,
                lost: lost.unwrap_or_default(),
            };
            recovery.reused(ru, range, content, |id| backend.is_done(id));
        }
        true
    }

    /// Puts a unit into the next slot of an open place; the page is programmed when it is full.
    #[inline]
    pub(crate) fn append(&mut self, place: usize, owner: Packed, cause: Cause, class: Class, ticket: Ticket) -> Slot {
        self.append_to::<false>(place, owner, cause, class, ticket)
    }

    /// `BARE` as in [`Ftl::program_at`].
    #[inline(always)]
    pub(crate) fn append_to<const BARE: bool>(
        &mut self,
        place: usize,
        owner: Packed,
        cause: Cause,
        class: Class,
        ticket: Ticket,
    ) -> Slot {
        let open = &mut self.frontiers.open[place];
        let slot = Slot(open.base + open.next);
        let ru = open.ru;
        if B::TIMED {
            if open.next.is_multiple_of(self.layout.units_per_page) {
                (open.class, open.cause) = (class, cause as u8);
            } else if (class as u8) < open.class as u8 {
                open.class = class;
            }
            if ticket.is_awaited() {
                debug_assert!(
                    !open.ticket.is_awaited() || open.ticket == ticket,
                    "two requests wait for one page"
                );
                open.ticket = ticket;
            } else if open.ticket == Ticket::NONE {
                open.ticket = ticket;
            }
            if cause == Cause::Host {
                open.inputs.extend_from_slice(&self.map_ready);
            }
        }
        open.next += 1;
        let next = open.next;
        self.record.prefetch_fill(slot);
        self.record.set_owner(slot, owner);
        self.record.set_valid(slot);
        self.units.add_valid(ru, 1);
        self.counts.programmed[cause as usize] += 1;
        if !BARE {
            self.lost_or_not(slot, false);
            if let Some(versions) = &mut self.versions
                && owner.as_lpn().is_some()
                && cause == Cause::Host
            {
                versions.programmed(slot);
            }
        }
        if self.layout.units_per_page == 1 || next.is_multiple_of(self.layout.units_per_page) {
            if BARE {
                self.counts.page_programs += 1;
                self.close_if_full(place);
            } else {
                self.finish_page(place, slot, 0);
            }
        }
        slot
    }

    /// The page whose last slot is `last` is full: program it, and close the unit if it was its last page.
    #[inline]
    pub(crate) fn finish_page(&mut self, place: usize, last: Slot, padded: u32) {
        self.counts.page_programs += 1;
        let page = self.layout.page_of(last);
        if self.recovery.is_some() {
            // A unit superseded while its page was being assembled is written as padding: it must not come back.
            for slot in (page * self.layout.units_per_page..=last.0).map(Slot) {
                if !self.record.is_valid(slot) {
                    self.record.set_owner(slot, Packed::NONE);
                }
            }
        }
        if self
            .recovery
            .as_ref()
            .is_some_and(|recovery| !recovery.spares.is_empty())
        {
            self.fix_spares(Slot(page * self.layout.units_per_page), last);
        }
        let mut program = OpId::DONE;
        if B::TIMED {
            let open = &mut self.frontiers.open[place];
            let op = FlashOp {
                kind: FlashOpKind::Program,
                class: open.class,
                cause: Cause::ALL[open.cause as usize],
                page,
                // Padding is not transferred: the page register is erased to ones.
                bytes: self.layout.geometry.page_bytes - padded * self.layout.geometry.unit_bytes,
                ticket: std::mem::replace(&mut open.ticket, Ticket::NONE),
                notice: None,
            };
            program = self.backend.issue(op, &open.inputs);
            self.last_program = program;
            if self.roles.dedup.is_some() {
                let backend = &self.backend;
                self.roles.programming(page, program, |id| backend.is_done(id));
            }
            open.inputs.clear();
            if self.gc.collecting {
                self.gc.copies.push(open.ru, program);
            }
            if std::mem::take(&mut open.copied) && (self.config.gc.preemptible || self.config.gc.background) {
                self.gc.strays.push(program);
            }
            if op.class == Class::HostWrite && !self.plain_buffer && !op.ticket.is_awaited() {
                self.buffering.in_flight.push_back(program);
            }
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.programmed(page, program);
        }
        if B::TIMED && !self.roles.assembling.is_empty() {
            self.page_of_races_programmed(page, program, self.layout.units_per_page - padded);
        }
        self.close_if_full(place);
    }

    #[inline]
    fn close_if_full(&mut self, place: usize) {
        let open = &mut self.frontiers.open[place];
        if open.next == self.layout.slots_per_ru {
            let ru = std::mem::replace(&mut open.ru, NO_RU);
            self.units.close(ru, self.tick);
        }
    }

    /// As [`Ftl::append`] for every owner of `owners`, for which the open unit has room, on a backend without time and a drive
    /// that keeps nothing for recovery. Returns the first slot.
    pub(crate) fn append_run(&mut self, place: usize, owners: &[u32], cause: Cause) -> Slot {
        let open = &self.frontiers.open[place];
        let first = Slot(open.base + open.next);
        self.record.append_run(first, owners);
        self.filled(place, owners.len() as u32, cause);
        first
    }

    /// The next `count` slots of the open unit at `place` hold valid units; as before, nothing else is kept of them.
    pub(crate) fn filled(&mut self, place: usize, count: u32, cause: Cause) {
        let open = &mut self.frontiers.open[place];
        let (ru, before) = (open.ru, open.next);
        open.next += count;
        let pages = self.layout.page_of(Slot(open.next)) - self.layout.page_of(Slot(before));
        self.units.add_valid(ru, count);
        self.counts.programmed[cause as usize] += u64::from(count);
        self.counts.page_programs += u64::from(pages);
        self.close_if_full(place);
    }

    /// Fills the rest of the page being assembled at `place` with padding and programs it.
    pub(crate) fn pad(&mut self, place: usize) {
        let per_page = self.layout.units_per_page;
        let open = &mut self.frontiers.open[place];
        if open.ru == NO_RU || open.next.is_multiple_of(per_page) {
            return;
        }
        let first = open.base + open.next;
        let missing = per_page - open.next % per_page;
        open.next += missing;
        for slot in first..first + missing {
            self.record.set_owner(Slot(slot), Packed::NONE);
        }
        self.counts.padding += u64::from(missing);
        self.finish_page(place, Slot(first + missing - 1), missing);
    }

    /// The unit in `slot` is superseded or gone.
    #[inline(always)]
    pub(crate) fn invalidate(&mut self, slot: Slot) {
        debug_assert!(self.record.is_valid(slot), "{slot:?} is invalidated twice");
        self.record.clear_valid(slot);
        self.units.invalidate(self.layout.ru_of(slot));
    }
}
