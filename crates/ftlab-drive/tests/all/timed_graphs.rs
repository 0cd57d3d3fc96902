//! Random operation graphs: the timed backend equals a naive model to the nanosecond, and breaks no rule of the flash.

use crate::support::reference::{Item, Reference, cause_of};
use crate::support::*;
use ftlab_core::Layout;
use ftlab_drive::timed::{Event, TicketInfo, Timed};
use ftlab_flash::Timing;
use ftlab_ftl::{Backend, Class, FlashOp, FlashOpKind, Need, OpId, Ticket};
use proptest::prelude::*;

/// What to do next; interpreted so that every graph is one that an FTL may issue.
#[derive(Clone, Debug)]
struct Step {
    gap_ns: u64,
    what: What,
    plane: u32,
    block: u32,
    page: u32,
    class: usize,
    /// Distances back to what it depends on.
    after: Vec<usize>,
    bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Read,
    Program,
    Erase,
    JoinAll,
    JoinFirst,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let what = prop_oneof![
        8 => Just(What::Read),
        6 => Just(What::Program),
        1 => Just(What::Erase),
        1 => Just(What::JoinAll),
        1 => Just(What::JoinFirst),
    ];
    let gap = prop_oneof![4 => Just(0u64), 3 => 1..300u64, 1 => 1000..20_000u64];
    let step = (
        gap,
        what,
        0..64u32,
        0..3u32,
        0..4u32,
        0..3usize,
        proptest::collection::vec(1..12usize, 0..3),
        1..200u32,
    )
        .prop_map(|(gap_ns, what, plane, block, page, class, after, bytes)| Step {
            gap_ns,
            what,
            plane,
            block,
            page,
            class,
            after,
            bytes,
        });
    proptest::collection::vec(step, 1..120)
}

fn hierarchies() -> impl Strategy<Value = [u32; 4]> {
    prop_oneof![
        Just([1, 1, 1, 1]),
        Just([1, 2, 1, 2]),
        Just([2, 2, 2, 1]),
        Just([1, 2, 2, 2]),
        Just([2, 1, 1, 4]),
    ]
}

/// Small numbers, so that equal times are common.
fn timings() -> impl Strategy<Value = Timing> {
    let times = (
        proptest::collection::vec((1..60u64, 1..400u64), 1..4),
        100..2000u64,
        1..9u64,
        1..9u64,
        1..9u64,
    );
    let switches = (any::<[bool; 3]>(), 0..20u64, 0..20u64, 0..4u32, 0..3u64, 100..1500u64);
    (times, switches).prop_map(
        |((types, erase_ns, read, program, erase), (on, suspend_ns, resume_ns, max_suspends, ecc_ns, byte_ps))| {
            Timing {
                read_ns: types.iter().map(|t| t.0).collect(),
                program_ns: types.iter().map(|t| t.1).collect(),
                erase_ns,
                read_command_ns: read,
                program_command_ns: program,
                erase_command_ns: erase,
                byte_ps,
                ecc_ns,
                multi_plane: on[0],
                suspend_program: on[1],
                suspend_erase: on[2],
                suspend_ns: suspend_ns + 1,
                resume_ns: resume_ns + 1,
                max_suspends,
            }
        },
    )
}

fn policies() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("fcfs"),
        Just("read_first"),
        Just("out_of_order:gc_after=2"),
        Just("out_of_order:gc_after=0"),
        Just("lockstep"),
    ]
}

const PAGES: u32 = 4;

/// (time, item) for each step, in order of issue.
fn graph(layout: &Layout, steps: &[Step]) -> Vec<(u64, Item)> {
    let planes = layout.geometry.total_planes();
    let blocks = layout.geometry.blocks;
    // Pages programmed since the last erase. Even blocks are full at first, odd ones erased.
    let mut filled: Vec<u32> = (0..planes * blocks)
        .map(|b| if b % 2 == 0 { PAGES } else { 0 })
        .collect();
    let mut now = 0;
    let mut items = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        now += step.gap_ns;
        let mut after: Vec<usize> = step.after.iter().filter_map(|back| number.checked_sub(*back)).collect();
        after.sort_unstable();
        after.dedup();
        let plane = step.plane % planes;
        let fill = &mut filled[(plane * blocks + step.block) as usize];
        let what = match step.what {
            What::Program if *fill == PAGES => What::Erase,
            What::Read if *fill == 0 => What::Program,
            what => what,
        };
        let place = |number| page(layout, plane, step.block, number);
        let item = match what {
            What::JoinAll => Item::JoinAll { after },
            What::JoinFirst => Item::JoinFirst { after },
            What::Read => {
                let class = [Class::HostRead, Class::Mapping, Class::Gc][step.class];
                let op = FlashOp {
                    class,
                    cause: cause_of(class),
                    ..read(place(step.page % *fill), step.bytes)
                };
                Item::Op { op, after }
            }
            What::Program => {
                let class = [Class::HostWrite, Class::Mapping, Class::Gc][step.class];
                let op = FlashOp {
                    class,
                    cause: cause_of(class),
                    ..program(place(*fill), step.bytes)
                };
                *fill += 1;
                Item::Op { op, after }
            }
            What::Erase => {
                *fill = 0;
                Item::Op {
                    op: erase(place(0)),
                    after,
                }
            }
        };
        items.push((now, item));
    }
    items
}

/// Runs the graph on the backend; ids and completion times in order of issue.
fn run(timed: &mut Timed, graph: &[(u64, Item)]) -> (Vec<OpId>, Vec<Option<u64>>) {
    let mut ids: Vec<OpId> = Vec::new();
    let mut done = vec![None; graph.len()];
    let mut open: Option<(u64, Ticket, u32)> = None;
    let mut hear = |timed: &mut Timed, until| {
        while let Some((time, event)) = timed.pop(until) {
            match event {
                Event::Notice(notice) => {
                    let key = number_of(notice);
                    assert_eq!(
                        done[key as usize - 1].replace(time),
                        None,
                        "item {} completed twice",
                        key - 1
                    );
                }
                Event::TicketDone(ticket) => {
                    let end = timed.take(ticket);
                    assert_eq!(
                        end.parts.total_ns(),
                        time - end.submitted_ns,
                        "the parts sum to the latency"
                    );
                }
            }
        }
    };
    for (number, (time, item)) in graph.iter().enumerate() {
        hear(timed, *time);
        let after: Vec<OpId> = item.after().iter().map(|&i| ids[i]).collect();
        let notice = number_notice(number as u32 + 1);
        // A ticket spans up to three things issued at one instant; every fourth thing has none.
        let since_ns = timed.now_ns();
        let fresh = !matches!(open, Some((since, _, left)) if since == since_ns && left > 0);
        if fresh {
            if let Some((_, ticket, _)) = open.take() {
                timed.seal(ticket);
            }
            let info = TicketInfo {
                since_ns,
                ..TicketInfo::default()
            };
            open = Some((since_ns, timed.open(info), 3));
        }
        let ticket = match &mut open {
            Some((_, ticket, left)) if number % 4 != 0 => {
                *left -= 1;
                *ticket
            }
            _ => Ticket::NONE,
        };
        ids.push(match item {
            Item::Op { op, .. } => timed.issue(FlashOp { notice, ticket, ..*op }, &after),
            Item::JoinAll { .. } => timed.join(&after, Need::All, ticket, notice),
            Item::JoinFirst { .. } => timed.join(&after, Need::First, ticket, notice),
        });
    }
    if let Some((_, ticket, _)) = open {
        timed.seal(ticket);
    }
    while let Some(next) = timed.next_time() {
        hear(timed, next);
    }
    (ids, done)
}

/// Replays the log against the rules: one user of a channel and of a die at a time, order in blocks, dependencies.
fn check_legal(layout: &Layout, graph: &[(u64, Item)], ids: &[OpId], done: &[Option<u64>], log: &[Report]) {
    let number_of = |id: OpId| ids.iter().position(|&i| i == id).expect("an issued operation");
    let mut started = vec![None; graph.len()];
    let g = &layout.geometry;
    let mut channel_free = vec![0u64; g.channels as usize];
    let mut die_spans = vec![Vec::new(); g.total_dies() as usize];
    for report in log {
        match report {
            Report::Channel(channel, _, subject, span) => {
                assert!(
                    span.start_ns >= channel_free[*channel as usize],
                    "{subject:?} takes channel {channel} at {} before it is free",
                    span.start_ns
                );
                channel_free[*channel as usize] = span.end_ns;
                let at = layout.address(subject.page);
                assert_eq!(at.plane % g.channels, *channel);
                started[number_of(subject.id)].get_or_insert(span.start_ns);
            }
            Report::Die(die, subject, planes, span) => {
                assert_eq!(layout.die_of_plane(layout.address(subject.page).plane), *die);
                assert!(*planes >= 1 && *planes <= g.planes);
                die_spans[*die as usize].push((span.start_ns, span.end_ns));
            }
            Report::Done(subject, now) => assert_eq!(done[number_of(subject.id)], Some(*now)),
        }
    }
    for spans in &mut die_spans {
        spans.sort_unstable();
        assert!(
            spans.windows(2).all(|w| w[0].1 <= w[1].0),
            "overlap on a die: {spans:?}"
        );
    }
    let block_of = |op: &FlashOp| {
        let at = layout.address(op.page);
        (at.plane, at.block)
    };
    for (i, (_, item)) in graph.iter().enumerate() {
        let Item::Op { op, after } = item else { continue };
        let Some(start) = started[i] else {
            assert_eq!(
                op.kind,
                FlashOpKind::Read,
                "only a read may be served without the flash"
            );
            continue;
        };
        for &dependency in after {
            assert!(
                done[dependency].unwrap() <= start,
                "{i} started before {dependency} was done"
            );
        }
        for (j, (_, earlier)) in graph[..i].iter().enumerate() {
            let Item::Op { op: earlier, .. } = earlier else {
                continue;
            };
            if block_of(earlier) != block_of(op) || started[j].is_none() {
                continue;
            }
            let ordered = match op.kind {
                FlashOpKind::Read => false,
                FlashOpKind::Program => earlier.kind != FlashOpKind::Read,
                FlashOpKind::Erase => true,
            };
            assert!(
                !ordered || done[j].unwrap() <= start,
                "{i} started before {j} of its block was done"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn random_graphs_equal_the_naive_model_and_are_legal(
        steps in steps(),
        hierarchy in hierarchies(),
        timing in timings(),
        policy in policies(),
    ) {
        let layout = layout(hierarchy, 3, PAGES, 4096);
        let graph = graph(&layout, &steps);
        let mut reference = Reference::new(&layout, &timing, &plan(policy, &timing));
        for (time, item) in &graph {
            reference.run_until(*time);
            reference.issue(item.clone());
        }
        reference.run();
        let mut timed = timed(&layout, &timing, policy);
        let log = Log::default();
        timed.observe(Some(Box::new(log.clone()))).unwrap();
        let (ids, done) = run(&mut timed, &graph);
        prop_assert!(done.iter().all(Option::is_some), "something never completed: {done:?}");
        let log = log.0.lock().unwrap();
        check_legal(&layout, &graph, &ids, &done, &log);
        prop_assert_eq!(done, reference.completions());
    }

    #[test]
    fn doubling_every_time_doubles_every_completion(steps in steps(), timing in timings(), policy in policies()) {
        let layout = layout([2, 2, 2, 2], 3, PAGES, 4096);
        // Whole nanoseconds per byte, so that rounding does not break the scale.
        let timing = Timing { byte_ps: 1000, ..timing };
        let double = |times: &[u64]| times.iter().map(|t| 2 * t).collect::<Vec<_>>();
        let slow = Timing {
            read_ns: double(&timing.read_ns),
            program_ns: double(&timing.program_ns),
            erase_ns: 2 * timing.erase_ns,
            read_command_ns: 2 * timing.read_command_ns,
            program_command_ns: 2 * timing.program_command_ns,
            erase_command_ns: 2 * timing.erase_command_ns,
            byte_ps: 2 * timing.byte_ps,
            ecc_ns: 2 * timing.ecc_ns,
            suspend_ns: 2 * timing.suspend_ns,
            resume_ns: 2 * timing.resume_ns,
            ..timing.clone()
        };
        let graph = graph(&layout, &steps);
        let slow_graph: Vec<_> = graph.iter().map(|(time, item)| (2 * time, item.clone())).collect();
        let (_, done) = run(&mut timed(&layout, &timing, policy), &graph);
        let (_, slow_done) = run(&mut timed(&layout, &slow, policy), &slow_graph);
        let doubled: Vec<_> = done.iter().map(|time| time.map(|t| 2 * t)).collect();
        prop_assert_eq!(doubled, slow_done);
    }

    #[test]
    fn cancelling_leaves_nothing_behind(
        steps in steps(),
        cancels in proptest::collection::vec((0..120usize, 0..120usize), 0..20),
        timing in timings(),
        policy in policies(),
    ) {
        let layout = layout([2, 2, 1, 2], 3, PAGES, 4096);
        let graph = graph(&layout, &steps);
        let mut timed = timed(&layout, &timing, policy);
        let ticket = timed.open(TicketInfo::default());
        let mut ids: Vec<OpId> = Vec::new();
        let mut notices = Vec::new();
        let mut cancelled = Vec::new();
        let mut ticket_done = false;
        let mut hear = |timed: &mut Timed, until| {
            while let Some((_, event)) = timed.pop(until) {
                match event {
                    Event::Notice(key) => notices.push(number_of(key) as usize - 1),
                    Event::TicketDone(ticket) => {
                        timed.take(ticket);
                        ticket_done = true;
                    }
                }
            }
        };
        for (number, (time, item)) in graph.iter().enumerate() {
            hear(&mut timed, *time);
            let after: Vec<OpId> = item.after().iter().map(|&i| ids[i]).collect();
            let notice = number_notice(number as u32 + 1);
            ids.push(match item {
                Item::Op { op, .. } => timed.issue(FlashOp { notice, ticket, ..*op }, &after),
                Item::JoinAll { .. } => timed.join(&after, Need::All, ticket, notice),
                Item::JoinFirst { .. } => timed.join(&after, Need::First, ticket, notice),
            });
            for &(_, target) in cancels.iter().filter(|(when, target)| *when == number && *target <= number) {
                if !timed.is_done(ids[target]) {
                    timed.cancel(ids[target]);
                    cancelled.push(target);
                }
            }
        }
        timed.seal(ticket);
        while let Some(next) = timed.next_time() {
            hear(&mut timed, next);
        }
        prop_assert!(ticket_done && ids.iter().all(|&id| timed.is_done(id)));
        prop_assert!((0..4).all(|die| timed.load(die).queued == 0 && timed.load(die).internal == 0));
        notices.extend(&cancelled);
        notices.sort_unstable();
        notices.dedup();
        prop_assert_eq!(notices, (0..graph.len()).collect::<Vec<_>>());
    }
}
