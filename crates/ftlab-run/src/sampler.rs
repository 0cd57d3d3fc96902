//! The time series of a run: a few hundred points whatever its length.
//!
//! Points hold sums over their interval, so that two neighbours can be merged. When there are too many, every pair is
//! merged and the interval doubles: a run of unknown length costs constant memory.

use ftlab_core::OpKind;
use ftlab_drive::instrumented::Gauges;

use crate::latency::Latencies;
use crate::table::{Column, Table};

const MOST_POINTS: usize = 800;
const FIRST_INTERVAL: u64 = 64;

/// What has been counted up to a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    pub tick: u64,
    pub time_ns: u64,
    pub requests: u64,
    pub bytes: u64,
    pub host_writes: u64,
    /// By cause, then padding.
    pub programmed: [u64; 7],
    pub read_ns: u128,
    pub reads: u64,
    pub write_ns: u128,
    pub writes: u64,
    pub free_units: u32,
    pub collections: u64,
    /// Collections of units that were filled before the window.
    pub old_victims: u64,
}

impl Reading {
    pub fn new(gauges: &Gauges, latencies: &Latencies, requests: u64, bytes: u64, time_ns: u64) -> Self {
        let [a, b, c, d, e, f] = gauges.programmed;
        let (read_ns, reads) = latencies.sum_of(OpKind::Read);
        let (write_ns, writes) = latencies.sum_of(OpKind::Write);
        Reading {
            tick: gauges.tick,
            time_ns,
            requests,
            bytes,
            host_writes: gauges.host_writes,
            programmed: [a, b, c, d, e, f, gauges.padding],
            read_ns,
            reads,
            write_ns,
            writes,
            free_units: gauges.free_units,
            collections: gauges.collections,
            old_victims: gauges.old_victims,
        }
    }

    /// Units programmed, padding included.
    pub fn all_programmed(&self) -> u64 {
        self.programmed.iter().sum()
    }
}

/// Collects readings at growing intervals.
#[derive(Debug)]
pub struct Sampler {
    points: Vec<Reading>,
    interval: u64,
    next: u64,
}

impl Default for Sampler {
    fn default() -> Self {
        Sampler {
            points: vec![Reading::default()],
            interval: FIRST_INTERVAL,
            next: FIRST_INTERVAL,
        }
    }
}

impl Sampler {
    /// Whether a reading is wanted after so many requests.
    #[inline(always)]
    pub fn due(&self, requests: u64) -> bool {
        requests >= self.next
    }

    pub fn add(&mut self, reading: Reading) {
        self.points.push(reading);
        if self.points.len() > MOST_POINTS {
            // Readings are cumulative: dropping every other one merges the intervals.
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.interval *= 2;
        }
        self.next = reading.requests + self.interval;
    }

    /// The last reading, whenever it comes.
    pub fn finish(&mut self, reading: Reading) {
        if self.points.last().is_some_and(|last| last.requests < reading.requests) {
            self.points.push(reading);
        }
    }

    /// The readings, of which the first is the beginning of the window.
    pub fn readings(&self) -> &[Reading] {
        &self.points
    }

    /// The `series` table; `timed` tells whether there are times and latencies.
    pub fn table(&self, timed: bool) -> Table {
        let pairs: Vec<(&Reading, &Reading)> = self.points.iter().zip(self.points.iter().skip(1)).collect();
        let column = |value: &dyn Fn(&Reading, &Reading) -> f64| {
            Column::F64(pairs.iter().map(|(before, after)| value(before, after)).collect())
        };
        let per_write = |cause: usize| {
            column(&move |a: &Reading, b: &Reading| {
                ratio(
                    (b.programmed[cause] - a.programmed[cause]) as f64,
                    (b.host_writes - a.host_writes) as f64,
                )
            })
        };
        let seconds = |a: &Reading, b: &Reading| (b.time_ns - a.time_ns) as f64 / 1e9;
        let waf = column(&|a, b| {
            ratio(
                (b.all_programmed() - a.all_programmed()) as f64,
                (b.host_writes - a.host_writes) as f64,
            )
        });
        let mut table = Table::new("series")
            .with("tick_units", Column::U64(pairs.iter().map(|(_, b)| b.tick).collect()))
            .with("time_ns", Column::U64(pairs.iter().map(|(_, b)| b.time_ns).collect()))
            .with("waf", waf);
        for (cause, name) in ["host", "gc", "map", "wear", "replication", "metadata", "padding"]
            .iter()
            .enumerate()
        {
            table = table.with(name, per_write(cause));
        }
        let absent = || column(&|_, _| f64::NAN);
        let rates = if timed {
            [
                column(&|a, b| ratio((b.requests - a.requests) as f64, seconds(a, b))),
                column(&|a, b| ratio((b.bytes - a.bytes) as f64, seconds(a, b))),
                column(&|a, b| ratio((b.reads - a.reads) as f64, seconds(a, b))),
                column(&|a, b| ratio((b.writes - a.writes) as f64, seconds(a, b))),
            ]
        } else {
            [absent(), absent(), absent(), absent()]
        };
        let [iops, bytes, read_iops, write_iops] = rates;
        table = table.with("iops", iops).with("bytes_per_s", bytes).with(
            "free_units",
            Column::U64(pairs.iter().map(|(_, b)| u64::from(b.free_units)).collect()),
        );
        let latencies = if timed {
            [
                column(&|a, b| ratio((b.read_ns - a.read_ns) as f64, (b.reads - a.reads) as f64)),
                column(&|a, b| ratio((b.write_ns - a.write_ns) as f64, (b.writes - a.writes) as f64)),
            ]
        } else {
            [absent(), absent()]
        };
        let [read, write] = latencies;
        table
            .with("read_ns", read)
            .with("write_ns", write)
            .with("read_iops", read_iops)
            .with("write_iops", write_iops)
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_keeps_few_points_and_loses_nothing() {
        let at = |requests: u64| {
            let mut reading = Reading {
                requests,
                host_writes: requests,
                tick: requests,
                ..Reading::default()
            };
            reading.programmed[0] = requests;
            reading.programmed[1] = 2 * requests;
            reading
        };
        let mut sampler = Sampler::default();
        for requests in 1..=1_000_000u64 {
            if sampler.due(requests) {
                sampler.add(at(requests));
            }
        }
        sampler.finish(at(1_000_000));
        let table = sampler.table(false);
        assert!((200..=MOST_POINTS).contains(&table.rows()), "{}", table.rows());
        let Some(Column::F64(waf)) = table.column("waf") else {
            panic!("no column `waf`");
        };
        assert!(
            waf.iter().all(|w| *w == 3.0),
            "merged intervals lose or invent programs"
        );
        let Some(Column::U64(ticks)) = table.column("tick_units") else {
            panic!("no column `tick_units`");
        };
        assert_eq!(ticks.last(), Some(&1_000_000));
    }
}
