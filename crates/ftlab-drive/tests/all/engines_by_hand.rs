//! Works of the controller's engines on the timed backend, to the nanosecond, derived by hand.

use crate::support::*;
use ftlab_core::Breakdown;
use ftlab_core::{IoContext, Lpn, OpKind, PolicySpec};
use ftlab_drive::timed::{Event, TicketInfo, Timed};
use ftlab_ftl::dedup::{Decision, DedupPolicy, DedupWrite, Event as Told, Work};
use ftlab_ftl::indirection::Of;
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Backend, HostRequest, Now, Overrides, Ticket};
use ftlab_testkit::Case;

fn open(timed: &mut Timed) -> Ticket {
    let since_ns = timed.now_ns();
    timed.open(TicketInfo {
        since_ns,
        ..TicketInfo::default()
    })
}

/// Times and parts of the latencies of all tickets, in order of completion.
fn run(timed: &mut Timed) -> Vec<(u32, u64, Breakdown)> {
    let mut done = Vec::new();
    while let Some(next) = timed.next_time() {
        if let Some((time, Event::TicketDone(ticket))) = timed.pop(next) {
            done.push((ticket.0, time, timed.take(ticket).parts));
        }
    }
    done
}

/// Two works of engine 0 follow each other, one of engine 1 runs beside them: 700, 700 + 300, 400.
#[test]
fn an_engine_does_one_work_at_a_time() {
    let layout = layout([1, 1, 1, 1], 4, 8, 512);
    let mut timed = timed(&layout, &plain_timing(), "out_of_order");
    for (engine, ns) in [(0, 700), (0, 300), (1, 400)] {
        let ticket = open(&mut timed);
        timed.compute(engine, ns, &[], ticket);
        timed.seal(ticket);
    }
    let parts = |queue_ns, transfer_ns| Breakdown {
        queue_ns,
        transfer_ns,
        ..Breakdown::default()
    };
    assert_eq!(
        run(&mut timed),
        [
            (2, 400, parts(0, 400)),
            (0, 700, parts(0, 700)),
            (1, 1000, parts(700, 300))
        ]
    );
}

/// A work that waits for a read lets one that does not go first: the read takes 10 + 1000 + 512.
#[test]
fn a_work_begins_when_it_can() {
    let layout = layout([1, 1, 1, 1], 4, 8, 512);
    let mut timed = timed(&layout, &plain_timing(), "out_of_order");
    let (late, soon) = (open(&mut timed), open(&mut timed));
    let read = timed.issue(read(page(&layout, 0, 0, 0), 512), &[]);
    timed.compute(0, 100, &[read], late);
    timed.compute(0, 2000, &[], soon);
    timed.seal(late);
    timed.seal(soon);
    let times: Vec<(u32, u64)> = run(&mut timed)
        .into_iter()
        .map(|(ticket, time, _)| (ticket, time))
        .collect();
    assert_eq!(times, [(soon.0, 2000), (late.0, 2100)]);
}

/// Hashes for 12 us and knows one content.
#[derive(Default)]
struct Hashing {
    known: Option<(u64, Of)>,
    asked: u64,
}

impl DedupPolicy for Hashing {
    fn write(&mut self, write: &DedupWrite<'_>, works: &mut Vec<Work>) -> Decision {
        self.asked = write.content;
        works.push(Work::new(0, 12_000));
        match self.known {
            Some((content, of)) if content == write.content => Decision::Share(of),
            _ => Decision::Store,
        }
    }

    fn on(&mut self, event: Told, _: Now) {
        if let Told::Stored { of, .. } = event {
            self.known = Some((self.asked, of));
        }
    }
}

/// A new unit is hashed and programmed: 12,000 + 20 + 512 + 5000. When it is in flash a unit of the same content is hashed only.
#[test]
fn a_program_waits_for_its_hash_and_a_hit_for_nothing_else() {
    let case = Case::plain(20, 8, 1);
    let given = Overrides {
        roles: Some(Roles::given(Some(Box::new(Hashing::default())), None)),
        ..Overrides::default()
    };
    let backend = timed(&case.layout, &plain_timing(), "out_of_order");
    let mut ftl = case.build(given).unwrap().with_backend(backend);
    let mut write = |lpn| {
        let context = IoContext {
            contents: &[5],
            content_bytes: 512,
            ..IoContext::NONE
        };
        let request = HostRequest {
            context: &context,
            ..HostRequest::whole(OpKind::Write, Lpn(lpn), 1)
        };
        let ticket = open(&mut ftl.backend);
        ftl.admit(&request, ticket);
        ftl.backend.seal(ticket);
        run(&mut ftl.backend)[0].2
    };
    let stored = Breakdown {
        transfer_ns: 12_000 + 20 + 512,
        flash_ns: 5000,
        ..Breakdown::default()
    };
    let shared = Breakdown {
        transfer_ns: 12_000,
        ..Breakdown::default()
    };
    assert_eq!((write(0), write(1)), (stored, shared));
}

/// Four units on four lanes, one engine, of a request whose sample is its second unit. Whether the others are hashed is known with the
/// sample's fingerprint, and a fingerprint is computed when the CRC asks for it; a page on an idle die then takes 20 + 512 + 5000.
#[test]
fn units_wait_for_the_sample_of_their_request() {
    const PROGRAM_NS: u64 = 20 + 512 + 5000;
    for (crc, first_ns, again_ns) in [
        // The second time the sample is found, and the other three are hashed one after the other.
        ("crc=false", 12_000, 4 * 12_000),
        // The first CRC says that nothing is the same. The second time it leads to the sample's fingerprint; then come three CRCs.
        ("crc=true", 1000, 1000 + 12_000 + 3 * 1000),
    ] {
        let mut case = Case::plain_lanes(4, 20, 8, 1);
        let spec = format!("caftl:entries=0,out_of_line=false,switch=false,{crc}");
        case.config.dedup = PolicySpec::parse(&spec).expect("a spec of the test's own");
        case.config.allocation = PolicySpec::named("CWDP");
        let backend = timed(&case.layout, &plain_timing(), "out_of_order");
        let mut ftl = case.build(Overrides::default()).unwrap().with_backend(backend);
        for (lpn, ready_ns) in [(0, first_ns), (8, again_ns)] {
            let context = IoContext {
                contents: &[1, 9, 2, 3],
                content_bytes: 512,
                ..IoContext::NONE
            };
            let request = HostRequest {
                context: &context,
                ..HostRequest::whole(OpKind::Write, Lpn(lpn), 4)
            };
            let began_ns = ftl.backend.now_ns();
            let ticket = open(&mut ftl.backend);
            ftl.admit(&request, ticket);
            ftl.backend.seal(ticket);
            let took_ns = run(&mut ftl.backend)[0].1 - began_ns;
            assert_eq!(took_ns, ready_ns + PROGRAM_NS, "{crc}, LPN {lpn}");
        }
    }
}

/// Requests of one to five units on as many lanes, and two engines or three: each fingerprint goes to the next engine, so that the last
/// one is known after the units over the engines, rounded up. What is new is programmed then, what is known is done.
#[test]
fn engines_hash_side_by_side() {
    const PROGRAM_NS: u64 = 20 + 512 + 5000;
    for policy in ["page_dedup", "ca_ssd", "pcdedup"] {
        for engines in [1, 2, 3] {
            for units in 1..=5u32 {
                let mut case = Case::plain_lanes(5, 20, 8, 1);
                let spec = format!("{policy}:entries=0,hash_us=12,hash_units={engines}");
                case.config.dedup = PolicySpec::parse(&spec).expect("a spec of the test's own");
                case.config.allocation = PolicySpec::named("CWDP");
                let backend = timed(&case.layout, &plain_timing(), "out_of_order");
                let mut ftl = case.build(Overrides::default()).unwrap().with_backend(backend);
                let contents: Vec<u64> = (1..=u64::from(units)).collect();
                for (lpn, program_ns) in [(0, PROGRAM_NS), (8, 0)] {
                    let context = IoContext {
                        contents: &contents,
                        content_bytes: 512,
                        ..IoContext::NONE
                    };
                    let request = HostRequest {
                        context: &context,
                        ..HostRequest::whole(OpKind::Write, Lpn(lpn), units)
                    };
                    let began_ns = ftl.backend.now_ns();
                    let ticket = open(&mut ftl.backend);
                    ftl.admit(&request, ticket);
                    ftl.backend.seal(ticket);
                    let took_ns = run(&mut ftl.backend)[0].1 - began_ns;
                    let hashed_ns = 12_000 * u64::from(units.div_ceil(engines));
                    assert_eq!(took_ns, hashed_ns + program_ns, "{spec}, {units} units at LPN {lpn}");
                }
            }
        }
    }
}
