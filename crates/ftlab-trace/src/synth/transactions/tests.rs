//! Clients on a drive that takes a millisecond for everything, by hand, and on one that takes any time.

use ftlab_core::Stream;
use rustc_hash::FxHashMap;

use super::locks::Mode;
use super::mixes::{Access, Lock, Mix};
use super::*;
use crate::synth;

const MS: u64 = 1_000_000;

/// Every client's transactions, in their order; then nothing but page 0.
struct Script(Vec<Vec<Vec<Access>>>);

impl Mix for Script {
    fn kinds(&self) -> &'static [&'static str] {
        &["written"]
    }

    fn draw(&mut self, client: u32, _: &mut Stream, accesses: &mut Vec<Access>) -> usize {
        accesses.extend(self.0[client as usize].remove(0));
        0
    }
}

fn clients(script: Vec<Vec<Vec<Access>>>, pool_pages: u32, policy: &str) -> Clients {
    computing(script, pool_pages, policy, 0)
}

fn computing(script: Vec<Vec<Vec<Access>>>, pool_pages: u32, policy: &str, compute_ns: u64) -> Clients {
    let shape = Shape {
        clients: script.len() as u32,
        think_ns: 0,
        compute_ns,
        timeout_ns: 10 * MS,
        page_bytes: 8192,
        pool_pages,
        seed: 1,
    };
    let policy = PolicySpec::parse(policy).unwrap();
    let policy = pool::catalogue()
        .build(&policy, &mut pool::Setup { pages: pool_pages })
        .unwrap();
    let transactions = script.iter().map(Vec::len).sum::<usize>() as u64;
    let mut clients = Clients::new(shape, Box::new(Script(script)), policy);
    clients.begin(transactions);
    clients
}

/// Runs to the end on a drive that serves every request in so many nanoseconds. Returns the requests, as time in ms and first letter
/// and page, and when it was over.
fn run(clients: &mut Clients, mut took: impl FnMut() -> u64) -> (Vec<(u64, char, u64)>, u64) {
    let (mut log, mut now) = (Vec::new(), 0);
    // By time of completion and tag; tags are the number of the request.
    let mut under_way: Vec<(u64, u64, u64)> = Vec::new();
    loop {
        let next = clients.next_time(now);
        if clients.are_done() {
            return (log, now);
        }
        if next == Some(now) {
            let request = clients.take().unwrap();
            let (tag, page) = (log.len() as u64, request.offset / 8192);
            assert!(
                under_way.iter().all(|&(.., other)| other != page),
                "two requests for page {page}"
            );
            under_way.push((now + took(), tag, page));
            log.push((now / MS, if request.op == OpKind::Read { 'r' } else { 'w' }, page));
            clients.issued(tag, request.client, now);
            continue;
        }
        under_way.sort_unstable();
        let done = under_way.first().map(|&(time, ..)| time);
        let Some(time) = done.into_iter().chain(next).min() else {
            return (log, now);
        };
        now = time;
        if done == Some(time) {
            let (_, tag, _) = under_way.remove(0);
            clients.completed(tag, now);
        }
    }
}

fn responses_ms(clients: &Clients) -> Vec<u64> {
    clients.report.responses.iter().map(|ns| ns / MS).collect()
}

/// One page of room. Page 1 is read and changed; page 2 needs the room, so page 1 is written first; page 1 again finds page 2 clean.
#[test]
fn a_dirty_page_is_written_before_its_room_is_used() {
    let script = vec![vec![
        vec![Access::change(1)],
        vec![Access::read(2, Lock::Shared)],
        vec![Access::read(1, Lock::Shared), Access::change(1)],
    ]];
    let mut clients = clients(script, 1, "lru");
    let (log, now) = run(&mut clients, || MS);
    assert_eq!(log, [(0, 'r', 1), (1, 'w', 1), (2, 'r', 2), (3, 'r', 1)]);
    assert_eq!((responses_ms(&clients), now), (vec![1, 2, 1], 4 * MS));
    let report = &clients.report;
    assert_eq!(
        (report.accesses, report.hits, report.reads, report.writes),
        (4, 1, 3, 1)
    );
}

/// Two clients want the same page: the second waits for the lock, and then finds the page. Without locks it waits for the read.
#[test]
fn who_waits_for_a_lock_or_for_a_read() {
    for (lock, waits) in [(Lock::Exclusive, 1), (Lock::Shared, 0), (Lock::None, 0)] {
        let wants = vec![vec![Access::read(5, lock)]];
        let mut clients = clients(vec![wants.clone(), wants], 2, "lru");
        let (log, _) = run(&mut clients, || MS);
        assert_eq!(log, [(0, 'r', 5)]);
        assert_eq!(responses_ms(&clients), [1, 1]);
        assert_eq!((clients.report.lock_waits, clients.report.restarts), (waits, 0));
    }
}

/// Each has what the other wants. Both have waited since 1 ms; at 11 ms the first gives up, which lets the second commit, and then finds
/// everything in the pool.
#[test]
fn a_deadlock_ends_by_the_time_out() {
    let both = |first, second| vec![vec![Access::change(first), Access::change(second)]];
    let mut clients = clients(vec![both(1, 2), both(2, 1)], 4, "lru");
    let (log, now) = run(&mut clients, || MS);
    assert_eq!(log, [(0, 'r', 1), (0, 'r', 2)]);
    assert_eq!((responses_ms(&clients), now), (vec![11, 11], 11 * MS));
    assert_eq!(clients.report.restarts, 1);
    // Each has waited once, for 10 ms: when the restarted client goes on, the other has committed.
    assert_eq!(
        (clients.report.lock_waits, clients.report.lock_wait_ns),
        (2, u128::from(20 * MS))
    );
}

/// Two pages, a millisecond each to be read and two to be worked on: the second client finds the first page when it has its lock.
#[test]
fn work_on_pages_takes_time() {
    let wants = vec![vec![Access::change(5), Access::change(6)]];
    let mut clients = computing(vec![wants.clone(), wants], 2, "lru", 2 * MS);
    let (log, now) = run(&mut clients, || MS);
    assert_eq!(log, [(0, 'r', 5), (3, 'r', 6)]);
    assert_eq!((responses_ms(&clients), now), (vec![6, 10], 10 * MS));
}

/// 400 clients that think for 100 ms on a drive that takes 1 ms: 400 / (100 ms + response), from the start to the last commit, though it
/// comes after no more than two rounds of them all.
#[test]
fn throughput_is_clients_by_thinking_and_response() {
    let text = "transactions:mix=tm1,clients=400,pool=400,transactions=8000,think=100ms,seed=3";
    for commits in [800, 8000] {
        let mut generator = synth::parse(&text.replace("8000", &commits.to_string()), 1 << 30, 4096, 1).unwrap();
        let transactions = generator.transactions_mut().unwrap();
        transactions.start();
        let (_, ended_ns) = run(&mut transactions.clients, || MS);
        let report = transactions.report();
        let response_s = report.responses.iter().sum::<u64>() as f64 / 1e9 / commits as f64;
        let law = 400.0 / (0.1 + response_s);
        let found = report.committed() as f64 / (ended_ns as f64 / 1e9);
        let off = if commits == 800 { 0.1 } else { 0.04 };
        assert_eq!(report.committed(), commits);
        assert!((found / law - 1.0).abs() < off, "{found} a second, {law} by the law");
    }
}

/// A page that is new is not read, and is written when it leaves.
#[test]
fn new_pages_are_not_read() {
    let new = |page| Access {
        is_new: true,
        ..Access::change(page)
    };
    let mut clients = clients(vec![vec![vec![new(1)], vec![new(2)]]], 1, "lru");
    let (log, _) = run(&mut clients, || MS);
    assert_eq!(log, [(0, 'w', 1)]);
    assert_eq!(responses_ms(&clients), [0, 1]);
}

/// Whatever mix, policy and drive: the pool never holds more than it may, no page is read while what left the pool of it is not written,
/// nobody is left with a lock, and every transaction commits once.
#[test]
fn on_any_drive_every_transaction_commits() {
    for (case, mix) in ["tpcb", "tm1", "tpcc"].into_iter().cycle().take(12).enumerate() {
        let policy = ["lru", "cflru", "cflru_e"][case / 3 % 3];
        let seed = case as u64;
        let text = format!(
            "transactions:mix={mix},policy={policy},clients=7,pool=40,transactions=150,warm=20,seed={seed},timeout=3ms,think={case}us,compute={}us",
            case % 2 * 50
        );
        let mut generator = synth::parse(&text, 256 << 20, 4096, 1).unwrap();
        let transactions = generator.transactions_mut().unwrap();
        transactions.start();
        let mut random = Stream::new(seed, "drive");
        let mut took = || random.below(4) * random.below(MS);
        let (log, _) = run(&mut transactions.clients, &mut took);
        let report = transactions.report();
        assert_eq!(report.committed(), 150, "{text}");
        assert_eq!(report.kinds.iter().map(|&(_, count, _)| count).sum::<u64>(), 150);
        assert_eq!(report.reads + report.writes, log.len() as u64);
        transactions.clients.rest();
    }
}

/// Locks against a table that is searched from end to end: nobody holds a page beside one who has it alone.
#[test]
fn locks_exclude_each_other() {
    let mut random = Stream::new(3, "locks");
    let mut locks = locks::Locks::new(6);
    let mut held: FxHashMap<u32, Vec<(u32, Mode)>> = FxHashMap::default();
    let mut waits: Vec<Option<(u32, Mode)>> = vec![None; 6];
    for _ in 0..20_000 {
        let client = random.below(6) as u32;
        if random.below(4) == 0 {
            let mut granted = Vec::new();
            locks.release(client, &mut granted);
            waits[client as usize] = None;
            held.values_mut().for_each(|of| of.retain(|&(who, _)| who != client));
            for who in granted {
                let (page, mode) = waits[who as usize].take().expect("only who waits is given a lock");
                let of = held.entry(page).or_default();
                of.retain(|&(other, _)| other != who);
                of.push((who, mode));
            }
        } else if waits[client as usize].is_none() {
            let page = random.below(5) as u32;
            let mode = if random.below(2) == 0 {
                Mode::Shared
            } else {
                Mode::Exclusive
            };
            let of = held.entry(page).or_default();
            if locks.ask(client, page, mode) {
                let own = of.iter().position(|&(who, _)| who == client);
                let had = own.map(|at| of.remove(at).1);
                let has = if had == Some(Mode::Exclusive) {
                    Mode::Exclusive
                } else {
                    mode
                };
                of.push((client, has));
            } else {
                waits[client as usize] = Some((page, mode));
            }
        }
        for (page, of) in &held {
            let alone = of.iter().any(|&(_, mode)| mode == Mode::Exclusive);
            assert!(!alone || of.len() == 1, "page {page}: {of:?}");
        }
        // Somebody can always go on, unless all wait for each other: then whoever gives up lets others in.
        for (who, wait) in waits.iter().enumerate() {
            let Some((page, _)) = wait else { continue };
            assert!(
                held[page].iter().any(|&(other, _)| other as usize != who),
                "{who} waits for nobody"
            );
        }
    }
}

#[test]
fn batches_repeat_and_hold_whole_pages() {
    let drawn = |seed: u64| {
        let text = format!("transactions:mix=tpcc,transactions=200,seed={seed}");
        let mut generator = synth::parse(&text, 1 << 30, 4096, 1).unwrap();
        let (mut all, mut batch) = (Vec::new(), Batch::default());
        loop {
            ftlab_core::Source::next_batch(&mut generator, &mut batch).unwrap();
            if batch.is_empty() {
                break;
            }
            all.extend((0..batch.len()).map(|i| (batch.op[i], batch.offset[i], batch.length[i], batch.time_ns[i])));
        }
        assert_eq!(generator.transactions().unwrap().report().committed(), 200);
        all
    };
    let first = drawn(1);
    assert!(first.len() > 1000 && first == drawn(1) && first != drawn(2));
    assert!(
        first
            .iter()
            .all(|&(_, offset, length, _)| offset % 8192 == 0 && length == 8192)
    );
    assert!(first.iter().all(|&(_, offset, ..)| offset < (6 << 30) / 10));
}

#[test]
fn mistakes_are_one_sentence() {
    let refused = |keys: &str, expected: &str| {
        let error = synth::parse(&format!("transactions:{keys}"), 1 << 30, 4096, 1)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{keys}: {error}");
    };
    refused("clients=0", "`clients` = 0: expected 1 to 65536");
    refused("mix=tpcd", "unknown mix policy `tpcd`");
    refused("policy=clock", "unknown pool policy `clock`");
    refused(
        "policy=cflru_e:window=0.25/deadline_us=0",
        "deadline_us = 0, expected 0.001 to 1e9",
    );
    refused("pool=9", "`pool` = 9: expected at least a page for each of 10 clients");
    refused("pool=100%", "fewer than the 78643 of the database");
    refused("span=1KiB", "`span` = 1 KiB: expected more than 10 pages of 8 KiB");
    refused("pool=x%", "a number of pages, or a share such as 1%");
    refused("page=3KiB", "a power of two");
    refused("timeout=0ns", "expected 1000ns to 1h");
    refused("think=2h", "expected 0ns to 1h");
    refused(
        "span=1MiB,pool=64",
        "mix `tpcb`: a database of 1 MiB has no room for one branch",
    );
    refused("qd=4", "unknown key of `transactions`");
    refused("transactions=0", "expected 1 to 4294967296");
}
