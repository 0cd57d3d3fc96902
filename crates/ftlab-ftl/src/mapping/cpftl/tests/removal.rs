//! When pages go, and when a set switches itself off.

use ftlab_core::Stream;

use super::{QUIET, count, harness, reads};
use crate::mapping::testing::Harness;

#[test]
fn a_page_that_brings_nothing_is_given_up() {
    let spec = format!("directory=search,dei=off,removal=regular,min_loads=4,{QUIET},pairs=3-100");
    let mut h = harness(&spec, 1, 1, 22);
    h.read(60);
    // Two entries: 3 and what it brings along push each other out with what is read in between; 100 is never used.
    for round in 0..4 {
        let words = h.read(3);
        assert_eq!(words, if round < 3 { "probe 0" } else { "probe 0 drop 0" });
        h.read(150);
        h.read(200);
    }
    assert_eq!(
        (h.read(3).as_str(), h.figure("corr_removed_by_quality")),
        ("load 0", 1.0)
    );
    // One that is used stays; so does a useless one where removal is off.
    for (rule, used) in [("regular", true), ("off", false)] {
        let mut h = harness(&spec.replace("regular", rule), 1, 1, 22);
        h.read(60);
        for _ in 0..20 {
            assert_eq!(h.read(3), "probe 0");
            if used {
                assert_eq!(h.read(100), "");
            }
            h.read(150);
            h.read(200);
        }
    }
}

/// A page of 3 and 100 that brings 100 for every read of 3, which is used twice before it leaves, three loads running. The regular
/// loads of 150 and 200 in between are hit `again` times each.
#[test]
fn as_published_every_hit_counts_and_the_clean_cache_is_the_measure() {
    for (again, stays) in [(1, true), (3, false)] {
        // A window is a round: two regular loads, and hits on each of what they brought.
        let window = 3 + 2 * (1 + again);
        let rule = format!("removal=regular,min_loads=3,removal_window={window}");
        let spec = format!("directory=search,dei=off,{rule},{QUIET},pairs=3-100");
        let mut h = harness(&spec, 2, 2, 0);
        h.read(60);
        let mut last = String::new();
        for _ in 0..4 {
            last = h.read(3);
            if last.contains("probe") {
                [100, 100].iter().for_each(|&key| assert_eq!(h.read(key), ""));
            }
            for key in [150, 200] {
                h.read(key);
                (0..again).for_each(|_| assert_eq!(h.read(key), ""));
            }
        }
        // At the third load there have been 4 hits; 1 or 3 a load are 3 or 9.
        assert_eq!(last, if stays { "probe 0" } else { "load 0" });
        assert_eq!(h.figure("hits_correlated"), if stays { 8.0 } else { 6.0 });
    }
}

#[test]
fn a_set_that_does_not_pay_switches_itself_off() {
    // 64 pairs that are never read, in two pages, whose filters take 262 bytes of 700; first one is tried, and when there is something to
    // lose again the other. What one costs is its program and the memory: of 88 entries that are read at random the cache then holds fewer.
    let pairs: Vec<String> = (0..64).map(|i| format!("{}-{}", 32 * i, 2049 + 32 * i)).collect();
    let run = |more: &str| {
        let mut h = Harness::new(&format!("cpftl:dei=off,directory=0.5,{QUIET}{more}"), 4096, 512, 700);
        let mut random = Stream::new(4, "reads");
        let cost: u64 = (0..40_000)
            .map(|_| reads(&h.read(7 + 32 * random.below(88) as u32)))
            .sum();
        let figures = ["corr_programs", "corr_pages_live", "corr_on_share"].map(|name| h.figure(name));
        (cost as f64, figures)
    };
    let with = |rule: &str| run(&format!(",removal={rule},pairs={}", pairs.join("/")));
    let (none, _) = run("");
    let (kept, [written, live, on]) = with("off");
    assert!(written == 2.0 && live == 2.0 && on > 0.999, "{written} {live} {on}");
    assert!(kept > 2.0 * none, "{kept} {none}");
    let (judged, [written, live, on]) = with("balance");
    assert!(written == 2.0 && live == 0.0, "{written} {live}");
    // What the memory costs is seen before the next reckoning by look-ups.
    assert!(on > 0.0 && on < 0.01, "{on}");
    // Until both have been tried the rule keeps 4 to 26 of 700 bytes.
    assert!(judged < 1.015 * none, "{judged} {none}");
}

#[test]
fn a_set_that_pays_is_tried_page_after_page() {
    // As the planted pairs above, but 256 of them in 64 pages of four.
    let pair = |i: u32| (8 * i, 2048 + 8 * (13 * i % 256) + 1);
    let pairs: Vec<String> = (0..256).map(pair).map(|(a, b)| format!("{a}-{b}")).collect();
    let spec = format!("cpftl:dei=off,directory=search,{QUIET},pairs={}", pairs.join("/"));
    let mut h = Harness::new(&spec, 4096, 64, 600);
    assert_eq!(count(&h.read(4095), "write"), 1);
    let mut live = Vec::new();
    for _ in 0..40 {
        for (a, b) in (0..256).map(pair) {
            h.read(a);
            h.read(b);
        }
        live.push(h.figure("corr_pages_live"));
    }
    assert!(
        live.is_sorted() && live[1] < 8.0 && live.last() == Some(&64.0),
        "{live:?}"
    );
    assert!(h.figure("corr_on_share") > 0.999);
}

/// Loads leave something to lose long before the set is due.
#[test]
fn nothing_is_tried_before_the_start() {
    let spec = format!("cpftl:directory=search,start=4000,{QUIET},pairs=3-100/5-200/7-130/9-140/11-250");
    let mut h = Harness::new(&spec, 256, 64, 100);
    (0..3999).for_each(|i| assert!(!h.read(16 * (i % 16)).contains("write")));
    assert!(h.read(0).contains("write 0 write 1"));
}
