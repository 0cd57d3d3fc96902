//! Inspections as a whole: by hand, relations between traces, samples against exact figures, hostile input.

use ftlab_core::{Batch, OpKind};
use proptest::prelude::*;

use super::*;
use crate::filters::testing::synth;

use OpKind::{Flush, Read, Trim, Write};

const EXACT: InspectOptions = InspectOptions {
    merge_volumes: false,
    sample_pages: 1 << 20,
    sample_accesses: 1 << 40,
    sample_values: 1 << 20,
    bitmap_chunks: 1 << 20,
};

fn batch_of(requests: &[(u64, OpKind, u64, u32)]) -> Batch {
    let mut batch = Batch::default();
    for &(time, op, offset, length) in requests {
        batch.push(time, op, offset, length, 0, 0);
    }
    batch
}

fn inspect_batch(batch: &Batch, options: InspectOptions) -> Inspection {
    let mut inspector = Inspector::new(options);
    inspector.add(batch);
    inspector.finish(&Names::default())
}

fn generated(spec: &str) -> Batch {
    synth(spec, 64 << 30).batch
}

#[test]
fn five_requests_by_hand() {
    let s = 1_000_000_000;
    let found = inspect_batch(
        &batch_of(&[
            (0, Write, 0, 8192),       // pages 0 and 1, at ticks 0 and 1
            (s, Read, 0, 4096),        // page 0: page 1 came between
            (2 * s, Write, 0, 4096),   // page 0 again, nothing between; its data lived 2 ticks and 2 s
            (3 * s, Trim, 4096, 4096), // page 1's data lived from tick 1 to 3, and 3 s
            (4 * s, Read, 4096, 4096), // page 1: page 0 came between
        ]),
        InspectOptions::default(),
    );
    let all = &found.reuse.all;
    assert_eq!((all.accesses, all.first_touch_share), (5, Some(0.4)));
    assert_eq!(
        (&all.distance.x[..], &all.distance.y[..]),
        (&[0.0, 1.0][..], &[0.2, 0.4][..])
    );
    // One page hits distance 0, two pages hit everything but first touches.
    assert_eq!(
        (&all.miss_ratio.x[..], &all.miss_ratio.y[..]),
        (&[1.0, 2.0][..], &[0.8, 0.4][..])
    );
    // 1 request, 1, and 4 (from request 0 to request 4); 2 ticks (0 to 2), none, and 2 (1 to 3).
    assert_eq!(
        (&all.time_requests.x[..], &all.time_requests.y[..]),
        (&[1.0, 2.0, 4.0][..], &[0.4, 0.0, 0.2][..])
    );
    assert_eq!(
        (&all.time_ticks.x[..], &all.time_ticks.y[..]),
        (&[0.0, 1.0, 2.0][..], &[0.2, 0.0, 0.4][..])
    );
    assert_eq!(found.reuse.read.first_touch_share, Some(1.0));
    // Page 0's second write: page 1 was written between.
    let write = &found.reuse.write;
    assert_eq!(
        (write.accesses, &write.distance.x[..], &write.distance.y[..]),
        (3, &[1.0][..], &[1.0 / 3.0][..])
    );
    let lives = &found.lifetimes;
    let third = Some(1.0 / 3.0);
    assert_eq!(
        (
            lives.page_writes,
            lives.overwritten_share,
            lives.trimmed_share,
            lives.alive_share
        ),
        (3, third, third, third)
    );
    assert_eq!((&lives.ticks.x[..], &lives.ticks.y[..]), (&[2.0][..], &[2.0 / 3.0][..]));
    assert!((lives.percentiles_s.p10.unwrap() / 2.0 - 1.0).abs() < 0.125);
    assert!((lives.percentiles_s.p99.unwrap() / 3.0 - 1.0).abs() < 0.125);
    // The hotter one of two written pages has two of three writes.
    assert!((found.skew.write.hottest.y[8] - 2.0 / 3.0).abs() < 1e-12);
    assert_eq!(found.skew.write.unique_share, Some(2.0 / 3.0));
    assert!(found.page_sampling.exact && found.page_sampling.sampled == 2);
    // Read-after-write: the first read (page 0) and the last (page 1, trimmed but written in the partition).
    assert_eq!(
        (found.dirty_reads.read_after_writes, found.dirty_reads.ratio),
        (2, Some(1.0))
    );
    assert_eq!(found.schema, SCHEMA);
}

#[test]
fn how_requests_are_batched_makes_no_difference() {
    let whole = generated("zipf:read=0.5,size=4KiB*0.8/64KiB*0.2,align=4KiB,rate=20k,span=1GiB,requests=30000,seed=3");
    for options in [EXACT, small(500, 4096)] {
        let mut pieces = Inspector::new(options);
        let mut piece = Batch::default();
        for i in 0..whole.len() {
            piece.push(whole.time_ns[i], whole.op[i], whole.offset[i], whole.length[i], 0, 0);
            if i % 777 == 0 || i + 1 == whole.len() {
                pieces.add(&piece);
                piece.clear();
            }
        }
        assert_eq!(pieces.finish(&Names::default()), inspect_batch(&whole, options));
    }
}

#[test]
fn a_trace_after_itself() {
    let once = generated("uniform:read=0.4,size=8KiB,rate=20k,span=64MiB,requests=5000,seed=4");
    let mut twice = once.clone();
    let end = once.time_ns.last().copied().unwrap() + 50_000;
    for i in 0..once.len() {
        twice.push(end + once.time_ns[i], once.op[i], once.offset[i], once.length[i], 0, 0);
    }
    let (once, twice) = (inspect_batch(&once, EXACT), inspect_batch(&twice, EXACT));
    assert_eq!(twice.counts.bytes_written, 2 * once.counts.bytes_written);
    assert_eq!(twice.footprint.pages_written, once.footprint.pages_written);
    assert_eq!(twice.skew.read.hottest, once.skew.read.hottest);
    assert_eq!(twice.sizes.mean_bytes, once.sizes.mean_bytes);
    let first = |found: &Inspection| found.reuse.write.first_touch_share.unwrap();
    assert!((first(&twice) - first(&once) / 2.0).abs() < 1e-12);
    // What is alive at the end is the same pages, of twice the writes.
    assert!((twice.lifetimes.alive_share.unwrap() - once.lifetimes.alive_share.unwrap() / 2.0).abs() < 1e-12);
    // The largest cache misses first touches alone.
    assert!((twice.reuse.all.miss_ratio.y.last().unwrap() - twice.reuse.all.first_touch_share.unwrap()).abs() < 1e-12);
}

#[test]
fn twice_the_time_is_half_the_rate_and_nothing_else() {
    let fast = generated("zipf:read=0.4,size=4KiB,rate=20k,span=64MiB,requests=5000,seed=5");
    let mut slow = fast.clone();
    slow.time_ns.iter_mut().for_each(|time| *time *= 2);
    let (fast, slow) = (inspect_batch(&fast, EXACT), inspect_batch(&slow, EXACT));
    let rate = |found: &Inspection| found.arrivals.mean_rate_per_s.unwrap();
    assert!((rate(&fast) / rate(&slow) - 2.0).abs() < 1e-9);
    assert!((fast.arrivals.gap_cv.unwrap() - slow.arrivals.gap_cv.unwrap()).abs() < 1e-9);
    // Poisson arrivals, whatever the time scale.
    assert!((fast.arrivals.gap_cv.unwrap() - 1.0).abs() < 0.05);
    assert!((fast.arrivals.windows[0].index_of_dispersion.unwrap() - 1.0).abs() < 0.3);
    assert_eq!(
        (fast.reuse, fast.skew, fast.lifetimes.ticks),
        (slow.reuse, slow.skew, slow.lifetimes.ticks)
    );
}

#[test]
fn sequential_overwrites_live_for_the_footprint() {
    // 1000 pages written in order, again and again: every distance is 999, every life 1000 ticks.
    let requests: Vec<_> = (0..5000u64).map(|i| (i, Write, i % 1000 * 4096, 4096)).collect();
    let found = inspect_batch(&batch_of(&requests), InspectOptions::default());
    assert!((found.reuse.write.first_touch_share.unwrap() - 0.2).abs() < 1e-12);
    assert_eq!(
        (&found.reuse.write.distance.x[..], &found.reuse.write.distance.y[..]),
        (&[512.0][..], &[0.8][..])
    );
    assert_eq!(
        (&found.lifetimes.ticks.x[..], &found.lifetimes.ticks.y[..]),
        (&[512.0][..], &[0.8][..])
    );
    let misses = &found.reuse.write.miss_ratio;
    assert_eq!(misses.y[misses.x.iter().position(|x| *x == 896.0).unwrap()], 1.0);
    assert_eq!((misses.x.last(), misses.y.last()), (Some(&1024.0), Some(&0.2)));
    assert_eq!(found.sequentiality.write.strict_share, Some(4995.0 / 5000.0));
    assert_eq!(
        (found.skew.write.zipf_exponent, found.skew.write.once_share),
        (Some(0.0), Some(0.0))
    );
}

#[test]
fn volumes_apart_or_merged() {
    let mut batch = Batch::default();
    batch.push(0, Write, 0, 4096, 0, 0);
    batch.push(1, Write, 0, 4096, 1, 0);
    batch.push(2, Write, 1 << 30, 4096, 1, 0);
    let apart = inspect_batch(&batch, InspectOptions::default());
    let merged = inspect_batch(
        &batch,
        InspectOptions {
            merge_volumes: true,
            ..InspectOptions::default()
        },
    );
    assert_eq!(
        (
            apart.footprint.pages_written.value,
            merged.footprint.pages_written.value
        ),
        (3.0, 2.0)
    );
    assert_eq!(
        (apart.footprint.span_bytes, merged.footprint.span_bytes),
        (4096 + (1 << 30) + 4096, (1 << 30) + 4096)
    );
    assert_eq!(
        (apart.lifetimes.overwritten_share, merged.lifetimes.overwritten_share),
        (Some(0.0), Some(1.0 / 3.0))
    );
}

fn small(pages: usize, accesses: u64) -> InspectOptions {
    InspectOptions {
        sample_pages: pages,
        sample_accesses: accesses,
        ..EXACT
    }
}

/// The miss ratio at a size, between the points of the curve as the last one at or below it.
fn miss_ratio_at(curve: &Curve, pages: f64) -> f64 {
    let at = curve.x.partition_point(|x| *x <= pages);
    curve.y[at.saturating_sub(1)]
}

#[test]
fn samples_agree_with_exact_figures_within_their_errors() {
    for (seed, spec) in [
        (1, "uniform:read=0.5,size=4KiB,span=512MiB"),
        (2, "uniform:read=0.3,size=4KiB*0.6/64KiB*0.4,align=4KiB,span=512MiB"),
        (3, "zipf:read=0.5,size=4KiB,span=512MiB,theta=0.8"),
        (4, "hotcold:read=0.5,size=4KiB,span=512MiB"),
        (5, "uniform:read=0.3,trim=0.2,size=16KiB,span=256MiB"),
    ] {
        let trace = generated(&format!("{spec},requests=200000,seed={seed}"));
        let exact = inspect_batch(&trace, EXACT);
        assert!(exact.page_sampling.exact && exact.page_sampling.standard_error == 0.0);
        for options in [small(8000, 1 << 40), small(1 << 20, 30_000)] {
            let sampled = inspect_batch(&trace, options);
            // One page a request: the allowance is never used up.
            if spec.contains("size=4KiB,") && options.sample_accesses == 30_000 {
                assert_eq!(sampled, exact);
                continue;
            }
            let error = sampled.page_sampling.standard_error;
            assert!(
                !sampled.page_sampling.exact && error > 0.0 && error < 0.1,
                "{spec}: {error}"
            );
            let close = |what: &str, a: f64, b: f64| {
                assert!(
                    (a - b).abs() < 4.0 * error,
                    "{spec}: {what}: {a} and {b}, error {error}"
                );
            };
            for pages in [1024.0, 8192.0, 32768.0, 65536.0] {
                let at = |found: &Inspection| miss_ratio_at(&found.reuse.all.miss_ratio, pages);
                close("miss ratio", at(&exact), at(&sampled));
            }
            for (a, b) in exact.skew.write.hottest.y.iter().zip(&sampled.skew.write.hottest.y) {
                assert!(
                    (a - b).abs() < 4.0 * sampled.skew.write.standard_error,
                    "{spec}: {a} {b}"
                );
            }
            let lives = |found: &Inspection| found.lifetimes.overwritten_share.unwrap();
            close("overwritten", lives(&exact), lives(&sampled));
            let alive = |found: &Inspection| found.lifetimes.alive_share.unwrap();
            close("alive", alive(&exact), alive(&sampled));
            let median = |found: &Inspection| found.lifetimes.percentiles_ticks.p50.unwrap();
            assert!(
                (median(&sampled) / median(&exact) - 1.0).abs() < 0.1 + 8.0 * error,
                "{spec}"
            );
            // Whatever does not need the sample is the same.
            assert_eq!((&exact.counts, &exact.footprint), (&sampled.counts, &sampled.footprint));
        }
    }
}

#[test]
fn nothing_one_request_and_flushes_alone() {
    let nothing = Inspector::new(InspectOptions::default()).finish(&Names::default());
    assert_eq!(
        (nothing.counts.requests, nothing.arrivals.timed, &nothing.content),
        (0, false, &None)
    );
    let one = inspect_batch(&batch_of(&[(77, Write, 4096, 4096)]), InspectOptions::default());
    assert_eq!(
        (one.arrivals.timed, one.arrivals.mean_rate_per_s, one.counts.duration_s),
        (false, None, None)
    );
    assert_eq!(
        (one.lifetimes.alive_share, one.lifetimes.median_survival_ticks),
        (Some(1.0), None)
    );
    assert_eq!(one.reuse.write.miss_ratio.y, [1.0]);
    let flushes = inspect_batch(
        &batch_of(&[(0, Flush, 0, 0), (5, Flush, 0, 0)]),
        InspectOptions::default(),
    );
    assert_eq!(
        (
            flushes.counts.flushes,
            flushes.footprint.pages_touched.value,
            flushes.arrivals.timed
        ),
        (2, 0.0, true)
    );
    [nothing, one, flushes].iter().for_each(check);
}

#[test]
fn the_largest_requests_cost_their_pages_once() {
    // 400 requests of 4 GiB: 420 million pages, of which the allowance looks at a few million.
    let requests: Vec<_> = (0..400u64)
        .map(|i| (i, OpKind::ALL[(i % 3) as usize], (i % 7) << 30, u32::MAX))
        .collect();
    let found = inspect_batch(&batch_of(&requests), InspectOptions::default());
    check(&found);
    assert_eq!(found.footprint.pages_touched.value, f64::from(10 << 18));
    assert!(found.page_sampling.accesses < 60_000_000, "{:?}", found.page_sampling);
}

/// What holds for every inspection.
fn check(found: &Inspection) {
    let json = serde_json::to_value(found).unwrap();
    check_value("", &json);
    assert_eq!(serde_json::from_value::<Inspection>(json).unwrap().counts, found.counts);
    for string in [&found.reuse.read, &found.reuse.write, &found.reuse.all] {
        let shares: f64 = string.distance.y.iter().sum::<f64>() + string.first_touch_share.unwrap_or(1.0);
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    }
    let lives = &found.lifetimes;
    if let (Some(a), Some(b), Some(c)) = (lives.overwritten_share, lives.trimmed_share, lives.alive_share) {
        assert!((a + b + c - 1.0).abs() < 1e-9);
    }
}

/// Curves are as long in x as in y and x does not decrease; shares lie between 0 and 1.
fn check_value(name: &str, value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(map) if map.contains_key("x_name") => {
            let numbers = |key: &str| -> Vec<f64> {
                map[key]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|v| v.as_f64().expect("finite"))
                    .collect()
            };
            let (x, y) = (numbers("x"), numbers("y"));
            assert_eq!(x.len(), y.len(), "{name}");
            assert!(x.is_sorted() && x.len() <= 1024, "{name}");
            assert!(
                !map["y_name"].as_str().unwrap().ends_with("share") || y.iter().all(|y| (0.0..=1.0 + 1e-9).contains(y))
            );
        }
        serde_json::Value::Object(map) => map.iter().for_each(|(name, value)| check_value(name, value)),
        serde_json::Value::Array(values) => values.iter().for_each(|value| check_value(name, value)),
        serde_json::Value::Number(number) if name.ends_with("_share") => {
            assert!(
                (0.0..=1.0 + 1e-9).contains(&number.as_f64().unwrap()),
                "{name}: {number}"
            );
        }
        _ => {}
    }
}

fn any_batch() -> impl Strategy<Value = Batch> {
    let edge = prop_oneof![
        0u64..100_000,
        any::<u64>(),
        (0u64..5).prop_map(|n| u64::MAX - n),
        (0u64..64).prop_map(|s| 1 << s)
    ];
    let length = prop_oneof![0u32..100_000, Just(u32::MAX), Just(4096u32)];
    let request = (
        edge.clone(),
        0usize..4,
        edge,
        length,
        any::<u16>(),
        any::<u8>(),
        any::<u64>(),
        0usize..4,
    );
    (prop::collection::vec(request, 0..60), any::<bool>(), any::<bool>()).prop_map(|(requests, contexts, content)| {
        let mut batch = Batch::default();
        for (time, op, offset, length, number, flags, id, ids) in requests {
            batch.push(time, OpKind::ALL[op], offset, length, number, flags);
            if contexts {
                batch.pc.push(id);
                batch.stream.push(number);
                batch.label.push(number);
                batch.pid.push(id as u32);
            }
            if content {
                batch.content.extend((0..ids as u64).map(|i| id % 5 + i));
                batch.content_end.push(batch.content.len() as u32);
            }
        }
        batch
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_requests_give_an_inspection(batches in prop::collection::vec(any_batch(), 1..4), tight in any::<bool>()) {
        let options = if tight {
            InspectOptions { sample_pages: 7, sample_accesses: 0, sample_values: 2, bitmap_chunks: 3, ..EXACT }
        } else {
            InspectOptions::default()
        };
        let mut inspector = Inspector::new(options);
        batches.iter().for_each(|batch| inspector.add(batch));
        check(&inspector.finish(&Names::default()));
    }
}
