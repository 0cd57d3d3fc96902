//! Copies on the timed backend: writes that race a blocked die and copies in idle time, to the nanosecond.

use crate::support::*;
use ftlab_core::{BlockDevice, Breakdown, Completion, IoRequest, LaneId, Lpn, OpKind, PolicySpec};
use ftlab_drive::device::Device;
use ftlab_drive::front::FtlFront;
use ftlab_drive::timed::Timed;
use ftlab_ftl::replication::{
    CopyPlan, Idle, IdleWork, LateWrite, Of, ReadOf, ReadPlan, ReplicationPolicy, Wait, WriteOf,
};
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Backend, Ftl, Overrides};
use ftlab_testkit::Case;

/// Of a unit of 512 bytes on an idle die: 361 of command, 512 bytes at 3 ns, 500,000 of programming.
const PROGRAM_NS: u64 = 361 + 512 * 3 + 500_000;
/// 290 of command, 50,000 of reading, 512 bytes at 3 ns.
const READ_NS: u64 = 290 + 50_000 + 512 * 3;

/// What a test orders.
#[derive(Default)]
struct Orders {
    copies: u8,
    wait: Wait,
    hedge_after_ns: Option<u64>,
    /// Lanes of further copies of a late write, in turn.
    late: Vec<u32>,
    idle_ns: Option<u64>,
    when_idle: Vec<IdleWork>,
}

impl ReplicationPolicy for Orders {
    fn write(&mut self, write: &WriteOf<'_>) -> CopyPlan {
        // The first units are written plainly: they make dies busy.
        if write.lpn.0 < 8 {
            return CopyPlan::ONE;
        }
        CopyPlan {
            copies: self.copies.max(1),
            wait: self.wait,
            hedge_after_ns: self.hedge_after_ns,
        }
    }

    fn late(&mut self, write: &LateWrite<'_>) -> Option<LaneId> {
        assert!(write.copies[0].load.queued > 0, "its own program at least");
        self.late.pop().map(LaneId)
    }

    fn read(&mut self, read: &ReadOf<'_>, plan: &mut ReadPlan) {
        plan.order.extend(0..read.copies.len() as u8);
        plan.order
            .sort_by_key(|&copy| read.copies[usize::from(copy)].load.queued);
    }

    fn idle_ns(&self) -> Option<u64> {
        self.idle_ns
    }

    fn when_idle(&mut self, _: &Idle<'_>) -> Option<IdleWork> {
        self.when_idle.pop()
    }
}

/// Four channels with a die each; LPN n lies on lane n modulo 4 and nothing else takes time.
fn device(orders: Orders) -> Device<FtlFront<Timed>> {
    let mut case = Case::plain_lanes(4, 20, 8, 1);
    case.config.allocation = PolicySpec::named("CWDP");
    let roles = Roles::given(None, Some(Box::new(orders)));
    let given = Overrides {
        roles: Some(roles),
        ..Overrides::default()
    };
    let timing = mqsim_timing();
    let mut ftl = case
        .build(given)
        .unwrap()
        .with_backend(timed(&case.layout, &timing, "fcfs"));
    ftl.start_idle_work();
    Device::new(FtlFront { ftl, timing }, &no_link())
}

/// Submits at `now` and runs until so many requests have completed; tags and times of completion.
fn run(device: &mut Device<FtlFront<Timed>>, requests: &[(OpKind, u64)], now: u64) -> Vec<(u64, u64)> {
    let done = completions(device, requests, now);
    done.iter().map(|done| (done.tag, done.done_ns)).collect()
}

fn completions(device: &mut Device<FtlFront<Timed>>, requests: &[(OpKind, u64)], now: u64) -> Vec<Completion> {
    for (tag, &(op, lpn)) in requests.iter().enumerate() {
        device.submit(tag as u64, &IoRequest::plain(op, lpn * 512, 512), now);
    }
    let mut out: Vec<Completion> = Vec::new();
    while out.len() < requests.len() {
        device.advance_to_completion(None, &mut out).expect("under way");
    }
    out
}

fn lanes_of(ftl: &Ftl<Timed>, lpn: u32) -> Vec<u32> {
    let slots = match ftl.record.entry(Lpn(lpn)).target() {
        ftlab_ftl::record::Target::Vpn(vpn) => ftl.indirection().copies_of(vpn).collect(),
        ftlab_ftl::record::Target::Slot(slot) => vec![slot],
        ftlab_ftl::record::Target::Unmapped | ftlab_ftl::record::Target::Chunks(_) => Vec::new(),
    };
    let lane_of = |slot| ftl.layout.lane_of(ftl.layout.ru_of(slot)).0;
    slots.into_iter().map(lane_of).collect()
}

/// All on lane 0; the last may have copies.
const BUSY: [(OpKind, u64); 3] = [(OpKind::Write, 0), (OpKind::Write, 4), (OpKind::Write, 8)];

/// Three programs follow each other on die 0.
#[test]
fn without_copies_a_write_waits_for_its_die() {
    let mut device = device(Orders::default());
    let done = run(&mut device, &BUSY, 0);
    assert_eq!(done, [(0, PROGRAM_NS), (1, 2 * PROGRAM_NS), (2, 3 * PROGRAM_NS)]);
}

/// After 10 us the third write gets a copy on die 2, which is idle, and is done with it.
#[test]
fn a_late_write_is_done_with_its_copy_on_an_idle_die() {
    let mut device = device(Orders {
        hedge_after_ns: Some(10_000),
        late: vec![2],
        ..Orders::default()
    });
    let done = run(&mut device, &BUSY, 0);
    assert_eq!(done, [(0, PROGRAM_NS), (2, 10_000 + PROGRAM_NS), (1, 2 * PROGRAM_NS)]);
    let ftl = &device.front().ftl;
    assert_eq!(lanes_of(ftl, 8), [0, 2], "the loser stays a copy");
    assert_eq!((ftl.counts.hedged_writes, ftl.counts.replica_programs), (1, 1));
}

/// Where a write's time went is what the copy that was in flash first says: the third write of `BUSY` by its own program, which waits
/// behind two others, by the copy on an idle die that it got after 10 us, or by the second of two copies.
#[test]
fn the_parts_of_a_racing_write_are_those_of_the_copy_that_won() {
    let hedged = |late: Vec<u32>, after_ns| Orders {
        hedge_after_ns: Some(after_ns),
        late,
        ..Orders::default()
    };
    let two = Orders {
        copies: 2,
        wait: Wait::First,
        ..Orders::default()
    };
    let cases = [
        (hedged(vec![], 10_000), 2 * PROGRAM_NS),
        (hedged(vec![2], 10_000), 10_000),
        (two, 0),
    ];
    for (orders, queue_ns) in cases {
        let mut device = device(orders);
        let done = completions(&mut device, &BUSY, 0);
        let racing = done.iter().find(|done| done.tag == 2).expect("it has completed");
        let wanted = Breakdown {
            queue_ns,
            flash_ns: 500_000,
            transfer_ns: PROGRAM_NS - 500_000,
            ..Breakdown::default()
        };
        assert_eq!(racing.parts, wanted);
        assert_eq!(racing.parts.total_ns(), racing.done_ns - racing.submitted_ns);
    }
}

/// The first further copy is put on die 3, which has a program to do before; the second, 10 us later, on die 2.
#[test]
fn a_copy_that_is_late_as_well_is_followed_by_another() {
    let mut device = device(Orders {
        hedge_after_ns: Some(10_000),
        late: vec![2, 3],
        ..Orders::default()
    });
    let requests = [BUSY[0], BUSY[1], (OpKind::Write, 3), BUSY[2]];
    let done = run(&mut device, &requests, 0);
    let wanted = [PROGRAM_NS, PROGRAM_NS, 20_000 + PROGRAM_NS, 2 * PROGRAM_NS];
    assert_eq!(done.iter().map(|done| done.1).collect::<Vec<_>>(), wanted);
    assert_eq!(done[2].0, 3);
    assert_eq!(lanes_of(&device.front().ftl, 8), [0, 3, 2]);
}

/// A nanosecond before its program is done a write is late; when it is done it is not.
#[test]
fn a_write_that_is_done_in_time_gets_no_copy() {
    for (after_ns, copies) in [(PROGRAM_NS - 1, 1), (PROGRAM_NS + 1, 0)] {
        let mut device = device(Orders {
            hedge_after_ns: Some(after_ns),
            late: vec![2],
            ..Orders::default()
        });
        assert_eq!(run(&mut device, &BUSY[2..], 0), [(0, PROGRAM_NS)]);
        device.advance_to_completion(Some(4 * PROGRAM_NS), &mut Vec::new());
        assert_eq!(device.front().ftl.counts.hedged_writes, copies, "after {after_ns} ns");
    }
}

/// Two copies, on dies 0 and 1. Die 1 is idle: the first is there after one program, both are after three.
#[test]
fn a_write_waits_for_the_first_of_its_copies_or_for_all() {
    for (wait, programs) in [(Wait::First, 1), (Wait::All, 3)] {
        let mut device = device(Orders {
            copies: 2,
            wait,
            ..Orders::default()
        });
        let done = run(&mut device, &BUSY, 0);
        assert!(done.contains(&(2, programs * PROGRAM_NS)), "{wait:?}: {done:?}");
        assert_eq!(lanes_of(&device.front().ftl, 8), [0, 1]);
    }
}

/// At 1 ms the unit is read on die 0 and then programmed on die 3. A read with two programs before it on die 0 goes there.
#[test]
fn an_idle_copy_lies_on_the_lane_that_was_named() {
    let mut device = device(Orders {
        idle_ns: Some(1_000_000),
        when_idle: vec![IdleWork::Copy {
            of: Of::Lpn(Lpn(8)),
            lane: Some(LaneId(3)),
        }],
        ..Orders::default()
    });
    assert_eq!(run(&mut device, &BUSY[2..], 0), [(0, PROGRAM_NS)]);
    device.advance_to_completion(Some(999_999), &mut Vec::new());
    assert_eq!(lanes_of(&device.front().ftl, 8), [0]);
    device.advance_to_completion(Some(1_000_000), &mut Vec::new());
    assert_eq!(lanes_of(&device.front().ftl, 8), [0, 3]);
    let copied = 1_000_000 + READ_NS + PROGRAM_NS;
    let idle_since = |device: &Device<FtlFront<Timed>>| device.front().ftl.backend.load(3).idle_since_ns;
    device.advance_to_completion(Some(copied - 1), &mut Vec::new());
    assert_eq!(idle_since(&device), None);
    device.advance_to_completion(Some(copied), &mut Vec::new());
    assert_eq!(idle_since(&device), Some(copied));
    let now = 3_000_000;
    device.advance_to_completion(Some(now), &mut Vec::new());
    let done = run(&mut device, &[BUSY[0], BUSY[1], (OpKind::Read, 8)], now);
    assert_eq!(
        done,
        [(2, now + READ_NS), (0, now + PROGRAM_NS), (1, now + 2 * PROGRAM_NS)]
    );
}
