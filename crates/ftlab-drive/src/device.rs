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

use std::collections::VecDeque;

use ftlab_core::{BlockDevice, Breakdown, Completion, DeviceGeometry, IoContext, IoRequest, Lpn, OpKind, Part, Status};
use ftlab_ftl::{HostRequest, Notice, Ticket};

use crate::clocked::Clocked;
use crate::config::HostLink;
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
    fn prefetch(&self, _first: Lpn, _ahead: usize) {}
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
    arriving: [VecDeque<Arrival>; 2],
    contexts: Contexts,
    /// What the FTL has, by ticket number.
    in_flight: Vec<InFlight>,
    /// Requests whose data is on the link, in order of completion.
    leaving: VecDeque<Completion>,
    /// The next admission or departure; `u64::MAX` for none.
    next_own_ns: u64,
    /// Completed while a request was submitted, and not yet handed out.
    completed: Vec<Completion>,
    outstanding: usize,
    now_ns: u64,
    /// Nothing is left to do at `now_ns`.
    settled: bool,
}

/// A request that will be admitted at `at_ns`.
struct Arrival {
    at_ns: u64,
    entered: Entered,
    offset: u64,
    /// Its place among the contexts; most requests have none.
    context: Option<u32>,
}

/// What is known of requests on their way to the FTL, in places that are used again.
#[derive(Default)]
struct Contexts {
    each: Vec<Kept>,
    unused: Vec<u32>,
}

struct Kept {
    context: IoContext<'static>,
    contents: Vec<u64>,
}

/// What is known of a request when it reaches the FTL. What its latency did not spend in transfers it waited.
#[derive(Clone, Copy)]
struct Entered {
    tag: u64,
    submitted_ns: u64,
    transfer_ns: u64,
    op: OpKind,
    length: u32,
}

/// A request that the FTL has.
#[derive(Clone, Copy)]
struct InFlight {
    tag: u64,
    /// Bytes that cross the link outwards.
    out_bytes: u32,
    op: OpKind,
    status: Status,
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
            in_flight: Vec::new(),
            leaving: VecDeque::new(),
            next_own_ns: u64::MAX,
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
        self.leaving.clear();
        self.next_own_ns = u64::MAX;
        self.completed.clear();
        self.outstanding = 0;
        self.settled = false;
    }
}

impl<F: Front> BlockDevice for Device<F> {
    fn geometry(&self) -> DeviceGeometry {
        self.geometry
    }

    #[inline]
    fn submit(&mut self, tag: u64, io: &IoRequest<'_>, now_ns: u64) {
        assert!(
            u128::from(io.offset) + u128::from(io.length) <= u128::from(self.geometry.capacity_bytes),
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
        let entered = Entered {
            tag,
            submitted_ns: now_ns,
            transfer_ns,
            op: io.op,
            length: io.length,
        };
        if at_ns == now_ns {
            self.settled = false;
            let request = HostRequest::of_bytes(io, self.unit_shift);
            admit(&mut self.front, &mut self.in_flight, &request, &entered, now_ns);
            return;
        }
        let context = (!io.context.is_none()).then(|| self.contexts.enter(io.context));
        self.arriving[usize::from(io.op == OpKind::Write)].push_back(Arrival {
            at_ns,
            entered,
            offset: io.offset,
            context,
        });
        self.next_own_ns = self.next_own_ns.min(at_ns);
    }

    fn next_wakeup(&mut self) -> Option<u64> {
        if let Some(first) = self.completed.first() {
            return Some(first.done_ns);
        }
        let flash = self.front.backend().next_time().unwrap_or(u64::MAX);
        let next = self.next_own_ns.min(flash);
        (next != u64::MAX).then_some(next)
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
        let reached = self.run(until_ns.unwrap_or(u64::MAX), true, out);
        self.outstanding -= out.len() - before;
        reached
    }

    #[inline]
    fn prefetch(&self, offset: u64, ahead: usize) {
        self.front.prefetch(Lpn((offset >> self.unit_shift) as u32), ahead);
    }
}

impl<F: Front> Device<F> {
    /// Lets time pass until `until_ns` (`u64::MAX`: no limit), or to the first completion. Returns the time it is then;
    /// `None` if there is no limit and nothing is left to happen.
    #[inline]
    fn run(&mut self, until_ns: u64, to_completion: bool, out: &mut Vec<Completion>) -> Option<u64> {
        let before = out.len();
        let mut until = until_ns;
        loop {
            // Every event may put something on the link that leaves before the next one.
            let own = self.next_own_ns;
            let time = match self.front.backend().pop(own.min(until)) {
                Some((time, Event::TicketDone(ticket))) => {
                    self.ticket_done(ticket, time, out);
                    time
                }
                Some((_, Event::Notice(notice))) => {
                    self.front.notice(notice);
                    continue;
                }
                None if own <= until && own != u64::MAX => {
                    self.step_own(own, out);
                    own
                }
                None => break,
            };
            if to_completion && out.len() > before {
                // What else happens at this instant belongs to it.
                until = time;
            }
        }
        self.settled = true;
        if until == u64::MAX {
            return None;
        }
        self.now_ns = self.now_ns.max(until);
        Some(until)
    }

    /// Hands out and admits what is due at `now_ns`: departures first.
    #[inline]
    fn step_own(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        let mut next = u64::MAX;
        while let Some(completion) = self.leaving.front() {
            if completion.done_ns > now_ns {
                next = completion.done_ns;
                break;
            }
            out.push(*completion);
            self.leaving.pop_front();
        }
        for arriving in &mut self.arriving {
            while let Some(arrival) = arriving.front() {
                if arrival.at_ns > now_ns {
                    next = next.min(arrival.at_ns);
                    break;
                }
                let entered = &arrival.entered;
                let mut io = IoRequest::plain(entered.op, arrival.offset, entered.length);
                match arrival.context {
                    None => {
                        let request = HostRequest::of_bytes(&io, self.unit_shift);
                        admit(&mut self.front, &mut self.in_flight, &request, entered, now_ns);
                    }
                    Some(place) => {
                        let context = self.contexts.get(place);
                        io.context = &context;
                        let request = HostRequest::of_bytes(&io, self.unit_shift);
                        admit(&mut self.front, &mut self.in_flight, &request, entered, now_ns);
                        self.contexts.unused.push(place);
                    }
                }
                arriving.pop_front();
            }
        }
        self.next_own_ns = next;
    }

    /// Everything the FTL does for a request is done; a read's data may still be on the link.
    #[inline]
    fn ticket_done(&mut self, ticket: Ticket, now_ns: u64, out: &mut Vec<Completion>) {
        let entry = self.in_flight[ticket.0 as usize];
        let backend = self.front.backend();
        let end = backend.take(ticket);
        let mut parts = end.parts;
        let mut done_ns = now_ns;
        if entry.out_bytes > 0 && entry.status == Status::Done {
            let mut crossing = end.crossing_ns;
            done_ns = done_ns.max(end.crossed_ns);
            let rest = u64::from(entry.out_bytes) - end.crossed_bytes;
            if rest > 0 {
                let (crossed, duration) = backend.host_out().reserve(now_ns, rest);
                crossing += duration;
                done_ns = crossed;
            }
            // Earlier pages may have crossed while the last was read: only what lies after `now_ns` counts.
            let crossing = crossing.min(done_ns - now_ns);
            parts.add(Part::Transfer, crossing);
            parts.add(Part::Queue, done_ns - now_ns - crossing);
        }
        let completion = Completion {
            tag: entry.tag,
            op: entry.op,
            status: entry.status,
            submitted_ns: end.since_ns,
            done_ns,
            parts,
        };
        if done_ns == now_ns {
            out.push(completion);
        } else {
            self.leave(completion);
        }
    }

    /// Enters a request whose data is on the link. Almost always the last to leave: only one whose data crossed while other
    /// work of its own went on may leave before an earlier one.
    #[inline]
    fn leave(&mut self, completion: Completion) {
        self.next_own_ns = self.next_own_ns.min(completion.done_ns);
        if self
            .leaving
            .back()
            .is_none_or(|last| last.done_ns <= completion.done_ns)
        {
            return self.leaving.push_back(completion);
        }
        let after = self
            .leaving
            .partition_point(|other| other.done_ns <= completion.done_ns);
        self.leaving.insert(after, completion);
    }
}

/// Gives the FTL a request.
#[inline]
fn admit<F: Front>(
    front: &mut F,
    in_flight: &mut Vec<InFlight>,
    request: &HostRequest<'_>,
    entered: &Entered,
    now_ns: u64,
) {
    let backend = front.backend();
    let out_bytes = match entered.op {
        OpKind::Read if backend.host_out().takes_time() => entered.length,
        _ => 0,
    };
    let ticket = backend.open(TicketInfo {
        since_ns: entered.submitted_ns,
        parts: Breakdown {
            transfer_ns: entered.transfer_ns,
            queue_ns: now_ns - entered.submitted_ns - entered.transfer_ns,
            ..Breakdown::default()
        },
        cross_bytes: u64::from(out_bytes),
    });
    let entry = InFlight {
        tag: entered.tag,
        out_bytes,
        op: entered.op,
        status: Status::Done,
    };
    let at = ticket.0 as usize;
    if at >= in_flight.len() {
        in_flight.resize(at + 1, entry);
    }
    in_flight[at] = entry;
    in_flight[at].status = front.admit(request, ticket);
}

impl Contexts {
    fn enter(&mut self, context: &IoContext<'_>) -> u32 {
        let contents = context.contents;
        let context = IoContext {
            contents: &[],
            ..*context
        };
        let Some(place) = self.unused.pop() else {
            let contents = contents.to_vec();
            self.each.push(Kept { context, contents });
            return (self.each.len() - 1) as u32;
        };
        let kept = &mut self.each[place as usize];
        kept.context = context;
        kept.contents.clear();
        kept.contents.extend_from_slice(contents);
        place
    }

    fn get(&self, place: u32) -> IoContext<'_> {
        let kept = &self.each[place as usize];
        IoContext {
            contents: &kept.contents,
            ..kept.context
        }
    }
}
