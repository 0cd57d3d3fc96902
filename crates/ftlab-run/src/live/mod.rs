//! The drive of a run that clients drive in place of a workload.
//!
//! # Model
//! The drive is prepared as for a run. Then whoever serves it drives it, as a [`LiveDrive`](ftlab_core::LiveDrive), and at the end its
//! outcome is that of a run. Nothing here knows a server, a socket or data.

mod drive;

use ftlab_core::{Error, Result, units};
use ftlab_drive::config::DriveConfig;
use ftlab_drive::front::timed_device;
use ftlab_drive::timed::Timed;
use ftlab_ftl::{Counting, Ftl};
use serde_json::{Value, json};

use crate::execute;
use crate::measure::{End, Measured};
use crate::members::Members;
use crate::overload::Overload;
use crate::sampler::Sampler;
use crate::scans::Scans;
use crate::settling::{Settles, Settling};
use crate::spec::{BackendKind, DriveSpec, GeneratorSpec, RunSpec, ServeSpec, WorkloadSpec};
use crate::summary::{self, Before, Facts};
use crate::table::Outcome;
use crate::time::Tally;
use crate::verdict::Longer;
use crate::workload::{self, Prepared};
use drive::Arrivals;

pub use crate::injected::notes_of as fault_notes;
pub use crate::watch::Watch;
pub use drive::Live;

/// Most blocks of each plane beyond its over-provisioning that a small drive gets so that it can collect.
const MOST_SPARE_ROWS: u64 = 64;

/// A run whose requests come from clients.
pub struct LiveRun<'a> {
    run: RunSpec,
    prepared: Prepared,
    members: &'a Members,
}

/// What whoever served the drive has to say at the end.
pub struct Served {
    pub clients: u64,
    /// Whether answers waited for a clock.
    pub under_clock: bool,
    pub report: Value,
    pub notes: Vec<String>,
    pub precondition_s: f64,
    pub wall_s: f64,
}

impl<'a> LiveRun<'a> {
    /// The run, its drive as new, and notes on both.
    ///
    /// # Errors
    /// There is no such drive, or it has a policy that knows the future.
    pub fn new(spec: &ServeSpec, members: &'a Members) -> Result<(Self, Ftl<Counting>, Vec<String>)> {
        let run = as_run(spec)?;
        members.known(&workload::load_drive(&run.drive)?)?;
        let mut prepared = workload::prepare(&run, &Scans::default())?;
        let mut notes = std::mem::take(&mut prepared.notes);
        // The versions of units tell what a power cut has brought back.
        prepared.config.ftl.verify = prepared.config.ftl.checkpoint_units > 0;
        let live = LiveRun { run, prepared, members };
        let mut ftl = live.new_ftl()?;
        let config = live.config();
        if ftl.asks_for_future() || ftl.has_uncharged_units() {
            return Err(Error::input(format!(
                "placement policy `{}` knows what no live drive can know: expected another",
                config.ftl.placement.show()
            )));
        }
        notes.extend(ftl.notes());
        notes.extend(more_spare(spec, config)?);
        Ok((live, ftl, notes))
    }

    pub fn config(&self) -> &DriveConfig {
        &self.prepared.config
    }

    /// Another drive as new.
    pub fn new_ftl(&self) -> Result<Ftl<Counting>> {
        let config = self.config();
        let given = self.members.overrides(&config.ftl)?;
        Ftl::with(config.layout.clone(), config.ftl.clone(), given)
    }

    /// Brings a new drive to where its first client finds it.
    pub fn precondition(&self, ftl: &mut Ftl<Counting>, watch: &mut Watch<'_>, notes: &mut Vec<String>) -> Result<()> {
        execute::precondition(&self.run, ftl, &self.prepared, watch, notes)
    }

    /// The drive for its clients, whose figures begin now.
    pub fn start<'w, 'o>(&'w self, mut ftl: Ftl<Counting>, watch: &'w mut Watch<'o>) -> Result<Live<'w, 'o>> {
        ftl.reset_counts();
        let config = self.config();
        Ok(Live {
            device: timed_device(config, ftl)?,
            config,
            watch,
            tally: Tally::new(self.run.requests),
            series: Sampler::timed(),
            arrivals: self.run.requests.then(Arrivals::default),
            power_cuts: Vec::new(),
            since_ns: 0,
            now_ns: 0,
        })
    }

    /// The outcome, as that of a run, and the drive as its clients left it.
    pub fn outcome(&self, live: Live<'_, '_>, served: Served) -> (Outcome, Ftl<Timed>) {
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
            wall_s: served.wall_s,
            sim_ns: now_ns - since_ns,
            series,
            film: None,
            settling: Settling::new(Settles::at(self.run.steady_width, self.config())),
            latencies: tally.latencies,
            rows: None,
            late_mean_ns: 0.0,
            late_max_ns: 0,
            overload: Overload::default(),
            power_cuts,
        };
        let stats = front.ftl.backend.stats();
        let facts = Facts {
            spec: &self.run,
            config: self.config(),
            workload: json!({ "kind": "live", "clients": served.clients }),
            trace: None,
            filters: Vec::new(),
            notes: served.notes,
            before: Before {
                precondition_s: served.precondition_s,
                warmup_s: 0.0,
            },
            speedup: served.under_clock.then_some(1.0),
            longer: Longer::Live,
            tenant_names: Vec::new(),
            controller_reads: Some(stats.controller_reads),
        };
        let mut summary = summary::summary(&facts, &front.ftl, &measured);
        summary["serve"] = served.report;
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
        (Outcome { summary, tables }, front.ftl)
    }
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
