//! What a service was like: the latency that the drive asked for, and the one that clients got.

use ftlab_core::{Histogram, OpKind};
use serde_json::{Map, Value, json};

/// Figures of a service.
#[derive(Default)]
pub struct Report {
    by_op: [OneOp; 4],
    /// From the moment at which an answer was due until it was handed to its connection.
    late: Histogram,
    /// What synchronising the image took.
    sync: Histogram,
    /// Failed requests, by error number in order.
    errors: Vec<(u32, u64)>,
    pub connections: u64,
    pub refused_connections: u64,
    pub cuts: Vec<Value>,
    /// Flushes that the server made to bound what a power cut could bring back.
    pub own_flushes: u64,
    /// Requests that waited for another on the same unit.
    pub held: u64,
    pub data: Value,
    pub faults: Value,
}

#[derive(Default)]
struct OneOp {
    asked: Histogram,
    delivered: Histogram,
}

impl Report {
    /// A request was answered: what the device took, what passed since it arrived, and how late that was.
    pub fn answered(&mut self, op: OpKind, asked_ns: u64, delivered_ns: u64, late_ns: u64) {
        let one = &mut self.by_op[op as usize];
        one.asked.record(asked_ns);
        one.delivered.record(delivered_ns);
        self.late.record(late_ns);
    }

    pub fn failed(&mut self, error: u32) {
        match self.errors.binary_search_by_key(&error, |&(known, _)| known) {
            Ok(place) => self.errors[place].1 += 1,
            Err(place) => self.errors.insert(place, (error, 1)),
        }
    }

    pub fn synchronised(&mut self, ns: u64) {
        self.sync.record(ns);
    }

    /// Half of all answers were later than this, and one in a hundred.
    pub fn late_ns(&self) -> [u64; 2] {
        [self.late.quantile(0.5), self.late.quantile(0.99)]
    }

    /// The mean latency that the drive asked for.
    pub fn asked_mean_ns(&self) -> f64 {
        let sum: u128 = self.by_op.iter().map(|one| one.asked.sum()).sum();
        let count: u64 = self.by_op.iter().map(|one| one.asked.count()).sum();
        sum as f64 / count.max(1) as f64
    }

    /// The `serve` block of a summary.
    pub fn to_json(&self) -> Value {
        let mut latency = Map::new();
        for op in OpKind::ALL {
            let one = &self.by_op[op as usize];
            if one.asked.count() > 0 {
                let block = json!({ "asked": quantiles(&one.asked), "delivered": quantiles(&one.delivered) });
                latency.insert(op.name().to_owned(), block);
            }
        }
        let errors = self.errors.iter();
        let errors: Map<String, Value> = errors.map(|(error, count)| (name(*error), (*count).into())).collect();
        json!({
            "latency": latency,
            "late": quantiles(&self.late),
            "sync": quantiles(&self.sync),
            "errors": errors,
            "connections": self.connections,
            "refused_connections": self.refused_connections,
            "held_requests": self.held,
            "own_flushes": self.own_flushes,
            "faults": self.faults,
            "power_cuts": self.cuts,
            "data": self.data,
        })
    }
}

fn quantiles(histogram: &Histogram) -> Value {
    match histogram.count() {
        0 => json!({ "count": 0 }),
        count => json!({
            "count": count,
            "mean_ns": histogram.mean(),
            "p50_ns": histogram.quantile(0.5),
            "p99_ns": histogram.quantile(0.99),
            "max_ns": histogram.max(),
        }),
    }
}

fn name(error: u32) -> String {
    use crate::protocol::error as e;
    match error {
        e::EPERM => "EPERM".to_owned(),
        e::EIO => "EIO".to_owned(),
        e::EINVAL => "EINVAL".to_owned(),
        e::ENOSPC => "ENOSPC".to_owned(),
        e::ENOTSUP => "ENOTSUP".to_owned(),
        e::ESHUTDOWN => "ESHUTDOWN".to_owned(),
        other => other.to_string(),
    }
}
