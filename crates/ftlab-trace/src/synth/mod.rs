//! Generated workloads: one file per kind, one line each in the catalogue.
//!
//! A spec is one line, `KIND[:key=value,...]`, or TOML with the same keys and `kind = "KIND"`. Keys of every kind:
//!
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `read` | share of the requests that read | 0 |
//! | `trim` | share of the requests that trim; the rest writes | 0 |
//! | `op` | `read`, `write` or `trim`: all requests do that; instead of `read` and `trim` | |
//! | `size` | bytes of a request, or a distribution: `4KiB*0.6/16KiB*0.4` | the drive's mapping unit |
//! | `align` | offsets are multiples of this | the smallest size |
//! | `span` | part of the drive that is used, from its start: a share of the logical capacity, or bytes | 1.0 |
//! | `requests` | how many reads, writes and trims | |
//! | `bytes` | how many bytes they cover instead, also in logical capacities: `8x` | `8x` |
//! | `qd` | closed loop with this many requests outstanding | 32 |
//! | `rate` | open loop with this many arrivals per second instead | |
//! | `arrivals` | of the open loop: `exponential` gaps or `fixed` ones | `exponential` |
//! | `flush` | a flush after every so many writes, in addition to the `requests`; 0 = never | 0 |
//! | `seed` | of this workload | the run's seed |
//!
//! Operations, sizes, offsets and arrivals draw from random streams of their own: a change of the share of reads leaves
//! the offsets as they were.
//!
//! Four further kinds generate whole requests, not only addresses, and have keys of their own: [`lsm`], a key-value
//! store with contents; [`transactions`], clients of a database whose next request waits for their last; [`fitted`], a
//! workload that a model file describes (a TOML with `kind = "fitted"` is one); and the [`named`] workloads, models
//! that come with the program.

pub mod contexts;
pub mod correlated;
pub mod fitted;
pub mod hotcold;
pub mod lsm;
pub mod mixed;
pub mod named;
mod permutation;
mod placed;
pub mod sequential;
mod spec;
mod time;
pub mod transactions;
pub mod uniform;
pub mod zipf;
mod zipf_draw;

use ftlab_core::catalogue as core_catalogue;
use ftlab_core::{Batch, Error, PolicySpec, Result, Source, Stream, error};
use serde_json::{Map, Value};

use self::fitted::Fitted;
use self::lsm::Lsm;
use self::placed::Placed;
use self::transactions::Transactions;
use crate::model::Model;

use spec::Common;
pub use spec::{Arrivals, Keys};

/// Chooses where requests go.
pub trait Pattern: Send {
    /// Fills the offsets of a batch whose operations and lengths are there, and any optional column the kind has.
    fn place(&mut self, batch: &mut Batch, random: &mut Stream);
    /// Enters the resolved keys of this kind.
    fn describe(&self, _into: &mut Map<String, Value>) {}
    /// Names of the `label` column's values.
    fn labels(&self) -> &'static [&'static str] {
        &[]
    }
}

/// Where requests may go: offsets are multiples of `align` below `positions × align`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes used, from the drive's start.
    pub span: u64,
    pub align: u64,
    /// Offsets from which a request of the largest size stays inside the span.
    pub positions: u64,
    /// Seed of whatever a kind fixes beforehand, such as a permutation.
    pub seed: u64,
}

/// One kind of workload.
pub struct Kind {
    /// Its name in a spec, which is also its file's name.
    pub name: &'static str,
    source: &'static str,
    new: fn(&mut Keys, Space) -> Result<Box<dyn Pattern>>,
}

macro_rules! kinds {
    ($($module:ident),+ $(,)?) => {
        &[$(Kind {
            name: stringify!($module),
            source: include_str!(concat!(stringify!($module), ".rs")),
            new: $module::new,
        }),+]
    };
}

/// The kinds that place requests.
pub fn catalogue() -> &'static [Kind] {
    kinds!(uniform, sequential, zipf, hotcold, mixed, correlated, contexts)
}

/// A name that a spec may begin with.
pub struct Entry {
    pub name: &'static str,
    /// A sentence.
    pub summary: String,
    /// Markdown.
    pub documentation: String,
}

const FITTED: &str = "fitted";
const LSM: &str = "lsm";
const TRANSACTIONS: &str = "transactions";

/// All names: the kinds, `lsm`, `transactions`, `fitted`, the named workloads.
pub fn entries() -> Vec<Entry> {
    let kinds = catalogue().iter().map(|kind| Entry {
        name: kind.name,
        summary: kind.summary(),
        documentation: kind.documentation(),
    });
    let whole = [
        (LSM, include_str!("lsm.rs")),
        (TRANSACTIONS, include_str!("transactions.rs")),
        (FITTED, include_str!("fitted.rs")),
    ];
    let whole = whole.map(|(name, source)| Entry {
        name,
        summary: core_catalogue::summary(source),
        documentation: core_catalogue::documentation(source),
    });
    let named = named::WORKLOADS.iter().map(|workload| Entry {
        name: workload.name,
        summary: workload.summary(),
        documentation: workload.documentation(),
    });
    kinds.chain(whole).chain(named).collect()
}

impl Kind {
    /// The head of its file, as Markdown.
    pub fn documentation(&self) -> String {
        core_catalogue::documentation(self.source)
    }

    /// The first sentence of the documentation.
    pub fn summary(&self) -> String {
        core_catalogue::summary(self.source)
    }
}

/// A generator from `KIND[:key=value,...]` or the text of a TOML file with the same keys.
///
/// `logical_bytes` and `unit_bytes` are the drive's; `run_seed` is used where the spec has no `seed`.
pub fn parse(text: &str, logical_bytes: u64, unit_bytes: u32, run_seed: u64) -> Result<Generator> {
    let (kind, params) = written(text).map_err(in_one_line)?;
    from_table(&kind, params, logical_bytes, unit_bytes, run_seed)
}

/// The kind and the keys of a spec, as written.
fn written(text: &str) -> Result<(String, Map<String, Value>)> {
    let head = text.split(':').next().unwrap_or("").trim();
    if is_word(head) {
        let spec = PolicySpec::parse(text.trim())?;
        return Ok((spec.name, spec.params));
    }
    let mut params = table("workload", text)?;
    match params.remove("kind") {
        Some(Value::String(name)) => Ok((name, params)),
        _ => Err(Error::input(
            "a workload file needs the key `kind`, such as kind = \"uniform\"",
        )),
    }
}

/// The keys of a TOML text; `what` it is of, for errors.
pub(crate) fn table(what: &str, text: &str) -> Result<Map<String, Value>> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
        let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let words = error::in_words_of_toml(e.message(), text, e.span());
        Error::input(format!("{what}, line {line}: {words}"))
    })?;
    match serde_json::to_value(table) {
        Ok(Value::Object(keys)) => Ok(keys),
        _ => Err(Error::input(format!(
            "a {what} is a TOML table, expected keys and values"
        ))),
    }
}

/// A generator from a kind's name and its keys, as an experiment's `workload` table gives them.
pub fn from_table(
    kind: &str,
    params: Map<String, Value>,
    logical_bytes: u64,
    unit_bytes: u32,
    run_seed: u64,
) -> Result<Generator> {
    resolve(kind, params, logical_bytes, unit_bytes, run_seed).map_err(in_one_line)
}

fn resolve(kind: &str, params: Map<String, Value>, logical: u64, unit: u32, run_seed: u64) -> Result<Generator> {
    if kind == FITTED {
        return fitted_to_model(params, logical, run_seed);
    }
    if kind == LSM {
        let mut keys = Keys::new("workload", LSM, params);
        let lsm = Lsm::new(&mut keys, logical, run_seed)?;
        keys.finish()?;
        return Ok(Generator {
            kind: LSM,
            body: Body::Lsm(Box::new(lsm)),
        });
    }
    if kind == TRANSACTIONS {
        let mut keys = Keys::new("workload", TRANSACTIONS, params);
        let transactions = Transactions::new(&mut keys, logical, run_seed)?;
        keys.finish()?;
        return Ok(Generator {
            kind: TRANSACTIONS,
            body: Body::Transactions(Box::new(transactions)),
        });
    }
    if let Some(workload) = named::find(kind) {
        let (model, mut asked) = workload.read()?;
        asked.extend(params);
        return from_model(workload.name, Map::new(), model, asked, logical, run_seed);
    }
    let found = catalogue().iter().find(|k| k.name == kind);
    let found = found.ok_or_else(|| {
        let kinds = catalogue().iter().map(|kind| kind.name);
        let named = named::WORKLOADS.iter().map(|workload| workload.name);
        let names: Vec<&str> = kinds.chain([LSM, TRANSACTIONS, FITTED]).chain(named).collect();
        error::unknown("workload kind", kind, &names)
    })?;
    let mut keys = Keys::new("workload", found.name, params);
    let common = Common::read(&mut keys, logical, unit, run_seed)?;
    let pattern = (found.new)(&mut keys, common.space)?;
    keys.finish()?;
    Ok(Generator {
        kind: found.name,
        body: Body::Placed(Box::new(Placed::new(common, pattern))),
    })
}

/// The model is a file, or it stands among the keys.
fn fitted_to_model(mut params: Map<String, Value>, logical: u64, run_seed: u64) -> Result<Generator> {
    let mut described = Map::new();
    let (model, asked) = match params.remove("model") {
        Some(Value::String(path)) => {
            let file = std::path::PathBuf::from(&path);
            let text = std::fs::read_to_string(&file).map_err(|e| Error::io(&file, &e))?;
            described.insert("model".to_owned(), path.clone().into());
            let (model, mut asked) =
                model_and_keys(&text).map_err(|e| Error::input(format!("{}: {e}", file.display())))?;
            asked.extend(params);
            (model, asked)
        }
        Some(other) => {
            return Err(Error::input(format!(
                "workload `fitted`: `model` = {other}: expected the path of a model file"
            )));
        }
        None if params.contains_key("version") => {
            let (model, asked) = apart(params)?;
            let text = model.to_toml();
            described.insert("title".to_owned(), model.title.clone().into());
            described.insert("digest".to_owned(), blake3::hash(text.as_bytes()).to_hex()[..16].into());
            (model, asked)
        }
        None => {
            return Err(Error::input(
                "workload `fitted`: needs the key `model`, the path of a model file: fitted:model=FILE",
            ));
        }
    };
    from_model(FITTED, described, model, asked, logical, run_seed)
}

/// A generator from a model, which `described` tells from others of this kind, and the keys beside it.
fn from_model(
    kind: &'static str,
    described: Map<String, Value>,
    model: Model,
    asked: Map<String, Value>,
    logical: u64,
    run_seed: u64,
) -> Result<Generator> {
    let mut keys = Keys::new("workload", kind, asked);
    let fitted = Fitted::new(model, &mut keys, logical, run_seed)?;
    keys.finish()?;
    Ok(Generator {
        kind,
        body: Body::Fitted(described, Box::new(fitted)),
    })
}

/// The model of a file, and the keys of a spec that stand in it.
fn model_and_keys(text: &str) -> Result<(Model, Map<String, Value>)> {
    let (kind, params) = written(text)?;
    match kind.as_str() {
        FITTED => apart(params),
        other => Err(Error::input(format!(
            "kind = \"{other}\": expected a model file, kind = \"fitted\""
        ))),
    }
}

/// A model's keys, and those of a spec.
fn apart(mut params: Map<String, Value>) -> Result<(Model, Map<String, Value>)> {
    let taken = fitted::KEYS.iter().filter_map(|key| params.remove_entry(*key));
    let asked = taken.collect();
    Ok((Model::from_keys(params)?, asked))
}

/// Whether a kind makes requests in whatever span it is given; models of traces bring their span and their length.
pub fn takes_any_span(kind: &str) -> bool {
    kind == LSM || kind == TRANSACTIONS || catalogue().iter().any(|placed| placed.name == kind)
}

/// Whether `text` names a generator (a known name, alone or before a colon) rather than a file.
pub fn is_spec(text: &str) -> bool {
    let head = text.split(':').next().unwrap_or("").trim();
    [FITTED, LSM, TRANSACTIONS].contains(&head)
        || named::find(head).is_some()
        || catalogue().iter().any(|kind| kind.name == head)
}

/// The error with line breaks and other control characters of the quoted spec escaped.
pub(crate) fn in_one_line(error: Error) -> Error {
    match error {
        Error::Input(sentence) if sentence.contains(char::is_control) => Error::Input(
            sentence
                .chars()
                .map(|c| {
                    if c.is_control() {
                        c.escape_default().to_string()
                    } else {
                        c.to_string()
                    }
                })
                .collect(),
        ),
        other => other,
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A generated workload.
pub struct Generator {
    kind: &'static str,
    body: Body,
}

enum Body {
    Placed(Box<Placed>),
    Lsm(Box<Lsm>),
    Transactions(Box<Transactions>),
    /// With the keys that say which model it is.
    Fitted(Map<String, Value>, Box<Fitted>),
}

impl Generator {
    /// The resolved spec: every key with the value in use; [`from_table`] reads it back but for `kind` (of a model that
    /// stood in the spec itself it has title and digest only).
    pub fn describe(&self) -> Value {
        let mut keys = Map::from_iter([("kind".to_owned(), self.kind.into())]);
        match &self.body {
            Body::Placed(placed) => {
                placed.common.describe(&mut keys);
                placed.pattern.describe(&mut keys);
            }
            Body::Lsm(lsm) => lsm.describe(&mut keys),
            Body::Transactions(transactions) => transactions.describe(&mut keys),
            Body::Fitted(described, fitted) => {
                keys.extend(described.clone());
                fitted.describe(&mut keys);
            }
        }
        Value::Object(keys)
    }

    pub fn arrivals(&self) -> Arrivals {
        match &self.body {
            Body::Placed(placed) => placed.common.arrivals,
            Body::Lsm(lsm) => lsm.arrivals(),
            Body::Transactions(transactions) => transactions.arrivals(),
            Body::Fitted(_, fitted) => fitted.arrivals(),
        }
    }

    /// Names of the `label` column's values; empty when the workload has none.
    pub fn labels(&self) -> &'static [&'static str] {
        match &self.body {
            Body::Placed(placed) => placed.pattern.labels(),
            Body::Lsm(lsm) => lsm.labels(),
            Body::Transactions(_) | Body::Fitted(..) => &[],
        }
    }

    /// Reads, writes and trims of the whole workload; `None` if only the run tells.
    pub fn requests(&self) -> Option<u64> {
        match &self.body {
            Body::Placed(placed) => Some(placed.common.requests),
            Body::Lsm(lsm) => Some(lsm.requests()),
            Body::Transactions(_) => None,
            Body::Fitted(_, fitted) => Some(fitted.requests()),
        }
    }

    /// A workload whose next requests depend on when its last ones complete; in batches they complete at once.
    pub fn transactions(&self) -> Option<&Transactions> {
        match &self.body {
            Body::Transactions(transactions) => Some(transactions),
            _ => None,
        }
    }

    pub fn transactions_mut(&mut self) -> Option<&mut Transactions> {
        match &mut self.body {
            Body::Transactions(transactions) => Some(transactions),
            _ => None,
        }
    }

    /// Goes on for ever, whatever `requests` or `bytes` says: for callers that stop by their own measure.
    pub fn endless(mut self) -> Self {
        self.go_on();
        self
    }

    /// The same of one that has begun.
    pub fn go_on(&mut self) {
        match &mut self.body {
            Body::Placed(placed) => placed.left = u64::MAX,
            Body::Lsm(lsm) => lsm.left = u64::MAX,
            Body::Transactions(transactions) => transactions.go_on(),
            Body::Fitted(_, fitted) => fitted.left = u64::MAX,
        }
    }
}

impl Source for Generator {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        batch.clear();
        match &mut self.body {
            Body::Placed(placed) => placed.fill(batch),
            Body::Lsm(lsm) => lsm.fill(batch),
            Body::Transactions(transactions) => transactions.fill(batch),
            Body::Fitted(_, fitted) => fitted.fill(batch),
        }
        Ok(())
    }

    fn remaining(&self) -> Option<u64> {
        let left = match &self.body {
            Body::Placed(placed) => placed.left,
            Body::Lsm(lsm) => lsm.left,
            Body::Transactions(_) => return None,
            Body::Fitted(_, fitted) => fitted.left,
        };
        (left < u64::MAX / 2).then_some(left)
    }

    fn label_names(&self) -> Vec<String> {
        self.labels().iter().map(|&name| name.to_owned()).collect()
    }
}

/// A share as a bound on 63-bit draws; 1 lies above all of them.
fn threshold(share: f64) -> u64 {
    (share * (1u64 << 63) as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::OpKind;

    pub fn all(spec: &str) -> Batch {
        let mut generator = parse(spec, 1 << 30, 4096, 7).unwrap();
        let (mut all, mut batch) = (Batch::default(), Batch::default());
        loop {
            generator.next_batch(&mut batch).unwrap();
            if batch.is_empty() {
                return all;
            }
            for i in 0..batch.len() {
                crate::rows::append(&mut all, &batch, i);
            }
        }
    }

    fn refused(spec: &str) -> String {
        parse(spec, 1 << 30, 4096, 7).err().unwrap().to_string()
    }

    #[test]
    fn shares_sizes_and_bounds_are_as_asked_for_every_kind() {
        for kind in catalogue() {
            let spec = format!(
                "{}:read=0.7,trim=0.05,size=4KiB*0.6/16KiB*0.4,span=0.5,requests=1e5",
                kind.name
            );
            let batch = all(&spec);
            assert_eq!(batch.len(), 100_000, "{spec}");
            let share = |op| batch.op.iter().filter(|&&o| o == op).count() as f64 / 1e5;
            // Three standard deviations of a share of 0.7 in 1e5 draws are 0.0044.
            assert!((share(OpKind::Read) - 0.7).abs() < 0.0044, "{spec}");
            assert!((share(OpKind::Trim) - 0.05).abs() < 0.0021, "{spec}");
            let small = batch.length.iter().filter(|&&l| l == 4096).count() as f64 / 1e5;
            assert!((small - 0.6).abs() < 0.0047, "{spec}");
            assert!(batch.length.iter().all(|&l| l == 4096 || l == 16384));
            assert!(batch.offset.iter().all(|o| o % 4096 == 0), "{spec}");
            let end = (0..batch.len())
                .map(|i| batch.offset[i] + u64::from(batch.length[i]))
                .max();
            assert!(end <= Some(1 << 29), "{spec}: {end:?}");
        }
    }

    #[test]
    fn a_workload_has_at_least_one_request() {
        for spec in ["uniform:requests=0", "lsm:requests=0", "financial1:requests=0"] {
            let said = refused(spec);
            assert!(said.ends_with("`requests` = 0: expected at least one"), "{said}");
        }
        let said = refused("zipf:bytes=0x");
        assert_eq!(said, "workload `zipf`: `bytes` = 0x: expected at least one request's");
    }

    #[test]
    fn a_spec_repeats_and_another_seed_differs() {
        for kind in catalogue() {
            let spec = format!("{}:read=0.5,requests=5000,rate=100k", kind.name);
            assert_eq!(all(&spec), all(&spec));
            assert_ne!(all(&spec), all(&format!("{spec},seed=8")), "{spec}");
            assert_eq!(all(&spec), all(&format!("{spec},seed=7")), "{spec}");
        }
    }

    #[test]
    fn the_described_spec_gives_the_same_workload() {
        for kind in catalogue() {
            let spec = format!(
                "{}:read=0.5,requests=3000,rate=100k,arrivals=fixed,flush=100",
                kind.name
            );
            let Value::Object(mut table) = parse(&spec, 1 << 30, 4096, 7).unwrap().describe() else {
                panic!("not a table");
            };
            table.remove("kind");
            let mut again = from_table(kind.name, table, 1 << 30, 4096, 99).unwrap();
            let mut batch = Batch::default();
            again.next_batch(&mut batch).unwrap();
            let mut first = Batch::default();
            parse(&spec, 1 << 30, 4096, 7).unwrap().next_batch(&mut first).unwrap();
            assert_eq!(batch, first, "{spec}");
        }
    }

    #[test]
    fn the_share_of_reads_does_not_move_the_offsets() {
        let offsets = |read| all(&format!("uniform:read={read},requests=5000")).offset;
        assert_eq!(offsets(0.1), offsets(0.9));
    }

    #[test]
    fn arrivals_keep_their_rate() {
        let batch = all("uniform:rate=100k,requests=1e5");
        let mean = *batch.time_ns.last().unwrap() as f64 / 1e5;
        // One standard deviation of the mean of 1e5 exponential gaps of 10 us is 32 ns.
        assert!((mean - 10_000.0).abs() < 100.0, "{mean}");
        let fixed = all("uniform:rate=3e6,arrivals=fixed,requests=3001");
        assert!(fixed.time_ns[3000].abs_diff(1_000_000) <= 1);
        assert!(batch.time_ns.is_sorted());
        assert!(all("uniform:qd=4,requests=10").time_ns.iter().all(|&t| t == 0));
    }

    #[test]
    fn flushes_come_behind_writes() {
        let batch = all("uniform:flush=10,requests=1000");
        assert_eq!(batch.op.iter().filter(|&&op| op == OpKind::Flush).count(), 100);
        assert_eq!(batch.op[10], OpKind::Flush);
        assert_eq!(batch.len(), 1100);
    }

    #[test]
    fn bytes_are_counted_in_capacities() {
        let generator = parse("uniform:bytes=2x", 1 << 30, 4096, 1).unwrap();
        assert_eq!(generator.requests(), Some(2 * (1 << 30) / 4096));
        assert_eq!(parse("uniform", 1 << 30, 4096, 1).unwrap().requests(), Some(8 << 18));
        assert_eq!(
            parse("uniform:bytes=1MiB", 1 << 30, 4096, 1).unwrap().requests(),
            Some(256)
        );
    }

    #[test]
    fn toml_and_one_line_mean_the_same() {
        let toml = "kind = \"zipf\"\nread = 0.3\nsize = \"8KiB\"\nrequests = 5000\n";
        assert_eq!(all(toml), all("zipf:read=0.3,size=8KiB,requests=5000"));
    }

    #[test]
    fn wrong_specs_say_what_was_expected() {
        for (spec, words) in [
            ("uniforn", "unknown workload kind `uniforn`; did you mean `uniform`?"),
            ("uniform:requsts=5", "did you mean `requests`?"),
            ("uniform:theta=0.5", "unknown key of `uniform` `theta`"),
            ("uniform:read=1.5", "`read` = 1.5: expected a share from 0 to 1"),
            ("uniform:read=0.7,trim=0.7", "more than 1"),
            ("uniform:size=4096", "a size such as"),
            (
                "correlated:region=1e4",
                "`region`: `10000` is not a size such as \"4KiB\" or \"1TB\": it has no unit",
            ),
            ("uniform:size=4KiB*0.6/8KiB*0.6", "add up to 1"),
            ("uniform:size=2GiB", "expected at most"),
            ("uniform:span=2GiB", "the drive has"),
            ("uniform:qd=4,rate=5", "either"),
            ("uniform:requests=5,bytes=1x", "either"),
            ("uniform:rate=0", "more than 0"),
            ("uniform:requests", "key=value"),
            ("hotcold:hot=0.2", "such as 0.2/0.8"),
            ("kind = 3", "needs the key `kind`"),
            ("kind = \"uniform\"\nread = = 3", "line 2"),
        ] {
            assert!(refused(spec).contains(words), "{spec}: {}", refused(spec));
        }
    }
}
