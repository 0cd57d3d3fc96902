//! A read that is known to be the only operation of its ticket takes a shorter way; it ends as on the way of any other.

use crate::support::*;
use ftlab_core::{BlockDevice, Completion, IoRequest, Lpn, OpKind, Stream};
use ftlab_drive::clocked::Clocked;
use ftlab_drive::config::HostLink;
use ftlab_drive::device::Device;
use ftlab_drive::front::FtlFront;
use ftlab_drive::timed::{Event, Link, TicketInfo, Timed};
use ftlab_flash::Timing;
use ftlab_ftl::{Backend, FlashOp, HostRequest, Load, Need, Notice, OpId, Overrides, PageCopies, Ticket};
use ftlab_testkit::Case;
use ftlab_testkit::case::Wish;

/// The timed backend, to which each operation is one of several.
struct Beside(Timed);

impl Backend for Beside {
    const TIMED: bool = true;

    fn issue(&mut self, op: FlashOp, after: &[OpId]) -> OpId {
        self.0.issue(op, after)
    }

    fn copy(&mut self, copies: &PageCopies<'_>) -> OpId {
        self.0.copy(copies)
    }

    fn join(&mut self, inputs: &[OpId], need: Need, ticket: Ticket, notice: Option<Notice>) -> OpId {
        self.0.join(inputs, need, ticket, notice)
    }

    fn join_more(&mut self, join: OpId, input: OpId) {
        self.0.join_more(join, input);
    }

    fn cancel(&mut self, id: OpId) {
        self.0.cancel(id);
    }

    fn is_done(&self, id: OpId) -> bool {
        self.0.is_done(id)
    }

    fn compute(&mut self, engine: u16, ns: u64, after: &[OpId], ticket: Ticket) -> OpId {
        self.0.compute(engine, ns, after, ticket)
    }

    fn arm(&mut self, delay_ns: u64, notice: Notice) {
        self.0.arm(delay_ns, notice);
    }

    fn barrier(&mut self, ticket: Ticket) {
        self.0.barrier(ticket);
    }

    fn load(&self, die: u32) -> Load {
        self.0.load(die)
    }

    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
}

impl Clocked for Beside {
    fn host_out(&mut self) -> &mut Link {
        self.0.host_out()
    }

    fn open(&mut self, info: TicketInfo) -> Ticket {
        self.0.open(info)
    }

    fn seal(&mut self, ticket: Ticket) {
        self.0.seal(ticket);
    }

    fn refuse(&mut self, ticket: Ticket) {
        self.0.refuse(ticket);
    }

    fn take(&mut self, ticket: Ticket) -> Completion {
        self.0.take(ticket)
    }

    fn pop(&mut self, until_ns: u64) -> Option<Event> {
        self.0.pop_event(until_ns)
    }

    fn next_time(&mut self) -> Option<u64> {
        self.0.next_time()
    }

    fn reset(&mut self) {
        self.0.reset();
    }
}

const REQUESTS: u64 = 1500;
const DEPTH: usize = 12;

/// A full drive, then so many of a hundred requests are reads of a unit, the others writes; everything that completes.
fn completions<B: Clocked>(case: &Case, backend: B, link: &HostLink, reads: u64) -> Vec<Completion> {
    let mut ftl = case.build(Overrides::default()).unwrap();
    // Before there is time: where all are reads, nothing else ever reaches the backend.
    for lpn in (0..case.config.logical_units).map(Lpn) {
        ftl.admit(&HostRequest::whole(OpKind::Write, lpn, 1), Ticket::NONE);
    }
    ftl.admit(&HostRequest::whole(OpKind::Flush, Lpn(0), 0), Ticket::NONE);
    let mut ftl = ftl.with_backend(backend);
    ftl.start_idle_work();
    let timing = mqsim_timing();
    let mut device = Device::new(FtlFront { ftl, timing }, link);
    let mut draw = Stream::new(case.config.seed, "sole");
    let (units, unit) = (u64::from(case.config.logical_units), case.layout.geometry.unit_bytes);
    let (mut out, mut all) = (Vec::new(), Vec::new());
    let mut now = 0;
    for tag in 0..REQUESTS {
        let op = match draw.below(100) < reads {
            true => OpKind::Read,
            false => OpKind::Write,
        };
        let offset = draw.below(units) * u64::from(unit);
        while device.outstanding() >= DEPTH {
            now = device.advance_to_completion(None, &mut out).unwrap();
        }
        device.submit(tag, &IoRequest::plain(op, offset, unit), now);
        all.append(&mut out);
    }
    while device.outstanding() > 0 {
        device.advance_to_completion(None, &mut out).unwrap();
    }
    all.append(&mut out);
    assert_eq!(all.len() as u64, REQUESTS);
    all
}

#[test]
fn a_sole_read_ends_as_any_other() {
    let decoded = Timing {
        ecc_ns: 1700,
        multi_plane: false,
        suspend_program: true,
        suspend_erase: true,
        suspend_ns: 900,
        resume_ns: 800,
        max_suspends: 2,
        ..mqsim_timing()
    };
    for number in 0..16 {
        let mut case = Case::draw(number, Wish::default());
        case.config.logical_units = (case.config.logical_units / 2).max(4);
        for (timing, schedule) in [
            (&mqsim_timing(), "read_first"),
            (&mqsim_timing(), "lockstep"),
            (&decoded, "out_of_order"),
        ] {
            for (link, reads) in [(mqsim_link(), 100), (no_link(), 70)] {
                let new = || timed(&case.layout, timing, schedule);
                let sole = completions(&case, new(), &link, reads);
                let beside = completions(&case, Beside(new()), &link, reads);
                assert_eq!(sole, beside, "{schedule}, {reads} % reads: {}", case.show());
            }
        }
    }
}

/// Reads of several planes run together: each keeps its own account, also of what it waited for collections.
#[test]
fn sole_reads_of_a_multi_plane_operation_end_as_any_other() {
    let mut case = Case::plain(16, 8, 1);
    case.layout = layout([1, 1, 1, 4], 16, 8, case.layout.geometry.page_bytes);
    case.config.logical_units = case.layout.slots() * 7 / 10;
    for schedule in ["fcfs", "read_first", "lockstep", "out_of_order"] {
        for reads in [100, 60] {
            let new = || timed(&case.layout, &mqsim_timing(), schedule);
            let sole = completions(&case, new(), &mqsim_link(), reads);
            let beside = completions(&case, Beside(new()), &mqsim_link(), reads);
            assert_eq!(sole, beside, "{schedule}, {reads} % reads");
            let waited = sole
                .iter()
                .any(|done| done.op == OpKind::Read && done.parts.gc_wait_ns > 0);
            assert_eq!(
                waited,
                reads < 100,
                "{schedule}: reads wait for collections where there are any"
            );
        }
    }
}
