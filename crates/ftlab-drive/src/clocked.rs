//! What a device needs of the backend behind its front: tickets, and events in order of time.

use ftlab_core::Completion;
use ftlab_ftl::{Backend, Ticket};

use crate::timed::{Event, Link, TicketInfo, Timed};

/// A backend that a device can drive.
pub trait Clocked: Backend {
    /// The link that data of reads crosses outwards. A backend may let the reads of a ticket cross it one by one as they
    /// complete; the rest crosses when the last of its operations has.
    fn host_out(&mut self) -> &mut Link;

    /// Begins a ticket.
    fn open(&mut self, info: TicketInfo) -> Ticket;

    /// No more operations will carry `ticket`: it is done when the last of them is and its data has crossed the link.
    fn seal(&mut self, ticket: Ticket);

    /// The request of this ticket is refused: what it read crosses no link.
    fn refuse(&mut self, ticket: Ticket);

    /// Ends a ticket that has been reported done, now.
    fn take(&mut self, ticket: Ticket) -> Completion;

    /// The next thing to react to at or before `until_ns`, at the time that `now_ns` then tells; without one, the time is
    /// `until_ns` afterwards. `u64::MAX` is no limit: then the time stays where it is when nothing is left to happen.
    fn pop(&mut self, until_ns: u64) -> Option<Event>;

    /// When `pop` will next have something to do.
    fn next_time(&mut self) -> Option<u64>;

    /// An operation on `page` will probably be issued soon.
    fn prefetch(&self, _page: u32) {}

    /// Power is cut: every operation, ticket, timer and notice is gone.
    fn reset(&mut self);
}

impl Clocked for Timed {
    #[inline(always)]
    fn host_out(&mut self) -> &mut Link {
        self.host_out()
    }

    #[inline(always)]
    fn open(&mut self, info: TicketInfo) -> Ticket {
        self.open(info)
    }

    #[inline(always)]
    fn seal(&mut self, ticket: Ticket) {
        self.seal(ticket);
    }

    fn refuse(&mut self, ticket: Ticket) {
        self.refuse(ticket);
    }

    #[inline(always)]
    fn take(&mut self, ticket: Ticket) -> Completion {
        self.take(ticket)
    }

    #[inline(always)]
    fn pop(&mut self, until_ns: u64) -> Option<Event> {
        self.pop_event(until_ns)
    }

    #[inline(always)]
    fn next_time(&mut self) -> Option<u64> {
        self.next_time()
    }

    #[inline(always)]
    fn prefetch(&self, page: u32) {
        self.prefetch(page);
    }

    fn reset(&mut self) {
        self.reset();
    }
}
