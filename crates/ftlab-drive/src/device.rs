//! The passive machine: host link and controller around an FTL on the timed backend.
//!
//! # Model
//! A request arrives with `submit`. It passes the command server (one at a time, `command_ns` each), takes its fixed set-up
//! time, and, if it writes, crosses the host link inwards; then the FTL admits it. A read's data crosses the link outwards
//! page by page as reads of the flash complete; bytes that no flash operation brought (unwritten, buffered) cross at the
//! end. Both directions are first come, first served. The completion carries where its latency went, to the nanosecond.
//! # Not modelled
//! Interrupts, submission and completion queues as such: their cost is in the set-up times and `command_ns`.
//! # Cost
//! No events of its own: what waits for the command server or the link waits in queues whose times never decrease.

use std::collections::VecDeque;

use ftlab_core::{Lpn, OpKind};
use ftlab_ftl::{HostRequest, Ticket};

use crate::config::HostLink;
use crate::timed::{Breakdown, Event, Link, Part, TicketInfo, Timed};

/// Whether the FTL took a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    Taken,
    /// The drive takes no more writes.
    Refused,
}

/// What the device needs of an FTL.
pub trait Front {
    fn backend(&mut self) -> &mut Timed;

    /// Issues the request's operations with `ticket` and seals it, now or, if it must wait, later. A refused request's
    /// ticket is sealed as well.
    fn admit(&mut self, request: &HostRequest<'_>, ticket: Ticket) -> Admission;

    /// An operation's notice or a timer.
    fn notice(&mut self, key: u32);

    /// A request for these units will come soon.
    fn prefetch(&mut self, _first: Lpn, _units: u32) {}
}

/// A completed request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// As given to `submit`.
    pub tag: u64,
    pub op: OpKind,
    pub refused: bool,
    pub submitted_ns: u64,
    pub done_ns: u64,
    /// Sums to `done_ns - submitted_ns`.
    pub parts: Breakdown,
}

/// A request that the FTL has.
#[derive(Clone, Copy)]
struct InFlight {
    tag: u64,
    op: OpKind,
    refused: bool,
    /// Bytes that cross the link outwards.
    out_bytes: u64,
}

/// A request on its way to the FTL.
struct Arriving {
    at_ns: u64,
    submitted_ns: u64,
    tag: u64,
    parts: Breakdown,
    request: HostRequest<'static>,
    content: Vec<u64>,
}

/// The drive as the host sees it.
pub struct Device<F> {
    front: F,
    unit_bytes: u32,
    read_setup_ns: u64,
    write_setup_ns: u64,
    command_ns: u64,
    host_in: Link,
    command_free_ns: u64,
    /// Reads, trims and flushes (which carry no data inwards), and writes: each in order of admission.
    arriving: [VecDeque<Arriving>; 2],
    contents: Vec<Vec<u64>>,
    /// By ticket number.
    in_flight: Vec<InFlight>,
    /// Requests whose data is on the link, in order of completion.
    leaving: VecDeque<Completion>,
    /// Completed and not yet handed out.
    completed: Vec<Completion>,
    outstanding: usize,
}

impl<F: Front> Device<F> {
    pub fn new(mut front: F, host: &HostLink, unit_bytes: u32) -> Self {
        front.backend().set_host_out(Link::new(host));
        Device {
            front,
            unit_bytes,
            read_setup_ns: host.read_setup_ns,
            write_setup_ns: host.write_setup_ns,
            command_ns: host.command_ns,
            host_in: Link::new(host),
            command_free_ns: 0,
            arriving: [VecDeque::new(), VecDeque::new()],
            contents: Vec::new(),
            in_flight: Vec::new(),
            leaving: VecDeque::new(),
            completed: Vec::new(),
            outstanding: 0,
        }
    }

    pub fn front(&mut self) -> &mut F {
        &mut self.front
    }

    pub fn into_front(self) -> F {
        self.front
    }

    /// Requests submitted and not yet handed out as completed.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Announces a request that will be submitted soon.
    #[inline]
    pub fn prefetch(&mut self, first: Lpn, units: u32) {
        self.front.prefetch(first, units);
    }

    /// Gives the device a request at `now`, which must not lie before the time it has been advanced to.
    #[inline]
    pub fn submit(&mut self, tag: u64, request: &HostRequest<'_>, now: u64) {
        self.run_until(now);
        self.outstanding += 1;
        let mut parts = Breakdown::default();
        let served = self.command_free_ns.max(now) + self.command_ns;
        if self.command_ns > 0 {
            self.command_free_ns = served;
            parts.add(Part::Transfer, self.command_ns);
            parts.add(Part::Queue, served - now - self.command_ns);
        } else {
            debug_assert_eq!(served, now);
        }
        let (setup, inwards) = match request.op {
            OpKind::Write => (self.write_setup_ns, request.bytes(self.unit_bytes)),
            _ => (self.read_setup_ns, 0),
        };
        parts.add(Part::Transfer, setup);
        let mut at_ns = served + setup;
        if inwards > 0 && self.host_in.takes_time() {
            let (end, duration) = self.host_in.reserve(at_ns, inwards);
            parts.add(Part::Transfer, duration);
            parts.add(Part::Queue, end - at_ns - duration);
            at_ns = end;
        }
        if at_ns == now {
            self.admit(request, tag, now, parts);
            return;
        }
        let mut content = self.contents.pop().unwrap_or_default();
        content.clear();
        content.extend_from_slice(request.content);
        let arriving = Arriving {
            at_ns,
            submitted_ns: now,
            tag,
            parts,
            request: HostRequest {
                content: &[],
                ..*request
            },
            content,
        };
        self.arriving[usize::from(request.op == OpKind::Write)].push_back(arriving);
    }

    /// When the device will next have something to do.
    #[inline]
    pub fn next_wakeup(&mut self) -> Option<u64> {
        let own = self.next_own();
        let flash = self.front.backend().next_time().unwrap_or(u64::MAX);
        let next = match self.completed.first() {
            Some(first) => first.done_ns,
            None => own.min(flash),
        };
        (next != u64::MAX).then_some(next)
    }

    /// Lets time pass until `now` and appends what has completed, in order of completion.
    #[inline]
    pub fn advance(&mut self, now: u64, completions: &mut Vec<Completion>) {
        self.run_until(now);
        self.outstanding -= self.completed.len();
        completions.append(&mut self.completed);
    }

    /// Power is cut: every request in flight is lost. The FTL must recover before the next request.
    pub fn reset(&mut self) {
        self.front.backend().reset();
        self.host_in.clear();
        self.command_free_ns = 0;
        self.arriving = [VecDeque::new(), VecDeque::new()];
        self.leaving.clear();
        self.completed.clear();
        self.outstanding = 0;
    }

    /// The next admission or departure.
    #[inline(always)]
    fn next_own(&self) -> u64 {
        let front = |queue: &VecDeque<Arriving>| queue.front().map_or(u64::MAX, |a| a.at_ns);
        let leaving = self.leaving.front().map_or(u64::MAX, |c| c.done_ns);
        front(&self.arriving[0]).min(front(&self.arriving[1])).min(leaving)
    }

    #[inline]
    fn run_until(&mut self, now: u64) {
        loop {
            // Every event may put something on the link that leaves before the next one.
            let own = self.next_own();
            match self.front.backend().pop(own.min(now)) {
                Some((time, Event::TicketDone(ticket))) => self.ticket_done(ticket, time),
                Some((_, Event::Notice(key))) => self.front.notice(key),
                None if own <= now => self.step_own(own),
                None => return,
            }
        }
    }

    /// Hands out and admits what is due at `now`: departures first.
    fn step_own(&mut self, now: u64) {
        while self.leaving.front().is_some_and(|c| c.done_ns <= now) {
            self.completed.extend(self.leaving.pop_front());
        }
        for kind in 0..self.arriving.len() {
            while self.arriving[kind].front().is_some_and(|a| a.at_ns <= now) {
                let Some(a) = self.arriving[kind].pop_front() else {
                    break;
                };
                let request = HostRequest {
                    content: &a.content,
                    ..a.request
                };
                self.admit(&request, a.tag, a.submitted_ns, a.parts);
                self.contents.push(a.content);
            }
        }
    }

    #[inline]
    fn admit(&mut self, request: &HostRequest<'_>, tag: u64, submitted_ns: u64, parts: Breakdown) {
        let backend = self.front.backend();
        let out_bytes = match request.op {
            OpKind::Read => request.bytes(self.unit_bytes),
            _ => 0,
        };
        let crosses = out_bytes > 0 && backend.host_out().takes_time();
        let ticket = backend.open(TicketInfo {
            since_ns: submitted_ns,
            parts,
            cross_bytes: if crosses { out_bytes } else { 0 },
        });
        let entry = InFlight {
            tag,
            op: request.op,
            refused: false,
            out_bytes: if crosses { out_bytes } else { 0 },
        };
        let index = ticket.0 as usize;
        if index >= self.in_flight.len() {
            self.in_flight.resize(index + 1, entry);
        }
        self.in_flight[index] = entry;
        let admission = self.front.admit(request, ticket);
        self.in_flight[index].refused = admission == Admission::Refused;
    }

    /// Everything the FTL does for a request is done; a read's data may still be on the link.
    #[inline]
    fn ticket_done(&mut self, ticket: Ticket, now: u64) {
        let entry = self.in_flight[ticket.0 as usize];
        let backend = self.front.backend();
        let end = backend.take(ticket);
        let mut parts = end.parts;
        let mut done_ns = now;
        if entry.out_bytes > 0 && !entry.refused {
            let mut crossing = end.crossing_ns;
            done_ns = done_ns.max(end.crossed_ns);
            let rest = entry.out_bytes - end.crossed_bytes;
            if rest > 0 {
                let (crossed, duration) = backend.host_out().reserve(now, rest);
                crossing += duration;
                done_ns = crossed;
            }
            // Earlier pages may have crossed while the last was read: only what lies after `now` counts.
            let crossing = crossing.min(done_ns - now);
            parts.add(Part::Transfer, crossing);
            parts.add(Part::Queue, done_ns - now - crossing);
        }
        let completion = Completion {
            tag: entry.tag,
            op: entry.op,
            refused: entry.refused,
            submitted_ns: end.since_ns,
            done_ns,
            parts,
        };
        if done_ns == now {
            self.completed.push(completion);
        } else {
            self.leave(completion);
        }
    }

    /// Enters a request whose data is on the link. Almost always the last to leave: only one whose data crossed while other
    /// work of its own went on may leave before an earlier one.
    #[inline]
    fn leave(&mut self, completion: Completion) {
        self.leaving.push_back(completion);
        let mut at = self.leaving.len() - 1;
        while at > 0 && self.leaving[at - 1].done_ns > self.leaving[at].done_ns {
            self.leaving.swap(at - 1, at);
            at -= 1;
        }
    }
}
