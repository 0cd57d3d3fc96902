//! What is lost in writing, counted.

use std::collections::BTreeMap;

use ftlab_core::{Batch, OpKind, units};
use serde::Serialize;

use super::holds::{ALL_FLAGS, Content, Holds, LabelNames, VolumeNames};

/// One thing that a form could not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// "trims left out", "times rounded down to 1 us".
    pub what: String,
    /// Requests it happened to; for "volumes renamed" and "labels respelled" names.
    pub count: u64,
    /// Why, and what became of them.
    pub detail: String,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ({})", self.what, self.count, self.detail)
    }
}

/// Kinds of losses, in the order in which they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Reads,
    Writes,
    Trims,
    Flushes,
    Operations,
    Empty,
    WithoutContent,
    Beyond,
    Rounded,
    Cut,
    Late,
    Times,
    Flags,
    Merged,
    Renamed,
    Streams,
    Contexts,
    Processes,
    MadeUpProcesses,
    Labels,
    Respelled,
    Contents,
    Chunks,
}

/// Counts by kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    counts: BTreeMap<Kind, u64>,
}

impl Losses {
    pub fn add(&mut self, kind: Kind, count: u64) {
        if count > 0 {
            *self.counts.entry(kind).or_default() += count;
        }
    }

    pub fn left_out(&mut self, op: OpKind) {
        self.add([Kind::Reads, Kind::Writes, Kind::Trims, Kind::Flushes][op as usize], 1);
    }

    /// What the columns of a batch that is about to be written lose.
    pub fn columns(&mut self, batch: &Batch, holds: &Holds) {
        let n = batch.len() as u64;
        if !holds.tells_operations {
            self.add(Kind::Operations, n);
        }
        match holds.tick_ns {
            Some(1) => {}
            Some(tick) => self.count(Kind::Times, &batch.time_ns, |t| !t.is_multiple_of(tick)),
            None => self.count(Kind::Times, &batch.time_ns, |&t| t != 0),
        }
        if holds.flags & holds.flush_flags != ALL_FLAGS {
            let held = |op: OpKind| {
                if op == OpKind::Flush {
                    holds.flush_flags
                } else {
                    holds.flags
                }
            };
            let lost = batch
                .flags
                .iter()
                .zip(&batch.op)
                .filter(|&(&f, &op)| f & ALL_FLAGS & !held(op) != 0);
            self.add(Kind::Flags, lost.count() as u64);
        }
        if holds.volumes == VolumeNames::One {
            self.count(Kind::Merged, &batch.volume, |&v| v != 0);
        }
        if !holds.stream {
            self.count(Kind::Streams, &batch.stream, |&s| s != 0);
        }
        if !holds.pc {
            self.count(Kind::Contexts, &batch.pc, |&pc| pc != 0);
        }
        if !holds.pid {
            self.add(Kind::Processes, batch.pid.len() as u64);
        }
        if holds.needs_pid && batch.pid.is_empty() {
            self.add(Kind::MadeUpProcesses, n);
        }
        if holds.label == LabelNames::None {
            self.add(Kind::Labels, batch.label.len() as u64);
        }
        if holds.content == Content::None {
            let with_ids = (0..batch.content_end.len()).filter(|&i| !batch.content_of(i).is_empty());
            self.add(Kind::Contents, with_ids.count() as u64);
        } else if !holds.chunks {
            let with_ids = (0..batch.len()).filter(|&i| batch.chunks_of(i).iter().any(|&id| id != 0));
            self.add(Kind::Chunks, with_ids.count() as u64);
        }
    }

    fn count<T>(&mut self, kind: Kind, column: &[T], lost: impl Fn(&T) -> bool) {
        self.add(kind, column.iter().map(|value| u64::from(lost(value))).sum());
    }

    /// The losses that happened, in words.
    pub fn list(&self, form: &str, holds: &Holds) -> Vec<Loss> {
        let all = self.counts.iter().map(|(&kind, &count)| {
            let (what, detail) = words(kind, form, holds);
            Loss { what, count, detail }
        });
        all.collect()
    }
}

fn words(kind: Kind, form: &str, holds: &Holds) -> (String, String) {
    let only = || format!("{form} has {}", holds.operations_sentence());
    let no = |what: &str| format!("{form} has no {what}");
    let (what, detail) = match kind {
        Kind::Reads => ("reads left out".to_owned(), only()),
        Kind::Writes => ("writes left out".to_owned(), only()),
        Kind::Trims => ("trims left out".to_owned(), only()),
        Kind::Flushes => ("flushes left out".to_owned(), only()),
        Kind::Operations => (
            "operations not told".to_owned(),
            "a read is written like a write".to_owned(),
        ),
        Kind::Empty => (
            "requests of no bytes left out".to_owned(),
            "every request covers a byte".to_owned(),
        ),
        Kind::WithoutContent => (
            "requests without content ids left out".to_owned(),
            format!("{form} needs an id for each 4 KiB"),
        ),
        Kind::Beyond => (
            format!("requests beyond {} left out", units::show_bytes(holds.end)),
            format!("{form} has no larger addresses"),
        ),
        Kind::Rounded => (
            format!(
                "offsets rounded out to {}",
                units::show_bytes(holds.address_unit.max(holds.length_unit).into())
            ),
            "both ends were moved outwards, so that the same bytes are covered".to_owned(),
        ),
        Kind::Cut => (
            format!(
                "requests longer than {} cut into parts",
                units::show_bytes(holds.longest.into())
            ),
            "the parts follow each other at the same time".to_owned(),
        ),
        Kind::Late => (
            format!("times beyond {} s set to it", holds.latest_ns / 1_000_000_000),
            format!("{form} has no later times"),
        ),
        Kind::Times => match holds.tick_ns {
            Some(tick) => (
                format!("times rounded down to {}", show_tick(tick)),
                "the order is kept".to_owned(),
            ),
            None => ("times left out".to_owned(), no("times")),
        },
        Kind::Flags => (
            "flags left out".to_owned(),
            "FUA, synchronous or metadata marks".to_owned(),
        ),
        Kind::Merged => (
            "volumes merged".to_owned(),
            format!(
                "{}; addresses of different volumes overlap unless they were laid side by side",
                no("volumes")
            ),
        ),
        Kind::Renamed => ("volumes renamed".to_owned(), format!("{form} cannot spell their names")),
        Kind::Streams => ("streams left out".to_owned(), no("place for them")),
        Kind::Contexts => ("program contexts left out".to_owned(), no("place for them")),
        Kind::Processes => ("process ids left out".to_owned(), no("place for them")),
        Kind::MadeUpProcesses => (
            "process ids made up".to_owned(),
            format!("{form} needs one for each request, and the trace has none: 0"),
        ),
        Kind::Labels => ("labels left out".to_owned(), no("place for them")),
        Kind::Respelled => (
            "labels respelled".to_owned(),
            format!("{form} has no blanks or signs in their names"),
        ),
        Kind::Contents => ("content ids left out".to_owned(), no("place for them")),
        Kind::Chunks => (
            "ids of chunks of 1 KiB left out".to_owned(),
            format!("{form} has ids of 4 KiB only"),
        ),
    };
    (what, detail)
}

fn show_tick(ns: u64) -> String {
    let (unit, name) = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")]
        .into_iter()
        .find(|(unit, _)| ns.is_multiple_of(*unit))
        .unwrap_or((1, "ns"));
    format!("{} {name}", ns / unit)
}
