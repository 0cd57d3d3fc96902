//! What is looked at before a trial, what that takes of the memory, and what a page leaves behind.

use ftlab_core::Stream;

use super::{QUIET, count, reads};
use crate::mapping::testing::Harness;

fn bytes(h: &Harness, names: &[&str]) -> u64 {
    let memory = h.policy.memory();
    let named = memory.iter().filter(|(name, _)| names.contains(name));
    named.map(|(_, bytes)| bytes).sum()
}

/// All that `ftl.map_cache` bounds.
fn all_bytes(h: &Harness) -> u64 {
    bytes(h, &["map_cache", "prediction_directory", "evicted_keys", "balance"])
}

/// Pairs of LPNs that nothing reads, among those of the loops; in pages of four pairs.
fn useless() -> String {
    let pairs: Vec<String> = (0..40).map(|i| format!("{}-{}", 160 * i + 1, 160 * i + 81)).collect();
    pairs.join("/")
}

/// Over entries that lie 16 apart, each in a node of its own with 22 bytes: 5 KiB hold 232 of them.
fn of_5_kib(params: &str) -> Harness {
    of(params, 5120)
}

fn of(params: &str, cache: u64) -> Harness {
    let mut h = Harness::new(&format!("cpftl:{QUIET},{params}"), 8192, 64, cache);
    h.checked = false;
    h
}

/// A loop of 232 entries just fits the whole memory, and so it must stay, also where writes have saved enough to lose some.
#[test]
fn a_loop_that_just_fits_keeps_its_memory() {
    for written in [false, true] {
        // 232 entries of 22 bytes, and the 4 of a rule that waits.
        let mut h = of(&format!("page_lpns=8,pairs={}", useless()), 5108);
        let mut costs = 0;
        for round in 0..60 {
            costs = 0;
            for entry in 0..232 {
                let words = match written && round == 0 {
                    true => h.write(16 * entry),
                    false => h.read(16 * entry),
                };
                costs += reads(&words);
                assert!(all_bytes(&h) <= 5108, "{:?}", h.policy.memory());
            }
        }
        assert_eq!(costs, 0, "all of the loop is there ({written})");
        let rest = bytes(&h, &["balance"]);
        assert!(rest <= 4, "{rest} bytes with nothing given up ({written})");
    }
}

/// A loop with a few entries that come once in between, and pages that take the memory of 40: what they would push out is used again,
/// and nothing is tried, though there would be enough to lose for a page alone.
#[test]
fn no_page_is_tried_while_the_tail_is_used() {
    let mut h = of_5_kib(&format!(
        "page_lpns=8,directory=0.5,filter_bits=6400,pairs={}",
        useless()
    ));
    let round = |h: &mut Harness, round: u32| {
        (0..215).for_each(|entry| drop(h.read(16 * entry)));
        (0..5).for_each(|once| drop(h.read(16 * (300 + (5 * round + once) % 200))));
    };
    (0..4).for_each(|number| round(&mut h, number));
    let tried = h.figure("corr_programs");
    (4..700).for_each(|number| round(&mut h, number));
    assert_eq!(h.figure("corr_programs"), tried);
}

/// Of more entries than fit none of the tail is used, and trials go on.
#[test]
fn pages_are_tried_where_the_tail_is_not_used() {
    let mut h = of_5_kib(&format!("page_lpns=8,pairs={}", useless()));
    let mut random = Stream::new(7, "reads");
    let (mut looked, mut most) = (0, 0);
    for step in 0..60_000 {
        // Half of the reads go to a few entries, the others anywhere.
        let entry = random.below(if step % 2 == 0 { 20 } else { 512 });
        h.read(16 * entry as u32);
        assert!(all_bytes(&h) <= 5120, "{:?}", h.policy.memory());
        looked += u64::from(h.figure("corr_pages_live") == 0.0 && bytes(&h, &["balance"]) == 18);
        most = most.max(bytes(&h, &["balance"]));
    }
    assert!(looked > 0, "what the look takes is charged: 4 + 4 + 10");
    assert!((18..=28).contains(&most), "{most}");
    assert!(h.figure("corr_programs") > 2.0, "{}", h.figure("corr_programs"));
}

/// Once every page has been tried and none is left the rule wants no memory, with `renew` it does.
#[test]
fn a_rule_that_will_try_nothing_more_keeps_nothing() {
    for (more, kept) in [("", false), (",renew=1000000", true)] {
        let mut h = of_5_kib(&format!("page_lpns=2,pairs=0-9000/160-9001{more}"));
        assert_eq!(bytes(&h, &["balance"]), 0, "LPNs beyond the drive are no set");
        let mut h2 = of_5_kib(&format!("page_lpns=2,pairs=0-81/160-241{more}"));
        assert!(bytes(&h2, &["balance"]) > 0);
        let mut random = Stream::new(7, "reads");
        for _ in 0..60_000 {
            h2.read(16 * random.below(512) as u32);
        }
        assert_eq!(h2.figure("corr_pages_live"), 0.0);
        assert_eq!(bytes(&h2, &["balance"]) > 0, kept, "{:?}", h2.policy.memory());
        h.read(0);
    }
}

/// The cache fills with pages there: those that have saved less than their memory may cost go at that moment.
#[test]
fn when_the_cache_is_full_for_the_first_time_pages_go_that_have_not_earned_their_memory() {
    // A page of 16 + 8 bytes and more takes the memory of two entries or so: five saved are more than that.
    for (saved, stays) in [(0, false), (8, true)] {
        let pairs: Vec<String> = (0..4).map(|i| format!("{}-{}", 4096 + 32 * i, 6000 + 32 * i)).collect();
        let mut h = of_5_kib(&format!("page_lpns=8,pairs={}", pairs.join("/")));
        h.read(0);
        assert_eq!(h.figure("corr_pages_live"), 1.0);
        // A read of the page for each pair, a load saved; and one by what it brought.
        for i in 0..saved / 2 {
            h.read(4096 + 32 * i);
            h.read(6000 + 32 * i);
        }
        let mut dropped_at = None;
        for entry in 1..400 {
            let words = h.read(16 * entry);
            assert!(all_bytes(&h) <= 5120);
            if count(&words, "drop") > 0 && dropped_at.is_none() {
                dropped_at = Some(entry);
            }
            if bytes(&h, &["map_cache"]) + 22 + 100 > 5120 {
                break;
            }
        }
        // It goes as the last entries come in, not before.
        (400..410).for_each(|entry| drop(h.read(16 * entry)));
        assert_eq!(h.figure("corr_pages_live") > 0.0, stays, "{saved} {dropped_at:?}");
        assert!(dropped_at.is_none_or(|at| at > 150), "{dropped_at:?}");
    }
}

/// A page that has gone had brought entries which nothing used: they leave before any other, and one that has changed does not.
#[test]
fn what_a_page_that_has_gone_brought_leaves_first() {
    // Seven others come with the key.
    let members: Vec<u32> = (1..8).map(|i| 4000 + 16 * i).collect();
    let pairs = format!(
        "4000-{}",
        members.iter().map(u32::to_string).collect::<Vec<_>>().join("-")
    );
    let mut h = of_5_kib(&format!("page_lpns=8,load_limit=1,write_check=directory,pairs={pairs}"));
    h.read(0);
    assert_eq!(count(&h.read(4000), "probe"), 1);
    let there = |h: &Harness| members.iter().filter(|&&key| h.policy.is_cached(key)).count();
    assert_eq!(there(&h), 7);
    // A collection changes one, and with that the page is stale.
    h.moved(&[members[0]]);
    assert_eq!((h.figure("corr_pages_live"), there(&h)), (0.0, 7));
    let others = |i: u32| 16 * (i + 1);
    let mut i = 0;
    while bytes(&h, &["map_cache"]) + 22 <= 5120 - 4 - bytes(&h, &["balance"]) {
        h.read(others(i));
        i += 1;
    }
    let all: Vec<u32> = (0..i).map(others).filter(|key| *key < 4000).collect();
    assert_eq!(there(&h), 7, "as long as there is room they stay");
    h.read(8000);
    assert_eq!(there(&h), 1, "the one that has changed");
    assert!(h.policy.is_cached(members[0]));
    assert!(all.iter().all(|&key| h.policy.is_cached(key)), "nothing else has left");
}

/// Reads of flash of a loop over 2048 entries, four translation pages, in which groups of seven neighbours are read first.
fn reads_of_a_loop(spec: &str, cache: u64) -> u64 {
    let mut h = Harness::new(spec, 2048, 2048, cache);
    h.checked = false;
    let round = |h: &mut Harness| (0..2048).map(|key| reads(&h.read(key))).sum::<u64>();
    (0..20).map(|_| round(&mut h)).sum()
}

/// A page that answers much and makes a loop fit worse that is a little longer than the cache: entries come back a round after they
/// left, which no evicted key tells, but those that are still there are used just before they would leave.
#[test]
fn a_page_pays_for_what_a_loop_still_finds() {
    let groups: Vec<String> = (0..16)
        .map(|group| {
            [7, 9, 10, 11, 12, 13, 14]
                .map(|at| (128 * group + at).to_string())
                .join("-")
        })
        .collect();
    let spec = format!("cpftl:pairs={}", groups.join("/"));
    for cache in [11_400, 11_700, 12_000] {
        let (base, with) = (reads_of_a_loop("tpftl", cache), reads_of_a_loop(&spec, cache));
        assert!(with as f64 <= 1.01 * base as f64, "{cache} bytes: {with} for {base}");
    }
}
