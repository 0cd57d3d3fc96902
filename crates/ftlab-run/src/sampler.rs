//! The time series of a run: a few hundred points whatever its length.
//!
//! Points hold sums over their interval, so that two neighbours can be merged. When there are too many, every pair is
//! merged and the interval doubles: a run of unknown length costs constant memory.

use ftlab_core::OpKind;
use ftlab_drive::instrumented::Gauges;

use crate::latency::Latencies;
use crate::table::{Column, Table};
use crate::tails::Tails;

const MOST_POINTS: usize = 800;
const FIRST_INTERVAL: u64 = 64;

/// What has been counted up to a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    pub tick: u64,
    pub time_ns: u64,
    pub requests: u64,
    pub bytes: u64,
    /// Of `bytes`; counted where there is time.
    pub written_bytes: u64,
    pub host_writes: u64,
    /// By cause, then padding.
    pub programmed: [u64; 7],
    pub read_ns: u128,
    pub reads: u64,
    pub write_ns: u128,
    pub writes: u64,
    /// Latencies of every operation.
    pub latency_ns: u128,
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
            written_bytes: 0,
            host_writes: gauges.host_writes,
            programmed: [a, b, c, d, e, f, gauges.padding],
            read_ns,
            reads,
            write_ns,
            writes,
            latency_ns: OpKind::ALL.iter().map(|&op| latencies.sum_of(op).0).sum(),
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
    /// Of each point, where there is time.
    tails: Vec<Tails>,
    interval: u64,
    next: u64,
}

impl Default for Sampler {
    fn default() -> Self {
        Sampler {
            points: vec![Reading::default()],
            tails: Vec::new(),
            interval: FIRST_INTERVAL,
            next: FIRST_INTERVAL,
        }
    }
}

impl Sampler {
    /// One that keeps the tails of latencies.
    pub fn timed() -> Self {
        Sampler {
            tails: vec![Tails::default()],
            ..Sampler::default()
        }
    }

    /// Whether a reading is wanted after so many requests.
    #[inline(always)]
    pub fn due(&self, requests: u64) -> bool {
        requests >= self.next
    }

    /// After how many requests the next reading is wanted.
    pub fn next_due(&self) -> u64 {
        self.next
    }

    pub fn add(&mut self, reading: Reading, tails: &Tails) {
        self.push(reading, tails);
        if self.points.len() > MOST_POINTS {
            // Readings are cumulative: dropping every other one merges the intervals.
            keep_every_other(&mut self.points);
            keep_every_other(&mut self.tails);
            self.interval *= 2;
        }
        self.next = reading.requests + self.interval;
    }

    /// The last reading, whenever it comes.
    pub fn finish(&mut self, reading: Reading, tails: &Tails) {
        if self.points.last().is_some_and(|last| last.requests < reading.requests) {
            self.push(reading, tails);
        }
    }

    fn push(&mut self, reading: Reading, tails: &Tails) {
        self.points.push(reading);
        if !self.tails.is_empty() {
            self.tails.push(tails.clone());
        }
    }

    /// The 99th percentile of each interval.
    fn p99(&self, op: OpKind) -> Column {
        let pairs = self.tails.iter().zip(self.tails.iter().skip(1));
        let of_interval = |(before, after): (&Tails, &Tails)| after.quantile_since(before, op, 0.99);
        let mut found: Vec<f64> = pairs.map(|pair| of_interval(pair).unwrap_or(f64::NAN)).collect();
        found.resize(self.points.len() - 1, f64::NAN);
        Column::F64(found)
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
                column(&|a, b| {
                    let read = |reading: &Reading| reading.bytes - reading.written_bytes;
                    ratio((read(b) - read(a)) as f64, seconds(a, b))
                }),
                column(&|a, b| ratio((b.written_bytes - a.written_bytes) as f64, seconds(a, b))),
            ]
        } else {
            std::array::from_fn(|_| absent())
        };
        let [iops, bytes, read_iops, write_iops, read_bytes, write_bytes] = rates;
        table = table.with("iops", iops).with("bytes_per_s", bytes).with(
            "free_units",
            Column::U64(pairs.iter().map(|(_, b)| u64::from(b.free_units)).collect()),
        );
        let latencies = if timed {
            [
                column(&|a, b| ratio((b.read_ns - a.read_ns) as f64, (b.reads - a.reads) as f64)),
                column(&|a, b| ratio((b.write_ns - a.write_ns) as f64, (b.writes - a.writes) as f64)),
                // Little's law.
                column(&|a, b| ratio((b.latency_ns - a.latency_ns) as f64 / 1e9, seconds(a, b))),
            ]
        } else {
            [absent(), absent(), absent()]
        };
        let [read, write, queue_depth] = latencies;
        table
            .with("read_ns", read)
            .with("write_ns", write)
            .with("read_iops", read_iops)
            .with("write_iops", write_iops)
            .with("read_p99_ns", self.p99(OpKind::Read))
            .with("write_p99_ns", self.p99(OpKind::Write))
            .with("queue_depth", queue_depth)
            .with("read_bytes_per_s", read_bytes)
            .with("write_bytes_per_s", write_bytes)
    }
}

pub fn keep_every_other<T>(all: &mut Vec<T>) {
    let mut index = 0;
    all.retain(|_| {
        index += 1;
        index % 2 == 1
    });
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
                sampler.add(at(requests), &Tails::default());
            }
        }
        sampler.finish(at(1_000_000), &Tails::default());
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

    /// Reads of 1 us but for every fiftieth of 1 ms in the second half, one after the other: the tail of an interval is its own, the
    /// depth is 1 throughout, and merging intervals changes neither.
    #[test]
    fn each_interval_has_a_tail_and_a_depth_of_its_own() {
        const REQUESTS: u64 = 200_000;
        let (mut sampler, mut tails, mut now) = (Sampler::timed(), Tails::default(), 0);
        for requests in 1..=REQUESTS {
            let slow = requests > REQUESTS / 2 && requests % 50 == 0;
            let latency = if slow { 1_000_000 } else { 1000 };
            tails.record(OpKind::Read, latency);
            now += latency;
            if sampler.due(requests) || requests == REQUESTS {
                let reading = Reading {
                    requests,
                    time_ns: now,
                    latency_ns: u128::from(now),
                    ..Reading::default()
                };
                sampler.add(reading, &tails);
            }
        }
        let table = sampler.table(true);
        let floats = |name: &str| match table.column(name) {
            Some(Column::F64(values)) => values.clone(),
            _ => panic!("no column `{name}`"),
        };
        let p99 = floats("read_p99_ns");
        let half = p99.len() / 2;
        assert!(p99.len() > 200);
        // The interval in the middle has some of both halves.
        assert!(p99[..half - 1].iter().all(|p| (p / 1e3 - 1.0).abs() < 0.063), "{p99:?}");
        assert!(p99[half + 1..].iter().all(|p| (p / 1e6 - 1.0).abs() < 0.063), "{p99:?}");
        assert!(floats("queue_depth").iter().all(|depth| (depth - 1.0).abs() < 1e-9));
        assert!(floats("write_p99_ns").iter().all(|p| p.is_nan()));
    }
}
