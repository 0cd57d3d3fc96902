//! What the workload writes: how often each pair, by whom, and where.

use ftlab_core::{Batch, OpKind, Source};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::synth::lsm::layout;
use crate::synth::parse;

/// All requests on a span of 64 MiB.
fn all(spec: &str) -> Batch {
    let mut generator = parse(spec, 64 << 20, 4096, 7).unwrap();
    let (mut all, mut batch) = (Batch::default(), Batch::default());
    loop {
        generator.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            return all;
        }
        (0..batch.len()).for_each(|i| crate::rows::append(&mut all, &batch, i));
    }
}

/// Contexts that wrote each content, in order.
fn writers(batch: &Batch, chunks: bool) -> FxHashMap<u64, Vec<u64>> {
    let mut writers: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
    for i in (0..batch.len()).filter(|&i| batch.op[i] == OpKind::Write) {
        let ids = if chunks {
            batch.chunks_of(i)
        } else {
            batch.content_of(i)
        };
        // What is empty is everywhere.
        let full = ids.iter().filter(|&&id| id != layout::EMPTY);
        full.for_each(|&id| writers.entry(id).or_default().push(batch.pc[i]));
    }
    writers
}

/// Pairs of a page: each version is in the log once, and if it is not replaced within its buffer, flushed once and compacted once to
/// each level, in order.
#[test]
fn a_pair_is_written_by_log_flush_and_each_compaction_once() {
    let spec = "lsm:pair=4KiB,log=table,buffer=64KiB,levels=3,fanout=2,keys=500,theta=0.5,requests=4000";
    let batch = all(spec);
    let mut reached = [0; 6];
    for (id, mut contexts) in writers(&batch, false) {
        // The last level merges its own runs, as often as a pair lives.
        let last = contexts.iter().filter(|&&context| context == 5).count();
        contexts.dedup_by(|one, other| *one == 5 && *other == 5);
        let expected: Vec<u64> = (1..=contexts.len() as u64).collect();
        assert_eq!(contexts, expected, "content {id:x}, {last} times in the last level");
        contexts.iter().for_each(|&context| reached[context as usize] += 1);
    }
    assert!(
        reached[1] > 3000 && reached[1..].is_sorted_by(|more, fewer| more > fewer),
        "{reached:?}"
    );
}

/// With a log of records only what goes down is a copy, with none there is no log, and pairs of four to a page are found as chunks where
/// whole pages are not.
#[test]
fn who_writes_copies() {
    let rest = "buffer=64KiB,levels=3,fanout=2,keys=2000,theta=0.5,requests=3000";
    let copies = |log: &str, chunks: bool| {
        let batch = all(&format!("lsm:log={log},{rest}"));
        let mut counts = [[0u32; 2]; 6];
        for contexts in writers(&batch, chunks).values() {
            for (number, &context) in contexts.iter().enumerate() {
                counts[context as usize][usize::from(number > 0)] += 1;
            }
        }
        counts.map(|[first, again]| f64::from(again) / f64::from((first + again).max(1)))
    };
    let (record, table) = (copies("record", true), copies("table", true));
    assert_eq!((record[1], record[2]), (0.0, 0.0));
    assert!(
        record[3] > 0.95,
        "all that compactions write has been flushed: {record:?}"
    );
    assert!(
        table[1] == 0.0 && table[2] > 0.95,
        "all that is flushed stands in the log: {table:?}"
    );
    let pages = copies("table", false);
    assert!(pages[2] < 0.01 && pages[3] < 0.5, "{pages:?}");
    assert_eq!(
        all(&format!("lsm:log=none,{rest}"))
            .pc
            .iter()
            .filter(|&&pc| pc == 1)
            .count(),
        0
    );
}

/// Pairs of a page and a head of 24 bytes: without alignment no two tables have equal pages but where a compaction leaves a run as it
/// is from its first pair on; with it each pair has pages of its own.
#[test]
fn blocks_that_lie_on_pages_are_found_again() {
    let share = |aligned: bool| {
        let batch = all(&format!(
            "lsm:pair=1140B,aligned={aligned},log=none,buffer=256KiB,levels=3,fanout=2,keys=3000,requests=2000"
        ));
        let writers = writers(&batch, false);
        let written: usize = writers.values().map(Vec::len).sum();
        1.0 - writers.len() as f64 / written as f64
    };
    let (packed, aligned) = (share(false), share(true));
    assert!(aligned > 2.0 * packed && packed < 0.05, "{packed} and {aligned}");
}

/// Nothing is written where something lies, read or trimmed where nothing does.
#[test]
fn what_is_alive_is_not_overwritten() {
    let batch = all("lsm:buffer=64KiB,levels=2,fanout=3,keys=4000,requests=5000,size=64KiB");
    let mut alive: FxHashSet<u64> = FxHashSet::default();
    for i in 0..batch.len() {
        assert!(batch.length[i] <= 64 << 10);
        for page in batch.offset[i] / 4096..(batch.offset[i] + u64::from(batch.length[i])) / 4096 {
            match batch.op[i] {
                OpKind::Write => assert!(alive.insert(page), "request {i}"),
                OpKind::Trim => assert!(alive.remove(&page), "request {i}"),
                _ => assert!(alive.contains(&page), "request {i}"),
            }
        }
        let pages = if batch.op[i] == OpKind::Write {
            batch.length[i] as usize / 4096
        } else {
            0
        };
        assert_eq!(
            (batch.content_of(i).len(), batch.chunks_of(i).len()),
            (pages, 4 * pages)
        );
    }
}

#[test]
fn the_tree_fits_into_its_span() {
    let wrong = |spec: &str| {
        parse(spec, 64 << 20, 4096, 7)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default()
    };
    assert!(
        wrong("lsm:keys=200000").contains("its tree may take"),
        "{}",
        wrong("lsm:keys=200000")
    );
    assert!(wrong("lsm:log=both").contains("record, table or none"));
    assert!(wrong("lsm:levels=17").contains("1 to 16"));
    assert!(wrong("lsm:span=1MiB").contains("its tree may take"));
    let described = parse("lsm:rate=1000", 64 << 20, 4096, 7).unwrap().describe();
    let keys = described["keys"].as_u64().unwrap();
    assert!((1000..20000).contains(&keys), "{keys}");
    let again = crate::synth::from_table(
        "lsm",
        {
            let mut keys = described.as_object().unwrap().clone();
            keys.remove("kind");
            keys
        },
        64 << 20,
        4096,
        9,
    )
    .unwrap();
    assert_eq!(again.describe(), described);
}

#[test]
fn open_loops_are_even_and_end() {
    let batch = all("lsm:requests=1000,rate=1e6");
    assert_eq!(batch.len(), 1000);
    assert_eq!((batch.time_ns[1], batch.time_ns[999]), (1000, 999_000));
}
