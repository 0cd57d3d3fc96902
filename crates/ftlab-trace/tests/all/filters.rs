//! Filters over real traces, where they are at hand.

use std::path::PathBuf;
use std::sync::Arc;

use crate::collection::collection;
use ftlab_core::{Batch, Result, Source};
use ftlab_trace::filters::{Amounts, Context, FilterReport, apply};
use ftlab_trace::{ReadOptions, Volumes, open};

/// What the filters did to a trace, its volumes merged.
fn reports(path: PathBuf, specs: &[&str]) -> Vec<FilterReport> {
    let options = ReadOptions {
        volumes: Volumes::Merge,
        ..ReadOptions::default()
    };
    let again =
        Arc::new(move || -> Result<Box<dyn Source>> { Ok(Box::new(open(std::slice::from_ref(&path), &options)?)) });
    let specs: Vec<String> = specs.iter().map(|&spec| spec.to_owned()).collect();
    let context = Context::repeatable(4096, 1, again.clone());
    let mut filtered = apply(&specs, again().unwrap(), &context).unwrap();
    let mut batch = Batch::default();
    loop {
        filtered.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            return filtered.reports();
        }
    }
}

#[test]
fn a_host_cache_leaves_what_the_page_of_lru_says() {
    let Some(traces) = collection() else { return };
    let path = traces.join("umass_spc/Financial1_first50k_noasu.trace.zst");
    let percent = |side: &Amounts| 100.0 * side.reads as f64 / (side.reads + side.writes) as f64;
    let kib = |side: &Amounts| side.bytes_read as f64 / side.reads as f64 / 1024.0;
    for (write, share) in [("through", 41.6), ("back", 73.5), ("miss", 71.6)] {
        let report = &reports(path.clone(), &[&format!("lru:write={write}")])[0];
        let (before, after) = (&report.taken, &report.given);
        assert!(
            (percent(before) - 58.4).abs() < 0.05 && (kib(before) - 7.45).abs() < 0.01,
            "{before:?}"
        );
        assert!(
            (percent(after) - share).abs() < 0.05 && (kib(after) - 6.25).abs() < 0.01,
            "{write}: {after:?}"
        );
        assert_eq!(
            report.notes,
            ["a cache of 24.48 MiB (6267 pages), 0.05 of the stream's span of 489.65 MiB"]
        );
    }
}

#[test]
fn rows_recorded_twice_are_dropped() {
    // The README of the collection: 32.2 % of the rows repeat operation, sector and size within 5 ms.
    let Some(traces) = collection() else { return };
    let report = &reports(traces.join("mobile_pixel6a/slideshow_exec.csv.zst"), &["dedup_rows"])[0];
    let dropped = (report.taken.requests - report.given.requests) as f64 / report.taken.requests as f64;
    assert!((dropped - 0.322).abs() < 0.01, "{dropped}");
}
