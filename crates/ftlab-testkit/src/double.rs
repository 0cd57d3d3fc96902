//! What a test needs of a backend beyond the contract.

use ftlab_core::Layout;
use ftlab_ftl::{Backend, Counting, Notice, Ticket};

/// A backend that stands in for flash.
pub trait Double: Backend {
    fn new(layout: &Layout, seed: u64) -> Self;

    /// What was drawn from `seed`, for the report of a failure.
    fn show(_layout: &Layout, _seed: u64) -> String {
        String::new()
    }

    /// The ticket of host request number `request`, which begins now.
    fn open(&mut self, request: u64) -> Ticket {
        Ticket(request as u32)
    }

    /// The FTL has taken the request: only what is under way for it may still carry the ticket.
    fn seal(&mut self, _ticket: Ticket) {}

    /// Lets up to `steps` operations or timers come to their end. False if nothing was under way.
    fn run(&mut self, steps: u32) -> bool;

    /// Notices raised since the last call, in order.
    fn take_notices(&mut self) -> Vec<Notice>;

    /// Whether everything that carries `ticket` has completed.
    fn is_acknowledged(&self, ticket: Ticket) -> bool;

    /// Power fails; with protection everything that has been issued still completes.
    fn cut(&mut self, protected: bool);

    /// Whether `page` is programmed as far as has been issued; right after [`Double::cut`]: as far as has completed.
    fn holds(&self, page: u32) -> bool;

    /// Pages programmed and blocks erased so far, where it counts them.
    fn tally(&self) -> Option<(u64, u64)>;

    /// Pages whose reads carry an unfinished `ticket`, where it keeps them.
    fn pages_read(&self, _ticket: Ticket) -> Option<Vec<u32>> {
        None
    }
}

impl Double for Counting {
    fn new(_: &Layout, _: u64) -> Self {
        Counting
    }

    fn run(&mut self, _: u32) -> bool {
        false
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    fn is_acknowledged(&self, _: Ticket) -> bool {
        true
    }

    fn cut(&mut self, _: bool) {}

    fn holds(&self, _: u32) -> bool {
        true
    }

    fn tally(&self) -> Option<(u64, u64)> {
        None
    }
}
