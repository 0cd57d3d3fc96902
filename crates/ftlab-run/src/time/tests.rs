//! The loop drives whatever is a block device: a drive, an array of drives, nothing at all.

use ftlab_core::faults::Faults;
use ftlab_core::{DeviceGeometry, IoRequest};
use ftlab_drive::config::DriveConfig;
use ftlab_drive::device::Device;
use ftlab_drive::faulty::Faulty;
use ftlab_drive::front::{FtlFront, timed_device};
use ftlab_drive::power::PowerCut;
use ftlab_drive::timed::Timed;
use ftlab_ftl::Ftl;
use ftlab_trace::synth;

use super::*;
use crate::Unobserved;
use crate::measure::Limit;
use crate::settling::Settles;

type Drive = Device<FtlFront<Timed>>;

fn config(sets: &[&str]) -> DriveConfig {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    DriveConfig::load("tiny", &sets).unwrap()
}

/// A drive that has been filled.
fn drive(config: &DriveConfig) -> Drive {
    let mut ftl = Ftl::new(config.layout.clone(), config.ftl.clone()).unwrap();
    ftl.precondition_fill();
    ftl.reset_counts();
    timed_device(config, ftl).unwrap()
}

fn run<D: BlockDevice + Instrumented>(device: &mut D, spec: &str, pace: Pace, power_cuts: &[u64]) -> Measured {
    let geometry = device.geometry();
    let generator = synth::parse(spec, geometry.capacity_bytes, geometry.unit_bytes, 5).unwrap();
    let mut workload = Workload::generated(generator);
    let plan = Plan {
        phase: "measure",
        total_requests: None,
        limit: Limit::default(),
        break_at: None,
        power_cuts,
        config: &config(&[]),
        settles: Settles::at(0.02, &config(&[])),
        film: false,
    };
    let mut watch = Unobserved;
    time(
        device,
        &mut workload,
        Held::default(),
        pace,
        true,
        &plan,
        &mut Watch::new(&mut watch),
    )
    .unwrap()
}

const fn closed(depth: u32) -> Pace {
    Pace::Closed { depth }
}

/// A device that completes every request at once.
struct Null(Vec<Completion>);

impl BlockDevice for Null {
    fn geometry(&self) -> DeviceGeometry {
        DeviceGeometry {
            capacity_bytes: 1 << 30,
            unit_bytes: 4096,
        }
    }

    fn submit(&mut self, tag: u64, io: &IoRequest<'_>, now_ns: u64) {
        self.0.push(Completion {
            tag,
            op: io.op,
            status: Status::Done,
            submitted_ns: now_ns,
            done_ns: now_ns,
            parts: Default::default(),
        });
    }

    fn next_wakeup(&mut self) -> Option<u64> {
        self.0.first().map(|done| done.done_ns)
    }

    fn advance(&mut self, _: u64, out: &mut Vec<Completion>) {
        out.append(&mut self.0);
    }
}

impl Instrumented for Null {}

/// An array whose stripes lie on its members in turn.
struct Striped<D> {
    members: Vec<D>,
    stripe_bytes: u64,
    /// By tag of their pieces: the request's own tag, and its pieces under way.
    requests: Vec<(u64, usize)>,
}

impl<D: BlockDevice> Striped<D> {
    fn new(members: Vec<D>, stripe_bytes: u64) -> Self {
        Striped {
            members,
            stripe_bytes,
            requests: Vec::new(),
        }
    }

    /// Member, offset on it and length of each piece.
    fn pieces(&self, io: &IoRequest<'_>) -> Vec<(usize, u64, u32)> {
        let count = self.members.len() as u64;
        if io.op == OpKind::Flush {
            return (0..count as usize).map(|member| (member, 0, 0)).collect();
        }
        let (mut at, end) = (io.offset, io.offset + u64::from(io.length));
        let mut pieces = Vec::new();
        while at < end {
            let (stripe, within) = (at / self.stripe_bytes, at % self.stripe_bytes);
            let length = (self.stripe_bytes - within).min(end - at);
            let offset = stripe / count * self.stripe_bytes + within;
            pieces.push(((stripe % count) as usize, offset, length as u32));
            at += length;
        }
        pieces
    }
}

impl<D: BlockDevice> BlockDevice for Striped<D> {
    fn geometry(&self) -> DeviceGeometry {
        let one = self.members[0].geometry();
        let stripes = one.capacity_bytes / self.stripe_bytes;
        DeviceGeometry {
            capacity_bytes: stripes * self.stripe_bytes * self.members.len() as u64,
            ..one
        }
    }

    fn submit(&mut self, tag: u64, io: &IoRequest<'_>, now_ns: u64) {
        assert!(
            io.context.contents.is_empty(),
            "contents would have to be parted as well"
        );
        let pieces = self.pieces(io);
        self.requests.push((tag, pieces.len()));
        let own = self.requests.len() as u64 - 1;
        for (member, offset, length) in pieces {
            let piece = IoRequest { offset, length, ..*io };
            self.members[member].submit(own, &piece, now_ns);
        }
    }

    fn next_wakeup(&mut self) -> Option<u64> {
        self.members.iter_mut().filter_map(BlockDevice::next_wakeup).min()
    }

    fn advance(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        let mut pieces = Vec::new();
        for member in &mut self.members {
            member.advance(now_ns, &mut pieces);
        }
        pieces.sort_by_key(|piece| piece.done_ns);
        for piece in pieces {
            let (tag, left) = &mut self.requests[piece.tag as usize];
            *left -= 1;
            if *left == 0 {
                out.push(Completion { tag: *tag, ..piece });
            }
        }
    }
}

impl<D: Instrumented> Instrumented for Striped<D> {
    fn gauges(&self) -> Gauges {
        self.members.iter().fold(Gauges::default(), |mut sum, member| {
            let one = member.gauges();
            sum.tick += one.tick;
            sum.host_writes += one.host_writes;
            sum.erases += one.erases;
            sum
        })
    }

    fn cut_power(&mut self) -> PowerCut {
        let cuts = self.members.iter_mut().map(Instrumented::cut_power);
        cuts.fold(PowerCut::default(), |all, one| PowerCut {
            lost_requests: all.lost_requests + one.lost_requests,
            recovery_ns: all.recovery_ns.max(one.recovery_ns),
            report: one.report,
        })
    }
}

#[test]
fn a_null_device_takes_no_time() {
    let mut device = Null(Vec::new());
    let measured = run(&mut device, "uniform:read=0.5,requests=1000", closed(8), &[]);
    assert_eq!((measured.end, measured.requests, measured.sim_ns), (End::Done, 1000, 0));
    assert_eq!(measured.bytes, 1000 * 4096);
    assert_eq!(measured.latencies.sum_of(OpKind::Read).0, 0);
    let open = Pace::Open { speedup: 2.0, limit: 8 };
    let measured = run(&mut device, "uniform:requests=1000,rate=1000", open, &[]);
    let last = measured.series.table(true);
    let Some(crate::Column::U64(times)) = last.column("time_ns") else {
        panic!("no column `time_ns`");
    };
    assert_eq!(
        times.last(),
        Some(&measured.sim_ns),
        "the run ends with its last request"
    );
    assert!(
        (4.5e8..5.5e8).contains(&(measured.sim_ns as f64)),
        "{}",
        measured.sim_ns
    );
    assert_eq!(measured.late_max_ns, 0);
}

/// A device that has something to do of its own in an hour.
struct WithClock(Null);

impl BlockDevice for WithClock {
    fn geometry(&self) -> DeviceGeometry {
        self.0.geometry()
    }

    fn submit(&mut self, tag: u64, io: &IoRequest<'_>, now_ns: u64) {
        self.0.submit(tag, io, now_ns);
    }

    fn next_wakeup(&mut self) -> Option<u64> {
        self.0.next_wakeup().or(Some(3_600_000_000_000))
    }

    fn advance(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        self.0.advance(now_ns, out);
    }
}

impl Instrumented for WithClock {}

#[test]
fn the_window_ends_with_the_last_request_whatever_is_due_later() {
    let mut device = WithClock(Null(Vec::new()));
    let measured = run(&mut device, "uniform:requests=1000", closed(8), &[]);
    assert_eq!((measured.requests, measured.sim_ns), (1000, 0));
    let of_transactions = |timeout: &str| {
        let spec = format!("transactions:mix=tpcb,clients=4,compute=1ms,transactions=300,timeout={timeout}");
        run(&mut Null(Vec::new()), &spec, closed(8), &[]).sim_ns
    };
    let window = of_transactions("50ms");
    assert!(window > 300_000_000, "{window}");
    assert_eq!(window, of_transactions("60s"));
}

#[test]
fn an_array_of_one_is_its_drive() {
    let config = config(&[]);
    let spec = "uniform:read=0.5,requests=20000,size=16KiB";
    let alone = run(&mut drive(&config), spec, closed(16), &[]);
    let whole = drive(&config).geometry().capacity_bytes;
    let mut array = Striped::new(vec![drive(&config)], whole);
    let one = run(&mut array, spec, closed(16), &[]);
    assert_eq!(alone.sim_ns, one.sim_ns);
    assert_eq!(alone.rows.unwrap().table(), one.rows.unwrap().table());
    assert_eq!(array.gauges().host_writes, array.members[0].gauges().host_writes);
}

#[test]
fn two_drives_read_twice_as_fast() {
    let config = config(&[]);
    let spec = "uniform:op=read,requests=40000";
    let rate = |measured: &Measured| measured.requests as f64 / measured.sim_ns as f64;
    let one = run(&mut drive(&config), spec, closed(32), &[]);
    let mut array = Striped::new(vec![drive(&config), drive(&config)], 64 << 10);
    let two = run(&mut array, spec, closed(64), &[]);
    assert_eq!(two.requests, 40_000);
    // With 32 reads on 4 dies each drive is all but saturated, so it matters little that the two share 64 unevenly.
    let ratio = rate(&two) / rate(&one);
    assert!((1.9..2.05).contains(&ratio), "{ratio}");
}

/// A read of 8 KiB over two drives is two reads of 4 KiB side by side: as fast as one of them.
#[test]
fn a_request_over_two_members_completes_with_the_later_piece() {
    let config = config(&[]);
    let mut array = Striped::new(vec![drive(&config), drive(&config)], 4096);
    let whole = run(&mut array, "sequential:op=read,size=8KiB,requests=500", closed(1), &[]);
    let piece = run(
        &mut drive(&config),
        "sequential:op=read,size=4KiB,requests=500",
        closed(1),
        &[],
    );
    assert_eq!((whole.requests, whole.bytes), (500, 500 * 8192));
    assert_eq!(whole.sim_ns, piece.sim_ns);
}

#[test]
fn a_power_cut_takes_the_whole_array() {
    let config = config(&["ftl.checkpoint=4MiB", "ftl.op_ratio=0.4", "gc.hard=3"]);
    let mut array = Striped::new(vec![drive(&config), drive(&config)], 64 << 10);
    let measured = run(&mut array, "uniform:requests=20000,qd=64", closed(64), &[5000]);
    let [(5000, cut)] = measured.power_cuts[..] else {
        panic!("{:?}", measured.power_cuts);
    };
    // The completion that brought the cut made room for one of the 64.
    assert_eq!(cut.lost_requests, 63);
    assert!(cut.recovery_ns > 0);
    assert_eq!(measured.requests, 20_000 - 63);
    assert!(measured.sim_ns > cut.recovery_ns);
    for member in &array.members {
        member.front().ftl.check().unwrap();
    }
}

fn faulty(device: &mut Null, fault: &str) -> (Measured, u64) {
    let mut device = Faulty::new(device, Faults::new(1, &[fault.to_owned()]).unwrap(), 1000);
    let measured = run(&mut device, "uniform:requests=1000", closed(1), &[]);
    let failed = device.failed().map(|(_, count)| count).sum();
    (measured, failed)
}

/// On a device that takes no time: stalls are all the time there is, and what fails is no request of the figures.
#[test]
fn faults_cost_what_they_say() {
    let (stalled, failed) = faulty(&mut Null(Vec::new()), "stall=1us@count=300");
    assert_eq!((stalled.requests, stalled.sim_ns, failed), (1000, 300_000, 0));
    let (failing, failed) = faulty(&mut Null(Vec::new()), "eio@after=200,count=300");
    assert_eq!((failing.requests, failed), (700, 300));
    let (torn, failed) = faulty(&mut Null(Vec::new()), "torn-write");
    assert_eq!((torn.requests, failed), (1000, 0));
    // What the device is spared waits all the same, and all of it is waiting.
    let mut null = Null(Vec::new());
    let faults = ["drop-flush@op=flush", "stall=1us@op=flush"].map(str::to_owned);
    let mut device = Faulty::new(&mut null, Faults::new(1, &faults).unwrap(), 1000);
    let flush = IoRequest {
        op: OpKind::Flush,
        offset: 0,
        length: 0,
        context: &IoContext::NONE,
    };
    device.submit(7, &flush, 100);
    let mut done = Vec::new();
    device.advance(1100, &mut done);
    assert_eq!((done[0].done_ns, done[0].parts.queue_ns), (1100, 1000));
}

/// A fault that never strikes changes no figure of any request.
#[test]
fn a_fault_that_never_strikes_changes_nothing() {
    let config = config(&["ftl.checkpoint=4MiB", "ftl.op_ratio=0.4", "gc.hard=3"]);
    let spec = "uniform:requests=3000,read=0.5";
    let plain = run(&mut drive(&config), spec, closed(16), &[2000]);
    let mut device = drive(&config);
    let mut faulty = Faulty::new(
        &mut device,
        Faults::new(1, &["eio@after=5000".to_owned()]).unwrap(),
        1000,
    );
    let struck = run(&mut faulty, spec, closed(16), &[2000]);
    assert_eq!(struck.sim_ns, plain.sim_ns);
    let rows = |measured: Measured| format!("{:?}", measured.rows.map(RequestRows::table));
    assert_eq!(struck.power_cuts.len(), 1);
    assert_eq!(rows(struck), rows(plain));
}
