//! A backend without time that a device can drive: flash operations cost nothing, and a request is done when it is admitted.
//!
//! What is left of a request's latency is the controller and the host link.

use std::collections::VecDeque;

use ftlab_core::Breakdown;
use ftlab_ftl::{Backend, Counting, FlashOp, Load, Need, Notice, OpId, Ticket};

use crate::clocked::Clocked;
use crate::timed::{Event, Link, TicketEnd, TicketInfo};

/// [`Counting`] with a clock that only the device moves.
pub struct Untimed {
    now_ns: u64,
    host_out: Link,
    /// By ticket number: since when, and where the time until its beginning went.
    tickets: Vec<(u64, Breakdown)>,
    unused: Vec<Ticket>,
    done: VecDeque<Ticket>,
}

impl Default for Untimed {
    fn default() -> Self {
        Untimed {
            now_ns: 0,
            host_out: Link::free(),
            tickets: Vec::new(),
            unused: Vec::new(),
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
        let ticket = self.unused.pop().unwrap_or_else(|| {
            self.tickets.push(Default::default());
            Ticket((self.tickets.len() - 1) as u32)
        });
        self.tickets[ticket.0 as usize] = (info.since_ns, info.parts);
        ticket
    }

    fn seal(&mut self, ticket: Ticket) {
        self.done.push_back(ticket);
    }

    fn take(&mut self, ticket: Ticket) -> TicketEnd {
        let (since_ns, parts) = self.tickets[ticket.0 as usize];
        self.unused.push(ticket);
        TicketEnd {
            since_ns,
            parts,
            crossed_bytes: 0,
            crossed_ns: 0,
            crossing_ns: 0,
        }
    }

    fn pop(&mut self, until_ns: u64) -> Option<(u64, Event)> {
        if let Some(ticket) = self.done.pop_front() {
            return Some((self.now_ns, Event::TicketDone(ticket)));
        }
        if until_ns != u64::MAX {
            self.now_ns = self.now_ns.max(until_ns);
        }
        None
    }

    fn next_time(&mut self) -> Option<u64> {
        (!self.done.is_empty()).then_some(self.now_ns)
    }

    fn reset(&mut self) {
        self.host_out.clear();
        self.tickets.clear();
        self.unused.clear();
        self.done.clear();
    }
}
