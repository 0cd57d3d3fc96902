//! Tickets: who waits for operations, and where the time went.

use ftlab_core::{Breakdown, Completion, OpKind, Part, Status};
use ftlab_ftl::Ticket;

use super::link::Link;
use super::table::Table;
use crate::due::Due;

/// A way through the operation graph: where the time went from a ticket's beginning to `until_ns`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Path {
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

    /// When the way began.
    pub fn began_ns(&self) -> u64 {
        self.until_ns - self.parts.total_ns()
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
    /// The driver's name for the request, and what it asks for.
    pub tag: u64,
    pub op: OpKind,
    /// When the latency began.
    pub since_ns: u64,
    /// Where the time goes from `since_ns` until the ticket's first operation can be issued, which is not before now; its sum is
    /// that time.
    pub parts: Breakdown,
    /// Bytes of data that cross the host link outwards (0: none do). Those of completed reads cross at once, operation by
    /// operation; the rest when the ticket is done.
    pub cross_bytes: u64,
}

/// A ticket between `open` and `take`; two cache lines.
#[repr(align(64))]
pub struct TicketState {
    pub tag: u64,
    pub op: OpKind,
    pub status: Status,
    pub sealed: bool,
    pub remaining: u32,
    next_free: u32,
    pub since_ns: u64,
    /// The path of whatever completed last.
    pub path: Path,
    pub cross_bytes: u64,
    pub crossed_bytes: u64,
    /// When the last of them has crossed, and how long that one took.
    pub crossed_ns: u64,
    pub crossing_ns: u64,
}

impl TicketState {
    /// A read of `bytes` has completed, whose data crosses `link` as far as the host asked for it.
    #[inline(always)]
    pub fn cross(&mut self, bytes: u32, link: &mut Link, now: u64) {
        let bytes = u64::from(bytes).min(self.cross_bytes - self.crossed_bytes);
        if bytes > 0 {
            let (end, duration) = link.reserve(now, bytes);
            self.crossed_bytes += bytes;
            self.crossed_ns = end;
            self.crossing_ns = duration;
        }
    }

    /// The ticket is done, and bytes that no operation brought cross `link` now. Returns when the last byte has crossed.
    #[inline]
    fn depart(&mut self, link: &mut Link, now: u64) -> u64 {
        if self.cross_bytes == 0 || self.status != Status::Done {
            return now;
        }
        let mut crossing_ns = self.crossing_ns;
        let mut done_ns = now.max(self.crossed_ns);
        let rest = self.cross_bytes - self.crossed_bytes;
        if rest > 0 {
            let (crossed, duration) = link.reserve(now, rest);
            crossing_ns += duration;
            done_ns = crossed;
        }
        // Earlier pages may have crossed while the last was read: only what lies after `now` counts.
        let crossing_ns = crossing_ns.min(done_ns - now);
        self.path.parts.transfer_ns += crossing_ns;
        self.path.parts.queue_ns += done_ns - now - crossing_ns;
        done_ns
    }
}

const NONE: u32 = u32::MAX;

/// All tickets, in an arena.
pub struct Tickets {
    states: Table<TicketState>,
    free: u32,
    /// Those whose data is on the link. Almost always the last to come leaves last: only one whose data crossed while other work
    /// of its own went on may leave before an earlier one.
    leaving: Due<u32>,
}

impl Default for Tickets {
    fn default() -> Self {
        Tickets {
            states: Table::new(),
            free: NONE,
            leaving: Due::default(),
        }
    }
}

impl Tickets {
    #[inline]
    pub fn open(&mut self, info: &TicketInfo) -> Ticket {
        let state = TicketState {
            tag: info.tag,
            op: info.op,
            status: Status::Done,
            sealed: false,
            remaining: 0,
            next_free: NONE,
            since_ns: info.since_ns,
            path: Path {
                until_ns: info.since_ns + info.parts.total_ns(),
                parts: info.parts,
                gc_clock_ns: 0,
            },
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
    pub(super) fn at(&mut self, ticket: u32) -> &mut TicketState {
        &mut self.states[ticket as usize]
    }

    /// The operations of a ticket are done: what has not crossed `link` crosses it now. Whether all of it has crossed already; if
    /// not, [`Tickets::pop_crossed`] tells when it has. For one whose data has crossed nothing changes if it is asked again.
    ///
    /// # Panics
    /// If it is not done.
    #[inline]
    pub fn depart(&mut self, ticket: Ticket, link: &mut Link, now: u64) -> bool {
        let state = self.known(ticket);
        assert!(
            state.sealed && state.remaining == 0,
            "ticket {} departs with {} operations to go",
            ticket.0,
            state.remaining
        );
        self.depart_known(ticket.0, link, now)
    }

    /// As [`Tickets::depart`], of a ticket known to be done.
    #[inline(always)]
    pub(super) fn depart_known(&mut self, ticket: u32, link: &mut Link, now: u64) -> bool {
        let crossed_ns = self.at(ticket).depart(link, now);
        if crossed_ns > now {
            self.leaving.push(crossed_ns, ticket);
        }
        crossed_ns == now
    }

    /// When the data of the next ticket will have crossed; `u64::MAX` if none is on the link.
    #[inline(always)]
    pub fn next_crossed_ns(&self) -> u64 {
        self.leaving.next_ns()
    }

    /// The next ticket whose data will have crossed.
    ///
    /// # Panics
    /// If none is on the link.
    #[inline(always)]
    pub fn pop_crossed(&mut self) -> Ticket {
        Ticket(self.leaving.pop())
    }

    /// Ends a ticket that is done, its data across the link, at `now`; its number may be given out again.
    ///
    /// # Panics
    /// If it is not done.
    #[inline]
    pub fn take(&mut self, ticket: Ticket, now: u64) -> Completion {
        let free = self.free;
        let state = self.known(ticket);
        assert!(state.sealed, "ticket {} is not done", ticket.0);
        debug_assert_eq!(state.remaining, 0, "ticket {} has operations to go", ticket.0);
        state.sealed = false;
        state.next_free = free;
        let end = Completion {
            tag: state.tag,
            op: state.op,
            status: state.status,
            submitted_ns: state.since_ns,
            done_ns: now,
            parts: state.path.parts,
        };
        self.free = ticket.0;
        end
    }

    pub fn clear(&mut self) {
        *self = Tickets::default();
    }
}
