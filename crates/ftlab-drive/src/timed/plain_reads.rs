//! Reads that wait for nothing when they are issued, and for which nothing waits but a ticket.
//!
//! # Why
//! Nearly every read of a host is one. It needs no edges and no notice, and it is ready at once: what `graph.rs` does for any
//! operation is done here without looking for these. Everything else about such a read, and its entry, is as of any other.

use ftlab_core::Part;
use ftlab_ftl::{Class, FlashOp, FlashOpKind, Notice, OpId, Ticket};

use super::blocks::Found;
use super::ops::{Dependency, Kind, NONE, Op, State};
use super::places::Place;
use super::ranks::{READS, bit};
use super::tickets::Path;
use super::{Event, Timed};

impl Timed {
    /// Issues a read that depends on nothing and is not one of a collection. Of the `sole` operation of a ticket, the ticket's
    /// path is the operation's from now on.
    #[inline(always)]
    pub(super) fn issue_plain_read(&mut self, flash: &FlashOp, place: Place, sole: bool) -> OpId {
        let Place { block, page, die } = place;
        let Found::Flash { epoch } = self.blocks.enter_read(&self.ops, block, page) else {
            return self.issue_new(flash, place, &[], false);
        };
        let now = self.now;
        let index = self.ops.insert(Op {
            ready_ns: now,
            page: flash.page,
            block,
            page_in_block: page,
            bytes: flash.bytes,
            ticket: flash.ticket.0,
            notice: flash.notice.map_or(0, Notice::packed),
            kind: Kind::Read,
            class: flash.class,
            cause: flash.cause,
            state: State::Ready,
            die,
            inputs: u8::from(sole),
            epoch,
            ..Op::EMPTY
        });
        let queues = &mut self.dies[usize::from(die)];
        queues.reads = NONE;
        queues.queued += 1;
        queues.urged |= bit(flash.class) & READS != 0;
        queues.enter(&mut self.ops, index);
        if flash.ticket != Ticket::NONE {
            let gc_clock_ns = queues.gc_clock(now);
            let path = if sole {
                self.begin_sole(flash.ticket)
            } else {
                self.begin_path(index, flash.ticket)
            };
            path.gc_clock_ns = gc_clock_ns;
        }
        self.mark_die(die);
        self.ops.id(index)
    }

    /// A read for which nothing waits has completed.
    #[inline(always)]
    pub(super) fn finish_plain_read(&mut self, index: u32) {
        let op = self.ops.at_mut(index);
        op.state = State::Done;
        let (ticket, sole, left) = (op.ticket, op.is_sole(), self.blocks.leave_read(op));
        if sole && ticket != NONE {
            let state = self.tickets.at(ticket);
            state.path.charge(Part::Queue, self.now);
            if state.cross_bytes > 0 && op.class == Class::HostRead {
                state.cross(op.bytes, &mut self.host_out, self.now);
            }
            state.remaining = 0;
            if state.sealed && self.tickets.depart_known(ticket, &mut self.host_out, self.now) {
                self.raised.push(Event::TicketDone(Ticket(ticket)));
            }
        }
        let internal = matches!(op.class, Class::Gc | Class::Erase);
        self.counts.ops[FlashOpKind::Read as usize][op.cause as usize] += 1;
        let die = &mut self.dies[usize::from(op.die)];
        die.queued -= 1;
        die.internal -= u32::from(internal);
        if die.queued == 0 {
            die.idle_since_ns = self.now;
        }
        if !left {
            self.leave_for_erase(index);
        }
        if self.observer.is_some() {
            self.report_done(index);
        }
        if ticket != NONE && !sole {
            self.end_path(index, ticket);
        }
        self.ops.release(index);
    }

    /// The only operation of `ticket` begins: its way is that of the ticket.
    #[inline(always)]
    fn begin_sole(&mut self, ticket: Ticket) -> &mut Path {
        let state = self.tickets.known(ticket);
        debug_assert!(
            !state.sealed && state.remaining == 0,
            "ticket {} has another operation",
            ticket.0
        );
        state.remaining = 1;
        state.path.charge(Part::Queue, self.now);
        &mut state.path
    }

    /// The block of a completed read is to be erased, perhaps now.
    #[cold]
    fn leave_for_erase(&mut self, index: u32) {
        if let Some(erase) = self.blocks.leave(&self.ops, index) {
            self.step(erase, Dependency::Order, index);
        }
    }
}
