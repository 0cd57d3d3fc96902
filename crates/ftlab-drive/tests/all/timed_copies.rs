//! Copies issued at once are carried out, and reported, as copies issued one by one.

use crate::support::*;
use ftlab_core::{RuId, Stream};
use ftlab_drive::timed::Timed;
use ftlab_flash::Timing;
use ftlab_ftl::{Backend, Cause, OpId, PageCopies};

const PAGES: u32 = 12;
const BLOCKS: u32 = 40;
const KB4: u32 = 4096;

/// How copies are issued.
type Issue = fn(&mut Timed, &PageCopies<'_>) -> OpId;

fn at_once(timed: &mut Timed, copies: &PageCopies<'_>) -> OpId {
    timed.copy(copies)
}

fn one_by_one(timed: &mut Timed, copies: &PageCopies<'_>) -> OpId {
    let mut program = timed.issue(copies.program_of(0), &[copies.read]);
    for number in 1..copies.from.len() {
        let read = timed.issue(copies.read_of(number), &[]);
        program = timed.issue(copies.program_of(number), &[read]);
    }
    program
}

/// Collections of random blocks into each die's open block, several at an instant, also of blocks that are still being programmed,
/// among reads of the host and erases that wait for the copies.
fn collections(issue: Issue, timing: &Timing, policy: &str, seed: u64) -> Vec<Report> {
    let layout = layout([2, 2, 1, 1], BLOCKS, PAGES, KB4);
    let mut timed = timed(&layout, timing, policy);
    let log = Log::default();
    timed.observe(Some(Box::new(log.clone()))).unwrap();
    let mut draw = Stream::new(seed, "copies");
    for plane in 0..4 {
        for block in 0..BLOCKS {
            let pages = if block < BLOCKS / 2 { PAGES } else { 0 };
            timed.set_filled(RuId(plane * BLOCKS + block), pages);
        }
    }
    // The next block to collect of each plane and where its copies go.
    let mut victims = [0; 4];
    let mut open = [(BLOCKS / 2, 0); 4];
    for _ in 0..120 {
        let plane = draw.below(4) as u32;
        let (victim, (block, next)) = (victims[plane as usize], open[plane as usize]);
        if victim >= block || block + 2 > BLOCKS {
            continue;
        }
        let host = page(&layout, plane, victim, draw.below(u64::from(PAGES)) as u32);
        timed.issue(noted(read(host, KB4), 1), &[]);
        let valid: Vec<u32> = (0..PAGES).filter(|_| draw.below(3) > 0).collect();
        let mut from: Vec<u32> = valid.iter().map(|&n| page(&layout, plane, victim, n)).collect();
        let mut before = Vec::new();
        let mut to = (block, next);
        while !from.is_empty() {
            if to.1 == PAGES {
                to = (to.0 + 1, 0);
            }
            let rest = from.split_off(from.len().min((PAGES - to.1) as usize));
            let mut copies = PageCopies {
                from: &from,
                read: OpId::DONE,
                to: page(&layout, plane, to.0, to.1),
                bytes: KB4,
                cause: Cause::Gc,
            };
            copies.read = timed.issue(copies.read_of(0), &[]);
            before.push(issue(&mut timed, &copies));
            to.1 += from.len() as u32;
            from = rest;
        }
        (victims[plane as usize], open[plane as usize]) = (victim + 1, to);
        timed.issue(erase(page(&layout, plane, victim, 0)), &before);
        if draw.below(3) > 0 {
            let until = timed.now_ns() + draw.below(400_000);
            while timed.pop(until).is_some() {}
        }
    }
    notices(&mut timed);
    let reports = log.0.lock().unwrap();
    reports.clone()
}

#[test]
fn copies_at_once_are_copies_one_by_one() {
    let slc = Timing {
        multi_plane: false,
        ..mqsim_timing()
    };
    let decoded = Timing {
        ecc_ns: 700,
        read_ns: vec![40_000, 60_000],
        program_ns: vec![300_000, 700_000],
        ..slc.clone()
    };
    for (timing, policy) in [
        (&slc, "out_of_order"),
        (&decoded, "fcfs"),
        (&slc, "lockstep"),
        (&mqsim_timing(), "fcfs"),
    ] {
        for seed in 0..20 {
            let (once, each) = (
                collections(at_once, timing, policy, seed),
                collections(one_by_one, timing, policy, seed),
            );
            assert!(each.len() > 500, "only {} reports", each.len());
            assert_eq!(once, each, "{policy}, seed {seed}");
        }
    }
}
