//! Transformers of request streams: one file per filter, one line each in the catalogue.
//!
//! A filter is written on one line, `NAME[:key=value,...]`; a value may hold commas itself (`only:op=read,write`).
//! Several filters work one after the other, in the order given. They see the stream before it is fitted to a drive.
//! Times are in nanoseconds since the trace's start. Addresses are in bytes, with the trace's devices laid out as
//! `--volumes` says.
//!
//! Requests stay in order of time. Stream, program context, process, label and content of a request stay with it and
//! with each of its parts; a content id stands for 4 KiB, and a part keeps the ids of the units that begin in it.

pub mod align;
pub mod compact;
#[cfg(test)]
mod conformance;
pub mod dedup_rows;
mod frame;
pub mod head;
pub mod interleave;
mod limits;
pub mod lru;
pub mod max_gap;
mod merge;
pub mod merge_adjacent;
mod named;
pub mod none;
pub mod only;
mod page_cache;
pub mod raid;
pub mod repeat;
pub mod sample;
pub mod scale;
pub mod sequential;
pub mod shift;
pub mod skip;
pub mod split;
mod tally;
#[cfg(test)]
pub(crate) mod testing;
pub mod volume;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ftlab_core::catalogue as core_catalogue;
use ftlab_core::{Batch, Error, Result, Source, error};
use serde::Serialize;
use serde_json::{Map, Value};

pub use frame::{Edit, Rewrite, Stage, Upstream};
pub use tally::Amounts;

use crate::Scan;
pub use crate::open::survey;
use crate::synth::{Keys, in_one_line};
use tally::{Tallied, Tally};

/// One kind of filter.
pub struct Kind {
    /// Its name in a spec, which is also its file's name.
    pub name: &'static str,
    source: &'static str,
    new: fn(&mut Keys, &Context) -> Result<Stage>,
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

/// All filters.
pub fn catalogue() -> &'static [Kind] {
    kinds!(
        none,
        lru,
        scale,
        max_gap,
        compact,
        shift,
        sequential,
        head,
        skip,
        repeat,
        sample,
        only,
        volume,
        align,
        split,
        merge_adjacent,
        dedup_rows,
        interleave,
        raid,
    )
}

impl Kind {
    /// The head of its file, as Markdown.
    pub fn documentation(&self) -> String {
        core_catalogue::documentation(self.source)
    }

    /// The keys in the table of the documentation.
    fn keys(&self) -> impl Iterator<Item = &'static str> {
        let row = |line: &'static str| line.strip_prefix("//! | `")?.split_once('`').map(|(key, _)| key);
        self.source.lines().filter_map(row)
    }

    /// The first sentence of the documentation.
    pub fn summary(&self) -> String {
        core_catalogue::summary(self.source)
    }
}

/// Opens the unfiltered stream once more, from its start.
pub type Again = Arc<dyn Fn() -> Result<Box<dyn Source>> + Send + Sync>;

/// What filters know beside their own keys.
#[derive(Clone)]
pub struct Context {
    /// The drive's mapping unit (a power of two of at least 256), where there is a drive.
    unit_bytes: u32,
    /// Where a spec has no `seed`.
    seed: u64,
    /// `None`: the stream can be read once only.
    again: Option<Again>,
    /// What was found out about streams by reading them, by the filters in front.
    surveys: Arc<Mutex<BTreeMap<String, Arc<Scan>>>>,
}

impl Context {
    /// For a stream that can be read once only, such as standard input.
    pub fn once(unit_bytes: u32, seed: u64) -> Self {
        Context {
            unit_bytes,
            seed,
            again: None,
            surveys: Arc::default(),
        }
    }

    /// For a stream that `again` opens as often as it is called. The context belongs to that one stream.
    pub fn repeatable(unit_bytes: u32, seed: u64, again: Again) -> Self {
        Context {
            again: Some(again),
            ..Context::once(unit_bytes, seed)
        }
    }
}

/// A stream behind filters, which knows what each of them let through.
pub struct Filtered {
    last: Box<dyn Source>,
    /// One in front of each filter, and one behind the last.
    tallies: Vec<Arc<Tally>>,
    specs: Vec<String>,
    notes: Vec<Vec<String>>,
}

/// What one filter did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FilterReport {
    /// As written.
    pub filter: String,
    /// What its keys came to for this stream.
    pub notes: Vec<String>,
    /// What reached it.
    #[serde(rename = "in")]
    pub taken: Amounts,
    /// What it let through or made.
    #[serde(rename = "out")]
    pub given: Amounts,
}

/// Checks that every spec names a filter and keys that it has; nothing is opened.
pub fn check(specs: &[String]) -> Result<()> {
    let context = Context::once(4096, 0);
    specs.iter().try_for_each(|spec| parse(spec, &context).map(drop))
}

/// The stream behind the filters of `specs`, in this order.
pub fn apply(specs: &[String], source: Box<dyn Source>, context: &Context) -> Result<Filtered> {
    // All are parsed before any is opened: a misspelt last one must not wait for the first one's survey.
    let stages: Vec<(&'static str, Stage)> = specs.iter().map(|spec| parse(spec, context)).collect::<Result<_>>()?;
    let first = Arc::<Tally>::default();
    let mut filtered = Filtered {
        last: Box::new(Tallied::new(source, first.clone())),
        tallies: vec![first],
        specs: specs.to_vec(),
        notes: Vec::new(),
    };
    for (k, (name, stage)) in stages.into_iter().enumerate() {
        let mut upstream = Upstream::new(filtered.last, name, &specs[..k], context);
        let source = stage(&mut upstream)?;
        filtered.notes.push(upstream.notes);
        let tally = Arc::<Tally>::default();
        filtered.last = Box::new(Tallied::new(source, tally.clone()));
        filtered.tallies.push(tally);
    }
    Ok(filtered)
}

impl Filtered {
    /// What each filter did so far.
    pub fn reports(&self) -> Vec<FilterReport> {
        let both = self.tallies.windows(2).zip(self.specs.iter().zip(&self.notes));
        both.map(|(sides, (spec, notes))| FilterReport {
            filter: spec.clone(),
            notes: notes.clone(),
            taken: sides[0].amounts(),
            given: sides[1].amounts(),
        })
        .collect()
    }
}

impl Source for Filtered {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        self.last.next_batch(batch)
    }

    fn remaining(&self) -> Option<u64> {
        self.last.remaining()
    }

    fn volume_names(&self) -> Vec<String> {
        self.last.volume_names()
    }

    fn label_names(&self) -> Vec<String> {
        self.last.label_names()
    }
}

fn parse(spec: &str, context: &Context) -> Result<(&'static str, Stage)> {
    resolve(spec, context).map_err(in_one_line)
}

fn resolve(spec: &str, context: &Context) -> Result<(&'static str, Stage)> {
    let (name, values) = written(spec)?;
    let names: Vec<&str> = catalogue().iter().map(|kind| kind.name).collect();
    let kind = catalogue().iter().find(|kind| kind.name == name);
    if name == "sort" {
        let why = "filters see times that never go back";
        return Err(Error::input(format!(
            "filter `sort`: {why}: expected `--order time` instead"
        )));
    }
    let kind = kind.ok_or_else(|| error::unknown("filter", &name, &names))?;
    let mut keys = Keys::new("filter", kind.name, values);
    let made = (kind.new)(&mut keys, context);
    if made.is_err() {
        // A filter that refuses one key takes none behind it.
        keys.pass_over(kind.keys());
    }
    // A misspelt key says more than what is missing because of it.
    keys.finish()?;
    Ok((kind.name, made?))
}

/// Name and keys of a spec. A piece between commas that has no `=` belongs to the value before it.
fn written(spec: &str) -> Result<(String, Map<String, Value>)> {
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let mut pairs: Vec<(String, String)> = Vec::new();
    for piece in rest.split(',').map(str::trim).filter(|piece| !piece.is_empty()) {
        match (piece.split_once('='), pairs.last_mut()) {
            (Some((key, value)), _) => pairs.push((key.trim().to_owned(), value.trim().to_owned())),
            (None, Some((_, value))) => *value = format!("{value},{piece}"),
            (None, None) => {
                return Err(Error::input(format!(
                    "`{piece}` in filter `{spec}`: expected key=value"
                )));
            }
        }
    }
    let mut values = Map::new();
    for (key, value) in pairs {
        if values.insert(key.clone(), Value::String(value)).is_some() {
            return Err(Error::input(format!("filter `{spec}`: `{key}` is given twice")));
        }
    }
    Ok((name.trim().to_owned(), values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(spec: &str) -> String {
        check(&[spec.to_owned()]).unwrap_err().to_string()
    }

    #[test]
    fn misspelt_names_and_keys_are_refused_with_the_nearest() {
        assert!(refused("lrus").contains("unknown filter `lrus`; did you mean `lru`?"));
        assert!(refused("head:request=5").contains("unknown key of `head` `request`; did you mean `requests`?"));
        assert!(refused("head:5").contains("`5` in filter `head:5`: expected key=value"));
        assert!(refused("lru:share=0.1,share=0.2").contains("`share` is given twice"));
        assert!(refused("lru:share=2").contains("filter `lru`: `share` = 2"));
        assert!(refused("scale:speed=x").contains("filter `scale`: `speed` = x"));
        assert!(refused("he\nad").contains(r"he\nad"));
    }

    #[test]
    fn the_wrong_key_is_named_whatever_is_given_beside_it() {
        assert!(refused("sample:rate=2,by=page").contains("`rate` = 2"));
        assert!(refused("repeat:times=0,gap=1s").contains("`times` = 0"));
        assert!(refused("sequential:pointer=operation,span=1").contains("`span`"));
        // A misspelt one comes first, among all that there are.
        let misspelt = refused("sample:rate=2,buy=page");
        assert!(misspelt.contains("`buy`; did you mean `by`?"), "{misspelt}");
        assert!(misspelt.contains("(known: rate, by, unit, seed)"), "{misspelt}");
    }

    #[test]
    fn a_value_may_hold_commas() {
        let (name, values) = written("only:op=read,write,pid=7").unwrap();
        assert_eq!(
            (name.as_str(), &values["op"], &values["pid"]),
            ("only", &"read,write".into(), &"7".into())
        );
    }

    #[test]
    fn every_filter_has_a_page_and_says_what_it_leaves_out() {
        for kind in catalogue() {
            let page = kind.documentation();
            for heading in ["# Model", "# Parameters", "# Not modelled", "# Source"] {
                assert!(page.contains(heading), "{}: {heading}", kind.name);
            }
        }
    }
}
