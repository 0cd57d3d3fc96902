//! How large a mapping cache should be: the hit ratios of all sizes from one run, for caches that give up the least recent.
//!
//! # Model
//! The workload runs on the drive as it would in [`run`](crate::run), on the counting backend, under a mapping policy that
//! caches nothing and takes down how deep each look-up lies in an LRU stack. Preconditioning, warm-up, write buffer, partial
//! units and trims are therefore those of a run. Two stacks are kept:
//! * `entries`: what `dftl:policy=lru` caches, 8 bytes each (`entry_bytes`). Exact: the hits are those of a run with
//!   `ftl.map_cache` of that size. Collections don't change the order of use, and what they change stays where it is.
//! * `pages`: whole translation pages, uncompressed, the least recently used given up. No policy of the catalogue keeps just
//!   that: CDFTL and S-FTL are near it, but S-FTL compresses pages, CDFTL keeps entries beside them, and neither is a stack
//!   algorithm: their content does not grow with their size entry by entry, so no single pass gives their curve.
//!
//! A miss that a read waits for costs the read of a translation page on an idle drive: command, mean `t_r`, transfer of a
//! mapping unit, decoding.
//!
//! # Not modelled
//! Write-backs of dirty entries, and what they and the loads take from the drive. Prefetching and the other rules of TPFTL,
//! CPFTL and LeaFTL. A run that ends before its workload because the drive wears out.
//!
//! # Cost
//! What the run costs, and about 4.4 bytes for each logical unit touched, and 4 for each depth at which there were reads, and
//! writes.

mod lookups;
mod stack;
mod tally;

use std::sync::Arc;
use std::time::Instant;

use ftlab_core::{Error, PolicySpec, Result, units};
use ftlab_drive::config::DriveConfig;
use ftlab_drive::config::quantity::MapCache;
use ftlab_ftl::mapping::dftl;
use ftlab_ftl::mapping::paging::SLOT_BYTES;
use ftlab_ftl::{Ftl, Overrides};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Observer;
use crate::execute::{precondition, trace_report, warm_up};
use crate::measure::{self, End, Held, Limit, Plan};
use crate::members::Members;
use crate::scans::Scans;
use crate::settling::Settles;
use crate::spec::{RunSpec, from_json};
use crate::watch::Watch;
use crate::workload::{self, Part, Workload};

use lookups::{Level, Recorder};
pub(crate) use tally::Tally;

/// Layout of the answer; changes with the meaning of a key.
const SCHEMA: &str = "ftlab.mrc/1";
/// Hit ratios for which the smallest cache is told.
const KNEES: [f64; 5] = [0.5, 0.8, 0.9, 0.95, 0.99];
/// Points of the curve for each doubling of the cache.
const POINTS_PER_OCTAVE: u64 = 8;
/// Doublings in the table below the size that holds everything.
const OCTAVES: u32 = 10;

/// Which run, and for which sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MrcSpec {
    pub run: RunSpec,
    /// Sizes of the table, as `ftl.map_cache` takes them; `None`: powers of two.
    #[serde(default)]
    pub sizes: Option<Vec<String>>,
}

impl MrcSpec {
    /// Reads a spec from JSON and checks it.
    pub fn parse(json: &str) -> Result<Self> {
        let mut spec: MrcSpec = from_json("mrc", json)?;
        spec.run = spec.run.checked()?;
        if let Some(sizes) = &spec.sizes {
            if sizes.is_empty() {
                return Err(Error::input("sizes: expected at least one"));
            }
            for text in sizes {
                size(text)?;
            }
        }
        let run = &spec.run;
        for (given, name) in [
            (run.requests, "requests"),
            (run.trace_events.is_some(), "trace_events"),
            (run.break_at.is_some(), "break_at"),
            (!run.power_cuts.is_empty(), "power_cuts"),
            (!run.faults.is_empty(), "faults"),
            (run.save_state.is_some(), "save_state"),
        ] {
            if given {
                return Err(Error::input(format!(
                    "{name}: belongs to a run, not to a miss-ratio curve"
                )));
            }
        }
        Ok(spec)
    }
}

fn size(text: &str) -> Result<MapCache> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|e| Error::input(format!("size {e}")))
}

/// Runs the workload once.
///
/// The answer: `drive`, `map` (the table, and what the drive itself has of it), `workload`, `trace`, `filters` and `notes` as in
/// a summary; `lookups`; `miss` (what one costs a read); `curves`, one for each stack, with its `points` at the sizes of the
/// table, its `curve` in finer steps and its `knees`; `perf`.
pub fn mrc(spec: &MrcSpec, members: &Members, observer: &mut (dyn Observer + Send)) -> Result<Value> {
    members.carry_out(|| mrc_on_this_thread(spec, members, observer))
}

fn mrc_on_this_thread(spec: &MrcSpec, members: &Members, observer: &mut (dyn Observer + Send)) -> Result<Value> {
    let started = Instant::now();
    let own = workload::load_drive(&spec.run.drive)?;
    members.known(&own)?;
    let (run, entry_bytes) = as_dftl(&spec.run, &own)?;
    let mut prepared = workload::prepare(&run, &Scans::default())?;
    let mut notes = std::mem::take(&mut prepared.notes);
    let prepared = Arc::new(prepared);
    let mut watch = Watch::new(observer);
    let mut workload = Workload::open(&run, &prepared, Part::Measure)?;
    let mut held = Held::default();
    let described = workload.describe(&run);
    let config = &prepared.config;
    let recorder = Recorder::new(config.ftl.logical_units, config.layout.geometry.unit_bytes);
    let given = Overrides {
        mapping: Some(Box::new(recorder.clone())),
        ..members.overrides(&config.ftl)?
    };
    let mut ftl = Ftl::with(config.layout.clone(), config.ftl.clone(), given)?;
    precondition(&run, &mut ftl, &prepared, &mut watch, &mut notes)?;
    let mut total_requests = workload.requests(&prepared);
    if let Some(warmup) = run.warmup {
        let used = warm_up(
            &run,
            warmup,
            &mut ftl,
            &prepared,
            (&mut workload, &mut held),
            &mut watch,
        )?;
        total_requests = total_requests.map(|total| total.saturating_sub(used));
    }
    ftl.reset_counts();
    let plan = Plan {
        phase: "measure",
        total_requests,
        limit: Limit::default(),
        break_at: None,
        power_cuts: &[],
        config: &prepared.config,
        settles: Settles::at(run.steady_width, &prepared.config),
        film: false,
    };
    let measured = measure::count(&mut ftl, &mut workload, &mut held, &plan, &mut watch)?;
    match measured.end {
        End::Stopped => return Err(Error::Interrupted),
        End::WornOut => notes.push("the drive wore out: these are the look-ups until then".to_owned()),
        End::Done | End::Steady | End::Unsettled | End::Limit | End::Broken(_) => {}
    }
    let drive = Figures {
        own: &own,
        config: &prepared.config,
        recorder: &recorder,
        entry_bytes,
    };
    let lookups = recorder.lookups();
    let sizes = drive.sizes(spec.sizes.as_deref(), &lookups)?;
    let [reads, writes] = lookups.entries.tally.touches();
    Ok(json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "notes": notes,
        "drive": prepared.config.describe(),
        "map": drive.map(),
        "workload": described,
        "trace": trace_report(&workload, &prepared),
        "filters": workload.filter_reports(),
        "requests": measured.requests,
        "lookups": { "all": reads + writes, "reads": reads, "writes": writes - lookups.trims, "trims": lookups.trims },
        "miss": drive.miss(),
        "curves": [
            drive.curve("entries", "dftl:policy=lru", u64::from(entry_bytes), &lookups.entries, &sizes),
            drive.curve("pages", "LRU of whole translation pages", drive.unit(), &lookups.pages, &sizes),
        ],
        "perf": crate::traces::perf(started.elapsed().as_secs_f64(), measured.requests),
    }))
}

/// The run on the same drive with `dftl:policy=lru`, and what that takes for an entry.
///
/// A drive that has DFTL already keeps its other parameters. One whose map lies in memory gets room for the survivors among
/// translation pages, a free unit more in each pool; when it collects changes no look-up.
fn as_dftl(run: &RunSpec, own: &DriveConfig) -> Result<(RunSpec, u32)> {
    let mut mapping = match own.ftl.mapping.name == "dftl" {
        true => own.ftl.mapping.clone(),
        false => PolicySpec::named("dftl"),
    };
    mapping.params.insert("policy".to_owned(), "lru".into());
    let params: dftl::Params = serde_json::from_value(Value::Object(mapping.params.clone()))
        .map_err(|e| Error::input(format!("mapping policy `dftl`: {e}")))?;
    if params.entry_bytes == 0 {
        return Err(Error::input(
            "mapping policy `dftl`: entry_bytes = 0: expected at least 1",
        ));
    }
    let mut run = run.clone();
    run.drive.set.push(format!("ftl.mapping={}", mapping.show()));
    let gc = &own.ftl.gc;
    if own.ftl.mapping.name == "page" {
        let hard = gc.hard + 1;
        run.drive.set.push(format!("gc.hard={hard}"));
        run.drive.set.push(format!("gc.soft={}", gc.soft.max(hard)));
    }
    Ok((run, params.entry_bytes))
}

/// What the answer is made of.
struct Figures<'a> {
    /// The drive as the user has it.
    own: &'a DriveConfig,
    config: &'a DriveConfig,
    recorder: &'a Recorder,
    entry_bytes: u32,
}

impl Figures<'_> {
    fn unit(&self) -> u64 {
        u64::from(self.config.layout.geometry.unit_bytes)
    }

    fn units(&self) -> u64 {
        u64::from(self.config.ftl.logical_units)
    }

    /// Bytes of the whole map: what shares refer to, as those of `ftl.map_cache` do.
    fn map_bytes(&self) -> u64 {
        u64::from(SLOT_BYTES) * self.units()
    }

    /// Whether the map of the user's drive lies in flash, so that its cache has a size.
    fn in_flash(&self) -> bool {
        self.own.ftl.mapping.name != "page"
    }

    fn map(&self) -> Value {
        json!({
            "bytes": self.map_bytes(),
            "units": self.units(),
            "translation_pages": self.recorder.paging().pages(),
            "mapping": self.own.ftl.mapping.show(),
            "map_cache_bytes": self.in_flash().then_some(self.own.ftl.map_cache_bytes),
        })
    }

    /// Read of a translation page on an idle drive, as `config/theory.rs` has it for data, without the way to the host.
    fn miss(&self) -> Value {
        let timing = &self.config.timing;
        let t_r = timing.read_ns.iter().sum::<u64>() as f64 / timing.read_ns.len().max(1) as f64;
        let transfer = timing.transfer_ns(self.unit());
        json!({
            "read_ns": (timing.read_command_ns + transfer + timing.ecc_ns) as f64 + t_r,
            "command_ns": timing.read_command_ns,
            "t_r_ns": t_r,
            "transfer_ns": transfer,
            "ecc_ns": timing.ecc_ns,
        })
    }

    /// Sizes of the table in ascending order: those asked for, or the drive's own and powers of two.
    fn sizes(&self, asked: Option<&[String]>, lookups: &lookups::Lookups) -> Result<Vec<u64>> {
        let per_block = self.config.layout.geometry.pages * self.config.layout.units_per_page;
        let blocks = self.config.ftl.logical_units.div_ceil(per_block);
        let mut sizes: Vec<u64> = match asked {
            Some(asked) => asked
                .iter()
                .map(|text| Ok(size(text)?.bytes(self.map_bytes(), u64::from(blocks))))
                .collect::<Result<_>>()?,
            None => {
                let holds = |level: &Level, bytes: u64| (level.tally.deepest() as u64).max(2) * bytes;
                let entries = holds(&lookups.entries, u64::from(self.entry_bytes)).next_power_of_two();
                let all = holds(&lookups.pages, self.unit()).next_power_of_two().max(entries);
                let first = (entries >> OCTAVES).max(2 * u64::from(self.entry_bytes).next_power_of_two());
                let mut sizes: Vec<u64> = std::iter::successors(Some(first), |size| size.checked_mul(2))
                    .take_while(|&size| size <= all)
                    .collect();
                if self.in_flash() {
                    sizes.push(self.own.ftl.map_cache_bytes);
                }
                sizes
            }
        };
        sizes.sort_unstable();
        sizes.dedup();
        if let Some(small) = sizes.first().filter(|&&size| size < 2 * u64::from(self.entry_bytes)) {
            return Err(Error::input(format!(
                "size {}: expected room for at least 2 entries of {} bytes",
                units::show_bytes(*small),
                self.entry_bytes
            )));
        }
        Ok(sizes)
    }

    /// What caches of `item` bytes an entry or page hit.
    fn curve(&self, name: &str, policy: &str, item: u64, level: &Level, sizes: &[u64]) -> Value {
        let tally = &level.tally;
        let [reads, writes] = tally.touches();
        let items: Vec<u64> = sizes.iter().map(|size| size / item).collect();
        let points: Vec<Value> = (sizes.iter().zip(&items).zip(tally.hits(&items)))
            .map(|((&bytes, &items), [read_hits, write_hits])| {
                json!({
                    "bytes": bytes,
                    "share": bytes as f64 / self.map_bytes() as f64,
                    "items": items,
                    "hits": read_hits + write_hits,
                    "read_hits": read_hits,
                    "write_hits": write_hits,
                    "hit_ratio": ratio(read_hits + write_hits, reads + writes),
                    "read_hit_ratio": ratio(read_hits, reads),
                    "write_hit_ratio": ratio(write_hits, writes),
                })
            })
            .collect();
        let least = tally.least_items(&KNEES);
        let knees: Vec<Value> = (KNEES.iter().zip(least))
            .map(|(share, items)| json!({ "hit_ratio": share, "bytes": items.map(|n| n.max(1) * item) }))
            .collect();
        let steps = steps(tally.deepest() as u64);
        let hits = tally.hits(&steps);
        let column = |of: fn(&[u64; 2]) -> u64, all: u64| -> Vec<Value> {
            hits.iter().map(|hits| ratio(of(hits), all)).collect()
        };
        let first: u64 = tally.first().iter().sum();
        json!({
            "name": name,
            "policy": policy,
            "item_bytes": item,
            "touched": level.stack.touched(),
            "touched_bytes": u64::from(level.stack.touched()) * item,
            "enough_bytes": tally.deepest() as u64 * item,
            "first_lookups": first,
            "best_hit_ratio": ratio(reads + writes - first, reads + writes),
            "knees": knees,
            "points": points,
            "curve": {
                "bytes": steps.iter().map(|n| n * item).collect::<Vec<_>>(),
                "hit_ratio": column(|[read, write]| read + write, reads + writes),
                "read_hit_ratio": column(|[read, _]| *read, reads),
                "write_hit_ratio": column(|[_, write]| *write, writes),
            },
        })
    }
}

/// Numbers of items from 1 to `last`, evenly within each doubling: what a plot can show.
pub(crate) fn steps(last: u64) -> Vec<u64> {
    let octaves = (0..u64::BITS - POINTS_PER_OCTAVE.ilog2()).map(|octave| 1u64 << octave);
    let mut steps: Vec<u64> = octaves
        .flat_map(|from| (0..POINTS_PER_OCTAVE).map(move |step| from + from * step / POINTS_PER_OCTAVE))
        .take_while(|&items| items < last)
        .collect();
    steps.push(last.max(1));
    steps.dedup();
    steps
}

/// `null` where there is nothing to divide by.
fn ratio(part: u64, whole: u64) -> Value {
    match whole {
        0 => Value::Null,
        _ => json!(part as f64 / whole as f64),
    }
}

#[cfg(test)]
mod tests;
