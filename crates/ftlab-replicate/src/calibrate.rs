//! Whether ranges of a disk work independently, and into how many it is to be cut.
//!
//! # Model
//! For each count P of equal ranges: in each round one range is drawn, and the mean latency of small reads in it is measured *alone*, with work
//! on the *same* range, and with work on its *neighbour*, in an order that is drawn. The neighbour is the other half of a range of P / 2, so it
//! lies on the same chip as soon as P exceeds the number of chips. Ranges count as independent at P if the mean of ln(same / neighbour) over the
//! rounds is above ln(`least`) with the given confidence. The confidence is shared by all counts that are tried. P is the greatest count up to
//! which ranges are independent at every one. Then an access that goes to another range in place of its own waits less by the factor
//! same / neighbour. Otherwise nothing is gained by copies on that disk.
//!
//! Work is writing, of what was there before (`write`), or else reading, which collides less.
//! # Not modelled
//! How often accesses of a database meet internal work. A file's ranges lie where the file system put them, and a disk that stripes its addresses over
//! its chips has no independent ranges, however many chips it has.
//! # Source
//! He, Yu and Zhou (2015), 5.1: P is calibrated as the number of chips; their method is not described. The test is ours.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ftlab_core::student::quantile;
use ftlab_core::{Error, Result, Stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::disk::{Access, Disk, FileDisk, Model, Modelled};
use crate::hold;
use crate::options::bytes;
use crate::page::Page;

/// Small reads, whose latency is measured.
const PROBE: u64 = 4096;
/// Accesses of the work beside them.
const WORK: u64 = 64 << 10;
/// Each range has room for many different places.
const LEAST_RANGE: u64 = 16 * WORK;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spec {
    pub disk: PathBuf,
    /// Writes what was there before; else only reads.
    pub write: bool,
    /// Most ranges that are tried; 2, 4, 8 and so on up to it.
    pub most: u32,
    pub rounds: u32,
    /// Of each of the three measurements of a round.
    pub phase_ms: u64,
    pub threads: u32,
    pub level: f64,
    /// The factor from which a difference matters.
    pub least: f64,
    pub seed: u64,
    pub direct: bool,
    pub model: Option<String>,
    /// Writes a file of that size first, such as 4GiB, which must not be there.
    pub make: Option<String>,
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            disk: PathBuf::new(),
            write: false,
            most: 64,
            rounds: 15,
            phase_ms: 40,
            threads: 4,
            level: 0.95,
            least: 1.1,
            seed: 0,
            direct: true,
            model: None,
            make: None,
        }
    }
}

impl Spec {
    pub fn parse(json: &str) -> Result<Self> {
        let spec: Spec = serde_json::from_str(json).map_err(|cause| Error::input(format!("calibrate: {cause}")))?;
        if let Some(model) = &spec.model {
            Model::parse(model)?;
        }
        let bad = if !(2..=256).contains(&spec.most) {
            format!("most = {}, expected 2 to 256 ranges", spec.most)
        } else if !(3..=10_000).contains(&spec.rounds) {
            format!("rounds = {}, expected 3 to 10000", spec.rounds)
        } else if !(1..=60_000).contains(&spec.phase_ms) {
            format!("phase = {} ms, expected 1 to 60000", spec.phase_ms)
        } else if !(1..=64).contains(&spec.threads) {
            format!("threads = {}, expected 1 to 64", spec.threads)
        } else if !(0.5..1.0).contains(&spec.level) {
            format!("level = {}, expected at least 0.5 and below 1", spec.level)
        } else if !(1.0..=100.0).contains(&spec.least) {
            format!("least = {}, expected a factor from 1 to 100", spec.least)
        } else {
            return Ok(spec);
        };
        Err(Error::input(format!("calibrate: {bad}")))
    }
}

/// Measures; `go_on` is asked between measurements.
pub fn calibrate(spec: &Spec, go_on: &mut dyn FnMut() -> Result<()>) -> Result<Value> {
    if let Some(size) = &spec.make {
        make(spec, size, go_on)?;
    }
    let access = if spec.write { Access::Write } else { Access::Read };
    let disk = FileDisk::open(&spec.disk, access, spec.direct)?;
    if spec.write && !disk.hold() {
        return Err(Error::input(format!(
            "{}: another process has it open",
            spec.disk.display()
        )));
    }
    if disk.size() < 2 * LEAST_RANGE {
        return Err(Error::input(format!(
            "{}: {} bytes, expected at least {}",
            spec.disk.display(),
            disk.size(),
            2 * LEAST_RANGE
        )));
    }
    refuse_holes(spec)?;
    match &spec.model {
        Some(model) => measured(spec, &Modelled::new(disk, Model::parse(model)?), go_on),
        None => measured(spec, &disk, go_on),
    }
}

/// Writes a file without holes, whose name stands for all of it or nothing.
fn make(spec: &Spec, size: &str, go_on: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let folder = folder_of(&spec.disk);
    let bytes = bytes(size).filter(|bytes| *bytes >= 2 * LEAST_RANGE);
    // All that is wrong at once: who makes gigabytes wants to be asked once.
    let wrong = [
        bytes
            .is_none()
            .then(|| format!("make = {size}, expected a size of at least 2MiB, such as 4GiB")),
        (spec.disk.exists()).then(|| format!("{}: is there, expected a new file", spec.disk.display())),
        (!folder.is_dir()).then(|| format!("{}: no such folder", folder.display())),
    ];
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    let Some(bytes) = bytes.filter(|_| wrong.is_empty()) else {
        return Err(Error::input(wrong.join("; ")));
    };
    refuse_too_large(spec, bytes)?;
    let mut part = spec.disk.clone().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    let written = written(&part, bytes, spec.seed, go_on);
    let named = written
        .and_then(|()| std::fs::rename(&part, &spec.disk).map_err(|cause| Error::unwritable(&spec.disk, &cause)));
    if named.is_err() {
        // What is wrong has been said; a file that is not there is none.
        let _ = std::fs::remove_file(&part);
    }
    named
}

fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// A file that does not fit would fill the disk before that is noticed.
fn refuse_too_large(spec: &Spec, bytes: u64) -> Result<()> {
    let folder = folder_of(&spec.disk);
    let facts = rustix::fs::statvfs(folder).map_err(|cause| Error::io(folder, &cause.into()))?;
    let free = facts.f_bavail.saturating_mul(facts.f_frsize);
    if bytes > free {
        return Err(Error::input(format!(
            "{}: make = {bytes} bytes, and its file system has {free} free: expected a smaller file",
            spec.disk.display()
        )));
    }
    Ok(())
}

fn written(part: &Path, bytes: u64, seed: u64, go_on: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let failed = |cause| Error::unwritable(part, &cause);
    let mut file = File::create(part).map_err(failed)?;
    let mut stream = Stream::new(seed, "content");
    let mut block = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        go_on()?;
        // Drives may store equal or simple blocks without writing them.
        block
            .chunks_mut(8)
            .for_each(|eight| eight.copy_from_slice(&stream.next_u64().to_le_bytes()));
        let now = left.min(block.len() as u64);
        file.write_all(&block[..now as usize]).map_err(failed)?;
        left -= now;
    }
    file.sync_all().map_err(failed)
}

/// What is read from a hole never was on a disk.
fn refuse_holes(spec: &Spec) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let facts = std::fs::metadata(&spec.disk).map_err(|cause| Error::io(&spec.disk, &cause))?;
    if facts.is_file() && facts.blocks() * 512 < facts.len() * 9 / 10 {
        return Err(Error::input(format!(
            "{}: {} of {} bytes are written, expected a file without holes",
            spec.disk.display(),
            facts.blocks() * 512,
            facts.len()
        )));
    }
    Ok(())
}

fn measured(spec: &Spec, disk: &dyn Disk, go_on: &mut dyn FnMut() -> Result<()>) -> Result<Value> {
    let powers = std::iter::successors(Some(2_u32), |count| count.checked_mul(2));
    let counts: Vec<u32> = powers
        .take_while(|&count| count <= spec.most && disk.size() / u64::from(count) >= LEAST_RANGE)
        .collect();
    let mut stream = Stream::new(spec.seed, "calibrate");
    // Two-sided intervals whose error is shared by the counts.
    let level = 1.0 - (1.0 - spec.level) / counts.len() as f64;
    let mut tried = Vec::new();
    let mut chosen: Option<&Tried> = None;
    for &count in &counts {
        let mut rounds = Vec::new();
        for _ in 0..spec.rounds {
            rounds.push(round(spec, disk, count, &mut stream, go_on)?);
        }
        tried.push(Tried::of(count, &rounds, level, spec.least));
    }
    for one in &tried {
        if !one.independent {
            break;
        }
        chosen = Some(one);
    }
    let factor = chosen.map(|one| &one.same_to_neighbour);
    Ok(json!({
        "disk": spec.disk,
        "bytes": disk.size(),
        "work": if spec.write { "write" } else { "read" },
        "level": spec.level,
        "level_of_each": level,
        "least": spec.least,
        "seed": spec.seed,
        "tried": tried,
        "partitions": chosen.map(|one| one.partitions),
        "gain_predicted": chosen.is_some(),
        // Of a late access that goes to another range in place of its own.
        "wait_less": factor.map(|factor| {
            let less = |ratio: f64| 1.0 - 1.0 / ratio;
            json!({"value": less(factor.value), "low": less(factor.low), "high": less(factor.high)})
        }),
    }))
}

/// A mean with its confidence interval.
#[derive(Serialize)]
struct Interval {
    value: f64,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct Tried {
    partitions: u32,
    /// Mean latencies of small reads over all rounds.
    alone_ns: f64,
    same_ns: f64,
    neighbour_ns: f64,
    /// Geometric means of the rounds' ratios.
    same_to_alone: Interval,
    neighbour_to_alone: Interval,
    same_to_neighbour: Interval,
    independent: bool,
}

impl Tried {
    fn of(partitions: u32, rounds: &[Round], level: f64, least: f64) -> Self {
        let mean = |of: fn(&Round) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len() as f64;
        let ratio = |of: fn(&Round) -> f64| geometric(&rounds.iter().map(of).collect::<Vec<_>>(), level);
        let same_to_neighbour = ratio(|round| round.same_ns / round.neighbour_ns);
        Tried {
            partitions,
            alone_ns: mean(|round| round.alone_ns),
            same_ns: mean(|round| round.same_ns),
            neighbour_ns: mean(|round| round.neighbour_ns),
            same_to_alone: ratio(|round| round.same_ns / round.alone_ns),
            neighbour_to_alone: ratio(|round| round.neighbour_ns / round.alone_ns),
            independent: same_to_neighbour.low > least,
            same_to_neighbour,
        }
    }
}

/// The geometric mean of ratios, with Student's interval of their logarithms.
fn geometric(ratios: &[f64], level: f64) -> Interval {
    let count = ratios.len() as f64;
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let mean = logs.iter().sum::<f64>() / count;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = quantile(count - 1.0, 0.5 + level / 2.0) * (variance / count).sqrt();
    Interval {
        value: mean.exp(),
        low: (mean - half).exp(),
        high: (mean + half).exp(),
    }
}

/// Mean latencies of small reads.
struct Round {
    alone_ns: f64,
    same_ns: f64,
    neighbour_ns: f64,
}

fn round(
    spec: &Spec,
    disk: &dyn Disk,
    count: u32,
    stream: &mut Stream,
    go_on: &mut dyn FnMut() -> Result<()>,
) -> Result<Round> {
    let range = stream.below(u64::from(count));
    let mut phases = [None, Some(range), Some(range ^ 1)];
    for last in (1..phases.len()).rev() {
        phases.swap(last, stream.below(last as u64 + 1) as usize);
    }
    let mut round = Round {
        alone_ns: 0.0,
        same_ns: 0.0,
        neighbour_ns: 0.0,
    };
    let length = disk.size() / u64::from(count);
    for work in phases {
        go_on()?;
        let mean = phase(spec, disk, (range, work, length), stream.next_u64())?;
        match work {
            None => round.alone_ns = mean,
            Some(other) if other == range => round.same_ns = mean,
            Some(_) => round.neighbour_ns = mean,
        }
    }
    Ok(round)
}

/// The mean latency of reads in one range with work on another, which may be the same.
fn phase(spec: &Spec, disk: &dyn Disk, (range, work, length): (u64, Option<u64>, u64), seed: u64) -> Result<f64> {
    let ends = AtomicBool::new(false);
    let failed: Mutex<Option<std::io::Error>> = Mutex::new(None);
    let threads = if work.is_some() { spec.threads } else { 0 };
    let probed = std::thread::scope(|scope| {
        for number in 0..threads {
            let (ends, failed) = (&ends, &failed);
            scope.spawn(move || {
                let mut stream = Stream::new(seed ^ u64::from(number), "work");
                let mut page = Page::zeros(WORK as usize);
                while !ends.load(Ordering::Relaxed) {
                    let at = place(work.unwrap_or(range), length, WORK, &mut stream);
                    let mut done = disk.read(at, page.bytes_mut());
                    if spec.write {
                        done = done.and_then(|()| disk.write(at, page.bytes()));
                    }
                    if let Err(cause) = done {
                        *hold(failed) = Some(cause);
                        return;
                    }
                }
            });
        }
        let probed = probe(spec, disk, range, length, seed);
        ends.store(true, Ordering::Relaxed);
        probed
    });
    if let Some(cause) = hold(&failed).take() {
        return Err(Error::io(&spec.disk, &cause));
    }
    probed.map_err(|cause| Error::io(&spec.disk, &cause))
}

fn probe(spec: &Spec, disk: &dyn Disk, range: u64, length: u64, seed: u64) -> std::io::Result<f64> {
    let mut stream = Stream::new(seed, "probe");
    let mut page = Page::zeros(PROBE as usize);
    let time = Duration::from_millis(spec.phase_ms);
    // The work has begun, and what the phase before left behind has ended.
    std::thread::sleep(time / 10);
    let began = Instant::now();
    let mut reads = 0_u32;
    while reads == 0 || began.elapsed() < time {
        disk.read(place(range, length, PROBE, &mut stream), page.bytes_mut())?;
        reads += 1;
    }
    Ok(began.elapsed().as_nanos() as f64 / f64::from(reads))
}

/// A place in a range where `bytes` fit, on a boundary of them.
fn place(range: u64, length: u64, bytes: u64, stream: &mut Stream) -> u64 {
    let first = (range * length).div_ceil(bytes);
    let last = ((range + 1) * length / bytes).max(first + 1);
    (first + stream.below(last - first)) * bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratios of 2 and 8: the geometric mean is 4, and with one degree of freedom the 50 % quantile is 1 standard error of ln 2.
    #[test]
    fn the_interval_is_that_of_the_logarithms() {
        let found = geometric(&[2.0, 8.0], 0.5);
        assert!((found.value - 4.0).abs() < 1e-12);
        assert!((found.low - 2.0).abs() < 1e-6 && (found.high - 8.0).abs() < 1e-6);
    }
}
