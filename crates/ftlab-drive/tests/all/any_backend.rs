//! One device over every backend: with time, without it, and over the testkit's doubles, which hold the rules of flash.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::doubled::Doubled;
use crate::support::*;
use ftlab_core::{BlockDevice, Completion, IoContext, IoRequest, Lpn, OpKind, Slot, Status, Stream};
use ftlab_drive::clocked::Clocked;
use ftlab_drive::config::{DriveConfig, HostLink};
use ftlab_drive::device::Device;
use ftlab_drive::front::{FtlFront, timed_device};
use ftlab_drive::instrumented::Instrumented;
use ftlab_drive::untimed::Untimed;
use ftlab_ftl::record::Entry;
use ftlab_ftl::units::RuState;
use ftlab_ftl::{Counts, Ftl, HostRequest, Overrides, Ticket};
use ftlab_testkit::case::Wish;
use ftlab_testkit::{Case, Instant, Late};

const REQUESTS: u64 = 400;

fn device<B: Clocked>(case: &Case, backend: B, link: &HostLink) -> Device<FtlFront<B>> {
    let mut ftl = case.build(Overrides::default()).unwrap().with_backend(backend);
    ftl.start_idle_work();
    let timing = mqsim_timing();
    Device::new(FtlFront { ftl, timing }, link)
}

/// Requests of any operation, anywhere, of any number of bytes up to some units.
struct Host {
    random: Stream,
    capacity: u64,
    unit: u64,
}

impl Host {
    fn new(case: &Case) -> Self {
        let unit = u64::from(case.layout.geometry.unit_bytes);
        Host {
            random: Stream::new(case.config.seed, "host"),
            capacity: u64::from(case.config.logical_units) * unit,
            unit,
        }
    }

    fn next(&mut self) -> IoRequest<'static> {
        let op = [OpKind::Write, OpKind::Write, OpKind::Read, OpKind::Trim, OpKind::Flush]
            [self.random.below(5) as usize % if self.random.below(8) == 0 { 5 } else { 3 }];
        if op == OpKind::Flush {
            return IoRequest::plain(op, 0, 0);
        }
        let length = 1 + self.random.below((4 * self.unit).min(self.capacity));
        let offset = self.random.below(self.capacity - length + 1);
        IoRequest::plain(op, offset, length as u32)
    }
}

/// Keeps `depth` requests under way; the counts at the end.
fn run<B: Clocked>(case: &Case, backend: B, link: &HostLink, depth: u64) -> Counts {
    let mut device = device(case, backend, link);
    let mut host = Host::new(case);
    let mut out: Vec<Completion> = Vec::new();
    let (mut now, mut submitted, mut done) = (0, 0, vec![false; REQUESTS as usize]);
    let mut waiting = vec![None; REQUESTS as usize];
    while submitted < REQUESTS || device.outstanding() > 0 {
        while submitted < REQUESTS && (device.outstanding() as u64) < depth {
            let io = host.next();
            waiting[submitted as usize] = Some((io.op, now));
            device.submit(submitted, &io, now);
            submitted += 1;
        }
        now = device
            .advance_to_completion(None, &mut out)
            .expect("requests are under way");
        for completion in out.drain(..) {
            let tag = completion.tag as usize;
            assert!(
                !std::mem::replace(&mut done[tag], true),
                "request {tag} completes twice"
            );
            assert_eq!(completion.status, Status::Done, "{}", case.show());
            assert_eq!(completion.done_ns, now, "handed out when it completes");
            assert_eq!(Some((completion.op, completion.submitted_ns)), waiting[tag]);
            assert_eq!(completion.parts.total_ns(), now - completion.submitted_ns);
        }
    }
    assert!(done.iter().all(|&done| done));
    assert_eq!(device.gauges().tick, device.gauges().host_writes);
    let ftl = &device.front().ftl;
    ftl.check().unwrap();
    ftl.counts.clone()
}

/// What the host asked for, whatever the order in which the drive took it.
fn of_host(counts: &Counts) -> [u64; 7] {
    let c = counts;
    [
        c.host_reads,
        c.host_writes,
        c.host_trims,
        c.host_flushes,
        c.host_read_requests,
        c.host_write_requests,
        c.host_trim_requests,
    ]
}

#[test]
fn the_same_device_drives_every_backend() {
    for number in 0..24 {
        let mut case = Case::draw(number, Wish::default());
        case.config.logical_units = (case.config.logical_units / 2).max(4);
        let layout = case.layout.clone();
        for (link, depth) in [(mqsim_link(), 8), (no_link(), 1), (no_link(), 8)] {
            let of_timed = of_host(&run(&case, timed(&layout, &mqsim_timing(), "read_first"), &link, depth));
            let untimed = run(&case, Untimed::default(), &link, depth);
            let late = run(&case, Doubled::<Late>::new(&layout, number), &link, depth);
            let instant = run(&case, Doubled::<Instant>::new(&layout, number), &link, depth);
            for counts in [&untimed, &late, &instant] {
                assert_eq!(of_host(counts), of_timed);
            }
        }
    }
}

/// One request at a time through a device without time is what the FTL does without a device.
#[test]
fn a_device_without_time_counts_what_the_ftl_counts() {
    for number in 0..24 {
        let mut case = Case::draw(number, Wish::default());
        case.config.logical_units = (case.config.logical_units / 2).max(4);
        let mut ftl: Ftl<_> = case.build(Overrides::default()).unwrap();
        let mut host = Host::new(&case);
        for _ in 0..REQUESTS {
            let request = HostRequest::of_bytes(&host.next(), case.layout.geometry.unit_bytes.trailing_zeros());
            ftl.admit(&request, Ticket::NONE);
        }
        assert_eq!(
            run(&case, Untimed::default(), &no_link(), 1),
            ftl.counts,
            "{}",
            case.show()
        );
    }
}

/// Nothing but set-up and the link takes time: 68 + 1248 ns for a write of 4 KiB, 80 + 1248 ns for a read.
#[test]
fn a_device_without_flash_time_still_has_a_host_link() {
    let case = Case::plain(8, 8, 8);
    let mut device = device(&case, Untimed::default(), &mqsim_link());
    let mut out = Vec::new();
    for (op, want) in [(OpKind::Write, 1316), (OpKind::Read, 1328)] {
        let now = out.last().map_or(0, |done: &Completion| done.done_ns);
        device.submit(7, &IoRequest::plain(op, 0, 4096), now);
        assert_eq!(device.advance_to_completion(None, &mut out), Some(now + want));
    }
    assert_eq!(
        device.advance_to_completion(None, &mut out),
        None,
        "nothing is under way"
    );
    assert_eq!(device.advance_to_completion(Some(9000), &mut out), Some(9000));
    assert_eq!(out.len(), 2);
}

#[test]
fn a_drive_that_wears_out_says_so_and_stays_readable() {
    let mut case = Case::plain(8, 4, 1);
    case.config.erase_limit = Some(2);
    let mut device = device(&case, timed(&case.layout, &mqsim_timing(), "fcfs"), &no_link());
    let geometry = device.geometry();
    let mut out = Vec::new();
    let units = geometry.capacity_bytes / u64::from(geometry.unit_bytes);
    let mut refused = false;
    for tag in 0..40 * units {
        let io = IoRequest::plain(
            OpKind::Write,
            tag % units * u64::from(geometry.unit_bytes),
            geometry.unit_bytes,
        );
        let now = out.last().map_or(0, |done: &Completion| done.done_ns);
        device.submit(tag, &io, now);
        device.advance_to_completion(None, &mut out);
        let status = out.last().unwrap().status;
        assert!(status == Status::WornOut || !refused, "a worn-out drive took a write");
        refused = status == Status::WornOut;
    }
    assert!(refused);
    let now = out.last().unwrap().done_ns;
    device.submit(0, &IoRequest::plain(OpKind::Read, 0, geometry.unit_bytes), now);
    let after = device.advance_to_completion(None, &mut out).unwrap();
    assert!(after > now, "a read of flash takes time");
}

#[test]
#[should_panic(expected = "reach beyond")]
fn a_request_beyond_the_capacity_is_a_fault_of_the_caller() {
    let case = Case::plain(8, 8, 8);
    let mut device = device(&case, Untimed::default(), &no_link());
    let end = device.geometry().capacity_bytes;
    let context = IoContext::NONE;
    let io = IoRequest {
        op: OpKind::Read,
        offset: end - 1,
        length: 2,
        context: &context,
    };
    device.submit(0, &io, 0);
}

/// Fills most of a drive as a run prepares it, and lets the map say that unit 0 lies in the last page of a reclaim unit in
/// `state`. Whether reading it through the timed device panics.
fn panics(state: RuState) -> bool {
    let config = DriveConfig::load("tiny", &[]).unwrap();
    let mut ftl = Ftl::new(config.layout.clone(), config.ftl.clone()).unwrap();
    for lpn in 0..config.ftl.logical_units / 2 - 7 {
        ftl.admit(&HostRequest::whole(OpKind::Write, Lpn(lpn), 1), Ticket::NONE);
    }
    let ru = ftl.units.rus.iter().position(|ru| ru.state == state).expect("a unit");
    let slot = Slot((ru as u32 + 1) * ftl.layout.slots_per_ru - 1);
    ftl.record.set_entry(Lpn(0), Entry::slot(slot));
    let mut device = timed_device(&config, ftl).unwrap();
    let read = IoRequest::plain(OpKind::Read, 0, device.geometry().unit_bytes);
    let mut out = Vec::new();
    let reading = catch_unwind(AssertUnwindSafe(|| {
        device.submit(0, &read, 0);
        device.advance_to_completion(None, &mut out)
    }));
    reading.is_err()
}

#[test]
fn what_is_not_in_flash_is_never_read() {
    for (state, expected) in [(RuState::Closed, false), (RuState::Open, true), (RuState::Free, true)] {
        assert_eq!(panics(state), expected, "{state:?}");
    }
}
