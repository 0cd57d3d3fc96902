//! What a run is told as: JSON.

use serde_json::{Value, json};

use crate::bank::Counts;
use crate::memory::WriteCost;
use crate::system::System;
use crate::{Memory, Ps};

pub fn ns(time: Ps) -> f64 {
    time as f64 / 1000.0
}

/// The memory: its shape, its times, and what follows from them.
pub fn memory(memory: &Memory, name: &str) -> Value {
    let ceiling = f64::from(memory.channels) * memory.line_bytes as f64 / (ns(memory.t_burst) * 1e-9);
    let miss = memory.hit() + memory.t_rcd;
    json!({
        "name": name,
        "title": memory.title,
        "source": memory.source,
        "channels": memory.channels,
        "banks": memory.banks_in_all(),
        "row_bytes": memory.row_bytes,
        "line_bytes": memory.line_bytes,
        "capacity_bytes": memory.map.capacity,
        "bank_functions": memory.map.functions.iter().map(|f| format!("{f:#x}")).collect::<Vec<_>>(),
        "rows_lie_in_one_bank": memory.map.keeps_together(memory.row_bytes),
        "scheduler": memory.scheduler.name(),
        "write_cost": match memory.cost {
            WriteCost::Line => "line",
            WriteCost::Row => "row",
            WriteCost::Recovery => "recovery",
        },
        "unloaded_ns": {
            "hit": ns(memory.hit()),
            "miss": ns(miss),
            "conflict": ns(miss + memory.t_rp),
            "dirty_conflict": ns(miss + memory.t_rp + if memory.cost == WriteCost::Row { memory.t_wr } else { 0 }),
        },
        "ceiling_bytes_per_s": ceiling,
    })
}

/// What the system measured, `heat` as well if wanted.
pub fn measured(memory: &Memory, system: &System, heat: bool) -> Value {
    let m = &system.measured;
    let mut sum = Counts::default();
    let mut banks = Vec::new();
    let mut requests: Vec<u64> = Vec::new();
    let (mut rows_written, mut most_written, mut cell_writes) = (0u64, 0u32, 0u64);
    for (number, channel) in system.channels.iter().enumerate() {
        for (index, bank) in channel.banks.iter().enumerate() {
            let c = &bank.counts;
            sum.reads += c.reads;
            sum.writes += c.writes;
            sum.hits += c.hits;
            sum.misses += c.misses;
            sum.conflicts += c.conflicts;
            sum.dirty_closed += c.dirty_closed;
            sum.pauses += c.pauses;
            sum.busy += c.busy;
            requests.push(c.reads + c.writes);
            rows_written += bank.wear.len() as u64;
            most_written = most_written.max(bank.wear.values().copied().max().unwrap_or(0));
            cell_writes += bank.wear.values().map(|&n| u64::from(n)).sum::<u64>();
            banks.push(json!({
                "channel": number,
                "bank": index,
                "reads": c.reads,
                "writes": c.writes,
                "hits": c.hits,
                "misses": c.misses,
                "conflicts": c.conflicts,
                "busy": c.busy as f64 / m.drained.max(1) as f64,
            }));
        }
    }
    let served = sum.reads + sum.writes;
    let completed = m.reads.count() + m.writes.count();
    let most = requests.iter().copied().max().unwrap_or(0);
    let total = |of: fn(&crate::channel::Counts) -> u64| -> u64 { system.channels.iter().map(|c| of(&c.counts)).sum() };
    let bus: u64 = total(|c| c.bus_busy);
    let held = |class: usize| -> u128 { system.channels.iter().map(|c| c.counts.held[class]).sum() };
    let mut value = json!({
        "requests": completed,
        "reads": latencies(&m.reads, m.read_ps, held(0)),
        "writes": latencies(&m.writes, m.write_ps, held(1)),
        "latency_sum_ns": (m.read_ps + m.write_ps) as f64 / 1000.0,
        "finished_ns": ns(m.finished),
        "drained_ns": ns(m.drained),
        "bytes_per_s": completed as f64 * memory.line_bytes as f64 / (ns(m.drained.max(1)) * 1e-9),
        "bus_busy": bus as f64 / m.drained.max(1) as f64 / f64::from(memory.channels),
        "rows": {
            "hits": sum.hits,
            "misses": sum.misses,
            "conflicts": sum.conflicts,
            "hit_ratio": if served == 0 { Value::Null } else { json!(sum.hits as f64 / served as f64) },
        },
        "skew": if served == 0 { Value::Null } else { json!(most as f64 * requests.len() as f64 / served as f64) },
        "write_buffer": {
            "answered_reads": total(|c| c.from_buffer),
            "replaced": total(|c| c.replaced),
            "drains": total(|c| c.drains),
        },
        "closed_unserved": total(|c| c.closed_unserved),
        "pauses": sum.pauses,
        "refreshes": total(|c| c.refreshes),
        "wear": {
            "cell_writes": cell_writes,
            "rows": rows_written,
            "most_of_a_row": most_written,
        },
        "banks": banks,
    });
    if heat {
        let end = m.drained;
        let shares: Vec<Vec<f64>> = system
            .channels
            .iter()
            .flat_map(|channel| channel.timeline.shares(end))
            .collect();
        let widths: Vec<f64> = system
            .channels
            .iter()
            .map(|channel| channel.timeline.window_ns())
            .collect();
        value["heat"] = json!({"window_ns": widths, "busy": shares});
    }
    value
}

fn latencies(histogram: &ftlab_core::Histogram, sum: u128, held: u128) -> Value {
    if histogram.count() == 0 {
        return Value::Null;
    }
    json!({
        "count": histogram.count(),
        "mean_ns": sum as f64 / 1000.0 / histogram.count() as f64,
        "held_ns": held as f64 / 1000.0 / histogram.count() as f64,
        "p50_ns": histogram.quantile(0.5),
        "p95_ns": histogram.quantile(0.95),
        "p99_ns": histogram.quantile(0.99),
        "p999_ns": histogram.quantile(0.999),
        "max_ns": histogram.max(),
    })
}
