//! Survivors whose frontiers a placement policy chooses: it is asked about many at once, and they are moved together.
//!
//! Each goes to the slot where it would go by itself: a round ends before a unit must be opened and after one is full, so
//! that units are opened and closed in the same order.

use ftlab_core::{Lpn, Slot};

use crate::backend::{Backend, Cause};
use crate::frontier::{Frontier, NO_RU};
use crate::ftl::Ftl;
use crate::gc::mover::{AHEAD, Moving, Way};
use crate::owner::Packed;
use crate::record::Entry;

/// The frontier of a survivor, and whether the policy has left it to the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chosen(Frontier);

const BY_DRIVE: Frontier = 1 << 15;

impl Chosen {
    #[inline(always)]
    pub fn by_policy(frontier: Frontier) -> Self {
        Chosen(frontier)
    }

    #[inline(always)]
    pub fn by_drive(frontier: Frontier) -> Self {
        Chosen(frontier | BY_DRIVE)
    }

    #[inline(always)]
    pub fn frontier(self) -> Frontier {
        self.0 & !BY_DRIVE
    }

    #[inline(always)]
    pub fn is_by_drive(self) -> bool {
        self.0 & BY_DRIVE != 0
    }
}

/// Where the next survivor of a frontier goes.
#[derive(Clone, Copy, Default)]
pub(super) struct Cursor {
    first: u32,
    next: u32,
    /// The slot after the last of the open unit; `next` where none is open.
    end: u32,
    /// Survivors that the policy has left to the drive.
    by_drive: u32,
}

impl<B: Backend> Ftl<B> {
    /// Whether survivors that a policy is asked about are moved together: nothing else is kept of each, and they stay on the lane of
    /// their victim.
    pub(super) fn scatters(&self) -> bool {
        !B::TIMED
            && self.placing.sees_survivors
            && self.recovery.is_none()
            && self.lost.is_none()
            && self.stays_on_lane()
            && !self.placing.binds_lanes()
    }

    /// Asks the policy about the units from number `at` on that LPNs own.
    fn choose_frontiers(&mut self, moving: &mut Moving, at: usize, way: &Way) {
        let (owners, slots) = (&moving.owners[at..], &moving.slots[at..]);
        let is_other = |&owner: &u32| Packed(owner).as_lpn().is_none();
        let lpns = &owners[..owners.iter().position(is_other).unwrap_or(owners.len())];
        // What lies before has been moved.
        moving.chosen.resize(at, Chosen::by_drive(0));
        if way.cause == Cause::Wear
            && let Some(wear) = self.frontiers.wear_of(way.from)
        {
            // No policy is asked about those.
            moving.chosen.resize(at + lpns.len(), Chosen::by_drive(wear));
        } else {
            moving.asked_singly |= !self.place_survivors(lpns, slots, way, &mut moving.chosen);
        }
    }

    /// Moves some of the units from number `at` on, of which an LPN owns the first. Returns their number; 0 when there is no room.
    /// `page` is the page read last.
    pub(super) fn scatter(&mut self, moving: &mut Moving, at: usize, way: Way, page: &mut u32) -> u32 {
        if moving.chosen.len() <= at {
            self.choose_frontiers(moving, at, &way);
        }
        let chosen = moving.chosen[at];
        let own = self.frontiers.place(chosen.frontier(), way.lane);
        if self.frontiers.open[own].ru == NO_RU {
            let lpn = Packed(moving.owners[at]).as_lpn();
            if !chosen.is_by_drive() {
                self.placing.touch(chosen.frontier(), self.tick);
            }
            let place = self.survivor_place(lpn, chosen.frontier(), way);
            if place != Some(own) {
                self.count_survivors(chosen.frontier(), u32::from(!chosen.is_by_drive()));
                moving.astray.extend(lpn);
                // Elsewhere, as the lane has no free unit: the next one looks again.
                return place.map_or(0, |place| self.move_to(place, moving, at, way));
            }
        }
        self.set_cursors(moving, way);
        let moved = self.scatter_round(moving, at);
        self.count_reads(&moving.slots[at..at + moved], way, page);
        self.end_round(moving, at, moved, way);
        if moving
            .order
            .iter()
            .any(|&frontier| moving.cursors[usize::from(frontier)].by_drive > 0)
        {
            let by_drive = (at..at + moved).filter(|&at| moving.chosen[at].is_by_drive());
            moving.astray.extend(by_drive.map(|at| Lpn(moving.owners[at])));
        }
        moved as u32
    }

    /// Moves unit number `at` to `place`.
    fn move_to(&mut self, place: usize, moving: &Moving, at: usize, way: Way) -> u32 {
        let (owner, slot) = (&moving.owners[at..=at], &moving.slots[at..=at]);
        if self.layout.units_per_page > 1 {
            self.touch(place);
        }
        let new = self.append_run(place, owner, way.cause);
        self.record.set_entry(Lpn(owner[0]), Entry::slot(new));
        self.placing.moved(Slot(slot[0]), new);
        self.left_behind(owner, slot, way);
        1
    }

    /// The policy has chosen `frontier` for so many survivors.
    fn count_survivors(&mut self, frontier: Frontier, count: u32) {
        if count > 0 {
            self.placing.touch(frontier, self.tick);
            self.placing.counts[frontier as usize].survivors += u64::from(count);
        }
    }

    fn set_cursors(&self, moving: &mut Moving, way: Way) {
        moving.cursors.clear();
        moving.cursors.extend((0..self.frontiers.count).map(|frontier| {
            let open = &self.frontiers.open[self.frontiers.place(frontier, way.lane)];
            let (next, end) = (open.base + open.next, open.base + self.layout.slots_per_ru);
            Cursor {
                first: next,
                next,
                end: if open.ru == NO_RU { next } else { end },
                by_drive: 0,
            }
        }));
        moving.order.clear();
    }

    /// Gives the units from number `at` on their slots, until one of them needs another unit or has filled one. Returns their number.
    fn scatter_round(&mut self, moving: &mut Moving, at: usize) -> usize {
        let Moving {
            slots,
            owners,
            chosen,
            cursors,
            order,
            ..
        } = moving;
        let all = chosen.len() - at;
        let cursors = &mut cursors[..];
        let mut spread = self.record.spread();
        for (moved, (&owner, &chosen)) in owners[at..].iter().zip(&chosen[at..]).enumerate() {
            let cursor = &mut cursors[usize::from(chosen.frontier())];
            if cursor.next == cursor.end {
                return moved;
            }
            if cursor.next == cursor.first {
                order.push(chosen.frontier());
            }
            if let Some(&later) = owners.get(at + moved + AHEAD) {
                spread.prefetch(later);
            }
            spread.prefetch_fill(Slot(cursor.next));
            self.placing.prefetch_fill(Slot(cursor.next));
            spread.put(Lpn(owner), Slot(cursor.next));
            self.placing.moved(Slot(slots[at + moved]), Slot(cursor.next));
            cursor.next += 1;
            cursor.by_drive += u32::from(chosen.is_by_drive());
            if cursor.next == cursor.end {
                return moved + 1;
            }
        }
        all
    }

    /// What follows from the moves of a round, frontier by frontier in the order in which they came up.
    fn end_round(&mut self, moving: &Moving, at: usize, moved: usize, way: Way) {
        for &frontier in &moving.order {
            let cursor = moving.cursors[frontier as usize];
            let (count, place) = (cursor.next - cursor.first, self.frontiers.place(frontier, way.lane));
            self.count_survivors(frontier, count - cursor.by_drive);
            if self.layout.units_per_page > 1 {
                self.touch(place);
            }
            self.record.set_valid_range(Slot(cursor.first), count);
            self.filled(place, count, way.cause);
        }
        let range = at..at + moved;
        self.left_behind(&moving.owners[range.clone()], &moving.slots[range], way);
    }
}
