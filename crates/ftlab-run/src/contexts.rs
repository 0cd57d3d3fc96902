//! What the program contexts of a recording are like.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::time::Instant;

use ftlab_core::{Error, Result};
use ftlab_record::recording::Reader;
use ftlab_record::{contexts as figures, replay};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Observer, Progress};

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

impl ContextsSpec {
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|e| Error::input(e.to_string()))
    }
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
