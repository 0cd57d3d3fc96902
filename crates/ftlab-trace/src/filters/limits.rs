//! The beginning of a stream, by requests, time or bytes: what `head` keeps and `skip` drops.

use ftlab_core::{Batch, Error, Result, units};

use crate::stats::Stats;
use crate::synth::Keys;

/// Where the beginning ends; the first limit that is reached ends it.
#[derive(Default)]
pub struct Limits {
    requests: Option<u64>,
    time_ns: Option<u64>,
    bytes: Option<u64>,
    /// Requests and bytes of the beginning so far.
    passed: u64,
    passed_bytes: u64,
    over: bool,
}

impl Limits {
    pub fn read(keys: &mut Keys, filter: &'static str) -> Result<Self> {
        let limits = Limits {
            requests: keys.count("requests")?,
            time_ns: seconds(keys)?,
            bytes: keys
                .text("bytes")
                .map(|text| units::bytes(&text))
                .transpose()
                .map_err(|e| keys.wrong_as("bytes", &e))?,
            ..Limits::default()
        };
        match limits {
            Limits {
                requests: None,
                time_ns: None,
                bytes: None,
                ..
            } => Err(Error::input(format!(
                "filter `{filter}` needs a limit: expected `requests`, `seconds` or `bytes`, such as {filter}:requests=1e6"
            ))),
            limits => Ok(limits),
        }
    }

    /// Whether request `i` belongs to the beginning. Requests are asked about in order.
    #[inline]
    pub fn within(&mut self, batch: &Batch, i: usize) -> bool {
        self.over = self.over() || self.time_ns.is_some_and(|end| batch.time_ns[i] >= end);
        if !self.over {
            self.passed += 1;
            if Stats::touches(batch.op[i]) {
                self.passed_bytes += u64::from(batch.length[i]);
            }
        }
        !self.over
    }

    /// True when no further request belongs to the beginning.
    #[inline]
    pub fn over(&self) -> bool {
        self.over
            || self.requests.is_some_and(|most| self.passed >= most)
            || self.bytes.is_some_and(|most| self.passed_bytes >= most)
            || self.time_ns == Some(0)
    }

    /// Requests of the beginning that are still to come of `coming`, where requests are the only limit.
    pub fn remaining(&self, coming: u64) -> Option<u64> {
        match (self.requests, self.time_ns, self.bytes) {
            (Some(most), None, None) => Some(coming.min(most.saturating_sub(self.passed))),
            _ => None,
        }
    }
}

/// The key `seconds`: a number, or a time with its unit such as `2h`.
fn seconds(keys: &mut Keys) -> Result<Option<u64>> {
    let Some(text) = keys.text("seconds") else {
        return Ok(None);
    };
    let with_unit = match text.parse::<f64>() {
        Ok(_) => format!("{text}s"),
        Err(_) => text,
    };
    units::nanoseconds(&with_unit)
        .map(Some)
        .map_err(|e| keys.wrong_as("seconds", &e))
}
