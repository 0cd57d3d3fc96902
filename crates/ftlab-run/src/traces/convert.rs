//! Converting and generating: requests into a file of some form.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use ftlab_core::{Error, Result, Source};
use ftlab_trace::write::{Options, VolumeNames};
use ftlab_trace::{ConvertOptions, ConvertReport};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::requests::{Layout, RequestsSpec, Watched};
use crate::{Observer, spec};

/// What is written, where, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvertSpec {
    pub from: RequestsSpec,
    pub to: TargetSpec,
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSpec {
    /// `-` is standard output; `{volume}` gives each volume a file.
    pub output: PathBuf,
    /// `None`: told by the ending of the output's name.
    #[serde(default)]
    pub format: Option<String>,
    /// Options of the form, by name.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Refuse a request that the form cannot hold, instead of leaving it out and counting it.
    #[serde(default)]
    pub strict: bool,
    /// Replace a file that exists.
    #[serde(default)]
    pub force: bool,
}

impl ConvertSpec {
    pub fn parse(json: &str) -> Result<Self> {
        let mut spec: ConvertSpec = spec::from_json("conversion", json)?;
        spec.from = spec.from.checked()?;
        Ok(spec)
    }
}

impl TargetSpec {
    fn options(&self) -> Result<ConvertOptions> {
        let mut writer = Options {
            strict: self.strict,
            ..Options::default()
        };
        for (key, value) in &self.options {
            writer.set(key, value)?;
        }
        Ok(ConvertOptions {
            format: self.format.clone(),
            writer,
            force: self.force,
            joined: false,
        })
    }

    /// What was laid out must not be laid out again by whoever reads it: our own form says so, others get one volume.
    fn laid_out(&self, options: &mut ConvertOptions) -> Result<()> {
        if options.form(&self.output)?.name != "ftlab" {
            options.joined = true;
        } else if !self.options.contains_key("laid_out") {
            options.writer.set("laid_out", "true")?;
        }
        Ok(())
    }

    /// Where volumes go that the form cannot name: behind one another, so that they do not overlap.
    fn layout(&self, options: &ConvertOptions) -> Result<Layout> {
        Ok(match options.form(&self.output)?.holds(&options.writer)?.volumes {
            VolumeNames::One => Layout::SideBySide,
            _ => Layout::InPlace,
        })
    }
}

/// Writes the requests of `spec.from` to `spec.to`: nothing appears under its name before it is complete.
///
/// The answer: `workload` and `trace` as in an inspection; `format`, `files`, `read`, `requests`, `bytes` and `lost` of what
/// was written; `perf`.
pub fn convert(spec: &ConvertSpec, observer: &mut (dyn Observer + Send)) -> Result<Value> {
    let mut options = spec.to.options()?;
    let requests = spec.from.open(spec.to.layout(&options)?)?;
    if spec.from.lays_volumes_out() || requests.reading.laid_out() {
        spec.to.laid_out(&mut options)?;
    }
    let reading = requests.reading.clone();
    let started = Instant::now();
    let mut source = Watched::new(requests, "write", observer);
    let written = ftlab_trace::convert(&mut source, &spec.to.output, &options, &mut |_| true)?;
    let mut answer = told(&written, started)?;
    answer["workload"] = reading.describe();
    answer["filters"] = json!(reading.filters());
    answer["trace"] = json!(reading.report());
    Ok(answer)
}

/// Writes requests that come from elsewhere, such as a table in Python.
pub fn write(source: &mut dyn Source, to: &TargetSpec) -> Result<Value> {
    let started = Instant::now();
    let written = ftlab_trace::convert(source, &to.output, &to.options()?, &mut |_| true)?;
    told(&written, started)
}

fn told(written: &ConvertReport, started: Instant) -> Result<Value> {
    let mut answer = serde_json::to_value(written).map_err(|e| Error::input(e.to_string()))?;
    let wall_s = started.elapsed().as_secs_f64();
    answer["perf"] = super::perf(wall_s, written.read);
    Ok(answer)
}
