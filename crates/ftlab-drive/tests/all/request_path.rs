//! What a host says of a request arrives whole: through the command server, the host link and the write buffer.

use std::sync::{Arc, Mutex};

use crate::support::*;
use ftlab_core::geometry::PlaneOrder;
use ftlab_core::request::together;
use ftlab_core::{
    BlockDevice, Completion, Geometry, IoContext, IoRequest, Layout, Lpn, OpKind, PolicySpec, ReclaimKind, flags,
};
use ftlab_drive::config::HostLink;
use ftlab_drive::device::Device;
use ftlab_drive::front::FtlFront;
use ftlab_drive::timed::Timed;
use ftlab_ftl::dedup::{Decision, DedupPolicy, DedupWrite, Work};
use ftlab_ftl::parts::NOTHING;
use ftlab_ftl::placement::{HostWrite, PlacementPolicy};
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Overrides, WriteContext};
use ftlab_testkit::Case;

const KIB: u64 = 1024;

/// One lane of blocks of pages of one unit each.
fn case(unit_bytes: u32) -> Case {
    let mut case = Case::plain(16, 16, 1);
    let geometry = Geometry {
        page_bytes: unit_bytes,
        unit_bytes,
        ..case.layout.geometry
    };
    case.layout = Layout::new(geometry, ReclaimKind::Block, PlaneOrder::parse("CWDP").unwrap()).unwrap();
    case
}

/// A host link and a controller that both take time, so that a request waits twice before the FTL has it.
fn slow_link() -> HostLink {
    HostLink {
        command_ns: 500,
        ..mqsim_link()
    }
}

fn device(case: &Case, given: Overrides) -> Device<FtlFront<Timed>> {
    let timing = mqsim_timing();
    let backend = timed(&case.layout, &timing, "read_first");
    let ftl = case.build(given).unwrap().with_backend(backend);
    Device::new(FtlFront { ftl, timing }, &slow_link())
}

/// Runs until nothing is under way.
fn settle(device: &mut Device<FtlFront<Timed>>) -> u64 {
    let (mut now, mut out) = (0, Vec::<Completion>::new());
    while let Some(wakeup) = device.next_wakeup() {
        device.advance(wakeup, &mut out);
        now = wakeup;
    }
    now
}

/// Stores everything as it comes and keeps what it was asked about.
struct Contents(Arc<Mutex<Vec<(Lpn, u64)>>>);

impl DedupPolicy for Contents {
    fn write(&mut self, write: &DedupWrite<'_>, _: &mut Vec<Work>) -> Decision {
        self.0.lock().unwrap().push((write.lpn, write.content));
        Decision::Store
    }
}

/// What deduplication is asked after one write of contents of 4 KiB each, from a byte on.
fn asked(unit_bytes: u32, offset: u64, contents: &[u64]) -> Vec<(Lpn, u64)> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let given = Overrides {
        roles: Some(Roles::given(Some(Box::new(Contents(asked.clone()))), None)),
        ..Overrides::default()
    };
    let mut device = device(&case(unit_bytes), given);
    let context = IoContext {
        contents,
        ..IoContext::NONE
    };
    let io = IoRequest {
        op: OpKind::Write,
        offset,
        length: contents.len() as u32 * 4096,
        context: &context,
    };
    device.submit(0, &io, 0);
    // The next request takes its place while it is on its way.
    device.submit(1, &IoRequest::plain(OpKind::Read, 0, 4096), 0);
    settle(&mut device);
    let asked = asked.lock().unwrap();
    asked.clone()
}

/// A unit of 8 or 16 KiB is a content only if all of its pieces are, in their order, wherever they stand in the request.
#[test]
fn contents_of_a_request_reach_deduplication_unit_by_unit() {
    for unit in [8 * KIB, 16 * KIB] {
        let pieces = unit / (4 * KIB);
        let of = |number: u64| (0..pieces).map(|piece| 100 * number + piece).collect::<Vec<u64>>();
        let ask = |offset: u64, contents: &[u64]| asked(unit as u32, offset, contents);
        let [(Lpn(0), one), (Lpn(1), two)] = ask(0, &[of(1), of(2)].concat())[..] else {
            panic!("not asked about both units");
        };
        assert_ne!(one, two);
        assert_eq!(
            ask(4 * unit, &[of(2), of(1)].concat()),
            [(Lpn(4), two), (Lpn(5), one)],
            "a content does not depend on its place"
        );
        let mut other = of(1);
        other[1] = 8888;
        let [(Lpn(0), other)] = ask(0, &other)[..] else {
            panic!("not asked about the unit");
        };
        assert!(other != one && other != two, "only the first piece is the same");
        // What begins within a unit covers the first of them in part; the rest of that one holds nothing.
        let shifted = [vec![4444], of(2), of(1)].concat();
        let mut first = vec![NOTHING; pieces as usize];
        first[pieces as usize - 1] = 4444;
        let first = together(&first).unwrap();
        assert_eq!(
            ask(5 * unit - 4096, &shifted),
            [(Lpn(4), first), (Lpn(5), two), (Lpn(6), one)]
        );
    }
}

/// Sends everything to one frontier and keeps what it was told.
struct Recorder(Arc<Mutex<Vec<(Lpn, WriteContext)>>>);

impl PlacementPolicy for Recorder {
    fn host_frontiers(&self) -> ftlab_ftl::Frontier {
        1
    }

    fn host(&mut self, write: &HostWrite<'_>) -> ftlab_ftl::Frontier {
        self.0.lock().unwrap().push((write.lpn, *write.context));
        0
    }
}

#[test]
fn placement_behind_a_write_back_buffer_knows_all_that_the_host_said() {
    let mut case = case(4096);
    case.config.buffer.policy = PolicySpec::named("write_back");
    case.config.buffer.capacity_units = 8;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let given = Overrides {
        placement: Some(Box::new(Recorder(seen.clone()))),
        ..Overrides::default()
    };
    let mut device = device(&case, given);
    // Three requests of two units each, and what a flush brings out of the buffer.
    for number in 0..3u16 {
        let context = IoContext {
            flags: if number == 1 { flags::METADATA } else { flags::SYNC },
            stream: 20 + number,
            pc: 0x1234_5678_9abc_0000 + u64::from(number),
            pid: Some(4000 + u32::from(number)),
            label: (number > 0).then_some(number),
            ..IoContext::NONE
        };
        let io = IoRequest {
            op: OpKind::Write,
            offset: u64::from(number) * 4 * 4096,
            length: 2 * 4096,
            context: &context,
        };
        device.submit(u64::from(number), &io, 0);
    }
    let now = settle(&mut device);
    device.submit(9, &IoRequest::plain(OpKind::Flush, 0, 0), now);
    settle(&mut device);
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_by_key(|&(lpn, _)| lpn.0);
    let lpns: Vec<u32> = seen.iter().map(|&(lpn, _)| lpn.0).collect();
    assert_eq!(lpns, [0, 1, 4, 5, 8, 9]);
    for (lpn, context) in seen {
        let number = (lpn.0 / 4) as u16;
        assert_eq!(context.flags, if number == 1 { flags::METADATA } else { flags::SYNC });
        assert_eq!(context.stream, 20 + number);
        assert_eq!(context.pc, 0x1234_5678_9abc_0000 + u64::from(number));
        assert_eq!(context.pid, Some(4000 + u32::from(number)));
        assert_eq!(context.label, (number > 0).then_some(number));
        assert_eq!(
            (context.request_first, context.request_units),
            (Lpn(4 * u32::from(number)), 2)
        );
        assert_eq!(context.begins_with(lpn), lpn.0.is_multiple_of(4));
    }
}
