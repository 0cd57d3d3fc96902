//! How a recording is asked for.

use std::path::PathBuf;

use ftlab_core::{Error, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::record::{self, RecordOptions, Signature};

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

impl RecordSpec {
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|e| Error::input(e.to_string()))
    }

    /// Runs a program to its end and writes the recording; the answer has the program's exit code. `tell` is given sentences for whoever
    /// waits.
    pub fn carry_out(&self, tell: &dyn Fn(&str)) -> Result<Value> {
        let options = RecordOptions {
            command: self.command.clone(),
            output: self.output.clone(),
            library: self.library.clone(),
            signature: Signature::parse(&self.signature)?,
            exact: self.exact,
            check: self.check,
            reads: self.reads,
            content: self.content,
            chunk: self.chunk,
        };
        let recorded = match &self.from {
            Some(folder) => record::merge(folder, &options)?,
            None => record::record(&options, tell)?,
        };
        serde_json::to_value(recorded).map_err(|e| Error::input(e.to_string()))
    }
}
