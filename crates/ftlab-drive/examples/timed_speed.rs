//! How fast the timed backend runs: random 4 KiB reads, and overwrites with a made-up collector, at queue depth 32 on
//! 8 channels × 4 dies, through the whole device.
//!
//! `cargo run --release -p ftlab-drive --example timed_speed [reads|overwrites]`. Prints requests and events per second and a hash of all
//! latencies, which must not change when only speed does.

use std::time::Instant;

use ftlab_core::geometry::PlaneOrder;
use ftlab_core::{
    BlockDevice, DeviceGeometry, Geometry, IoRequest, Layout, OpKind, PolicySpec, ReclaimKind, Status, Stream,
};
use ftlab_drive::config::HostLink;
use ftlab_drive::device::{Device, Front};
use ftlab_drive::schedule;
use ftlab_drive::timed::Timed;
use ftlab_flash::Timing;
use ftlab_ftl::{Backend, Cause, Class, FlashOp, FlashOpKind, HostRequest, Notice, OpId, Ticket};

fn main() {
    let only = std::env::args().nth(1);
    for link in [false, true] {
        for (name, op) in [("reads", OpKind::Read), ("overwrites, 3 copies each", OpKind::Write)] {
            if only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
                continue;
            }
            let mut device = device(link);
            let mut draw = Stream::new(1, "speed");
            let requests = if op == OpKind::Read { 6_000_000u64 } else { 2_000_000 };
            let (mut submitted, mut hash) = (0u64, 0u64);
            let mut completions = Vec::new();
            let started = Instant::now();
            while submitted < 32 {
                device.submit(submitted, &page(op, draw.below(1 << 22)), 0);
                submitted += 1;
            }
            let mut done = 0;
            while done < requests {
                device.advance_to_completion(None, &mut completions);
                for c in completions.drain(..) {
                    hash = (hash ^ (c.done_ns - c.submitted_ns)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    done += 1;
                    device.submit(submitted, &page(op, draw.below(1 << 22)), c.done_ns);
                    submitted += 1;
                }
            }
            let seconds = started.elapsed().as_secs_f64();
            let events = device.front().timed.stats().events as f64;
            println!(
                "{name}, host link {link}: {:.2} M requests/s, {:.1} events each, {:.1} M events/s, hash {hash:016x}",
                done as f64 / seconds / 1e6,
                events / done as f64,
                events / seconds / 1e6,
            );
        }
    }
}

fn page(op: OpKind, number: u64) -> IoRequest<'static> {
    IoRequest::plain(op, number * 4096, 4096)
}

/// Page n lies at plane n modulo planes; a write also copies three pages within its plane, and erases full blocks.
struct Made {
    timed: Timed,
    layout: Layout,
    cursors: Vec<u32>,
}

impl Made {
    fn page(&self, plane: u32, place: u32) -> u32 {
        plane * self.layout.geometry.blocks * self.layout.geometry.pages + place
    }

    fn write(&mut self, plane: u32, class: Class, cause: Cause, ticket: Ticket, after: &[OpId]) {
        let g = &self.layout.geometry;
        let place = self.cursors[plane as usize];
        self.cursors[plane as usize] = (place + 1) % (g.blocks * g.pages);
        let mut op = FlashOp {
            kind: FlashOpKind::Erase,
            class: Class::Erase,
            cause: Cause::Gc,
            page: self.page(plane, place),
            bytes: 0,
            ticket: Ticket::NONE,
            notice: None,
        };
        if place.is_multiple_of(g.pages) {
            self.timed.issue(op, &[]);
        }
        op = FlashOp {
            kind: FlashOpKind::Program,
            class,
            cause,
            bytes: 4096,
            ticket,
            ..op
        };
        self.timed.issue(op, after);
    }
}

impl Front for Made {
    type Backend = Timed;

    fn backend(&mut self) -> &mut Timed {
        &mut self.timed
    }

    fn geometry(&self) -> DeviceGeometry {
        DeviceGeometry {
            capacity_bytes: self.layout.geometry.raw_units() * 4096,
            unit_bytes: 4096,
        }
    }

    fn admit(&mut self, request: &HostRequest<'_>, ticket: Ticket) -> Status {
        let planes = self.layout.geometry.total_planes();
        let (place, plane) = (request.first.0 / planes, request.first.0 % planes);
        let mut op = FlashOp {
            kind: FlashOpKind::Read,
            class: Class::HostRead,
            cause: Cause::Host,
            page: self.page(plane, place),
            bytes: 4096,
            ticket,
            notice: None,
        };
        if request.op == OpKind::Read {
            self.timed.issue(op, &[]);
        } else {
            op.class = Class::Gc;
            op.cause = Cause::Gc;
            op.ticket = Ticket::NONE;
            let pages = self.layout.geometry.blocks * self.layout.geometry.pages;
            for copy in 0..3 {
                let from = (self.cursors[plane as usize] + pages / 2 + copy) % pages;
                op.page = self.page(plane, from);
                let source = self.timed.issue(op, &[]);
                self.write(plane, Class::Gc, Cause::Gc, Ticket::NONE, &[source]);
            }
            self.write(plane, Class::HostWrite, Cause::Host, ticket, &[]);
        }
        self.timed.seal(ticket);
        Status::Done
    }

    fn notice(&mut self, _: Notice) {}
}

fn device(link: bool) -> Device<Made> {
    let geometry = Geometry {
        channels: 8,
        ways: 4,
        dies: 1,
        planes: 1,
        blocks: 512,
        pages: 256,
        page_bytes: 4096,
        unit_bytes: 4096,
        oob_bytes: 64,
    };
    let order = PlaneOrder::parse("CWDP").expect("a permutation");
    let layout = Layout::new(geometry, ReclaimKind::Block, order).expect("a legal geometry");
    let timing = Timing {
        read_ns: vec![50_000],
        program_ns: vec![500_000],
        erase_ns: 3_000_000,
        read_command_ns: 290,
        program_command_ns: 361,
        erase_command_ns: 300,
        byte_ps: 3000,
        ecc_ns: 0,
        multi_plane: false,
        suspend_program: false,
        suspend_erase: false,
        suspend_ns: 0,
        resume_ns: 0,
        max_suspends: 0,
    };
    let mut setup = schedule::Setup { timing: timing.clone() };
    let plan = schedule::catalogue()
        .build(&PolicySpec::named("out_of_order"), &mut setup)
        .expect("a member")
        .plan();
    let timed = Timed::new(&layout, &timing, &plan).expect("a legal drive");
    let cursors = vec![0; layout.geometry.total_planes() as usize];
    let host = HostLink {
        bytes_per_second: link.then_some(4_000_000_000),
        packet_payload_bytes: 128,
        packet_overhead_bytes: 28,
        read_setup_ns: if link { 80 } else { 0 },
        write_setup_ns: if link { 68 } else { 0 },
        command_ns: 0,
    };
    Device::new(Made { timed, layout, cursors }, &host)
}
