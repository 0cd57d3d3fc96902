//! The verbs: run, many runs, list, theory, check, resolve.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ftlab_core::{Catalogue, Error, Lpn, Result, error, units};
use ftlab_drive::config::{self, presets};
use ftlab_drive::faulty::Faulty;
use ftlab_drive::front::timed_device;
use ftlab_drive::timeline::Timeline;
use ftlab_ftl::future::Future;
use ftlab_ftl::{Counting, Ftl, Overrides};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::foresight;
use crate::injected::Injected;
use crate::measure::{self, End, Held, Limit, Plan};
use crate::members::Members;
use crate::scans::Scans;
use crate::settling::{Look, Settles};
use crate::spec::{BackendKind, DriveSpec, Precondition, RunSpec, Tenants, Warmup};
use crate::streams::Streams;
use crate::summary::{self, Before, Facts};
use crate::table::Outcome;
use crate::time;
use crate::watch::{BreakAt, Watch};
use crate::workload::{self, Pace, Part, Prepared, Workload};
use crate::{Observer, Progress};

/// Host writes, in logical capacities, by which a drive is aged when theory has no steady state for its victim policy; on a
/// large drive no more than so many units, so that it is ready in seconds (`--warmup` asks for more).
const AGEING: f64 = 2.0;
const MOST_AGEING_UNITS: f64 = 16e6;
/// Requests that a run makes before it may be called steady, where its workload does not say how many it has.
const UNKNOWN_LENGTH: u64 = 10_000;

/// One run; the drive may name policies of `members` besides those of the catalogues.
pub fn run(spec: &RunSpec, members: &Members, observer: &mut (dyn Observer + Send)) -> Result<Outcome> {
    run_of(spec, members, observer, &Scans::default())
}

/// One run of several, which have `scans` in common.
fn run_of(spec: &RunSpec, members: &Members, observer: &mut (dyn Observer + Send), scans: &Scans) -> Result<Outcome> {
    members.carry_out(|| run_on_this_thread(spec, members, observer, scans))
}

fn run_on_this_thread(
    spec: &RunSpec,
    members: &Members,
    observer: &mut (dyn Observer + Send),
    scans: &Scans,
) -> Result<Outcome> {
    let break_at = spec.break_at.as_deref().map(BreakAt::parse).transpose()?;
    spec.save_state
        .as_deref()
        .map(ftlab_drive::state::may_save)
        .transpose()?;
    members.known(&workload::load_drive(&spec.drive)?)?;
    let mut prepared = workload::prepare(spec, scans)?;
    let mut notes = std::mem::take(&mut prepared.notes);
    let prepared = Arc::new(prepared);
    let faults = spec
        .own_faults()?
        .of_drive(prepared.config.layout.geometry.total_dies())?;
    let mut power_cuts = spec.power_cuts.clone();
    power_cuts.sort_unstable();
    if !power_cuts.is_empty() && prepared.config.ftl.checkpoint_units == 0 {
        return Err(Error::input(
            "--power-cut: the drive keeps nothing to recover from; set ftl.checkpoint, e.g. to \"1GiB\"",
        ));
    }
    let mut watch = Watch::new(observer);
    let streams = spec.streams.then(Streams::default);
    let build = |future: Option<Future>| {
        let (layout, config) = (prepared.config.layout.clone(), prepared.config.ftl.clone());
        let mut given = Overrides {
            future,
            tenants: spec.tenants.map(Into::into),
            ..members.overrides(&config)?
        };
        if let Some(streams) = &streams {
            streams.watch(&mut given, &config, &layout)?;
        }
        Ftl::with(layout, config, given)
    };
    let mut ftl = build(None)?;
    if ftl.asks_for_future() {
        drop(ftl);
        ftl = build(Some(foresight::foresee(spec, &prepared, members, &mut watch)?))?;
    }
    if ftl.has_uncharged_units() && (spec.backend == BackendKind::Timed || spec.save_state.is_some()) {
        return Err(Error::input(format!(
            "placement policy `{}` has more open units than a real drive: expected --backend counting and no saved state",
            prepared.config.ftl.placement.show()
        )));
    }
    if ftl.asks_for_future() && spec.save_state.is_some() {
        return Err(Error::input(format!(
            "placement policy `{}` knows the future of this run alone: expected no saved state",
            prepared.config.ftl.placement.show()
        )));
    }
    let mut workload = Workload::open(spec, &prepared, Part::Measure)?;
    let described = workload.describe(spec);
    notes.extend(ftl.notes());
    if ftl.asks_for_future() {
        notes.push(format!(
            "the placement `{}` knows when each write will be overwritten; no real drive can know this",
            prepared.config.ftl.placement.name
        ));
    }

    let started = Instant::now();
    precondition(spec, &mut ftl, &prepared, &mut watch, &mut notes)?;
    let mut before = Before {
        precondition_s: started.elapsed().as_secs_f64(),
        warmup_s: 0.0,
    };
    let mut total_requests = workload.requests(&prepared);
    let mut held = Held::default();
    let started = Instant::now();
    if let Some(warmup) = spec.warmup {
        let used = warm_up(
            spec,
            warmup,
            &mut ftl,
            &prepared,
            (&mut workload, &mut held),
            &mut watch,
        )?;
        total_requests = total_requests.map(|total| total.saturating_sub(used));
        before.warmup_s = started.elapsed().as_secs_f64();
    }
    ftl.reset_counts();
    if let Some(streams) = &streams {
        streams.reset();
    }

    let until = spec.until.map(|_| match workload.repeats() {
        true => Look::Pass,
        false => Look::Requests(total_requests.unwrap_or(UNKNOWN_LENGTH)),
    });
    let plan = Plan {
        phase: "measure",
        total_requests: total_requests.filter(|_| until.is_none()),
        limit: Limit::default(),
        break_at: break_at.as_ref(),
        power_cuts: &power_cuts,
        config: &prepared.config,
        settles: Settles {
            until,
            ..Settles::at(spec.steady_width, &prepared.config)
        },
        film: spec.film,
    };
    let pace = workload.pace(spec, &prepared);
    if workload.untimed(spec, &prepared) && spec.backend == BackendKind::Timed {
        notes.push(
            "the trace has no times: 32 requests are kept under way (--qd or --arrivals asks for another pace)"
                .to_owned(),
        );
    }
    let facts = |workload: &Workload, notes: Vec<String>, controller_reads: Option<u64>| Facts {
        spec,
        config: &prepared.config,
        workload: described.clone(),
        trace: trace_report(workload, &prepared),
        filters: workload.filter_reports(),
        notes,
        before,
        speedup: match pace {
            Pace::Open { speedup, .. } => Some(speedup),
            Pace::Closed { .. } => None,
        },
        longer: workload.longer(spec),
        tenant_names: {
            let [volumes, labels] = workload.volume_and_label_names();
            match spec.tenants {
                Some(Tenants::Volume) => volumes,
                Some(Tenants::Label) => labels,
                _ => Vec::new(),
            }
        },
        controller_reads,
    };
    match spec.backend {
        BackendKind::Counting => {
            if spec.trace_events.is_some() {
                return Err(Error::input(
                    "--trace-events needs the timed backend: counting has no time",
                ));
            }
            let measured = measure::count(&mut ftl, &mut workload, &mut held, &plan, &mut watch)?;
            foresight::check(ftl.future_fault())?;
            members.refuse_idle(&prepared.config, &ftl.counts, &measured.end)?;
            let mut summary = summary::summary(&facts(&workload, notes, None), &ftl, &measured);
            if let Some(transactions) = workload.transactions() {
                summary["transactions"] = summary::transactions(transactions, None);
            }
            let mut tables = vec![measured.series.table(false), summary::blocks(&ftl)];
            let film = measured.film.iter();
            tables.extend(film.flat_map(|film| film.tables(ftl.frontier_names(), false)));
            tables.extend(streams.iter().flat_map(Streams::tables));
            written(save_state(spec, ftl, &prepared), &mut summary)?;
            Ok(Outcome { summary, tables })
        }
        BackendKind::Timed => {
            let mut device = timed_device(&prepared.config, ftl)?;
            if let Some(path) = &spec.trace_events {
                let geometry = &prepared.config.layout.geometry;
                let timeline = Timeline::create(path, geometry, spec.trace_events_limit)?;
                device.front_mut().ftl.backend.observe(Some(Box::new(timeline)))?;
            }
            let mut injected = None;
            let mut measured = if spec.faults.is_empty() {
                time::time(&mut device, &mut workload, held, pace, spec.requests, &plan, &mut watch)?
            } else {
                let mut faulty = Faulty::new(&mut device, faults, prepared.config.rated_pe_cycles);
                let measured = time::time(&mut faulty, &mut workload, held, pace, spec.requests, &plan, &mut watch)?;
                injected = Some(Injected::of(&faulty));
                if spec.verify && faulty.faults().deceive() {
                    notes.push(
                        "verify: checks the drive behind the faults, hence not what they tear or drop of acknowledged requests"
                            .to_owned(),
                    );
                }
                measured
            };
            let mut front = device.into_front();
            let timeline = front.ftl.backend.observe(None);
            foresight::check(front.ftl.future_fault())?;
            members.refuse_idle(&prepared.config, &front.ftl.counts, &measured.end)?;
            let stats = front.ftl.backend.stats();
            let mut summary = summary::summary(
                &facts(&workload, notes, Some(stats.controller_reads)),
                &front.ftl,
                &measured,
            );
            if let Some(transactions) = workload.transactions() {
                summary["transactions"] = summary::transactions(transactions, Some((&stats, measured.sim_ns)));
            }
            if let Some(injected) = injected {
                injected.tell(&mut summary);
            }
            let [dies, channels] = summary::utilisation(&stats);
            let blocks = summary::blocks(&front.ftl);
            let mut tables = vec![
                measured.series.table(true),
                measured.latencies.table(),
                blocks,
                dies,
                channels,
            ];
            tables.extend(measured.rows.take().map(|rows| rows.table()));
            let film = measured.film.iter();
            tables.extend(film.flat_map(|film| film.tables(front.ftl.frontier_names(), true)));
            tables.extend(streams.iter().flat_map(Streams::tables));
            written(timeline, &mut summary)?;
            written(
                save_state(spec, front.ftl.with_backend(Counting), &prepared),
                &mut summary,
            )?;
            Ok(Outcome { summary, tables })
        }
    }
}

pub(crate) fn precondition(
    spec: &RunSpec,
    ftl: &mut Ftl<Counting>,
    prepared: &Prepared,
    watch: &mut Watch<'_>,
    notes: &mut Vec<String>,
) -> Result<()> {
    watch.report(Progress {
        phase: "precondition".to_owned(),
        waf: f64::NAN,
        ..Progress::default()
    });
    let chosen = match (&spec.precondition, ftl.config.mapping.name == "page") {
        (Precondition::Auto, true) => &Precondition::Theory,
        (Precondition::Auto, false) => &Precondition::Fill,
        (given, _) => given,
    };
    match chosen {
        Precondition::Auto | Precondition::None => {
            notes.push("not preconditioned: a fresh drive".to_owned());
        }
        Precondition::Fill => {
            ftl.precondition_fill();
            notes.push("preconditioned by one sequential fill".to_owned());
        }
        Precondition::FillShare(share) => {
            let units = ftl.config.logical_units;
            let left = spec.precondition.left_to_workload(units);
            ftl.precondition_fill_from(Lpn(left));
            let bytes = |units: u32| {
                units::show_bytes(u64::from(units) * u64::from(prepared.config.layout.geometry.unit_bytes))
            };
            notes.push(format!(
                "{share:?} of the drive ({}) holds static data, which is never written again; the workload lies in the other {}",
                bytes(units - left),
                bytes(left)
            ));
        }
        Precondition::Scatter => {
            ftl.precondition_scatter();
            notes.push("preconditioned by one fill in scattered order".to_owned());
        }
        Precondition::Theory => {
            let state = ftl.precondition_theory();
            if state.exact {
                notes.push(state.sentence);
            } else {
                age(spec, ftl, prepared, watch)?;
                notes.push(format!(
                    "{}, then aged by {:.3} drive writes of uniform overwrites (--warmup asks for more)",
                    state.sentence,
                    ageing(ftl)
                ));
            }
        }
        Precondition::State(path) => {
            ftlab_drive::state::load_into(path, &prepared.config, ftl)?;
            notes.push(format!("started from the saved state {}", path.display()));
        }
    }
    Ok(())
}

/// Logical capacities by which `ftl` is aged.
fn ageing(ftl: &Ftl<Counting>) -> f64 {
    AGEING.min(MOST_AGEING_UNITS / f64::from(ftl.config.logical_units))
}

/// Uniform overwrites on the counting backend, from a state that is only near the steady one.
fn age(spec: &RunSpec, ftl: &mut Ftl<Counting>, prepared: &Prepared, watch: &mut Watch<'_>) -> Result<()> {
    let unit = prepared.config.layout.geometry.unit_bytes;
    let logical = u64::from(ftl.config.logical_units) * u64::from(unit);
    let text = format!("uniform:size={unit}B,align={unit}B,bytes={}x", ageing(ftl));
    let generator = ftlab_trace::synth::parse(&text, logical, unit, spec.run_seed() ^ 0x4147_4549_4e47)?;
    let mut uniform = Workload::generated(generator);
    let plan = Plan {
        phase: "precondition",
        total_requests: None,
        limit: Limit::default(),
        break_at: None,
        power_cuts: &[],
        config: &prepared.config,
        settles: Settles::at(spec.steady_width, &prepared.config),
        film: false,
    };
    measure::count(ftl, &mut uniform, &mut Held::default(), &plan, watch)?;
    ftl.reset_counts();
    Ok(())
}

/// Runs the warm-up on the counting backend; returns the requests it took from the measured workload. What it leaves of a
/// batch is `held`.
pub(crate) fn warm_up(
    spec: &RunSpec,
    warmup: Warmup,
    ftl: &mut Ftl<Counting>,
    prepared: &Arc<Prepared>,
    (workload, held): (&mut Workload, &mut Held),
    watch: &mut Watch<'_>,
) -> Result<u64> {
    let unit = u64::from(prepared.config.layout.geometry.unit_bytes);
    let limit = match warmup {
        Warmup::Capacities(x) => Limit {
            host_units: Some((x * f64::from(ftl.config.logical_units)) as u64),
            requests: None,
        },
        Warmup::Bytes(bytes) => {
            // As with capacities: more has no end.
            let capacities = bytes.div_ceil(unit) / u64::from(ftl.config.logical_units);
            if capacities as f64 > Warmup::MOST_CAPACITIES {
                return Err(Error::input(format!(
                    "warmup {}: {capacities} times the drive's capacity, expected at most {:.0} times",
                    units::show_bytes(bytes),
                    Warmup::MOST_CAPACITIES
                )));
            }
            Limit {
                host_units: Some(bytes.div_ceil(unit)),
                requests: None,
            }
        }
        Warmup::Share(share) => {
            let total = workload.requests(prepared).ok_or_else(|| {
                Error::input(
                    "a warm-up as a share needs a workload of known length, not standard input and not `transactions`",
                )
            })?;
            Limit {
                host_units: None,
                requests: Some((share * total as f64) as u64),
            }
        }
    };
    if limit.host_units == Some(0) || limit.requests == Some(0) {
        return Ok(0);
    }
    let plan = Plan {
        phase: "warmup",
        total_requests: limit.requests,
        limit,
        break_at: None,
        power_cuts: &[],
        config: &prepared.config,
        settles: Settles::at(spec.steady_width, &prepared.config),
        film: false,
    };
    let own = workload.warms_up_itself();
    let measured = if own {
        measure::count(ftl, workload, held, &plan, watch)?
    } else {
        let mut endless = Workload::open(spec, prepared, Part::Warmup)?;
        measure::count(ftl, &mut endless, &mut Held::default(), &plan, watch)?
    };
    match measured.end {
        End::Done => Err(Error::input(format!(
            "the warm-up took the whole workload ({} requests): expected a shorter warm-up",
            measured.requests
        ))),
        _ if own => Ok(measured.requests),
        _ => Ok(0),
    }
}

pub(crate) fn trace_report(workload: &Workload, prepared: &Prepared) -> Option<Value> {
    let mut report = workload.report()?;
    if let Some(scan) = &prepared.scan {
        report.footprint_4k = scan.report.footprint_4k;
        report.checksum.clone_from(&scan.report.checksum);
    }
    serde_json::to_value(report).ok()
}

/// What the operating system refuses to write when a run is over takes none of its figures away: the sentence is one of them.
pub(crate) fn written(result: Result<()>, summary: &mut Value) -> Result<()> {
    let Err(Error::Io(sentence)) = result else {
        return result;
    };
    match summary["unwritten"].as_array_mut() {
        Some(others) => others.push(sentence.into()),
        None => summary["unwritten"] = vec![sentence].into(),
    }
    Ok(())
}

fn save_state(spec: &RunSpec, ftl: Ftl<Counting>, prepared: &Prepared) -> Result<()> {
    let Some(path) = &spec.save_state else { return Ok(()) };
    let mut ftl = ftl;
    ftlab_drive::state::save(path, &prepared.config, &mut ftl)
}

/// Many runs, each on one thread; results in the order of `specs`, the same bytes for any number of threads, of which there are
/// `threads` (`None`: as many as cores), but no more than runs.
///
/// Progress of all runs goes to the one observer; when it stops one, the others stop as well and keep what they have.
pub fn run_many(
    specs: &[RunSpec],
    members: &Members,
    threads: Option<usize>,
    observer: &mut (dyn Observer + Send),
) -> Vec<Result<Outcome>> {
    // A misspelt policy is found before the first run, not after hours of the others. A drive that cannot be built is left
    // out: what fits the others need not fit it.
    let known = |spec: &RunSpec| workload::load_drive(&spec.drive).map_or(Ok(()), |config| members.known(&config));
    if let Some(fault) = specs.iter().find_map(|spec| known(spec).err()) {
        return specs.iter().map(|_| Err(fault.clone())).collect();
    }
    let shared = Mutex::new(observer);
    let stop = AtomicBool::new(false);
    let scans = Scans::default();
    let work = || {
        let numbered: Vec<(usize, &RunSpec)> = specs.iter().enumerate().collect();
        let outcomes = numbered.par_iter().map(|&(run, spec)| {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let mut observer = Shared {
                run,
                observer: &shared,
                stop: &stop,
            };
            run_of(spec, members, &mut observer, &scans)
        });
        outcomes.collect()
    };
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or_else(cores).min(specs.len()).max(1);
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(work),
        Err(error) => {
            let sentence = format!("cannot start {threads} threads: {error}");
            specs.iter().map(|_| Err(Error::Io(sentence.clone()))).collect()
        }
    }
}

/// One run's share of the observer of many.
struct Shared<'a, 'b> {
    run: usize,
    observer: &'a Mutex<&'b mut (dyn Observer + Send)>,
    stop: &'a AtomicBool,
}

impl Observer for Shared<'_, '_> {
    fn progress(&mut self, progress: &Progress) -> bool {
        if let Ok(mut observer) = self.observer.lock() {
            let go_on = observer.progress(&Progress {
                run: self.run,
                ..progress.clone()
            });
            if !go_on {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        !self.stop.load(Ordering::Relaxed)
    }
}

/// What there is to choose from.
pub const LISTS: [&str; 5] = ["policies", "drives", "formats", "workloads", "filters"];

/// The members of one of [`LISTS`].
pub fn list(what: &str) -> Result<Value> {
    match what {
        "policies" => Ok(policies()),
        "drives" => {
            let drives = presets::names().into_iter().filter_map(presets::find);
            Ok(drives
                .map(|preset| json!({ "name": preset.name, "description": preset.description() }))
                .collect())
        }
        "formats" => {
            let formats = ftlab_trace::formats::catalogue().iter();
            Ok(formats.map(format).collect())
        }
        "workloads" => {
            let entries = ftlab_trace::synth::entries().into_iter();
            let row = |entry: ftlab_trace::synth::Entry| json!({ "name": entry.name, "description": entry.summary, "documentation": entry.documentation });
            Ok(entries.map(row).collect())
        }
        "filters" => {
            let kinds = ftlab_trace::filters::catalogue().iter();
            let row = |kind: &ftlab_trace::filters::Kind| json!({ "name": kind.name, "description": kind.summary(), "documentation": kind.documentation() });
            Ok(kinds.map(row).collect())
        }
        other => Err(error::unknown("list", other, &LISTS)),
    }
}

/// A trace format: what is read, what is written, what it leaves open, and a sample where it is text.
fn format(format: &ftlab_trace::formats::Format) -> Value {
    let settings = format.settings.iter().map(|setting| setting.name());
    let form = ftlab_trace::write::named(format.name).ok();
    json!({
        "name": format.name,
        "description": format.summary(),
        "written": form.is_some(),
        "open": settings.collect::<Vec<_>>(),
        "sample": String::from_utf8(format.sample()).ok().filter(|text| !text.contains('\0')),
        "documentation": format.documentation(),
        "writing": form.map(ftlab_trace::write::Format::documentation),
    })
}

/// Every member of every family, with its parameters, their defaults and its documentation.
fn policies() -> Value {
    fn rows<T: ?Sized + 'static, S: 'static>(catalogue: Catalogue<T, S>) -> Vec<Value> {
        let role = catalogue.role();
        let row = |member: &ftlab_core::catalogue::Member<T, S>| {
            json!({
                "role": role,
                "name": member.name,
                "summary": member.summary(),
                "parameters": member.defaults,
                "documentation": member.documentation(),
            })
        };
        catalogue.members().iter().map(row).collect()
    }
    let mut all = rows(ftlab_ftl::mapping::catalogue());
    all.extend(rows(ftlab_ftl::placement::catalogue()));
    all.extend(rows(ftlab_ftl::victim::catalogue()));
    all.extend(rows(ftlab_ftl::wear::catalogue()));
    all.extend(rows(ftlab_ftl::allocation::catalogue()));
    all.extend(rows(ftlab_ftl::dedup::catalogue()));
    all.extend(rows(ftlab_ftl::replication::catalogue()));
    all.extend(rows(ftlab_drive::schedule::catalogue()));
    all.extend(rows(ftlab_ftl::buffer::catalogue()));
    all.extend(rows(ftlab_trace::synth::transactions::mixes::catalogue()));
    all.extend(rows(ftlab_trace::synth::transactions::pool::catalogue()));
    Value::Array(all)
}

/// What theory says the drive must measure.
pub fn theory(drive: &DriveSpec) -> Result<Value> {
    let config = workload::load_drive(drive)?;
    Members::default().known(&config)?;
    Ok(config::theory_report(&config))
}

/// Checks the invariants of a saved drive state. A violation is part of the answer; a file that is no state is an error.
pub fn check(path: &std::path::Path) -> Result<Value> {
    let (config, ftl) = ftlab_drive::state::load(path)?;
    let fault = ftl.check().err();
    let states = ["free", "open", "closed", "collecting", "bad"];
    let tally = states.iter().enumerate().map(|(state, name)| {
        let count = ftl.units.rus.iter().filter(|ru| ru.state as usize == state).count();
        ((*name).to_owned(), Value::from(count))
    });
    let mapped = ftl.record.map.iter().filter(|&&entry| entry != u32::MAX).count();
    Ok(json!({
        "state": path,
        "drive": config.name,
        "ok": fault.is_none(),
        "fault": fault,
        "host_units_written": ftl.tick,
        "logical_units": config.ftl.logical_units,
        "mapped_units": mapped,
        "reclaim_units": Value::Object(tally.collect()),
        "erases": ftl.units.total_erases,
    }))
}

/// The drive with every default filled in: as JSON and as a drive file.
pub fn resolve_drive(drive: &DriveSpec) -> Result<(Value, String)> {
    let config = workload::load_drive(drive)?;
    Ok((config.describe(), config.resolved_toml()))
}
