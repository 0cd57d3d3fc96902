//! What was written in a spec, and what it means for a drive.

use std::ops::RangeInclusive;

use ftlab_core::{Error, OpKind, Result, error, units};
use serde_json::{Map, Value, json};

use super::Space;

/// Requests longer than this are refused: no block layer makes them.
const LARGEST_SIZE: u64 = 1 << 30;

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Closed loop: this many requests outstanding; the time column is 0.
    Closed { queue_depth: u32 },
    /// Open loop: the time column carries arrivals at this mean rate.
    Open { per_second: f64 },
}

/// The keys of a spec, taken one by one; what is left at the end is unknown.
pub struct Keys {
    /// What the spec is of, for messages: `workload` or `filter`.
    what: &'static str,
    kind: &'static str,
    values: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Keys {
    pub(crate) fn new(what: &'static str, kind: &'static str, values: Map<String, Value>) -> Self {
        Keys {
            what,
            kind,
            values,
            known: Vec::new(),
        }
    }

    /// Whether a key was written that nobody has taken yet.
    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// A value as written, as text.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.known.push(key);
        self.values.remove(key).map(|value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        })
    }

    /// A number from 0 to 1.
    pub fn share(&mut self, key: &'static str, default: f64) -> Result<f64> {
        let Some(text) = self.text(key) else {
            return Ok(default);
        };
        let share: Option<f64> = text.trim().parse().ok().filter(|s| (0.0..=1.0).contains(s));
        share.ok_or_else(|| self.wrong(key, &text, "a share from 0 to 1"))
    }

    /// A number that is not negative.
    pub fn number(&mut self, key: &'static str, default: f64) -> Result<f64> {
        let Some(text) = self.text(key) else {
            return Ok(default);
        };
        let number: Option<f64> = text.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
        number.ok_or_else(|| self.wrong(key, &text, "a number that is not negative"))
    }

    /// A count such as 1000 or "1e6".
    pub fn count(&mut self, key: &'static str) -> Result<Option<u64>> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        units::count(&text).map(Some).map_err(|e| self.wrong_as(key, &e))
    }

    /// How many requests: a workload has at least one.
    pub fn requests(&mut self) -> Result<Option<u64>> {
        match self.count("requests")? {
            Some(0) => Err(self.wrong("requests", "0", "at least one")),
            count => Ok(count),
        }
    }

    /// A size with its unit.
    pub fn bytes(&mut self, key: &'static str, default: u64) -> Result<u64> {
        let Some(text) = self.text(key) else {
            return Ok(default);
        };
        units::bytes(&text).map_err(|e| self.wrong_as(key, &e))
    }

    /// A size with its unit, between bounds.
    pub fn bytes_within(&mut self, key: &'static str, default: u64, range: RangeInclusive<u64>) -> Result<u64> {
        let Some(text) = self.text(key) else {
            return Ok(default);
        };
        let bytes = units::bytes(&text).map_err(|e| self.wrong_as(key, &e))?;
        if !range.contains(&bytes) {
            let (least, most) = (units::show_bytes(*range.start()), units::show_bytes(*range.end()));
            return Err(self.wrong(key, &text, &format!("{least} to {most}")));
        }
        Ok(bytes)
    }

    /// Nanoseconds from a time with its unit.
    pub fn nanoseconds(&mut self, key: &'static str, default: u64) -> Result<u64> {
        let Some(text) = self.text(key) else {
            return Ok(default);
        };
        units::nanoseconds(&text).map_err(|e| self.wrong_as(key, &e))
    }

    /// `true` or `false`.
    pub fn switch(&mut self, key: &'static str, default: bool) -> Result<bool> {
        match self.text(key).as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(self.wrong(key, other, "true or false")),
        }
    }

    /// "workload `zipf`: `theta` = x: expected y".
    pub fn wrong(&self, key: &str, value: &str, expected: &str) -> Error {
        Error::input(format!(
            "{} `{}`: `{key}` = {value}: expected {expected}",
            self.what, self.kind
        ))
    }

    /// "workload `zipf`: `span`: CAUSE".
    pub fn wrong_as(&self, key: &str, cause: &Error) -> Error {
        Error::input(format!("{} `{}`: `{key}`: {cause}", self.what, self.kind))
    }

    /// Takes those of `keys` that nobody took: what exists is not unknown, even if something else was refused first.
    pub(crate) fn pass_over(&mut self, keys: impl Iterator<Item = &'static str>) {
        for key in keys {
            if !self.known.contains(&key) {
                self.text(key);
            }
        }
    }

    /// Refuses the keys that nobody took.
    pub(crate) fn finish(self) -> Result<()> {
        match self.values.keys().next() {
            Some(key) => Err(error::unknown(&format!("key of `{}`", self.kind), key, &self.known)),
            None => Ok(()),
        }
    }
}

/// The keys that every kind has, resolved.
#[derive(Debug)]
pub struct Common {
    pub ops: Ops,
    pub sizes: Sizes,
    pub space: Space,
    pub requests: u64,
    pub arrivals: Arrivals,
    pub fixed_gaps: bool,
    pub flush: u64,
    pub seed: u64,
}

/// Shares of the operations; the rest writes.
#[derive(Clone, Copy, Debug)]
pub struct Ops {
    pub read: f64,
    pub trim: f64,
}

/// Request sizes.
#[derive(Debug)]
pub enum Sizes {
    One(u32),
    Many(Vec<SizeShare>),
}

/// A size and the cumulative share up to and with it.
#[derive(Debug)]
pub struct SizeShare {
    pub bytes: u32,
    pub share: f64,
    pub up_to: f64,
}

impl Common {
    pub fn read(keys: &mut Keys, logical_bytes: u64, unit_bytes: u32, run_seed: u64) -> Result<Self> {
        let ops = Ops::read(keys)?;
        let sizes = Sizes::read(keys, unit_bytes)?;
        let align = keys.bytes("align", sizes.smallest())?;
        if align == 0 {
            return Err(keys.wrong("align", "0", "at least one byte"));
        }
        let seed = keys.count("seed")?.unwrap_or(run_seed);
        let span = span(keys, logical_bytes)?;
        if sizes.largest() > span {
            let (largest, shown) = (units::show_bytes(sizes.largest()), units::show_bytes(span));
            return Err(keys.wrong("size", &largest, &format!("at most the span, {shown}")));
        }
        let space = Space {
            span,
            align,
            positions: (span - sizes.largest()) / align + 1,
            seed,
        };
        let requests = requests(keys, &sizes, logical_bytes)?;
        let arrivals = arrivals(keys)?;
        let fixed_gaps = match keys.text("arrivals").as_deref() {
            None | Some("exponential") => false,
            Some("fixed") => true,
            Some(other) => return Err(keys.wrong("arrivals", other, "exponential or fixed")),
        };
        let flush = keys.count("flush")?.unwrap_or(0);
        Ok(Common {
            ops,
            sizes,
            space,
            requests,
            arrivals,
            fixed_gaps,
            flush,
            seed,
        })
    }

    pub fn describe(&self, keys: &mut Map<String, Value>) {
        let mut enter = |key: &str, value: Value| keys.insert(key.to_owned(), value);
        enter("read", json!(self.ops.read));
        enter("trim", json!(self.ops.trim));
        enter("size", json!(self.sizes.show()));
        enter("align", json!(format!("{}B", self.space.align)));
        enter("span", json!(format!("{}B", self.space.span)));
        enter("requests", json!(self.requests));
        match self.arrivals {
            Arrivals::Closed { queue_depth } => enter("qd", json!(queue_depth)),
            Arrivals::Open { per_second } => enter("rate", json!(per_second)),
        };
        enter("arrivals", json!(if self.fixed_gaps { "fixed" } else { "exponential" }));
        enter("flush", json!(self.flush));
        enter("seed", json!(self.seed));
    }
}

impl Ops {
    fn read(keys: &mut Keys) -> Result<Self> {
        let op = keys.text("op");
        let (read, trim) = (keys.share("read", f64::NAN)?, keys.share("trim", f64::NAN)?);
        let given = |share: f64| !share.is_nan();
        if op.is_some() && (given(read) || given(trim)) {
            return Err(Error::input(
                "a workload has either `op` or the shares `read` and `trim`",
            ));
        }
        let ops = match op.as_deref() {
            Some("read") => Ops { read: 1.0, trim: 0.0 },
            Some("write") => Ops { read: 0.0, trim: 0.0 },
            Some("trim") => Ops { read: 0.0, trim: 1.0 },
            Some(other) => return Err(error::unknown("operation", other, &["read", "write", "trim"])),
            None => Ops {
                read: if given(read) { read } else { 0.0 },
                trim: if given(trim) { trim } else { 0.0 },
            },
        };
        if ops.read + ops.trim > 1.0 {
            let sum = ops.read + ops.trim;
            return Err(Error::input(format!(
                "`read` and `trim` together are {sum}, more than 1"
            )));
        }
        Ok(ops)
    }

    /// The one operation there is, if there is one.
    pub fn always(self) -> Option<OpKind> {
        if self.read >= 1.0 {
            Some(OpKind::Read)
        } else if self.trim >= 1.0 {
            Some(OpKind::Trim)
        } else {
            (self.read == 0.0 && self.trim == 0.0).then_some(OpKind::Write)
        }
    }
}

impl Sizes {
    fn read(keys: &mut Keys, unit_bytes: u32) -> Result<Self> {
        let Some(text) = keys.text("size") else {
            return Ok(Sizes::One(unit_bytes));
        };
        if !text.contains(['*', '/']) {
            return Ok(Sizes::One(size(keys, &text)?));
        }
        let mut sizes = Vec::new();
        let mut up_to = 0.0;
        for part in text.split('/') {
            let parsed = part
                .split_once('*')
                .and_then(|(bytes, share)| Some((bytes, share.trim().parse::<f64>().ok()?)));
            let Some((bytes, share)) = parsed.filter(|(_, share)| *share > 0.0 && *share <= 1.0) else {
                return Err(keys.wrong("size", &text, "sizes and shares such as 4KiB*0.6/16KiB*0.4"));
            };
            up_to += share;
            sizes.push(SizeShare {
                bytes: size(keys, bytes)?,
                share,
                up_to,
            });
        }
        if (up_to - 1.0).abs() > 1e-6 {
            return Err(keys.wrong("size", &text, &format!("shares that add up to 1, not {up_to}")));
        }
        Ok(Sizes::Many(sizes))
    }

    pub fn smallest(&self) -> u64 {
        match self {
            Sizes::One(size) => u64::from(*size),
            Sizes::Many(sizes) => sizes.iter().map(|s| u64::from(s.bytes)).min().unwrap_or(0),
        }
    }

    pub fn largest(&self) -> u64 {
        match self {
            Sizes::One(size) => u64::from(*size),
            Sizes::Many(sizes) => sizes.iter().map(|s| u64::from(s.bytes)).max().unwrap_or(0),
        }
    }

    fn mean(&self) -> f64 {
        match self {
            Sizes::One(size) => f64::from(*size),
            Sizes::Many(sizes) => sizes.iter().map(|s| s.share * f64::from(s.bytes)).sum(),
        }
    }

    fn show(&self) -> String {
        match self {
            Sizes::One(size) => format!("{size}B"),
            Sizes::Many(sizes) => {
                let parts: Vec<String> = sizes.iter().map(|s| format!("{}B*{}", s.bytes, s.share)).collect();
                parts.join("/")
            }
        }
    }
}

fn size(keys: &Keys, text: &str) -> Result<u32> {
    let bytes = units::bytes(text).map_err(|e| keys.wrong_as("size", &e))?;
    if bytes == 0 || bytes > LARGEST_SIZE {
        return Err(keys.wrong("size", text, "at most 1 GiB and at least a byte"));
    }
    Ok(bytes as u32)
}

/// A share of the capacity, or bytes.
pub(super) fn span(keys: &mut Keys, logical_bytes: u64) -> Result<u64> {
    let Some(text) = keys.text("span") else {
        return Ok(logical_bytes);
    };
    if let Ok(share) = text.trim().parse::<f64>() {
        if share > 0.0 && share <= 1.0 {
            return Ok((share * logical_bytes as f64).round() as u64);
        }
        return Err(keys.wrong(
            "span",
            &text,
            "a share of the capacity above 0 and up to 1, or bytes with a unit",
        ));
    }
    let bytes = units::bytes(&text).map_err(|e| keys.wrong_as("span", &e))?;
    if bytes > logical_bytes {
        let shown = units::show_bytes(logical_bytes);
        return Err(keys.wrong("span", &text, &format!("no more than the drive has, {shown}")));
    }
    Ok(bytes)
}

fn requests(keys: &mut Keys, sizes: &Sizes, logical_bytes: u64) -> Result<u64> {
    let (requests, bytes) = (keys.requests()?, keys.text("bytes"));
    let bytes = match (requests, bytes) {
        (Some(_), Some(_)) => return Err(Error::input("a workload has either `requests` or `bytes`")),
        (Some(requests), None) => return Ok(requests),
        (None, bytes) => bytes.unwrap_or_else(|| "8x".to_owned()),
    };
    let total = match bytes.trim().strip_suffix('x') {
        Some(times) => {
            let times: Option<f64> = times.trim().parse().ok().filter(|t: &f64| (0.0..1e9).contains(t));
            let expected = "bytes with a unit, or logical capacities such as 8x";
            times.ok_or_else(|| keys.wrong("bytes", &bytes, expected))? * logical_bytes as f64
        }
        None => units::bytes(&bytes).map_err(|e| keys.wrong_as("bytes", &e))? as f64,
    };
    match (total / sizes.mean()).ceil() as u64 {
        0 => Err(keys.wrong("bytes", &bytes, "at least one request's")),
        requests => Ok(requests),
    }
}

pub(super) fn arrivals(keys: &mut Keys) -> Result<Arrivals> {
    let (depth, rate) = (keys.count("qd")?, keys.text("rate"));
    match (depth, rate) {
        (Some(_), Some(_)) => Err(Error::input("a workload has either `qd` or `rate`")),
        (None, Some(text)) => {
            // Rates may be fractions; only those with a letter go through `count`.
            let per_second = match text.trim().parse::<f64>() {
                Ok(number) => number,
                Err(_) => units::count(&text).map_err(|e| keys.wrong_as("rate", &e))? as f64,
            };
            if !(per_second > 0.0 && per_second <= 1e12) {
                return Err(keys.wrong("rate", &text, "arrivals per second, more than 0 and at most 1e12"));
            }
            Ok(Arrivals::Open { per_second })
        }
        (depth, None) => {
            let depth = depth.unwrap_or(32);
            let queue_depth = u32::try_from(depth).ok().filter(|&d| (1..=1 << 20).contains(&d));
            let queue_depth =
                queue_depth.ok_or_else(|| keys.wrong("qd", &depth.to_string(), "1 to 1048576 requests"))?;
            Ok(Arrivals::Closed { queue_depth })
        }
    }
}
