//! A backend without time that a device can drive: flash operations cost nothing, and a request is done when it is admitted.
//!
//! What is left of a request's latency is the controller and the host link.

use std::collections::VecDeque;

use ftlab_core::{Completion, Status};
use ftlab_ftl::{Backend, Counting, FlashOp, Load, Need, Notice, OpId, Ticket};

use crate::clocked::Clocked;
use crate::timed::{Event, Link, TicketInfo, Tickets};

/// [`Counting`] with a clock that only the device moves.
pub struct Untimed {
    now_ns: u64,
    host_out: Link,
    tickets: Tickets,
    done: VecDeque<Ticket>,
}

impl Default for Untimed {
    fn default() -> Self {
        Untimed {
            now_ns: 0,
            host_out: Link::free(),
            tickets: Tickets::default(),
            done: VecDeque::new(),
        }
    }
}

impl Backend for Untimed {
    const TIMED: bool = false;

    #[inline(always)]
    fn issue(&mut self, op: FlashOp, after: &[OpId]) -> OpId {
        Counting.issue(op, after)
    }

    #[inline(always)]
    fn join(&mut self, inputs: &[OpId], need: Need, ticket: Ticket, notice: Option<Notice>) -> OpId {
        Counting.join(inputs, need, ticket, notice)
    }

    fn join_more(&mut self, _: OpId, _: OpId) {}

    fn cancel(&mut self, _: OpId) {}

    #[inline(always)]
    fn is_done(&self, _: OpId) -> bool {
        true
    }

    fn compute(&mut self, engine: u16, ns: u64, after: &[OpId], ticket: Ticket) -> OpId {
        Counting.compute(engine, ns, after, ticket)
    }

    fn arm(&mut self, _: u64, _: Notice) {}

    fn barrier(&mut self, _: Ticket) {}

    #[inline(always)]
    fn load(&self, _: u32) -> Load {
        Load::default()
    }

    #[inline(always)]
    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

impl Clocked for Untimed {
    fn host_out(&mut self) -> &mut Link {
        &mut self.host_out
    }

    fn open(&mut self, info: TicketInfo) -> Ticket {
        self.tickets.open(&info)
    }

    fn seal(&mut self, ticket: Ticket) {
        self.tickets.known(ticket).sealed = true;
        self.done.push_back(ticket);
    }

    fn refuse(&mut self, ticket: Ticket) {
        self.tickets.known(ticket).status = Status::WornOut;
    }

    fn take(&mut self, ticket: Ticket) -> Completion {
        self.tickets.take(ticket, self.now_ns)
    }

    fn pop(&mut self, until_ns: u64) -> Option<Event> {
        while let Some(ticket) = self.done.pop_front() {
            if self.tickets.depart(ticket, &mut self.host_out, self.now_ns) {
                return Some(Event::TicketDone(ticket));
            }
        }
        let crossed_ns = self.tickets.next_crossed_ns();
        if crossed_ns <= until_ns && crossed_ns != u64::MAX {
            self.now_ns = crossed_ns;
            return Some(Event::TicketDone(self.tickets.pop_crossed()));
        }
        if until_ns != u64::MAX {
            self.now_ns = self.now_ns.max(until_ns);
        }
        None
    }

    fn next_time(&mut self) -> Option<u64> {
        let crossed_ns = self.tickets.next_crossed_ns();
        match self.done.is_empty() {
            false => Some(self.now_ns),
            true => (crossed_ns != u64::MAX).then_some(crossed_ns),
        }
    }

    fn reset(&mut self) {
        self.host_out.clear();
        self.tickets.clear();
        self.done.clear();
    }
}
