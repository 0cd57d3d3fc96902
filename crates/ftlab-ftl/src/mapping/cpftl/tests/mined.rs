//! Sets that are mined during the run.

use ftlab_core::Stream;

use super::{QUIET, harness, reads};
use crate::mapping::testing::Harness;

#[test]
fn pairs_of_a_full_buffer_are_hits_in_the_next() {
    let spec = format!("directory=search,dei=off,online=8,window=4,online_pages=2,{QUIET}");
    let mut h = harness(&spec, 2, 2, 30);
    assert_eq!((h.policy.own_pages(), h.figure("corr_pages_live")), (2, 0.0));
    // Two windows of four reads. 100 comes after 3 in both; nothing else is in both.
    for key in [3, 100, 50, 60, 3, 100, 70] {
        assert!(!h.read(key).contains("write"));
    }
    assert_eq!(h.read(80), "load 5 write 0");
    assert_eq!((h.figure("mining_runs"), h.figure("mining_pairs")), (1.0, 1.0));
    assert!(h.figure("mining_peak_bytes") > 0.0);
    let memory = h.policy.memory();
    assert!(memory.contains(&("mining_buffer", 32)), "{memory:?}");
    assert_eq!((h.read(3), h.read(100)), ("probe 0".into(), "".into()));
    // In the next buffer it is 200 after 5, and the old page is given up for it.
    for key in [5, 200, 60, 5, 200] {
        assert!(!h.read(key).contains("write"));
    }
    assert_eq!(h.read(80), "load 5 drop 0 write 0");
    assert_eq!(h.figure("corr_removed_by_mining"), 1.0);
    assert_eq!((h.read(5), h.read(200)), ("probe 0".into(), "".into()));
    assert_eq!(h.read(100), "load 6");
    // Writes are not mined: the buffer is full with the fifth of these reads. No two pages come together twice in it.
    assert_eq!(h.write(7), "load 0");
    for key in [90, 110, 130, 150] {
        assert!(!h.read(key).contains("drop"));
    }
    assert_eq!(
        (h.read(170).as_str(), h.figure("mining_pairs")),
        ("load 10 drop 0", 0.0)
    );
}

#[test]
fn what_an_earlier_set_brought_is_no_merit_of_the_next() {
    let mining = "online=8,window=4,online_pages=2,min_loads=2,removal=0.4";
    let mut h = harness(&format!("directory=search,dei=off,{mining},{QUIET}"), 4, 4, 0);
    // As above: 100 after 3, then 200 after 5. The last of these reads brings 100 and, the buffer being full, the new page 0.
    for key in [3, 100, 50, 60, 3, 100, 70, 80, 5, 200, 60, 90, 5, 200, 70] {
        h.read(key);
    }
    assert_eq!(h.read(3), "probe 0 drop 0 write 0");
    // The new page is loaded once; what is used is an entry of the old one.
    assert_eq!((h.read(5), h.read(100)), ("probe 0".into(), "".into()));
    assert_eq!((h.figure("preloaded_used"), h.figure("hits_correlated")), (1.0, 1.0));
    for key in [110, 120, 130, 140] {
        h.read(key);
    }
    // Two loads without a hit: it goes.
    assert_eq!(h.read(5), "probe 0 drop 0");
}

#[test]
fn what_was_mined_is_lost_with_the_power_and_mined_again() {
    let spec = format!("directory=search,dei=off,online=8,window=4,online_pages=2,{QUIET},pairs=9-90");
    let mut h = harness(&spec, 2, 2, 30);
    assert_eq!(h.read(60), "load 3 write 0");
    // What was given comes back, and the buffer is empty.
    h.policy.forget();
    assert_eq!(h.read(60), "load 3 write 0");
    for key in [3, 100, 50, 3, 100, 70] {
        h.read(key);
    }
    assert_eq!(h.figure("mining_runs"), 0.0);
    // 100 after 3 in both windows, the first of which began with 60.
    assert_eq!(h.read(80), "load 5 drop 0 write 0");
    // What was mined does not come back.
    h.policy.forget();
    assert!(!h.policy.is_live(0));
    for key in [3, 100, 50, 60, 3, 100, 70] {
        assert!(!h.read(key).contains("write"));
    }
    assert_eq!(h.read(80), "load 5 write 0");
}

#[test]
fn mining_during_the_run_follows_correlations_that_change() {
    // 256 pairs far apart and a cache for 45 entries; in the second phase each key has another partner. A pass reads all
    // pairs in an order of its own; a buffer has four passes.
    let pair = |phase: u32, i: u32| (8 * i, 2048 + 8 * ((13 * i + 31 * phase) % 256) + 1);
    let pairs: Vec<String> = (0..256).map(|i| pair(0, i)).map(|(a, b)| format!("{a}-{b}")).collect();
    let hit_ratios = |more: &str| {
        let mut h = Harness::new(&format!("cpftl:dei=off,directory=search,{more}"), 4096, 512, 1000);
        let mut random = Stream::new(5, "order");
        let buffers = (0..6).map(|buffer| {
            let before = h.hits().0;
            for _ in 0..4 {
                let mut order: Vec<u32> = (0..256).collect();
                (1..256)
                    .rev()
                    .for_each(|i| order.swap(i, random.below(i as u64 + 1) as usize));
                for (a, b) in order.into_iter().map(|i| pair(buffer / 3, i)) {
                    h.read(a);
                    h.read(b);
                }
            }
            (h.hits().0 - before) as f64 / 2048.0
        });
        buffers.collect::<Vec<f64>>()
    };
    // The bound is one half, and a little more where orders happen to read a pair twice in short time. The given set knows
    // the first phase alone; mining needs a buffer for each.
    let (given, online) = (
        hit_ratios(&format!("removal=regular,pairs={}", pairs.join("/"))),
        hit_ratios("online=2048,window=8,confidence=0.6,removal=regular"),
    );
    let high = |ratios: &[f64]| ratios.iter().all(|ratio| *ratio > 0.45);
    let low = |ratios: &[f64]| ratios.iter().all(|ratio| *ratio < 0.25);
    assert!(high(&given[..3]) && low(&given[3..]), "{given:?}");
    assert!(low(&online[..1]) && high(&online[1..3]), "{online:?}");
    assert!(low(&online[3..4]) && high(&online[4..]), "{online:?}");
}

#[test]
fn a_workload_without_correlations_costs_at_most_three_percent_more() {
    // Uniform reads, with and without writes and runs; the set holds 200 pairs that mean nothing.
    let mut random = Stream::new(3, "pairs");
    let pairs: Vec<String> = (0..200)
        .map(|_| format!("{}-{}", random.below(20_000), 20_000 + random.below(20_000)))
        .collect();
    for (share, runs) in [(0, 1), (3, 1), (0, 8), (3, 8)] {
        let mut costs = Vec::new();
        for spec in [
            "tpftl".to_owned(),
            "cpftl".to_owned(),
            format!("cpftl:pairs={}", pairs.join("/")),
        ] {
            let mut h = Harness::new(&spec, 40_000, 4096, 20_000);
            h.checked = false;
            let mut random = Stream::new(9, "uniform");
            let mut cost = 0;
            for _ in 0..40_000 {
                let key = random.below(40_000 - runs) as u32;
                let words = match random.below(10) < share {
                    true => h.write(key),
                    false => h.read_run(key, runs as u32),
                };
                cost += reads(&words);
            }
            costs.push(cost as f64);
        }
        let [base, none, junk] = costs[..] else { panic!("three") };
        assert!(
            none <= 1.03 * base && junk <= 1.03 * base,
            "writes {share}/10, runs {runs}: {} and {}",
            none / base,
            junk / base
        );
    }
}
