//! A sampling job on a modelled array, in virtual time.
//!
//! # Model
//! `threads` I/O threads read one partition each at a time (`tasks`). With `coupled` a thread also works on what it read, for `compute`, before its next read, as tasks of a
//! data-parallel engine do; else `workers` other threads work on what has come, first come first served. With `drop`, so much more than asked is drawn, and the job
//! ends when as many partitions as were asked for are done. A partition is a read of `partition` bytes at its place on its disk.
//!
//! Partitions have values (mean 1, standard deviation `spread`), and a partition of value `v` takes `v ^ content_slows` times as long in the flash:
//! slowness by chance has 0. What the estimate of the mean is, by weights of what was accepted of each disk, tells the bias of dropping: of all that was completed, and of
//! each disk's random order up to the last completed (what is under way in front of it is waited for).
//!
//! A disk is one of stated service times (`disk`), or a simulated drive of the laboratory in its steady state (`drives`), whose collections and queues are its own; `writes` go
//! to each disk beside the job, so that there is something to collect.
//!
//! # Not modelled
//! Cores (each thread has one), start-up of an engine, network, memory.
//!
//! # Errors
//! Options out of range.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ftlab_core::{BlockDevice, Completion, Error, Histogram, IoRequest, OpKind, Result, Stream, units};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::blocked::blocked;
use super::disk::{Disk, Service, Simulated, StatedDisk};
use super::tasks::{self, Choice, Schedule, Task};
use crate::asked_json;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ArraySpec {
    pub disks: usize,
    /// Of each disk, 1 for those that are not given.
    pub speeds: Vec<f64>,
    /// Size of the dataset.
    pub data: String,
    pub partition: String,
    pub ratio: f64,
    pub choice: String,
    pub schedule: String,
    pub coupled: bool,
    pub threads: usize,
    pub workers: usize,
    pub compute: String,
    pub drop: f64,
    pub latency: String,
    pub bandwidth: String,
    pub ways: usize,
    pub jitter: f64,
    pub pause: String,
    pub pause_every: String,
    /// Simulated drives in place of stated disks, by their names: of each disk, the last of those that are not given. The seven options above then say nothing.
    pub drives: Vec<String>,
    /// Written onto each disk beside the job (`20MB/s`): 4 KiB at a time, anywhere.
    pub writes: String,
    pub spread: f64,
    pub content_slows: f64,
    pub seed: u64,
    /// Latencies over time are told in so many windows; 0: not.
    pub windows: usize,
}

impl Default for ArraySpec {
    fn default() -> Self {
        ArraySpec {
            disks: 8,
            speeds: Vec::new(),
            data: "1GiB".to_owned(),
            partition: "8KiB".to_owned(),
            ratio: 0.01,
            choice: "balanced".to_owned(),
            schedule: "contention_free".to_owned(),
            coupled: false,
            threads: 8,
            workers: 8,
            compute: "0ns".to_owned(),
            drop: 0.0,
            latency: "100us".to_owned(),
            bandwidth: "250MB/s".to_owned(),
            ways: 1,
            jitter: 0.2,
            pause: "4ms".to_owned(),
            pause_every: "660ms".to_owned(),
            drives: Vec::new(),
            writes: "0B/s".to_owned(),
            spread: 0.2,
            content_slows: 0.0,
            seed: 0,
            windows: 0,
        }
    }
}

/// What `ArraySpec` means.
pub(super) struct Array {
    pub(super) choice: Choice,
    pub(super) schedule: Schedule,
    pub(super) partition_bytes: u64,
    pub(super) partitions: u64,
    pub(super) asked: u64,
    pub(super) drawn: u64,
    pub(super) compute_ns: u64,
    service: Service,
    /// Between two writes beside the job, on average; none without.
    write_gap_ns: Option<f64>,
}

impl ArraySpec {
    pub fn parse(json: &str) -> Result<ArraySpec> {
        asked_json::read("array", json)
    }

    pub(super) fn resolve(&self) -> Result<Array> {
        let refuse = |what: &str, value: String, expected: &str| {
            Error::input(format!("array: {what} {value}: expected {expected}"))
        };
        for (what, value, most) in [
            ("disks", self.disks, 4096),
            ("threads", self.threads, 65_536),
            ("workers", self.workers, 65_536),
            ("ways", self.ways, 4096),
        ] {
            if !(1..=most).contains(&value) {
                return Err(refuse(what, value.to_string(), &format!("1 to {most}")));
            }
        }
        for (what, value, low, high) in [
            ("drop", self.drop, 0.0, 10.0),
            ("jitter", self.jitter, 0.0, 1.0),
            ("spread", self.spread, 0.0, 0.3),
            ("content_slows", self.content_slows, 0.0, 10.0),
        ] {
            if !(low..=high).contains(&value) {
                return Err(refuse(what, value.to_string(), &format!("{low} to {high}")));
            }
        }
        if !(self.ratio > 0.0 && self.ratio <= 1.0) {
            return Err(refuse("ratio", self.ratio.to_string(), "more than 0 and at most 1"));
        }
        if let Some(speed) = self.speeds.iter().find(|speed| !(0.001..=1000.0).contains(*speed)) {
            return Err(refuse("speeds", speed.to_string(), "0.001 to 1000"));
        }
        if self.speeds.len() > self.disks {
            return Err(refuse("speeds", self.speeds.len().to_string(), "at most one a disk"));
        }
        let partition_bytes = units::bytes(&self.partition)?;
        if !(512..=1 << 30).contains(&partition_bytes) {
            return Err(refuse("partition", self.partition.clone(), "512B to 1GiB"));
        }
        let partitions = units::bytes(&self.data)? / partition_bytes;
        if partitions < 2 * self.disks as u64 {
            return Err(refuse("data", self.data.clone(), "at least two partitions a disk"));
        }
        let asked = ((self.ratio * partitions as f64).round() as u64).clamp(1, partitions);
        let drawn = ((asked as f64 * (1.0 + self.drop)).round() as u64).min(partitions);
        if drawn > 50_000_000 {
            return Err(refuse("ratio", self.ratio.to_string(), "at most 50 million partitions"));
        }
        if !self.drives.is_empty() && self.content_slows != 0.0 {
            return Err(refuse("content_slows", self.content_slows.to_string(), "0 with drives"));
        }
        let written = units::bytes_per_second(&self.writes)?;
        let write_gap_ns = (written > 0).then(|| WRITTEN as f64 * 1e9 / written as f64);
        let service = Service {
            latency_ns: units::nanoseconds(&self.latency)?,
            bytes_per_s: units::bytes_per_second(&self.bandwidth)?.max(1),
            ways: self.ways,
            jitter: self.jitter,
            pause_ns: units::nanoseconds(&self.pause)?,
            pause_every_ns: units::nanoseconds(&self.pause_every)?.max(1),
            speed: 1.0,
        };
        Ok(Array {
            choice: Choice::parse(&self.choice)?,
            schedule: Schedule::parse(&self.schedule)?,
            partition_bytes,
            partitions,
            asked,
            drawn,
            compute_ns: units::nanoseconds(&self.compute)?,
            service,
            write_gap_ns,
        })
    }
}

/// Makes the simulated drive of a name, for the disk of a number.
pub type MakeDrive<'m> = &'m dyn Fn(&str, usize) -> Result<Box<dyn BlockDevice>>;

/// Runs the job on disks of stated service times; what came of it as JSON.
pub fn array(spec: &ArraySpec) -> Result<Json> {
    array_of(spec, &|name, _| {
        Err(Error::input(format!(
            "array: drives {name}: no simulated drives here, expected none"
        )))
    })
}

/// Runs the job, on what `make` makes where the spec names drives.
pub fn array_of(spec: &ArraySpec, make: MakeDrive<'_>) -> Result<Json> {
    let array = spec.resolve()?;
    let drawn = tasks::draw(array.choice, spec.disks, array.partitions, array.drawn, spec.seed);
    let capacity = (array.partitions.div_ceil(spec.disks as u64)) * array.partition_bytes;
    let mut values = Stream::new(spec.seed, "values");
    let of_disk: Vec<Vec<f64>> = drawn
        .iter()
        .map(|tasks| {
            tasks
                .iter()
                .map(|_| tasks::value(&mut values, spec.spread).max(0.01))
                .collect()
        })
        .collect();
    let mut disks = (0..spec.disks)
        .map(|number| disk(spec, &array, number, capacity, make))
        .collect::<Result<Vec<Box<dyn Disk>>>>()?;
    let lists = tasks::deal(array.schedule, &drawn, spec.threads);
    let made = execute(&mut disks, lists, &of_disk, spec, &array);
    let estimate = json!({
        "completed": mean(&made.accepted, &of_disk, array.partitions),
        "prefix": mean(&prefixes(&made.accepted), &of_disk, array.partitions),
    });
    Ok(report(spec, &array, &made, estimate))
}

fn disk(spec: &ArraySpec, array: &Array, number: usize, capacity: u64, make: MakeDrive<'_>) -> Result<Box<dyn Disk>> {
    let Some(name) = spec.drives.get(number).or(spec.drives.last()) else {
        let speed = spec.speeds.get(number).copied().unwrap_or(1.0);
        let service = Service { speed, ..array.service };
        return Ok(Box::new(StatedDisk::new(service, capacity, spec.seed, number)));
    };
    let drive = make(name, number)?;
    let there = drive.geometry().capacity_bytes;
    if there < capacity {
        return Err(Error::input(format!(
            "array: drive {name} of {there} bytes: expected at least {capacity}, a disk's share of data {}",
            spec.data
        )));
    }
    Ok(Box::new(Simulated(drive)))
}

/// What came of a job, as JSON.
pub(super) fn report(spec: &ArraySpec, array: &Array, made: &Made, estimate: Json) -> Json {
    let wanted: u64 = made.served.iter().sum();
    let most = made.served.iter().max().copied().unwrap_or(0);
    let balance = if most == 0 {
        1.0
    } else {
        wanted as f64 / spec.disks as f64 / most as f64
    };
    let threads = if spec.coupled { spec.threads } else { spec.workers };
    let worked = made.worked_ns as f64 / (threads as f64 * made.finished_ns as f64);
    let seconds = made.finished_ns as f64 / 1e9;
    json!({
        "schema": "ftlab.array/1",
        "partitions": array.partitions, "asked": array.asked, "drawn": array.drawn, "done": made.done,
        "time_ns": made.finished_ns, "balance": balance, "served": made.served,
        "iops": made.reads as f64 / seconds,
        "bytes_per_s": made.reads as f64 * array.partition_bytes as f64 / seconds,
        "io_wait": (1.0 - worked).max(0.0),
        "waited": made.waited as f64 / made.reads.max(1) as f64,
        "blocked": blocked(spec.disks, spec.threads, spec.ratio, 1000, spec.seed),
        "latency": {
            "mean_ns": made.latencies.mean(), "p50_ns": made.latencies.quantile(0.5), "p99_ns": made.latencies.quantile(0.99),
            "max_ns": made.latencies.max(), "sd_ns": made.deviation(),
        },
        "windows": made.windows(spec.windows),
        "estimate": estimate,
    })
}

pub(super) struct Made {
    finished_ns: u64,
    done: u64,
    reads: u64,
    /// Reads that found their disk at work for another.
    waited: u64,
    /// Bytes that each disk has given.
    served: Vec<u64>,
    worked_ns: u64,
    latencies: Histogram,
    squares: f64,
    /// Time and latency of each read.
    series: Vec<(u64, u64)>,
    /// Of each disk, by rank, whether it is done.
    accepted: Vec<Vec<bool>>,
}

impl Made {
    /// Of nothing yet; of each disk, by rank, whether a partition is done.
    pub(super) fn new(disks: usize, accepted: Vec<Vec<bool>>) -> Made {
        Made {
            finished_ns: 0,
            done: 0,
            reads: 0,
            waited: 0,
            served: vec![0; disks],
            worked_ns: 0,
            latencies: Histogram::default(),
            squares: 0.0,
            series: Vec::new(),
            accepted,
        }
    }

    /// A read that came back.
    pub(super) fn read(&mut self, disk: usize, bytes: u64, latency_ns: u64, waited: bool) {
        self.reads += 1;
        self.waited += u64::from(waited);
        self.served[disk] += bytes;
        self.latencies.record(latency_ns);
        self.squares += (latency_ns as f64) * (latency_ns as f64);
    }

    /// A partition that was worked on until `now`; true if it was the last of those asked for.
    pub(super) fn done(&mut self, task: Task, worked_ns: u64, now: u64, asked: u64) -> bool {
        self.worked_ns += worked_ns;
        self.done += 1;
        self.accepted[task.disk][task.rank] = true;
        self.finished_ns = now;
        self.done == asked
    }

    fn deviation(&self) -> f64 {
        let (n, mean) = (self.latencies.count().max(1) as f64, self.latencies.mean());
        (self.squares / n - mean * mean).max(0.0).sqrt()
    }

    fn windows(&self, count: usize) -> Json {
        if count == 0 {
            return Json::Null;
        }
        let width = (self.finished_ns / count as u64).max(1);
        let mut sums = vec![(0u64, 0u64); count];
        for &(at, latency) in &self.series {
            let window = ((at / width) as usize).min(count - 1);
            sums[window].0 += latency;
            sums[window].1 += 1;
        }
        let means: Vec<Json> = sums
            .iter()
            .map(|&(sum, n)| {
                if n == 0 {
                    Json::Null
                } else {
                    json!(sum as f64 / n as f64)
                }
            })
            .collect();
        json!({"width_ns": width, "mean_ns": means})
    }
}

/// The tag of what is written beside the job.
const BESIDE: u64 = u64::MAX;
const WRITTEN: u64 = 4096;

/// Writes beside the job: to each disk in random gaps, anywhere.
struct Beside {
    random: Vec<Stream>,
    due: Vec<u64>,
    gap_ns: Option<f64>,
}

impl Beside {
    fn new(disks: &[Box<dyn Disk>], seed: u64, gap_ns: Option<f64>) -> Beside {
        let stream = |number| Stream::new(seed, &format!("writes beside on disk {number}"));
        let mut beside = Beside {
            random: (0..disks.len()).map(stream).collect(),
            due: vec![0; disks.len()],
            gap_ns,
        };
        for number in 0..disks.len() {
            beside.wait(number, 0);
        }
        beside
    }

    fn wait(&mut self, number: usize, from: u64) {
        let gap = self.gap_ns.unwrap_or(0.0) * -libm::log(1.0 - self.random[number].unit());
        self.due[number] = from + gap as u64 + 1;
    }

    fn next(&self) -> Option<u64> {
        self.gap_ns.and_then(|_| self.due.iter().min().copied())
    }

    fn write(&mut self, disks: &mut [Box<dyn Disk>], now: u64) {
        if self.gap_ns.is_none() {
            return;
        }
        for (number, disk) in disks.iter_mut().enumerate() {
            while self.due[number] <= now {
                let places = (disk.geometry().capacity_bytes / WRITTEN).max(1);
                let offset = self.random[number].below(places) * WRITTEN;
                disk.submit(BESIDE, &IoRequest::plain(OpKind::Write, offset, WRITTEN as u32), now);
                let due = self.due[number];
                self.wait(number, due);
            }
        }
    }
}

/// What becomes ready at a time: a thread that has worked.
type Due = Reverse<(u64, u64, usize)>;

fn execute(
    disks: &mut [Box<dyn Disk>],
    lists: Vec<Vec<Task>>,
    values: &[Vec<f64>],
    spec: &ArraySpec,
    array: &Array,
) -> Made {
    let accepted = values.iter().map(|values| vec![false; values.len()]).collect();
    let mut made = Made::new(disks.len(), accepted);
    let mut queues: Vec<std::vec::IntoIter<Task>> = lists.into_iter().map(Vec::into_iter).collect();
    let mut reading: Vec<Option<Task>> = vec![None; queues.len()];
    let mut under_way = vec![0usize; disks.len()];
    let mut working: Vec<Option<Task>> = vec![None; if spec.coupled { queues.len() } else { spec.workers }];
    let mut idle: Vec<usize> = (0..spec.workers).rev().collect();
    let mut loaded: VecDeque<Task> = VecDeque::new();
    let mut due: BinaryHeap<Due> = BinaryHeap::new();
    let mut sequence = 0u64;
    let mut completions: Vec<Completion> = Vec::new();
    let submit = |thread: usize,
                  now: u64,
                  disks: &mut [Box<dyn Disk>],
                  queues: &mut Vec<std::vec::IntoIter<Task>>,
                  reading: &mut Vec<Option<Task>>,
                  under_way: &mut Vec<usize>,
                  made: &mut Made| {
        let Some(task) = queues[thread].next() else { return };
        let value = values[task.disk][task.rank];
        let slow = libm::pow(value, spec.content_slows);
        let read = IoRequest::plain(
            OpKind::Read,
            task.partition * array.partition_bytes,
            array.partition_bytes as u32,
        );
        made.waited += u64::from(under_way[task.disk] > 0);
        under_way[task.disk] += 1;
        reading[thread] = Some(task);
        disks[task.disk].submit_slow(thread as u64, &read, slow, now);
    };
    let mut beside = Beside::new(disks, spec.seed, array.write_gap_ns);
    for thread in 0..queues.len() {
        submit(thread, 0, disks, &mut queues, &mut reading, &mut under_way, &mut made);
    }
    loop {
        let wakeup = disks.iter_mut().filter_map(|disk| disk.next_wakeup()).min();
        let ready = due.peek().map(|Reverse((at, _, _))| *at);
        let job = [wakeup, ready].into_iter().flatten().min();
        // What is written beside has no end, so that it alone keeps no job going.
        let Some(now) = job.map(|at| at.min(beside.next().unwrap_or(u64::MAX))) else {
            break;
        };
        beside.write(disks, now);
        // Disks in order, then work in the order in which it began: the same in every run.
        for number in 0..disks.len() {
            completions.clear();
            disks[number].advance(now, &mut completions);
            for done in completions.iter().filter(|done| done.tag != BESIDE) {
                let thread = done.tag as usize;
                let Some(task) = reading[thread].take() else {
                    unreachable!("thread {thread} reads nothing")
                };
                let latency = done.done_ns - done.submitted_ns;
                // Whether it waited was counted when it was submitted.
                made.read(number, array.partition_bytes, latency, false);
                if spec.windows > 0 {
                    made.series.push((now, latency));
                }
                under_way[number] -= 1;
                if spec.coupled {
                    working[thread] = Some(task);
                    sequence += 1;
                    due.push(Reverse((now + array.compute_ns, sequence, thread)));
                } else {
                    loaded.push_back(task);
                    submit(thread, now, disks, &mut queues, &mut reading, &mut under_way, &mut made);
                }
            }
        }
        while due.peek().is_some_and(|Reverse((at, _, _))| *at <= now) {
            let Some(Reverse((_, _, thread))) = due.pop() else {
                break;
            };
            let Some(task) = working[thread].take() else {
                unreachable!("thread {thread} works on nothing")
            };
            if made.done(task, array.compute_ns, now, array.asked) {
                return made;
            }
            if spec.coupled {
                submit(thread, now, disks, &mut queues, &mut reading, &mut under_way, &mut made);
            } else {
                idle.push(thread);
            }
        }
        while !spec.coupled && !loaded.is_empty() {
            let Some(thread) = idle.pop() else { break };
            working[thread] = loaded.pop_front();
            sequence += 1;
            due.push(Reverse((now + array.compute_ns, sequence, thread)));
        }
        made.finished_ns = now;
    }
    made
}

/// Of each disk its random order up to the last that is done.
fn prefixes(accepted: &[Vec<bool>]) -> Vec<Vec<bool>> {
    let prefix = |done: &Vec<bool>| {
        let length = done.iter().rposition(|done| *done).map_or(0, |last| last + 1);
        (0..done.len()).map(|rank| rank < length).collect()
    };
    accepted.iter().map(prefix).collect()
}

/// The mean value of all partitions, by weights of what was accepted of each disk; none if a disk gave nothing.
fn mean(accepted: &[Vec<bool>], values: &[Vec<f64>], partitions: u64) -> Option<f64> {
    let disks = accepted.len() as u64;
    let mut sum = 0.0;
    for (number, (accepted, values)) in accepted.iter().zip(values).enumerate() {
        let n = accepted.iter().filter(|done| **done).count();
        if n == 0 {
            return None;
        }
        let lie_there = partitions / disks + u64::from((number as u64) < partitions % disks);
        let total: f64 = accepted
            .iter()
            .zip(values)
            .filter(|(done, _)| **done)
            .map(|(_, value)| value)
            .sum();
        sum += lie_there as f64 * total / n as f64;
    }
    Some(sum / partitions as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(change: impl FnOnce(&mut ArraySpec)) -> Json {
        let mut spec = ArraySpec::default();
        change(&mut spec);
        array(&spec).unwrap()
    }

    /// Eight disks, 100 us and 8 KiB at 81.92 MB/s (100 us), no jitter and no pauses: 1311 of 131072 partitions, at most 164 of a disk, which take
    /// 164 times 200 us.
    #[test]
    fn the_time_of_a_balanced_sample_by_hand() {
        let found = of(|spec| {
            spec.bandwidth = "81.92MB/s".to_owned();
            spec.jitter = 0.0;
            spec.pause = "0ns".to_owned();
        });
        assert_eq!(found["asked"], 1311);
        assert_eq!(found["time_ns"], 164 * 200_000);
        assert_eq!(found["latency"]["mean_ns"], 200_000.0);
        assert!((found["balance"].as_f64().unwrap() - 1311.0 / 8.0 / 164.0).abs() < 1e-12);
    }

    /// With work of 300 us on 2 threads, and reads that are quicker: 1311 / 2 times 300 us and the first read.
    #[test]
    fn work_that_takes_longer_than_reads_sets_the_time() {
        let found = of(|spec| {
            spec.bandwidth = "81.92MB/s".to_owned();
            spec.jitter = 0.0;
            spec.pause = "0ns".to_owned();
            spec.compute = "300us".to_owned();
            spec.workers = 2;
        });
        assert_eq!(found["time_ns"], 656 * 300_000 + 200_000);
    }

    #[test]
    fn twice_the_same_to_the_bit_and_other_seeds_differ() {
        for schedule in tasks::SCHEDULES {
            let run = |seed| {
                of(|spec| {
                    spec.schedule = schedule.to_owned();
                    spec.choice = "random".to_owned();
                    spec.coupled = schedule == "round_robin";
                    spec.drop = 0.1;
                    spec.seed = seed;
                    spec.windows = 20;
                    spec.compute = "50us".to_owned();
                })
            };
            assert_eq!(run(1), run(1));
            assert_ne!(run(1)["time_ns"], run(2)["time_ns"]);
        }
    }

    /// All of a sample under way at once, half as much again as is waited for. No bias where slowness is chance or a disk's; where larger partitions are slower, the
    /// third that is dropped is the largest: the mean of the lower two thirds of a bell curve is 0.545 standard deviations (0.2) below its middle. By each disk's order nothing is
    /// dropped that stands in front of what came, and little is left of the bias.
    #[test]
    fn what_dropping_does_to_estimates() {
        check_dropping(10, 2.0);
    }

    #[test]
    #[ignore = "half a minute"]
    fn what_dropping_does_to_estimates_over_many_seeds() {
        check_dropping(40, 1.0);
    }

    /// `wide` times the bounds of 40 seeds: standard errors go with one over the root.
    fn check_dropping(seeds: u64, wide: f64) {
        let bias = |key: &str, slow_disk: bool, content: f64| {
            let sum: f64 = (0..seeds)
                .map(|seed| {
                    let found = of(|spec| {
                        spec.seed = seed;
                        spec.drop = 0.5;
                        spec.data = "64MiB".to_owned();
                        spec.ratio = 0.05;
                        spec.threads = 1024;
                        spec.ways = 128;
                        spec.bandwidth = "1000GB/s".to_owned();
                        spec.pause = "0ns".to_owned();
                        spec.content_slows = content;
                        spec.jitter = if content > 0.0 { 0.0 } else { 0.2 };
                        spec.speeds = if slow_disk { vec![0.9] } else { Vec::new() };
                    });
                    found["estimate"][key].as_f64().unwrap() - 1.0
                })
                .sum();
            sum / seeds as f64
        };
        // The mean of 40 samples of 410 partitions has a standard error of 0.2 / sqrt(16,400) = 0.0016.
        for slow_disk in [false, true] {
            for key in ["completed", "prefix"] {
                let found = bias(key, slow_disk, 0.0);
                assert!(found.abs() < 0.006 * wide, "{key} {slow_disk}: {found}");
            }
        }
        let (completed, prefix) = (bias("completed", false, 1.0), bias("prefix", false, 1.0));
        assert!((completed + 0.109).abs() < 0.006 * wide, "{completed}");
        assert!(prefix.abs() < 0.01 * wide, "{prefix}");
    }
}
