//! Changed entries in the index of their own.

use super::{QUIET, harness};

#[test]
fn changed_entries_leave_by_translation_page() {
    // 100 bytes for entries, half of them for changed ones: two nodes and three entries.
    let mut h = harness(
        &format!("dei=on,after_write_back=read,dirty_share=0.5,write_miss=load,{QUIET}"),
        0,
        0,
        100,
    );
    assert_eq!(h.write(0), "load 0");
    assert_eq!(h.write(1), "load 0");
    assert_eq!(h.write(16), "load 1");
    assert_eq!(
        (h.figure("dirty_nodes"), h.policy.cached(0, 1)),
        (2.0, Some((257, true)))
    );
    // A read of a changed entry, so that it stays when its node goes; the node of 16 is now the least recent.
    assert_eq!(h.read(1), "");
    assert_eq!(h.write(32), "load 2 evict 1");
    assert_eq!(h.policy.cached(0, 16), None);
    assert_eq!(h.write(48), "load 3 evict 0");
    assert_eq!(
        (h.policy.cached(0, 0), h.policy.cached(0, 1)),
        (None, Some((257, false)))
    );
    assert_eq!(
        (h.figure("dirty_node_stores"), h.figure("dirty_entries_stored")),
        (2.0, 3.0)
    );
    assert_eq!(h.figure("hits_dirty"), 1.0);
    // Deferred, the write-back's read is the only one, and a write never misses.
    let mut h = harness(
        &format!("dei=on,after_write_back=read,dirty_share=0.5,{QUIET}"),
        0,
        0,
        100,
    );
    assert_eq!(
        (h.write(0), h.write(16), h.write(32)),
        ("".into(), "".into(), "evict 0".into())
    );
    let counts = h.policy.counts();
    assert_eq!(
        (
            counts.lookups,
            counts.hits,
            counts.deferred,
            h.figure("writes_deferred")
        ),
        (3, 0, 3, 3.0)
    );
    // A second write finds the entry; counting begins behind the others.
    h.policy.reset_counts();
    h.write(32);
    let counts = h.policy.counts();
    assert_eq!((counts.lookups, counts.hits, counts.deferred), (1, 1, 0));
    assert_eq!((h.figure("writes_deferred"), h.figure("hits_dirty")), (0.0, 1.0));
}

#[test]
fn what_has_been_written_back_stays_as_asked() {
    // Two nodes of changed entries; 0 has been read since its write, 1 not. The third node pushes theirs out.
    for (kept, expected) in [
        ("read", [true, false]),
        ("clean", [true, true]),
        ("drop", [false, false]),
    ] {
        let mut h = harness(
            &format!("dei=on,dirty_share=0.5,write_miss=load,after_write_back={kept},{QUIET}"),
            0,
            0,
            100,
        );
        for key in [0, 1, 16] {
            h.write(key);
        }
        h.read(0);
        // Now the node of 16 is the least recent one.
        assert_eq!(h.write(32), "load 2 evict 1");
        assert_eq!(h.write(48), "load 3 evict 0");
        assert_eq!([0, 1].map(|key| h.policy.cached(0, key).is_some()), expected, "{kept}");
    }
    // What stays keeps its age: 16 was used before 0, so it is 16 that makes room, though it came later.
    let mut h = harness(&format!("dei=on,after_write_back=clean,{QUIET}"), 5, 5, 0);
    h.write(16);
    h.write(0);
    assert_eq!((h.moved(&[0, 5]), h.moved(&[16, 21])), ("gc 0".into(), "gc 1".into()));
    for key in [100, 120, 140] {
        h.read(key);
    }
    assert_eq!([0, 16].map(|key| h.policy.cached(0, key).is_some()), [true, true]);
    h.read(200);
    assert_eq!([0, 16].map(|key| h.policy.cached(0, key).is_some()), [true, false]);
}

#[test]
fn changed_entries_count_as_cached_for_loading_ahead() {
    // Three changed entries take 34 of 162 bytes; five nodes of an entry are all that fits beside them.
    let mut h = harness("dei=on,after_write_back=read,threshold=1", 0, 0, 162);
    for key in [0, 1, 2] {
        h.write(key);
    }
    for key in [64, 80, 96, 112, 128] {
        h.read(key);
    }
    // A node leaves to make room, which turns selective loading on: three predecessors bring three followers, for which it has room.
    h.read(3);
    let ahead: Vec<u32> = (4..10).filter(|&key| h.policy.cached(0, key).is_some()).collect();
    assert_eq!(ahead, [4, 5, 6]);
    // A page whose entries have all changed is still cached; it leaves when it is written, and that turns loading on.
    for (leaves, followers) in [(true, 3), (false, 0)] {
        let mut h = harness("dei=on,after_write_back=read,threshold=1", 9, 9, 0);
        for key in [0, 16, 17, 18] {
            h.write(key);
        }
        if leaves {
            assert_eq!(h.moved(&[0, 5]), "gc 0");
        }
        h.read(19);
        let ahead = (20..32).filter(|&key| h.policy.cached(0, key).is_some()).count();
        assert_eq!(ahead, followers);
    }
}

#[test]
fn collection_writes_changed_entries_with_what_is_not_cached() {
    let mut h = harness(&format!("dei=on,after_write_back=read,{QUIET}"), 0, 0, 200);
    h.write(0);
    h.read(3);
    // All cached: the clean one becomes a changed one, and nothing is written.
    assert_eq!(h.moved(&[0, 3]), "");
    assert_eq!(h.policy.cached(0, 3).map(|(_, dirty)| dirty), Some(true));
    assert_eq!(h.moved(&[0, 5]), "gc 0");
    assert_eq!((h.policy.cached(0, 0), h.figure("dirty_nodes")), (None, 0.0));
}

#[test]
fn frequently_changed_pages_stay_longer() {
    // Pages of two and more updates are frequent. 16 bytes of counts, and as above two nodes and three entries of changes.
    let mut h = harness(
        &format!("dei=skew,dirty_share=0.5,write_miss=load,frequent=2,second_chance=3,{QUIET}"),
        0,
        0,
        116,
    );
    h.write(0);
    h.write(0);
    h.write(16);
    // Page 0 is the least recent, but frequent and small: page 1 goes.
    assert_eq!(h.write(32), "load 2 evict 1");
    // It had its chance: now it goes, though page 2 is older by a place in the order.
    assert_eq!(h.write(33), "load 2");
    assert_eq!(h.write(48), "load 3 evict 0");
    assert_eq!(h.figure("second_chances"), 1.0);
    // All protected: the least recent one goes, and the policy comes back.
    let mut h = harness(
        &format!("dei=skew,dirty_share=0.5,write_miss=load,frequent=1,second_chance=99,{QUIET}"),
        0,
        0,
        116,
    );
    h.write(0);
    h.write(16);
    assert_eq!(h.write(32), "load 2 evict 0");
}
