//! Reads of units with copies: the next copy is tried when the last one is late, and the first to complete wins.

use crate::backend::{Backend, Need, Notice, OpId, Ticket};
use crate::ftl::Ftl;
use crate::indirection::Vpn;
use crate::replication::{CopyAt, ReadOf};
use ftlab_core::{Lpn, Slot};

/// A race in a notice: its place in the lower bits, above them a number that tells it from earlier races in that place.
const PLACE_BITS: u32 = 16;
const NUMBER_BITS: u32 = 12;

/// Races under way, in places that are used again.
#[derive(Default)]
pub(crate) struct Races<T> {
    places: Vec<Place<T>>,
    unused: Vec<u32>,
}

#[derive(Default)]
struct Place<T> {
    number: u32,
    running: bool,
    race: T,
}

impl<T: Default> Races<T> {
    /// The key of a new race, whose buffers are those of an earlier one; `None` while 65,536 are under way.
    pub fn begin(&mut self) -> Option<u32> {
        let at = match self.unused.pop() {
            Some(at) => at,
            None if self.places.len() == 1 << PLACE_BITS => return None,
            None => {
                self.places.push(Place::default());
                self.places.len() as u32 - 1
            }
        };
        let place = &mut self.places[at as usize];
        place.running = true;
        place.number = (place.number + 1) % (1 << NUMBER_BITS);
        Some(place.number << PLACE_BITS | at)
    }

    /// The race `key`, unless it is over.
    pub fn get(&mut self, key: u32) -> Option<&mut T> {
        let place = self.places.get_mut((key % (1 << PLACE_BITS)) as usize)?;
        (place.running && place.number == key >> PLACE_BITS).then_some(&mut place.race)
    }

    /// Takes the race `key` out while it is worked on; it goes back with [`Races::put`].
    pub fn take(&mut self, key: u32) -> Option<T> {
        self.get(key).map(std::mem::take)
    }

    pub fn put(&mut self, key: u32, race: T) {
        if let Some(place) = self.get(key) {
            *place = race;
        }
    }

    pub fn end(&mut self, key: u32) {
        if self.get(key).is_some() {
            let at = key % (1 << PLACE_BITS);
            self.places[at as usize].running = false;
            self.unused.push(at);
        }
    }

    pub fn clear(&mut self) {
        self.places.clear();
        self.unused.clear();
    }
}

/// A read that races its copies.
#[derive(Default)]
pub(crate) struct ReadRace {
    join: OpId,
    reads: Vec<OpId>,
    vpn: Vpn,
    /// Copies still to be tried, the next one last.
    untried: Vec<Slot>,
    bytes: u32,
    after_ns: u64,
    ticket: Option<Ticket>,
}

impl<B: Backend> Ftl<B> {
    /// Lanes and loads of the copies at `slots`.
    pub(crate) fn copies_at(&self, slots: &[Slot], copies: &mut Vec<CopyAt>) {
        copies.clear();
        copies.extend(slots.iter().map(|&slot| {
            let plane = self.layout.address(self.layout.page_of(slot)).plane;
            CopyAt {
                lane: self.layout.lane_of(self.layout.ru_of(slot)),
                load: self.backend.load(self.layout.die_of_plane(plane)),
            }
        }));
    }

    /// Lets the replication policy fill the plan of a read of `lpn`, whose data lies at `slots`.
    pub(crate) fn plan_read(&mut self, lpn: Lpn, vpn: Option<Vpn>, slots: &[Slot]) {
        let mut copies = std::mem::take(&mut self.roles.copies);
        self.copies_at(slots, &mut copies);
        let now = self.now();
        let plan = &mut self.roles.plan;
        plan.order.clear();
        plan.hedge_after_ns = None;
        if let Some(policy) = &mut self.roles.replication {
            let read = ReadOf {
                lpn,
                vpn,
                copies: &copies,
                now,
            };
            policy.read(&read, plan);
        }
        if slots.len() > 1 {
            self.counts.copied_reads += 1;
            self.counts.redirected_reads += u64::from(plan.order.first().is_some_and(|&copy| copy > 0));
        }
        self.roles.copies = copies;
    }

    /// Reads a unit behind a virtual page number: the first copy of the policy's order and, if asked, the next ones after a
    /// delay.
    pub(crate) fn read_copies(&mut self, lpn: Lpn, vpn: Vpn, bytes: u32, ticket: Ticket) {
        let mut slots = std::mem::take(&mut self.roles.slots);
        self.indirection.copies_into(vpn, &mut slots);
        slots.iter().for_each(|&slot| self.check_read(lpn, slot));
        self.plan_read(lpn, Some(vpn), &slots);
        let plan = &self.roles.plan;
        let first = slots[plan.order.first().map_or(0, |&copy| usize::from(copy))];
        let page = self.layout.page_of(first);
        let races = B::TIMED && plan.order.len() > 1 && !self.being_filled(page);
        let hedge = plan.hedge_after_ns.filter(|_| races);
        match hedge.and_then(|after_ns| self.roles.reads.begin().map(|key| (after_ns, key))) {
            Some((after_ns, key)) => {
                let read = self.issue_host_read(page, bytes, ticket.followed());
                let won = Some(Notice::Won { race: key });
                let join = self.backend.join(&[read], Need::First, ticket, won);
                let order = &self.roles.plan.order;
                if let Some(race) = self.roles.reads.get(key) {
                    (race.join, race.vpn, race.bytes, race.after_ns) = (join, vpn, bytes, after_ns);
                    race.ticket = Some(ticket);
                    race.reads.clear();
                    race.reads.push(read);
                    race.untried.clear();
                    race.untried
                        .extend(order[1..].iter().rev().map(|&copy| slots[usize::from(copy)]));
                }
                self.backend.arm(after_ns, Notice::Deadline { race: key });
            }
            None => {
                self.issue_host_read(page, bytes, ticket);
            }
        }
        self.roles.slots = slots;
    }

    /// One of the copies has been read: the other reads are not needed.
    pub(crate) fn won(&mut self, key: u32) {
        if let Some(race) = self.roles.reads.get(key) {
            race.reads.iter().for_each(|&read| self.backend.cancel(read));
            self.roles.reads.end(key);
        }
    }

    pub(crate) fn read_late(&mut self, key: u32) {
        let Some(mut race) = self.roles.reads.take(key) else {
            return;
        };
        if !self.backend.is_done(race.join)
            && let Some(slot) = race.untried.pop()
        {
            // A copy that has been moved, dropped or superseded since is no longer there to be read.
            if self.indirection.lies_at(race.vpn, slot) {
                self.counts.hedged_reads += 1;
                self.counts.reads_tried_twice += u64::from(race.reads.len() == 1);
                self.counts.reads_tried_thrice += u64::from(race.reads.len() == 2);
                let ticket = race.ticket.map_or(Ticket::NONE, Ticket::followed);
                let read = self.issue_host_read(self.layout.page_of(slot), race.bytes, ticket);
                self.backend.join_more(race.join, read);
                race.reads.push(read);
            }
            if !race.untried.is_empty() {
                self.backend.arm(race.after_ns, Notice::Deadline { race: key });
            }
        }
        self.roles.reads.put(key, race);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_used_again_is_another_race() {
        let mut races = Races::<u32>::default();
        let (first, other) = (races.begin().unwrap(), races.begin().unwrap());
        *races.get(first).unwrap() = 7;
        races.end(first);
        races.end(first);
        let again = races.begin().unwrap();
        assert_eq!(
            again % (1 << PLACE_BITS),
            first % (1 << PLACE_BITS),
            "the place is used again"
        );
        assert!(races.get(first).is_none() && races.get(other).is_some() && races.get(again).is_some());
        assert_ne!(
            races.begin().unwrap() % (1 << PLACE_BITS),
            again % (1 << PLACE_BITS),
            "ended once, free once"
        );
    }
}
