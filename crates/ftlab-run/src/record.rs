//! Recording programs, and what the program contexts of a recording are like.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::time::Instant;

use ftlab_core::{Error, Result};
use ftlab_record::making::{self, RecordOptions, Signature};
use ftlab_record::recording::Reader;
use ftlab_record::{contexts as figures, replay};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Observer, Progress};

/// A program to be recorded, or spools to be made into a recording.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSpec {
    /// The program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// The recording.
    pub output: PathBuf,
    /// The library that is loaded into the program.
    pub library: PathBuf,
    #[serde(default = "automatic")]
    pub signature: String,
    #[serde(default)]
    pub exact: bool,
    /// Measure what the library sees.
    #[serde(default)]
    pub check: bool,
    #[serde(default = "yes")]
    pub reads: bool,
    #[serde(default = "yes")]
    pub content: bool,
    /// Bytes of the chunks whose contents are compared: 256, 512 or 1024.
    #[serde(default = "one_kib")]
    pub chunk: usize,
    /// Spools that a recording which was broken off has left: nothing is run.
    #[serde(default)]
    pub from: Option<PathBuf>,
}

fn automatic() -> String {
    "auto".to_owned()
}

fn one_kib() -> usize {
    1024
}

fn yes() -> bool {
    true
}

/// A recording to be looked at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextsSpec {
    pub recording: PathBuf,
    /// Options of the replay; see `ftlab_record::replay::Options`.
    #[serde(default)]
    pub replay: Option<String>,
    /// Functions, programs, or `file:` and a pattern: what goes through one of them, or to such files, is taken together. `files`
    /// alone: by kind of file.
    #[serde(default)]
    pub by: Vec<String>,
    /// Takes names in `by` that nothing in the recording has: nothing goes through them.
    #[serde(default)]
    pub may_miss: bool,
}

impl RecordSpec {
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|e| Error::input(e.to_string()))
    }
}

impl ContextsSpec {
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|e| Error::input(e.to_string()))
    }
}

/// Runs a program to its end and writes the recording; the answer has the program's exit code. `tell` is given sentences for whoever waits.
pub fn record(spec: &RecordSpec, tell: &dyn Fn(&str)) -> Result<Value> {
    let options = RecordOptions {
        command: spec.command.clone(),
        output: spec.output.clone(),
        library: spec.library.clone(),
        signature: Signature::parse(&spec.signature)?,
        exact: spec.exact,
        check: spec.check,
        reads: spec.reads,
        content: spec.content,
        chunk: spec.chunk,
    };
    let recorded = match &spec.from {
        Some(folder) => making::merge(folder, &options)?,
        None => making::record(&options, tell)?,
    };
    serde_json::to_value(recorded).map_err(|e| Error::input(e.to_string()))
}

/// The contexts of a recording: the keys of `ftlab_record::contexts::Report`, and behind them `perf`.
pub fn contexts(spec: &ContextsSpec, observer: &mut (dyn Observer + Send)) -> Result<Value> {
    let started = Instant::now();
    let options = replay::Options::parse(spec.replay.as_deref().unwrap_or(""))?;
    let path = &spec.recording;
    let file = File::open(path).map_err(|e| Error::io(path, &e))?;
    let reader = Reader::new(&path.display().to_string(), BufReader::new(file))?;
    if !spec.may_miss {
        figures::check_names(reader.tables(), &spec.by)?;
    }
    let found = figures::report(reader, &options, &spec.by, |calls| {
        observer.progress(&Progress {
            phase: "contexts".to_owned(),
            done_requests: calls,
            waf: f64::NAN,
            wall_s: started.elapsed().as_secs_f64(),
            ..Progress::default()
        })
    })?;
    let calls = found.calls;
    let mut all = serde_json::to_value(found).map_err(|e| Error::input(e.to_string()))?;
    let wall_s = started.elapsed().as_secs_f64();
    all["perf"] = json!({"wall_s": wall_s, "calls_per_s": calls as f64 / wall_s.max(1e-9)});
    Ok(all)
}
