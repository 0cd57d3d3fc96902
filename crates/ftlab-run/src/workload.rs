//! The workload of a run: a trace fitted to the drive, or a generator.

use ftlab_core::{Batch, Result, Source, units};
use ftlab_drive::config::DriveConfig;
use ftlab_trace::synth::{self, Generator};
use ftlab_trace::{Fit as Fitted, FitRule, Opened, ReadOptions, Scan, TimeUnit, TraceReport, Volumes};
use serde_json::{Value, json};

use crate::spec::{Arrivals, DriveSpec, Fit, RunSpec, TraceSpec, WorkloadSpec};

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// By time stamp, divided by `speedup`; at most `limit` under way.
    Open { speedup: f64, limit: u32 },
    /// So many under way.
    Closed { depth: u32 },
}

/// Requests under way when nothing else limits an open-loop host: the depth of an NVMe queue pair.
pub const OPEN_LIMIT: u32 = 65_535;
/// Requests under way of a host that goes as fast as possible.
pub const ASAP_DEPTH: u32 = 1024;
/// Requests under way of a generator that names neither `qd` nor `rate`.
const DEFAULT_DEPTH: u32 = 1;

/// The drive as the workload makes it, and what was found out about the trace on the way.
pub struct Prepared {
    pub config: DriveConfig,
    pub scan: Option<Scan>,
    pub notes: Vec<String>,
}

/// A stream of requests that lie on the drive.
pub enum Workload {
    Trace(Box<Fitted<Opened>>),
    Generated(Box<Generator>),
}

impl Workload {
    /// Opens the workload of `spec` for the prepared drive. A generator's draws depend on the run's seed and `part`.
    pub fn open(spec: &RunSpec, prepared: &Prepared, part: Part) -> Result<Self> {
        let geometry = &prepared.config.layout.geometry;
        let logical_bytes = u64::from(prepared.config.ftl.logical_units) * u64::from(geometry.unit_bytes);
        match &spec.workload {
            WorkloadSpec::Trace(trace) => {
                let options = read_options(trace, geometry.unit_bytes)?;
                let opened = match &prepared.scan {
                    Some(scan) => ftlab_trace::open_scanned(&trace.paths, &options, scan)?,
                    None => ftlab_trace::open(&trace.paths, &options)?,
                };
                let rule = fit_rule(spec.fit);
                Ok(Workload::Trace(Box::new(Fitted::trace(
                    opened,
                    rule,
                    logical_bytes,
                    prepared.scan.as_ref(),
                )?)))
            }
            WorkloadSpec::Generator(generator) => {
                let seed = match part {
                    Part::Measure => spec.run_seed(),
                    Part::Warmup => spec.run_seed() ^ 0x5741_524d_5550,
                };
                let generator = synth::parse(&generator.spec, logical_bytes, geometry.unit_bytes, seed)?;
                let generator = if part == Part::Warmup {
                    generator.endless()
                } else {
                    generator
                };
                Ok(Workload::Generated(Box::new(generator)))
            }
        }
    }

    /// Requests in all, where that is known.
    pub fn requests(&self, prepared: &Prepared) -> Option<u64> {
        match self {
            Workload::Trace(_) => prepared.scan.as_ref().map(|scan| scan.report.records),
            Workload::Generated(generator) => Some(generator.requests()),
        }
    }

    /// What the workload is, for the summary.
    pub fn describe(&self, spec: &RunSpec) -> Value {
        match (self, &spec.workload) {
            (Workload::Trace(trace), WorkloadSpec::Trace(spec_trace)) => json!({
                "kind": "trace",
                "files": spec_trace.paths,
                "format": trace.inner().report().format,
                "fit": spec.fit.name(),
            }),
            (Workload::Generated(generator), _) => generator.describe(),
            _ => Value::Null,
        }
    }

    /// The report of what was read; `None` for a generator.
    pub fn report(&self) -> Option<TraceReport> {
        match self {
            Workload::Trace(trace) => Some(trace.inner().report()),
            Workload::Generated(_) => None,
        }
    }

    pub fn pace(&self, spec: &RunSpec) -> Pace {
        let open = Pace::Open {
            speedup: spec.speedup,
            limit: OPEN_LIMIT,
        };
        match (spec.arrivals, spec.qd) {
            (Some(Arrivals::Open), _) => open,
            (Some(Arrivals::Asap), _) => Pace::Closed { depth: ASAP_DEPTH },
            (_, Some(depth)) => Pace::Closed { depth },
            (Some(Arrivals::Closed), None) => Pace::Closed { depth: DEFAULT_DEPTH },
            (None, None) => match self {
                Workload::Trace(_) => open,
                Workload::Generated(generator) => match generator.arrivals() {
                    synth::Arrivals::Closed { queue_depth } => Pace::Closed { depth: queue_depth },
                    synth::Arrivals::Open { .. } => open,
                },
            },
        }
    }
}

impl Source for Workload {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        match self {
            Workload::Trace(trace) => trace.next_batch(batch),
            Workload::Generated(generator) => generator.next_batch(batch),
        }
    }
}

/// Which part of a run draws from the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Warmup,
    Measure,
}

/// Loads the drive; where the workload decides about its size, scans the trace and sizes it.
pub fn prepare(spec: &RunSpec) -> Result<Prepared> {
    let mut config = load_drive(&spec.drive)?;
    let mut notes = Vec::new();
    let mut scan = None;
    if let WorkloadSpec::Trace(trace) = &spec.workload {
        let options = read_options(trace, config.layout.geometry.unit_bytes)?;
        if trace.paths.iter().all(|path| path.as_os_str() != "-") {
            scan = Some(ftlab_trace::scan(&trace.paths, &options)?);
        }
    }
    if let (Some(scan), Fit::Grow | Fit::Compact) = (&scan, spec.fit) {
        let unit = u64::from(config.layout.geometry.unit_bytes);
        let (needed, what) = match spec.fit {
            Fit::Grow => (scan.report.end_byte.div_ceil(unit), "span"),
            _ => (scan.touched.units(), "footprint"),
        };
        if needed > u64::from(config.ftl.logical_units) {
            config = grow(&spec.drive, &config, needed)?;
            notes.push(format!(
                "the drive was enlarged to {} blocks a plane ({} logical) to hold the trace's {what} of {}",
                config.layout.geometry.blocks,
                units::show_bytes(u64::from(config.ftl.logical_units) * unit),
                units::show_bytes(needed * unit)
            ));
        }
    }
    config.ftl.seed = spec.run_seed();
    config.ftl.verify = spec.verify;
    Ok(Prepared { config, scan, notes })
}

pub fn load_drive(drive: &DriveSpec) -> Result<DriveConfig> {
    match &drive.toml {
        Some(text) => {
            let mut config = DriveConfig::parse(text, &drive.name, &drive.set)?;
            if config.name.is_empty() {
                config.name.clone_from(&drive.name);
            }
            Ok(config)
        }
        None => DriveConfig::load(&drive.name, &drive.set),
    }
}

/// The same drive with as many blocks a plane as `needed` logical units take.
fn grow(drive: &DriveSpec, config: &DriveConfig, needed: u64) -> Result<DriveConfig> {
    let geometry = &config.layout.geometry;
    let row = geometry.raw_units() / u64::from(geometry.blocks);
    let least = (needed as f64 * (1.0 + config.op_ratio()) / row as f64).ceil() as u64;
    for blocks in least..least + 16 {
        let mut larger = drive.clone();
        larger.set.push(format!("geometry.blocks={blocks}"));
        let config = load_drive(&larger)?;
        if u64::from(config.ftl.logical_units) >= needed {
            return Ok(config);
        }
    }
    Err(ftlab_core::Error::input(format!(
        "drive {}: cannot be made to hold {needed} units: set ftl.op_ratio rather than ftl.logical_size",
        drive.name
    )))
}

fn read_options(trace: &TraceSpec, unit_bytes: u32) -> Result<ReadOptions> {
    Ok(ReadOptions {
        as_format: trace.format.clone(),
        time_unit: trace.time_unit.as_deref().map(TimeUnit::parse).transpose()?,
        volumes: trace
            .volumes
            .as_deref()
            .map(Volumes::parse)
            .transpose()?
            .unwrap_or_default(),
        unit_bytes,
    })
}

fn fit_rule(fit: Fit) -> FitRule {
    match fit {
        Fit::Error => FitRule::Error,
        Fit::Compact => FitRule::Compact,
        Fit::Wrap => FitRule::Wrap,
        Fit::Grow => FitRule::Grow,
    }
}
