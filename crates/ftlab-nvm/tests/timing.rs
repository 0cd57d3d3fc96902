//! Timing by hand and closed forms, to the nanosecond. Times of the round memory: t_rcd 100, t_cl = t_cwl 20, t_rp 10, t_rtp 5, t_ccd 4,
//! t_wr 300, t_burst 4.

mod common;

use common::{Ask, memory, read, serve, times, write};
use ftlab_core::Stream;

/// Miss: 100 + 20 + 4. Hit: 20 + 4. Conflict: 10 more than a miss.
#[test]
fn an_isolated_hit_miss_and_conflict() {
    let found = times(
        &memory(&[]),
        &[read(0, 0, 1, 0), read(1000, 0, 1, 1), read(2000, 0, 2, 0)],
    );
    assert_eq!(found, [124, 1024, 2134]);
}

/// A dirty row costs its write when it is closed, where rows are what is written: 300 before the precharge.
#[test]
fn a_dirty_row_is_written_when_it_is_closed() {
    let asks = [write(0, 0, 1, 0), read(1000, 0, 2, 0), read(2000, 0, 1, 0)];
    let (found, system) = serve(&memory(&["write.cost=row"]), &asks);
    assert_eq!(found, [124, 1434, 2134]);
    assert_eq!(system.channels[0].banks[0].counts.dirty_closed, 1);
    assert_eq!(system.channels[0].banks[0].wear[&1], 1);
}

/// Write recovery: data of the write end at 124, so the row may be closed at 424: 424 + 10 + 100 + 24. A hit does not wait for it.
#[test]
fn write_recovery_holds_the_row_open() {
    let memory = memory(&["write.cost=recovery"]);
    assert_eq!(times(&memory, &[write(0, 0, 1, 0), read(130, 0, 2, 0)]), [124, 558]);
    assert_eq!(times(&memory, &[write(0, 0, 1, 0), read(130, 0, 1, 1)]), [124, 154]);
}

/// A line that is written occupies its bank for 300 after its data, hits as well, and is done then; another bank is free.
#[test]
fn a_written_line_occupies_its_bank() {
    let found = times(
        &memory(&[]),
        &[write(0, 0, 1, 0), read(130, 0, 1, 1), read(130, 1, 1, 0)],
    );
    assert_eq!(found, [424, 448, 254]);
}

/// Hits of one row, all there at once: the first is a miss, the others follow on the bus, 4 apart; with t_ccd 7, 7 apart.
#[test]
fn a_stream_in_one_row() {
    let asks: Vec<Ask> = (0..4).map(|column| read(0, 0, 1, column)).collect();
    assert_eq!(times(&memory(&[]), &asks), [124, 128, 132, 136]);
    assert_eq!(times(&memory(&["timing.t_ccd=7ns"]), &asks), [124, 131, 138, 145]);
}

/// Misses to four banks at once: activations side by side, data one after the other on the bus.
#[test]
fn banks_share_the_bus() {
    let asks: Vec<Ask> = (0..4).map(|bank| read(0, bank, 1, 0)).collect();
    assert_eq!(times(&memory(&[]), &asks), [124, 128, 132, 136]);
}

/// Strictly in order, each row is opened when the column command before it is out: 100 apart.
#[test]
fn fcfs_opens_one_row_at_a_time() {
    let asks: Vec<Ask> = (0..4).map(|bank| read(0, bank, 1, 0)).collect();
    assert_eq!(
        times(&memory(&["controller.scheduler=fcfs"]), &asks),
        [124, 224, 324, 424]
    );
}

/// A chain of conflicts in one bank: t_rtp + t_rp + t_rcd = 115 apart, by any scheduler.
#[test]
fn a_chain_of_conflicts() {
    let asks: Vec<Ask> = (0..10).map(|row| read(0, 2, row, 0)).collect();
    let wanted: Vec<u64> = (0..10).map(|n| 124 + 115 * n).collect();
    for scheduler in ["fcfs", "ready_first", "hits_first", "hits_first:cap=2"] {
        let memory = memory(&[&format!("controller.scheduler={scheduler}")]);
        assert_eq!(times(&memory, &asks), wanted, "{scheduler}");
    }
}

/// Row 1, row 2, then three more of row 1, at once. By age: 1 (124), 2 (239), 1 (354), hits 358 and 362. Hits first: 124, hits 128, 132, 136; the row may be
/// closed 5 after the last column command (112): 117 + 10 + 100 + 24. With a cap of one: one hit passes row 2.
#[test]
fn what_hits_pass() {
    let asks = [
        read(0, 0, 1, 0),
        read(0, 0, 2, 0),
        read(0, 0, 1, 1),
        read(0, 0, 1, 2),
        read(0, 0, 1, 3),
    ];
    let of = |scheduler: &str| times(&memory(&[&format!("controller.scheduler={scheduler}")]), &asks);
    assert_eq!(of("ready_first"), [124, 239, 354, 358, 362]);
    assert_eq!(of("fcfs"), [124, 239, 354, 358, 362]);
    assert_eq!(of("hits_first"), [124, 251, 128, 132, 136]);
    // Column commands at 100 and 104; precharge at 109, then 119 + 100 + 24 = 243; row 1 again: 224 + 10 + 100 + 24 = 358.
    assert_eq!(of("hits_first:cap=1"), [124, 243, 128, 358, 362]);
}

/// Posted writes are done at once. The drain starts with the second of two (high mark), serves both alone, and the read waits: writes to
/// banks 0 and 1 have their data at 124 and 128 and leave the buffer at 104; the read then opens bank 2: 104 + 124.
#[test]
fn a_drain_serves_writes_alone() {
    let set = [
        "write.buffer=4",
        "write.high=0.5",
        "write.low=0.0",
        "write.when_idle=false",
    ];
    let (found, system) = serve(&memory(&set), &[write(0, 0, 1, 0), write(0, 1, 1, 0), read(0, 2, 1, 0)]);
    assert_eq!(found, [0, 0, 228]);
    assert_eq!(system.channels[0].counts.drains, 1);
    assert_eq!(system.measured.drained, 428_000);
}

/// Reads have priority below the high mark, and are answered from the buffer, in 24; a second write of the line replaces the first.
#[test]
fn reads_go_first_and_are_answered_from_the_buffer() {
    let set = [
        "write.buffer=8",
        "write.high=1.0",
        "write.low=0.0",
        "write.when_idle=false",
    ];
    let asks = [
        write(0, 0, 1, 0),
        write(10, 0, 1, 0),
        read(20, 0, 1, 0),
        read(20, 0, 2, 0),
    ];
    let (found, system) = serve(&memory(&set), &asks);
    assert_eq!(found, [0, 10, 44, 144]);
    let counts = system.channels[0].counts;
    assert_eq!((counts.from_buffer, counts.replaced), (1, 1));
    assert_eq!(system.channels[0].banks[0].counts.writes, 1);
}

/// A full buffer holds the next write up until a place is free: the write that drains leaves with its column command at 100.
#[test]
fn a_full_buffer_holds_writes_up() {
    let set = ["write.buffer=1", "write.high=1.0", "write.low=0.0"];
    assert_eq!(times(&memory(&set), &[write(0, 0, 1, 0), write(0, 1, 1, 0)]), [0, 100]);
}

/// Two lines for two banks, one write at a time: the second starts when the first is in its cells, at 424, and ends at 848.
#[test]
fn power_for_one_write_at_a_time() {
    let asks = [write(0, 0, 1, 0), write(0, 1, 1, 0)];
    assert_eq!(times(&memory(&["write.at_once=1"]), &asks), [424, 848]);
    assert_eq!(times(&memory(&[]), &asks), [424, 428]);
}

/// A write to the cells runs from 124 to 424. A read at 130 stops it at the end of its step of 50, at 174, hits at 198; the other 250 follow from
/// 178 (t_ccd after the column command) to 428. Without pausing the read waits until 424.
#[test]
fn a_read_pauses_a_write() {
    let set = ["write.buffer=4", "write.high=1.0", "write.low=0.0"];
    let asks = [write(0, 0, 1, 0), read(130, 0, 1, 1)];
    let (found, system) = serve(&memory(&[&set[..], &["write.pause_step=50ns"]].concat()), &asks);
    assert_eq!(found, [0, 198]);
    assert_eq!(system.channels[0].banks[0].counts.pauses, 1);
    // t_rtp holds the bank until 179.
    assert_eq!(system.measured.drained, 429_000);
    assert_eq!(times(&memory(&set), &asks), [0, 448]);
}

/// The same with 90 from column command to column command: the write's was at 100, so that the read hits at 190 and not at 174.
/// A refresh at 1000 waits for the write to the cells, from 1024 to 1324, and for the closing of its row: 1334 + 200. A read at 1050 does not end the write any more.
#[test]
fn a_paused_write_leaves_other_times_in_force() {
    let set = [
        "write.buffer=4",
        "write.high=1.0",
        "write.low=0.0",
        "write.pause_step=50ns",
    ];
    let asks = [write(0, 0, 1, 0), read(130, 0, 1, 1)];
    assert_eq!(
        times(&memory(&[&set[..], &["timing.t_ccd=90ns"]].concat()), &asks),
        [0, 214]
    );
    let refresh = ["refresh.t_refi=1us", "refresh.t_rfc=200ns"];
    let asks = [write(900, 0, 1, 0), read(1050, 0, 1, 1)];
    let (found, system) = serve(&memory(&[&set[..], &refresh].concat()), &asks);
    assert_eq!(found, [900, 1534 + 124]);
    assert_eq!(system.channels[0].banks[0].counts.pauses, 0);
}

/// Refresh at 1000 for 200: a row that was open is closed by it, and a request that comes meanwhile waits.
#[test]
fn refresh_closes_rows_and_holds_requests() {
    let memory = memory(&["refresh.t_refi=1us", "refresh.t_rfc=200ns"]);
    let asks = [read(900, 0, 1, 0), read(1050, 0, 1, 1), read(1500, 0, 1, 2)];
    // Owned at 1000: the row may be closed 5 after the column command of 1000, is closed at 1015, and the refresh ends at 1215.
    let (found, system) = serve(&memory, &asks);
    assert_eq!(found, [1024, 1339, 1524]);
    assert_eq!(system.channels[0].banks[0].counts.misses, 2);
}

/// A dirty row is written before a refresh closes it: due at 1000, closed at 1300 + 10, over at 1410; a read at 1001 then misses (124).
/// With two dirty rows and one write at a time the second is written from 1300 on: 300 later. A row that was read only costs no write.
#[test]
fn a_refresh_waits_for_the_writes_of_dirty_rows() {
    let set = ["write.cost=row", "refresh.t_refi=1us", "refresh.t_rfc=100ns"];
    let asks = [write(0, 0, 1, 0), read(1001, 0, 1, 1)];
    let (found, system) = serve(&memory(&set), &asks);
    assert_eq!(found, [124, 1410 + 124]);
    assert_eq!(system.channels[0].banks[0].wear[&1], 1);
    // The column of the read is 1510, from the row's opening at 1410 on; before, the first write's 104 and the write to the cells.
    assert_eq!(system.channels[0].banks[0].counts.busy, 1000 * (104 + 300 + 104));
    assert_eq!(
        times(&memory(&set), &[read(0, 0, 1, 0), read(1001, 0, 1, 1)]),
        [124, 1110 + 124]
    );
    let two = [write(0, 0, 1, 0), write(0, 1, 1, 0), read(1001, 0, 1, 1)];
    assert_eq!(times(&memory(&set), &two), [124, 128, 1410 + 124]);
    let one = [&set[..], &["write.at_once=1"]].concat();
    assert_eq!(times(&memory(&one), &two), [124, 128, 1710 + 124]);
}

/// Due at 1000: t_wr 400, t_rp 15, t_rfc 100, then a miss of 132 + 20 + 4. A read at 1001 takes 670, and 270 where the row is clean.
#[test]
fn a_read_after_such_a_refresh_takes_the_write_as_well() {
    let set = [
        "write.cost=row",
        "refresh.t_refi=1us",
        "refresh.t_rfc=100ns",
        "timing.t_rp=15ns",
        "timing.t_wr=400ns",
        "timing.t_rcd=132ns",
    ];
    let takes = |first: Ask| times(&memory(&set), &[first, read(1001, 0, 1, 1)])[1] - 1001;
    assert_eq!((takes(write(0, 0, 1, 0)), takes(read(0, 0, 1, 0))), (670, 270));
}

/// Sequential reads from eight cores keep the bus busy: a line each 4 ns, but for the first activation and the closing of rows.
#[test]
fn sequential_reads_reach_the_bandwidth_of_the_bus() {
    let asks: Vec<Ask> = (0..40_000)
        .map(|n| read(n * 4, (n / 4 % 4) as u32, (n / 16 % 64) as u32, (n % 4) as u32))
        .collect();
    let memory = memory(&["timing.t_rcd=20ns", "timing.t_rp=0ns", "timing.t_rtp=4ns"]);
    let (found, system) = serve(&memory, &asks);
    let last = found.iter().max().unwrap();
    assert!((160_000..160_100).contains(last), "{last}");
    assert_eq!(system.channels[0].counts.bus_busy, 160_000_000);
}

/// One bank, conflicts under Poisson arrivals at half load: M/D/1. Service occupies the bank for t_rtp + t_rp + t_rcd = 115; mean wait is
/// load / (2 (1 - load)) services, here one half: 57.5. Latency of a conflict without waiting: 134. Rows never repeat in turn, so that each is a
/// conflict. Within 2 %: 200,000 arrivals.
#[test]
fn one_bank_under_poisson_arrivals_is_m_d_1() {
    let memory = memory(&["controller.scheduler=ready_first", "controller.queue=4096"]);
    let mut random = Stream::new(5, "test");
    let mut clock = 0.0;
    let mut asks = vec![read(0, 0, 63, 0)];
    for n in 0..200_000u32 {
        clock += -(1.0 - random.unit()).ln() * 230.0;
        asks.push(read(1000 + clock as u64, 0, n % 60, 0));
    }
    let found = times(&memory, &asks);
    let waits = asks
        .iter()
        .zip(&found)
        .skip(1)
        .map(|(ask, done)| (done - ask.at - 134) as f64);
    let mean = waits.sum::<f64>() / 200_000.0;
    assert!((mean / 57.5 - 1.0).abs() < 0.02, "{mean}");
}

/// With runs of one hit: the row is opened (124), one hit (128); then row 2, although row 1 has another: 104 + 5 + 10 + 100 + 24; row 1 again: 219 + 5 + 110 + 24.
#[test]
fn a_run_of_hits_ends_whoever_waits() {
    let asks = [read(0, 0, 1, 0), read(0, 0, 1, 1), read(0, 0, 1, 2), read(0, 0, 2, 0)];
    let of = |scheduler: &str| times(&memory(&[&format!("controller.scheduler={scheduler}")]), &asks);
    assert_eq!(of("hits_first:run=1"), [124, 128, 358, 243]);
    assert_eq!(of("hits_first:cap=1"), [124, 128, 132, 247]);
}

/// A queue of one for each bank shows the scheduler nothing but the next: each row is opened anew, 115 apart. Another bank is not
/// held up. With two places row 1 has a hit, behind bank 1 on the bus.
#[test]
fn queues_of_banks_are_what_is_chosen_from() {
    let asks = [read(0, 0, 1, 0), read(0, 0, 2, 0), read(0, 0, 1, 1), read(0, 1, 1, 0)];
    assert_eq!(
        times(&memory(&["controller.bank_queue=1"]), &asks),
        [124, 239, 354, 128]
    );
    assert_eq!(
        times(&memory(&["controller.bank_queue=2"]), &asks),
        [124, 247, 132, 128]
    );
}

/// Writes leave their buffer for the queues of banks: the drain of two, from the high to the low mark, makes two places at once.
#[test]
fn a_buffer_is_drained_into_the_queues_of_banks() {
    let set = [
        "write.buffer=2",
        "write.high=1.0",
        "write.low=0.0",
        "controller.bank_queue=2",
    ];
    let asks = [
        write(0, 0, 1, 0),
        write(0, 1, 1, 0),
        write(0, 2, 1, 0),
        read(0, 0, 1, 0),
    ];
    // The read is answered from the queue of bank 0, where the write of its line waits: 20 + 4.
    assert_eq!(times(&memory(&set), &asks), [0, 0, 0, 24]);
}

/// Turning the bus: data of the write end at 124, so the read of an open bank goes at 134 and ends at 158, else 4 after the write. The write's data
/// start 6 after those of a read.
#[test]
fn the_bus_is_turned_around() {
    let set = ["write.cost=recovery", "timing.t_wtr=10ns", "timing.t_rtw=6ns"];
    let asks = [write(0, 0, 1, 0), read(0, 1, 1, 0)];
    assert_eq!(times(&memory(&set), &asks), [124, 158]);
    assert_eq!(times(&memory(&set[..1]), &asks), [124, 128]);
    let asks = [read(0, 0, 1, 0), write(0, 1, 1, 0)];
    assert_eq!(times(&memory(&set), &asks), [124, 134]);
    assert_eq!(times(&memory(&set[..1]), &asks), [124, 128]);
}

/// A queue of one: the second request comes in with the first one's column command, at 100, or at once where its bank frees the place.
#[test]
fn a_place_is_free_with_the_column_command_or_the_bank() {
    let asks = [read(0, 0, 1, 0), read(0, 1, 1, 0)];
    let (found, system) = serve(&memory(&["controller.queue=1"]), &asks);
    assert_eq!(found, [124, 224]);
    assert_eq!(system.channels[0].counts.held, [100_000, 0]);
    let (found, system) = serve(&memory(&["controller.queue=1", "controller.place_until=bank"]), &asks);
    assert_eq!(found, [124, 128]);
    assert_eq!(system.channels[0].counts.held, [0, 0]);
}

/// A queue of one. The bank writes to its cells until 424; the read of its row is chosen when the write's column command is out (100), and the place is the
/// third request's, whose bank is free: 100 + 124. Else that waits for the read to have the bank: 424 + 124.
#[test]
fn a_bank_is_given_away_ahead() {
    let asks = [write(0, 0, 1, 0), read(0, 0, 1, 1), read(0, 1, 1, 0)];
    let early = ["controller.queue=1", "controller.place_until=bank"];
    assert_eq!(
        times(&memory(&[&early[..], &["controller.look_ahead=true"]].concat()), &asks),
        [424, 448, 224]
    );
    assert_eq!(times(&memory(&early), &asks), [424, 448, 548]);
}
