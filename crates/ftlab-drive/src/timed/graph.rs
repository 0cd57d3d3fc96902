//! Issuing, joining, cancelling and completing: the operation graph without the hardware.

use ftlab_ftl::{Cause, Class, FlashOp, FlashOpKind, Need, OpId, Ticket};

use super::blocks::Found;
use super::ops::{Kind, Link, NONE, State};
use super::ranks::{READS, bit};
use super::tickets::{Part, Path};
use super::{Event, Timed};

impl Timed {
    #[inline]
    pub(super) fn issue_op(&mut self, flash: FlashOp, after: &[OpId]) -> OpId {
        if after.len() > usize::from(u8::MAX) {
            let all = self.issue_join(after, Need::All, Ticket::NONE, 0);
            return self.issue_op(flash, &[all]);
        }
        let at = self.layout.address(flash.page);
        let die = self.die_of_plane[at.plane as usize];
        let index = self.allocate(flash.ticket, flash.notice);
        let op = self.ops.at_mut(index);
        op.page = flash.page;
        op.plane_block = at.plane * self.layout.geometry.blocks + at.block;
        op.page_in_block = at.page;
        op.bytes = flash.bytes;
        op.kind = Kind::of(flash.kind);
        op.class = flash.class;
        op.cause = flash.cause;
        op.die = die;
        let kind = op.kind;
        self.depend(index, after);
        match kind {
            Kind::Read => {
                if let Found::Controller(program) = self.blocks.enter_read(&mut self.ops, index) {
                    return self.serve_from_controller(index, program);
                }
            }
            Kind::Program => {
                let op = self.ops.at_mut(index);
                op.inputs = op.deps as u8;
                self.programs_outstanding += 1;
                self.blocks.enter_program(&mut self.ops, index);
            }
            _ => self.blocks.enter_erase(&mut self.ops, index),
        }
        let die = &mut self.dies[die as usize];
        die.queued += 1;
        die.internal += u32::from(matches!(flash.class, Class::Gc | Class::Erase));
        let id = self.ops.id(index);
        if self.ops.at(index).deps == 0 {
            self.make_ready(index);
        }
        id
    }

    pub(super) fn issue_join(&mut self, inputs: &[OpId], need: Need, ticket: Ticket, notice: u32) -> OpId {
        let index = self.allocate(ticket, notice);
        let op = self.ops.at_mut(index);
        op.kind = match need {
            Need::All => Kind::JoinAll,
            Need::First => Kind::JoinFirst,
        };
        // A join takes the class of the input that releases it; without one it is nobody's work.
        op.class = Class::HostRead;
        op.cause = Cause::Host;
        let id = self.ops.id(index);
        let waits = self.depend(index, inputs);
        let met = match need {
            Need::All => waits == 0,
            Need::First => waits < inputs.len() || inputs.is_empty(),
        };
        if met {
            self.complete(index);
        }
        id
    }

    pub(super) fn extend_join(&mut self, join: OpId, input: OpId) {
        let Some(waiter) = self.ops.live(join) else { return };
        let first = self.ops.at(waiter).kind == Kind::JoinFirst;
        assert!(
            first || self.ops.at(waiter).kind == Kind::JoinAll,
            "inputs can only be added to a join, not to {join:?}"
        );
        match self.ops.live(input) {
            Some(source) => self.ops.connect(source, waiter, Link::Input),
            None if first => self.complete(waiter),
            None => {}
        }
    }

    pub(super) fn issue_barrier(&mut self, ticket: Ticket) {
        if self.programs_outstanding == 0 {
            return;
        }
        let join = self.allocate(ticket, 0);
        let op = self.ops.at_mut(join);
        op.kind = Kind::JoinAll;
        op.class = Class::HostWrite;
        op.cause = Cause::Host;
        for source in self.ops.unfinished() {
            if self.ops.at(source).kind == Kind::Program {
                self.ops.connect(source, join, Link::Input);
            }
        }
    }

    /// Takes `id` out of what its ticket and its notice wait for. A read that has not started leaves its queue; its
    /// dependents go on as if it had completed. Programs and erases change the flash, so they always run.
    pub(super) fn cancel_op(&mut self, id: OpId) {
        let Some(index) = self.ops.live(id) else { return };
        let op = self.ops.at_mut(index);
        op.notice = 0;
        let ticket = std::mem::replace(&mut op.ticket, NONE);
        let (state, kind, die) = (op.state, op.kind, op.die);
        if ticket != NONE {
            let state = self.tickets.at(ticket);
            state.path.charge(Part::Queue, self.now);
            self.ticket_step(ticket);
        }
        match (kind, state) {
            (Kind::Program | Kind::Erase, _) | (_, State::Running | State::Decoding) => {}
            (Kind::Read, State::Ready) => {
                self.dies[die as usize].remove(&mut self.ops, index);
                self.mark_die(die);
                self.complete(index);
            }
            _ => self.complete(index),
        }
    }

    fn allocate(&mut self, ticket: Ticket, notice: u32) -> u32 {
        let index = self.ops.allocate();
        if index as usize >= self.paths.len() {
            self.paths.push(Path::default());
        }
        let op = self.ops.at_mut(index);
        op.ticket = ticket.0;
        op.notice = notice;
        if ticket != Ticket::NONE {
            let state = self.tickets.at(ticket.0);
            debug_assert!(!state.sealed, "ticket {} is sealed", ticket.0);
            state.remaining += 1;
            let mut path = state.path;
            path.charge(Part::Queue, self.now);
            self.paths[index as usize] = path;
        }
        index
    }

    /// Connects `waiter` to those of `after` that have not completed; returns how many.
    #[inline]
    fn depend(&mut self, waiter: u32, after: &[OpId]) -> usize {
        let mut unmet = 0;
        for &id in after {
            if let Some(source) = self.ops.live(id) {
                self.ops.connect(source, waiter, Link::Input);
                unmet += 1;
            }
        }
        unmet
    }

    /// Turns a new read into a copy that completes when everything it depends on has and `program` has its data.
    fn serve_from_controller(&mut self, index: u32, program: u32) -> OpId {
        self.counts.controller_reads += 1;
        let id = self.ops.id(index);
        self.ops.at_mut(index).kind = Kind::Copy;
        if self.ops.at(program).inputs > 0 {
            self.ops.connect(program, index, Link::Data);
        }
        if self.ops.at(index).deps == 0 {
            self.complete(index);
        }
        id
    }

    /// Every dependency of `index` is met.
    #[inline]
    fn make_ready(&mut self, index: u32) {
        let now = self.now;
        let op = self.ops.at_mut(index);
        if op.kind.flash().is_none() {
            self.completing.push(index);
            return;
        }
        op.ready_ns = now;
        op.state = State::Ready;
        let (die, ticket) = (op.die, op.ticket);
        let urges = op.kind == Kind::Read && bit(op.class) & READS != 0;
        if ticket != NONE {
            self.paths[index as usize].gc_clock_ns = self.dies[die as usize].gc_clock(now);
        }
        let queues = &mut self.dies[die as usize];
        queues.urged |= urges;
        queues.enter(&mut self.ops, index);
        self.mark_die(die);
    }

    /// `index` has completed: its ticket, its block, its waiters, its notice; then the joins that this completes.
    #[inline]
    pub(super) fn complete(&mut self, index: u32) {
        self.finish(index);
        while let Some(next) = self.completing.pop() {
            self.finish(next);
        }
    }

    #[inline]
    fn finish(&mut self, index: u32) {
        let op = self.ops.at_mut(index);
        if op.state >= State::Done {
            return;
        }
        op.state = State::Done;
        let (kind, die, ticket, notice) = (op.kind, op.die, op.ticket, op.notice);
        if let Some(flash) = kind.flash() {
            let internal = matches!(op.class, Class::Gc | Class::Erase);
            self.counts.ops[flash as usize][op.cause as usize] += 1;
            let die = &mut self.dies[die as usize];
            die.queued -= 1;
            die.internal -= u32::from(internal);
            if die.queued == 0 {
                die.idle_since_ns = self.now;
            }
            self.programs_outstanding -= u32::from(flash == FlashOpKind::Program);
            if let Some(erase) = self.blocks.leave(&self.ops, index) {
                self.step(erase, Link::Order, index);
            }
            if self.observer.is_some() {
                self.report_done(index);
            }
        }
        if ticket != NONE {
            self.end_path(index, ticket);
        }
        while let Some((waiter, link)) = self.ops.disconnect(index) {
            self.step(waiter, link, index);
        }
        if notice != 0 {
            self.raised.push_back(Event::Notice(notice));
        }
        if self.ops.at(index).deps == 0 {
            self.ops.release(index);
        }
    }

    /// One dependency of `waiter`, on `source`, is met.
    #[inline]
    fn step(&mut self, waiter: u32, link: Link, source: u32) {
        let op = self.ops.at_mut(waiter);
        op.deps -= 1;
        let (deps, kind) = (op.deps, op.kind);
        if op.state == State::Done {
            // A join that had enough, or a cancelled read.
            if deps == 0 {
                self.ops.release(waiter);
            }
            return;
        }
        if kind == Kind::Program {
            if link == Link::Order {
                op.previous = NONE;
            } else {
                op.inputs -= 1;
                if op.inputs == 0 {
                    while let Some(copy) = self.ops.disconnect_data(waiter) {
                        self.step(copy, Link::Data, source);
                    }
                }
            }
        }
        if deps == 0 || kind == Kind::JoinFirst {
            self.inherit(waiter, source);
            self.make_ready(waiter);
        }
    }

    /// `source` was the last thing `waiter` waited for: the wait is accounted to it.
    #[inline]
    fn inherit(&mut self, waiter: u32, source: u32) {
        let now = self.now;
        let from = self.ops.at(source);
        let (class, cause, internal, same) = (
            from.class,
            from.cause,
            from.is_internal(),
            from.ticket == self.ops.at(waiter).ticket,
        );
        let to = self.ops.at_mut(waiter);
        if matches!(to.kind, Kind::JoinAll | Kind::JoinFirst) {
            to.class = class;
            to.cause = cause;
        }
        if to.ticket == NONE {
            return;
        }
        let part = match class {
            Class::Mapping => Part::Map,
            _ if same => {
                let gone_so_far = self.paths[source as usize];
                debug_assert_eq!(gone_so_far.until_ns, now);
                self.paths[waiter as usize] = gone_so_far;
                return;
            }
            _ if internal => Part::GcWait,
            _ => Part::Queue,
        };
        self.paths[waiter as usize].charge(part, now);
    }

    /// An operation with a ticket completes: its path is the ticket's so far.
    #[inline]
    fn end_path(&mut self, index: u32, ticket: u32) {
        let now = self.now;
        let class = self.ops.at(index).class;
        let kind = self.ops.at(index).kind;
        let state = self.tickets.at(ticket);
        if class == Class::Mapping && kind.flash().is_some() {
            state.path.charge(Part::Map, now);
        } else {
            let path = &mut self.paths[index as usize];
            path.charge(Part::Queue, now);
            state.path = *path;
        }
        if state.cross_bytes > 0 && matches!(kind, Kind::Read | Kind::Copy) && class == Class::HostRead {
            let bytes = u64::from(self.ops.at(index).bytes).min(state.cross_bytes - state.crossed_bytes);
            if bytes > 0 {
                let (end, duration) = self.host_out.reserve(now, bytes);
                state.crossed_bytes += bytes;
                state.crossed_ns = end;
                state.crossing_ns = duration;
            }
        }
        self.ticket_step(ticket);
    }

    #[inline]
    fn ticket_step(&mut self, ticket: u32) {
        let state = self.tickets.at(ticket);
        state.remaining -= 1;
        if state.remaining == 0 && state.sealed {
            self.raised.push_back(Event::TicketDone(Ticket(ticket)));
        }
    }
}
