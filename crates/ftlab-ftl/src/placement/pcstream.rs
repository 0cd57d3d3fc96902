//! PCStream: a write goes to the stream of its program context, and contexts with similar lifetimes share a stream.
//!
//! # Model
//! Time is counted in mapping units that the host has written.
//! * **Live table**: for each range of `range_kib` of the address space, what was written into it: a record (context,
//!   time) for each context, the time being the mean over its requests. It takes 12 bytes for each range and each
//!   record, at most `live_mib`; beyond that the least recently written range is evicted.
//! * **Lifetimes**: a request that overwrites units of a range ends the range's oldest record. The lifetime of the
//!   record's context takes a sample, the present time less the record's time, and the record is removed. Then the new
//!   request is recorded. A trim gives a sample likewise, once for the units of a range that are trimmed with no write
//!   between them. The first eight samples of a context are averaged; each later one has a weight of an eighth.
//! * **Streams**: k-means on the lifetimes of the contexts (at most 100 rounds, from evenly spaced quantiles) makes
//!   `streams` clusters; stream 1 has the shortest lifetimes. With no more contexts than streams, each context has its
//!   own stream. Clustering is repeated when a tenth of the contexts are new or have changed their lifetime by more
//!   than a tenth since the last time. It is also repeated after 65,536 units if contexts without a stream were left.
//! * **A write** goes to its context's stream. A write goes to stream 0 if its context has no stream yet, or if it has
//!   no context.
//! * **Attribute table**: `contexts` of them are remembered at 12 bytes each (0: all); beyond that the context that
//!   wrote longest ago is evicted. 340 contexts are 4 KB, 1,020 are 12 KB. With `emptied` it is emptied whenever a
//!   process writes that has not written before; what lies in the live table stays there.
//!
//! Stream *i* is frontier *i*. The drive places survivors. `gc.survivors = internal` gives each stream an internal one,
//! as in the source.
//!
//! # Parameters
//! * `streams` (count, default 8, 1 to 4,095): besides the default stream.
//! * `range_kib` (KiB, default 1024): one mapping unit makes the table exact.
//! * `live_mib` (MiB, default 64), `contexts` (count, default 0: all).
//! * `emptied` (bool, default false): where processes follow each other, the end of one is the start of the next; the
//!   source empties its table when one ends, to show what a table that is kept is good for. Of a recording `pids=job`
//!   makes a process of each build, without it each compiler is one. With `censored` a context that comes back has the
//!   age of its records at once, and so a stream.
//! * `censored` (bool, default true): a context none of whose data has been invalidated yet takes the mean age of its
//!   records as its lifetime. So data that is written once does not stay in stream 0.
//! * `distance` (`linear` or `log`, default `linear`): of lifetimes.
//! * `weight` (`contexts` or `writes`, default `contexts`): what counts in a cluster.
//!
//! # Not modelled
//! The CPU time of finding a program context. Ends of processes: recordings tell of their calls only.
//!
//! # Errors
//! Parameters outside their ranges are refused, and ranges that are not a whole number of mapping units.
//!
//! # Cost
//! O(records of a range) for each range that a request touches; clustering O(contexts × rounds), with `censored` also O(records).
//!
//! # Source
//! Kim, Hahn, Lee, Kim and Kim, "Fully automatic stream management for multi-streamed SSDs using program contexts",
//! FAST 2019, and Kim's dissertation on program contexts in flash storage. Ending the oldest record, the weights of
//! samples and `censored` are ours.

use std::collections::BTreeSet;

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::chunks::{self, MOST_STREAMS};
use super::requests::Requests;
use super::{Asks, Event, HostWrite, PlacementPolicy, Setup, learnt};
use crate::Now;
use crate::frontier::Frontier;

mod contexts;
mod live;

pub(super) use contexts::Contexts;
use live::LiveTable;

/// How far two lifetimes are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distance {
    Linear,
    Log,
}

/// What counts in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    Contexts,
    Writes,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub streams: u16,
    pub range_kib: u32,
    pub live_mib: u32,
    pub contexts: u32,
    pub emptied: bool,
    pub censored: bool,
    pub distance: Distance,
    pub weight: Weight,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            streams: 8,
            range_kib: 1024,
            live_mib: 64,
            contexts: 0,
            emptied: false,
            censored: true,
            distance: Distance::Linear,
            weight: Weight::Contexts,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !(1..=MOST_STREAMS).contains(&params.streams) || params.live_mib == 0 {
        return Err(Error::input(format!(
            "placement policy `pcstream`: streams = {}, live_mib = {}; expected 1 to {MOST_STREAMS} and at least 1",
            params.streams, params.live_mib
        )));
    }
    let per_range = chunks::units_of(params.range_kib, "pcstream", setup)?;
    Ok(Box::new(PcStream {
        per_range,
        learnt: Learnt::new(&params),
        figures: Figures::default(),
        params,
    }))
}

struct PcStream {
    params: Params,
    per_range: u32,
    learnt: Learnt,
    figures: Figures,
}

#[derive(Serialize, Deserialize)]
struct Learnt {
    live: LiveTable,
    contexts: Contexts,
    /// That have written, where the table is emptied with a new one.
    processes: BTreeSet<u32>,
    requests: Requests,
    /// The range that the present request wrote last, and whether it has overwritten something of it.
    range: Option<u32>,
    has_killed: bool,
    /// Range and tick of the last trimmed unit: those of one request follow each other.
    trimmed: Option<(u32, u64)>,
}

#[derive(Default)]
struct Figures {
    writes: u64,
    to_default: u64,
    clusterings: u64,
    emptied: u64,
}

impl Learnt {
    fn new(params: &Params) -> Self {
        Learnt {
            live: LiveTable::new(u64::from(params.live_mib) << 20),
            contexts: Contexts::new(params.contexts),
            processes: BTreeSet::new(),
            requests: Requests::default(),
            range: None,
            has_killed: false,
            trimmed: None,
        }
    }
}

impl PcStream {
    /// The oldest record of `range` dies at `tick`.
    fn kill(&mut self, range: u32, tick: u64) {
        if let Some((context, written)) = self.learnt.live.take_oldest(range) {
            self.learnt.contexts.died(context, tick.saturating_sub(written) as f64);
        }
    }

    fn cluster(&mut self, tick: u64) {
        if self.params.censored {
            let ages = self.learnt.live.ages(tick);
            self.learnt.contexts.take_ages(&ages);
        }
        let (streams, distance, weight) = (self.params.streams, self.params.distance, self.params.weight);
        self.learnt.contexts.cluster(tick, streams, distance, weight);
        self.figures.clusterings += 1;
    }
}

impl PlacementPolicy for PcStream {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let Figures {
            writes,
            to_default,
            clusterings,
            emptied,
        } = self.figures;
        vec![
            ("contexts", self.learnt.contexts.len() as f64),
            ("clusterings", clusterings as f64),
            ("default_share", to_default as f64 / writes.max(1) as f64),
            ("live_ranges", self.learnt.live.ranges() as f64),
            ("live_evictions", self.learnt.live.evictions() as f64),
            ("context_evictions", self.learnt.contexts.evictions() as f64),
            ("emptied", emptied as f64),
        ]
    }

    fn host_frontiers(&self) -> Frontier {
        self.params.streams + 1
    }

    fn asks(&self) -> Asks {
        // Only whether there is an old version: a bit a unit would do.
        Asks {
            since: true,
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let (range, pc, tick) = (write.lpn.0 / self.per_range, write.context.pc, write.now.tick);
        let begins = self.learnt.requests.begins(write);
        let enters = begins || self.learnt.range != Some(range);
        if enters {
            (self.learnt.range, self.learnt.has_killed) = (Some(range), false);
        }
        if write.since.is_some() && !self.learnt.has_killed {
            self.learnt.has_killed = true;
            self.kill(range, tick);
        }
        self.figures.writes += 1;
        if pc == 0 {
            self.figures.to_default += 1;
            return 0;
        }
        if self.params.emptied
            && let Some(pid) = write.context.pid
            && self.learnt.processes.insert(pid)
            && self.learnt.processes.len() > 1
        {
            self.learnt.contexts = Contexts::new(self.params.contexts);
            self.figures.emptied += 1;
        }
        self.learnt.contexts.wrote(pc);
        if enters {
            self.learnt.live.record(range, pc, tick);
            if self.learnt.contexts.is_due(tick) {
                self.cluster(tick);
            }
        }
        let stream = self.learnt.contexts.stream_of(pc);
        self.figures.to_default += u64::from(stream == 0);
        stream
    }

    fn on(&mut self, event: Event, now: Now) {
        if let Event::Trimmed(lpn) = event {
            let trimmed = Some((lpn.0 / self.per_range, now.tick));
            if std::mem::replace(&mut self.learnt.trimmed, trimmed) != trimmed {
                self.kill(lpn.0 / self.per_range, now.tick);
            }
        }
    }

    fn forget(&mut self) {
        // The tables lie in the host's memory, which the drive's power cut takes along here.
        self.learnt = Learnt::new(&self.params);
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.learnt)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        self.learnt = learnt::load(saved)?;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.learnt.live.bytes() + self.learnt.contexts.bytes()
    }
}
