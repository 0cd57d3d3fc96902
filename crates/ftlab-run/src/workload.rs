//! The workload of a run: a trace or a generator, filtered and fitted to the drive.

use std::sync::Arc;

use ftlab_core::{Batch, Error, Result, Source, units};
use ftlab_drive::config::DriveConfig;
use ftlab_trace::filters::FilterReport;
use ftlab_trace::synth::transactions::Transactions;
use ftlab_trace::synth::{self, Generator};
use ftlab_trace::{Fit as Fitted, FitRule, Opened, Scan, TraceReport};
use serde_json::Value;

use crate::filtered::{FilteredRequests, Filters, Origin, Sizes};
use crate::scans::Scans;
use crate::spec::{Arrivals, BackendKind, DriveSpec, Fit, Precondition, RunSpec, WorkloadSpec};
use crate::verdict::Longer;

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
/// Requests under way of closed arrivals without a depth.
const DEFAULT_DEPTH: u32 = 1;
/// Requests under way of a trace without times: without a queue it would measure the host, all at once only a backlog.
const UNTIMED_DEPTH: u32 = 32;

/// The drive as the workload makes it, and what was found out about the trace on the way.
pub struct Prepared {
    pub config: DriveConfig,
    pub scan: Option<Arc<Scan>>,
    /// `None`: the run has none.
    filters: Option<Filters>,
    /// The drive before it grew: what a filtered generator's sizes refer to.
    sizes: Sizes,
    /// Bytes from 0 on in which the workload lies.
    space_bytes: u64,
    pub notes: Vec<String>,
}

/// A run lasts no longer, in its own time: the clock counts nanoseconds in 64 bits.
const LATEST_YEARS: u64 = 100;
const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;

/// A stream of requests that lie on the drive.
pub struct Workload {
    requests: Requests,
    /// The latest time stamp that a run by time stamps can take.
    latest_ns: u64,
    passes: Passes,
}

/// The requests again and again, each pass behind the one before.
#[derive(Default)]
struct Passes {
    /// Opens the next pass; `None`: there is one only.
    again: Option<Box<dyn Fn() -> Result<Requests> + Send>>,
    /// Passes after this one.
    more: u64,
    finished: u64,
    /// Requests of this pass so far, the stamp of its first as the trace has it, and of its last as it was moved.
    requests: u64,
    first_ns: u64,
    last_ns: u64,
    /// When this pass begins.
    begins_ns: u64,
    /// What was read in a pass that is finished.
    read: Option<TraceReport>,
    filtered: Vec<FilterReport>,
}

impl Passes {
    /// Moves the stamps of `batch` behind those of the pass before.
    fn shift(&mut self, batch: &mut Batch) {
        if self.again.is_none() || batch.is_empty() {
            return;
        }
        if self.requests == 0 {
            self.first_ns = batch.time_ns[0];
            if self.finished == 0 {
                self.begins_ns = self.first_ns;
            }
        }
        for time in &mut batch.time_ns {
            *time = (*time - self.first_ns).saturating_add(self.begins_ns);
        }
        self.requests += batch.len() as u64;
        self.last_ns = *batch.time_ns.last().unwrap_or(&0);
    }

    /// The pass is over. The next begins after a gap as long as the others on average.
    fn end(&mut self) {
        let gap = (self.last_ns - self.begins_ns) / (self.requests - 1).max(1);
        self.begins_ns = self.last_ns.saturating_add(gap);
        self.finished += 1;
        self.more -= 1;
        self.requests = 0;
    }
}

enum Requests {
    Trace(Box<Fitted<Opened>>),
    Generated(Box<Generator>),
    Filtered(Box<FilteredRequests>),
}

impl Workload {
    /// Opens the workload of `spec` for the prepared drive. A generator's draws depend on the run's seed and `part`.
    pub fn open(spec: &RunSpec, prepared: &Arc<Prepared>, part: Part) -> Result<Self> {
        let workload = Workload {
            requests: Requests::open(spec, prepared, part)?,
            latest_ns: u64::MAX,
            passes: Passes::default(),
        };
        let mut workload = workload.closed_loop(spec)?;
        if part == Part::Measure {
            workload.go_on(spec, prepared);
        }
        if spec.backend == BackendKind::Timed
            && part == Part::Measure
            && let Pace::Open { speedup, .. } = workload.pace(spec, prepared)
        {
            workload.latest_ns = ((LATEST_YEARS * YEAR_NS) as f64 * speedup) as u64;
        }
        Ok(workload)
    }

    /// The requests of `generator`.
    pub fn generated(generator: Generator) -> Self {
        Workload {
            requests: Requests::Generated(Box::new(generator)),
            latest_ns: u64::MAX,
            passes: Passes::default(),
        }
    }

    /// Prepares what comes after the workload's own end, if anything does.
    fn go_on(&mut self, spec: &RunSpec, prepared: &Arc<Prepared>) {
        let endless = spec.until.is_some();
        if let (true, Requests::Generated(generator)) = (endless, &mut self.requests) {
            generator.go_on();
            return;
        }
        if !endless && spec.repeat_trace == 1 {
            return;
        }
        let (spec, prepared) = (spec.clone(), prepared.clone());
        self.passes.more = if endless { u64::MAX } else { spec.repeat_trace - 1 };
        self.passes.again = Some(Box::new(move || Requests::open(&spec, &prepared, Part::Measure)));
    }

    /// How more of it is asked for.
    pub fn longer(&self, spec: &RunSpec) -> Longer {
        match &spec.workload {
            WorkloadSpec::Generator(_) => Longer::Generator,
            WorkloadSpec::Trace(trace) if trace.paths.iter().any(|path| ftlab_trace::is_stream(path)) => Longer::Pipe,
            WorkloadSpec::Trace(_) => Longer::Passes(self.passes.finished + 1),
        }
    }

    /// Clients whose next requests depend on when their last ones complete, if the workload is that.
    pub fn transactions(&self) -> Option<&Transactions> {
        match &self.requests {
            Requests::Generated(generator) => generator.transactions(),
            _ => None,
        }
    }

    pub fn transactions_mut(&mut self) -> Option<&mut Transactions> {
        match &mut self.requests {
            Requests::Generated(generator) => generator.transactions_mut(),
            _ => None,
        }
    }

    /// Refuses what clients of a closed loop cannot do.
    fn closed_loop(self, spec: &RunSpec) -> Result<Self> {
        if self.transactions().is_none() {
            return Ok(self);
        }
        let (option, why) = match () {
            () if spec.qd.is_some() => ("qd", "its `clients` say how many requests are under way"),
            () if spec.arrivals.is_some() => (
                "arrivals",
                "its clients wait for their requests: `think` sets their pace",
            ),
            () if !spec.power_cuts.is_empty() => (
                "power_cuts",
                "its clients would wait for requests that a power cut has lost",
            ),
            () => return Ok(self),
        };
        Err(Error::input(format!("{option}: the workload is `transactions`: {why}")))
    }

    /// Whether it begins anew at its end.
    pub fn repeats(&self) -> bool {
        self.passes.again.is_some()
    }

    /// Passes over the workload that are finished, where it is repeated.
    pub fn passes(&self) -> u64 {
        self.passes.finished
    }

    /// Requests in all, where that is known; of one pass, if it is repeated until something is reached.
    pub fn requests(&self, prepared: &Prepared) -> Option<u64> {
        let once = self.once(prepared)?;
        match self.passes.more {
            u64::MAX => Some(once),
            more => Some(once.saturating_mul(more + 1)),
        }
    }

    /// Requests of one pass.
    fn once(&self, prepared: &Prepared) -> Option<u64> {
        match &self.requests {
            Requests::Trace(_) => prepared.scan.as_ref().map(|scan| scan.report.records),
            Requests::Generated(generator) => generator.requests(),
            Requests::Filtered(requests) => requests.requests(prepared.filters.as_ref()?),
        }
    }

    /// Whether the warm-up takes the first of these requests. A generator has others for it, unless filters stand behind
    /// it: they may have an end that the generator doesn't know.
    pub fn warms_up_itself(&self) -> bool {
        !matches!(self.requests, Requests::Generated(_))
    }

    /// What the workload is, for the summary.
    pub fn describe(&self, spec: &RunSpec) -> Value {
        match (&self.requests, &spec.workload) {
            (Requests::Trace(opened), WorkloadSpec::Trace(trace)) => trace.describe(&opened.inner().report(), spec.fit),
            (Requests::Generated(generator), _) => generator.describe(),
            (Requests::Filtered(requests), _) => requests.describe(spec),
            _ => Value::Null,
        }
    }

    /// The report of what was read, of a whole pass if one is finished; `None` for a generator.
    pub fn report(&self) -> Option<TraceReport> {
        self.passes.read.clone().or_else(|| self.requests.report())
    }

    /// Names of the volumes and of the labels that have been seen, by number; empty where there are none.
    pub fn volume_and_label_names(&self) -> [Vec<String>; 2] {
        match &self.requests {
            Requests::Trace(trace) => [trace.volume_names(), trace.label_names()],
            Requests::Generated(generator) => [generator.volume_names(), generator.label_names()],
            Requests::Filtered(requests) => requests.volume_and_label_names(),
        }
    }

    /// What each filter did so far, or in a finished pass; none without filters.
    pub fn filter_reports(&self) -> Vec<FilterReport> {
        match self.passes.finished {
            0 => self.requests.filter_reports(),
            _ => self.passes.filtered.clone(),
        }
    }
    /// Whether requests come in a closed loop because the trace has no times and nobody asked for a pace.
    pub fn untimed(&self, spec: &RunSpec, prepared: &Prepared) -> bool {
        let timed = || match &prepared.scan {
            Some(scan) => Some(scan.report.timed),
            None => self.report().map(|report| report.timed),
        };
        spec.arrivals.is_none() && spec.qd.is_none() && timed() == Some(false)
    }

    pub fn pace(&self, spec: &RunSpec, prepared: &Prepared) -> Pace {
        let generated = |arrivals: synth::Arrivals, open: Pace| match arrivals {
            synth::Arrivals::Closed { queue_depth } => Pace::Closed { depth: queue_depth },
            synth::Arrivals::Open { .. } => open,
        };
        let open = Pace::Open {
            speedup: spec.speedup,
            limit: OPEN_LIMIT,
        };
        match (spec.arrivals, spec.qd) {
            (Some(Arrivals::Open), _) => open,
            (Some(Arrivals::Asap), _) => Pace::Closed { depth: ASAP_DEPTH },
            (_, Some(depth)) => Pace::Closed { depth },
            (Some(Arrivals::Closed), None) => Pace::Closed { depth: DEFAULT_DEPTH },
            (None, None) if self.untimed(spec, prepared) => Pace::Closed { depth: UNTIMED_DEPTH },
            (None, None) => match &self.requests {
                Requests::Trace(_) => open,
                Requests::Generated(generator) => generated(generator.arrivals(), open),
                Requests::Filtered(requests) => match requests.origin {
                    Origin::Trace(_) => open,
                    Origin::Generator { arrivals, .. } => generated(arrivals, open),
                },
            },
        }
    }
}

impl Source for Workload {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        self.requests.next_batch(batch)?;
        while batch.is_empty() && self.passes.requests > 0 && self.passes.more > 0 {
            let Some(again) = &self.passes.again else { break };
            let next = again()?;
            self.passes.read = self.requests.report();
            self.passes.filtered = self.requests.filter_reports();
            self.requests = next;
            self.passes.end();
            self.requests.next_batch(batch)?;
        }
        self.passes.shift(batch);
        match batch.time_ns.last() {
            Some(&last) if last > self.latest_ns => Err(Error::input(format!(
                "the workload lasts longer than {LATEST_YEARS} years, too long to simulate: a higher rate, or a larger speedup"
            ))),
            _ => Ok(()),
        }
    }
}

impl Requests {
    fn open(spec: &RunSpec, prepared: &Prepared, part: Part) -> Result<Self> {
        let geometry = &prepared.config.layout.geometry;
        let logical_bytes = prepared.space_bytes;
        if let Some(filters) = &prepared.filters {
            let rule = fit_rule(spec.fit);
            let (scan, sizes) = (prepared.scan.as_ref(), prepared.sizes);
            let requests = FilteredRequests::open(spec, filters, scan, sizes, rule, logical_bytes)?;
            return Ok(Requests::Filtered(Box::new(requests)));
        }
        match &spec.workload {
            WorkloadSpec::Trace(trace) => {
                let opened = trace.open(geometry.unit_bytes, prepared.scan.as_deref())?;
                let rule = fit_rule(spec.fit);
                let fitted = Fitted::trace(opened, rule, logical_bytes, prepared.scan.as_deref())?;
                Ok(Requests::Trace(Box::new(match spec.precondition {
                    Precondition::FillShare(_) => fitted.with_room(
                        "beside its static data the drive has",
                        "a smaller share of static data, a larger drive",
                    ),
                    _ => fitted,
                })))
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
                Ok(Requests::Generated(Box::new(generator)))
            }
        }
    }

    /// The report of what was read; `None` for a generator.
    fn report(&self) -> Option<TraceReport> {
        match self {
            Requests::Trace(trace) => Some(trace.inner().report()),
            Requests::Generated(_) => None,
            Requests::Filtered(requests) => requests.report(),
        }
    }

    fn filter_reports(&self) -> Vec<FilterReport> {
        match self {
            Requests::Filtered(requests) => requests.reports(),
            _ => Vec::new(),
        }
    }

    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        match self {
            Requests::Trace(trace) => trace.next_batch(batch),
            Requests::Generated(generator) => generator.next_batch(batch),
            Requests::Filtered(requests) => requests.next_batch(batch),
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
pub fn prepare(spec: &RunSpec, scans: &Scans) -> Result<Prepared> {
    if let WorkloadSpec::Trace(trace) = &spec.workload
        && (spec.until.is_some() || spec.repeat_trace > 1)
        && trace.paths.iter().any(|path| ftlab_trace::is_stream(path))
    {
        let option = if spec.until.is_some() { "until" } else { "repeat_trace" };
        return Err(Error::input(format!(
            "{option}: the trace comes from a pipe and can be read once only; expected a file"
        )));
    }
    let mut config = load_drive(&spec.drive)?;
    let mut notes = Vec::new();
    let mut scan = None;
    if let WorkloadSpec::Trace(trace) = &spec.workload {
        let unit_bytes = config.layout.geometry.unit_bytes;
        match trace.paths.iter().any(|path| ftlab_trace::is_stream(path)) {
            true => drop(trace.read_options(unit_bytes)?),
            false => scan = Some(scans.of(trace, unit_bytes)?),
        }
    }
    if let Some(scan) = scan.as_deref().filter(|scan| scan.report.records == 0) {
        let (skipped, left_out) = (scan.report.skipped.iter(), scan.report.left_out.iter());
        let nothing: u64 = skipped.chain(left_out).map(|lines| lines.count).sum();
        let others = match nothing {
            0 => String::new(),
            n => format!(" ({n} lines or records are not requests)"),
        };
        return Err(Error::input(format!(
            "{}: there is no request in it{others}, expected at least one",
            scan.report.files.join(", ")
        )));
    }
    let unit_bytes = config.layout.geometry.unit_bytes;
    let space = |config: &DriveConfig| spec.precondition.left_to_workload(config.ftl.logical_units);
    let sizes = Sizes {
        unit_bytes,
        logical_bytes: u64::from(space(&config)) * u64::from(unit_bytes),
    };
    let filters = match spec.filters.is_empty() {
        true => None,
        false => Some(Filters::prepare(spec, sizes, scan.as_ref())?),
    };
    if filters
        .as_ref()
        .and_then(|filters| filters.survey.as_ref())
        .is_some_and(|scan| scan.report.records == 0)
    {
        return Err(Error::input(format!(
            "filters {}: they let no request through, expected at least one",
            spec.filters.join(" ")
        )));
    }
    // The drive must hold what comes out of the filters.
    let reach = match &filters {
        Some(filters) => filters.survey.as_ref(),
        None => scan.as_deref(),
    };
    if let (Some(scan), Fit::Grow | Fit::Compact) = (reach, spec.fit) {
        let unit = u64::from(config.layout.geometry.unit_bytes);
        let (needed, what) = match spec.fit {
            Fit::Grow => (scan.report.end_byte.div_ceil(unit), "span"),
            _ => (scan.touched.units(), "footprint"),
        };
        if needed > u64::from(space(&config)) {
            config = grow(&spec.drive, &config, needed, space).map_err(|error| match spec.precondition {
                Precondition::FillShare(share) => Error::input(format!(
                    "precondition fill:share={share}: no drive is large enough to hold the trace's {what} of {} beside its static \
                     data: expected a smaller share",
                    units::show_bytes(needed * unit)
                )),
                _ => error,
            })?;
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
    Ok(Prepared {
        space_bytes: u64::from(space(&config)) * u64::from(unit_bytes),
        config,
        scan,
        filters,
        sizes,
        notes,
    })
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

/// Blocks that a plane may have.
const MOST_BLOCKS: u64 = 1 << 24;

/// The same drive with as many blocks a plane as it takes for `space` of it to be `needed` units.
pub fn grow(
    drive: &DriveSpec,
    config: &DriveConfig,
    needed: u64,
    space: impl Fn(&DriveConfig) -> u32,
) -> Result<DriveConfig> {
    let geometry = &config.layout.geometry;
    let row = geometry.raw_units() / u64::from(geometry.blocks);
    let whole = f64::from(config.ftl.logical_units) / f64::from(space(config));
    let least = (needed as f64 * whole * (1.0 + config.op_ratio()) / row as f64).ceil() as u64;
    if least > MOST_BLOCKS {
        return Err(Error::input(format!(
            "the workload reaches {needed} units of {}, for which the drive {} would need {least} blocks a plane: expected at most \
             {MOST_BLOCKS} (--fit compact renumbers what is touched, --fit wrap takes addresses modulo the drive's size)",
            units::show_bytes(u64::from(geometry.unit_bytes)),
            drive.name
        )));
    }
    for blocks in least..least + 16 {
        let mut larger = drive.clone();
        larger.set.push(format!("geometry.blocks={blocks}"));
        let config = load_drive(&larger)?;
        if u64::from(space(&config)) >= needed {
            return Ok(config);
        }
    }
    Err(Error::input(format!(
        "drive {}: cannot be made to hold {needed} units: set ftl.op_ratio rather than ftl.logical_size",
        drive.name
    )))
}

fn fit_rule(fit: Fit) -> FitRule {
    match fit {
        Fit::Error => FitRule::Error,
        Fit::Compact => FitRule::Compact,
        Fit::Wrap => FitRule::Wrap,
        Fit::Grow => FitRule::Grow,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Members, Unobserved, parse_spec, run};

    /// Of two requests at a given rate the second comes after `1 / rate` seconds; a year has 31,536,000.
    #[test]
    fn a_run_lasts_a_hundred_years_at_most() {
        let ran = |keys: &str, extra: &str| {
            let workload = format!(r#"{{"generator": {{"spec": "uniform:requests=2,arrivals=fixed,{keys}"}}}}"#);
            let spec =
                format!(r#"{{"drive": {{"name": "tiny"}}, "precondition": "none", "workload": {workload}{extra}}}"#);
            run(&parse_spec(&spec).unwrap(), &Members::default(), &mut Unobserved)
        };
        let refused = |keys: &str, extra: &str| {
            let error = ran(keys, extra).unwrap_err().to_string();
            assert!(error.starts_with("the workload lasts longer than 100 years"), "{error}");
        };
        assert!(ran("rate=3.2e-10", "").is_ok());
        refused("rate=3.1e-10", "");
        refused("rate=1e-300", "");
        refused("rate=1", r#", "speedup": 1e-300"#);
        refused("rate=1", r#", "speedup": 3.1e-10"#);
        assert!(ran("rate=1e-10", r#", "speedup": 10"#).is_ok());
        assert!(ran("rate=1e-10", r#", "backend": "counting""#).is_ok());
        assert!(ran("rate=1e-10", r#", "qd": 1"#).is_ok());
    }

    #[test]
    fn a_trace_without_a_request_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        for (rows, others) in [("", ""), ("0,write,0,0\n", " (1 lines or records are not requests)")] {
            std::fs::write(&path, format!("time_us,op,offset,length\n{rows}")).unwrap();
            let spec = serde_json::json!({"drive": {"name": "tiny"}, "workload": {"trace": {"paths": [path]}}});
            let spec = parse_spec(&spec.to_string()).unwrap();
            let error = run(&spec, &Members::default(), &mut Unobserved)
                .unwrap_err()
                .to_string();
            let expected = format!("a.csv: there is no request in it{others}, expected at least one");
            assert!(error.ends_with(&expected), "{error}");
        }
    }

    #[test]
    fn what_reaches_into_the_static_data_is_refused_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(
            &path,
            "time_us,op,offset,length\n0,write,0,4096\n1,write,31457280,4096\n",
        )
        .unwrap();
        let spec = serde_json::json!({
            "drive": {"name": "tiny"}, "backend": "counting", "precondition": "fill:share=0.9",
            "workload": {"trace": {"paths": [path]}},
        });
        let error = run(
            &parse_spec(&spec.to_string()).unwrap(),
            &Members::default(),
            &mut Unobserved,
        )
        .unwrap_err();
        assert!(
            error.to_string().contains("and beside its static data the drive has "),
            "{error}"
        );
    }

    /// Nine tenths of the drive hold data that nobody writes again: a uniform workload overwrites the rest alone, which is as if the
    /// whole spare were its own, and sequential overwrites cost nothing more.
    #[test]
    fn static_data_lies_beside_the_workload() {
        let ran = |precondition: &str, workload: &str| {
            let spec = format!(
                r#"{{"drive": {{"name": "tiny"}}, "backend": "counting", "precondition": "{precondition}",
                "workload": {{"generator": {{"spec": "{workload}"}}}}}}"#
            );
            run(&parse_spec(&spec).unwrap(), &Members::default(), &mut Unobserved)
                .unwrap()
                .summary
        };
        let waf = |summary: &serde_json::Value| summary["waf"]["total"].as_f64().unwrap();
        let shared = ran("fill:share=0.9", "uniform:bytes=40x");
        let whole = ran("fill", "uniform:bytes=4x");
        let logical = shared["drive"]["logical_bytes"].as_u64().unwrap();
        // As many bytes as four drive writes, on a tenth of it.
        let written = shared["counts"]["host_writes"].as_u64().unwrap() * 4096;
        assert!(
            (written as f64 / (4 * logical) as f64 - 1.0).abs() < 0.01,
            "{written} of {logical}"
        );
        assert!(
            waf(&shared) > 1.0 && waf(&shared) < 0.7 * waf(&whole),
            "{} {}",
            waf(&shared),
            waf(&whole)
        );
        assert!(shared["notes"][0].as_str().unwrap().starts_with("0.9 of the drive ("));
        // Nothing of the static data was moved for its own sake.
        assert!(waf(&ran("fill:share=0.9", "sequential:bytes=40x")) < 1.01);
    }
}
