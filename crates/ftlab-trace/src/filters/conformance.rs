//! What every filter of the catalogue must hold, over random streams with every optional column.

use ftlab_core::{Batch, OpKind, Stream};
use proptest::prelude::*;

use super::testing::{Fixed, behind, collect, filtered};
use super::{catalogue, check};
use crate::fuzz::check_batch;

/// Specs that make each filter do something; a filter without one is missing here.
fn specs() -> Vec<&'static str> {
    let all = vec![
        "none",
        "lru:bytes=64KiB,write=back",
        "lru:bytes=16KiB,write=back,cluster=page,end=flush,flush=pass",
        "lru:share=0.1",
        "lru:share=0.5,of=footprint,write=miss",
        "scale:factor=1.5",
        "scale:speed=3",
        "max_gap:gap=20ns",
        "compact",
        "compact:unit=512B",
        "shift:offset=1GiB",
        "sequential",
        "sequential:span=64KiB,unit=512B",
        "head:requests=777",
        "head:seconds=20us",
        "head:bytes=1MiB",
        "skip:requests=777",
        "skip:seconds=20us,bytes=1MiB",
        "repeat:times=3,gap=5ns",
        "sample:rate=0.3",
        "sample:rate=0.3,by=page",
        "only:op=write,trim",
        "only:label=b,pid=1,2",
        "volume:only=w",
        "volume:except=v",
        "align:unit=8KiB",
        "split:size=4KiB",
        "merge_adjacent:gap=30ns,size=64KiB",
        "dedup_rows:within=100ns",
        "raid:member=1",
        "raid:member=0,shares=3/1/0,chunk=4KiB",
        concat!(
            "interleave:trace=",
            env!("CARGO_MANIFEST_DIR"),
            "/tests/interleaved.csv"
        ),
        concat!(
            "interleave:addresses=shared,trace=",
            env!("CARGO_MANIFEST_DIR"),
            "/tests/interleaved.csv"
        ),
    ];
    for kind in catalogue() {
        assert!(
            all.iter().any(|spec| spec.split(':').next() == Some(kind.name)),
            "{}",
            kind.name
        );
    }
    all
}

/// Requests of every kind over a megabyte, with runs, repetitions, ties, and every column.
fn stream(seed: u64, n: usize) -> Fixed {
    let mut random = Stream::new(seed, "filters");
    let (mut batch, mut now, mut next) = (Batch::default(), 0, 0);
    for _ in 0..n {
        now += [0, 0, 1, 25, 40][random.below(5) as usize];
        let op = OpKind::ALL[[0, 0, 1, 1, 1, 2, 3][random.below(7) as usize]];
        let length = [512, 4096, 4096, 12288, 6144][random.below(5) as usize];
        let offset = [next, random.below(256) * 4096, random.below(2048) * 512][random.below(3) as usize];
        let (offset, length) = if op == OpKind::Flush { (0, 0) } else { (offset, length) };
        next = offset + u64::from(length);
        batch.push(now, op, offset, length, random.below(2) as u16, random.below(8) as u8);
        batch.stream.push(random.below(3) as u16);
        batch.pc.push(random.below(3));
        batch.pid.push(random.below(3) as u32);
        batch.label.push(random.below(3) as u16);
        let ids = if op == OpKind::Trim { 0 } else { length.div_ceil(4096) };
        let first = batch.content.len();
        batch.content.extend((0..ids).map(|_| random.below(50)));
        batch.content_end.push(batch.content.len() as u32);
        let new = batch.content[first..].to_vec();
        batch.chunk.extend(new.into_iter().flat_map(chunks_of));
    }
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Fixed {
        volumes: names(&["v", "w"]),
        labels: names(&["a", "b", "c"]),
        ..Fixed::new(batch)
    }
}

/// Ids of the chunks of a page with this content.
fn chunks_of(id: u64) -> [u64; 4] {
    [1, 2, 3, 4].map(|number| 10 * id + number)
}

/// Columns fit together, time never goes back, and only flushes have no length.
fn assert_consistent(batch: &Batch, spec: &str) {
    check_batch(batch, spec);
    assert!(batch.content_end.is_sorted() && batch.time_ns.is_sorted(), "{spec}");
    for i in 0..batch.len() {
        let most = u64::from(batch.length[i]).div_ceil(4096);
        assert!(batch.content_of(i).len() as u64 <= most, "{spec}: request {i}");
        // Where the chunks of a page are known, they are its own.
        for (&id, chunks) in batch.content_of(i).iter().zip(batch.chunks_of(i).chunks(4)) {
            assert!(chunks == [0; 4] || chunks == chunks_of(id), "{spec}: request {i}");
        }
        assert_eq!(
            batch.length[i] == 0,
            batch.op[i] == OpKind::Flush,
            "{spec}: request {i}"
        );
    }
}

#[test]
fn columns_stay_consistent_and_time_in_order() {
    for spec in specs() {
        let mut behind = behind(&[spec], stream(1, 6000));
        let (mut batch, mut last, mut n) = (Batch::default(), 0, 0);
        loop {
            ftlab_core::Source::next_batch(&mut behind, &mut batch).unwrap();
            if batch.is_empty() {
                break;
            }
            assert_consistent(&batch, spec);
            assert!(last <= batch.time_ns[0], "{spec}");
            last = batch.time_ns[batch.len() - 1];
            n += batch.len() as u64;
        }
        assert!(n > 0, "{spec}");
        let report = &behind.reports()[0];
        assert_eq!(
            (report.filter.as_str(), report.given.requests, report.given.last_ns),
            (spec, n, last)
        );
    }
}

#[test]
fn a_stream_gives_the_same_in_any_batches_and_every_time() {
    for spec in specs() {
        let whole = filtered(&[spec], stream(2, 5000));
        assert_eq!(whole, filtered(&[spec], stream(2, 5000)), "{spec}");
        for cut in [1, 7, 1000] {
            assert_eq!(
                whole,
                filtered(&[spec], stream(2, 5000).cut(cut)),
                "{spec}, batches of {cut}"
            );
        }
    }
}

#[test]
fn what_remains_is_known_exactly_or_not_at_all() {
    for spec in specs() {
        let mut behind = behind(&[spec], stream(3, 5000));
        let known = ftlab_core::Source::remaining(&behind);
        let n = collect(&mut behind).len() as u64;
        assert!(known.is_none_or(|known| known == n), "{spec}: {known:?}, {n} came");
    }
}

#[test]
fn an_empty_stream_stays_empty_and_one_without_columns_gets_none() {
    for spec in specs()
        .into_iter()
        .filter(|spec| !spec.contains("label") && !spec.contains("volume"))
    {
        // Another trace comes with `interleave`: its two requests.
        let brought = if spec.starts_with("interleave") { 2 } else { 0 };
        assert_eq!(filtered(&[spec], Fixed::new(Batch::default())).len(), brought, "{spec}");
        let mut bare = stream(4, 3000).batch;
        bare.stream.clear();
        bare.pc.clear();
        bare.pid.clear();
        bare.label.clear();
        bare.content.clear();
        bare.content_end.clear();
        bare.chunk.clear();
        let batch = filtered(&[spec], Fixed::new(bare));
        let columns = (
            batch.stream.len(),
            batch.pc.len(),
            batch.pid.len(),
            batch.label.len(),
            batch.content_end.len() + batch.chunk.len(),
        );
        assert_eq!(columns, (0, 0, 0, 0, 0), "{spec}");
    }
}

#[test]
fn filters_work_one_behind_the_other_and_are_counted() {
    let specs = ["only:op=write", "head:requests=100", "split:size=512B", "compact"];
    let mut behind = behind(&specs, stream(5, 5000));
    let n = collect(&mut behind).len() as u64;
    let reports = behind.reports();
    let passed: Vec<(u64, u64)> = reports.iter().map(|r| (r.taken.requests, r.given.requests)).collect();
    assert!(passed.windows(2).all(|pair| pair[0].1 == pair[1].0), "{passed:?}");
    assert_eq!((passed[1].1, passed[3].1), (100, n));
    assert_eq!(reports[2].taken.bytes_written, reports[2].given.bytes_written);
}

proptest! {
    /// Whatever is written where a filter should be, the answer is a filter or a sentence.
    #[test]
    fn no_spec_panics(name in 0..catalogue().len(), rest in "[a-z_]{0,9}=[-0-9a-zKiB.,=:]{0,12}(,[a-z]{1,8}=[0-9eE.]{1,6}){0,2}|.{0,30}") {
        let spec = format!("{}:{rest}", catalogue()[name].name);
        if let Err(error) = check(&[spec, rest]) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
