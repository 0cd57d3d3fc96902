//! By hand, and against a cache that is a plain list.

use std::collections::{BTreeMap, BTreeSet};

use ftlab_core::{Batch, OpKind, flags};
use proptest::prelude::*;

use super::super::testing::{Fixed, behind, failure, filtered, once, places, requests};

/// Operation, offset and length of each request.
fn shown(batch: &Batch) -> Vec<(&'static str, u64, u32)> {
    (0..batch.len())
        .map(|i| (batch.op[i].name(), batch.offset[i], batch.length[i]))
        .collect()
}

#[test]
fn reads_lose_the_pages_that_are_cached() {
    // Page 1 is cached when pages 0 to 2 are read: two runs are missing, each with the request's own bytes.
    let all = requests("0,read,4608,512\n1,read,512,11776\n2,read,0,12288\n");
    let batch = filtered(&["lru:bytes=16KiB,write=back"], all);
    assert_eq!(
        shown(&batch),
        [("read", 4608, 512), ("read", 512, 3584), ("read", 8192, 4096)]
    );
    assert_eq!(batch.time_ns, [0, 1, 1]);
}

#[test]
fn the_least_recently_used_page_leaves() {
    // Two pages. 0 and 1 are read, 0 again, so 2 drives 1 out: 0 is there, 1 is not.
    let all =
        requests("0,read,0,4096\n1,read,4096,4096\n2,read,0,4096\n3,read,8192,4096\n4,read,0,4096\n5,read,4096,4096\n");
    assert_eq!(filtered(&["lru:bytes=8KiB,write=back"], all).time_ns, [0, 1, 3, 5]);
}

#[test]
fn dirty_pages_come_out_when_they_leave() {
    // Two pages. The write of 1.5 KiB over pages 0 and 1 waits; the read of page 2 drives page 0 out, and page 1's
    // sector, of the same request and adjacent, goes with it. Page 1 is clean then and leaves without a word.
    let all = requests("0,write,3072,1536\n1,read,8192,512\n2,read,12288,512\n");
    let batch = filtered(&["lru:bytes=8KiB,write=back"], all.clone());
    assert_eq!(
        shown(&batch),
        [("write", 3072, 1536), ("read", 8192, 512), ("read", 12288, 512)]
    );
    assert_eq!(batch.time_ns, [1, 1, 2]);
    let batch = filtered(&["lru:bytes=8KiB,write=back,cluster=page"], all);
    let each = [
        ("write", 3072, 1024),
        ("read", 8192, 512),
        ("write", 4096, 512),
        ("read", 12288, 512),
    ];
    assert_eq!(shown(&batch), each);
}

#[test]
fn neighbours_of_another_writer_stay() {
    // Page 0 is written with page 1, then page 1 alone: both are dirty, with different last writers.
    let mut all = requests("0,write,0,8192\n1,write,4096,4096\n2,read,8192,512\n");
    all.batch.pid = vec![7, 8, 9];
    let batch = filtered(&["lru:bytes=8KiB,write=back,end=flush"], all);
    assert_eq!(
        shown(&batch),
        [("write", 0, 4096), ("read", 8192, 512), ("write", 4096, 4096)]
    );
    assert_eq!((&batch.pid[..], &batch.time_ns[..]), (&[7, 9, 8][..], &[2, 2, 2][..]));
}

#[test]
fn sectors_between_stay_unwritten() {
    let all = requests("0,write,0,512\n1,write,3584,512\n2,flush,,\n3,flush,,\n");
    let batch = filtered(&["lru:bytes=4KiB,write=back"], all.clone());
    assert_eq!(
        shown(&batch),
        [
            ("write", 0, 512),
            ("write", 3584, 512),
            ("flush", 0, 0),
            ("flush", 0, 0)
        ]
    );
    assert_eq!(batch.time_ns, [2, 2, 2, 3]);
    assert_eq!(filtered(&["lru:bytes=4KiB,write=back,flush=pass"], all).len(), 2);
}

#[test]
fn content_goes_with_its_pages() {
    let mut all = requests("0,write,0,12288\n1,write,4096,4096\n2,flush,,\n");
    all.batch.content = vec![1, 2, 3, 9];
    all.batch.content_end = vec![3, 4, 4];
    let batch = filtered(&["lru:bytes=1MiB,write=back"], all);
    assert_eq!(places(&batch), [(0, 4096), (4096, 4096), (8192, 4096), (0, 0)]);
    let content: Vec<&[u64]> = (0..4).map(|i| batch.content_of(i)).collect();
    assert_eq!(content, [&[1][..], &[9], &[3], &[]]);
}

#[test]
fn forced_writes_and_trims_reach_the_drive_at_once() {
    let mut all =
        requests("0,write,0,8192\n1,write,0,4096\n2,trim,4096,4096\n3,flush,,\n4,read,0,512\n5,read,4096,512\n");
    all.batch.flags[1] = flags::FUA;
    // The forced write cleans page 0 and the trim drops page 1, so nothing is left for the flush, and page 1 is missing.
    let batch = filtered(&["lru:bytes=1MiB,write=back"], all);
    let passed = [
        ("write", 0, 4096),
        ("trim", 4096, 4096),
        ("flush", 0, 0),
        ("read", 4096, 512),
    ];
    assert_eq!(shown(&batch), passed);
}

#[test]
fn through_and_miss_treat_writes_differently() {
    let all = requests("0,write,0,4096\n1,write,0,8192\n2,read,0,8192\n");
    let through = filtered(&["lru:bytes=1MiB,write=through"], all.clone());
    assert_eq!(shown(&through), [("write", 0, 4096), ("write", 0, 8192)]);
    let miss = filtered(&["lru:bytes=1MiB,write=miss"], all);
    assert_eq!(shown(&miss), [("write", 0, 4096), ("write", 4096, 4096)]);
}

#[test]
fn the_size_is_a_share_of_the_stream() {
    // From byte 40960 to 1064960: a span of 1000 KiB; 5 % of it are 50 KiB, twelve pages.
    let all = requests("0,read,40960,4096\n1,read,1060864,4096\n");
    let note = |spec: &str| behind(&[spec], all.clone()).reports()[0].notes.join(" ");
    assert_eq!(
        note("lru"),
        "a cache of 48 KiB (12 pages), 0.05 of the stream's span of 1000 KiB"
    );
    assert!(
        note("lru:share=0.5,of=footprint")
            .starts_with("a cache of 4 KiB (1 pages), 0.5 of the stream's footprint of 8 KiB")
    );
    assert!(failure(&["lru:bytes=4KiB,share=0.1"], all.clone()).contains("either `bytes` or `share`"));
    assert!(failure(&["lru:cluster=page"], all.clone()).contains("`cluster` belongs to write=back"));
    assert!(once("lru", all.clone()).contains("must read the trace more than once"));
    assert!(failure(&["lru:write=bakc"], all).contains("`write` = bakc: expected through, back or miss"));
}

/// A page of the naive cache, which is a list with the most recent page last.
struct Naive {
    number: u64,
    /// Dirty sectors by their number on the drive, and the request that wrote the page last.
    dirty: BTreeSet<u64>,
    writer: usize,
}

/// What the filter must give: a plain list of pages, everything by search. `write=back`, `end=flush`.
fn naive(input: &Batch, capacity: usize, cluster: bool) -> Vec<(u64, &'static str, u64, u64, u32)> {
    let mut cache: Vec<Naive> = Vec::new();
    // Pages in the order in which they became dirty.
    let mut became: Vec<u64> = Vec::new();
    let mut out = Vec::new();
    fn write_out(
        cache: &mut [Naive],
        became: &mut Vec<u64>,
        number: u64,
        cluster: bool,
        input: &Batch,
        mut put: impl FnMut(u64, u64, u32),
    ) {
        let Some(page) = cache.iter().find(|p| p.number == number && !p.dirty.is_empty()) else {
            return;
        };
        let writer = page.writer;
        let mut take: BTreeSet<u64> = BTreeSet::from([number]);
        // Grow by pages of the same writer whose dirty sectors touch one that is taken.
        loop {
            let more: Vec<u64> = cache
                .iter()
                .filter(|p| p.writer == writer && !take.contains(&p.number))
                .filter(|p| {
                    let meets = |mine: u64, its: u64, other: u64| {
                        p.dirty.contains(&mine)
                            && take.contains(&other)
                            && cache.iter().any(|q| q.number == other && q.dirty.contains(&its))
                    };
                    meets(p.number * 8 + 7, p.number * 8 + 8, p.number + 1)
                        || p.number > 0 && meets(p.number * 8, p.number * 8 - 1, p.number - 1)
                })
                .map(|p| p.number)
                .collect();
            if more.is_empty() || !cluster {
                break;
            }
            take.extend(more);
        }
        let mut sectors = BTreeSet::new();
        for page in cache.iter_mut().filter(|p| take.contains(&p.number)) {
            sectors.append(&mut page.dirty);
        }
        became.retain(|number| !take.contains(number));
        let mut sectors = sectors.into_iter().peekable();
        while let Some(first) = sectors.next() {
            let mut last = first;
            while sectors.next_if_eq(&(last + 1)).is_some() {
                last += 1
            }
            put(first * 512, (last - first + 1) * 512, input.pid[writer]);
        }
    }
    for i in 0..input.len() {
        let (time, start) = (input.time_ns[i], input.offset[i]);
        let end = start + u64::from(input.length[i]);
        let mut missing: Vec<(u64, u64)> = Vec::new();
        match input.op[i] {
            OpKind::Flush => {
                while let Some(&number) = became.first() {
                    write_out(&mut cache, &mut became, number, cluster, input, |o, l, pid| {
                        out.push((time, "write", o, l, pid))
                    });
                }
                out.push((time, "flush", 0, 0, input.pid[i]));
            }
            OpKind::Trim => {
                for page in &mut cache {
                    page.dirty.retain(|s| s * 512 < start || (s + 1) * 512 > end);
                }
                let is_dirty = |cache: &[Naive], n: u64| cache.iter().any(|p| p.number == n && !p.dirty.is_empty());
                cache.retain(|p| p.number * 4096 < start || (p.number + 1) * 4096 > end);
                became.retain(|&n| is_dirty(&cache, n));
                out.push((time, "trim", start, end - start, input.pid[i]));
            }
            op => {
                for number in start / 4096..end.div_ceil(4096) {
                    let (from, to) = (start.max(number * 4096), end.min(number * 4096 + 4096));
                    let page = match cache.iter().position(|p| p.number == number) {
                        Some(at) => cache.remove(at),
                        None => {
                            if cache.len() == capacity {
                                let oldest = cache[0].number;
                                write_out(&mut cache, &mut became, oldest, cluster, input, |o, l, pid| {
                                    out.push((time, "write", o, l, pid))
                                });
                                cache.remove(0);
                            }
                            match missing.last_mut() {
                                Some(run) if run.1 == from => run.1 = to,
                                _ => missing.push((from, to)),
                            }
                            Naive {
                                number,
                                dirty: BTreeSet::new(),
                                writer: 0,
                            }
                        }
                    };
                    cache.push(page);
                    if op == OpKind::Write {
                        let page = cache.last_mut().unwrap();
                        if page.dirty.is_empty() {
                            became.push(number)
                        }
                        page.dirty.extend(from / 512..to.div_ceil(512));
                        page.writer = i;
                    }
                }
                if op == OpKind::Read {
                    out.extend(
                        missing
                            .into_iter()
                            .map(|(from, to)| (time, "read", from, to - from, input.pid[i])),
                    );
                }
            }
        }
    }
    let time = input.time_ns.last().copied().unwrap_or(0);
    while let Some(&number) = became.first() {
        write_out(&mut cache, &mut became, number, cluster, input, |o, l, pid| {
            out.push((time, "write", o, l, pid))
        });
    }
    out
}

/// A stream over 16 pages, its requests numbered by `pid`.
fn stream(rows: &[(u8, u64, u32, u64)]) -> Batch {
    let (mut batch, mut now) = (Batch::default(), 0);
    for (i, &(op, sector, length, gap)) in rows.iter().enumerate() {
        now += gap;
        // Mostly reads and writes.
        let op = [
            OpKind::Read,
            OpKind::Read,
            OpKind::Write,
            OpKind::Write,
            OpKind::Write,
            OpKind::Trim,
            OpKind::Flush,
        ][usize::from(op)];
        let (offset, length) = if op == OpKind::Flush {
            (0, 0)
        } else {
            (sector * 512, length)
        };
        batch.push(now, op, offset, length, 0, 0);
        batch.pid.push(i as u32 + 1);
    }
    batch
}

proptest! {
    #[test]
    fn it_is_the_naive_cache(
        rows in prop::collection::vec((0u8..7, 0u64..128, 1u32..20_000, 0u64..3), 1..120),
        capacity in 1usize..12,
        cluster: bool,
        cut in 1usize..9,
    ) {
        let input = stream(&rows);
        let spec = format!("lru:bytes={}B,write=back,end=flush,cluster={}", capacity * 4096, if cluster { "run" } else { "page" });
        let batch = filtered(&[&spec], Fixed::new(input.clone()).cut(cut));
        let got: Vec<_> = (0..batch.len())
            .map(|i| (batch.time_ns[i], batch.op[i].name(), batch.offset[i], u64::from(batch.length[i]), batch.pid[i]))
            .collect();
        // The naive cache lists the missing runs of a read behind what was evicted for any of them; order within one
        // moment aside, both must give the same.
        let sorted = |mut rows: Vec<(u64, &'static str, u64, u64, u32)>| { rows.sort_unstable(); rows };
        prop_assert_eq!(sorted(got), sorted(naive(&input, capacity, cluster)));
    }

    /// Whatever is written reaches the drive: the last write of each page that comes out is of its last writer.
    #[test]
    fn nothing_written_is_lost(
        rows in prop::collection::vec((0u8..5, 0u64..128, 1u32..20_000, 0u64..3), 1..200),
        capacity in 1usize..12,
    ) {
        let input = stream(&rows);
        let last_writer = |batch: &Batch| {
            let mut last: BTreeMap<u64, u32> = BTreeMap::new();
            for i in (0..batch.len()).filter(|&i| batch.op[i] == OpKind::Write) {
                let end = batch.offset[i] + u64::from(batch.length[i]);
                last.extend((batch.offset[i] / 512..end.div_ceil(512)).map(|sector| (sector / 8, batch.pid[i])));
            }
            last
        };
        let spec = format!("lru:bytes={}B,write=back,end=flush", capacity * 4096);
        let batch = filtered(&[&spec], Fixed::new(input.clone()));
        prop_assert_eq!(last_writer(&batch), last_writer(&input));
        let dropped = filtered(&[&format!("lru:bytes={}B,write=back", capacity * 4096)], Fixed::new(input));
        prop_assert!(dropped.len() <= batch.len());
    }
}
