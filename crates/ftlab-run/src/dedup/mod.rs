//! What deduplication would save: of the data that a trace writes, or of the bytes that files and disk images hold.
//!
//! # Model
//! * **Traces with content ids** ([`trace`]): an id stands for 4 KiB of a request. A unit written is a duplicate *seen before* if
//!   its id was written or read before, and *live* if it lies somewhere on the device at that moment: what is overwritten or
//!   trimmed leaves. The table of fingerprints is an LRU list of ids in the order of writes; one pass gives its hits for every size.
//! * **Files** ([`files`]): chunks by each way of cutting, told apart by a hash of 128 bits. A file with several hard links counts
//!   once, holes count as zeros.
//!
//! When fingerprints take more memory than allowed, only those of a share of all values are followed, chosen by value, and the
//! figures are estimates with a standard error. The few values of a trace that are written most are counted beside the sample
//! ([`frequent`]): what it lacks of them is part of the error.
//!
//! # Not modelled
//! Metadata of a deduplicating store, its garbage collection, the time of hashing. A finite table that has forgotten a fingerprint
//! stores a second copy; later finds are taken as finds of either.
//!
//! # Source
//! Distances and LRU tables: Mattson et al., IBM Systems Journal 1970. Live duplicates: what the stores of Chen, Luo and Zhang (FAST
//! 2011) and Gupta et al. (FAST 2011) can share.

mod curve;
mod cut;
mod files;
mod frequent;
mod live;
mod recorded;
mod table;
mod trace;
mod walk;
mod written;

use std::path::Path;

use ftlab_core::{Error, Result, units};
use ftlab_trace::{Input, ReadOptions, formats};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Observer;
use crate::spec::from_json;
use crate::traces::RequestsSpec;

pub use files::FilesSpec;

/// Layout of the answer; changes with the meaning of a key.
const SCHEMA: &str = "ftlab.dedup/1";
/// Least memory: what a few thousand values take.
const LEAST_MEMORY: u64 = 1 << 18;

/// What is looked at, and with how much memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DedupSpec {
    pub of: Of,
    /// For fingerprints and what is known of them.
    #[serde(default = "a_gibibyte")]
    pub memory: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    Requests(RequestsSpec),
    Files(FilesSpec),
}

fn a_gibibyte() -> String {
    "1GiB".to_owned()
}

impl DedupSpec {
    /// Reads a spec from JSON and checks it.
    pub fn parse(json: &str) -> Result<Self> {
        let mut spec: DedupSpec = from_json("dedup", json)?;
        spec.memory_bytes()?;
        spec.of = match spec.of {
            Of::Requests(requests) => Of::Requests(requests.checked()?),
            Of::Files(files) => Of::Files(files.checked()?),
        };
        Ok(spec)
    }

    fn memory_bytes(&self) -> Result<u64> {
        let text = &self.memory;
        let bytes = units::bytes(text).map_err(|e| Error::input(format!("memory: {e}")))?;
        match bytes >= LEAST_MEMORY {
            true => Ok(bytes),
            false => Err(Error::input(format!("memory {text}: expected at least 256 KiB"))),
        }
    }
}

/// Counts duplicates; the answer is described in `docs/guide/deduplication.md`.
pub fn dedup(spec: &DedupSpec, observer: &mut (dyn Observer + Send)) -> Result<Value> {
    let memory = spec.memory_bytes()?;
    match &spec.of {
        Of::Requests(requests) => trace::count(requests, memory, observer),
        Of::Files(files) => files::count(files, memory, observer),
    }
}

/// Whether a file is in a trace format that its content tells: what `dedup` takes for a trace.
pub fn is_trace(path: &Path) -> bool {
    let recognised = Input::open(path).and_then(|mut input| formats::detect(&mut input, &ReadOptions::default()));
    recognised.is_ok()
}
