//! Generated workloads.

use ftlab_core::{Batch, Error, Result, Source};

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Closed loop: this many requests outstanding; the time column is 0.
    Closed { queue_depth: u32 },
    /// Open loop: the time column carries arrivals at this mean rate.
    Open { per_second: f64 },
}

/// A generated workload.
pub struct Generator {}

/// A generator from `KIND[:key=value,...]` or the text of a TOML file with the same keys.
///
/// `logical_bytes` and `unit_bytes` are the drive's; `run_seed` is used where the spec has no `seed`.
pub fn parse(_text: &str, _logical_bytes: u64, _unit_bytes: u32, _run_seed: u64) -> Result<Generator> {
    Err(Error::input("not built yet"))
}

/// Names and descriptions of the kinds.
pub fn kinds() -> &'static [(&'static str, &'static str)] {
    &[]
}

/// Whether `text` names a generator (a known kind, alone or before a colon) rather than a file.
pub fn is_spec(_text: &str) -> bool {
    false
}

impl Generator {
    /// The resolved spec: every key with the value in use.
    pub fn describe(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    pub fn arrivals(&self) -> Arrivals {
        Arrivals::Closed { queue_depth: 1 }
    }

    /// Names of the `label` column's values; empty when the workload has none.
    pub fn labels(&self) -> &'static [&'static str] {
        &[]
    }

    /// Requests of the whole workload.
    pub fn requests(&self) -> u64 {
        0
    }
}

impl Source for Generator {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        batch.clear();
        Ok(())
    }
}
