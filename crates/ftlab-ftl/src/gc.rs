//! Garbage collection: pick, move, erase, as one machine.
//!
//! Without preemption a collection is logically complete when it starts; on the timed backend its reads, programs and
//! erase then run in their dependencies. A preemptible or background collection moves a few units per step and goes on
//! when those have been programmed; what died in between is not moved.

use ftlab_core::{LaneId, Lpn, RuId, Slot};

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, Need, OpId, Ticket};
use crate::config::PoolScope;
use crate::copies::Copies;
use crate::frontier::NO_RU;
use crate::ftl::Ftl;
use crate::owner::{Owner, Packed};
use crate::placement::{Event, Survivor};
use crate::record::Entry;
use crate::units::RuState;

/// A collection in steps.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub ru: RuId,
    pub cause: Cause,
    /// Offset in the unit up to which everything has been moved.
    pub done: u32,
    /// Programs of its copies so far.
    pub copies: Copies,
}

/// Kinds of notices; the low 24 bits are the pool.
pub(crate) const NOTICE_STEP: u32 = 1 << 24;
pub(crate) const NOTICE_IDLE: u32 = 2 << 24;

const SHORTEST_WAIT_NS: u64 = 10_000;

impl<B: Backend> Ftl<B> {
    /// Collects in `pool` until it has more free units than the hard threshold. False if that cannot be done.
    pub(crate) fn make_room(&mut self, pool: usize) -> bool {
        self.make_room_at(pool, None)
    }

    /// As [`Ftl::make_room`]; but where survivors share the frontier of the host, the rest of the unit that they have opened
    /// at `place` is room enough. Otherwise several victims' survivors would fill units of their own, and one frontier would
    /// separate survivors as two do.
    pub(crate) fn make_room_at(&mut self, pool: usize, place: Option<usize>) -> bool {
        let hard = self.config.gc.hard;
        let (mut fruitless, mut most) = (0, self.space_made());
        while self.units.pools[pool].free <= hard {
            let is_open = |place: usize| self.frontiers.open[place].ru != NO_RU;
            if place.is_some_and(is_open) && self.units.pools[pool].free == hard {
                break;
            }
            if !self.finish_job(pool) && !self.collect_one(pool, fruitless) {
                return false;
            }
            if self.end_of_life {
                return false;
            }
            // A victim that is all valid gains nothing (FIFO and random may draw one), nor does one whose translation pages
            // cost as much; two whole rounds of them mean that there is nothing left to gain.
            fruitless = if self.space_made() > most { 0 } else { fruitless + 1 };
            most = most.max(self.space_made());
            if fruitless > 2 * self.units.pools[pool].good + 16 {
                return false;
            }
        }
        if B::TIMED && (self.config.gc.preemptible || self.config.gc.background) {
            self.consider_early_collection(pool);
        }
        true
    }

    /// Units erased for further use less units programmed: grows when a collection frees space.
    fn space_made(&self) -> i64 {
        let reusable = self.units.total_erases as i64 - self.counts.retired as i64;
        reusable * i64::from(self.layout.slots_per_ru) - self.counts.total_programmed() as i64
    }

    /// Most units that are lost because the last page of a collection's copies may not wait until it is full.
    pub(crate) fn padding_per_collection(&self) -> u32 {
        if self.config.buffer.power_loss_protected {
            0
        } else {
            self.layout.units_per_page - 1
        }
    }

    /// Collects the policy's victim. The emptiest unit is taken instead when part of the reserve is gone (after a power cut),
    /// and when the policy has found nothing `fruitless` times: drawing at random may miss the last dead data for ever.
    fn collect_one(&mut self, pool: usize, fruitless: u32) -> bool {
        let now = self.now();
        let (per_ru, padding) = (self.layout.slots_per_ru, self.padding_per_collection());
        let closed = &mut self.units.closed(pool, per_ru);
        // A placement policy may bring its own rule.
        let chosen = match self.placement.victim() {
            Some(own) => own.choose(closed, now),
            None => self.victim.choose(closed, now),
        };
        let Some(mut victim) = chosen else {
            return false;
        };
        let gains = |ru: RuId| closed.ru(ru).valid + padding < per_ru;
        if !gains(victim) && !closed.iter().any(gains) {
            return false;
        }
        if fruitless > closed.len() as u32 || closed.free() < self.config.gc.hard {
            victim = closed
                .iter()
                .min_by_key(|&ru| (closed.ru(ru).valid, ru))
                .unwrap_or(victim);
        }
        self.collect(victim, Cause::Gc)
    }

    /// Moves everything live out of `victim` and erases it.
    fn collect(&mut self, victim: RuId, cause: Cause) -> bool {
        self.gc.depth += 1;
        let collected = self.collect_whole(victim, cause);
        self.gc.depth -= 1;
        collected
    }

    fn collect_whole(&mut self, victim: RuId, cause: Cause) -> bool {
        self.begin(victim, cause);
        let base = self.layout.first_slot(victim);
        let all = self.layout.slots_per_ru;
        if !self.move_live(victim, base, all, cause) {
            self.abandon(victim, cause);
            return false;
        }
        self.end(victim, cause)
    }

    fn begin(&mut self, victim: RuId, cause: Cause) {
        if !self.plain_placement {
            let unit = &self.units.rus[victim.at()];
            let event = Event::Collecting {
                frontier: unit.frontier,
                valid: unit.valid,
                last_tick: unit.last_tick,
            };
            let now = self.now();
            self.placement.on(event, now);
        }
        self.units.begin_collection(victim);
        self.counts.victim_valid += u64::from(self.units.rus[victim.at()].valid);
        match cause {
            Cause::Wear => self.counts.wear_collections += 1,
            _ => self.counts.gc_collections += 1,
        }
    }

    fn abandon(&mut self, victim: RuId, cause: Cause) {
        self.gc.copies.clear();
        self.gc.touched.clear();
        self.units.abandon_collection(victim);
        self.end_of_life |= cause != Cause::Wear;
    }

    /// Moves the live units among `count` slots from `first` on. False when there is no room for them.
    fn move_live(&mut self, victim: RuId, first: Slot, count: u32, cause: Cause) -> bool {
        let mut slots = std::mem::take(&mut self.gc.slots);
        slots.clear();
        let record = &self.record;
        record.for_each_live(first, count, |slot| {
            record.prefetch_entry(record.owner(slot).0);
            slots.push(slot.0);
        });
        self.gc.collecting = true;
        let from = self.units.rus[victim.at()].frontier;
        let lane = self.layout.lane_of(victim);
        let pool = self.units.pool_of_lane(lane);
        let (mut page, mut read) = (u32::MAX, OpId::DONE);
        let of_map = u64::from(self.holds_metadata(victim));
        let mut complete = true;
        for (i, &slot) in slots.iter().enumerate() {
            let slot = Slot(slot);
            let holds = self.layout.page_of(slot);
            if holds != page {
                page = holds;
                self.counts.gc_trans_reads += of_map;
                read = self.read_for_gc(page, &slots[i..], cause);
            }
            if !self.relocate(slot, from, lane, pool, cause, read) {
                complete = false;
                break;
            }
        }
        self.gc.collecting = false;
        self.gc.slots = slots;
        // Also of what was moved before room ran out: the cache must not keep old places.
        if !self.plain_mapping {
            self.charge_moves();
        }
        complete
    }

    /// Whether the unit was filled with translation pages, and what else does not belong to the host.
    fn holds_metadata(&self, ru: RuId) -> bool {
        Some(self.units.rus[ru.at()].frontier) == self.frontiers.metadata
    }

    /// One read for all the live units of a page; `live` are the slots still to be moved, those of the page first.
    #[inline]
    fn read_for_gc(&mut self, page: u32, live: &[u32], cause: Cause) -> OpId {
        self.counts.gc_page_reads += 1;
        if !B::TIMED {
            return OpId::DONE;
        }
        let units = live
            .iter()
            .take_while(|&&slot| self.layout.page_of(Slot(slot)) == page)
            .count() as u32;
        let op = FlashOp {
            kind: FlashOpKind::Read,
            class: Class::Gc,
            cause,
            page,
            bytes: units * self.layout.geometry.unit_bytes,
            ticket: Ticket::NONE,
            notice: 0,
        };
        self.backend.issue(op, &[])
    }

    /// Moves one live unit to the frontier it belongs to.
    #[inline]
    fn relocate(&mut self, slot: Slot, from: u8, lane: LaneId, pool: usize, cause: Cause, read: OpId) -> bool {
        let packed = self.record.owner(slot);
        let lpn = packed.as_lpn();
        let frontier = self.survivor_frontier(lpn, packed, from, cause);
        let Some(place) = self.survivor_place(lpn, frontier, lane, pool, cause) else {
            return false;
        };
        if B::TIMED {
            let inputs = &mut self.frontiers.open[place].inputs;
            if read != OpId::DONE && inputs.last() != Some(&read) {
                inputs.push(read);
            }
        }
        if self.layout.units_per_page > 1 {
            self.frontiers.open[place].copied = true;
            if self.gc.touched.last() != Some(&place) && !self.gc.touched.contains(&place) {
                self.gc.touched.push(place);
            }
        }
        let new = self.append(place, packed, cause, Class::Gc, Ticket::NONE);
        match lpn {
            Some(lpn) => {
                debug_assert_eq!(
                    self.record.entry(lpn),
                    Entry::slot(slot),
                    "{lpn:?} does not lie where its owner says"
                );
                self.record.set_entry(lpn, Entry::slot(new));
                if !self.plain_mapping {
                    self.translation.moved[0].push(lpn.0);
                }
            }
            None => {
                let of_map = matches!(Owner::from(packed), Owner::Map { .. } | Owner::Policy(_));
                self.counts.gc_trans_programs += u64::from(of_map && cause == Cause::Gc);
                self.owner_moved(packed, slot, new);
            }
        }
        if let Some(versions) = &mut self.versions {
            versions.moved(slot, new);
        }
        // The victim is no candidate any more, so its counts need no re-ordering.
        self.record.clear_live(slot);
        self.units.lose_one(self.layout.ru_of(slot));
        true
    }

    /// A live unit that no LPN owns directly has moved.
    pub(crate) fn owner_moved(&mut self, packed: Packed, old: Slot, new: Slot) {
        match Owner::from(packed) {
            Owner::Vpn(vpn) => {
                self.indirection.moved(vpn, old, new);
                if !self.plain_mapping {
                    self.translation.moved[1].push(vpn);
                }
            }
            Owner::Map { table, tvpn } => {
                self.translation.page_moved(table, tvpn, new);
                self.mapping.page_moved(Owner::Map { table, tvpn }, new);
            }
            Owner::Policy(page) => {
                self.translation.policy_page_moved(page, new);
                self.mapping.page_moved(Owner::Policy(page), new);
            }
            Owner::Journal => {
                if let Some(recovery) = &mut self.recovery {
                    recovery.journal_moved(old, new);
                }
            }
            Owner::Lpn(_) | Owner::None => panic!("{old:?} is live and owned by {:?}", Owner::from(packed)),
        }
    }

    #[inline]
    fn survivor_frontier(&mut self, lpn: Option<Lpn>, packed: Packed, from: u8, cause: Cause) -> u8 {
        if cause == Cause::Wear
            && let Some(wear) = self.frontiers.wear
        {
            return wear;
        }
        if lpn.is_none()
            && let (Some(metadata), Owner::Map { .. } | Owner::Policy(_) | Owner::Journal) =
                (self.frontiers.metadata, Owner::from(packed))
        {
            return metadata;
        }
        let chosen = match lpn {
            Some(lpn) if !self.plain_placement => {
                let now = self.now();
                self.placement.survivor(&Survivor { lpn, from, now })
            }
            _ => None,
        };
        chosen.unwrap_or_else(|| self.frontiers.default_survivor(from))
    }

    /// The open place for a survivor: on the victim's lane, or spread over the lanes of a larger pool.
    #[inline]
    fn survivor_place(
        &mut self,
        lpn: Option<Lpn>,
        frontier: u8,
        lane: LaneId,
        pool: usize,
        cause: Cause,
    ) -> Option<usize> {
        let lane = if self.config.gc.pool == PoolScope::Lane || self.layout.lanes == 1 {
            lane
        } else {
            self.survivor_lane(lpn, frontier, pool)
        };
        let place = self.frontiers.place(frontier, lane);
        if self.frontiers.open[place].ru != NO_RU {
            return Some(place);
        }
        self.open_in_pool(frontier, lane, cause == Cause::Wear)
    }

    fn survivor_lane(&mut self, lpn: Option<Lpn>, frontier: u8, pool: usize) -> LaneId {
        if let (Some(lpn), true, PoolScope::Drive) = (lpn, self.by_address, self.config.gc.pool) {
            return self.lane_by_address(lpn, frontier);
        }
        let lanes = &self.units.pools[pool].lanes;
        let turn = &mut self.gc.turn[frontier as usize * self.units.pools.len() + pool];
        let current = lanes[*turn as usize % lanes.len()];
        let open = &self.frontiers.open[self.frontiers.place(frontier, current)];
        // The page being assembled is filled first; a full one passes the turn on.
        if open.ru != NO_RU && !open.next.is_multiple_of(self.layout.units_per_page) {
            return current;
        }
        *turn = (*turn + 1) % lanes.len() as u32;
        lanes[*turn as usize]
    }

    /// All live data has been moved: erase. False if that would lose what the host was promised.
    fn end(&mut self, victim: RuId, cause: Cause) -> bool {
        if !self.config.buffer.power_loss_protected && !self.secure_copies() {
            self.abandon(victim, cause);
            return false;
        }
        self.gc.touched.clear();
        self.erase(victim, cause);
        let pool = self.units.pool_of(victim);
        // The updates of translation pages that a move causes need room of their own.
        let needed = 1 + self.translation.tables_in_flash();
        if cause != Cause::Wear
            && let Some(cold) = self.wear.due(&self.units, pool)
            && self.units.pools[pool].free >= needed
        {
            self.collect(cold, Cause::Wear);
        }
        true
    }

    /// Without protected memory, what replaces the victim's data must be in flash before the victim is erased: the copies,
    /// and on a drive that recovers from a power cut also the newer versions and the trims that killed the rest of it. False
    /// if no page is left for the journal, as units have worn out: after an erase an older version of a trimmed unit could
    /// come back.
    fn secure_copies(&mut self) -> bool {
        if self.recovery.is_some() && !self.write_journal(Ticket::NONE) {
            return false;
        }
        self.gc.collecting = true;
        if self.recovery.is_some() {
            (0..self.frontiers.open.len()).for_each(|place| self.pad(place));
        } else {
            let touched = std::mem::take(&mut self.gc.touched);
            touched.iter().for_each(|&place| self.pad(place));
            self.gc.touched = touched;
        }
        self.gc.collecting = false;
        true
    }

    /// Erases a unit that holds nothing live and is being collected.
    pub(crate) fn erase(&mut self, victim: RuId, cause: Cause) {
        if B::TIMED {
            self.issue_erases(victim, cause);
        }
        self.gc.copies.clear();
        self.counts.erases += u64::from(self.layout.width);
        if self.holds_metadata(victim) {
            self.counts.erases_trans += u64::from(self.layout.width);
        }
        if let Some(recovery) = &mut self.recovery {
            debug_assert!(
                self.config.buffer.power_loss_protected || recovery.is_journalled(),
                "{victim:?} is erased before the trims that emptied it are in the journal"
            );
            recovery.erased(victim);
        }
        if self.units.erased(victim, self.config.erase_limit) == RuState::Bad {
            self.counts.retired += 1;
            self.check_life();
        }
    }

    fn issue_erases(&mut self, victim: RuId, cause: Cause) {
        let first = self.layout.page_of(self.layout.first_slot(victim));
        let mut erases = Vec::new();
        let backend = &self.backend;
        let before = &mut self.gc.before_erase;
        before.clear();
        match &mut self.recovery {
            Some(recovery) => recovery.under_way(|id| backend.is_done(id), before),
            None => {
                before.extend_from_slice(self.gc.copies.last_of_each_block(self.layout.width));
                self.gc.strays.retain(|&id| !backend.is_done(id));
                before.extend_from_slice(&self.gc.strays);
            }
        }
        // Every erase waits for every copy: through one join, not through width × width edges.
        let copied = match before[..] {
            [] => None,
            [only] => Some(only),
            _ => Some(self.backend.join(before, Need::All, Ticket::NONE, 0)),
        };
        for k in 0..self.layout.width {
            let op = FlashOp {
                kind: FlashOpKind::Erase,
                class: Class::Erase,
                cause,
                page: first + k,
                bytes: 0,
                ticket: Ticket::NONE,
                notice: 0,
            };
            let id = self.backend.issue(op, copied.as_slice());
            if self.recovery.is_some() {
                erases.push(id);
            }
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.erasing(victim, erases);
        }
    }

    /// Retired units leave too little room for the logical units, the reserve and one unit to write.
    fn check_life(&mut self) {
        let good: u64 = self.units.pools.iter().map(|pool| u64::from(pool.good)).sum();
        let reserve = u64::from(self.config.gc.hard) * self.units.pools.len() as u64;
        let room = good.saturating_sub(reserve + 1) * u64::from(self.layout.slots_per_ru);
        if room < u64::from(self.config.logical_units) {
            self.end_of_life = true;
        }
    }

    /// Ends every collection under way (a clean shutdown).
    pub(crate) fn finish_jobs(&mut self) {
        for pool in 0..self.gc.jobs.len() {
            self.finish_job(pool);
        }
    }

    // ---- collection in steps (timed backend) ----

    fn consider_early_collection(&mut self, pool: usize) {
        if self.units.pools[pool].free > self.config.gc.soft || self.gc.jobs[pool].is_some() {
            return;
        }
        if self.config.gc.preemptible {
            // Work that begins while nothing else is going on counts as background work.
            let background = self.config.gc.background && self.pool_is_idle(pool, 0);
            self.start_job(pool, background);
        } else {
            self.wait_for_idle(pool);
        }
    }

    /// The job of the pool goes on with the next event, or when an earlier job's last step would have.
    fn step_soon(&mut self, pool: usize) {
        if !std::mem::replace(&mut self.gc.waits_for_step[pool], true) {
            self.backend.arm(1, NOTICE_STEP | pool as u32);
        }
    }

    /// Looks at the pool again after the idle time, and not all the time when that is nothing.
    fn wait_for_idle(&mut self, pool: usize) {
        if !std::mem::replace(&mut self.gc.waits_for_idle[pool], true) {
            let delay = self.config.gc.idle_ns.max(SHORTEST_WAIT_NS);
            self.backend.arm(delay, NOTICE_IDLE | pool as u32);
        }
    }

    fn start_job(&mut self, pool: usize, background: bool) {
        // Below the reserve collection is urgent, and not in steps.
        if self.units.pools[pool].free < self.config.gc.hard {
            return;
        }
        let now = self.now();
        let per_ru = self.layout.slots_per_ru;
        let closed = &mut self.units.closed(pool, per_ru);
        let chosen = match self.placement.victim() {
            Some(own) => own.choose(closed, now),
            None => self.victim.choose(closed, now),
        };
        let Some(ru) = chosen else { return };
        if self.units.rus[ru.at()].valid == per_ru {
            return;
        }
        self.begin(ru, Cause::Gc);
        self.counts.gc_background_collections += u64::from(background);
        self.gc.jobs[pool] = Some(Job {
            ru,
            cause: Cause::Gc,
            done: 0,
            copies: Copies::default(),
        });
        // Not at once: the host write that has just made room is about to open a unit.
        self.step_soon(pool);
    }

    /// Moves the next few live units of the pool's job; when nothing is left, erases.
    fn step_job(&mut self, pool: usize) {
        self.gc.depth += 1;
        self.step_job_inside(pool);
        self.gc.depth -= 1;
        // The reserve is for the copies: host writes may not fill a unit that was opened from it before it is replaced.
        if self.units.pools[pool].free < self.config.gc.hard && self.frontiers.survivors_join_host() {
            self.finish_job(pool);
        }
    }

    fn step_job_inside(&mut self, pool: usize) {
        let Some(mut job) = self.gc.jobs[pool].take() else {
            return;
        };
        let base = self.layout.first_slot(job.ru);
        let (all, step) = (self.layout.slots_per_ru, self.config.gc.step_units.max(1));
        let mut count = 0;
        let mut found = 0;
        while job.done + count < all && found < step {
            found += u32::from(self.record.is_live(Slot(base.0 + job.done + count)));
            count += 1;
        }
        self.gc.copies.clear();
        if !self.move_live(job.ru, Slot(base.0 + job.done), count, job.cause) {
            self.abandon(job.ru, job.cause);
            return;
        }
        job.done += count;
        job.copies.append(&self.gc.copies);
        if job.done == all {
            std::mem::swap(&mut self.gc.copies, &mut job.copies);
            self.end(job.ru, job.cause);
            self.consider_early_collection(pool);
            return;
        }
        // Copies that wait in a page being assembled have no program yet; the step then goes on after its reads.
        let key = NOTICE_STEP | pool as u32;
        if self.gc.copies.is_empty() {
            self.step_soon(pool);
        } else if !std::mem::replace(&mut self.gc.waits_for_step[pool], true) {
            let width = self.layout.width;
            self.backend
                .join(self.gc.copies.last_of_each_block(width), Need::All, Ticket::NONE, key);
        }
        self.gc.jobs[pool] = Some(job);
    }

    /// The hard threshold has been reached: the rest of the pool's job is done at once. False if there is no job.
    fn finish_job(&mut self, pool: usize) -> bool {
        let Some(mut job) = self.gc.jobs[pool].take() else {
            return false;
        };
        self.gc.depth += 1;
        let base = self.layout.first_slot(job.ru);
        self.gc.copies.clear();
        std::mem::swap(&mut self.gc.copies, &mut job.copies);
        if self.move_live(
            job.ru,
            Slot(base.0 + job.done),
            self.layout.slots_per_ru - job.done,
            job.cause,
        ) {
            self.end(job.ru, job.cause);
        } else {
            self.abandon(job.ru, job.cause);
        }
        self.gc.depth -= 1;
        true
    }

    /// A notice that garbage collection asked for.
    pub(crate) fn gc_notice(&mut self, key: u32) {
        let pool = (key & 0xff_ffff) as usize;
        if key & !0xff_ffff == NOTICE_IDLE {
            self.gc.waits_for_idle[pool] = false;
        } else {
            self.gc.waits_for_step[pool] = false;
        }
        if key & !0xff_ffff == NOTICE_STEP {
            let mid_idle = !self.config.gc.preemptible && !self.pool_is_idle(pool, 0);
            if mid_idle && self.gc.jobs[pool].is_some() {
                // Background work gives way; it goes on when the dies are idle again.
                self.wait_for_idle(pool);
            } else {
                self.step_job(pool);
            }
        } else if self.pool_is_idle(pool, self.config.gc.idle_ns) {
            if self.gc.jobs[pool].is_some() {
                self.step_job(pool);
            } else if self.units.pools[pool].free <= self.config.gc.soft {
                self.start_job(pool, true);
            }
        } else if self.units.pools[pool].free <= self.config.gc.soft || self.gc.jobs[pool].is_some() {
            self.wait_for_idle(pool);
        }
    }

    /// Whether every die of the pool has had nothing to do for `idle_ns`.
    fn pool_is_idle(&self, pool: usize, idle_ns: u64) -> bool {
        self.units.pools[pool]
            .lanes
            .iter()
            .all(|&lane| self.lane_is_idle(lane, idle_ns))
    }

    /// Whether every die of the lane has had nothing to do for `idle_ns`.
    pub(crate) fn lane_is_idle(&self, lane: LaneId, idle_ns: u64) -> bool {
        let now = self.backend.now_ns();
        self.layout.lane_planes(lane).iter().all(|&plane| {
            let load = self.backend.load(self.layout.die_of_plane(plane));
            load.idle_since_ns.is_some_and(|since| now - since >= idle_ns)
        })
    }
}
