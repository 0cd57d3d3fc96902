//! LeaFTL by hand: what is learned, what it takes, and what a wrong prediction costs.

use super::super::testing::Harness;

/// 8192 keys, translation pages of 512 (2 groups).
fn harness(params: &str, bytes: u64) -> Harness {
    Harness::new(&format!("leaftl:{params}"), 8192, 4096, bytes)
}

/// 1024 keys, translation pages of 256 (one group): every access looks at all of them.
fn small(params: &str, bytes: u64) -> Harness {
    Harness::new(&format!("leaftl:{params}"), 1024, 2048, bytes)
}

#[test]
fn data_in_order_takes_8_bytes_for_256_units() {
    let mut h = harness("buffer=64", 100_000);
    for key in 0..8192 {
        h.read(key);
    }
    assert_eq!((h.figure("segments"), h.figure("accurate_segments")), (32.0, 32.0));
    assert_eq!(h.figure("bytes_per_mapped_unit"), 8.0 / 256.0);
    // 16 pages of 2 groups, with 4 bytes to find each group.
    assert_eq!(h.policy.memory()[0], ("map_cache", 32 * (8 + 4)));
    assert_eq!(h.hits(), (8192 - 16, 8192));
}

#[test]
fn written_data_is_served_from_the_buffer_until_it_is_learned() {
    let mut h = harness("buffer=100", 100_000);
    assert_eq!(h.write(0), "load 0");
    (1..99).for_each(|key| assert_eq!(h.write(key), ""));
    assert_eq!(h.figure("segments"), 2.0);
    // The hundredth fills it: the old run of group 0 is trimmed.
    assert_eq!(h.write(99), "");
    assert_eq!((h.figure("segments"), h.figure("levels_max")), (3.0, 1.0));
    assert_eq!(h.figure("learned_entries"), 512.0 + 100.0);
    // Backwards: one segment of slope -1, below which nothing is left of the last one.
    (0..100).rev().for_each(|key| drop(h.write(key)));
    assert_eq!((h.figure("segments"), h.figure("approximate_segments")), (3.0, 0.0));
}

#[test]
fn pages_of_segments_leave_by_least_recent_use_and_are_programmed_without_a_read() {
    // Room for the buffer and little more than a full page: a page in order takes 2 x (8 + 4).
    let mut h = harness("buffer=2", 16 + 4104);
    assert_eq!(h.write(0), "load 0");
    assert_eq!(h.write(2), "");
    // Every second of 512 keys alone: 256 segments and more, 2 levels.
    for key in (4..512).step_by(2) {
        h.write(key * 7 % 512);
    }
    for page in 1..16 {
        h.read(512 * page);
    }
    let before = h.figure("dirty_evictions");
    let mut charges = Vec::new();
    for key in 0..512u32 {
        charges.push(h.write(8191 - key * 379 % 8192));
    }
    assert!(h.figure("dirty_evictions") > before);
    assert!(charges.iter().any(|words| words.contains("store")));
    assert!(h.policy.memory()[0].1 <= 4104);
}

#[test]
fn what_is_not_in_memory_is_merged_into_its_page() {
    let mut h = harness("buffer=4", 32 + 4104);
    assert_eq!(h.moved(&[5, 700]), "");
    assert_eq!(h.moved(&[701, 1030, 1040]), "gc 0 gc 1 gc 2");
    // A collection of one unit merges one page, and what is more waits.
    assert_eq!(h.moved(&[2000, 3000, 4000]), "");
    assert_eq!(h.moved(&[5000]), "gc 3");
    assert_eq!(h.moved(&[6000]), "gc 5");
}

#[test]
fn a_wrong_prediction_costs_a_read_and_an_exact_one_none() {
    let mut h = harness("gamma=4,buffer=9", 100_000);
    // Three others lie in between: places 0, 1, 2, 6, 7, 8 from 8192 on, and no line rounds to these.
    let keys = [0, 1, 2, 600, 601, 602, 3, 4, 5];
    keys.iter().for_each(|&key| drop(h.write(key)));
    assert_eq!(h.figure("approximate_segments"), 1.0);
    let wrong = (0..6).filter(|&key| h.read(key).starts_with("spare")).count();
    assert_eq!(h.figure("approximate_reads"), 6.0);
    assert_eq!(h.figure("mispredictions"), wrong as f64);
    assert!(wrong > 0 && wrong < 6, "{wrong}");
    assert_eq!(h.read(601), "");
    // An overwrite asks for the old place.
    assert!(h.write(1).starts_with("spare"));
    let mut h = harness("gamma=4,buffer=9,check_writes=false", 100_000);
    keys.iter().for_each(|&key| drop(h.write(key)));
    assert_eq!(h.write(1), "");
}

#[test]
fn compaction_changes_no_answer_and_takes_bytes_away() {
    for gamma in [0, 1, 4, 16] {
        let mut plain = small(&format!("gamma={gamma},buffer=32"), 100_000);
        let mut often = small(&format!("gamma={gamma},buffer=32,compact=500"), 100_000);
        let mut random = ftlab_core::Stream::new(3, "leaftl");
        for _ in 0..200 {
            let (first, count) = (random.below(990) as u32, 1 + random.below(30) as u32);
            for key in first..first + count {
                // The harness holds every cached entry against the map.
                plain.write(key);
                often.write(key);
            }
        }
        assert!(often.figure("compacted_groups") > 0.0);
        let bytes = |h: &Harness| h.figure("bytes_per_mapped_unit");
        assert!(
            bytes(&often) < bytes(&plain),
            "{gamma}: {} {}",
            bytes(&often),
            bytes(&plain)
        );
    }
}

#[test]
fn random_writes_of_everything_take_no_more_than_a_segment_each() {
    let mut h = small("buffer=64", 8 * 64 + 3000);
    let mut random = ftlab_core::Stream::new(3, "leaftl");
    for _ in 0..20_000 {
        let key = random.below(1024) as u32;
        if random.below(4) == 0 {
            h.read(key);
        } else {
            h.write(key);
        }
    }
    let bytes = h.figure("bytes_per_mapped_unit");
    assert!((4.0..=8.0).contains(&bytes), "{bytes}");
    assert!(h.policy.memory()[0].1 <= 3000);
}
