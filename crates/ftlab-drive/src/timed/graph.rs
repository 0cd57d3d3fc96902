//! Issuing, joining, cancelling and completing: the operation graph without the hardware.

use ftlab_core::Part;
use ftlab_ftl::{Class, FlashOp, FlashOpKind, Need, Notice, OpId, Ticket};

use super::blocks::Found;
use super::ops::{Dependency, Kind, NONE, Op, State};
use super::places::Place;
use super::ranks::{READS, bit};
use super::tickets::{Path, Tickets};
use super::{Event, Timed};

/// The path of an operation that carries a ticket.
#[inline(always)]
pub(super) fn path_of<'a>(op: &Op, index: u32, paths: &'a mut [Path], tickets: &'a mut Tickets) -> &'a mut Path {
    if op.is_sole() {
        &mut tickets.at(op.ticket).path
    } else {
        &mut paths[index as usize]
    }
}

impl Timed {
    #[inline]
    pub(super) fn issue_op(&mut self, flash: FlashOp, after: &[OpId]) -> OpId {
        let place = self.places.find(flash.page);
        if flash.kind == FlashOpKind::Read && flash.class != Class::Gc && after.is_empty() {
            return self.issue_plain_read(&flash, place, false);
        }
        // Copies of a collection are gathered in runs.
        let copies =
            self.has_runs && flash.class == Class::Gc && flash.ticket == Ticket::NONE && flash.notice.is_none();
        let begins = copies
            && match flash.kind {
                FlashOpKind::Read => after.is_empty(),
                FlashOpKind::Program => true,
                FlashOpKind::Erase => false,
            };
        if begins {
            let added = match flash.kind {
                FlashOpKind::Read => self.add_to_reads(&flash, place),
                _ => self.add_to_programs(&flash, place, after),
            };
            if let Some(id) = added {
                return id;
            }
        }
        self.issue_new(&flash, place, after, begins)
    }

    /// Issues an operation that waits for nothing and is the only one of its ticket.
    #[inline(always)]
    pub(super) fn issue_sole_op(&mut self, flash: FlashOp) -> OpId {
        let sole = flash.kind == FlashOpKind::Read && !matches!(flash.class, Class::Gc | Class::Mapping);
        if !sole {
            return self.issue_op(flash, &[]);
        }
        let place = self.places.find(flash.page);
        self.issue_plain_read(&flash, place, true)
    }

    /// Issues an operation with an entry of its own, which may be the first of a run.
    #[inline(never)]
    pub(super) fn issue_new(&mut self, flash: &FlashOp, place: Place, after: &[OpId], begins: bool) -> OpId {
        if after.len() > usize::from(u8::MAX) {
            let all = self.issue_join(after, Need::All, Ticket::NONE, None);
            return self.issue_new(flash, place, &[all], begins);
        }
        let kind = Kind::of(flash.kind);
        let Place { block, page, die } = place;
        let index = self.ops.insert(Op {
            page: flash.page,
            block,
            page_in_block: page,
            bytes: flash.bytes,
            ticket: flash.ticket.0,
            notice: flash.notice.map_or(0, Notice::packed),
            kind,
            class: flash.class,
            cause: flash.cause,
            die,
            ..Op::EMPTY
        });
        if flash.ticket != Ticket::NONE {
            self.begin_path(index, flash.ticket);
        }
        let inputs = self.depend(index, after);
        if inputs == 0 {
            self.dies[usize::from(die)].reads = NONE;
        }
        match kind {
            Kind::Read => {
                match self.blocks.enter_read(&self.ops, block, page) {
                    Found::Controller(program) => return self.serve_from_controller(index, program),
                    Found::Flash { epoch } => self.ops.at_mut(index).epoch = epoch,
                }
                if begins {
                    self.begin_reads(index);
                }
            }
            Kind::Program => {
                self.ops.at_mut(index).inputs = inputs as u8;
                self.programs_outstanding += 1;
                self.blocks.enter_program(&mut self.ops, index);
                if begins {
                    self.begin_programs(index);
                }
            }
            _ => self.blocks.enter_erase(&mut self.ops, index),
        }
        let die = &mut self.dies[usize::from(die)];
        die.queued += 1;
        die.internal += u32::from(matches!(flash.class, Class::Gc | Class::Erase));
        let id = self.ops.id(index);
        if self.ops.at(index).deps == 0 {
            self.make_ready(index);
        }
        id
    }

    pub(super) fn issue_join(&mut self, inputs: &[OpId], need: Need, ticket: Ticket, notice: Option<Notice>) -> OpId {
        let kind = match need {
            Need::All => Kind::JoinAll,
            Need::First => Kind::JoinFirst,
        };
        // A join takes the class of the input that releases it; without one it is nobody's work.
        let index = self.insert_join(kind, Class::HostRead, ticket, notice);
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
            Some(source) => self.ops.connect(source, input.generation, waiter, Dependency::Input),
            None if first => self.complete(waiter),
            None => {}
        }
    }

    pub(super) fn issue_barrier(&mut self, ticket: Ticket) {
        if self.programs_outstanding == 0 {
            return;
        }
        let join = self.insert_join(Kind::JoinAll, Class::HostWrite, ticket, None);
        let before = self.ops.live(self.last_barrier);
        self.last_barrier = self.ops.id(join);
        // What was issued before an unfinished barrier that barrier waits for: otherwise each would wait for every program.
        let since = before.map(|barrier| self.ops.at(barrier).sequence);
        if let Some(barrier) = before {
            let last = self.ops.last_generation(barrier);
            self.ops.connect(barrier, last, join, Dependency::Input);
        }
        for source in self.ops.unfinished() {
            let op = self.ops.at(source);
            let is_new = since.is_none_or(|since| self.ops.age(op.sequence) <= self.ops.age(since));
            // A run may have got more members since.
            if op.kind.is_program() && (is_new || op.kind.is_run()) {
                let last = self.ops.last_generation(source);
                self.ops.connect(source, last, join, Dependency::Input);
            }
        }
    }

    /// Takes `id` out of what its ticket and its notice wait for. A read that has not started leaves its queue; its
    /// dependents go on as if it had completed. Programs and erases change the flash, so they always run.
    pub(super) fn cancel_op(&mut self, id: OpId) {
        let Some(index) = self.ops.live(id) else { return };
        let op = self.ops.at_mut(index);
        if op.kind == Kind::Programs {
            return;
        }
        assert!(op.kind != Kind::Reads, "a read of a collection is cancelled: {id:?}");
        op.notice = 0;
        let ticket = std::mem::replace(&mut op.ticket, NONE);
        let (state, kind, die) = (op.state, op.kind, op.die);
        if Ticket(ticket).is_awaited() {
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

    fn insert_join(&mut self, kind: Kind, class: Class, ticket: Ticket, notice: Option<Notice>) -> u32 {
        let index = self.ops.insert(Op {
            kind,
            class,
            ticket: ticket.0,
            notice: notice.map_or(0, Notice::packed),
            ..Op::EMPTY
        });
        if ticket != Ticket::NONE {
            self.begin_path(index, ticket);
        }
        index
    }

    /// A new operation carries `ticket`: its way begins with what has happened to the ticket so far.
    #[inline]
    pub(super) fn begin_path(&mut self, index: u32, ticket: Ticket) -> &mut Path {
        let state = self.tickets.known(Ticket(ticket.number()));
        if ticket.is_awaited() {
            debug_assert!(!state.sealed, "ticket {} is sealed", ticket.0);
            state.remaining += 1;
        }
        let mut path = state.path;
        path.charge(Part::Queue, self.now);
        if index as usize >= self.paths.len() {
            self.paths.resize(index as usize + 1, Path::default());
        }
        let entry = &mut self.paths[index as usize];
        *entry = path;
        entry
    }

    /// The path of an operation that carries a ticket.
    #[inline(always)]
    pub(super) fn path(&mut self, index: u32) -> &mut Path {
        path_of(self.ops.at(index), index, &mut self.paths, &mut self.tickets)
    }

    /// Connects `waiter` to those of `after` that have not completed; returns how many.
    #[inline]
    pub(super) fn depend(&mut self, waiter: u32, after: &[OpId]) -> usize {
        let mut unmet = 0;
        for &id in after {
            if let Some(source) = self.ops.live(id) {
                self.ops.connect(source, id.generation, waiter, Dependency::Input);
                unmet += 1;
            }
        }
        unmet
    }

    /// Turns a new read into a copy that completes when everything it depends on has and `program` has its data.
    fn serve_from_controller(&mut self, index: u32, program: u32) -> OpId {
        self.counts.controller_reads += 1;
        let id = self.ops.id(index);
        let op = self.ops.at_mut(index);
        op.kind = Kind::Copy;
        let (page, carrier) = (op.page_in_block, self.ops.at(program));
        if page != carrier.page_in_block {
            if let Some(data) = self.data_of(program, page) {
                self.ops.connect(data.index, data.generation, index, Dependency::Input);
            }
        } else if carrier.inputs > 0 {
            self.ops.connect(program, carrier.generation, index, Dependency::Data);
        }
        if self.ops.at(index).deps == 0 {
            self.complete(index);
        }
        id
    }

    /// Every dependency of `index` is met.
    #[inline(always)]
    pub(super) fn make_ready(&mut self, index: u32) {
        let now = self.now;
        let op = self.ops.at_mut(index);
        if op.kind.flash().is_none() {
            if op.kind == Kind::Work {
                self.begin_work(index);
            } else {
                self.completing.push(index);
            }
            return;
        }
        op.ready_ns = now;
        op.state = State::Ready;
        let (die, ticket) = (op.die, op.ticket);
        let urges = op.kind == Kind::Read && bit(op.class) & READS != 0;
        if ticket != NONE {
            let gc_clock_ns = self.dies[die as usize].gc_clock(now);
            self.path(index).gc_clock_ns = gc_clock_ns;
        }
        let queues = &mut self.dies[die as usize];
        queues.urged |= urges;
        queues.enter(&mut self.ops, index);
        self.mark_die(die);
    }

    /// `index` has completed: its ticket, its block, its waiters, its notice; then the joins that this completes.
    #[inline(always)]
    pub(super) fn complete(&mut self, index: u32) {
        match self.ops.at(index).kind {
            Kind::Read if self.ops.at(index).is_alone() => return self.finish_plain_read(index),
            Kind::Reads => self.finish_read(index),
            Kind::Programs => self.finish_program(index),
            _ => self.finish(index),
        }
        while let Some(next) = self.completing.pop() {
            self.finish(next);
        }
    }

    #[inline(never)]
    pub(super) fn finish(&mut self, index: u32) {
        let op = self.ops.at_mut(index);
        if op.state >= State::Done {
            return;
        }
        op.state = State::Done;
        let (kind, class, die, ticket, notice) = (op.kind, op.class, op.die, op.ticket, op.notice);
        let (unmet, listed) = (op.deps, op.edges != NONE);
        if let Some(flash) = kind.flash() {
            self.counts.ops[flash as usize][op.cause as usize] += 1;
            let die = &mut self.dies[die as usize];
            die.queued -= 1;
            die.internal -= u32::from(matches!(class, Class::Gc | Class::Erase));
            if die.queued == 0 {
                die.idle_since_ns = self.now;
            }
            self.programs_outstanding -= u32::from(flash == FlashOpKind::Program);
            if let Some(erase) = self.blocks.leave(&self.ops, index) {
                self.step(erase, Dependency::Order, index);
            }
            if self.observer.is_some() {
                self.report_done(index);
            }
        }
        if ticket != NONE {
            self.end_path(index, ticket);
        }
        if listed {
            self.step_listed(index);
        }
        if let Some((waiter, dependency)) = self.ops.take_first(index) {
            self.step(waiter, dependency, index);
        }
        if notice != 0 {
            self.raised.push(Event::Notice(Notice::unpacked(notice)));
        }
        if unmet == 0 {
            self.ops.release(index);
        }
    }

    /// Those that came to wait after the first go on, the latest first.
    #[inline(never)]
    fn step_listed(&mut self, index: u32) {
        while let Some((waiter, dependency)) = self.ops.disconnect(index) {
            self.step(waiter, dependency, index);
        }
    }

    /// One dependency of `waiter`, on `source`, is met.
    #[inline(never)]
    pub(super) fn step(&mut self, waiter: u32, dependency: Dependency, source: u32) {
        let op = self.ops.at_mut(waiter);
        op.deps -= 1;
        let (deps, kind) = (op.deps, op.kind);
        if kind.is_program() {
            if dependency == Dependency::Input {
                op.inputs -= 1;
                if op.inputs == 0 && op.edges != NONE {
                    self.release_copies(waiter, source);
                }
            }
        } else if op.state == State::Done {
            // A join that had enough, or a cancelled read.
            if deps == 0 {
                self.ops.release(waiter);
            }
            return;
        }
        if deps == 0 || kind == Kind::JoinFirst {
            self.inherit(waiter, source);
            self.make_ready(waiter);
        }
    }

    /// `program` has its data with the completion of `source`: those that read its page go on.
    fn release_copies(&mut self, program: u32, source: u32) {
        while let Some(copy) = self.ops.disconnect_data(program) {
            let op = self.ops.at_mut(copy);
            op.deps -= 1;
            let (deps, state) = (op.deps, op.state);
            if deps > 0 {
                continue;
            }
            if state == State::Done {
                self.ops.release(copy);
            } else {
                self.inherit(copy, source);
                self.make_ready(copy);
            }
        }
    }

    /// `source` was the last thing `waiter` waited for: the wait is accounted to it.
    #[inline]
    fn inherit(&mut self, waiter: u32, source: u32) {
        let to = self.ops.at(waiter);
        if to.ticket == NONE && to.kind.flash().is_some() {
            return;
        }
        let now = self.now;
        let from = self.ops.at(source);
        let (class, cause, internal) = (from.class, from.cause, from.is_internal());
        let (of, by) = (Ticket(from.ticket), Ticket(to.ticket));
        // The number of a ticket that was followed may have been given out again.
        let same = of.is_of(by)
            && (of == by || self.paths[source as usize].began_ns() == self.paths[waiter as usize].began_ns());
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
                let gone_so_far = *self.path(source);
                debug_assert_eq!(gone_so_far.until_ns, now);
                self.paths[waiter as usize] = gone_so_far;
                return;
            }
            _ if internal => Part::GcWait,
            _ => Part::Queue,
        };
        self.path(waiter).charge(part, now);
    }

    /// An operation with a ticket completes: its path is the ticket's so far, unless that only follows it.
    #[inline]
    pub(super) fn end_path(&mut self, index: u32, ticket: u32) {
        let now = self.now;
        if !Ticket(ticket).is_awaited() {
            return self.path(index).charge(Part::Queue, now);
        }
        let class = self.ops.at(index).class;
        let kind = self.ops.at(index).kind;
        let state = self.tickets.at(ticket);
        if class == Class::Mapping && kind.flash().is_some() {
            state.path.charge(Part::Map, now);
        } else if self.ops.at(index).is_sole() {
            state.path.charge(Part::Queue, now);
        } else {
            let path = &mut self.paths[index as usize];
            path.charge(Part::Queue, now);
            state.path = *path;
        }
        if state.cross_bytes > 0 && matches!(kind, Kind::Read | Kind::Copy) && class == Class::HostRead {
            state.cross(self.ops.at(index).bytes, &mut self.host_out, now);
        }
        self.ticket_step(ticket);
    }

    #[inline]
    fn ticket_step(&mut self, ticket: u32) {
        let state = self.tickets.at(ticket);
        state.remaining -= 1;
        if state.remaining == 0 && state.sealed {
            self.raised.push(Event::TicketDone(Ticket(ticket)));
        }
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::geometry::PlaneOrder;
    use ftlab_core::{Geometry, Layout, ReclaimKind};
    use ftlab_ftl::{Cause, Class, FlashOp, FlashOpKind, Ticket};

    use crate::schedule::tests::{plan, timing};
    use crate::timed::{Event, TicketInfo, Timed};

    fn one_die() -> Timed {
        let geometry = Geometry {
            channels: 1,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks: 2,
            pages: 1024,
            page_bytes: 4096,
            unit_bytes: 4096,
            oob_bytes: 0,
        };
        let layout = Layout::new(geometry, ReclaimKind::Block, PlaneOrder::parse("CWDP").unwrap()).unwrap();
        Timed::new(&layout, &timing(), &plan("fcfs").unwrap()).unwrap()
    }

    /// A barrier after each of 500 programs: all wait, each for its own program and the barrier before it, and they end one by
    /// one with the programs.
    #[test]
    fn barriers_behind_each_other_wait_for_what_is_new() {
        let mut timed = one_die();
        for page in 0..500 {
            timed.issue_op(
                FlashOp {
                    kind: FlashOpKind::Program,
                    class: Class::HostWrite,
                    cause: Cause::Host,
                    page,
                    bytes: 4096,
                    ticket: Ticket::NONE,
                    notice: None,
                },
                &[],
            );
            let ticket = timed.open(TicketInfo::default());
            timed.issue_barrier(ticket);
            timed.seal(ticket);
        }
        assert!(timed.ops.edge_count() < 2 * 500, "{} edges", timed.ops.edge_count());
        for number in 1..=500 {
            let (time, event) = timed.pop(u64::MAX - 1).unwrap();
            // Command, 4096 bytes at 3 ns, cells.
            assert_eq!(time, number * (361 + 12_288 + 500_000));
            let Event::TicketDone(ticket) = event else {
                panic!("{event:?}");
            };
            assert_eq!(u64::from(ticket.0) + 1, number);
            // Its number is not given out again: the ticket is not taken.
        }
    }
}
