//! Reads that race the copies of a unit: the next copy is tried when the last one is late.

use crate::backend::{Backend, Load, Need, Notice, OpId, Ticket};
use crate::ftl::Ftl;
use crate::roles::Roles;
use ftlab_core::{Lpn, Slot};

/// A race in a notice: its number and its place, both cut to 12 bits.
const RACES: u32 = 1 << 12;
const PLACES: u32 = 1 << 12;

/// A read that races its copies.
pub(crate) struct Hedge {
    /// Tells its notices from those of an earlier race in the same place.
    number: u32,
    join: OpId,
    reads: Vec<OpId>,
    vpn: u32,
    /// Copies still to be tried, the next one last.
    untried: Vec<Slot>,
    bytes: u32,
    after_ns: u64,
}

impl Roles {
    /// Takes the race that the notice `key` is for, unless it is over.
    pub(crate) fn race_of(&mut self, key: u32) -> Option<(usize, Hedge)> {
        let (number, place) = (key / PLACES, key % PLACES);
        let mut races = self
            .hedges
            .iter()
            .enumerate()
            .skip(place as usize)
            .step_by(PLACES as usize);
        let (index, _) = races.find(|(_, race)| race.as_ref().is_some_and(|race| race.number == number))?;
        self.hedges[index].take().map(|hedge| (index, hedge))
    }
}

impl<B: Backend> Ftl<B> {
    /// Reads the first copy of the policy's order and, if asked, the next ones after a delay; the first to complete wins.
    pub(crate) fn race(&mut self, lpn: Lpn, vpn: u32, slots: &[Slot], bytes: u32, ticket: Ticket) {
        let loads: Vec<Load> = slots
            .iter()
            .map(|&slot| {
                let plane = self.layout.address(self.layout.page_of(slot)).plane;
                self.backend.load(self.layout.die_of_plane(plane))
            })
            .collect();
        let now = self.now();
        let mut plan = std::mem::take(&mut self.roles.plan);
        plan.order.clear();
        plan.hedge_after_ns = None;
        match &mut self.roles.replication {
            Some(policy) => policy.read(lpn, &loads, now, &mut plan),
            None => plan.order.push(0),
        }
        let mut untried: Vec<Slot> = plan.order.iter().rev().map(|&copy| slots[copy as usize]).collect();
        let first = untried.pop().expect("a read plan names at least one copy");
        let first = self.layout.page_of(first);
        match plan.hedge_after_ns {
            Some(after_ns) if B::TIMED && !untried.is_empty() && !self.being_filled(first) => {
                let read = self.issue_host_read(first, bytes, Ticket::NONE);
                let free = self.roles.hedges.iter().position(Option::is_none);
                let index = free.unwrap_or(self.roles.hedges.len());
                if free.is_none() {
                    self.roles.hedges.push(None);
                }
                self.roles.races = (self.roles.races + 1) % RACES;
                let key = self.roles.races * PLACES + index as u32 % PLACES;
                let join = self
                    .backend
                    .join(&[read], Need::First, ticket, Some(Notice::Won { race: key }));
                self.roles.hedges[index] = Some(Hedge {
                    number: self.roles.races,
                    join,
                    reads: vec![read],
                    vpn,
                    untried,
                    bytes,
                    after_ns,
                });
                self.backend.arm(after_ns, Notice::Deadline { race: key });
            }
            _ => {
                self.issue_host_read(first, bytes, ticket);
            }
        }
        self.roles.plan = plan;
    }

    /// One of the copies has been read: the other reads are not needed.
    pub(crate) fn won(&mut self, race: u32) {
        if let Some((_, hedge)) = self.roles.race_of(race) {
            hedge.reads.iter().for_each(|&read| self.backend.cancel(read));
        }
    }

    pub(crate) fn hedge(&mut self, key: u32) {
        let Some((index, mut hedge)) = self.roles.race_of(key) else {
            return;
        };
        if !self.backend.is_done(hedge.join)
            && let Some(slot) = hedge.untried.pop()
        {
            // A copy that has been moved or superseded since is no longer there to be read.
            if self.indirection.lies_at(hedge.vpn, slot) {
                self.counts.hedged_reads += 1;
                let read = self.issue_host_read(self.layout.page_of(slot), hedge.bytes, Ticket::NONE);
                self.backend.join_more(hedge.join, read);
                hedge.reads.push(read);
            }
            if !hedge.untried.is_empty() {
                self.backend.arm(hedge.after_ns, Notice::Deadline { race: key });
            }
        }
        self.roles.hedges[index] = Some(hedge);
    }
}
