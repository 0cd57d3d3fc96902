//! What the user asked for. Defaults live here and nowhere else; names and units are checked on the way in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ftlab_core::{Error, Result, error, units};
use ftlab_trace::{Opened, ReadOptions, Scan, Setting, Settings, TraceReport, Volumes};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    pub drive: DriveSpec,
    pub workload: WorkloadSpec,
    /// Filters between the workload and the drive, in order: `["lru:share=0.05", "head:requests=1e6"]`.
    #[serde(default)]
    pub filters: Vec<String>,
    #[serde(default)]
    pub backend: BackendKind,
    #[serde(default)]
    pub precondition: Precondition,
    /// Work before the measurement, excluded from every counter.
    #[serde(default)]
    pub warmup: Option<Warmup>,
    /// `None`: what the workload says (a trace: its time stamps; a generator: its `qd` or `rate`), or `closed` if `qd` is set.
    #[serde(default)]
    pub arrivals: Option<Arrivals>,
    /// Requests under way at once, closed loop.
    #[serde(default)]
    pub qd: Option<u32>,
    /// Open loop: the time stamps are divided by it.
    #[serde(default = "one")]
    pub speedup: f64,
    #[serde(default = "first_seed")]
    pub seed: u64,
    #[serde(default)]
    pub fit: Fit,
    /// Keep a row per request (`requests` table).
    #[serde(default)]
    pub requests_table: bool,
    /// Write a timeline of dies and channels here (Chrome trace events, which Perfetto opens).
    #[serde(default)]
    pub trace_events: Option<PathBuf>,
    #[serde(default = "trace_events_limit")]
    pub trace_events_limit: u64,
    /// Stop when this becomes true, e.g. `waf>3`.
    #[serde(default)]
    pub break_at: Option<String>,
    /// Cut the power after so many completed requests, each time; the drive recovers and goes on.
    #[serde(default)]
    pub power_cuts: Vec<u64>,
    /// Save the state of the drive here at the end.
    #[serde(default)]
    pub save_state: Option<PathBuf>,
    /// Carry (LPN, version) in every slot and check every read.
    #[serde(default)]
    pub verify: bool,
    /// Which repetition this is (0, 1, ...): it shifts the seed.
    #[serde(default)]
    pub repeat: u32,
}

fn one() -> f64 {
    1.0
}

fn first_seed() -> u64 {
    1
}

fn trace_events_limit() -> u64 {
    1_000_000
}

/// The drive: a preset or a drive file, and what is changed in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// The preset's name, or where `toml` came from (for messages).
    pub name: String,
    /// Text of the drive file; `None`: the preset called `name`.
    #[serde(default)]
    pub toml: Option<String>,
    /// Changes in order, each `key=value`: `"ftl.victim=greedy"`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// What is run on the drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadSpec {
    Trace(TraceSpec),
    Generator(GeneratorSpec),
}

/// Trace files, merged by time into one trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceSpec {
    pub paths: Vec<PathBuf>,
    /// `None`: told by the content.
    #[serde(default)]
    pub format: Option<String>,
    /// Which of the trace's devices, and whether side by side or merged.
    #[serde(default)]
    pub volumes: Option<String>,
    /// What a format may leave open, by the names of `ftlab_trace::Setting`: the one list of them. As serde cannot refuse
    /// unknown keys beside it, [`TraceSpec::checked`] does.
    #[serde(flatten)]
    pub settings: BTreeMap<String, Option<String>>,
}

impl TraceSpec {
    /// How to read the trace, with units of `unit_bytes` where it must be scanned.
    pub fn read_options(&self, unit_bytes: u32) -> Result<ReadOptions> {
        let mut settings = Settings::default();
        for (name, value) in &self.settings {
            let known = Setting::ALL.into_iter().find(|setting| setting.name() == name);
            let setting =
                known.ok_or_else(|| error::unknown("key of a trace", name, &Setting::ALL.map(Setting::name)))?;
            if let Some(text) = value {
                settings.set(setting, text)?;
            }
        }
        Ok(ReadOptions {
            as_format: self.format.clone(),
            settings,
            volumes: self
                .volumes
                .as_deref()
                .map(Volumes::parse)
                .transpose()?
                .unwrap_or_default(),
            unit_bytes,
        })
    }

    /// Opens the trace; with what `scan` found, where it was scanned.
    pub(crate) fn open(&self, unit_bytes: u32, scan: Option<&Scan>) -> Result<Opened> {
        let options = self.read_options(unit_bytes)?;
        match scan {
            Some(scan) => ftlab_trace::open_scanned(&self.paths, &options, scan),
            None => ftlab_trace::open(&self.paths, &options),
        }
    }

    /// The trace as a run's summary has it.
    pub(crate) fn describe(&self, report: &TraceReport, fit: Fit) -> Value {
        json!({
            "kind": "trace",
            "files": self.paths,
            "format": report.format,
            "fit": fit.name(),
        })
    }

    /// What serde cannot check.
    pub(crate) fn checked(&self) -> Result<()> {
        if self.paths.is_empty() {
            return Err(Error::input("a trace workload needs at least one file"));
        }
        self.read_options(4096).map(|_| ())
    }
}

/// A generator: `KIND[:key=value,...]` or the text of a generator file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorSpec {
    pub spec: String,
}

/// With time or counters only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BackendKind {
    #[default]
    Timed,
    Counting,
}

/// The state of the drive before the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Precondition {
    /// [`Precondition::Theory`] where the map is in memory, [`Precondition::Fill`] where it lies in flash: scattered as theory
    /// has them, the units of one block belong to as many translation pages, all of which a collection would rewrite.
    #[default]
    Auto,
    /// The steady state that theory gives for the victim policy, or the nearest known one and aged from there.
    Theory,
    /// Every logical unit written once, in order.
    Fill,
    /// Every logical unit written once, in scattered order.
    Scatter,
    /// A fresh drive.
    None,
    /// A state saved by `save_state`.
    State(PathBuf),
}

/// How much work comes before the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Warmup {
    /// Host writes, in logical capacities: `"4x"`.
    Capacities(f64),
    /// Host writes, in bytes: `"10GiB"`.
    Bytes(u64),
    /// Share of the workload's requests: `"25%"`.
    Share(f64),
}

/// When the host sends the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Arrivals {
    /// At the time stamp, whatever the drive does.
    Open,
    /// When one of `qd` requests completes.
    Closed,
    /// As fast as the drive's own limits admit.
    Asap,
}

/// Addresses beyond the end of the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Fit {
    /// An error that names the address.
    #[default]
    Error,
    /// The units that the workload touches are renumbered without gaps.
    Compact,
    /// Modulo the drive's size.
    Wrap,
    /// The drive grows to the workload's span.
    Grow,
}

/// A closed set of names: parsed with a hint at the nearest one, shown by the same table.
macro_rules! names {
    ($type:ident, $what:literal, $($name:literal => $value:ident),+ $(,)?) => {
        impl $type {
            pub const NAMES: &[&str] = &[$($name),+];

            pub fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name),+
                }
            }
        }

        impl TryFrom<String> for $type {
            type Error = Error;

            fn try_from(text: String) -> Result<Self> {
                match text.as_str() {
                    $($name => Ok($type::$value),)+
                    other => Err(error::unknown($what, other, Self::NAMES)),
                }
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.name().to_owned()
            }
        }
    };
}

names!(BackendKind, "backend", "timed" => Timed, "counting" => Counting);
names!(Arrivals, "arrivals", "open" => Open, "closed" => Closed, "asap" => Asap);
names!(Fit, "fit", "error" => Error, "compact" => Compact, "wrap" => Wrap, "grow" => Grow);

impl TryFrom<String> for Precondition {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        match text.as_str() {
            "auto" => Ok(Precondition::Auto),
            "theory" => Ok(Precondition::Theory),
            "fill" => Ok(Precondition::Fill),
            "scatter" => Ok(Precondition::Scatter),
            "none" => Ok(Precondition::None),
            other => match other.strip_prefix("state:") {
                Some(path) if !path.is_empty() => Ok(Precondition::State(path.into())),
                _ => Err(error::unknown(
                    "precondition",
                    other,
                    &["auto", "theory", "fill", "scatter", "none", "state:PATH"],
                )),
            },
        }
    }
}

impl From<Precondition> for String {
    fn from(value: Precondition) -> String {
        match value {
            Precondition::Auto => "auto".to_owned(),
            Precondition::Theory => "theory".to_owned(),
            Precondition::Fill => "fill".to_owned(),
            Precondition::Scatter => "scatter".to_owned(),
            Precondition::None => "none".to_owned(),
            Precondition::State(path) => format!("state:{}", path.display()),
        }
    }
}

impl TryFrom<String> for Warmup {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        let expected = || {
            Error::input(format!(
                "warmup `{text}`: expected drive capacities (\"4x\"), a size (\"10GiB\") or a share of the requests (\"25%\")"
            ))
        };
        let number = |body: &str| body.trim().parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
        let trimmed = text.trim();
        if let Some(body) = trimmed.strip_suffix('x') {
            return number(body).map(Warmup::Capacities).ok_or_else(expected);
        }
        if let Some(body) = trimmed.strip_suffix('%') {
            let percent = number(body).filter(|p| *p < 100.0);
            return percent.map(|p| Warmup::Share(p / 100.0)).ok_or_else(expected);
        }
        units::bytes(trimmed).map(Warmup::Bytes).map_err(|_| expected())
    }
}

impl From<Warmup> for String {
    fn from(value: Warmup) -> String {
        match value {
            Warmup::Capacities(x) => format!("{x}x"),
            Warmup::Bytes(n) => format!("{n}B"),
            Warmup::Share(share) => format!("{}%", share * 100.0),
        }
    }
}

impl RunSpec {
    /// The seed of this repetition: repetitions of one seed never share a stream with another seed's.
    pub fn run_seed(&self) -> u64 {
        self.seed.wrapping_add(u64::from(self.repeat) << 32)
    }

    /// What serde cannot check: values that are out of range or exclude each other.
    pub(crate) fn checked(self) -> Result<Self> {
        if !(self.speedup > 0.0 && self.speedup.is_finite()) {
            return Err(Error::input(format!(
                "speedup {}: expected a number above 0",
                self.speedup
            )));
        }
        if self.qd == Some(0) {
            return Err(Error::input("qd 0: expected at least one request under way"));
        }
        if self.qd.is_some() && matches!(self.arrivals, Some(Arrivals::Open | Arrivals::Asap)) {
            return Err(Error::input("qd belongs to closed arrivals, not to `open` or `asap`"));
        }
        if let WorkloadSpec::Trace(trace) = &self.workload {
            trace.checked()?;
        }
        ftlab_trace::filters::check(&self.filters)?;
        Ok(self)
    }
}

/// Reads a spec from JSON.
pub fn parse_spec(json: &str) -> Result<RunSpec> {
    from_json::<RunSpec>("run spec", json)?.checked()
}

/// Reads any spec from JSON, unchecked. What is wrong with its keys is said without a position: the user never saw this text.
pub(crate) fn from_json<T: DeserializeOwned>(what: &str, json: &str) -> Result<T> {
    let value: Value = serde_json::from_str(json).map_err(|e| Error::input(format!("{what}: {e}")))?;
    serde_json::from_value(value).map_err(|e| Error::input(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = r#"{"drive": {"name": "tiny"}, "workload": {"generator": {"spec": "uniform"}}}"#;

    fn with(extra: &str) -> String {
        MINIMAL.replacen('{', &format!("{{{extra}, "), 1)
    }

    fn refusal(extra: &str) -> String {
        parse_spec(&with(extra)).unwrap_err().to_string()
    }

    #[test]
    fn what_is_left_out_gets_its_default() {
        let spec = parse_spec(MINIMAL).unwrap();
        assert_eq!(spec.backend, BackendKind::Timed);
        assert_eq!(spec.precondition, Precondition::Auto);
        assert_eq!((spec.speedup, spec.seed, spec.fit), (1.0, 1, Fit::Error));
    }

    #[test]
    fn a_spec_survives_its_own_json() {
        let extra = r#""warmup": "2.5x", "precondition": "state:a/b", "arrivals": "closed", "qd": 32, "fit": "wrap""#;
        let spec = parse_spec(&with(extra)).unwrap();
        assert_eq!(spec.warmup, Some(Warmup::Capacities(2.5)));
        let again = serde_json::to_string(&spec).unwrap();
        assert_eq!(parse_spec(&again).unwrap(), spec);
    }

    #[test]
    fn settings_of_a_trace_are_those_that_readers_know() {
        let spec = |key: &str| {
            let json = r#"{"drive": {"name": "tiny"}, "workload": {"trace": {"paths": ["a"], KEY}}}"#;
            parse_spec(&json.replace("KEY", key))
        };
        let WorkloadSpec::Trace(trace) = spec(r#""codes": "read=0", "time_unit": null"#).unwrap().workload else {
            panic!("not a trace")
        };
        let options = trace.read_options(4096).unwrap();
        assert_eq!(options.settings.get(Setting::Codes).as_deref(), Some("read=0"));
        assert_eq!(options.settings.get(Setting::TimeUnit), None);
        let refused = |key: &str| spec(key).unwrap_err().to_string();
        assert!(refused(r#""adress_unit": "512""#).contains("did you mean `address_unit`"));
        assert!(refused(r#""codes": "1=read""#).contains("read=1"));
        assert!(refused(r#""volumes": "marge""#).contains("merge"));
    }

    #[test]
    fn warmup_has_three_units() {
        for (text, value) in [
            ("4x", Warmup::Capacities(4.0)),
            ("10GiB", Warmup::Bytes(10 << 30)),
            ("25%", Warmup::Share(0.25)),
        ] {
            assert_eq!(Warmup::try_from(text.to_owned()).unwrap(), value);
        }
        for text in ["4", "x", "-1x", "100%", "ten"] {
            assert!(Warmup::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn misspelt_and_unknown_words_are_refused_by_name() {
        assert!(refusal(r#""backend": "count""#).contains("unknown backend `count`"));
        assert!(refusal(r#""fit": "compat""#).contains("did you mean `compact`?"));
        assert!(refusal(r#""warm": "4x""#).contains("unknown field `warm`"));
        assert!(refusal(r#""precondition": "state:""#).contains("state:PATH"));
        assert!(refusal(r#""speedup": 0"#).contains("above 0"));
        assert!(refusal(r#""qd": 8, "arrivals": "open""#).contains("closed"));
        assert!(refusal(r#""filters": ["haed:requests=1"]"#).contains("did you mean `head`?"));
    }
}
