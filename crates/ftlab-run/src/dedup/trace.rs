//! The door for traces and recordings: requests in, figures out.

use std::time::Instant;

use ftlab_core::request::CONTENT_BYTES;
use ftlab_core::{Batch, Error, Result, Source};
use ftlab_record::replay;
use serde_json::{Value, json};

use super::SCHEMA;
use super::curve::Curve;
use super::recorded::{self, Chunks};
use super::written::{Contexts, Estimate, Octaves, Written};
use crate::Observer;
use crate::mrc::steps;
use crate::spec::WorkloadSpec;
use crate::traces::{Layout, Reading, RequestsSpec, Watched, perf};

/// Memory that a fingerprint takes in a table: 16 bytes of hash, 8 of place and count, 8 of the list.
const ENTRY_BYTES: u64 = 32;
/// Shares of all duplicates for which the smallest table is told.
const KNEES: [f64; 5] = [0.5, 0.8, 0.9, 0.95, 0.99];
/// Most doublings of the table below the size that finds everything.
const OCTAVES: u32 = 10;
/// Rows of a table of contexts.
const ROWS: usize = 32;

/// Reads the requests once.
pub fn count(spec: &RequestsSpec, memory: u64, observer: &mut (dyn Observer + Send)) -> Result<Value> {
    let started = Instant::now();
    let requests = spec.open(Layout::InPlace)?;
    let reading = requests.reading.clone();
    let mut source = Watched::new(requests, "dedup", observer);
    let mut written = Written::new(memory, spec.merges_volumes());
    let mut batch = Batch::default();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        written.add(&batch);
    }
    if written.known == 0 {
        let report = reading.report();
        let name = report.as_ref().and_then(|report| report.files.first());
        let name = name.map_or("the workload".to_owned(), |file| file.clone());
        return Err(Error::input(match written.ids_read {
            0 => format!(
                "{name}: its requests carry no content ids, so that duplicates cannot be counted \
                 (FIU and Android traces with digests, and recordings with contents, have them; --of files counts the bytes \
                 of the file itself)"
            ),
            _ => format!("{name}: no write carries content ids, so there is nothing to deduplicate"),
        }));
    }
    let (values, rate) = written.sampling();
    let known = written.known as f64;
    let share = |of: Estimate| all_but(of, known);
    let sampled = written.sampled;
    let ratio = |part: u64| fraction(part, sampled.all);
    let (distinct, stored) = (written.distinct(), written.stored());
    // A value that was read before it was first written is live then, though no table of what was written has it.
    let live = known - stored.value - written.first_live().value;
    let curve = written.depths.finish(known - distinct.value, live);
    let wall_s = started.elapsed().as_secs_f64();
    let [lying, different] = written.at_end();
    let mut by_chunks = chunks(spec, &reading, memory)?.into_iter();
    Ok(json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "kind": "trace",
        "workload": reading.describe(),
        "filters": reading.filters(),
        "trace": reading.report(),
        "requests": source.requests(),
        "unit_bytes": CONTENT_BYTES,
        "written": {
            "units": written.known,
            "bytes": written.known_bytes,
            "unknown_units": written.unknown,
            "unknown_bytes": written.unknown_bytes,
        },
        "sampling": { "exact": rate == 1.0, "rate": rate, "values": values },
        "duplicates": {
            "seen_before": share(written.new_values()),
            "written_before": share(distinct),
            "live": share(stored),
            "rewritten_share": ratio(sampled.rewritten),
        },
        "chunks": by_chunks.next(),
        "smaller_chunks": by_chunks.collect::<Vec<_>>(),
        "distinct": estimate(distinct),
        "at_end": { "units": estimate(lying), "values": estimate(different) },
        "contexts": tables(&written, &source.label_names()),
        "distances": {
            "units": octaves(&written.ticks),
            "time_ns": octaves(&written.times),
        },
        "fingerprints": fingerprints(&curve, known, (1.0 / rate) as u64),
        "perf": perf(wall_s, source.requests()),
    }))
}

/// The share of what is not counted in `of`; an estimate may be a little more than all there is.
fn all_but(of: Estimate, all: f64) -> Value {
    json!({ "share": (1.0 - of.value / all).max(0.0), "error": of.error / all })
}

/// Duplicates among the smaller chunks of a recording that is read as it is, a value for each size; none of anything else.
fn chunks(spec: &RequestsSpec, reading: &Reading, memory: u64) -> Result<Vec<Value>> {
    let (WorkloadSpec::Trace(trace), Some(report)) = (&spec.workload, reading.report()) else {
        return Ok(Vec::new());
    };
    let [path] = trace.paths.as_slice() else {
        return Ok(Vec::new());
    };
    let untouched = spec.filters.is_empty() && spec.requests.is_none() && path.is_file();
    if report.format != "recording" || !untouched {
        return Ok(Vec::new());
    }
    let replayed = report.choices.iter().find(|choice| choice.setting == "replay");
    let options = replay::Options::parse(replayed.map_or("", |choice| &choice.value))?;
    // A packed recording is read as a trace, but not once more.
    let Ok(all) = recorded::chunks(path, &options, memory) else {
        return Ok(Vec::new());
    };
    let known = all.into_iter().filter(|of| of.written.known > 0);
    Ok(known
        .map(|Chunks { bytes, written }| {
            let known = written.known as f64;
            json!({
                "unit_bytes": bytes,
                "units": written.known,
                "unknown_units": written.unknown,
                "written_before": all_but(written.distinct(), known),
                "live": all_but(written.stored(), known),
            })
        })
        .collect())
}

fn estimate(of: Estimate) -> Value {
    json!({ "value": of.value, "error": of.error })
}

fn fraction(part: u64, whole: u64) -> Value {
    match whole {
        0 => Value::Null,
        _ => json!(part as f64 / whole as f64),
    }
}

/// Lower ends of powers of two from the first that occurs to the last, and the share of each.
fn octaves(of: &Octaves) -> Value {
    let total: u64 = of.0.iter().sum();
    let first = of.0.iter().position(|&count| count > 0).unwrap_or(0);
    let places = first..of.0.len();
    json!({
        "from": places.clone().map(|at| if at == 0 { 0 } else { 1u64 << (at - 1) }).collect::<Vec<_>>(),
        "share": places.map(|at| fraction(of.0[at], total)).collect::<Vec<_>>(),
    })
}

/// What tables of every size find that the sample can tell apart: from `least` entries on.
fn fingerprints(curve: &Curve, written: f64, least: u64) -> Value {
    let [all, _] = curve.hits(curve.enough());
    let point = |entries: u64| {
        let [hits, live] = curve.hits(entries);
        json!({
            "entries": entries,
            "bytes": entries * ENTRY_BYTES,
            "found_share": hits / written,
            "found_live_share": live / written,
            "of_all": if all > 0.0 { json!(hits / all) } else { Value::Null },
        })
    };
    let enough = curve.enough();
    let top = enough.max(1).next_power_of_two();
    let sizes = (0..=OCTAVES)
        .rev()
        .map(|octave| top >> octave)
        .filter(|&entries| entries >= least);
    let steps: Vec<u64> = steps(enough).into_iter().filter(|&entries| entries >= least).collect();
    json!({
        "entry_bytes": ENTRY_BYTES,
        "enough": enough,
        "points": sizes.map(point).collect::<Vec<_>>(),
        "knees": KNEES.map(|share| json!({
            "of_all": share,
            "entries": if all > 0.0 { curve.least(share).into() } else { Value::Null },
        })),
        "curve": {
            "entries": &steps,
            "found_share": steps.iter().map(|&n| curve.hits(n)[0] / written).collect::<Vec<_>>(),
            "found_live_share": steps.iter().map(|&n| curve.hits(n)[1] / written).collect::<Vec<_>>(),
        },
    })
}

/// A table for program contexts, and one for labels, where there are any: those that write most first.
fn tables(written: &Written, labels: &[String]) -> Vec<Value> {
    let mut tables = Vec::new();
    if written.has_contexts() {
        tables.push(table("pc", &written.contexts, |id| format!("{id:#018x}")));
    }
    if written.has_labels() {
        let name = |id: u64| labels.get(id as usize).cloned().unwrap_or_else(|| id.to_string());
        tables.push(table("label", &written.labels, name));
    }
    tables
}

fn table(kind: &str, contexts: &Contexts, name: impl Fn(u64) -> String) -> Value {
    let mut order: Vec<_> = contexts.rows.iter().filter(|(_, context)| context.units > 0).collect();
    order.sort_by_key(|(id, context)| (std::cmp::Reverse(context.units), *id));
    let rows = order.iter().take(ROWS).map(|(id, context)| {
        json!({
            "name": name(*id),
            "units": context.units,
            "written_before_share": fraction(context.sampled.before, context.sampled.all),
            "live_share": fraction(context.sampled.live, context.sampled.all),
        })
    });
    json!({ "kind": kind, "contexts": order.len(), "exact": contexts.other.units == 0, "rows": rows.collect::<Vec<_>>() })
}
