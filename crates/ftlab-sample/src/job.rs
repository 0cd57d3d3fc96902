//! A question to files, start to end.
//!
//! # Model
//! Of each disk the same share of partitions is drawn, at least two (`draw`), read by the disk's own threads (`read`) and counted by other threads (`totals`), in lanes: lane `l`
//! of a disk has every `L`-th partition of its sample, in order, and one thread at a time. Sums of lanes are added in order, so that an answer is the same, to the bit, with
//! any number of threads.
//!
//! How much is drawn:
//! * `ratio`: the share of partitions of every disk.
//! * `error`: a pilot of `pilot` partitions tells how large the sample must be for half-widths below that share of every value; where a
//!   group was seen in fewer than ten partitions of the pilot, it does not count. The sample grows once, to that size, and is never looked at in between: a sample that grows until its
//!   interval looks narrow covers less than it says. The size has a tenth's chance of being too small by the pilot's own uncertainty (chi-square).
//! * `within`: what can be read in that time. A disk's sample is a prefix of its random order, however fast it is.
//!
//! # Not modelled
//! Dropping what is slow on real disks: see `array`.
//!
//! # Errors
//! See `layout`, `sql`, `record`, `read`; options out of range.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ftlab_core::{Error, Result, Stream, units};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::draw::Permutation;
use crate::estimate::{Estimate, Estimator, Quantiles, Stratum, normal};
use crate::expression::{Value, Wrong};
use crate::layout::{self, Cut, Dataset};
use crate::read::{self, Loaded};
use crate::record::{self, Explode, Form};
use crate::sql::{self, Kind, Plan, Shows};
use crate::totals::{Shape, Sums, Totals};

/// Lanes of all disks together, at least; more threads than these have nothing to do on one disk.
const LANES: usize = 8;
/// A group seen in fewer partitions has no interval to be trusted.
const RARE: u64 = 10;
/// How often Ctrl-C is looked for.
const WATCH: Duration = Duration::from_millis(50);
/// The largest file that is joined.
const LARGEST_JOINED: u64 = 1 << 30;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleSpec {
    pub query: String,
    /// Share of the partitions, above 0 and at most 1.
    #[serde(default)]
    pub ratio: Option<f64>,
    /// Half-width over value.
    #[serde(default)]
    pub error: Option<f64>,
    /// A time: `2s`.
    #[serde(default)]
    pub within: Option<String>,
    #[serde(default = "default_level")]
    pub level: f64,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub disks: Vec<String>,
    /// A size: `64KiB`.
    #[serde(default = "default_partition")]
    pub partition: String,
    /// Share of the records of a drawn partition.
    #[serde(default = "default_records")]
    pub records: f64,
    /// Partitions of the pilot of `error`.
    #[serde(default = "default_pilot")]
    pub pilot: u64,
    #[serde(default)]
    pub format: Option<String>,
    #[serde(default)]
    pub delimiter: Option<String>,
    #[serde(default = "yes")]
    pub header: bool,
    #[serde(default)]
    pub no_quoted_newlines: bool,
    #[serde(default)]
    pub threads: Option<usize>,
    #[serde(default = "default_depth")]
    pub depth: usize,
}

fn default_level() -> f64 {
    0.95
}
fn default_partition() -> String {
    "64KiB".to_owned()
}
fn default_records() -> f64 {
    1.0
}
fn default_pilot() -> u64 {
    100
}
fn default_depth() -> usize {
    4
}
fn yes() -> bool {
    true
}

impl SampleSpec {
    pub fn parse(json: &str) -> Result<SampleSpec> {
        let spec: SampleSpec = serde_json::from_str(json).map_err(|e| Error::input(format!("sample: {e}")))?;
        spec.check()?;
        Ok(spec)
    }

    pub fn partition_bytes(&self) -> Result<u64> {
        let refuse = |_| Error::input(format!("--partition {}: expected 2KiB to 1GiB", self.partition));
        let bytes = units::bytes(&self.partition).map_err(refuse)?;
        if (2048..=1 << 30).contains(&bytes) {
            Ok(bytes)
        } else {
            Err(refuse(Error::Interrupted))
        }
    }

    fn within_ns(&self) -> Result<Option<u64>> {
        let Some(within) = &self.within else { return Ok(None) };
        match units::nanoseconds(within) {
            Ok(ns) if ns > 0 => Ok(Some(ns)),
            _ => Err(Error::input(format!(
                "--within {within}: expected a time, such as 2s or 500ms"
            ))),
        }
    }

    fn check(&self) -> Result<()> {
        let refuse = |what: &str, value: String, expected: &str| {
            Err(Error::input(format!("--{what} {value}: expected {expected}")))
        };
        let asked = [self.ratio.is_some(), self.error.is_some(), self.within.is_some()];
        if asked.iter().filter(|&&one| one).count() != 1 {
            return Err(Error::input("expected one of --ratio, --error and --within"));
        }
        if let Some(ratio) = self.ratio.filter(|r| !(*r > 0.0 && *r <= 1.0)) {
            return refuse("ratio", ratio.to_string(), "more than 0 and at most 1 (100%)");
        }
        if let Some(error) = self.error.filter(|e| !(*e > 0.0 && *e < 1.0)) {
            return refuse("error", error.to_string(), "more than 0 and less than 1 (100%)");
        }
        self.within_ns()?;
        if !(self.level > 0.0 && self.level < 1.0) {
            return refuse(
                "level",
                self.level.to_string(),
                "more than 0 and less than 1, such as 0.95",
            );
        }
        if !(self.records > 0.0 && self.records <= 1.0) {
            return refuse("records", self.records.to_string(), "more than 0 and at most 1 (100%)");
        }
        self.partition_bytes()?;
        if self.pilot < 20 {
            return refuse("pilot", self.pilot.to_string(), "at least 20 partitions");
        }
        if self.threads.is_some_and(|threads| !(1..=1024).contains(&threads)) {
            return refuse("threads", self.threads.unwrap_or(0).to_string(), "1 to 1024");
        }
        if !(1..=256).contains(&self.depth) {
            return refuse("depth", self.depth.to_string(), "1 to 256");
        }
        if let Some(twice) = self
            .disks
            .iter()
            .enumerate()
            .find(|(at, disk)| self.disks[..*at].contains(disk))
        {
            return refuse("disk", twice.1.clone(), "each folder once");
        }
        Ok(())
    }
}

/// Asks, and answers with JSON. `go_on` is called now and then, and may refuse.
pub fn sample(spec: &SampleSpec, go_on: &mut dyn FnMut() -> Result<()>) -> Result<Json> {
    let started = Instant::now();
    spec.check()?;
    let question = sql::parse(&spec.query)?;
    let form = match (&spec.format, &spec.delimiter) {
        (Some(name), delimiter) => Some(Form::parse(name, delimiter.as_deref())?),
        (None, Some(delimiter)) => Some(Form::parse("csv", Some(delimiter))?),
        (None, None) => None,
    };
    let cut = Cut {
        disks: spec.disks.clone(),
        partition_bytes: spec.partition_bytes()?,
        form,
        header: spec.header,
        no_quoted_newlines: spec.no_quoted_newlines,
    };
    let joined = question
        .join
        .as_ref()
        .map(|join| Joined::open(&join.file))
        .transpose()?;
    let dataset = layout::open(&question.files, &cut)?;
    let theirs = joined.as_ref().map(|joined| (&joined.form, &joined.columns[..]));
    let plan = sql::bind(&question, &dataset.form, &dataset.columns, theirs)?;
    let lookup = match (&joined, &plan.keys) {
        (Some(joined), Some((_, key))) => Some(joined.lookup(&plan, key)?),
        _ => None,
    };
    let mut engine = Engine::new(spec, &dataset, &plan, question.explode, lookup);
    let size = engine.draw(started, go_on)?;
    let answer = engine.answer();
    let strata = engine.strata();
    let drawn: u64 = strata.iter().map(|stratum| stratum.drawn).sum();
    let disks: Vec<Json> = dataset
        .disks
        .iter()
        .zip(&strata)
        .map(|(disk, stratum)| {
            json!({
                "name": disk.name, "files": disk.files.len(), "bytes": disk.bytes,
                "partitions": disk.partitions, "drawn": stratum.drawn,
            })
        })
        .collect();
    let columns: Vec<Json> = plan
        .columns
        .iter()
        .map(|column| {
            let kind = match column.shows {
                Shows::Group(_) => "group",
                Shows::Aggregate(at) => plan.aggregates[at].kind.name(),
            };
            json!({"name": column.name, "kind": kind})
        })
        .collect();
    let shown = plan.limit.unwrap_or(usize::MAX).min(answer.len());
    let rows: Vec<Json> = answer[..shown].iter().map(|row| row.json(&plan, &engine)).collect();
    let unreliable = answer[..shown]
        .iter()
        .filter(|row| !engine.is_reliable(row.seen))
        .count();
    let wall_s = started.elapsed().as_secs_f64();
    Ok(json!({
        "schema": "ftlab.sample/1",
        "query": spec.query,
        "data": {
            "files": question.files, "format": dataset.form.name(), "bytes": dataset.bytes(), "partitions": dataset.partitions(),
            "partition_bytes": dataset.partition_bytes, "disks": disks,
        },
        "sample": {
            "seed": spec.seed, "level": spec.level, "ratio": drawn as f64 / dataset.partitions() as f64, "partitions": drawn,
            "records": engine.records(), "record_share": spec.records, "bytes_read": engine.bytes_read, "indexed_bytes": dataset.indexed_bytes,
            "is_exact": engine.is_exact(), "asked": size,
        },
        "columns": columns,
        "rows": rows,
        "groups": answer.len(),
        "unreliable": unreliable,
        // By the rule of three, a group in fewer than this share of partitions may have been missed with a chance above 5 %.
        "missed_below": if engine.is_exact() { Json::Null } else { json!((3.0 / drawn as f64).min(1.0)) },
        "perf": {"wall_s": wall_s},
    }))
}

/// A file that is joined: read whole.
struct Joined {
    path: String,
    form: Form,
    columns: Vec<String>,
    content: Vec<u8>,
    header: usize,
    quoted: bool,
}

/// Rows of the joined file by what they are joined on.
pub struct Lookup {
    rows: Vec<Vec<Value<'static>>>,
    of: FxHashMap<Box<[u8]>, Vec<u32>>,
}

impl Joined {
    fn open(pattern: &str) -> Result<Joined> {
        let cut = Cut {
            disks: Vec::new(),
            partition_bytes: 64 << 10,
            form: None,
            header: true,
            no_quoted_newlines: false,
        };
        let dataset = layout::open(pattern, &cut)?;
        let files: Vec<_> = dataset.disks.iter().flat_map(|disk| &disk.files).collect();
        let [piece] = &files[..] else {
            return Err(Error::input(format!(
                "join {pattern}: {} files, expected one",
                files.len()
            )));
        };
        if piece.bytes > LARGEST_JOINED {
            return Err(Error::input(format!(
                "join {pattern}: {} bytes, expected at most {LARGEST_JOINED}, as a joined file is read whole; the larger file belongs behind `from`",
                piece.bytes
            )));
        }
        let path: &Path = &piece.path;
        let content = std::fs::read(path).map_err(|e| Error::io(path, &e))?;
        Ok(Joined {
            path: path.display().to_string(),
            header: piece.header as usize,
            quoted: piece.index.is_some(),
            form: dataset.form.clone(),
            columns: dataset.columns.clone(),
            content,
        })
    }

    fn lookup(&self, plan: &Plan, key: &crate::expression::Expression) -> Result<Lookup> {
        let mut lookup = Lookup {
            rows: Vec::new(),
            of: FxHashMap::default(),
        };
        // Slots behind those of the sampled files; fields come in their own order.
        let before = plan.picks.len();
        let mut order: Vec<usize> = (0..plan.joined.len()).collect();
        order.sort_by_key(|&at| match plan.joined[at] {
            record::Pick::Field(number) => number,
            _ => at,
        });
        let picks: Vec<record::Pick> = order.iter().map(|&at| plan.joined[at].clone()).collect();
        let content = &self.content[self.header.min(self.content.len())..];
        let mut each = |_: usize, line: &[u8]| {
            let mut found = vec![Value::Null; picks.len()];
            record::fields(&self.form, &picks, &self.columns, line, &mut found)?;
            let mut slots = vec![Value::Null; before + picks.len()];
            for (value, &at) in found.into_iter().zip(&order) {
                slots[before + at] = match value {
                    Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
                    Value::Number(number) => Value::Number(number),
                    Value::Bool(truth) => Value::Bool(truth),
                    Value::Null => Value::Null,
                };
            }
            if let Some(key) = joined_key(&key.evaluate(&slots)?) {
                lookup.of.entry(key.into()).or_default().push(lookup.rows.len() as u32);
                lookup.rows.push(slots.split_off(before));
            }
            Ok(())
        };
        record::records(&self.form, self.quoted, content, &mut each)
            .map_err(|(at, wrong)| Error::input(format!("{}, byte {}: {}", self.path, self.header + at, wrong.0)))?;
        Ok(lookup)
    }
}

/// What is compared by a join: text. None of null, which is like nothing.
fn joined_key(value: &Value<'_>) -> Option<Vec<u8>> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(text.to_vec()),
        Value::Number(number) => Some(number.to_string().into_bytes()),
        Value::Bool(truth) => Some(truth.to_string().into_bytes()),
    }
}

struct Engine<'a> {
    spec: &'a SampleSpec,
    dataset: &'a Dataset,
    plan: &'a Plan,
    explode: Option<Explode>,
    lookup: Option<Lookup>,
    permutations: Vec<Permutation>,
    /// Of each disk, the partitions of its sample in order.
    orders: Vec<Vec<u64>>,
    lanes_of_disk: usize,
    lanes: Vec<Mutex<Totals>>,
    done: Vec<u64>,
    bytes_read: u64,
}

/// A row of the answer.
struct Row {
    groups: Vec<Value<'static>>,
    seen: u64,
    estimators: Vec<Estimator>,
    /// With intervals only of rows that are shown.
    estimates: Vec<Option<Estimate>>,
}

/// A partition in memory.
struct Part {
    buffer: Vec<u8>,
    loaded: Loaded,
}

struct Lane {
    pending: BTreeMap<u64, Part>,
    next: u64,
    is_busy: bool,
}

struct State {
    lanes: Vec<Lane>,
    next: Vec<u64>,
    targets: Vec<u64>,
    in_memory: Vec<usize>,
    readers: usize,
    computing: usize,
    stop: bool,
    /// The first in order of disks and partitions of those that were found.
    error: Option<((usize, u64), Error)>,
    pool: Vec<Vec<u8>>,
    bytes_read: u64,
}

impl State {
    fn fail(&mut self, place: (usize, u64), error: Error) {
        if self.error.as_ref().is_none_or(|(known, _)| place < *known) {
            self.error = Some((place, error));
        }
        self.stop = true;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Engine<'a> {
    fn new(
        spec: &'a SampleSpec,
        dataset: &'a Dataset,
        plan: &'a Plan,
        explode: Option<Explode>,
        lookup: Option<Lookup>,
    ) -> Self {
        let disks = dataset.disks.len();
        let kinds = plan.aggregates.iter().map(|aggregate| aggregate.kind).collect();
        let shape = Shape::new(kinds, spec.records < 1.0);
        let lanes_of_disk = LANES.div_ceil(disks);
        Engine {
            spec,
            dataset,
            plan,
            explode,
            lookup,
            permutations: dataset
                .disks
                .iter()
                .enumerate()
                .map(|(number, disk)| Permutation::new(disk.partitions, spec.seed, number))
                .collect(),
            orders: vec![Vec::new(); disks],
            lanes_of_disk,
            lanes: (0..disks * lanes_of_disk)
                .map(|_| Mutex::new(Totals::new(shape.clone())))
                .collect(),
            done: vec![0; disks],
            bytes_read: 0,
        }
    }

    /// Draws what was asked for; what that was, and what came of it.
    fn draw(&mut self, started: Instant, go_on: &mut dyn FnMut() -> Result<()>) -> Result<Json> {
        let share = |ratio: f64, partitions: u64| ((ratio * partitions as f64).round() as u64).max(2).min(partitions);
        let of_disk: Vec<u64> = self.dataset.disks.iter().map(|disk| disk.partitions).collect();
        let all = self.dataset.partitions() as f64;
        if let Some(ratio) = self.spec.ratio {
            let targets: Vec<u64> = of_disk.iter().map(|&partitions| share(ratio, partitions)).collect();
            self.extend(&targets, None, go_on)?;
            return Ok(json!({"ratio": ratio}));
        }
        if let Some(ns) = self.spec.within_ns()? {
            let deadline = started + Duration::from_nanos(ns);
            self.extend(&of_disk, Some(deadline), go_on)?;
            return Ok(json!({"within": self.spec.within}));
        }
        let error = self.spec.error.unwrap_or(1.0);
        let pilot: Vec<u64> = of_disk
            .iter()
            .map(|&partitions| share(self.spec.pilot as f64 / all, partitions))
            .collect();
        self.extend(&pilot, None, go_on)?;
        let rows = self.answer();
        let (ratio, counted) = self.needed(&rows, error);
        let targets: Vec<u64> = of_disk
            .iter()
            .zip(&pilot)
            .map(|(&partitions, &pilot)| ((ratio * partitions as f64).ceil() as u64).clamp(pilot, partitions))
            .collect();
        self.extend(&targets, None, go_on)?;
        let widest = self.widest(&self.answer());
        Ok(json!({
            "error": error, "pilot_partitions": pilot.iter().sum::<u64>(), "counted_groups": counted, "groups_in_pilot": rows.len(),
            "widest": widest, "is_met": widest.is_none_or(|widest| widest <= error),
        }))
    }

    /// The share of partitions that makes the half-width of every counted value at most `error` of it; and how many groups counted.
    fn needed(&self, rows: &[Row], error: f64) -> (f64, usize) {
        let drawn = self.done.iter().sum::<u64>() as f64;
        let now = drawn / self.dataset.partitions() as f64;
        let counted: Vec<&Row> = self.counted(rows);
        let mut most: f64 = 0.0;
        for row in &counted {
            for estimate in row.estimates.iter().flatten() {
                let Some(interval) = estimate.interval.filter(|i| i.half_width > 0.0) else {
                    continue;
                };
                if estimate.value == 0.0 {
                    most = 1.0;
                    continue;
                }
                // The variance goes with (1 - f) / f. What the pilot says of it is a chi-square over its degrees of freedom.
                let unlucky = (interval.df / chi_square_tenth(interval.df)).max(1.0);
                let constant = (interval.half_width / estimate.value).powi(2) * unlucky * now / (1.0 - now);
                most = most.max(constant / (constant + error * error));
            }
        }
        (most, counted.len())
    }

    /// Rows whose width counts: those that are shown and were seen often enough; all, if there are none.
    fn counted<'r>(&self, rows: &'r [Row]) -> Vec<&'r Row> {
        let shown = &rows[..self.plan.limit.unwrap_or(usize::MAX).min(rows.len())];
        let often: Vec<&Row> = shown.iter().filter(|row| self.is_reliable(row.seen)).collect();
        if often.is_empty() {
            shown.iter().collect()
        } else {
            often
        }
    }

    /// The largest half-width over its value.
    fn widest(&self, rows: &[Row]) -> Option<f64> {
        let widths = self
            .counted(rows)
            .into_iter()
            .flat_map(|row| row.estimates.iter().flatten());
        widths
            .filter_map(|estimate| Some((estimate.interval?.half_width / estimate.value).abs()))
            .filter(|width| width.is_finite())
            .reduce(f64::max)
    }

    fn strata(&self) -> Vec<Stratum> {
        let disks = self.dataset.disks.iter().zip(&self.done);
        disks
            .map(|(disk, &drawn)| Stratum {
                partitions: disk.partitions,
                drawn,
            })
            .collect()
    }

    fn is_exact(&self) -> bool {
        self.spec.records >= 1.0 && self.strata().iter().all(Stratum::is_whole)
    }

    fn is_reliable(&self, seen: u64) -> bool {
        let drawn: u64 = self.done.iter().sum();
        self.is_exact() || seen >= RARE || (seen == drawn && drawn >= 5)
    }

    fn records(&self) -> u64 {
        self.lanes.iter().map(|lane| locked(lane).records).sum()
    }

    /// Reads and counts until each disk's sample has the length of its target, or time is up.
    fn extend(
        &mut self,
        targets: &[u64],
        deadline: Option<Instant>,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        if deadline.is_none() {
            for (disk, order) in self.orders.iter_mut().enumerate() {
                self.permutations[disk].extend(order, targets[disk]);
            }
        }
        let permutations = std::mem::take(&mut self.permutations)
            .into_iter()
            .map(Mutex::new)
            .collect::<Vec<_>>();
        let orders = std::mem::take(&mut self.orders)
            .into_iter()
            .map(Mutex::new)
            .collect::<Vec<_>>();
        let lanes = self.lanes_of_disk as u64;
        let threads = self
            .spec
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let threads = threads.min(self.lanes.len());
        let limit = self.spec.depth + 2 * threads.min(self.lanes_of_disk);
        let state = Mutex::new(State {
            lanes: (0..self.lanes.len())
                .map(|lane| {
                    let (disk, number) = (lane / self.lanes_of_disk, (lane % self.lanes_of_disk) as u64);
                    // The first partition of the lane that is not done.
                    let done = self.done[disk];
                    Lane {
                        pending: BTreeMap::new(),
                        next: done + (number + lanes - done % lanes) % lanes,
                        is_busy: false,
                    }
                })
                .collect(),
            next: self.done.clone(),
            targets: targets.to_vec(),
            in_memory: vec![0; targets.len()],
            readers: self.spec.depth * targets.len(),
            computing: threads,
            stop: false,
            error: None,
            pool: Vec::new(),
            bytes_read: 0,
        });
        let (ready, room) = (Condvar::new(), Condvar::new());
        let engine = &*self;
        let reader = &|disk: usize| {
            let mut guard = locked(&state);
            loop {
                while guard.in_memory[disk] >= limit && !guard.stop {
                    guard = room.wait(guard).unwrap_or_else(PoisonError::into_inner);
                }
                let number = guard.next[disk];
                // Time that is up ends the sample where it is, but not below two partitions.
                if number >= 2 && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    guard.targets[disk] = guard.targets[disk].min(number);
                }
                if guard.stop || number >= guard.targets[disk] {
                    break;
                }
                guard.next[disk] += 1;
                guard.in_memory[disk] += 1;
                let mut buffer = guard.pool.pop().unwrap_or_default();
                drop(guard);
                let partition = {
                    let mut order = locked(&orders[disk]);
                    locked(&permutations[disk]).extend(&mut order, number + 1);
                    order[number as usize]
                };
                let loaded = read::load(engine.dataset.place(disk, partition), &mut buffer);
                guard = locked(&state);
                match loaded {
                    Ok(loaded) => {
                        guard.bytes_read += loaded.bytes_read;
                        let lane = disk * engine.lanes_of_disk + (number % lanes) as usize;
                        guard.lanes[lane].pending.insert(number, Part { buffer, loaded });
                    }
                    Err(error) => guard.fail((disk, number), error),
                }
                ready.notify_all();
            }
            guard.readers -= 1;
            drop(guard);
            ready.notify_all();
            room.notify_all();
        };
        let computer = &|| {
            let mut room_for = Room::default();
            let mut guard = locked(&state);
            loop {
                let found = guard.lanes.iter().position(|lane| {
                    !lane.is_busy && lane.pending.first_key_value().is_some_and(|(n, _)| *n == lane.next)
                });
                let is_over = guard.readers == 0 && guard.lanes.iter().all(|lane| lane.pending.is_empty());
                let Some(at) = found.filter(|_| !guard.stop) else {
                    if guard.stop || is_over {
                        break;
                    }
                    guard = ready.wait(guard).unwrap_or_else(PoisonError::into_inner);
                    continue;
                };
                let lane = &mut guard.lanes[at];
                let Some((number, part)) = lane.pending.pop_first() else {
                    continue;
                };
                lane.is_busy = true;
                drop(guard);
                let disk = at / engine.lanes_of_disk;
                let partition = locked(&orders[disk])[number as usize];
                let counted = engine.count(disk, partition, &part, &mut locked(&engine.lanes[at]), &mut room_for);
                guard = locked(&state);
                guard.lanes[at].is_busy = false;
                guard.lanes[at].next += lanes;
                guard.in_memory[disk] -= 1;
                guard.pool.push(part.buffer);
                if let Err(error) = counted {
                    guard.fail((disk, number), error);
                }
                ready.notify_all();
                room.notify_all();
            }
            guard.computing -= 1;
            drop(guard);
            ready.notify_all();
            room.notify_all();
        };
        let mut stopped = Ok(());
        std::thread::scope(|scope| {
            for disk in 0..targets.len() {
                for _ in 0..engine.spec.depth {
                    scope.spawn(move || reader(disk));
                }
            }
            for _ in 0..threads {
                scope.spawn(computer);
            }
            let mut guard = locked(&state);
            while guard.computing > 0 || guard.readers > 0 {
                guard = ready
                    .wait_timeout(guard, WATCH)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                if stopped.is_ok() {
                    drop(guard);
                    stopped = go_on();
                    guard = locked(&state);
                    if stopped.is_err() {
                        guard.stop = true;
                        ready.notify_all();
                        room.notify_all();
                    }
                }
            }
        });
        stopped?;
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, error)) = state.error {
            return Err(error);
        }
        let unlocked = |mutex: Mutex<_>| mutex.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.permutations = permutations
            .into_iter()
            .map(|p| p.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        self.orders = orders.into_iter().map(unlocked).collect();
        self.done = state.next;
        self.bytes_read += state.bytes_read;
        for lane in &self.lanes {
            locked(lane).close();
        }
        Ok(())
    }

    /// Counts the records of a partition.
    fn count(&self, disk: usize, partition: u64, part: &Part, totals: &mut Totals, room: &mut Room) -> Result<()> {
        let bytes = &part.buffer[part.loaded.records.clone()];
        let place = self.dataset.place(disk, partition);
        let quoted = place.piece.index.is_some();
        let form = &self.dataset.form;
        let mut slots = vec![Value::Null; self.plan.picks.len() + self.plan.joined.len()];
        let done = if self.spec.records < 1.0 {
            let mut lines: Vec<(usize, &[u8])> = Vec::new();
            let listed = record::records(form, quoted, bytes, |at, line| {
                lines.push((at, line));
                Ok(())
            });
            let all = lines.len() as u64;
            let wanted = ((self.spec.records * all as f64).round() as u64).max(2).min(all);
            let mut random = Stream::new(
                self.spec.seed,
                &format!("records of partition {partition} of disk {disk}"),
            );
            totals.begin(all, wanted);
            let mut left = wanted;
            listed.and_then(|()| {
                for (number, &(at, line)) in lines.iter().enumerate() {
                    if random.below(all - number as u64) < left {
                        left -= 1;
                        self.record(line, &mut slots, totals, room)
                            .map_err(|wrong| (at, wrong))?;
                    }
                }
                Ok(())
            })
        } else {
            totals.begin(0, 0);
            record::records(form, quoted, bytes, |_, line| {
                self.record(line, &mut slots, totals, room)
            })
        };
        done.map_err(|(at, wrong)| {
            let byte = part.loaded.offset + (part.loaded.records.start + at) as u64;
            Error::input(format!(
                "{}, record at byte {byte}: {}",
                place.piece.path.display(),
                wrong.0
            ))
        })
    }

    fn record<'r>(
        &'r self,
        line: &'r [u8],
        slots: &mut Vec<Value<'r>>,
        totals: &mut Totals,
        room: &mut Room,
    ) -> std::result::Result<(), Wrong> {
        totals.record();
        match self.explode {
            Some(explode) => {
                let Room { lower, key } = room;
                let plain = self.plan.condition.is_none()
                    && self.lookup.is_none()
                    && self.plan.groups == [crate::expression::Expression::Slot(0)]
                    && self.plan.aggregates.iter().all(|aggregate| aggregate.of.is_none());
                explode.pieces(line, lower, |piece| {
                    if plain {
                        // Most words are counted this way, without going through expressions.
                        key.clear();
                        key.extend((piece.len() as u32 + 1).to_be_bytes());
                        key.push(b't');
                        key.extend(piece);
                        let group = totals.group(key);
                        for aggregate in 0..self.plan.aggregates.len() {
                            totals.add(group, aggregate, 1.0, 0.0);
                        }
                        return Ok(());
                    }
                    let mut own = vec![Value::Null; slots.len()];
                    if let Some(first) = own.first_mut().filter(|_| !self.plan.picks.is_empty()) {
                        *first = Value::Text(Cow::Borrowed(piece));
                    }
                    self.rows(&mut own, totals, key)
                })
            }
            None => {
                record::fields(&self.dataset.form, &self.plan.picks, &self.dataset.columns, line, slots)?;
                self.rows(slots, totals, &mut room.key)
            }
        }
    }

    /// A record, and what it is joined with.
    fn rows<'r>(
        &'r self,
        slots: &mut [Value<'r>],
        totals: &mut Totals,
        key: &mut Vec<u8>,
    ) -> std::result::Result<(), Wrong> {
        let (Some(lookup), Some((ours, _))) = (&self.lookup, &self.plan.keys) else {
            return self.row(slots, totals, key);
        };
        let Some(on) = joined_key(&ours.evaluate(slots)?) else {
            return Ok(());
        };
        for &number in lookup.of.get(&on[..]).into_iter().flatten() {
            for (slot, value) in slots[self.plan.picks.len()..]
                .iter_mut()
                .zip(&lookup.rows[number as usize])
            {
                *slot = match value {
                    Value::Text(text) => Value::Text(Cow::Borrowed(text)),
                    Value::Number(number) => Value::Number(*number),
                    Value::Bool(truth) => Value::Bool(*truth),
                    Value::Null => Value::Null,
                };
            }
            self.row(slots, totals, key)?;
        }
        Ok(())
    }

    fn row(&self, slots: &[Value<'_>], totals: &mut Totals, key: &mut Vec<u8>) -> std::result::Result<(), Wrong> {
        if let Some(condition) = &self.plan.condition
            && condition.evaluate(slots)?.truth()? != Some(true)
        {
            return Ok(());
        }
        key.clear();
        for group in &self.plan.groups {
            group.evaluate(slots)?.write_key(key);
        }
        let group = totals.group(key);
        for (number, aggregate) in self.plan.aggregates.iter().enumerate() {
            let Some(of) = &aggregate.of else {
                totals.add(group, number, 1.0, 0.0);
                continue;
            };
            let value = of.evaluate(slots)?;
            match aggregate.kind {
                Kind::Count if !value.is_null() => totals.add(group, number, 1.0, 0.0),
                Kind::Count => {}
                Kind::Sum | Kind::Average => {
                    if let Some(value) = value.number()? {
                        totals.add(group, number, value, 1.0);
                    }
                }
                Kind::Proportion => {
                    if let Some(truth) = value.truth()? {
                        totals.add(group, number, f64::from(u8::from(truth)), 1.0);
                    }
                }
            }
        }
        Ok(())
    }

    /// All rows, in their order.
    fn answer(&self) -> Vec<Row> {
        let strata = self.strata();
        let aggregates = self.plan.aggregates.len();
        let lanes: Vec<MutexGuard<'_, Totals>> = self.lanes.iter().map(locked).collect();
        let negative: Vec<bool> = (0..aggregates)
            .map(|at| lanes.iter().any(|lane| lane.negative[at]))
            .collect();
        struct Group {
            seen: u64,
            disk: usize,
            sums: Vec<Sums>,
            estimators: Vec<Estimator>,
        }
        let fresh = |disk: usize| Group {
            seen: 0,
            disk,
            sums: vec![Sums::default(); aggregates],
            estimators: vec![Estimator::default(); aggregates],
        };
        let end_disk = |group: &mut Group| {
            for (estimator, sums) in group.estimators.iter_mut().zip(&mut group.sums) {
                estimator.add(strata[group.disk], &std::mem::take(sums));
            }
        };
        let mut groups: FxHashMap<&[u8], Group> = FxHashMap::default();
        if self.plan.groups.is_empty() {
            groups.insert(b"", fresh(0));
        }
        // Disks and their lanes come in order, so that each group's sums are added in order, whatever the order of groups.
        for (at, lane) in lanes.iter().enumerate() {
            let disk = at / self.lanes_of_disk;
            for (key, seen, sums) in lane.groups() {
                let group = groups.entry(key).or_insert_with(|| fresh(disk));
                if group.disk != disk {
                    end_disk(group);
                    group.disk = disk;
                }
                group.seen += seen;
                group.sums.iter_mut().zip(&sums).for_each(|(all, one)| all.add(one));
            }
        }
        let within = self.spec.records < 1.0;
        let mut rows: Vec<Row> = groups
            .into_iter()
            .map(|(key, mut group)| {
                end_disk(&mut group);
                let values = group.estimators.iter().zip(&self.plan.aggregates);
                let value = |(estimator, aggregate): (&Estimator, &sql::Aggregate)| {
                    Some(Estimate {
                        value: estimator.value(aggregate.kind)?,
                        interval: None,
                    })
                };
                Row {
                    groups: Value::read_keys(key),
                    seen: group.seen,
                    estimates: values.map(value).collect(),
                    estimators: group.estimators,
                }
            })
            .collect();
        let by_groups = |a: &Row, b: &Row| {
            let pairs = a.groups.iter().zip(&b.groups);
            pairs
                .map(|(a, b)| a.order(b))
                .find(|order| order.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        };
        let number = |row: &Row, at: usize| row.estimates[at].map_or(f64::NEG_INFINITY, |estimate| estimate.value);
        rows.sort_by(|a, b| {
            for &(column, falls) in &self.plan.orders {
                let order = match self.plan.columns[column].shows {
                    Shows::Group(at) => a.groups[at].order(&b.groups[at]),
                    Shows::Aggregate(at) => number(a, at).total_cmp(&number(b, at)),
                };
                let order = if falls { order.reverse() } else { order };
                if order.is_ne() {
                    return order;
                }
            }
            by_groups(a, b)
        });
        let shown = self.plan.limit.unwrap_or(usize::MAX).min(rows.len());
        let mut quantiles = Quantiles::new(self.spec.level);
        for row in &mut rows[..shown] {
            for (at, aggregate) in self.plan.aggregates.iter().enumerate() {
                row.estimates[at] =
                    row.estimators[at].finish(aggregate.kind, &strata, &mut quantiles, within, negative[at]);
            }
        }
        rows
    }
}

/// Room that a thread uses again.
#[derive(Default)]
struct Room {
    lower: Vec<u8>,
    key: Vec<u8>,
}

impl Row {
    fn json(&self, plan: &Plan, engine: &Engine<'_>) -> Json {
        let values: Vec<Json> = plan
            .columns
            .iter()
            .map(|column| match column.shows {
                Shows::Group(at) => match &self.groups[at] {
                    Value::Null => Json::Null,
                    Value::Bool(truth) => json!(truth),
                    Value::Number(number) => json!(number),
                    Value::Text(text) => json!(String::from_utf8_lossy(text)),
                },
                Shows::Aggregate(at) => match self.estimates[at] {
                    None => Json::Null,
                    Some(Estimate { value, interval: None }) => json!({"value": value}),
                    Some(Estimate {
                        value,
                        interval: Some(interval),
                    }) => json!({
                        "value": value, "low": interval.low, "high": interval.high, "half_width": interval.half_width,
                        "standard_error": interval.standard_error, "df": if interval.df.is_finite() { json!(interval.df) } else { Json::Null },
                    }),
                },
            })
            .collect();
        json!({"values": values, "partitions_seen": self.seen, "is_reliable": engine.is_reliable(self.seen)})
    }
}

/// The tenth percentile of chi-square, by Wilson and Hilferty.
fn chi_square_tenth(df: f64) -> f64 {
    let z = -normal(0.9);
    let ninth = 2.0 / (9.0 * df);
    df * (1.0 - ninth + z * ninth.sqrt()).max(0.0).powi(3)
}
