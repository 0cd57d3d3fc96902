//! A double of the testkit as a backend that a device can drive: it takes a step every so often.

use std::collections::VecDeque;

use ftlab_core::{Completion, Layout, Part, Status};
use ftlab_drive::clocked::Clocked;
use ftlab_drive::timed::{Event, Link, TicketInfo, Tickets};
use ftlab_ftl::{Backend, FlashOp, Load, Need, Notice, OpId, Ticket};
use ftlab_testkit::Double;

/// Time between two steps.
const STEP_NS: u64 = 1000;

pub struct Doubled<B> {
    pub inner: B,
    now_ns: u64,
    next_step_ns: u64,
    /// Something may be under way.
    busy: bool,
    host_out: Link,
    tickets: Tickets,
    sealed: Vec<Ticket>,
    raised: VecDeque<Event>,
}

impl<B: Double> Doubled<B> {
    pub fn new(layout: &Layout, seed: u64) -> Self {
        Doubled {
            inner: B::new(layout, seed),
            now_ns: 0,
            next_step_ns: 0,
            busy: false,
            host_out: Link::free(),
            tickets: Tickets::default(),
            sealed: Vec::new(),
            raised: VecDeque::new(),
        }
    }

    fn stir(&mut self) {
        if !self.busy {
            self.busy = true;
            self.next_step_ns = self.now_ns + STEP_NS;
        }
    }

    /// Collects what has completed.
    fn collect(&mut self) {
        self.raised
            .extend(self.inner.take_notices().into_iter().map(Event::Notice));
        let inner = &self.inner;
        let (done, sealed) = self.sealed.iter().partition(|&&t| inner.is_acknowledged(t));
        self.sealed = sealed;
        let done: Vec<Ticket> = done;
        self.raised.extend(done.into_iter().map(Event::TicketDone));
    }
}

impl<B: Double> Backend for Doubled<B> {
    const TIMED: bool = B::TIMED;

    fn issue(&mut self, op: FlashOp, after: &[OpId]) -> OpId {
        self.stir();
        self.inner.issue(op, after)
    }

    fn join(&mut self, inputs: &[OpId], need: Need, ticket: Ticket, notice: Option<Notice>) -> OpId {
        self.stir();
        self.inner.join(inputs, need, ticket, notice)
    }

    fn join_more(&mut self, join: OpId, input: OpId) {
        self.inner.join_more(join, input);
    }

    fn cancel(&mut self, id: OpId) {
        self.inner.cancel(id);
    }

    fn is_done(&self, id: OpId) -> bool {
        self.inner.is_done(id)
    }

    fn compute(&mut self, engine: u16, ns: u64, after: &[OpId], ticket: Ticket) -> OpId {
        self.stir();
        self.inner.compute(engine, ns, after, ticket)
    }

    fn arm(&mut self, delay_ns: u64, notice: Notice) {
        self.stir();
        self.inner.arm(delay_ns, notice);
    }

    fn barrier(&mut self, ticket: Ticket) {
        self.stir();
        self.inner.barrier(ticket);
    }

    fn load(&self, die: u32) -> Load {
        self.inner.load(die)
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

impl<B: Double> Clocked for Doubled<B> {
    fn host_out(&mut self) -> &mut Link {
        &mut self.host_out
    }

    fn open(&mut self, info: TicketInfo) -> Ticket {
        let reached_ns = info.since_ns + info.parts.total_ns();
        assert!(reached_ns >= self.now_ns, "parts reach until now");
        self.tickets.open(&info)
    }

    fn seal(&mut self, ticket: Ticket) {
        self.tickets.known(ticket).sealed = true;
        self.sealed.push(ticket);
    }

    fn refuse(&mut self, ticket: Ticket) {
        self.tickets.known(ticket).status = Status::WornOut;
    }

    fn take(&mut self, ticket: Ticket) -> Completion {
        self.tickets.take(ticket, self.now_ns)
    }

    fn pop(&mut self, until_ns: u64) -> Option<Event> {
        loop {
            self.collect();
            while let Some(event) = self.raised.pop_front() {
                let Event::TicketDone(ticket) = event else {
                    return Some(event);
                };
                self.tickets.known(ticket).path.charge(Part::Flash, self.now_ns);
                if self.tickets.depart(ticket, &mut self.host_out, self.now_ns) {
                    return Some(event);
                }
            }
            let crossed_ns = self.tickets.next_crossed_ns();
            let step_ns = if self.busy { self.next_step_ns } else { u64::MAX };
            if crossed_ns < step_ns && crossed_ns <= until_ns {
                self.now_ns = crossed_ns;
                return Some(Event::TicketDone(self.tickets.pop_crossed()));
            }
            if !self.busy || self.next_step_ns > until_ns {
                if until_ns != u64::MAX {
                    self.now_ns = self.now_ns.max(until_ns);
                }
                return None;
            }
            self.now_ns = self.next_step_ns;
            self.next_step_ns += STEP_NS;
            self.busy = self.inner.run(1);
        }
    }

    fn next_time(&mut self) -> Option<u64> {
        self.collect();
        let step_ns = if self.busy { self.next_step_ns } else { u64::MAX };
        let next_ns = step_ns.min(self.tickets.next_crossed_ns());
        match self.raised.is_empty() {
            false => Some(self.now_ns),
            true => (next_ns != u64::MAX).then_some(next_ns),
        }
    }

    fn reset(&mut self) {
        let protected = false;
        self.inner.cut(protected);
        self.host_out.clear();
        self.tickets.clear();
        self.busy = false;
        self.sealed.clear();
        self.raised.clear();
    }
}
