//! PCDedup: fingerprints only for the program contexts that write duplicates.
//!
//! # Model
//! A context is identified by the call path of the write (`by = pc`). The **table of contexts** holds, for each
//! context, the units that it wrote and its *worth*: 1 for each duplicate that it wrote, and 1 for each duplicate that
//! another context wrote of data that this one had stored. Worth and units are halved after every `halve` host units.
//! Units of unknown contents and hinted ones (below) count for neither: a context that wrote nothing else is not in the
//! table, nor among the `contexts` of the report. What a context writes while it is on the blacklist is not counted either.
//! `halve` and `reexamine` go by all host units.
//! * A context on the **blacklist** is not hashed.
//! * A context enters the blacklist when it has written `trial` units or more and its worth is less than `rate` of
//!   them. It also enters when it has written as many and the last of its fingerprints was evicted for another
//!   context's.
//! * After `reexamine` host units it leaves the blacklist for a new trial, with its counts at zero.
//! * A full table of fingerprints evicts the least recent fingerprint of the context with the lowest worth (`eviction =
//!   contexts`), of equal ones that which was seen first. With another `eviction` the table is that of `page_dedup`; `two_level` is the source's "2-level LRU".
//!
//! **Hints**: units that the host marks are neither hashed nor shared: file-system metadata (`skip_metadata`: copies of a superblock are
//! there to survive each other), or files with a label (`skip_labels`).
//!
//! # Parameters
//! * `by` (`pc`, `label`, `pid`, `stream` or `volume`, default `pc`): what identifies a context; all writes without one
//!   share one context.
//! * `entries` (count, default 65,536; 0: any number), `eviction` (`contexts`, `lru`, `count` or `two_level`, default `contexts`),
//!   `second` (share, default 0.5): the table of fingerprints.
//! * `blacklist` (bool, default true).
//! * `trial` (count, default 1,000), `rate` (share, default 0.02), `halve` (host units, default 100,000; 0: never), `reexamine` (host
//!   units, default 1,000,000; 0: never).
//! * `prefetch` (bool, default false): as in `page_dedup`.
//! * `skip_metadata` (bool, default false), `skip_labels` (numbers of labels joined by `-`, default none; numbered from 0
//!   in the order in which the workload first has them).
//! * `hash_us` (µs, default 10), `hash_units` (count, default 1): time of a fingerprint, and engines that compute them side by side.
//!
//! # Not modelled
//! A table of fingerprints in flash behind the one in memory. Collisions.
//!
//! # Errors
//! Shares outside 0 to 1, 0 engines, labels that are not numbers.
//!
//! # Cost
//! O(log contexts) a unit; 40 bytes a fingerprint, 24 bytes a context.
//!
//! # Source
//! Kim's dissertation on program contexts in flash storage (Seoul National University 2019), sections 5.2 and 6.2.3,
//! figures 18, 20, 21 and 24. `trial`, `rate`, `halve` and `reexamine` are ours, and so is counting duplicates that
//! others write towards a context's worth. The source says only that contexts with a low rate, and those without
//! entries, are no longer hashed.

use ftlab_core::{Error, Lpn, Result};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fingerprints::{Eviction, Fingerprints, Left, Room};
use super::hashing::Hashing;
use super::units::{Looked, SavedUnits, Units};
use super::{Alone, AloneWrite, Decision, DedupPolicy, DedupWrite, Event, Setup, Work};
use crate::indirection::Of;
use crate::request::WriteContext;
use crate::{Now, learnt};
use ftlab_core::request::flags;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Pc,
    Label,
    Pid,
    Stream,
    Volume,
}

impl By {
    fn of(self, write: &WriteContext) -> u64 {
        let optional = |number: Option<u64>| number.map_or(0, |number| number + 1);
        match self {
            By::Pc => write.pc,
            By::Label => optional(write.label.map(u64::from)),
            By::Pid => optional(write.pid.map(u64::from)),
            By::Stream => u64::from(write.stream),
            By::Volume => u64::from(write.volume),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub by: By,
    pub entries: u32,
    pub eviction: Eviction,
    pub second: f64,
    pub blacklist: bool,
    pub trial: u64,
    pub rate: f64,
    pub halve: u64,
    pub reexamine: u64,
    pub prefetch: bool,
    pub skip_metadata: bool,
    pub skip_labels: Labels,
    pub hash_us: f64,
    pub hash_units: u16,
}

/// One number, or several joined by `-`, as it was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(Value);

impl Labels {
    fn numbers(&self) -> Result<Vec<u16>> {
        let text = match &self.0 {
            Value::String(text) if text.is_empty() => return Ok(Vec::new()),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let number = |part: &str| {
            let fault = || {
                Error::input(format!(
                    "dedup policy `pcdedup`: skip_labels = {text}: `{part}` is no label's number: expected numbers from 0 to 65535 \
                     joined by `-`"
                ))
            };
            part.parse().map_err(|_| fault())
        };
        text.split('-').map(number).collect()
    }
}

impl Default for Params {
    fn default() -> Self {
        Params {
            by: By::Pc,
            entries: 65_536,
            eviction: Eviction::Contexts,
            second: 0.5,
            blacklist: true,
            trial: 1_000,
            rate: 0.02,
            halve: 100_000,
            reexamine: 1_000_000,
            prefetch: false,
            skip_metadata: false,
            skip_labels: Labels(Value::String(String::new())),
            hash_us: 10.0,
            hash_units: 1,
        }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn DedupPolicy>> {
    if !(0.0..=1.0).contains(&params.rate) {
        return Err(Error::input(format!(
            "dedup policy `pcdedup`: rate = {}, expected 0 to 1",
            params.rate
        )));
    }
    let room = Room {
        entries: params.entries,
        eviction: params.eviction,
        second: params.second,
    };
    Ok(Box::new(PcDedup {
        hashing: Hashing::new("pcdedup", params.hash_us, params.hash_units)?,
        units: Units::new("pcdedup", room)?.prefetching(params.prefetch),
        skip_labels: params.skip_labels.numbers()?,
        numbers: FxHashMap::default(),
        last: 0,
        learnt: Learnt::default(),
        params,
    }))
}

struct PcDedup {
    params: Params,
    hashing: Hashing,
    units: Units,
    skip_labels: Vec<u16>,
    /// Contexts as they are numbered in the tables, in the order in which they first wrote.
    numbers: FxHashMap<u64, u32>,
    /// Number of the context that wrote last.
    last: u32,
    learnt: Learnt,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Learnt {
    contexts: Vec<Context>,
    halved_at: u64,
    skipped: u64,
    hinted: u64,
    blacklisted: u64,
}

/// What is known of a context since its trial began.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Context {
    name: u64,
    units: u64,
    worth: u64,
    blacklisted: Option<u64>,
}

impl PcDedup {
    fn number_of(&mut self, name: u64) -> u32 {
        let contexts = &mut self.learnt.contexts;
        // Most requests are of the context of the one before.
        if contexts.get(self.last as usize).is_some_and(|last| last.name == name) {
            return self.last;
        }
        self.last = *self.numbers.entry(name).or_insert_with(|| {
            contexts.push(Context {
                name,
                units: 0,
                worth: 0,
                blacklisted: None,
            });
            contexts.len() as u32 - 1
        });
        self.last
    }

    fn is_hinted(&self, write: &WriteContext) -> bool {
        (self.params.skip_metadata && write.flags & flags::METADATA != 0)
            || write.label.is_some_and(|label| self.skip_labels.contains(&label))
    }

    /// Also when units of unknown contents, which are not asked about, have been written for several periods.
    fn halve_when_due(&mut self, tick: u64) {
        let Some(periods) = (tick - self.learnt.halved_at).checked_div(self.params.halve) else {
            return;
        };
        self.learnt.halved_at += periods * self.params.halve;
        for _ in 0..periods.min(u64::from(u64::BITS)) {
            for context in &mut self.learnt.contexts {
                context.units /= 2;
                context.worth /= 2;
            }
            self.units.table.halve();
        }
    }

    /// Whether units of the context are hashed.
    fn is_hashed(&mut self, number: u32, tick: u64) -> bool {
        let context = &mut self.learnt.contexts[number as usize];
        let Some(since) = context.blacklisted else {
            return true;
        };
        if self.params.reexamine == 0 || tick - since < self.params.reexamine {
            return false;
        }
        (context.units, context.worth, context.blacklisted) = (0, 0, None);
        self.units.table.forget_worth(number);
        true
    }

    /// The number of the context if the unit is hashed.
    #[inline]
    fn hashed_for(&mut self, writer: &WriteContext, tick: u64) -> Option<u32> {
        self.halve_when_due(tick);
        if self.is_hinted(writer) {
            self.learnt.hinted += 1;
            self.units.pass();
            return None;
        }
        let number = self.number_of(self.params.by.of(writer));
        if !self.is_hashed(number, tick) {
            self.learnt.skipped += 1;
            self.units.pass();
            return None;
        }
        self.learnt.contexts[number as usize].units += 1;
        Some(number)
    }

    /// Where the content of a unit lies that a context writes, if it is found.
    #[inline]
    fn look_up(&mut self, content: u64, number: u32, tick: u64) -> Option<Of> {
        let of = match self.units.look_up(content, number) {
            Looked::Shared { of, context, left } => {
                self.credit(number);
                if context != number {
                    self.credit(context);
                }
                self.left(left, tick);
                Some(of)
            }
            Looked::New => None,
        };
        self.judge(number, tick, false);
        of
    }

    fn credit(&mut self, number: u32) {
        self.learnt.contexts[number as usize].worth += 1;
        self.units.table.credit(number);
    }

    /// Puts the context onto the blacklist if its trial is over and it has failed, or has `lost` its last fingerprint.
    fn judge(&mut self, number: u32, tick: u64, lost: bool) {
        let context = &mut self.learnt.contexts[number as usize];
        let is_tried = self.params.blacklist && context.blacklisted.is_none() && context.units >= self.params.trial;
        if is_tried && (lost || (context.worth as f64) < self.params.rate * context.units as f64) {
            context.blacklisted = Some(tick);
            self.learnt.blacklisted += 1;
        }
    }

    /// A fingerprint had to leave.
    fn left(&mut self, left: Option<Left>, tick: u64) {
        if let Some(left) = left
            && self.units.table.entries_of(left.context) == 0
        {
            self.judge(left.context, tick, true);
        }
    }
}

impl DedupPolicy for PcDedup {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let mut report = vec![("hashes", self.hashing.count as f64)];
        report.extend(self.units.report());
        let is_listed = |context: &&Context| context.blacklisted.is_some();
        report.extend([
            ("skipped_by_context", self.learnt.skipped as f64),
            ("skipped_by_hint", self.learnt.hinted as f64),
            ("contexts", self.learnt.contexts.len() as f64),
            (
                "blacklisted",
                self.learnt.contexts.iter().filter(is_listed).count() as f64,
            ),
            ("blacklistings", self.learnt.blacklisted as f64),
        ]);
        report
    }

    fn fingerprints(&self) -> Option<&Fingerprints> {
        Some(&self.units.table)
    }

    fn write(&mut self, write: &DedupWrite<'_>, works: &mut Vec<Work>) -> Decision {
        let tick = write.now.tick;
        let Some(number) = self.hashed_for(write.context, tick) else {
            return Decision::Store;
        };
        self.hashing.hash(works);
        let of = self.look_up(write.content, number, tick);
        of.map_or(Decision::Store, Decision::Share)
    }

    fn write_alone(&mut self, write: AloneWrite<'_>) -> (Alone, u64) {
        let AloneWrite { content, writer, tick } = write;
        let Some(number) = self.hashed_for(writer, tick) else {
            return (Alone::Store, 0);
        };
        let ns = self.hashing.hash_alone();
        let of = self.look_up(content, number, tick);
        (of.map_or(Alone::Store, Alone::Share), ns)
    }

    fn asks_reads(&self) -> bool {
        self.units.prefetches()
    }

    fn read(&mut self, of: Of, now: Now) {
        let left = self.units.read(of);
        self.left(left, now.tick);
    }

    fn on(&mut self, event: Event, now: Now) {
        let left = self.units.on(event);
        self.left(left, now.tick);
    }

    fn replaced(&mut self, lpn: Lpn, now: Now) {
        let left = self.units.replaced(lpn);
        self.left(left, now.tick);
    }

    fn forget(&mut self) {
        self.units.forget();
        self.numbers.clear();
        self.learnt.contexts.clear();
    }

    fn memory_bytes(&self) -> u64 {
        self.units.table.bytes() + 24 * self.learnt.contexts.len() as u64
    }

    fn contents(&self) -> Vec<(Of, u64)> {
        self.units.contents()
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&(self.hashing.count, self.units.to_saved(), &self.learnt))
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        type Saved = (u64, SavedUnits, Learnt);
        let (hashes, units, learnt): Saved = learnt::load(saved)?;
        self.hashing.count = hashes;
        self.units.take_over(units)?;
        let named = learnt.contexts.iter().enumerate();
        self.numbers = named.map(|(number, context)| (context.name, number as u32)).collect();
        self.learnt = learnt;
        Ok(())
    }
}
