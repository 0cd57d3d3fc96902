//! What a store has done.

use ftlab_core::histogram::Histogram;
use serde_json::{Value, json};

use crate::options::MOST_COPIES;

/// Accesses by how many copies they went to.
#[derive(Clone, Default)]
pub struct Races {
    pub by_accesses: [u64; MOST_COPIES],
    /// Counted when it happens, so also of accesses that have not ended.
    pub deadlines_missed: u64,
    /// Decided by another access than the first.
    pub won_by_further: u64,
    pub failed_copies: u64,
    pub time: Histogram,
}

impl Races {
    pub fn count(&self) -> u64 {
        self.by_accesses.iter().sum()
    }

    /// Accesses beyond the first of each.
    pub fn further(&self) -> u64 {
        (0..).zip(self.by_accesses).map(|(more, count)| more * count).sum()
    }

    fn to_json(&self) -> Value {
        json!({
            "count": self.count(),
            "by_accesses": self.by_accesses,
            "further": self.further(),
            "deadlines_missed": self.deadlines_missed,
            "won_by_further": self.won_by_further,
            "failed_copies": self.failed_copies,
            "latency": {
                "mean_ns": self.time.mean(),
                "p50_ns": self.time.quantile(0.5),
                "p99_ns": self.time.quantile(0.99),
                "max_ns": self.time.max(),
            },
        })
    }
}

#[derive(Clone, Default)]
pub struct Counters {
    pub reads: Races,
    pub writes: Races,
    /// Copies written in idle time because reads were late.
    pub idle_copies: u64,
    pub syncs: u64,
    /// Of those, for want of free slots.
    pub forced_syncs: u64,
    /// Writes that found all slots taken, some of them by accesses that had not ended.
    pub slot_waits: u64,
    pub data_syncs: u64,
    pub map_log_bytes: u64,
    pub map_log_syncs: u64,
    pub map_log_rewrites: u64,
}

impl Counters {
    pub fn to_json(&self) -> Value {
        let writes = self.writes.count();
        let extra = self.writes.further() + self.idle_copies;
        json!({
            "reads": self.reads.to_json(),
            "writes": self.writes.to_json(),
            "extra_writes": extra,
            "extra_writes_share": if writes == 0 { 0.0 } else { extra as f64 / writes as f64 },
            "idle_copies": self.idle_copies,
            "syncs": self.syncs,
            "forced_syncs": self.forced_syncs,
            "slot_waits": self.slot_waits,
            "data_syncs": self.data_syncs,
            "map_log": {
                "bytes": self.map_log_bytes,
                "syncs": self.map_log_syncs,
                "rewrites": self.map_log_rewrites,
            },
        })
    }
}
