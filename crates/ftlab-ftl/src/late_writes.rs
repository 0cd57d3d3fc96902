//! Writes that race their copies: a request waits for the copy that is in flash first, and when that is late the policy may
//! ask for one more on another lane. The other copies stay copies.

use crate::backend::{Backend, Class, Need, Notice, OpId, Ticket};
use crate::ftl::Ftl;
use crate::record::Target;
use crate::replicas::{Further, lane_load};
use crate::replication::{CopyPlan, LateWrite, Loads, Of, Wait};
use ftlab_core::{LaneId, Lpn, Slot};

/// A write that waits for the first of its copies.
#[derive(Default)]
pub(crate) struct WriteRace {
    lpn: Lpn,
    /// The first copy, and its page while that is still being assembled.
    first: Option<Slot>,
    assembling: Option<u32>,
    programs: Vec<OpId>,
    /// All copies of the plan have been placed.
    placed: bool,
    join: OpId,
    ticket: Option<Ticket>,
    after_ns: Option<u64>,
    /// Copies that were added as it was late.
    late_copies: u8,
}

impl<B: Backend> Ftl<B> {
    /// A race for the write of `lpn`, if there is anything to race. Its copies come in by [`Ftl::enter_write_race`].
    pub(crate) fn begin_write_race(&mut self, lpn: Lpn, plan: &CopyPlan, ticket: Ticket) -> Option<u32> {
        let races = plan.wait == Wait::First && (plan.copies > 1 || plan.hedge_after_ns.is_some());
        if !B::TIMED || !races {
            return None;
        }
        let key = self.roles.writes.begin()?;
        if let Some(race) = self.roles.writes.get(key) {
            let mut programs = std::mem::take(&mut race.programs);
            programs.clear();
            *race = WriteRace {
                lpn,
                programs,
                ticket: (ticket != Ticket::NONE).then_some(ticket),
                after_ns: plan.hedge_after_ns,
                ..WriteRace::default()
            };
        }
        Some(key)
    }

    /// A copy has been put into the page of `slot`, which has just been programmed or is still being assembled.
    pub(crate) fn enter_write_race(&mut self, key: u32, slot: Slot) {
        let page = self.layout.page_of(slot);
        let assembling = self.being_filled(page);
        let program = self.last_program;
        let Some(race) = self.roles.writes.get(key) else { return };
        race.first.get_or_insert(slot);
        if assembling {
            race.assembling = Some(page);
            self.roles.assembling.push(key);
        } else {
            race.programs.push(program);
        }
    }

    /// All copies have been placed. A race whose first page is still being assembled starts with its program.
    pub(crate) fn start_write_race(&mut self, key: u32) {
        let Some(race) = self.roles.writes.get(key) else { return };
        race.placed = true;
        if race.assembling.is_none()
            && let Some(join) = self.join_copies(key)
        {
            let program = self.roles.writes.get(key).map(|race| race.programs[0]);
            if self.layout.units_per_page == 1
                && let Some(program) = program
            {
                self.hold_buffer_for(program, join);
            }
            self.end_if_settled(key);
        }
    }

    /// `page` has been programmed, and races may have waited for that.
    #[cold]
    pub(crate) fn page_of_races_programmed(&mut self, page: u32, program: OpId, units: u32) {
        let mut waiting = std::mem::take(&mut self.roles.assembling);
        let mut joins = std::mem::take(&mut self.roles.joins);
        joins.clear();
        waiting.retain(|&key| {
            let Some(race) = self.roles.writes.get(key) else {
                return false;
            };
            if race.assembling != Some(page) {
                return true;
            }
            race.assembling = None;
            race.programs.push(program);
            if race.placed {
                joins.extend(self.join_copies(key));
                self.end_if_settled(key);
            }
            false
        });
        self.roles.assembling = waiting;
        if joins.len() as u32 == units {
            let all = match joins[..] {
                [join] => join,
                _ => self.backend.join(&joins, Need::All, Ticket::NONE, None),
            };
            self.hold_buffer_for(program, all);
        }
        self.roles.joins = joins;
    }

    /// The first of the programs is what the write waits for.
    fn join_copies(&mut self, key: u32) -> Option<OpId> {
        let race = self.roles.writes.get(key)?;
        let done = race.after_ns.map(|_| Notice::WriteDone { race: key });
        let ticket = race.ticket.unwrap_or(Ticket::NONE);
        race.join = self.backend.join(&race.programs, Need::First, ticket, done);
        if let Some(after_ns) = race.after_ns {
            self.backend.arm(after_ns, Notice::WriteLate { race: key });
        }
        Some(race.join)
    }

    /// A race that will not get more copies need not be kept.
    fn end_if_settled(&mut self, key: u32) {
        if self.roles.writes.get(key).is_some_and(|race| race.after_ns.is_none()) {
            self.roles.writes.end(key);
        }
    }

    /// The memory of units that left the write buffer is free when their races are over, not when `program` is done.
    fn hold_buffer_for(&mut self, program: OpId, join: OpId) {
        let in_flight = &mut self.buffering.in_flight;
        if let Some(at) = in_flight.iter().rposition(|&id| id == program) {
            in_flight[at] = join;
        }
    }

    /// None of a write's copies is in flash in time: the policy may name a lane for one more.
    pub(crate) fn write_late(&mut self, key: u32) {
        let Some(mut race) = self.roles.writes.take(key) else {
            return;
        };
        let program = self.late_copy(&race);
        if let (Some(program), Some(after_ns)) = (program, race.after_ns) {
            self.counts.hedged_writes += 1;
            race.late_copies += 1;
            self.counts.writes_tried_twice += u64::from(race.late_copies == 1);
            self.counts.writes_tried_thrice += u64::from(race.late_copies == 2);
            self.backend.join_more(race.join, program);
            self.backend.arm(after_ns, Notice::WriteLate { race: key });
        }
        self.roles.writes.put(key, race);
    }

    /// The program of one more copy, if the policy wants one and the unit still lies where the race has put it.
    fn late_copy(&mut self, race: &WriteRace) -> Option<OpId> {
        let first = race.first?;
        if self.backend.is_done(race.join) || self.end_of_life {
            return None;
        }
        let mut slots = std::mem::take(&mut self.roles.slots);
        slots.clear();
        match self.record.entry(race.lpn).target() {
            Target::Slot(slot) if slot == first => slots.push(slot),
            Target::Vpn(vpn) if self.indirection.lies_at(vpn, first) => self.indirection.copies_into(vpn, &mut slots),
            _ => {}
        }
        let lane = if slots.is_empty() {
            None
        } else {
            self.lane_for_late(race.lpn, &slots)
        };
        self.roles.slots = slots;
        let further = Further {
            ticket: race.ticket.map_or(Ticket::NONE, Ticket::followed),
            of: Of::Lpn(race.lpn),
            lane: lane?,
            class: Class::HostWrite,
            from_flash: false,
        };
        self.program_further(&further).map(|(_, program)| program)
    }

    /// The lane that the policy names, if none of the copies at `slots` lies there.
    fn lane_for_late(&mut self, lpn: Lpn, slots: &[Slot]) -> Option<LaneId> {
        let mut copies = std::mem::take(&mut self.roles.copies);
        self.copies_at(slots, &mut copies);
        let now = self.now();
        let (layout, backend) = (&self.layout, &self.backend);
        let late = LateWrite {
            lpn,
            copies: &copies,
            loads: Loads {
                of: &|lane| lane_load(backend, layout, lane),
                lanes: layout.lanes,
            },
            now,
        };
        let policy = self.roles.replication.as_mut();
        let named = policy.and_then(|policy| policy.late(&late));
        let free = named.filter(|&lane| copies.iter().all(|copy| copy.lane != lane));
        self.roles.copies = copies;
        free
    }
}
