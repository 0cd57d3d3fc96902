//! Copies of units: those of a host write, and one more of a unit that lies in flash or is on its way there.

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, Load, OpId, Ticket};
use crate::dedup;
use crate::frontier::{Frontier, NO_RU};
use crate::ftl::Ftl;
use crate::indirection::{MAX_COPIES, Vpn};
use crate::mapping::Why;
use crate::owner::{Owner, Packed};
use crate::record::{Entry, Target};
use crate::replication::{CopyPlan, Event, Of, Wait, WriteOf};
use crate::request::WriteContext;
use ftlab_core::{LaneId, Layout, Lpn, Slot};

/// A further copy, for which nobody's request waits by itself.
pub(crate) struct Further {
    pub of: Of,
    pub lane: LaneId,
    pub class: Class,
    /// Of the request that goes on when this copy is in flash first, [followed](Ticket::followed).
    pub ticket: Ticket,
    /// The data has left the controller's memory and must be read.
    pub from_flash: bool,
}

impl<B: Backend> Ftl<B> {
    /// Tells the replication policy.
    pub(crate) fn tell_replication(&mut self, event: Event) {
        let now = self.now();
        if let Some(policy) = &mut self.roles.replication {
            policy.on(event, now);
        }
    }

    /// How many copies a host write gets, and what it waits for.
    pub(crate) fn plan_copies(&mut self, lpn: Lpn, context: &WriteContext) -> CopyPlan {
        let now = self.now();
        let policy = self.roles.replication.as_mut();
        policy.map_or(CopyPlan::ONE, |policy| policy.write(&WriteOf { lpn, context, now }))
    }

    /// Programs `lpn` once, for which nobody else is asked. False at end of life.
    #[inline]
    pub(crate) fn program_alone(&mut self, lpn: Lpn, frontier: Frontier, ticket: Ticket) -> bool {
        let was_direct = self.record.entry(lpn).as_slot().is_some();
        let stored = self.program_unit(lpn, frontier, Cause::Host, Class::HostWrite, ticket);
        if stored && was_direct {
            self.tell_dedup(dedup::Event::Gone(Of::Lpn(lpn)));
        }
        stored
    }

    /// The same of `lpn` as the replication policy has planned it. False at end of life.
    pub(crate) fn program_single(&mut self, lpn: Lpn, frontier: Frontier, plan: &CopyPlan, ticket: Ticket) -> bool {
        let race = self.begin_write_race(lpn, plan, ticket);
        let waits = if race.is_some() { ticket.followed() } else { ticket };
        let stored = self.program_alone(lpn, frontier, waits);
        match (race, self.record.entry(lpn).as_slot()) {
            (Some(race), Some(slot)) if stored => {
                self.enter_write_race(race, slot);
                self.start_write_race(race);
            }
            (Some(race), _) => self.roles.writes.end(race),
            (None, _) => {}
        }
        stored
    }

    /// Programs the copies of `plan` behind a new VPN; without one to be had, only once. False at end of life.
    pub(crate) fn program_copies(&mut self, lpn: Lpn, frontier: Frontier, plan: &CopyPlan, ticket: Ticket) -> bool {
        let wanted = usize::from(plan.copies).clamp(1, MAX_COPIES);
        // The VPN exists before its slots, so that a collection in between can move a copy that has been made.
        let Some(vpn) = self.indirection.create() else {
            return self.program_single(lpn, frontier, plan, ticket);
        };
        let race = self.begin_write_race(lpn, plan, ticket);
        let mut lanes = std::mem::take(&mut self.roles.lanes_used);
        lanes.clear();
        for copy in 0..wanted {
            let place = if copy == 0 {
                self.place_for(lpn, frontier)
            } else if self.roles.further >= self.roles.room {
                None
            } else {
                let lane = self.other_lane(frontier, &lanes);
                self.open_for_copy(frontier, lane)
            };
            let Some(place) = place else {
                if copy == 0 {
                    race.into_iter().for_each(|race| self.roles.writes.end(race));
                    self.release(Entry::vpn(vpn));
                    self.roles.lanes_used = lanes;
                    return false;
                }
                // A drive that is too full for a further copy does without.
                break;
            };
            let cause = if copy == 0 { Cause::Host } else { Cause::Replication };
            let waits = match race {
                Some(_) => ticket.followed(),
                None if copy == 0 || plan.wait == Wait::All => ticket,
                None => Ticket::NONE,
            };
            let slot = self.append(place, Packed::from(Owner::Vpn(vpn)), cause, Class::HostWrite, waits);
            self.stamp_slot(slot);
            let lane = self.frontiers.of_place(place).1;
            lanes.push(lane);
            self.indirection.add_copy(vpn, slot);
            self.written_for(lpn, slot);
            if copy == 0 {
                self.repoint(lpn, Entry::vpn(vpn));
            } else {
                self.roles.further += 1;
                self.counts.replica_programs += 1;
                // Nobody else may come to wait for a page that a race watches.
                self.pad(place);
                let of = Of::Lpn(lpn);
                self.tell_replication(Event::Copied { of, vpn, lane });
            }
            if let Some(race) = race {
                self.enter_write_race(race, slot);
            }
        }
        self.vpn_changed(vpn, ticket);
        if let Some(race) = race {
            self.start_write_race(race);
        }
        self.roles.lanes_used = lanes;
        true
    }

    /// Programs one more copy, on the lane named. Returns the VPN and the program; `None` if there is nothing to copy, there
    /// are [`MAX_COPIES`] already, or the drive or the lane has no room.
    pub(crate) fn program_further(&mut self, further: &Further) -> Option<(Vpn, OpId)> {
        let &Further { of, lane, class, .. } = further;
        let mut lies_at = self.copy_source(of)?;
        if self.roles.further >= self.roles.room {
            if !self.give_up_for_another() {
                return None;
            }
            // What was given up may have been a copy of this unit.
            lies_at = self.copy_source(of)?;
        }
        if !self.plain_mapping
            && let (Of::Lpn(lpn), None) = (of, lies_at.0)
        {
            self.look_up(0, lpn.0..lpn.0 + 1, lpn.0 + 1, Why::HostWrite, Ticket::NONE);
        }
        let from = self.units.rus[self.layout.ru_of(lies_at.1).at()].frontier;
        let belongs = self.frontiers.of_policy(from);
        let frontier = if belongs < self.frontiers.host { belongs } else { 0 };
        let bound = self.placing.lanes_of(frontier);
        if lane.0 >= self.layout.lanes || bound.is_some_and(|lanes| !lanes.contains(&lane)) {
            return None;
        }
        let place = self.open_for_copy(frontier, lane)?;
        if self.frontiers.of_place(place).1 != lane {
            return None;
        }
        // Making room may have moved the copies: look again.
        let (vpn, source) = match (self.copy_source(of)?, of) {
            ((Some(vpn), source), _) => (vpn, source),
            ((None, source), Of::Lpn(lpn)) => (self.make_value(lpn, source)?, source),
            ((None, _), Of::Vpn(_)) => return None,
        };
        let is_lost = further.from_flash && self.is_value_lost(vpn);
        if further.from_flash {
            self.read_for_copy(source, place);
        }
        let slot = self.append(
            place,
            Packed::from(Owner::Vpn(vpn)),
            Cause::Replication,
            class,
            further.ticket,
        );
        self.lost_or_not(slot, is_lost);
        self.roles.further += 1;
        self.counts.replica_programs += 1;
        if let Some(versions) = &mut self.versions {
            versions.moved(source, slot);
        }
        self.indirection.add_copy(vpn, slot);
        if let (Of::Lpn(lpn), false) = (of, further.from_flash) {
            // The write may be acknowledged when only this copy is in flash.
            self.written_for(lpn, slot);
        }
        self.pad(place);
        let program = self.last_program;
        if let (false, Of::Lpn(lpn), None) = (self.plain_mapping, of, lies_at.0) {
            self.map_changed(0, lpn.0, Ticket::NONE);
        }
        self.vpn_changed(vpn, Ticket::NONE);
        self.tell_replication(Event::Copied { of, vpn, lane });
        Some((vpn, program))
    }

    /// Counts the copies beyond the first of each value: a power cut may have ended some.
    pub(crate) fn count_further(&mut self) {
        let copies = self.indirection.in_use().map(|vpn| self.indirection.copy_count(vpn));
        self.roles.further = copies.map(|copies| copies.saturating_sub(1) as u64).sum();
    }

    /// The VPN of what is to be copied, if it has one, and a place of its data.
    fn copy_source(&self, of: Of) -> Option<(Option<Vpn>, Slot)> {
        let vpn = match of {
            Of::Vpn(vpn) => vpn,
            Of::Lpn(lpn) if lpn.0 >= self.config.logical_units => return None,
            Of::Lpn(lpn) => match self.record.entry(lpn).target() {
                Target::Unmapped | Target::Chunks(_) => return None,
                Target::Slot(slot) => return Some((None, slot)),
                Target::Vpn(vpn) => vpn,
            },
        };
        if self.indirection.gathered_in(vpn).is_some() || !self.indirection.members(vpn).is_empty() {
            // Chunks of several values are not copied.
            return None;
        }
        let copies = self.indirection.copy_count(vpn);
        if copies == 0 || copies >= MAX_COPIES {
            return None;
        }
        self.indirection.first_slot(vpn).map(|slot| (Some(vpn), slot))
    }

    /// The page being assembled at `place` waits for the data at `source`.
    fn read_for_copy(&mut self, source: Slot, place: usize) {
        let page = self.layout.page_of(source);
        if !B::TIMED {
            return;
        }
        if self.being_filled(page) {
            let from = self.units.rus[self.layout.ru_of(source).at()].place as usize;
            for input in 0..self.frontiers.open[from].inputs.len() {
                let input = self.frontiers.open[from].inputs[input];
                self.frontiers.open[place].inputs.push(input);
            }
            return;
        }
        let op = FlashOp {
            kind: FlashOpKind::Read,
            class: Class::Gc,
            cause: Cause::Replication,
            page,
            bytes: self.layout.geometry.unit_bytes,
            ticket: Ticket::NONE,
            notice: None,
        };
        let read = self.backend.issue(op, &[]);
        self.frontiers.open[place].inputs.push(read);
    }

    /// The lane of `frontier` after the last one used, if there is one that has no copy yet.
    fn other_lane(&self, frontier: Frontier, used: &[LaneId]) -> LaneId {
        let last = used.last().copied().unwrap_or(LaneId(0));
        let mut lanes = self.placing.lanes_after(frontier, last, self.layout.lanes);
        lanes.find(|lane| !used.contains(lane)).unwrap_or(last)
    }

    fn open_for_copy(&mut self, frontier: Frontier, lane: LaneId) -> Option<usize> {
        let place = self.frontiers.place(frontier, lane);
        if self.frontiers.open[place].ru != NO_RU {
            return Some(place);
        }
        let pool = self.units.pool_of_lane(lane);
        if !self.make_room(pool) {
            return None;
        }
        self.open_in_pool(frontier, lane, false)
    }
}

/// The load of a lane: of its dies together. Without time it is idle.
#[inline]
pub(crate) fn lane_load<B: Backend>(backend: &B, layout: &Layout, lane: LaneId) -> Load {
    let idle = Load {
        idle_since_ns: Some(0),
        ..Load::default()
    };
    if !B::TIMED {
        return idle;
    }
    let dies = layout.lane_dies(lane).iter();
    dies.map(|&die| backend.load(die)).fold(idle, |all, die| Load {
        queued: all.queued.max(die.queued),
        internal: all.internal.max(die.internal),
        idle_since_ns: all.idle_since_ns.zip(die.idle_since_ns).map(|(all, die)| all.max(die)),
    })
}
