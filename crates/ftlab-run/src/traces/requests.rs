//! Where the requests of a job come from: trace files, or a generator in an address space of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ftlab_core::{Batch, Error, PolicySpec, Result, Source, units};
use ftlab_trace::filters::{self, FilterReport, Filtered};
use ftlab_trace::synth::{self, Generator};
use ftlab_trace::{Head, Opened, ReadOptions, TraceReport, Volumes};
use serde_json::{Value, json};

use crate::filtered::Shared;
use crate::spec::option::{Needs, REQUESTS, opt, options};
use crate::spec::{self, GeneratorSpec, TraceSpec, WorkloadSpec};
use crate::{Observer, Progress};

/// Bytes of the units that generators take for a drive's mapping unit.
const UNIT_BYTES: u32 = 4096;
/// Address space of a generator that has none of its own: what a drive's logical size is in a run.
const SPAN: u64 = 64 << 30;
/// For one that has: room enough.
const AMPLE: u64 = 1 << 60;
/// Requests of a generator that says neither `requests` nor `bytes`: enough for every figure of an inspection to settle.
const GENERATED: u64 = 1_000_000;
/// Wall time between two reports of progress.
pub(crate) const PERIOD: Duration = Duration::from_millis(200);

options! {
    /// Requests without a drive.
    pub struct RequestsSpec {
        pub workload: WorkloadSpec,
    }
    options {
        /// Transform the requests first, by filters in order: `lru:share=0.05`.
        ///
        /// They work on addresses, so the volumes of a filtered trace lie side by side.
        filters: Vec<String> = Vec::new(), opt("NAME:KEY=...").flag("--filter").of(REQUESTS).listed("filters");

        /// At most so many requests, counted before the filters.
        ///
        /// A generator makes just so many, whatever it says itself; `transactions` end by themselves as well.
        requests: Option<u64> = None,
            opt("N").of(REQUESTS).range(1, u64::MAX).left_out("a generator: what it says, or 1e6");

        /// Address space of a generator.
        ///
        /// Models of traces have their own.
        span: Option<String> = None, opt("SIZE").of(REQUESTS).left_out("64GiB").needs(Needs::Generator);

        /// Seed of a generator, and of filters that draw.
        seed: u64 = 1, opt("S").of(REQUESTS).needs(Needs::Draws);
    }
}

impl RequestsSpec {
    /// Reads a spec from JSON and checks it.
    pub fn parse(json: &str) -> Result<Self> {
        spec::from_json::<RequestsSpec>("requests", json)?.checked()
    }

    pub(crate) fn checked(self) -> Result<Self> {
        if let WorkloadSpec::Trace(trace) = &self.workload {
            trace.checked()?;
        }
        filters::check(&self.filters)?;
        self.span_bytes().map(|_| self)
    }

    /// The address space of a generator that was asked for.
    fn span_bytes(&self) -> Result<Option<u64>> {
        let Some(text) = &self.span else {
            return Ok(None);
        };
        let bytes = units::bytes(text).map_err(|e| Error::input(format!("span: {e}")))?;
        if !(u64::from(UNIT_BYTES)..=AMPLE).contains(&bytes) {
            return Err(Error::input(format!("span {text}: expected 4 KiB to 1 EiB")));
        }
        Ok(Some(bytes))
    }

    /// Whether it reads from standard input, which can be opened only once.
    pub fn reads_stdin(&self) -> bool {
        self.stream().is_some()
    }

    /// What can be opened only once.
    pub(crate) fn stream(&self) -> Option<&Path> {
        match &self.workload {
            WorkloadSpec::Trace(trace) => {
                let mut paths = trace.paths.iter().map(PathBuf::as_path);
                paths.find(|path| ftlab_trace::is_stream(path))
            }
            WorkloadSpec::Generator(_) => None,
        }
    }

    /// Whether volumes are taken as one address range.
    pub(crate) fn merges_volumes(&self) -> bool {
        matches!(&self.workload, WorkloadSpec::Trace(trace) if trace.volumes.as_deref() == Some("merge"))
    }

    /// Whether addresses are no longer those within a volume: filters work on one address range, and who asks for it gets it.
    pub fn lays_volumes_out(&self) -> bool {
        let asked =
            matches!(&self.workload, WorkloadSpec::Trace(trace) if trace.volumes.as_deref() == Some("side_by_side"));
        asked || (!self.filters.is_empty() && !self.merges_volumes())
    }

    /// Opens what the spec names.
    pub fn open(&self, layout: Layout) -> Result<Requests> {
        let layout = match self.filters.is_empty() {
            true => layout,
            false => Layout::SideBySide,
        };
        let (source, mut reading) = self.unfiltered(layout)?;
        if self.filters.is_empty() {
            return Ok(Requests { source, reading });
        }
        let context = match self.reads_stdin() {
            true => filters::Context::once(UNIT_BYTES, self.seed),
            false => {
                let spec = self.clone();
                let again = Arc::new(move || spec.unfiltered(layout).map(|(source, _)| source));
                filters::Context::repeatable(UNIT_BYTES, self.seed, again)
            }
        };
        let filtered = Shared::new(filters::apply(&self.filters, source, &context)?);
        reading.filtered = Some(filtered.clone());
        Ok(Requests {
            source: Box::new(filtered),
            reading,
        })
    }

    fn unfiltered(&self, layout: Layout) -> Result<(Box<dyn Source>, Reading)> {
        let (source, origin): (Box<dyn Source>, Origin) = match &self.workload {
            WorkloadSpec::Trace(trace) => {
                let opened = Shared::new(open_trace(trace, layout)?);
                (Box::new(opened.clone()), Origin::Trace(opened))
            }
            WorkloadSpec::Generator(spec) => {
                let (generator, described) = self.generator(spec)?;
                (generator, Origin::Generator(described))
            }
        };
        let source: Box<dyn Source> = match self.requests {
            Some(most) => Box::new(Head::new(source, most)),
            None => source,
        };
        Ok((source, Reading { origin, filtered: None }))
    }

    fn generator(&self, spec: &GeneratorSpec) -> Result<(Box<dyn Source>, Value)> {
        let of_a_kind = Written::of(&spec.spec);
        let span = self
            .span_bytes()?
            .unwrap_or(if of_a_kind.placed { SPAN } else { AMPLE });
        let generator = synth::parse(&spec.spec, span, UNIT_BYTES, self.seed)?;
        let mut described = generator.describe();
        let limit = match self.requests {
            Some(most) if of_a_kind.ends => {
                described["requests"] = most.into();
                None
            }
            Some(_) => Some(u64::MAX),
            None if of_a_kind.placed && !of_a_kind.says_length => Some(GENERATED),
            None => None,
        };
        let Some(limit) = limit else {
            return Ok((Box::new(generator), described));
        };
        described["requests"] = self.requests.unwrap_or(GENERATED).into();
        let endless: Generator = generator.endless();
        Ok((Box::new(Head::new(endless, limit)), described))
    }
}

/// What must be known of a generator's spec before it is parsed for an address space.
struct Written {
    /// Places requests in whatever space it is given; models of traces bring their span and their length.
    placed: bool,
    says_length: bool,
    /// Its length is not a number of requests, so that such a number can only cut it.
    ends: bool,
}

impl Written {
    fn of(spec: &str) -> Self {
        let inline = PolicySpec::parse(spec.trim()).ok();
        let table = spec.parse::<toml::Table>().ok();
        let kind = match (&inline, &table) {
            (_, Some(table)) => table.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default(),
            (Some(inline), None) => &inline.name,
            (None, None) => "",
        };
        let has = |key: &str| {
            inline.as_ref().is_some_and(|inline| inline.params.contains_key(key))
                || table.as_ref().is_some_and(|table| table.contains_key(key))
        };
        let ends = kind == "transactions";
        Written {
            placed: synth::takes_any_span(kind),
            says_length: has("requests") || has("bytes") || ends,
            ends,
        }
    }
}

/// Where the volumes of a trace lie, unless the user or a sidecar says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Addresses stay as they are in their volumes, which `volume` tells apart: without a drive nothing asks for more.
    InPlace,
    /// One behind the other, for what cannot tell volumes apart.
    SideBySide,
}

fn open_trace(trace: &TraceSpec, layout: Layout) -> Result<Opened> {
    let mut options: ReadOptions = trace.read_options(UNIT_BYTES)?;
    if trace.volumes.is_none() && layout == Layout::InPlace {
        options = options.with_sidecar(&trace.paths)?.0;
        if options.volumes == Volumes::SideBySide {
            options.volumes = Volumes::Merge;
        }
    }
    ftlab_trace::open(&trace.paths, &options)
}

/// A stream of requests, and what can be said about where they come from.
pub struct Requests {
    pub source: Box<dyn Source>,
    pub reading: Reading,
}

/// What is known of requests, also while somebody else reads them.
#[derive(Clone)]
pub struct Reading {
    origin: Origin,
    filtered: Option<Shared<Filtered>>,
}

#[derive(Clone)]
enum Origin {
    Trace(Shared<Opened>),
    Generator(Value),
}

impl Reading {
    /// The report of what was read; `None` for a generator.
    pub fn report(&self) -> Option<TraceReport> {
        match &self.origin {
            Origin::Trace(opened) => Some(opened.lock().report()),
            Origin::Generator(_) => None,
        }
    }

    /// Whether the files themselves say that their volumes lie in one address range.
    pub fn laid_out(&self) -> bool {
        match &self.origin {
            Origin::Trace(opened) => opened.lock().one_address_space(),
            Origin::Generator(_) => false,
        }
    }

    /// What each filter did so far.
    pub fn filters(&self) -> Vec<FilterReport> {
        self.filtered
            .as_ref()
            .map_or(Vec::new(), |filtered| filtered.lock().reports())
    }

    /// The workload in the form that summaries have.
    pub fn describe(&self) -> Value {
        match &self.origin {
            Origin::Trace(opened) => {
                let report = opened.lock().report();
                json!({ "kind": "trace", "files": report.files, "format": report.format })
            }
            Origin::Generator(described) => described.clone(),
        }
    }

    /// Requests of a generator, which says so itself.
    fn limit(&self) -> Option<u64> {
        match &self.origin {
            Origin::Trace(_) => None,
            Origin::Generator(described) => described["requests"].as_u64(),
        }
    }

    /// Share of the input read so far.
    fn share(&self) -> Option<f64> {
        match &self.origin {
            Origin::Trace(opened) => opened.lock().progress(),
            Origin::Generator(_) => None,
        }
    }
}

/// Passes requests on and reports how far they have come; ends with [`Error::Interrupted`] when the observer says stop.
pub(crate) struct Watched<'a> {
    source: Box<dyn Source>,
    reading: Reading,
    phase: &'static str,
    total: Option<u64>,
    observer: &'a mut (dyn Observer + Send),
    started: Instant,
    last: Instant,
    done: u64,
    bytes: u64,
    time_ns: u64,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(requests: Requests, phase: &'static str, observer: &'a mut (dyn Observer + Send)) -> Self {
        let (now, limit) = (Instant::now(), requests.reading.limit());
        Watched {
            total: requests.source.remaining().or(limit),
            source: requests.source,
            reading: requests.reading,
            phase,
            observer,
            started: now,
            last: now,
            done: 0,
            bytes: 0,
            time_ns: 0,
        }
    }

    /// Requests passed on so far.
    pub(crate) fn requests(&self) -> u64 {
        self.done
    }

    fn report(&mut self) -> Result<()> {
        self.last = Instant::now();
        let by_share = |share: f64| (share > 0.0).then(|| (self.done as f64 / share) as u64);
        let progress = Progress {
            phase: self.phase.to_owned(),
            run: 0,
            done_requests: self.done,
            total_requests: self.total.or_else(|| self.reading.share().and_then(by_share)),
            done_bytes: self.bytes,
            waf: f64::NAN,
            sim_time_ns: self.time_ns,
            wall_s: self.started.elapsed().as_secs_f64(),
        };
        match self.observer.progress(&progress) {
            true => Ok(()),
            false => Err(Error::Interrupted),
        }
    }
}

impl Source for Watched<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        self.source.next_batch(batch)?;
        self.done += batch.len() as u64;
        self.bytes += batch.length.iter().map(|&n| u64::from(n)).sum::<u64>();
        self.time_ns = batch.time_ns.last().copied().unwrap_or(self.time_ns);
        match self.last.elapsed() >= PERIOD {
            true => self.report(),
            false => Ok(()),
        }
    }

    fn remaining(&self) -> Option<u64> {
        self.source.remaining()
    }

    fn volume_names(&self) -> Vec<String> {
        self.source.volume_names()
    }

    fn label_names(&self) -> Vec<String> {
        self.source.label_names()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unobserved;

    fn spec(extra: &str, generator: &str) -> Result<RequestsSpec> {
        RequestsSpec::parse(&format!(
            r#"{{"workload": {{"generator": {{"spec": "{generator}"}}}}{extra}}}"#
        ))
    }

    fn count(source: impl Source) -> u64 {
        ftlab_mine::count(source).unwrap()
    }

    #[test]
    fn a_generator_is_as_long_as_it_says_or_as_it_is_told() {
        let open = |extra: &str, generator: &str| spec(extra, generator).unwrap().open(Layout::InPlace).unwrap();
        assert_eq!(count(open("", "uniform").source), GENERATED);
        assert_eq!(count(open("", "uniform:requests=7000").source), 7000);
        assert_eq!(count(open("", "uniform:bytes=4MiB,size=4KiB").source), 1024);
        assert_eq!(count(open(r#", "requests": 5000"#, "uniform:requests=70").source), 5000);
        let told = open(r#", "requests": 5000"#, "uniform:requests=70").reading.describe();
        assert_eq!(told["requests"], 5000);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for (extra, words) in [
            (
                r#", "requests": 0"#,
                "requests 0: expected a whole number of at least 1",
            ),
            (r#", "span": "1KiB""#, "4 KiB"),
            (r#", "span": "wide""#, "span"),
            (r#", "sed": 3"#, "unknown field `sed`"),
        ] {
            let error = spec(extra, "uniform").unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn an_observer_can_stop_a_job() {
        struct Stop;
        impl Observer for Stop {
            fn progress(&mut self, _: &Progress) -> bool {
                false
            }
        }
        let mut stop = Stop;
        let mut watched = Watched::new(
            spec("", "uniform").unwrap().open(Layout::InPlace).unwrap(),
            "inspect",
            &mut stop,
        );
        std::thread::sleep(PERIOD);
        assert_eq!(watched.next_batch(&mut Batch::default()), Err(Error::Interrupted));
        let mut unobserved = Unobserved;
        let requests = spec("", "uniform:requests=9000")
            .unwrap()
            .open(Layout::InPlace)
            .unwrap();
        assert_eq!(count(Watched::new(requests, "inspect", &mut unobserved)), 9000);
    }
}
