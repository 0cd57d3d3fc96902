//! What a spec says beside the model.

use ftlab_core::{Error, Result, units};
use serde_json::{Map, Value, json};

use super::super::{Arrivals, Keys, spec};
use crate::model::{Model, PAGE};

/// The keys of a spec that are no part of a model.
pub const KEYS: [&str; 6] = ["requests", "footprint", "span", "rate", "qd", "seed"];
const DEFAULT_DEPTH: u64 = 32;

/// The keys, resolved for a drive.
pub struct Asked {
    pub requests: u64,
    pub footprint: f64,
    /// Pages that the workload touches.
    pub pages: u32,
    /// Bytes over which they lie.
    pub span: u64,
    pub arrivals: Arrivals,
    pub seed: u64,
}

impl Asked {
    pub fn read(model: &Model, keys: &mut Keys, logical_bytes: u64, run_seed: u64) -> Result<Self> {
        let footprint = keys.number("footprint", 1.0)?;
        if !(footprint > 0.0 && footprint <= 1000.0) {
            return Err(keys.wrong("footprint", &footprint.to_string(), "more than 0 and at most 1000"));
        }
        let episode = (model.requests as f64 * footprint).round().max(1.0);
        let requests = keys.requests()?.unwrap_or(episode as u64);
        let pages = (model.pages as f64 * footprint).ceil().max(1.0);
        let given = keys.has("span");
        let written = spec::span(keys, logical_bytes)?;
        let span = match given {
            true => written,
            false => ((model.span as f64 * footprint) as u64).min(logical_bytes),
        };
        let needed = pages * PAGE as f64;
        if needed > span as f64 + PAGE as f64 || pages >= f64::from(u32::MAX) {
            let room = if given { "the span has" } else { "the drive has" };
            let fitting = span as f64 / (model.pages * PAGE) as f64;
            return Err(Error::input(format!(
                "the workload `{}` touches {}, and {room} {}: expected a larger drive, or footprint={:.2}",
                model.title,
                units::show_bytes(needed as u64),
                units::show_bytes(span),
                (fitting * 90.0).floor() / 100.0,
            )));
        }
        let arrivals = arrivals(model, keys)?;
        Ok(Asked {
            requests,
            footprint,
            pages: pages as u32,
            span,
            arrivals,
            seed: keys.count("seed")?.unwrap_or(run_seed),
        })
    }

    pub fn describe(&self, keys: &mut Map<String, Value>) {
        let mut enter = |key: &str, value: Value| keys.insert(key.to_owned(), value);
        enter("requests", json!(self.requests));
        enter("footprint", json!(self.footprint));
        enter("span", json!(format!("{}B", self.span)));
        match self.arrivals {
            Arrivals::Closed { queue_depth } => enter("qd", json!(queue_depth)),
            Arrivals::Open { per_second } => enter("rate", json!(per_second)),
        };
        enter("seed", json!(self.seed));
    }
}

fn arrivals(model: &Model, keys: &mut Keys) -> Result<Arrivals> {
    let given = keys.has("qd") || keys.has("rate");
    let asked = spec::arrivals(keys)?;
    match (&model.gaps, given, asked) {
        (None, true, Arrivals::Open { per_second }) => Err(keys.wrong(
            "rate",
            &per_second.to_string(),
            "qd, because the model has no arrival times",
        )),
        (_, true, asked) => Ok(asked),
        (None, false, _) => Ok(Arrivals::Closed {
            queue_depth: DEFAULT_DEPTH as u32,
        }),
        (Some(gaps), false, _) => Ok(Arrivals::Open {
            per_second: 1e9 / gaps.mean_ns,
        }),
    }
}
