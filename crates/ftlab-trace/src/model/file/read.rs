//! Model files read in two steps: what was written, and what is meant.

use ftlab_core::{Error, Result, error, units};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::VERSION;
use crate::model::{BIRTH_PARTS, Class, Contents, Gaps, Head, Model, OPS, Overlap, PAGE, Rows, Weights, Word};
use crate::synth;

/// Room between clusters where a file names none.
const ROOM: f64 = 3.0;
/// Above any trace, and small enough that sums stay whole numbers.
const MOST: f64 = 1e15;

impl Model {
    /// Reads a model file.
    pub fn from_toml(text: &str) -> Result<Self> {
        let mut keys = synth::table("model", text).map_err(synth::in_one_line)?;
        keys.remove("kind");
        Model::from_keys(keys)
    }

    /// A model from the keys of its file but for `kind`.
    pub fn from_keys(keys: Map<String, Value>) -> Result<Self> {
        match keys.get("version").and_then(Value::as_u64) {
            Some(VERSION) => {}
            _ => {
                let version = keys.get("version").map_or("none".to_owned(), Value::to_string);
                return Err(Error::input(format!(
                    "model: version {version}: this program reads version {VERSION}"
                )));
            }
        }
        let file: File = serde_path_to_error::deserialize(Value::Object(keys)).map_err(|e| {
            let words = error::in_words(&e.inner().to_string());
            Error::input(format!("model, {}", error::of_key(&e.path().to_string(), &words)))
        })?;
        file.meaning()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "version")]
    _version: u64,
    title: String,
    #[serde(default)]
    source: String,
    trace: Trace,
    #[serde(default)]
    pages: Pages,
    #[serde(default)]
    runs: Runs,
    #[serde(default)]
    overlap: PerOp<Over>,
    arrivals: Option<Arrivals>,
    #[serde(default)]
    flags: PerOp<String>,
    contents: Option<Values>,
    class: Vec<OneClass>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    requests: u64,
    pages: u64,
    span: String,
    #[serde(default)]
    flush: f64,
    #[serde(default = "least")]
    least: u64,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Pages {
    #[serde(default)]
    clusters: String,
    room: Option<f64>,
    #[serde(default)]
    touched: Vec<f64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Runs {
    #[serde(default)]
    stride: String,
    #[serde(default)]
    read: Map<String, Value>,
    #[serde(default)]
    write: Map<String, Value>,
    #[serde(default)]
    trim: Map<String, Value>,
    #[serde(default)]
    last: PerOp<Map<String, Value>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct PerOp<T: Default> {
    read: T,
    write: T,
    trim: T,
}

impl<T: Default> PerOp<T> {
    fn array(self) -> [T; 3] {
        [self.read, self.write, self.trim]
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Over {
    ages: String,
    aligned: f64,
    fresh: f64,
    together: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arrivals {
    mean: String,
    next: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Values {
    repeat: f64,
    written: String,
    found: String,
    found_written: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneClass {
    objects: u64,
    references: f64,
    #[serde(default)]
    overlap: f64,
    #[serde(default = "birth_parts")]
    parts: u64,
    #[serde(default)]
    births: String,
    over: Option<Over>,
    #[serde(default)]
    start: PerOp<f64>,
    #[serde(default)]
    next: Map<String, Value>,
    #[serde(default)]
    read: String,
    #[serde(default)]
    write: String,
    #[serde(default)]
    trim: String,
    #[serde(default)]
    later: PerOp<Map<String, Value>>,
}

fn least() -> u64 {
    1
}

fn birth_parts() -> u64 {
    BIRTH_PARTS
}

impl File {
    fn meaning(self) -> Result<Model> {
        range("trace.requests", self.trace.requests as f64, 1.0, MOST)?;
        range("trace.pages", self.trace.pages as f64, 1.0, MOST)?;
        let span = units::bytes(&self.trace.span).map_err(|e| Error::input(format!("model, trace.span: {e}")))?;
        if span / PAGE + 2 < self.trace.pages {
            return Err(Error::input(format!(
                "model, trace.span = {}: expected at least the {} pages",
                self.trace.span, self.trace.pages
            )));
        }
        let mut before = 0.0;
        for &touched in &self.pages.touched {
            before = range("pages.touched", touched, before, 1.0)?;
        }
        let mut overlap = <[Overlap; 3]>::default();
        for (at, (over, op)) in self.overlap.array().into_iter().zip(OPS).enumerate() {
            overlap[at] = over.meaning(&format!("overlap.{op}"))?;
        }
        let mut flags = <[Weights<u64>; 3]>::default();
        for (at, (text, op)) in self.flags.array().into_iter().zip(OPS).enumerate() {
            flags[at] = Weights::read(&format!("model, flags.{op}"), &text)?;
            if let Some((bits, _)) = flags[at].0.iter().find(|(bits, _)| *bits > 255) {
                range(&format!("flags.{op}"), *bits as f64, 0.0, 255.0)?;
            }
        }
        let contents = match self.contents {
            None => None,
            Some(values) => Some(Contents {
                repeat: share("contents.repeat", values.repeat)?,
                written: counts("contents.written", &values.written)?,
                found: counts("contents.found", &values.found)?,
                found_written: share("contents.found_written", values.found_written)?,
            }),
        };
        let mut classes = Vec::with_capacity(self.class.len());
        for (at, class) in self.class.into_iter().enumerate() {
            classes.push(class.meaning(at + 1)?);
        }
        if classes.is_empty() {
            return Err(Error::input("model: no [[class]]: expected at least one"));
        }
        Ok(Model {
            title: self.title,
            source: self.source,
            requests: self.trace.requests,
            pages: self.trace.pages,
            span,
            clusters: counts("pages.clusters", &self.pages.clusters)?,
            room: range("pages.room", self.pages.room.unwrap_or(ROOM), 1.0, 1000.0)?,
            first_touches: self.pages.touched,
            stride: counts("runs.stride", &self.runs.stride)?,
            overlap,
            follow: [
                rows("runs.read", self.runs.read)?,
                rows("runs.write", self.runs.write)?,
                rows("runs.trim", self.runs.trim)?,
            ],
            last: {
                let [read, write, trim] = self.runs.last.array();
                [
                    rows("runs.last.read", read)?,
                    rows("runs.last.write", write)?,
                    rows("runs.last.trim", trim)?,
                ]
            },
            least: self.trace.least,
            classes,
            gaps: self.arrivals.map(Arrivals::meaning).transpose()?,
            flags,
            flush: range("trace.flush", self.trace.flush, 0.0, 1000.0)?,
            contents,
        })
    }
}

impl Over {
    /// `place` names the table.
    fn meaning(self, place: &str) -> Result<Overlap> {
        Ok(Overlap {
            ages: counts(&format!("{place}.ages"), &self.ages)?,
            aligned: share(&format!("{place}.aligned"), self.aligned)?,
            fresh: share(&format!("{place}.fresh"), self.fresh)?,
            together: share(&format!("{place}.together"), self.together)?,
        })
    }
}

impl Arrivals {
    fn meaning(self) -> Result<Gaps> {
        let wrong = || {
            Error::input(format!(
                "model, arrivals.mean = {}: expected a time above 0 such as \"1.5ms\"",
                self.mean
            ))
        };
        let mean_ns = mean_ns(&self.mean).ok_or_else(wrong)?;
        let next: Rows<u64> = rows("arrivals.next", self.next)?;
        if next.is_empty() || next.iter().all(|(_, gaps)| gaps.0.iter().all(|(gap, _)| *gap == 0)) {
            return Err(Error::input("model, arrivals.next: expected at least one gap above 0"));
        }
        Ok(Gaps { mean_ns, next })
    }
}

impl OneClass {
    fn meaning(self, number: usize) -> Result<Class> {
        let place = |key: &str| format!("model, class {number}, {key}");
        let wrong = |key: &str, value: &str, expected: &str| {
            Err(Error::input(format!("{} = {value}: expected {expected}", place(key))))
        };
        if self.objects == 0 || self.objects as f64 > MOST {
            return wrong("objects", &self.objects.to_string(), "at least one");
        }
        if !(1.0..=MOST).contains(&self.references) {
            return wrong("references", &self.references.to_string(), "a mean of at least 1");
        }
        if !(0.0..=1.0).contains(&self.overlap) {
            return wrong("overlap", &self.overlap.to_string(), "a share from 0 to 1");
        }
        let mut next = <[[Weights<u64>; 3]; 3]>::default();
        for (key, value) in &self.next {
            let letters = ["r", "w", "t"];
            let at = |letter: Option<&str>| letters.iter().position(|l| Some(*l) == letter);
            let (Some(from), Some(to), 2) = (at(key.get(..1)), at(key.get(1..)), key.len()) else {
                return wrong("next", key, "pairs of r, w and t such as rw");
            };
            next[from][to] = counts(&format!("class {number}, next.{key}"), text_of(value))?;
        }
        let first: [Weights<Head>; 3] = [
            Weights::read(&place("read"), &self.read)?,
            Weights::read(&place("write"), &self.write)?,
            Weights::read(&place("trim"), &self.trim)?,
        ];
        let mut later = <[Rows<Head>; 3]>::default();
        for (at, (table, op)) in self.later.array().into_iter().zip(OPS).enumerate() {
            later[at] = rows(&format!("class {number}, later.{op}"), table)?;
        }
        let start = self.start.array();
        if start.iter().any(|weight| !(0.0..=MOST).contains(weight)) || start.iter().all(|weight| *weight == 0.0) {
            return wrong("start", &format!("{start:?}"), "weights, at least one above 0");
        }
        for (op, name) in OPS.iter().enumerate().filter(|(op, _)| start[*op] > 0.0) {
            if first[op].is_empty() || first[op].0.iter().any(|(head, _)| *head == Head::SAME) {
                return wrong(
                    name,
                    &first[op].write(),
                    "sizes of the first references, which do this operation",
                );
            }
        }
        Ok(Class {
            objects: self.objects,
            references: self.references,
            overlap: self.overlap,
            parts: range(&format!("class {number}, parts"), self.parts as f64, 1.0, 1024.0)? as u64,
            births: counts(&format!("class {number}, births"), &self.births)?,
            over: match self.over {
                Some(over) => Some(over.meaning(&format!("class {number}, over"))?),
                None => None,
            },
            start,
            next,
            first,
            later,
        })
    }
}

fn range(place: &str, value: f64, least: f64, most: f64) -> Result<f64> {
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(Error::input(format!(
            "model, {place} = {value}: expected {least} to {most}"
        ))),
    }
}

fn share(place: &str, value: f64) -> Result<f64> {
    range(place, value, 0.0, 1.0)
}

fn counts(place: &str, text: &str) -> Result<Weights<u64>> {
    Weights::read(&format!("model, {place}"), text)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or("no text")
}

fn rows<T: Word>(place: &str, table: Map<String, Value>) -> Result<Rows<T>> {
    let mut rows = Vec::with_capacity(table.len());
    for (key, value) in &table {
        let Ok(row) = key.parse() else {
            return Err(Error::input(format!(
                "model, {place}: `{key}`: expected a number, the octave of what came before"
            )));
        };
        let weights = Weights::read(&format!("model, {place}.{key}"), text_of(value))?;
        if !weights.is_empty() {
            rows.push((row, weights));
        }
    }
    rows.sort_unstable_by_key(|(row, _)| *row);
    Ok(rows)
}

fn mean_ns(text: &str) -> Option<f64> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.trim().strip_suffix(unit)?, factor)))?;
    let mean = number.trim().parse::<f64>().ok()? * factor;
    (mean > 0.0 && mean <= 1e18).then_some(mean)
}
