//! Garbage collection: pick a victim, move what is valid (`mover`), erase.
//!
//! Without preemption a collection is logically complete when it starts; on the timed backend its reads, programs and
//! erase then run in their dependencies. One that goes on in steps is in `steps`.

mod destination;
mod gather;
mod merging;
pub(crate) mod mover;
mod runs;
pub(crate) mod scatter;
mod steps;

use ftlab_core::RuId;

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, Need, OpId, Ticket};
use crate::frontier::{Frontier, NO_RU};
use crate::ftl::Ftl;
use crate::indirection::CHUNKS;
use crate::placement::Event;
use crate::room;
use crate::units::RuState;

pub(crate) use gather::Gathering;
pub(crate) use mover::Moving;
pub(crate) use steps::Job;

impl<B: Backend> Ftl<B> {
    /// Collects in `pool` until it has more free units than the hard threshold. False if that cannot be done.
    pub(crate) fn make_room(&mut self, pool: usize) -> bool {
        self.make_room_at(pool, None)
    }

    /// As [`Ftl::make_room`]; but where survivors share the frontier of the host, the rest of the unit that they have opened
    /// at `place` is room enough. Otherwise several victims' survivors would fill units of their own, and one frontier would
    /// separate survivors as two do.
    pub(crate) fn make_room_at(&mut self, pool: usize, place: Option<usize>) -> bool {
        let (mut fruitless, mut most) = (0, self.space_made());
        while self.units.pools[pool].free <= self.kept_free(pool) {
            let is_open = |place: usize| self.frontiers.open[place].ru != NO_RU;
            if place.is_some_and(is_open) && self.units.pools[pool].free == self.kept_free(pool) {
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

    /// Free units of `pool` at which collection starts: `gc.hard`, and where open units are not charged those that are there for them
    /// and are not open.
    pub(crate) fn kept_free(&self, pool: usize) -> u32 {
        if self.uncharged == 0 {
            return self.config.gc.hard;
        }
        let lanes = &self.units.pools[pool].lanes;
        let places = (0..self.placing.frontiers)
            .flat_map(|frontier| lanes.iter().map(move |&lane| self.frontiers.place(frontier, lane)));
        let of_pool = self.uncharged * lanes.len() as u32;
        let open = places.filter(|&place| self.frontiers.open[place].ru != NO_RU).count();
        self.config.gc.hard + of_pool - open as u32
    }

    /// Units erased for further use less units that have been used up: grows when a collection frees space.
    fn space_made(&self) -> i64 {
        let reusable = self.units.total_erases as i64 - self.counts.retired as i64;
        let used_up = self.counts.total_programmed() + self.placing.unfilled;
        reusable * i64::from(self.layout.slots_per_ru) - used_up as i64
    }

    /// Most units that are lost because the last page of a collection's copies may not wait until it is full.
    pub(crate) fn padding_per_collection(&self) -> u32 {
        room::padding_per_collection(&self.config, &self.layout)
    }

    /// The victim that the drive's policy chooses, or a placement policy with a rule of its own.
    fn choose_victim(&mut self, pool: usize) -> Option<RuId> {
        let now = self.now();
        let closed = &mut self.units.closed(pool, self.layout.slots_per_ru);
        if self.placing.asks_for_places() {
            self.placement.looks(closed, now);
        }
        match self.placement.victim() {
            Some(own) => own.choose(closed, now),
            None => self.victim.choose(closed, now),
        }
    }

    /// Collects the policy's victim. The emptiest unit is taken instead when what is free might not hold the survivors of the
    /// policy's choice, and when the policy has found nothing `fruitless` times: drawing at random may miss the last invalid
    /// data for ever.
    fn collect_one(&mut self, pool: usize, fruitless: u32) -> bool {
        let (per_ru, padding) = (self.layout.slots_per_ru, self.padding_per_collection());
        let Some(mut victim) = self.choose_victim(pool) else {
            return false;
        };
        let closed = self.units.closed(pool, per_ru);
        let gains = |ru: RuId| closed.ru(ru).valid + padding < per_ru;
        if !gains(victim) && !closed.iter().any(gains) {
            let sparsest = self.sparsest(pool).filter(|&ru| self.survivors_fit(ru, pool));
            self.gc.must_gather = true;
            let collected = sparsest.is_some_and(|ru| self.collect(ru, Cause::Gc));
            self.gc.must_gather = false;
            return collected;
        }
        if fruitless > closed.len() as u32 || !self.survivors_fit(victim, pool) {
            let mut closed = self.units.closed(pool, per_ru);
            let emptiest = closed.emptiest();
            if let Some(emptiest) = emptiest.filter(|&ru| closed.ru(ru).valid < closed.ru(victim).valid) {
                self.counts.emptiest_instead += 1;
                victim = emptiest;
            }
        }
        self.collect(victim, Cause::Gc)
    }

    /// Whether what is open and what is free in `pool` holds whatever the collection of `victim` may write.
    fn survivors_fit(&self, victim: RuId, pool: usize) -> bool {
        let pool = &self.units.pools[pool];
        // With the whole reserve at hand any collection has room: `check_room` sees to that.
        if pool.free >= self.config.gc.hard {
            return true;
        }
        let room = |frontier: Frontier| -> u32 {
            let places = pool.lanes.iter().map(|&lane| self.frontiers.place(frontier, lane));
            let open = places.map(|place| &self.frontiers.open[place]);
            open.filter(|open| open.ru != NO_RU)
                .map(|open| self.layout.slots_per_ru - open.next)
                .sum()
        };
        let unit = &self.units.rus[victim.at()];
        let most = self.units.valid(victim) + self.padding_per_collection();
        let default = self.frontiers.default_survivor(unit.frontier);
        let own = if self.placing.sees_survivors {
            self.placing.frontiers
        } else {
            0
        };
        let survivors = (0..own).chain((default >= own).then_some(default));
        let mut units = survivors.filter(|&frontier| room(frontier) < most).count() as u32;
        let metadata = self.frontiers.all_metadata();
        if let Some(least) = metadata.clone().map(room).min() {
            // Each unit that moves may change a translation page of each table, and trims may have to be journalled. All of
            // that may go to the frontier with the least room, but for a rest at each other one.
            // Packs get their slots before the erase; where chunks are gathered, a unit may hold those of several values.
            let packs = self.roles.packs.len() as u32;
            let values = if packs > 0 {
                most * (CHUNKS as u32 + 1) + packs
            } else {
                most
            };
            // A unit that is merged instead of moved changes the entry of the one that it is merged with as well.
            let changed = if self.roles.merges_collected { 2 * most } else { most };
            let stores = self.translation.most_stores(changed, values) + self.most_journal_pages(most);
            let beyond = stores.saturating_sub(least);
            let others = metadata.len() as u32 - 1;
            units += beyond.div_ceil(self.layout.slots_per_ru) + if beyond > 0 { others } else { 0 };
        }
        units <= pool.free
    }

    /// Pages of the journal that a collection of `most` valid units may have to write: trims, and chunks that it gathers.
    fn most_journal_pages(&self, most: u32) -> u32 {
        let gathers = self.journals_values() && !self.roles.packs.is_empty();
        let gathered = if gathers { 12 * CHUNKS as u32 * most } else { 0 };
        let merges = self.journals_values() && self.roles.merges_collected;
        let merged = if merges { 3 * 16 * most } else { 0 };
        u32::from(self.recovery.is_some()) + (gathered + merged).div_ceil(self.layout.geometry.unit_bytes)
    }

    /// Moves everything valid out of `victim` and erases it.
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
        if !self.move_valid(victim, base, all, cause) {
            self.abandon(victim, cause);
            return false;
        }
        self.end(victim, cause)
    }

    fn begin(&mut self, victim: RuId, cause: Cause) {
        self.tell_collecting(victim);
        self.units.begin_collection(victim);
        self.counts.victim_valid += u64::from(self.units.valid(victim));
        match cause {
            Cause::Wear => self.counts.wear_collections += 1,
            _ => {
                self.counts.gc_collections += 1;
                self.counts.old_victims += u64::from(self.units.rus[victim.at()].last_tick <= self.counted_from);
            }
        }
    }

    fn abandon(&mut self, victim: RuId, cause: Cause) {
        self.gc.copies.clear();
        self.gc.touched.clear();
        self.units.abandon_collection(victim);
        self.end_of_life |= cause != Cause::Wear;
    }

    /// Whether the unit was filled with translation pages, and what else does not belong to the host.
    fn holds_metadata(&self, ru: RuId) -> bool {
        self.frontiers
            .all_metadata()
            .contains(&self.units.rus[ru.at()].frontier)
    }

    /// All valid data has been moved: erase. False if that would lose what the host was promised.
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
    /// and on a drive that recovers from a power cut also the newer versions and the trims that invalidated the rest of it. False
    /// if no page is left for the journal, as units have worn out: after an erase an older version of a trimmed unit could
    /// come back.
    fn secure_copies(&mut self) -> bool {
        if self.recovery.is_some() && !self.program_packs(Ticket::NONE) {
            return false;
        }
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

    /// Erases a unit that holds nothing valid and is being collected.
    pub(crate) fn erase(&mut self, victim: RuId, cause: Cause) {
        if !self.plain_placement {
            let (frontier, now) = (self.units.rus[victim.at()].frontier, self.now());
            self.placement.on(Event::Erased { frontier }, now);
        }
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
            _ => Some(self.backend.join(before, Need::All, Ticket::NONE, None)),
        };
        if let Some(recovery) = &mut self.recovery {
            recovery.awaiting(copied.unwrap_or(OpId::DONE));
        }
        for k in 0..self.layout.width {
            let op = FlashOp {
                kind: FlashOpKind::Erase,
                class: Class::Erase,
                cause,
                page: first + k,
                bytes: 0,
                ticket: Ticket::NONE,
                notice: None,
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
}
