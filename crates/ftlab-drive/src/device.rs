//! The drive as a passive block device: host link and controller around an FTL on a backend with a clock.
//!
//! # Model
//! A request passes the command server (one at a time, `command_ns` each), takes its fixed set-up time, and, if it writes,
//! crosses the host link inwards; then its bytes become mapping units and the FTL admits it. A read's data crosses the link
//! outwards page by page as reads of the flash complete; bytes that no flash operation brought (unwritten, buffered) cross
//! at the end. Both directions are first come, first served. The completion carries where its latency went, to the
//! nanosecond.
//! # Not modelled
//! Interrupts, submission and completion queues as such: their cost is in the set-up times and `command_ns`.
//! # Cost
//! No events of its own: what waits for the command server or the link waits in queues whose times never decrease. No
//! allocation in steady state.

use ftlab_core::{BlockDevice, Breakdown, Completion, DeviceGeometry, IoContext, IoRequest, Lpn, OpKind, Status};
use ftlab_ftl::{HostRequest, Notice, Ticket};

use crate::clocked::Clocked;
use crate::config::HostLink;
use crate::due::{Due, NEVER};
use crate::timed::{Event, Link, TicketInfo};

/// What the device needs of an FTL.
pub trait Front {
    type Backend: Clocked;

    fn backend(&mut self) -> &mut Self::Backend;

    fn geometry(&self) -> DeviceGeometry;

    /// Issues the request's operations with `ticket` and seals it, now or, if it must wait, later. A refused request's
    /// ticket is sealed as well.
    fn admit(&mut self, request: &HostRequest<'_>, ticket: Ticket) -> Status;

    /// An operation's notice or a timer.
    fn notice(&mut self, notice: Notice);

    /// A request that begins with this unit will come after `ahead` others.
    fn prefetch(&self, _op: OpKind, _first: Lpn, _ahead: usize) {}
}

/// The drive as the host sees it.
pub struct Device<F> {
    front: F,
    geometry: DeviceGeometry,
    unit_shift: u32,
    read_setup_ns: u64,
    write_setup_ns: u64,
    command_ns: u64,
    host_in: Link,
    command_free_ns: u64,
    /// Requests on their way to the FTL. Reads, trims and flushes carry no data inwards: each kind keeps its order.
    arriving: [Due<Arrival>; 2],
    contexts: Contexts,
    /// The next admission.
    next_admission_ns: u64,
    /// Completed while a request was submitted, and not yet handed out.
    completed: Vec<Completion>,
    outstanding: usize,
    now_ns: u64,
    /// Nothing is left to do at `now_ns`.
    settled: bool,
}

/// A request that will be admitted.
#[derive(Clone, Copy, Default)]
struct Arrival {
    offset: u64,
    ticket: u32,
    length: u32,
    /// Its place among the contexts; most requests have none.
    context: Option<u32>,
    op: OpKind,
}

/// What is known of requests on their way to the FTL, in places that are used again.
#[derive(Default)]
struct Contexts {
    each: Vec<Kept>,
    unused: Vec<u32>,
}

#[derive(Default)]
struct Kept {
    context: IoContext<'static>,
    contents: Vec<u64>,
    chunks: Vec<u64>,
}

impl<F: Front> Device<F> {
    pub fn new(mut front: F, host: &HostLink) -> Self {
        let geometry = front.geometry();
        assert!(
            geometry.unit_bytes.is_power_of_two(),
            "mapping units of {} bytes",
            geometry.unit_bytes
        );
        *front.backend().host_out() = Link::new(host);
        Device {
            front,
            geometry,
            unit_shift: geometry.unit_bytes.trailing_zeros(),
            read_setup_ns: host.read_setup_ns,
            write_setup_ns: host.write_setup_ns,
            command_ns: host.command_ns,
            host_in: Link::new(host),
            command_free_ns: 0,
            arriving: Default::default(),
            contexts: Contexts::default(),
            next_admission_ns: NEVER,
            completed: Vec::new(),
            outstanding: 0,
            now_ns: 0,
            settled: true,
        }
    }

    pub fn front(&self) -> &F {
        &self.front
    }

    pub fn front_mut(&mut self) -> &mut F {
        self.settled = false;
        &mut self.front
    }

    pub fn into_front(self) -> F {
        self.front
    }

    /// Requests submitted and not yet handed out as completed.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Power is cut: every request in flight is lost. The FTL must recover before the next request.
    pub fn reset(&mut self) {
        self.front.backend().reset();
        self.host_in.clear();
        self.command_free_ns = 0;
        self.arriving = Default::default();
        self.contexts = Contexts::default();
        self.next_admission_ns = NEVER;
        self.completed.clear();
        self.outstanding = 0;
        self.settled = false;
    }
}

impl<F: Front> BlockDevice for Device<F> {
    fn geometry(&self) -> DeviceGeometry {
        self.geometry
    }

    #[inline(always)]
    fn submit(&mut self, tag: u64, io: &IoRequest<'_>, now_ns: u64) {
        assert!(
            io.offset <= self.geometry.capacity_bytes
                && u64::from(io.length) <= self.geometry.capacity_bytes - io.offset,
            "{} bytes from byte {} on reach beyond the {} of the drive",
            io.length,
            io.offset,
            self.geometry.capacity_bytes
        );
        if now_ns != self.now_ns || !self.settled {
            let mut completed = std::mem::take(&mut self.completed);
            self.run(now_ns, false, &mut completed);
            self.completed = completed;
        }
        self.outstanding += 1;
        let (setup, inwards) = match io.op {
            OpKind::Write => (self.write_setup_ns, u64::from(io.length)),
            _ => (self.read_setup_ns, 0),
        };
        let mut at_ns = now_ns;
        if self.command_ns > 0 {
            at_ns = self.command_free_ns.max(now_ns) + self.command_ns;
            self.command_free_ns = at_ns;
        }
        at_ns += setup;
        let mut transfer_ns = self.command_ns + setup;
        if inwards > 0 && self.host_in.takes_time() {
            let (end, duration) = self.host_in.reserve(at_ns, inwards);
            transfer_ns += duration;
            at_ns = end;
        }
        let backend = self.front.backend();
        let cross_bytes = match io.op {
            OpKind::Read if backend.host_out().takes_time() => u64::from(io.length),
            _ => 0,
        };
        let ticket = backend.open(TicketInfo {
            tag,
            op: io.op,
            since_ns: now_ns,
            parts: Breakdown {
                transfer_ns,
                queue_ns: at_ns - now_ns - transfer_ns,
                ..Breakdown::default()
            },
            cross_bytes,
        });
        if at_ns == now_ns {
            self.settled = false;
            return self.admit_at_once(io, ticket);
        }
        let context = (!io.context.is_none()).then(|| self.contexts.enter(io.context));
        self.arriving[usize::from(io.op == OpKind::Write)].push(
            at_ns,
            Arrival {
                offset: io.offset,
                ticket: ticket.0,
                length: io.length,
                context,
                op: io.op,
            },
        );
        self.next_admission_ns = self.next_admission_ns.min(at_ns);
    }

    fn next_wakeup(&mut self) -> Option<u64> {
        if let Some(first) = self.completed.first() {
            return Some(first.done_ns);
        }
        let flash = self.front.backend().next_time().unwrap_or(NEVER);
        let next = self.next_admission_ns.min(flash);
        (next != NEVER).then_some(next)
    }

    #[inline]
    fn advance(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        self.outstanding -= self.completed.len();
        out.append(&mut self.completed);
        let before = out.len();
        self.run(now_ns, false, out);
        self.outstanding -= out.len() - before;
    }

    #[inline]
    fn advance_to_completion(&mut self, until_ns: Option<u64>, out: &mut Vec<Completion>) -> Option<u64> {
        if !self.completed.is_empty() {
            self.advance(self.now_ns, out);
            return Some(self.now_ns);
        }
        let before = out.len();
        let reached = self.run(until_ns.unwrap_or(NEVER), true, out);
        self.outstanding -= out.len() - before;
        reached
    }

    #[inline]
    fn prefetch(&self, op: OpKind, offset: u64, ahead: usize) {
        self.front.prefetch(op, Lpn((offset >> self.unit_shift) as u32), ahead);
    }
}

impl<F: Front> Device<F> {
    /// Lets time pass until `until_ns` (`u64::MAX`: no limit), or to the first completion. Returns the time it is then;
    /// `None` if there is no limit and nothing is left to happen.
    #[inline]
    fn run(&mut self, until_ns: u64, to_completion: bool, out: &mut Vec<Completion>) -> Option<u64> {
        let mut until = until_ns;
        loop {
            let admission = self.next_admission_ns;
            match self.front.backend().pop(admission.min(until)) {
                Some(Event::TicketDone(ticket)) => {
                    let backend = self.front.backend();
                    let done = backend.take(ticket);
                    if to_completion {
                        // What else happens at this instant belongs to it.
                        until = done.done_ns;
                    }
                    out.push(done);
                }
                Some(Event::Notice(notice)) => self.react(notice),
                None if admission <= until && admission != NEVER => self.admit_arrived(admission),
                None => break,
            }
        }
        self.settled = true;
        if until == NEVER {
            return None;
        }
        self.now_ns = self.now_ns.max(until);
        Some(until)
    }

    /// Out of line: what the FTL does for a notice is much, and most events are none.
    #[inline(never)]
    fn react(&mut self, notice: Notice) {
        self.front.notice(notice);
    }

    /// Admits what has arrived at `now_ns`.
    #[inline]
    fn admit_arrived(&mut self, now_ns: u64) {
        self.admit_due(0, now_ns);
        if self.arriving[1].next_ns() <= now_ns {
            self.admit_writes(now_ns);
        }
        let [reads, writes] = &self.arriving;
        self.next_admission_ns = reads.next_ns().min(writes.next_ns());
    }

    /// Out of line, so that reads are admitted where they arrive.
    #[inline(never)]
    fn admit_writes(&mut self, now_ns: u64) {
        self.admit_due(1, now_ns);
    }

    #[inline(always)]
    fn admit_due(&mut self, kind: usize, now_ns: u64) {
        while self.arriving[kind].next_ns() <= now_ns {
            let arrival = self.arriving[kind].pop();
            let io = IoRequest::plain(arrival.op, arrival.offset, arrival.length);
            match arrival.context {
                None => self.admit(&io, Ticket(arrival.ticket)),
                Some(place) => self.admit_known(io, Ticket(arrival.ticket), place),
            }
        }
    }

    /// Gives the FTL a request of which more is known.
    #[inline(never)]
    fn admit_known(&mut self, io: IoRequest<'_>, ticket: Ticket, place: u32) {
        let kept = std::mem::take(&mut self.contexts.each[place as usize]);
        let context = &kept.context();
        self.admit_at_once(&IoRequest { context, ..io }, ticket);
        self.contexts.leave(place, kept);
    }

    #[inline(never)]
    fn admit_at_once(&mut self, io: &IoRequest<'_>, ticket: Ticket) {
        self.admit(io, ticket);
    }

    /// Gives the FTL a request.
    #[inline(always)]
    fn admit(&mut self, io: &IoRequest<'_>, ticket: Ticket) {
        let request = HostRequest::of_bytes(io, self.unit_shift);
        if self.front.admit(&request, ticket) != Status::Done {
            self.front.backend().refuse(ticket);
        }
    }
}

impl Contexts {
    fn enter(&mut self, context: &IoContext<'_>) -> u32 {
        let (contents, chunks) = (context.contents, context.chunks);
        let context = IoContext {
            contents: &[],
            chunks: &[],
            ..*context
        };
        let place = self.unused.pop().unwrap_or_else(|| {
            self.each.push(Kept::default());
            (self.each.len() - 1) as u32
        });
        let kept = &mut self.each[place as usize];
        kept.context = context;
        kept.contents.clear();
        kept.contents.extend_from_slice(contents);
        kept.chunks.clear();
        kept.chunks.extend_from_slice(chunks);
        place
    }

    /// What was taken from `place` for a while; the place may be used again.
    fn leave(&mut self, place: u32, kept: Kept) {
        self.each[place as usize] = kept;
        self.unused.push(place);
    }
}

impl Kept {
    fn context(&self) -> IoContext<'_> {
        IoContext {
            contents: &self.contents,
            chunks: &self.chunks,
            ..self.context
        }
    }
}
