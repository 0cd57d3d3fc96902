//! Every phase of the timed backend to the nanosecond, derived by hand.

use crate::support::*;
use ftlab_core::{Breakdown, Part, RuId};
use ftlab_drive::timed::{Event, Outstanding, TicketInfo, Timed};
use ftlab_flash::Timing;
use ftlab_ftl::{Backend, Cause, Class, FlashOp, FlashOpKind, Need, Notice, OpId, Ticket};

const KB4: u32 = 4096;

/// One channel with two dies.
fn pair() -> (Timed, ftlab_core::Layout) {
    let layout = layout([1, 2, 1, 1], 4, 8, KB4);
    (timed(&layout, &plain_timing(), "out_of_order"), layout)
}

fn ticket_at_once(timed: &mut Timed) -> Ticket {
    let since_ns = timed.now_ns();
    timed.open(TicketInfo {
        since_ns,
        ..TicketInfo::default()
    })
}

/// Runs until the ticket is done; (latency, parts).
fn finish(timed: &mut Timed, ticket: Ticket) -> (u64, Breakdown) {
    while let Some(next) = timed.next_time() {
        if let Some((time, Event::TicketDone(done))) = timed.pop(next)
            && done == ticket
        {
            let end = timed.take(ticket);
            assert_eq!(
                end.parts.total_ns(),
                time - end.submitted_ns,
                "the parts sum to the latency"
            );
            return (time - end.submitted_ns, end.parts);
        }
    }
    panic!("ticket {ticket:?} never completed");
}

#[test]
fn an_unloaded_operation_takes_the_sum_of_its_phases() {
    let (mut t, l) = pair();
    t.issue(noted(read(page(&l, 0, 0, 0), KB4), 1), &[]);
    assert_eq!(notices(&mut t), [(1, 10 + 1000 + 4096)]);
    let start = t.now_ns();
    t.pop(start + 100);
    let start = t.now_ns();
    t.issue(noted(program(page(&l, 0, 0, 0), KB4), 2), &[]);
    assert_eq!(notices(&mut t), [(2, start + 20 + 4096 + 5000)]);
    let start = t.now_ns();
    t.issue(noted(erase(page(&l, 0, 0, 0)), 3), &[]);
    assert_eq!(notices(&mut t), [(3, start + 30 + 20_000)]);
}

#[test]
fn page_types_and_decoding_come_from_the_table() {
    let layout = layout([1, 1, 1, 1], 4, 8, KB4);
    let tlc = Timing {
        read_ns: vec![1000, 2000, 3000],
        program_ns: vec![5000, 6000, 7000],
        ecc_ns: 7,
        ..plain_timing()
    };
    for (number, t_r) in [(0, 1000), (1, 2000), (2, 3000), (3, 1000), (7, 2000)] {
        let mut t = timed(&layout, &tlc, "fcfs");
        t.issue(noted(read(page(&layout, 0, 1, number), 100), 1), &[]);
        assert_eq!(notices(&mut t), [(1, 10 + t_r + 100 + 7)]);
    }
}

#[test]
fn two_dies_share_a_channel_and_overlap_their_cells() {
    // Die 0: command 0-10, cell to 1010, out 1010-5106. Die 1: command 10-20, cell to 1020, waits for the channel until
    // 5106, out to 9202. A third read on die 0 starts at 5106: its command has the better rank, so die 1's data goes out
    // 5116-9212, and the third read's data (ready at 6116) 9212-13308.
    let (mut t, l) = pair();
    t.issue(noted(read(page(&l, 0, 0, 0), KB4), 1), &[]);
    t.issue(noted(read(page(&l, 1, 0, 0), KB4), 2), &[]);
    assert_eq!(notices(&mut t), [(1, 5106), (2, 9202)]);

    let (mut t, l) = pair();
    for (plane, key) in [(0, 1), (1, 2), (0, 3)] {
        t.issue(noted(read(page(&l, plane, 0, 0), KB4), key), &[]);
    }
    assert_eq!(notices(&mut t), [(1, 5106), (2, 9212), (3, 13_308)]);

    // Lockstep lets die 1's data out first: 5106-9202, then the command 9202-9212, cell to 10212, out to 14308.
    let mut t = timed(&l, &plain_timing(), "lockstep");
    for (plane, key) in [(0, 1), (1, 2), (0, 3)] {
        t.issue(noted(read(page(&l, plane, 0, 0), KB4), key), &[]);
    }
    assert_eq!(notices(&mut t), [(1, 5106), (2, 9202), (3, 14_308)]);
}

#[test]
fn a_program_overlaps_with_another_dies_data() {
    // Data in 0-4116 and 4116-8232; cells to 9116 and 13232.
    let (mut t, l) = pair();
    t.issue(noted(program(page(&l, 0, 0, 0), KB4), 1), &[]);
    t.issue(noted(program(page(&l, 1, 0, 0), KB4), 2), &[]);
    assert_eq!(notices(&mut t), [(1, 9116), (2, 13_232)]);
}

#[test]
fn programs_of_a_block_keep_their_order_whatever_their_class() {
    let (mut t, l) = pair();
    let gc = FlashOp {
        class: Class::Gc,
        cause: Cause::Gc,
        ..program(page(&l, 0, 0, 0), KB4)
    };
    t.issue(noted(gc, 1), &[]);
    t.issue(noted(program(page(&l, 0, 0, 1), KB4), 2), &[]);
    // Another block of the die: free to overtake in the die, and it does (host writes before GC).
    t.issue(noted(program(page(&l, 0, 1, 0), KB4), 3), &[]);
    let step = 20 + 4096 + 5000;
    assert_eq!(notices(&mut t), [(3, step), (1, 2 * step), (2, 3 * step)]);
}

#[test]
fn an_erase_waits_for_everything_before_it_on_its_block_and_programs_wait_for_the_erase() {
    let (mut t, l) = pair();
    t.issue(noted(read(page(&l, 0, 0, 5), KB4), 1), &[]);
    t.issue(noted(read(page(&l, 0, 0, 6), KB4), 2), &[]);
    t.issue(noted(erase(page(&l, 0, 0, 0)), 3), &[]);
    t.issue(noted(program(page(&l, 0, 0, 0), KB4), 4), &[]);
    t.issue(noted(erase(page(&l, 0, 0, 0)), 5), &[]);
    t.issue(noted(erase(page(&l, 0, 0, 0)), 6), &[]);
    t.issue(noted(program(page(&l, 0, 0, 0), KB4), 7), &[]);
    let (r, p, e) = (5106, 9116, 20_030);
    let want = [
        (1, r),
        (2, 2 * r),
        (3, 2 * r + e),
        (4, 2 * r + e + p),
        (5, 2 * r + 2 * e + p),
        (6, 2 * r + 3 * e + p),
        (7, 2 * r + 3 * e + 2 * p),
    ];
    assert_eq!(notices(&mut t), want);
}

#[test]
fn a_page_under_way_is_read_from_the_controller() {
    let (mut t, l) = pair();
    // A GC copy from die 1 to die 0: its data is in the controller when the source has been read.
    let source = t.issue(read(page(&l, 1, 0, 0), KB4), &[]);
    t.issue(noted(program(page(&l, 0, 0, 0), KB4), 1), &[source]);
    t.issue(noted(read(page(&l, 0, 0, 0), KB4), 2), &[]);
    t.issue(noted(program(page(&l, 0, 0, 1), KB4), 3), &[]);
    t.issue(noted(read(page(&l, 0, 0, 1), KB4), 4), &[]);
    let copied = 5106 + 9116;
    assert_eq!(notices(&mut t), [(4, 0), (2, 5106), (1, copied), (3, copied + 9116)]);
    assert_eq!(t.stats().controller_reads, 2);
    // Once programmed, it is read from the flash.
    let start = t.now_ns();
    t.issue(noted(read(page(&l, 0, 0, 0), KB4), 5), &[]);
    assert_eq!(notices(&mut t), [(5, start + 5106)]);
}

#[test]
fn a_page_of_an_open_block_that_was_written_earlier_is_read_from_the_flash() {
    let (mut t, l) = pair();
    t.issue(noted(program(page(&l, 0, 0, 4), KB4), 1), &[]);
    t.issue(noted(read(page(&l, 0, 0, 2), KB4), 2), &[]);
    assert_eq!(notices(&mut t), [(2, 5106), (1, 5106 + 9116)]);
    assert_eq!(t.stats().controller_reads, 0);
}

#[test]
fn joins_wait_for_all_or_for_the_first_and_can_grow() {
    let (mut t, l) = pair();
    let a = t.issue(read(page(&l, 0, 0, 0), KB4), &[]);
    let b = t.issue(read(page(&l, 1, 0, 0), KB4), &[]);
    t.join(&[a, b], Need::All, Ticket::NONE, number_notice(1));
    t.join(&[a, b], Need::First, Ticket::NONE, number_notice(2));
    t.join(&[], Need::All, Ticket::NONE, number_notice(3));
    t.join(&[OpId::DONE, a], Need::First, Ticket::NONE, number_notice(4));
    let late = t.join(&[b], Need::First, Ticket::NONE, number_notice(5));
    t.join_more(late, a);
    let both = t.join(&[a], Need::All, Ticket::NONE, number_notice(6));
    t.join_more(both, b);
    assert_eq!(
        notices(&mut t),
        [(3, 0), (4, 0), (2, 5106), (5, 5106), (1, 9202), (6, 9202)]
    );
    assert!(t.is_done(a) && t.is_done(late) && t.is_done(both));
}

#[test]
fn a_cancelled_read_leaves_its_queue_and_a_running_one_goes_on_unheard() {
    let (mut t, l) = pair();
    let running = t.issue(noted(read(page(&l, 0, 0, 0), KB4), 1), &[]);
    let queued = t.issue(noted(read(page(&l, 0, 0, 1), KB4), 2), &[]);
    t.issue(noted(read(page(&l, 0, 0, 2), KB4), 3), &[]);
    let waiting = t.issue(noted(read(page(&l, 0, 0, 3), KB4), 4), &[queued]);
    assert_eq!(t.pop(5), None);
    t.cancel(queued);
    t.cancel(running);
    t.cancel(waiting);
    assert_eq!(t.load(0).queued, 2);
    assert_eq!(notices(&mut t), [(3, 2 * 5106)]);
    assert_eq!(t.load(0).idle_since_ns, Some(2 * 5106));
}

#[test]
fn a_ticket_names_where_its_time_went() {
    let (mut t, l) = pair();
    // The die is busy with a GC read until 5106, then with another host read until 10212.
    let gc = FlashOp {
        class: Class::Gc,
        cause: Cause::Gc,
        ..read(page(&l, 0, 0, 0), KB4)
    };
    t.issue(gc, &[]);
    assert_eq!(t.pop(6), None);
    t.issue(read(page(&l, 0, 0, 1), KB4), &[]);
    let ticket = ticket_at_once(&mut t);
    t.issue(
        FlashOp {
            ticket,
            ..read(page(&l, 0, 0, 2), KB4)
        },
        &[],
    );
    t.seal(ticket);
    let (latency, parts) = finish(&mut t, ticket);
    assert_eq!(latency, 3 * 5106 - 6);
    let want = Breakdown {
        map_ns: 0,
        queue_ns: 5106,
        gc_wait_ns: 5106 - 6,
        flash_ns: 1000,
        transfer_ns: 10 + 4096,
    };
    assert_eq!(parts, want);
}

#[test]
fn waiting_for_the_map_and_for_the_own_earlier_read_is_told_apart() {
    let (mut t, l) = pair();
    let ticket = ticket_at_once(&mut t);
    let map = FlashOp {
        class: Class::Mapping,
        cause: Cause::Map,
        ..read(page(&l, 1, 0, 0), KB4)
    };
    let map = t.issue(map, &[]);
    let mine = |op: FlashOp| FlashOp { ticket, ..op };
    // A read-modify-write: 5106 for the map, 5106 for the read, 9116 for the program.
    let old = t.issue(mine(read(page(&l, 0, 0, 0), KB4)), &[map]);
    t.issue(mine(program(page(&l, 0, 1, 0), KB4)), &[old]);
    t.seal(ticket);
    let (latency, parts) = finish(&mut t, ticket);
    assert_eq!(latency, 5106 + 5106 + 9116);
    let want = Breakdown {
        map_ns: 5106,
        queue_ns: 0,
        gc_wait_ns: 0,
        flash_ns: 1000 + 5000,
        transfer_ns: 10 + 4096 + 20 + 4096,
    };
    assert_eq!(parts, want);
}

#[test]
fn a_ticket_without_work_completes_when_sealed_and_charges_are_kept() {
    let (mut t, _) = pair();
    let ticket = ticket_at_once(&mut t);
    t.arm(40, Notice::Won { race: 9 });
    assert_eq!(t.pop(1000), Some((40, Event::Notice(Notice::Won { race: 9 }))));
    t.charge(ticket, Part::GcWait);
    t.seal(ticket);
    let (latency, parts) = finish(&mut t, ticket);
    assert_eq!((latency, parts.gc_wait_ns), (40, 40));
}

#[test]
fn a_barrier_waits_for_the_programs_before_it() {
    let (mut t, l) = pair();
    t.issue(program(page(&l, 0, 0, 0), KB4), &[]);
    t.issue(program(page(&l, 1, 0, 0), KB4), &[]);
    let ticket = ticket_at_once(&mut t);
    t.barrier(ticket);
    t.seal(ticket);
    t.issue(program(page(&l, 1, 0, 1), KB4), &[]);
    assert_eq!(finish(&mut t, ticket).0, 13_232);
    let ticket = ticket_at_once(&mut t);
    notices(&mut t);
    t.barrier(ticket);
    t.seal(ticket);
    assert_eq!(t.pop(t.now_ns()), Some((t.now_ns(), Event::TicketDone(ticket))));
}

#[test]
fn planes_work_together_on_equal_page_numbers() {
    // One die, two planes: commands 0-20, cell to 1020, data 1020-5116 and 5116-9212. The third read, with another page
    // number, follows alone.
    let l = layout([1, 1, 1, 2], 4, 8, KB4);
    let both = Timing {
        multi_plane: true,
        ..plain_timing()
    };
    let mut t = timed(&l, &both, "out_of_order");
    t.issue(noted(read(page(&l, 0, 0, 3), KB4), 1), &[]);
    t.issue(noted(read(page(&l, 1, 2, 4), KB4), 2), &[]);
    t.issue(noted(read(page(&l, 1, 2, 3), KB4), 3), &[]);
    assert_eq!(notices(&mut t), [(1, 5116), (3, 9212), (2, 9212 + 5106)]);
    assert_eq!(t.stats().merged, 1);

    // Programs: 2·(20 + 4096) in, 5000 together.
    let mut t = timed(&l, &both, "out_of_order");
    t.issue(noted(program(page(&l, 0, 0, 0), KB4), 1), &[]);
    t.issue(noted(program(page(&l, 1, 0, 0), KB4), 2), &[]);
    assert_eq!(notices(&mut t), [(1, 13_232), (2, 13_232)]);

    // Erases of any blocks: 2·30 + 20000. One plane does one at a time.
    let mut t = timed(&l, &both, "out_of_order");
    for (plane, block, key) in [(0, 0, 1), (0, 1, 2), (1, 3, 3)] {
        t.issue(noted(erase(page(&l, plane, block, 0)), key), &[]);
    }
    assert_eq!(notices(&mut t), [(1, 20_060), (3, 20_060), (2, 20_060 + 20_030)]);
}

#[test]
fn a_read_suspends_an_erase() {
    let l = layout([1, 1, 1, 1], 4, 8, KB4);
    let suspending = Timing {
        suspend_erase: true,
        ..plain_timing()
    };
    let mut t = timed(&l, &suspending, "out_of_order");
    t.issue(noted(erase(page(&l, 0, 0, 0)), 1), &[]);
    assert_eq!(t.pop(5030), None);
    // 5000 of 20000 done. Suspended 5030-5080, read 5080-10186, resumed 10256, 15000 to go.
    t.issue(noted(read(page(&l, 0, 1, 0), KB4), 2), &[]);
    assert_eq!(t.pop(30_000), Some((10_186, Event::Notice(Notice::Won { race: 2 }))));
    assert_eq!(t.pop(10_200), None);
    // During the resumption: suspended again from its end, 10256-10306, read to 15412, resumed 15482, done 30482.
    t.issue(noted(read(page(&l, 0, 1, 1), KB4), 3), &[]);
    assert_eq!(t.pop(30_000), Some((15_412, Event::Notice(Notice::Won { race: 3 }))));
    assert_eq!(t.pop(20_000), None);
    // Twice is enough: this one waits.
    t.issue(noted(read(page(&l, 0, 1, 2), KB4), 4), &[]);
    assert_eq!(notices(&mut t), [(1, 30_482), (4, 30_482 + 5106)]);
    let stats = t.stats();
    assert_eq!(stats.suspends, 2);
    // Erase: 0-5080, 10186-10306, 15412-30482. Reads: the rest.
    assert_eq!(stats.die_busy_ns[0][Class::Erase as usize], 5080 + 120 + 15_070);
    assert_eq!(stats.die_busy_ns[0][Class::HostRead as usize], 3 * 5106);
}

#[test]
fn nothing_is_suspended_that_ends_sooner_or_where_it_is_not_allowed() {
    let l = layout([1, 1, 1, 1], 4, 8, KB4);
    let suspending = Timing {
        suspend_program: true,
        ..plain_timing()
    };
    // 50 ns before its end, a suspension of 50 ns gains nothing; 51 ns before, it is done.
    for (policy, at, suspends) in [
        ("out_of_order", 9116 - 50, 0),
        ("out_of_order", 9116 - 51, 1),
        ("read_first", 5000, 1),
        ("fcfs", 5000, 0),
        ("lockstep", 5000, 0),
    ] {
        let mut t = timed(&l, &suspending, policy);
        t.issue(program(page(&l, 0, 0, 0), KB4), &[]);
        assert_eq!(t.pop(at), None);
        t.issue(noted(read(page(&l, 0, 1, 0), KB4), 1), &[]);
        notices(&mut t);
        assert_eq!(t.stats().suspends, suspends, "{policy} at {at}");
    }
}

#[test]
fn host_writes_overtake_gc_only_so_often() {
    let l = layout([1, 1, 1, 1], 8, 8, KB4);
    let mut t = timed(&l, &plain_timing(), "out_of_order:gc_after=2");
    let gc = |block, key| {
        let op = FlashOp {
            class: Class::Gc,
            cause: Cause::Gc,
            ..read(page(&l, 0, block, 0), KB4)
        };
        noted(op, key)
    };
    t.issue(gc(5, 100), &[]);
    t.issue(gc(6, 101), &[]);
    for block in 0..5 {
        t.issue(noted(program(page(&l, 0, block, 0), KB4), block + 1), &[]);
    }
    let order: Vec<u32> = notices(&mut t).into_iter().map(|(key, _)| key).collect();
    assert_eq!(order, [1, 2, 100, 3, 4, 101, 5]);
}

#[test]
fn a_power_cut_names_what_was_under_way_in_order_of_issue() {
    let (mut t, l) = pair();
    t.issue(program(page(&l, 0, 0, 0), KB4), &[]);
    t.issue(read(page(&l, 1, 0, 0), KB4), &[]);
    t.issue(erase(page(&l, 1, 1, 0)), &[]);
    t.issue(program(page(&l, 0, 0, 1), KB4), &[]);
    assert_eq!(t.pop(100), None);
    let outstanding = |kind, page, started| Outstanding { kind, page, started };
    assert_eq!(
        t.outstanding(),
        [
            outstanding(FlashOpKind::Program, page(&l, 0, 0, 0), true),
            outstanding(FlashOpKind::Erase, page(&l, 1, 1, 0), false),
            outstanding(FlashOpKind::Program, page(&l, 0, 0, 1), false),
        ]
    );
    t.reset();
    assert!(t.outstanding().is_empty());
    assert_eq!(t.next_time(), None);
    t.issue(noted(read(page(&l, 0, 0, 0), KB4), 1), &[]);
    assert_eq!(notices(&mut t), [(1, 100 + 5106)]);
}

#[test]
#[should_panic(expected = "read of page 1 of block 0, of which 1 are programmed")]
fn a_page_that_is_not_yet_programmed_is_never_read() {
    let (mut t, l) = pair();
    t.set_filled(RuId(0), 1);
    t.issue(read(page(&l, 0, 0, 0), KB4), &[]);
    t.issue(read(page(&l, 0, 0, 1), KB4), &[]);
}

/// From when the erase is issued, not from when it completes.
#[test]
#[should_panic(expected = "read of page 0 of block 0, of which 0 are programmed")]
fn a_page_that_is_being_erased_is_never_read() {
    let (mut t, l) = pair();
    t.set_filled(RuId(0), 1);
    t.issue(erase(page(&l, 0, 0, 0)), &[]);
    t.issue(read(page(&l, 0, 0, 0), KB4), &[]);
}

#[test]
fn statistics_are_of_their_window() {
    let (mut t, l) = pair();
    t.issue(program(page(&l, 0, 0, 0), KB4), &[]);
    t.pop(1000);
    t.clear_stats();
    t.pop(6000);
    let stats = t.stats();
    assert_eq!(stats.die_busy_ns[0][Class::HostWrite as usize], 5000);
    assert_eq!(stats.channel_busy_ns, [4116 - 1000]);
    notices(&mut t);
    assert_eq!(t.stats().die_busy_ns[0][Class::HostWrite as usize], 9116 - 1000);
    assert_eq!(t.stats().ops_of(FlashOpKind::Program), 1);
}
