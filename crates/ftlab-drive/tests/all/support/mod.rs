//! Shared by the tests of the timed backend: small layouts, timing tables, a log of what happened, a trivial FTL.

pub mod checked;
pub mod doubled;
pub mod reference;
pub mod rules;

use std::sync::{Arc, Mutex};

use ftlab_core::geometry::PlaneOrder;
use ftlab_core::{DeviceGeometry, Geometry, IoRequest, Layout, OpKind, PolicySpec, ReclaimKind, Status};
use ftlab_drive::config::HostLink;
use ftlab_drive::device::Front;
use ftlab_drive::schedule::{self, Phase, Plan};
use ftlab_drive::timed::{Event, Observer, Span, Subject, Timed};
use ftlab_flash::Timing;
use ftlab_ftl::{Backend, Cause, Class, FlashOp, FlashOpKind, HostRequest, Notice, OpId, Ticket};

/// channels, ways, dies, planes; blocks of pages of bytes; units of 4 KiB (or the page, if smaller).
pub fn layout(hierarchy: [u32; 4], blocks: u32, pages: u32, page_bytes: u32) -> Layout {
    let [channels, ways, dies, planes] = hierarchy;
    let geometry = Geometry {
        channels,
        ways,
        dies,
        planes,
        blocks,
        pages,
        page_bytes,
        unit_bytes: page_bytes.min(4096),
        oob_bytes: 64,
    };
    Layout::new(geometry, ReclaimKind::Block, PlaneOrder::parse("CWDP").unwrap()).unwrap()
}

/// Drive-wide index of a page; planes count channels first.
pub fn page(layout: &Layout, plane: u32, block: u32, page: u32) -> u32 {
    (plane * layout.geometry.blocks + block) * layout.geometry.pages + page
}

/// Numbers that show in the results: read 10 + 1000 + bytes·1, program 20 + 5000 + bytes, erase 30 + 20000.
pub fn plain_timing() -> Timing {
    Timing {
        read_ns: vec![1000],
        program_ns: vec![5000],
        erase_ns: 20_000,
        read_command_ns: 10,
        program_command_ns: 20,
        erase_command_ns: 30,
        byte_ps: 1000,
        ecc_ns: 0,
        multi_plane: false,
        suspend_program: false,
        suspend_erase: false,
        suspend_ns: 50,
        resume_ns: 70,
        max_suspends: 2,
    }
}

/// The SLC part of MQSim's validation matrix.
pub fn mqsim_timing() -> Timing {
    Timing {
        read_ns: vec![50_000],
        program_ns: vec![500_000],
        erase_ns: 3_000_000,
        read_command_ns: 290,
        program_command_ns: 361,
        erase_command_ns: 300,
        byte_ps: 3000,
        ecc_ns: 0,
        multi_plane: true,
        suspend_program: false,
        suspend_erase: false,
        suspend_ns: 0,
        resume_ns: 0,
        max_suspends: 0,
    }
}

/// MQSim's PCIe link: 4 GB/s in packets of 128 + 28 bytes; 80 ns of set-up for a read, 68 for a write.
pub fn mqsim_link() -> HostLink {
    HostLink {
        bytes_per_second: Some(4_000_000_000),
        packet_payload_bytes: 128,
        packet_overhead_bytes: 28,
        read_setup_ns: 80,
        write_setup_ns: 68,
        command_ns: 0,
    }
}

pub fn no_link() -> HostLink {
    HostLink {
        bytes_per_second: None,
        packet_payload_bytes: 0,
        packet_overhead_bytes: 0,
        read_setup_ns: 0,
        write_setup_ns: 0,
        command_ns: 0,
    }
}

pub fn plan(policy: &str, timing: &Timing) -> Plan {
    let mut setup = schedule::Setup { timing: timing.clone() };
    schedule::catalogue()
        .build(&PolicySpec::parse(policy).unwrap(), &mut setup)
        .unwrap()
        .plan()
}

pub fn timed(layout: &Layout, timing: &Timing, policy: &str) -> Timed {
    Timed::new(layout, timing, &plan(policy, timing)).unwrap()
}

pub fn read(page: u32, bytes: u32) -> FlashOp {
    FlashOp {
        kind: FlashOpKind::Read,
        class: Class::HostRead,
        cause: Cause::Host,
        page,
        bytes,
        ticket: Ticket::NONE,
        notice: None,
    }
}

pub fn program(page: u32, bytes: u32) -> FlashOp {
    FlashOp {
        kind: FlashOpKind::Program,
        class: Class::HostWrite,
        ..read(page, bytes)
    }
}

pub fn erase(page: u32) -> FlashOp {
    FlashOp {
        kind: FlashOpKind::Erase,
        class: Class::Erase,
        cause: Cause::Gc,
        ..read(page, 0)
    }
}

pub fn noted(op: FlashOp, number: u32) -> FlashOp {
    FlashOp {
        notice: number_notice(number),
        ..op
    }
}

/// A backend takes notices as they are, so any will do to carry a number; 0 is none.
pub fn number_notice(number: u32) -> Option<Notice> {
    (number > 0).then_some(Notice::Won { race: number })
}

/// The number that a notice of [`number_notice`] carries.
pub fn number_of(notice: Notice) -> u32 {
    match notice {
        Notice::Won { race } => race,
        other => panic!("{other:?} carries no number"),
    }
}

/// Runs to the end; completion time of each notice, in order.
pub fn notices(timed: &mut Timed) -> Vec<(u32, u64)> {
    let mut seen = Vec::new();
    while let Some(next) = timed.next_time() {
        if let Some((time, Event::Notice(notice))) = timed.pop(next) {
            seen.push((number_of(notice), time));
        }
    }
    seen
}

/// One report of an observer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Report {
    Channel(u32, Phase, Subject, Span),
    Die(u32, Subject, u32, Span),
    Done(Subject, u64),
}

/// An observer that keeps every report.
#[derive(Clone, Default)]
pub struct Log(pub Arc<Mutex<Vec<Report>>>);

impl Observer for Log {
    fn channel(&mut self, channel: u32, phase: Phase, subject: &Subject, span: Span) {
        self.0
            .lock()
            .unwrap()
            .push(Report::Channel(channel, phase, *subject, span));
    }

    fn die(&mut self, die: u32, subject: &Subject, planes: u32, span: Span) {
        self.0.lock().unwrap().push(Report::Die(die, *subject, planes, span));
    }

    fn done(&mut self, subject: &Subject, now_ns: u64) {
        self.0.lock().unwrap().push(Report::Done(*subject, now_ns));
    }
}

/// A request for `count` units of 4 KiB from number `first` on.
pub fn units(op: OpKind, first: u64, count: u32) -> IoRequest<'static> {
    IoRequest::plain(op, first * 4096, count * 4096)
}

/// An FTL that maps page n of the host to plane n modulo planes, for reads at a fixed place, for writes at the plane's
/// next free page (never collecting).
pub struct Trivial {
    pub timed: Timed,
    pub layout: Layout,
    /// Next page to program on each plane.
    cursors: Vec<u32>,
}

impl Trivial {
    pub fn new(timed: Timed, layout: &Layout) -> Self {
        Trivial {
            timed,
            cursors: vec![0; layout.geometry.total_planes() as usize],
            layout: layout.clone(),
        }
    }

    pub fn logical_units(&self) -> u64 {
        self.layout.geometry.raw_units()
    }
}

impl Front for Trivial {
    type Backend = Timed;

    fn backend(&mut self) -> &mut Timed {
        &mut self.timed
    }

    fn geometry(&self) -> DeviceGeometry {
        let unit_bytes = self.layout.geometry.unit_bytes;
        DeviceGeometry {
            capacity_bytes: self.logical_units() * u64::from(unit_bytes),
            unit_bytes,
        }
    }

    fn admit(&mut self, request: &HostRequest<'_>, ticket: Ticket) -> Status {
        let g = self.layout.geometry.clone();
        let (planes, per_page) = (g.total_planes(), g.units_per_page());
        let mut unit = request.first.0;
        let end = unit + request.units;
        while unit < end {
            let logical = unit / per_page;
            let units = (end - unit).min(per_page - unit % per_page);
            let plane = logical % planes;
            let mut op = match request.op {
                OpKind::Read => {
                    let place = logical / planes;
                    read(page(&self.layout, plane, place / g.pages, place % g.pages), 0)
                }
                _ => {
                    let place = self.cursors[plane as usize];
                    self.cursors[plane as usize] += 1;
                    program(page(&self.layout, plane, place / g.pages, place % g.pages), 0)
                }
            };
            op.bytes = units * g.unit_bytes;
            op.ticket = ticket;
            self.timed.issue(op, &[] as &[OpId]);
            unit += units;
        }
        self.timed.seal(ticket);
        Status::Done
    }

    fn notice(&mut self, _: Notice) {}
}
