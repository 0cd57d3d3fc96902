//! A question to files, start to end.
//!
//! # Model
//! Of each disk the same share of partitions is drawn, at least two (`draw`), read by the disk's own threads (`read`) and counted by other threads (`totals`), in lanes: lane `l`
//! of a disk has every `L`-th partition of its sample, in order, and one thread at a time. Sums of lanes are added in order, so that an answer is the same, to the bit, with
//! any number of threads.
//!
//! How much is drawn:
//! * `ratio`: the share of partitions of every disk. With `drop`, disks that are quick give up to that share more, and the sample ends when all have given as much as was asked for
//!   together, so that nobody waits for the slowest. What a disk has begun to read is waited for, so that its sample is a prefix of its random order: its speed decides how many
//!   partitions it gives, not which.
//! * `error`: a pilot of `pilot` partitions tells how large the sample must be for half-widths below that share of every value; where a
//!   group was seen in fewer than ten partitions of the pilot, it does not count. The sample grows once, to that size, and is never looked at in between: a sample that grows until its
//!   interval looks narrow covers less than it says. The size has a tenth's chance of being too small by the pilot's own uncertainty (chi-square).
//! * `within`: what can be read in that time. A disk's sample is a prefix of its random order, however fast it is.
//! * `join_keys`: everything is read, and of both sides of a join that share of the keys counts (`keyed`).
//!
//! Where disks belong to several machines, each answers with `statistics`, and `merge` makes of them the answer that one machine with all disks would have given.
//!
//! # Errors
//! See `layout`, `sql`, `record`, `read`; options out of range.

mod answer;
mod asked;
mod counting;
mod head;
mod heavy;
mod joined;
mod keyed;
mod merge;
mod progress;
mod reading;
mod spec;
mod statistics;
mod words;

pub use joined::Lookup;
pub use merge::merge;
pub use progress::Progress;
pub use spec::SampleSpec;
pub use statistics::{Group, Statistics, statistics};

pub use answer::Answer;
use answer::Row;
use asked::Asked;
use head::Head;
use joined::Joined;
use keyed::Taken;
use reading::{Part, Until};
use words::Words;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ftlab_core::Result;
use serde_json::{Value as Json, json};

use crate::draw::Permutation;
use crate::estimate::{Rows, Stratum, normal, widened};
use crate::layout::Dataset;
use crate::record::{Explode, Form, Pick};
use crate::sql::{Plan, Select};
use crate::stop::{Stop, WATCH};
use crate::totals::{Shape, Totals};

/// Lanes of all disks together, at least; more threads than these have nothing to do on one disk.
const LANES: usize = 8;
/// A group seen in fewer partitions has no interval to be trusted.
pub(crate) const RARE: u64 = 10;
/// Bytes of partitions of a disk in memory, unless two are larger.
const MEMORY: u64 = 1 << 30;
/// The largest file that is joined.
const LARGEST_JOINED: u64 = 1 << 30;

/// Asks, and answers with JSON. `go_on` is called now and then, and may refuse.
pub fn sample(spec: &SampleSpec, go_on: &mut dyn FnMut() -> Result<()>) -> Result<Json> {
    Ok(watched(spec, &mut |_| go_on())?.json())
}

/// As `sample`; `go_on` may look at what is known so far, which changes nothing.
pub fn watched(spec: &SampleSpec, go_on: GoOn<'_>) -> Result<Answer> {
    let started = Instant::now();
    spec.check()?;
    spec.check_alone()?;
    let asked = Asked::open(spec, go_on)?;
    if spec.output.is_some() {
        asked.plan.refuse_twice()?;
    }
    let replicates = (!asked.plan.quantiles.is_empty()).then_some(spec.replicates);
    if replicates.is_some() {
        spec.check_replicates()?;
    }
    drawn(spec, asked, started, go_on, |engine, mut head| {
        let rows = match &engine.taken {
            None => engine.answer(),
            Some(taken) => {
                let (rows, sample) = engine.keyed(taken);
                head.keys = Some(sample);
                rows
            }
        };
        head.answer(&rows, replicates, started.elapsed().as_secs_f64())
    })
}

/// Draws and counts; what `then` makes of it.
fn drawn<T>(
    spec: &SampleSpec,
    asked: Asked,
    started: Instant,
    go_on: GoOn<'_>,
    then: impl FnOnce(&Engine<'_>, Head) -> T + Send,
) -> Result<T>
where
    T: Send,
{
    let Asked {
        files,
        explode,
        joined,
        dataset,
        plan,
    } = asked;
    spec.check_disks(dataset.disks.len() as u64)?;
    let mut taken = spec.taken();
    let mut read_before = 0;
    if let (Some(taken), Some(joined)) = (&mut taken, &joined)
        && taken.share < 1.0
    {
        (taken.certain, read_before) = heavy::find(spec, &dataset, &plan, explode, joined, taken.share, go_on)?;
    }
    let lookup = match (&joined, &plan.keys) {
        (Some(joined), Some((_, key))) => {
            let mut go_on = || go_on(&|| Progress::before(dataset.partitions()));
            Some(joined.lookup(&plan, key, taken.as_ref(), &mut go_on)?)
        }
        _ => None,
    };
    // Nodes read files of their own, which must be alike.
    let checksum = joined
        .as_ref()
        .filter(|_| spec.all_disks.is_some())
        .map(Joined::checksum)
        .transpose()?;
    let grown_joined = joined.as_ref().map_or(Ok(0), Joined::check_unchanged)?;
    let mut engine = Engine::new(spec, &dataset, &plan, explode, lookup);
    (engine.taken, engine.bytes_read) = (taken, engine.bytes_read + read_before);
    let size = engine.draw(started, go_on)?;
    // Partitions were read at different times, so that of a file that has changed they may be of two states.
    let grown = grown_joined + dataset.check_unchanged()?;
    let head = Head::of(&engine, &files, checksum, size, grown);
    let (engine, stop) = (&engine, engine.stop.clone());
    let counted = || engine.counted_all();
    stop.while_watched(|| then(engine, head), &mut || go_on(&counted))
}

/// Called a few times a second with what makes a `Progress`.
pub type GoOn<'g> = &'g mut dyn FnMut(&dyn Fn() -> Progress) -> Result<()>;

struct Engine<'a> {
    spec: &'a SampleSpec,
    dataset: &'a Dataset,
    plan: &'a Plan,
    select: Select,
    explode: Option<Explode>,
    lookup: Option<Lookup>,
    /// Which keys of a join count, where both sides are sampled.
    taken: Option<Taken>,
    /// Number of the first disk, and how many there are, on this and all other machines.
    first_disk: u64,
    all_disks: u64,
    permutations: Vec<Permutation>,
    /// Of each disk, the partitions of its sample in order.
    orders: Vec<Vec<u64>>,
    lanes_of_disk: usize,
    lanes: Vec<Mutex<Totals>>,
    done: Vec<u64>,
    bytes_read: u64,
    /// Of each pick, whether some record had a value there; of JSON lines, whose fields no header names.
    has_value: Vec<AtomicBool>,
    /// Of each disk its tables, if only words are counted; lanes have no groups then.
    words: Vec<Vec<Mutex<Words>>>,
    /// Whether nobody wants the answer any more.
    stop: Stop,
    /// If only so many groups of a lane are kept, those with the largest counts.
    most_groups: Option<usize>,
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
        let select = Select::of(plan);
        let by_rows = dataset.form == Form::Parquet && spec.join_keys.is_none();
        let shape = Shape::with_pairs(select.kinds.clone(), select.pairs(), spec.records < 1.0, by_rows);
        let all_disks = spec.all_disks.unwrap_or(disks as u64);
        // As many as on one machine with all disks, so that sums are added in the same order.
        let lanes_of_disk = LANES.div_ceil(all_disks as usize);
        let mut engine = Engine {
            spec,
            dataset,
            plan,
            select,
            explode,
            lookup,
            taken: spec.taken(),
            first_disk: spec.first_disk,
            all_disks,
            permutations: dataset
                .disks
                .iter()
                .zip(spec.first_disk..)
                .map(|(disk, number)| Permutation::new(disk.partitions, spec.seed, number))
                .collect(),
            orders: vec![Vec::new(); disks],
            lanes_of_disk,
            lanes: (0..disks * lanes_of_disk)
                .map(|_| Mutex::new(Totals::new(shape.clone())))
                .collect(),
            done: vec![0; disks],
            bytes_read: dataset.footer_bytes,
            has_value: plan.picks.iter().map(|_| AtomicBool::new(false)).collect(),
            words: Vec::new(),
            stop: Stop::default(),
            most_groups: None,
        };
        if engine.counts_words() {
            // As many as there are lanes of a disk that are counted at the same time.
            let tables = engine.threads().clamp(1, lanes_of_disk);
            engine
                .words
                .resize_with(disks, || (0..tables).map(|_| Mutex::default()).collect());
        }
        engine
    }

    /// Reads and counts everything.
    fn read_all(&mut self, go_on: GoOn<'_>) -> Result<()> {
        let of_disk: Vec<u64> = self.dataset.disks.iter().map(|disk| disk.partitions).collect();
        self.extend(&of_disk, Until::Targets, go_on)
    }

    /// Fields of JSON lines for which no record that was read has a value: perhaps there are none of the name.
    fn without_value(&self) -> Vec<String> {
        let is_json = self.dataset.form == Form::Json;
        let picks = self.plan.picks.iter().zip(&self.has_value);
        let without = picks.filter(|(_, has)| is_json && !has.load(Ordering::Relaxed));
        without
            .filter_map(|(pick, _)| match pick {
                Pick::Path(path) => Some(path.join(".")),
                Pick::Line | Pick::Field(_) => None,
            })
            .collect()
    }

    /// Of each aggregate, whether a value below 0 has come in `lanes`.
    fn negative(&self, lanes: &[MutexGuard<'_, Totals>]) -> Vec<bool> {
        let any = |at: usize| lanes.iter().any(|lane| lane.negative[at]);
        (0..self.select.kinds.len()).map(any).collect()
    }

    fn locked_lanes(&self) -> Vec<MutexGuard<'_, Totals>> {
        self.lanes.iter().map(locked).collect()
    }

    /// Once no lane is counted.
    fn locked_words(&self) -> Vec<Vec<MutexGuard<'_, Words>>> {
        let disks = self.words.iter();
        disks.map(|tables| tables.iter().map(locked).collect()).collect()
    }

    /// Draws what was asked for; what that was, and what came of it.
    fn draw(&mut self, started: Instant, go_on: GoOn<'_>) -> Result<Json> {
        // Rows of Parquet alone are counted in the footers, which are read already.
        let is_free = self.dataset.form == Form::Parquet && self.plan.picks.is_empty();
        let share = |ratio: f64, partitions: u64| match is_free {
            true => partitions,
            false => ((ratio * partitions as f64).round() as u64).max(2).min(partitions),
        };
        let of_disk: Vec<u64> = self.dataset.disks.iter().map(|disk| disk.partitions).collect();
        let all = self.dataset.partitions() as f64;
        if let Some(share) = self.spec.join_keys {
            self.read_all(go_on)?;
            return Ok(json!({"join_keys": share}));
        }
        if let Some(ratio) = self.spec.ratio {
            let targets: Vec<u64> = of_disk.iter().map(|&partitions| share(ratio, partitions)).collect();
            if let Some(drop) = self.spec.drop {
                let more = |(&target, &partitions): (&u64, &u64)| {
                    ((target as f64 * (1.0 + drop)).ceil() as u64).min(partitions)
                };
                let most: Vec<u64> = targets.iter().zip(&of_disk).map(more).collect();
                self.extend(&most, Until::Drawn(targets.iter().sum()), go_on)?;
                return Ok(json!({"ratio": ratio, "drop": drop}));
            }
            self.extend(&targets, Until::Targets, go_on)?;
            return Ok(json!({"ratio": ratio}));
        }
        if let Some(ns) = self.spec.within_ns()? {
            let deadline = started + Duration::from_nanos(ns);
            let until = if is_free { Until::Targets } else { Until::Time(deadline) };
            self.extend(&of_disk, until, go_on)?;
            return Ok(json!({"within": self.spec.within}));
        }
        let error = self.spec.error.unwrap_or(1.0);
        let pilot: Vec<u64> = of_disk
            .iter()
            .map(|&partitions| share(self.spec.pilot as f64 / all, partitions))
            .collect();
        self.extend(&pilot, Until::Targets, go_on)?;
        let rows = self.answer();
        let (ratio, counted) = self.needed(&rows, error);
        let targets: Vec<u64> = of_disk
            .iter()
            .zip(&pilot)
            .map(|(&partitions, &pilot)| ((ratio * partitions as f64).ceil() as u64).clamp(pilot, partitions))
            .collect();
        self.extend(&targets, Until::Targets, go_on)?;
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
        let shown = &rows[..self.select.shown(rows.len())];
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

    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.spec.threads.unwrap_or_else(cores)
    }

    fn strata(&self) -> Vec<Stratum> {
        let disks = self.dataset.disks.iter().zip(&self.done);
        disks
            .map(|(disk, &drawn)| Stratum::new(disk.partitions, drawn))
            .collect()
    }

    /// Of what `lanes` have counted, with rows where files tell.
    fn strata_of(&self, lanes: &[MutexGuard<'_, Totals>]) -> Vec<Stratum> {
        let rows = self.dataset.rows().filter(|_| self.taken.is_none());
        let disks = lanes.chunks(self.lanes_of_disk).zip(&self.dataset.disks).enumerate();
        let strata = disks.map(|(at, (lanes, disk))| {
            let drawn = lanes.iter().map(|lane| lane.partitions).sum();
            let stratum = Stratum::new(disk.partitions, drawn);
            let Some(rows) = &rows else { return stratum };
            let mut found = Rows {
                all: rows[at],
                drawn: 0,
                squares: 0,
                cubes: 0.0,
            };
            for lane in lanes {
                let (rows, squares, cubes) = lane.sizes();
                found.drawn += rows;
                found.squares += squares;
                found.cubes += cubes;
            }
            stratum.with_rows(Some(found))
        });
        widened(strata.collect())
    }

    fn is_exact(&self) -> bool {
        self.spec.records >= 1.0 && self.strata().iter().all(Stratum::is_whole)
    }

    fn is_reliable(&self, seen: u64) -> bool {
        head::is_reliable(seen, self.done.iter().sum(), self.is_exact())
    }

    fn records(&self) -> u64 {
        self.lanes.iter().map(|lane| locked(lane).records).sum()
    }
}

/// The tenth percentile of chi-square, by Wilson and Hilferty.
fn chi_square_tenth(df: f64) -> f64 {
    let z = -normal(0.9);
    let ninth = 2.0 / (9.0 * df);
    df * (1.0 - ninth + z * ninth.sqrt()).max(0.0).powi(3)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    use super::*;

    /// The answer of a file to which `change` is done between its opening and the end of the job.
    fn changed(change: impl FnOnce(&Path)) -> Result<Json> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.txt");
        fs::write(&path, "a line\n".repeat(5000)).unwrap();
        // Within a tick of the system's clock times of change are alike.
        std::thread::sleep(Duration::from_millis(50));
        let query = format!("select count(*) as n from '{}'", path.display());
        let spec = SampleSpec::parse(&json!({"query": query, "ratio": 1.0}).to_string()).unwrap();
        let asked = Asked::open(&spec, &mut |_| Ok(()))?;
        change(&path);
        let now = Instant::now();
        drawn(&spec, asked, now, &mut |_| Ok(()), |engine, head| {
            head.answer(&engine.answer(), None, 0.0).json()
        })
    }

    fn put(path: &Path, text: &str, append: bool) {
        let mut file = fs::OpenOptions::new().write(true).append(append).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// What speed would decide is given here: how many partitions each of three disks with values of 1, 2 and 3 gives. A total that went by that would be 2.6 times too small or more.
    #[test]
    fn a_disk_that_gives_less_counts_no_less() {
        let folder = tempfile::tempdir().unwrap();
        let folders = ["1", "2", "3"].map(|name| folder.path().join(name));
        let mut total = 0.0;
        for (value, folder) in (1u32..).zip(&folders) {
            fs::create_dir(folder).unwrap();
            let line = format!("{value}\n").repeat(40_000);
            total += f64::from(value) * 40_000.0;
            fs::write(folder.join("x.txt"), line).unwrap();
        }
        for seed in 0..20 {
            let spec = json!({
                "query": "select sum(cast(line as double)) as n from 'x.txt'", "ratio": 0.1, "drop": 1.0,
                "disks": folders, "partition": "2KiB", "seed": seed,
            });
            let spec = SampleSpec::parse(&spec.to_string()).unwrap();
            let asked = Asked::open(&spec, &mut |_| Ok(())).unwrap();
            let mut engine = Engine::new(&spec, &asked.dataset, &asked.plan, None, None);
            let given = [20, 8, 2];
            engine.extend(&given, Until::Targets, &mut |_| Ok(())).unwrap();
            assert_eq!(engine.done, given);
            let found = engine.answer()[0].estimates[0].unwrap();
            assert!((found.value / total - 1.0).abs() < 0.02, "{}", found.value / total);
        }
    }

    #[test]
    fn an_answer_that_nobody_wants_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.txt");
        fs::write(&path, (0..1000).map(|n| format!("{n}\n")).collect::<String>()).unwrap();
        let query = format!("select line, count(*) as n from '{}' group by line", path.display());
        let spec = SampleSpec::parse(&json!({"query": query, "ratio": 1.0}).to_string()).unwrap();
        let asked = Asked::open(&spec, &mut |_| Ok(())).unwrap();
        let answering = AtomicBool::new(false);
        let mut refuse = |_: &dyn Fn() -> Progress| match answering.load(Ordering::Relaxed) {
            true => Err(ftlab_core::Error::Interrupted),
            false => Ok(()),
        };
        let made = drawn(&spec, asked, Instant::now(), &mut refuse, |engine, _| {
            answering.store(true, Ordering::Relaxed);
            while engine.stop.check().is_ok() {
                std::thread::yield_now();
            }
            engine.answer().len()
        });
        assert!(matches!(made, Err(ftlab_core::Error::Interrupted)));
        // Without anybody who stops it, the same answer has its rows.
        let asked = Asked::open(&spec, &mut |_| Ok(())).unwrap();
        let made = drawn(&spec, asked, Instant::now(), &mut |_| Ok(()), |engine, _| {
            let rows = engine.answer().len();
            engine.stop.ask();
            (rows, engine.answer().len())
        });
        assert_eq!(made.unwrap(), (1000, 0));
    }

    #[test]
    fn a_file_that_changes_is_refused() {
        let refused = |change: &dyn Fn(&Path), what: &str| {
            let said = changed(change).unwrap_err().to_string();
            let wanted = format!("log.txt: {what} while it was read, expected a file that does not change");
            assert!(said.ends_with(&wanted), "{said}");
        };
        refused(&|path| put(path, "b", false), "was written to");
        refused(&|path| fs::remove_file(path).unwrap(), "was taken away");
        refused(
            &|path| {
                fs::rename(path, path.with_extension("old")).unwrap();
                fs::write(path, "a line\n".repeat(5000)).unwrap();
            },
            "another file took its name",
        );
    }

    /// Of a join, as the file that is joined changes.
    fn joined(change: impl FnOnce(&Path)) -> Result<Json> {
        let folder = tempfile::tempdir().unwrap();
        let (log, table) = (folder.path().join("log.csv"), folder.path().join("table.csv"));
        fs::write(&log, "k\n1\n2\n").unwrap();
        fs::write(&table, "k,team\n1,a\n2,b\n").unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let query = format!(
            "select team, count(*) as n from '{}' l join '{}' t on l.k = t.k group by team",
            log.display(),
            table.display()
        );
        let spec = SampleSpec::parse(&json!({"query": query, "ratio": 1.0}).to_string()).unwrap();
        let asked = Asked::open(&spec, &mut |_| Ok(()))?;
        change(&table);
        drawn(&spec, asked, Instant::now(), &mut |_| Ok(()), |engine, head| {
            head.answer(&engine.answer(), None, 0.0).json()
        })
    }

    #[test]
    fn a_joined_file_that_changes_is_refused_too() {
        for (change, what) in [
            (
                &(|path: &Path| put(path, "b", false)) as &dyn Fn(&Path),
                "was written to",
            ),
            (&|path| fs::remove_file(path).unwrap(), "was taken away"),
        ] {
            let said = joined(change).unwrap_err().to_string();
            let wanted = format!("table.csv: {what} while it was read, expected a file that does not change");
            assert!(said.ends_with(&wanted), "{said}");
        }
        let answer = joined(|path| put(path, "2,c\n", true)).unwrap();
        assert_eq!(answer["sample"]["grown_files"], json!(1));
        assert_eq!(answer["rows"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_log_that_grows_is_read_as_it_was() {
        for (text, grown) in [("", 0), ("a line\n", 1)] {
            let answer = changed(|path| put(path, text, true)).unwrap();
            assert_eq!(answer["rows"][0]["values"][0]["value"], json!(5000.0));
            assert_eq!(answer["sample"]["grown_files"], json!(grown));
        }
    }
}
