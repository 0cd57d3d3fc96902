//! Tickets: who waits for operations, and where the time went.

use ftlab_core::{Breakdown, Part};
use ftlab_ftl::Ticket;

use super::table::Table;

/// A way through the operation graph: where the time went from a ticket's beginning to `until_ns`.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Path {
    pub until_ns: u64,
    pub parts: Breakdown,
    /// The die's GC clock when the operation became ready.
    pub gc_clock_ns: u64,
}

impl Path {
    /// Counts the time up to `now` as `part`.
    #[inline]
    pub fn charge(&mut self, part: Part, now: u64) {
        self.parts.add(part, now - self.until_ns);
        self.until_ns = now;
    }

    /// The operation leaves its die, for which it needed so much cell time and so much of the channel; the rest went in waiting
    /// for the channel, and for others of its batch.
    #[inline]
    pub fn leave(&mut self, now: u64, cell_ns: u64, transfer_ns: u64) {
        self.parts.flash_ns += cell_ns;
        self.parts.transfer_ns += transfer_ns;
        self.parts.queue_ns += now - self.until_ns - cell_ns - transfer_ns;
        self.until_ns = now;
    }

    /// The operation is started by its die, whose GC clock shows `gc_ns`: it has waited since it became ready, or longer.
    #[inline]
    pub fn start(&mut self, now: u64, gc_ns: u64) {
        let for_gc = gc_ns - self.gc_clock_ns;
        self.parts.gc_wait_ns += for_gc;
        self.parts.queue_ns += now - self.until_ns - for_gc;
        self.until_ns = now;
    }
}

/// What a ticket begins with.
#[derive(Clone, Copy, Default, Debug)]
pub struct TicketInfo {
    /// When the latency began; at or before now.
    pub since_ns: u64,
    /// Where the time from `since_ns` until now went; its sum is that time.
    pub parts: Breakdown,
    /// Bytes of completed reads that cross the host link at once, operation by operation (0: none do).
    pub cross_bytes: u64,
}

/// What a completed ticket ends with.
#[derive(Clone, Copy, Debug)]
pub struct TicketEnd {
    pub since_ns: u64,
    /// Parts up to the completion of the ticket.
    pub parts: Breakdown,
    /// Bytes that have been given to the host link, when the last of them has crossed, and how long that one took.
    pub crossed_bytes: u64,
    pub crossed_ns: u64,
    pub crossing_ns: u64,
}

pub(super) struct TicketState {
    pub since_ns: u64,
    /// The path of whatever completed last.
    pub path: Path,
    pub remaining: u32,
    pub sealed: bool,
    next_free: u32,
    pub cross_bytes: u64,
    pub crossed_bytes: u64,
    pub crossed_ns: u64,
    pub crossing_ns: u64,
}

const NONE: u32 = u32::MAX;

/// All tickets, in an arena.
pub(super) struct Tickets {
    states: Table<TicketState>,
    free: u32,
}

impl Tickets {
    pub fn new() -> Self {
        Tickets {
            states: Table::new(),
            free: NONE,
        }
    }

    #[inline]
    pub fn open(&mut self, info: TicketInfo, now: u64) -> Ticket {
        debug_assert_eq!(info.since_ns + info.parts.total_ns(), now, "parts must reach until now");
        let state = TicketState {
            since_ns: info.since_ns,
            path: Path {
                until_ns: now,
                parts: info.parts,
                gc_clock_ns: 0,
            },
            remaining: 0,
            sealed: false,
            next_free: NONE,
            cross_bytes: info.cross_bytes,
            crossed_bytes: 0,
            crossed_ns: 0,
            crossing_ns: 0,
        };
        if self.free == NONE {
            return Ticket(self.states.push(state));
        }
        let index = self.free;
        let slot = &mut self.states[index as usize];
        self.free = slot.next_free;
        *slot = state;
        Ticket(index)
    }

    /// The ticket of somebody outside.
    ///
    /// # Panics
    /// If it has never been opened.
    #[inline(always)]
    pub fn known(&mut self, ticket: Ticket) -> &mut TicketState {
        self.states.known(ticket.0)
    }

    #[inline(always)]
    pub fn at(&mut self, ticket: u32) -> &mut TicketState {
        &mut self.states[ticket as usize]
    }

    /// Ends a completed ticket; its number may be given out again.
    #[inline]
    pub fn take(&mut self, ticket: Ticket) -> TicketEnd {
        let free = self.free;
        let state = self.known(ticket);
        assert!(
            state.sealed && state.remaining == 0,
            "ticket {} taken with {} operations to go",
            ticket.0,
            state.remaining
        );
        let end = TicketEnd {
            since_ns: state.since_ns,
            parts: state.path.parts,
            crossed_bytes: state.crossed_bytes,
            crossed_ns: state.crossed_ns,
            crossing_ns: state.crossing_ns,
        };
        state.sealed = false;
        state.next_free = free;
        self.free = ticket.0;
        end
    }

    pub fn clear(&mut self) {
        *self = Tickets::new();
    }
}
