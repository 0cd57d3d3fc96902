//! Latencies of a run: a histogram and the mean parts for each operation, and a row per request if asked for.

use std::borrow::Cow;

use ftlab_core::{Breakdown, Histogram, OpKind};
use serde_json::{Map, Value, json};

use crate::table::{Column, Table};
use crate::tails::Tails;

/// Latencies by operation.
#[derive(Default)]
pub struct Latencies {
    by_op: [OneOp; 4],
    tails: Tails,
}

#[derive(Default)]
struct OneOp {
    histogram: Histogram,
    /// Sums of all parts but the time in queues, which is what they leave of the sum of the latencies.
    parts: [u128; 4],
}

const QUANTILES: [(&str, f64); 6] = [
    ("p50_ns", 0.5),
    ("p90_ns", 0.9),
    ("p95_ns", 0.95),
    ("p99_ns", 0.99),
    ("p999_ns", 0.999),
    ("p9999_ns", 0.9999),
];
const PARTS: [&str; 5] = ["queue_ns", "map_ns", "flash_ns", "transfer_ns", "gc_wait_ns"];

fn parts_of(parts: &Breakdown) -> [u64; 5] {
    [
        parts.queue_ns,
        parts.map_ns,
        parts.flash_ns,
        parts.transfer_ns,
        parts.gc_wait_ns,
    ]
}

impl Latencies {
    /// Adds a request. The time that it was late at the host is in `latency_ns` but not in `parts`: it counts as queueing.
    #[inline]
    pub fn record(&mut self, op: OpKind, late_ns: u64, latency_ns: u64, parts: &Breakdown) {
        debug_assert_eq!(late_ns + parts.total_ns(), latency_ns, "parts sum to the latency");
        let one = &mut self.by_op[op as usize];
        one.histogram.record(latency_ns);
        let [_, others @ ..] = parts_of(parts);
        for (sum, part) in one.parts.iter_mut().zip(others) {
            *sum += u128::from(part);
        }
        self.tails.record(op, latency_ns);
    }

    /// Coarse counts, for the tail of an interval.
    pub fn tails(&self) -> &Tails {
        &self.tails
    }

    /// Sum of the latencies of an operation so far, and their number.
    pub fn sum_of(&self, op: OpKind) -> (u128, u64) {
        let histogram = &self.by_op[op as usize].histogram;
        (histogram.sum(), histogram.count())
    }

    /// The `latency` block of the summary.
    pub fn summary(&self) -> Value {
        let mut all = Map::new();
        for op in OpKind::ALL {
            let one = &self.by_op[op as usize];
            let count = one.histogram.count();
            if count == 0 {
                continue;
            }
            let mut entry = Map::new();
            entry.insert("count".into(), count.into());
            entry.insert("mean_ns".into(), json!(one.histogram.mean()));
            for (name, quantile) in QUANTILES {
                entry.insert(name.into(), one.histogram.quantile(quantile).into());
            }
            entry.insert("max_ns".into(), one.histogram.max().into());
            let queue = one.histogram.sum() - one.parts.iter().sum::<u128>();
            let sums = std::iter::once(queue).chain(one.parts);
            for (name, sum) in PARTS.iter().zip(sums) {
                entry.insert((*name).into(), json!(sum as f64 / count as f64));
            }
            all.insert(op.name().into(), Value::Object(entry));
        }
        Value::Object(all)
    }

    /// The `latency` table: mergeable histograms.
    pub fn table(&self) -> Table {
        let (mut ops, mut upper, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for op in OpKind::ALL {
            for (value, count) in self.by_op[op as usize].histogram.buckets() {
                ops.push(op.name().into());
                upper.push(value);
                counts.push(count);
            }
        }
        Table::new("latency")
            .with("op", Column::Text(ops))
            .with("upper_ns", Column::U64(upper))
            .with("count", Column::U64(counts))
    }
}

/// The `requests` table while it grows.
#[derive(Default)]
pub struct RequestRows {
    time_ns: Vec<u64>,
    op: Vec<Cow<'static, str>>,
    offset: Vec<u64>,
    length: Vec<u64>,
    latency_ns: Vec<u64>,
    parts: [Vec<u64>; 5],
}

/// A completed request.
pub struct RequestRow {
    pub time_ns: u64,
    pub op: OpKind,
    pub offset: u64,
    pub length: u32,
    pub latency_ns: u64,
    pub parts: Breakdown,
}

impl RequestRows {
    pub fn push(&mut self, row: &RequestRow) {
        self.time_ns.push(row.time_ns);
        self.op.push(row.op.name().into());
        self.offset.push(row.offset);
        self.length.push(u64::from(row.length));
        self.latency_ns.push(row.latency_ns);
        let mut parts = parts_of(&row.parts);
        parts[0] += row.latency_ns - row.parts.total_ns();
        for (column, part) in self.parts.iter_mut().zip(parts) {
            column.push(part);
        }
    }

    pub fn table(self) -> Table {
        let mut table = Table::new("requests")
            .with("time_ns", Column::U64(self.time_ns))
            .with("op", Column::Text(self.op))
            .with("offset", Column::U64(self.offset))
            .with("length", Column::U64(self.length))
            .with("latency_ns", Column::U64(self.latency_ns));
        for (name, column) in PARTS.iter().zip(self.parts) {
            table = table.with(name, Column::U64(column));
        }
        table
    }
}
