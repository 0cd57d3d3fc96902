//! How the files of a trace are read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ftlab_core::{Error, Result, error};
use ftlab_trace::{Opened, ReadOptions, Scan, Setting, Settings, TraceReport, Volumes};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::option::{Home, Opt, READERS, opt};
use super::values::Fit;

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
    /// What the content of a trace may leave open, as options.
    pub fn options() -> Vec<Opt> {
        let format = opt("FORMAT").flag("--as").listed("formats").left_out("by content");
        let volumes = opt("WHICH").words(&["side_by_side", "merge"]).left_out("all, apart");
        let mut all = vec![
            format.declared("format", "Format of the trace.", &None::<String>),
            volumes.declared(
                "volumes",
                "How the devices of a trace lie on the drive: `side_by_side`, `merge` (at the same addresses), or one alone, `only:NAME`.",
                &None::<String>,
            ),
        ];
        all.extend(Setting::ALL.map(of_setting));
        all.into_iter()
            .map(|option| option.of(READERS).home(Home::Trace))
            .collect()
    }

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

fn of_setting(setting: Setting) -> Opt {
    let (option, help) = match setting {
        Setting::TimeUnit => (
            opt("UNIT")
                .words(&["ps", "ns", "100ns", "us", "ms", "s"])
                .left_out("guessed"),
            "Unit of the time stamps; for formats without a fixed one, or to override a CSV header: `ps`, `ns`, `100ns`, `us`, `ms`, `s`.",
        ),
        Setting::Codes => (
            opt("read=0|1").words(&["read=0", "read=1"]).left_out("guessed"),
            "Which number means read, in formats with numbers: `read=0` or `read=1`.",
        ),
        Setting::AddressUnit => (
            opt("BYTES").left_out("guessed"),
            "Unit of the addresses; for formats without a fixed one, or to override a CSV header: `512`, `4KiB`.",
        ),
        Setting::SizeUnit => (
            opt("BYTES").left_out("guessed"),
            "Unit of the sizes; for formats without a fixed one, or to override a CSV header.",
        ),
        Setting::Columns => (
            opt("A,B,..."),
            "Names of the columns of a text without header, in their order (`time_s,op,offset,length`); `-` for a column that is left out.",
        ),
        Setting::Event => (
            opt("Q|D|C").words(&["Q", "D", "C"]).left_out("by content"),
            "Which event of a block-layer trace is the request: `Q` queued, `D` issued, `C` completed.",
        ),
        Setting::Op => (
            opt("OP").words(&["read", "write", "trim"]).left_out("read"),
            "Operation of requests in traces without operations: `read`, `write` or `trim`.",
        ),
        Setting::Replay => (
            opt("K=V,..."),
            "How a recording is replayed: `page_cache=off`, `memory=1GiB,dirty_expire=5s`, `extents=real`.",
        ),
        Setting::Order => (
            opt("time|file")
                .words(&["time", "file"])
                .left_out("by time for merged logs, else the file's"),
            "Requests in the order of their time stamps or of the file: `time`, `file`.\n\nBy time they are sorted within a window of 16,384; in the file's order a request with a time stamp before its predecessor's arrives together with it.",
        ),
    };
    option.declared(setting.name(), help, &None::<String>)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{WorkloadSpec, parse_spec};

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
}
