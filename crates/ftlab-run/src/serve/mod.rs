//! The live drive: clients use the drive of a run over NBD, under the wall clock.
//!
//! # Model
//! The drive is prepared as for a run and then driven by a server (`ftlab-nbd`) in place of a workload. The outcome is that of a run,
//! with the block `serve` beside: latencies asked of the drive against those delivered, faults, power cuts, connections.
//!
//! # Not modelled
//! What a crash loses of the FTL ([`past`]).

mod live;
mod past;
mod spec;

use std::sync::Arc;
use std::time::Instant;

use ftlab_core::{Error, Result, units};
use ftlab_drive::config::DriveConfig;
use ftlab_drive::front::timed_device;
use ftlab_ftl::{Counting, Ftl};
use ftlab_nbd::store::{Discard, Memory, Store};
use ftlab_nbd::{Address, Export, Files, Options, Pace, Report, Sockets};
use serde_json::json;

pub use spec::ServeSpec;

use crate::Observer;
use crate::execute::precondition;
use crate::injected;
use crate::measure::{End, Measured};
use crate::members::Members;
use crate::overload::Overload;
use crate::sampler::Sampler;
use crate::settling::{Settles, Settling};
use crate::spec::{BackendKind, DriveSpec, GeneratorSpec, Precondition, RunSpec, WorkloadSpec};
use crate::summary::{self, Before, Facts};
use crate::table::Outcome;
use crate::time::Tally;
use crate::verdict::Longer;
use crate::watch::Watch;
use crate::workload::{self, Prepared};
use live::{Arrivals, Live};

/// Most blocks of each plane beyond its over-provisioning that a small drive gets so that it can collect.
const MOST_SPARE_ROWS: u64 = 64;

/// Serves a drive until the observer ends it, or an operator does. `say` is told where it listens.
pub fn serve(
    spec: &ServeSpec,
    members: &Members,
    observer: &mut (dyn Observer + Send),
    say: &(dyn Fn(&str) + Sync),
) -> Result<Outcome> {
    members.carry_out(|| serve_on_this_thread(spec, members, observer, say))
}

fn serve_on_this_thread(
    spec: &ServeSpec,
    members: &Members,
    observer: &mut (dyn Observer + Send),
    say: &(dyn Fn(&str) + Sync),
) -> Result<Outcome> {
    let run = as_run(spec)?;
    members.known(&workload::load_drive(&run.drive)?)?;
    let mut prepared = workload::prepare(&run)?;
    let mut notes = std::mem::take(&mut prepared.notes);
    // The versions of units tell what a power cut has brought back.
    prepared.config.ftl.verify = prepared.config.ftl.checkpoint_units > 0;
    let prepared = Arc::new(prepared);
    let config = &prepared.config;
    let unit = u64::from(config.layout.geometry.unit_bytes);
    let capacity = u64::from(config.ftl.logical_units) * unit;
    let exports = spec.exports(capacity)?;
    let mut watch = Watch::new(observer);
    let new = || {
        let given = members.overrides(&config.ftl)?;
        Ftl::with(config.layout.clone(), config.ftl.clone(), given)
    };
    let mut ftl = new()?;
    if ftl.asks_for_future() || ftl.has_uncharged_units() {
        return Err(Error::input(format!(
            "placement policy `{}` knows what no live drive can know: expected another",
            config.ftl.placement.show()
        )));
    }
    notes.extend(ftl.notes());
    notes.extend(more_spare(spec, config)?);
    let end = exports
        .iter()
        .map(|export| export.offset + export.size)
        .max()
        .unwrap_or(0);
    let faults = spec.own_faults()?.of_drive(config.layout.geometry.total_dies())?;
    let sockets = Sockets::open(&spec.addresses()?, spec.control.as_deref())?;
    let started = Instant::now();
    let mut is_fresh = false;
    let known = notes.len();
    let mut fresh = |ftl: &mut Ftl<Counting>, notes: &mut Vec<String>| {
        is_fresh = true;
        precondition(&run, ftl, &prepared, &mut watch, notes)
    };
    let store: Box<dyn Store> = match (&spec.image, spec.data.as_str()) {
        (Some(path), _) => Box::new(past::take_up(
            path,
            end,
            config,
            (&mut ftl, &new),
            &mut fresh,
            &mut notes,
        )?),
        (None, "discard") => {
            fresh(&mut ftl, &mut notes)?;
            Box::new(Discard)
        }
        _ => {
            fresh(&mut ftl, &mut notes)?;
            Box::new(Memory::new(end, spec.memory_limit_bytes()?))
        }
    };
    if !is_fresh && spec.precondition != Precondition::None {
        notes.push("precondition: left out, as the drive goes on from its saved state".to_owned());
    }
    ftl.reset_counts();
    let before = Before {
        precondition_s: started.elapsed().as_secs_f64(),
        warmup_s: 0.0,
    };
    let mut live = Live {
        device: timed_device(config, ftl)?,
        config,
        watch: &mut watch,
        tally: Tally::new(spec.record),
        series: Sampler::timed(),
        arrivals: spec.record.then(Arrivals::default),
        power_cuts: Vec::new(),
        since_ns: 0,
        now_ns: 0,
    };
    let started = Instant::now();
    let pace = spec.pace()?;
    let options = Options {
        sockets,
        exports: exports.clone(),
        pace,
        store,
        durable: spec.durable,
        folder: spec.fuse.clone(),
        faults,
        most_connections: spec.connections as usize,
    };
    // What has become of the drive is worth knowing before somebody uses it.
    let of_the_past = notes[known..].to_vec();
    let report = ftlab_nbd::serve(&mut live, options, &mut |addresses| {
        of_the_past.iter().for_each(|note| say(&format!("note: {note}")));
        announce(spec, &exports, addresses, say)
    })?;
    notes.extend(injected::notes_of(&report.faults));
    notes.extend(slowness(&report, pace));
    notes.extend(unsynchronised(&report));
    outcome(
        spec,
        &run,
        &prepared,
        live,
        report,
        notes,
        before,
        started.elapsed().as_secs_f64(),
    )
}

/// The run whose drive is served: the requests come from clients, so the workload stands for nothing.
fn as_run(spec: &ServeSpec) -> Result<RunSpec> {
    let mut drive = spec.drive.clone();
    if let Some(size) = spec.size_bytes()? {
        drive.set = sized(&drive, size)?;
    }
    let workload = WorkloadSpec::Generator(GeneratorSpec {
        spec: "uniform".to_owned(),
    });
    let minimal = json!({ "drive": drive, "workload": workload });
    let mut run: RunSpec = serde_json::from_value(minimal).map_err(|error| Error::input(error.to_string()))?;
    run.backend = BackendKind::Timed;
    run.precondition = spec.precondition.clone();
    run.seed = spec.seed;
    run.requests = spec.record;
    Ok(run)
}

/// The settings with which `drive` holds `size` bytes: as many blocks as its over-provisioning wants, and more where that would not be room
/// enough to collect.
fn sized(drive: &DriveSpec, size: u64) -> Result<Vec<String>> {
    let whole = workload::load_drive(drive)?;
    let geometry = &whole.layout.geometry;
    let size = size.next_multiple_of(u64::from(geometry.unit_bytes));
    let row = geometry.raw_units() / u64::from(geometry.blocks) * u64::from(geometry.unit_bytes);
    let least = (size as f64 * (1.0 + whole.op_ratio()) / row as f64).ceil() as u64;
    let mut refused = None;
    for blocks in least..=least + MOST_SPARE_ROWS {
        let mut smaller = drive.clone();
        smaller.set.push(format!("ftl.logical_size={size}B"));
        smaller.set.push(format!("geometry.blocks={blocks}"));
        match workload::load_drive(&smaller) {
            Ok(_) => return Ok(smaller.set),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.unwrap_or_else(|| Error::input(format!("drive {}: no number of blocks gives this size", drive.name))))
}

/// Says so if the drive has more over-provisioning at this size than as a whole.
fn more_spare(spec: &ServeSpec, config: &DriveConfig) -> Result<Option<String>> {
    let whole = workload::load_drive(&spec.drive)?.op_ratio();
    let is_more = spec.size.is_some() && config.op_ratio() > 1.1 * whole;
    Ok(is_more.then(|| {
        format!(
            "at this size the drive has an op_ratio of {:.3} (as a whole {whole:.3}): reclaim units of {} leave no less",
            config.op_ratio(),
            units::show_bytes(u64::from(config.layout.slots_per_ru) * u64::from(config.layout.geometry.unit_bytes))
        )
    }))
}

/// Where the drive is, and how to attach it.
fn announce(spec: &ServeSpec, exports: &[Export], addresses: &[Address], say: &(dyn Fn(&str) + Sync)) {
    for export in exports {
        let name = match export.name.as_str() {
            "" => String::new(),
            name => format!(" `{name}`"),
        };
        for address in addresses {
            let uri = address.uri(&export.name);
            say(&format!("{} on {uri}{name}", units::show_bytes(export.size)));
            say(&format!("  nbdinfo '{uri}'"));
            say(&format!(
                "  fio --name=x --ioengine=nbd --uri='{uri}' --rw=randrw --bs=4k --iodepth=32 --size={}",
                export.size.min(64 << 20)
            ));
            say(&format!(
                "  qemu-system-x86_64 -drive file='{uri}',format=raw,if=virtio,discard=unmap"
            ));
            // The file that comes below is nearer.
            if spec.fuse.is_none() {
                say(&format!(
                    "  mkdir -p mnt; (nbdfuse -C 4 mnt/disk '{uri}' &); sleep 2; losetup -f --show --direct-io=on mnt/disk"
                ));
            }
        }
    }
    for (folder, export) in spec
        .fuse
        .iter()
        .flat_map(|folder| exports.iter().map(move |export| (folder, export)))
    {
        let file = Files::path(folder, export);
        say(&format!(
            "{} as the file {}",
            units::show_bytes(export.size),
            file.display()
        ));
        say(&format!("  losetup -f --show --direct-io=on {}", file.display()));
    }
    say(match (&spec.image, spec.data.as_str(), spec.durable) {
        (Some(_), _, true) => "data lies in the image; flushed writes survive a power loss of this machine",
        (Some(_), _, false) => "data lies in the image; acknowledged writes survive any end of this process",
        (None, "discard", _) => "data goes nowhere: reads give zeros",
        (None, _, _) => "data lies in memory: nothing survives the end of this process",
    });
    if let Some(control) = &spec.control {
        say(&format!("control: ftlab ctl {} snapshot", control.display()));
    }
    say("ready; Ctrl-C ends it");
}

/// Says so when answers came later than the drive's own latencies excuse.
fn slowness(report: &Report, pace: Pace) -> Option<String> {
    let [p50, p99] = report.late_ns();
    let asked = report.asked_mean_ns();
    (pace != Pace::None && asked > 0.0 && p50 as f64 > 0.2 * asked).then(|| {
        format!(
            "the drive was slower than it should be: half of all answers were late by {:.0} us or more, one in a hundred by {:.0}, \
             where the drive asked for {:.0} on average; a smaller load, a slower --pace, or a free core",
            p50 as f64 / 1e3,
            p99 as f64 / 1e3,
            asked / 1e3
        )
    })
}

/// Says so when the image may lack something at the end.
fn unsynchronised(report: &Report) -> Option<String> {
    let why = report.data["sync_error"].as_str()?;
    Some(format!("the image could not be synchronised at the end: {why}"))
}

#[expect(clippy::too_many_arguments, reason = "each is a part of the summary")]
fn outcome(
    spec: &ServeSpec,
    run: &RunSpec,
    prepared: &Prepared,
    live: Live<'_, '_>,
    report: Report,
    notes: Vec<String>,
    before: Before,
    wall_s: f64,
) -> Result<Outcome> {
    let config = &prepared.config;
    let Live {
        device,
        mut tally,
        mut series,
        arrivals,
        power_cuts,
        since_ns,
        now_ns,
        ..
    } = live;
    let front = device.into_front();
    let gauges = ftlab_drive::instrumented::Gauges::of(&front.ftl);
    series.finish(tally.reading(&gauges, now_ns - since_ns), tally.latencies.tails());
    let rows = tally.rows.take();
    let measured = Measured {
        end: if front.ftl.end_of_life { End::WornOut } else { End::Done },
        requests: tally.requests,
        bytes: tally.bytes,
        written_bytes: tally.written_bytes,
        wall_s,
        sim_ns: now_ns - since_ns,
        series,
        film: None,
        settling: Settling::new(Settles::at(run.steady_width, &prepared.config)),
        latencies: tally.latencies,
        rows: None,
        late_mean_ns: 0.0,
        late_max_ns: 0,
        overload: Overload::default(),
        power_cuts,
    };
    let stats = front.ftl.backend.stats();
    let facts = Facts {
        spec: run,
        config: &prepared.config,
        workload: json!({ "kind": "live", "clients": report.connections }),
        trace: None,
        filters: Vec::new(),
        notes,
        before,
        speedup: (spec.pace().ok() != Some(Pace::None)).then_some(1.0),
        longer: Longer::Live,
        tenant_names: Vec::new(),
        controller_reads: Some(stats.controller_reads),
    };
    let mut summary = summary::summary(&facts, &front.ftl, &measured);
    summary["serve"] = report.to_json();
    // How late requests entered belongs to hosts that are simulated.
    if let Some(all) = summary.as_object_mut() {
        all.remove("lateness");
    }
    let [dies, channels] = summary::utilisation(&stats);
    let mut tables = vec![
        measured.series.table(true),
        measured.latencies.table(),
        summary::blocks(&front.ftl),
        dies,
        channels,
    ];
    tables.extend(rows.map(|rows| rows.table()));
    tables.extend(arrivals.map(Arrivals::table));
    if let Some(image) = &spec.image {
        let kept = past::keep(image, config, front.ftl.with_backend(Counting));
        if let (Err(why), Some(notes)) = (kept, summary["notes"].as_array_mut()) {
            notes.push(format!("the state of the drive could not be saved beside its image: {why}").into());
        }
    }
    Ok(Outcome { summary, tables })
}
