//! A policy that need not look at a drive on which nothing happens orders what one that always looks does.

use std::sync::{Arc, Mutex};

use crate::support::*;
use ftlab_core::{BlockDevice, IoRequest, LaneId, OpKind, PolicySpec, Stream};
use ftlab_drive::device::Device;
use ftlab_drive::front::FtlFront;
use ftlab_ftl::replication::{
    CopyPlan, Event, Idle, IdleWork, LateWrite, ReadOf, ReadPlan, ReplicationPolicy, Setup, WriteOf, catalogue,
};
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Now, Overrides};
use ftlab_testkit::Case;

#[derive(Default)]
struct Seen {
    /// Orders with their times.
    ordered: Vec<(u64, IdleWork)>,
    looks: u64,
    rests: u64,
}

/// A policy that may rest or not, and what it orders.
struct Watched {
    policy: Box<dyn ReplicationPolicy>,
    may_rest: bool,
    seen: Arc<Mutex<Seen>>,
}

impl ReplicationPolicy for Watched {
    fn write(&mut self, write: &WriteOf<'_>) -> CopyPlan {
        self.policy.write(write)
    }

    fn late(&mut self, write: &LateWrite<'_>) -> Option<LaneId> {
        self.policy.late(write)
    }

    fn read(&mut self, read: &ReadOf<'_>, plan: &mut ReadPlan) {
        self.policy.read(read, plan);
    }

    fn idle_ns(&self) -> Option<u64> {
        self.policy.idle_ns()
    }

    fn rests(&mut self, now: Now) -> bool {
        let rests = self.may_rest && self.policy.rests(now);
        self.seen.lock().unwrap().rests += u64::from(rests);
        rests
    }

    fn when_idle(&mut self, idle: &Idle<'_>) -> Option<IdleWork> {
        let wanted = self.policy.when_idle(idle);
        let mut seen = self.seen.lock().unwrap();
        seen.looks += 1;
        seen.ordered.extend(wanted.map(|work| (idle.now.time_ns, work)));
        wanted
    }

    fn on(&mut self, event: Event, now: Now) {
        self.policy.on(event, now);
    }
}

/// Bursts of requests on four lanes, with pauses between them of nothing up to some hundred looks.
fn orders(policy: &str, seed: u64, may_rest: bool) -> Seen {
    orders_of(policy, seed, may_rest, false)
}

/// The same; `at_looks`: all requests come at the moment of a look.
fn orders_of(policy: &str, seed: u64, may_rest: bool, at_looks: bool) -> Seen {
    let mut case = Case::plain_lanes(4, 20, 8, 1);
    case.config.allocation = PolicySpec::named("CWDP");
    let mut setup = Setup::new(case.config.logical_units, &case.layout, seed);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let watched = Watched {
        policy: catalogue()
            .build(&PolicySpec::parse(policy).unwrap(), &mut setup)
            .unwrap(),
        may_rest,
        seen: Arc::clone(&seen),
    };
    let idle_ns = watched.idle_ns().unwrap();
    let units = u64::from(case.config.logical_units);
    let given = Overrides {
        roles: Some(Roles::given(None, Some(Box::new(watched)))),
        ..Overrides::default()
    };
    let timing = mqsim_timing();
    let ftl = case.build(given).unwrap();
    let mut ftl = ftl.with_backend(timed(&case.layout, &timing, "fcfs"));
    ftl.start_idle_work();
    let mut device = Device::new(FtlFront { ftl, timing }, &no_link());
    let mut random = Stream::new(seed, "requests");
    let (mut now, mut done) = (0, Vec::new());
    for burst in 0..300 {
        for number in 0..random.below(12) {
            let op = [OpKind::Read, OpKind::Write][random.below(2) as usize];
            let unit = random.below(units);
            device.submit(burst * 12 + number, &IoRequest::plain(op, unit * 512, 512), now);
        }
        // Some pauses are whole looks, so that requests come at the moment of one.
        now += match random.below(if at_looks { 1 } else { 3 }) {
            0 if at_looks => idle_ns * random.below(200),
            0 => idle_ns * random.below(20),
            1 => random.below(2_000_000),
            _ => random.below(20_000_000),
        };
        device.advance(now, &mut done);
    }
    drop(device);
    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

#[test]
fn a_policy_that_rests_orders_the_same() {
    let policies = [
        "pblru:k=3,deadline_us=100,read_us=50,write_us=500,blocked=late,further=idle,epoch_s=0.2,history=1",
        "pblru:k=2,deadline_us=600,read_us=50,write_us=500,space=0.05,epoch_s=0.03,delta=0.2",
        // A write on an idle die takes as long as it is to the next look, which sees the die busy at the moment when it becomes idle.
        "pblru:k=3,deadline_us=100,read_us=501.897,write_us=501.897,blocked=late,further=idle,epoch_s=0.3",
        "pblru:k=3,deadline_us=100,read_us=50,write_us=100,blocked=late,further=idle,eviction=lru,space=0.1,buckets=20,epoch_s=1",
    ];
    for policy in policies {
        for seed in 0..8 {
            let (looking, resting) = (orders(policy, seed, false), orders(policy, seed, true));
            assert_eq!(looking.ordered, resting.ordered, "`{policy}`, seed {seed}");
            assert!(
                looking.ordered.len() > 20,
                "`{policy}`: {} orders",
                looking.ordered.len()
            );
            assert!(resting.looks < looking.looks && looking.rests == 0);
            assert!(resting.rests > 100, "`{policy}`: {} rests", resting.rests);
        }
    }
}

/// How long a request for unit 0 takes on a drive that has nothing else to do.
fn alone_ns(op: OpKind) -> u64 {
    let case = Case::plain_lanes(4, 20, 8, 1);
    let timing = mqsim_timing();
    let ftl = case.build(Overrides::default()).unwrap();
    let ftl = ftl.with_backend(timed(&case.layout, &timing, "fcfs"));
    let mut device = Device::new(FtlFront { ftl, timing }, &no_link());
    let mut done = Vec::new();
    let later = 1_000_000_000;
    device.submit(0, &IoRequest::plain(OpKind::Write, 0, 512), 0);
    device.submit(1, &IoRequest::plain(op, 0, 512), later);
    device.advance(2 * later, &mut done);
    done.iter().map(|one| one.done_ns).max().unwrap() - later
}

/// Requests come at looks, and those that wait for nothing end at the next one, which may see the die busy still: the idle period that
/// begins there must be found by the look after that, on which nothing has happened since.
#[test]
fn what_becomes_idle_at_a_look_is_not_taken_for_what_was_idle_then() {
    for op in [OpKind::Read, OpKind::Write] {
        let look_us = alone_ns(op) as f64 / 1e3;
        let policy = format!(
            "pblru:k=3,deadline_us=100,read_us={look_us},write_us=500,blocked=late,further=idle,epoch_s=0.05,delta=0.3"
        );
        for seed in 0..8 {
            let [looking, resting] = [false, true].map(|may_rest| orders_of(&policy, seed, may_rest, true));
            let differ = looking
                .ordered
                .iter()
                .zip(&resting.ordered)
                .find(|(one, other)| one != other);
            assert_eq!(differ, None, "`{policy}`, seed {seed}");
            assert_eq!(looking.ordered.len(), resting.ordered.len(), "`{policy}`, seed {seed}");
            assert!(resting.rests > 100, "`{policy}`: {} rests", resting.rests);
        }
    }
}
