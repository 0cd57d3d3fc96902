//! ASA-FTL: hot, warm and cold pages by the time since their last write, with class borders found by clustering a sample.
//!
//! # Model
//! Time is counted in mapping units that the host has written. The recency of a write (inter-reference recency) is the time since
//! the unit was written before.
//! * **Criteria**: after every `period` write requests, k-means finds `classes` centres (at most 50 rounds, from evenly
//!   spaced quantiles) in a uniform sample of `sample` recencies of that period. It works on log₂(1 + recency) or, with
//!   `scale = linear`, on the recency itself. Before the first time all writes go to the middle class.
//! * **Host writes** go to the class with the nearest centre; the class with the smallest centre is the hottest. A
//!   first write goes to the coldest class.
//! * **Survivors** (`gc`): with `age`, a survivor whose mapping entry is cached goes to the class nearest to the time
//!   since it was written, but never to a hotter one than it comes from; a survivor whose entry is not cached goes one
//!   class colder. With `oob`, all are treated as cached, because the time is in the spare area. With `same`, they go
//!   back to the class they come from; with `cold`, to the coldest.
//!
//! Class *i* is frontier *i*, 0 the hottest. Used with a map in flash (`ftl.mapping = dftl` in the source): each entry
//! carries the time of its last write, which takes 4 more bytes in the cache and in translation pages of `dftl`,
//! `tpftl`, `cdftl` and `cpftl`. With the whole map in memory every entry is cached.
//!
//! # Parameters
//! * `classes` (count, default 3, 2 to 16), `sample` (count, default 100), `period` (write requests, default 5000).
//! * `scale` (`log` or `linear`, default `log`), `gc` (`age`, `oob`, `same` or `cold`, default `age`).
//!
//! # Not modelled
//! The time of clustering. The 4 bytes an entry with `sftl` and `leaftl`, which pack entries in ways that have no room
//! for them. The source does not say where survivors go, nor how many bytes an entry takes; both are our reading.
//!
//! # Errors
//! Parameters outside their ranges are refused.
//!
//! # Cost
//! O(log classes) a write; O(sample × rounds) each period; 4 bytes a mapping unit in the simulator.
//!
//! # Source
//! Xie, Chen and Roth, "ASA-FTL: An adaptive separation aware flash translation layer for solid state drives", Parallel
//! Computing 61, 2017; and the authors' slides on it.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::hashing;
use super::kmeans::{self, Weighted};
use super::requests::Requests;
use super::{Asks, HostWrite, PlacementPolicy, Setup, Survivor, learnt};
use crate::frontier::Frontier;

/// Where survivors go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Survivors {
    Age,
    Oob,
    Same,
    Cold,
}

/// What recencies are clustered on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    Log,
    Linear,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub classes: u16,
    pub sample: u32,
    pub period: u32,
    pub scale: Scale,
    pub gc: Survivors,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            classes: 3,
            sample: 100,
            period: 5000,
            scale: Scale::Log,
            gc: Survivors::Age,
        }
    }
}

/// Most rounds of one clustering.
const ROUNDS: usize = 50;

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !(2..=16).contains(&params.classes) || params.sample == 0 || params.period == 0 {
        return Err(Error::input(format!(
            "placement policy `asa`: classes = {}, sample = {}, period = {}; expected 2 to 16, and at least 1 of each other",
            params.classes, params.sample, params.period
        )));
    }
    Ok(Box::new(Asa {
        learnt: Learnt::default(),
        seed: setup.seed,
        logical_units: setup.logical_units,
        params,
    }))
}

struct Asa {
    params: Params,
    learnt: Learnt,
    seed: u64,
    logical_units: u32,
}

#[derive(Default, Serialize, Deserialize)]
struct Learnt {
    /// Ascending; empty before the first clustering.
    centres: Vec<f64>,
    /// A uniform sample of the recencies since the last clustering, and how many there were.
    sample: Vec<u64>,
    seen: u64,
    all_seen: u64,
    requests: u32,
    request: Requests,
    clusterings: u64,
}

impl Asa {
    fn scaled(&self, recency: u64) -> f64 {
        match self.params.scale {
            Scale::Log => libm::log2(1.0 + recency as f64),
            Scale::Linear => recency as f64,
        }
    }

    fn class(&self, recency: u64) -> Frontier {
        if self.learnt.centres.is_empty() {
            return self.params.classes / 2;
        }
        kmeans::nearest(&self.learnt.centres, self.scaled(recency)) as Frontier
    }

    /// Keeps a uniform sample of what has been seen (Vitter's algorithm R).
    fn see(&mut self, recency: u64) {
        let learnt = &mut self.learnt;
        learnt.seen += 1;
        learnt.all_seen += 1;
        if learnt.sample.len() < self.params.sample as usize {
            learnt.sample.push(recency);
        } else {
            let place = hashing::drawn(self.seed, learnt.all_seen, learnt.seen) as usize;
            if let Some(kept) = learnt.sample.get_mut(place) {
                *kept = recency;
            }
        }
    }

    fn cluster(&mut self) {
        let mut values: Vec<Weighted> = self
            .learnt
            .sample
            .iter()
            .map(|&recency| Weighted {
                value: self.scaled(recency),
                weight: 1.0,
            })
            .collect();
        if !values.is_empty() {
            self.learnt.centres = kmeans::centres(&mut values, usize::from(self.params.classes), ROUNDS);
            self.learnt.clusterings += 1;
        }
        self.learnt.sample.clear();
        self.learnt.seen = 0;
    }
}

impl PlacementPolicy for Asa {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let centre = |at: usize| self.learnt.centres.get(at).copied().unwrap_or(f64::NAN);
        let last = usize::from(self.params.classes) - 1;
        vec![
            ("clusterings", self.learnt.clusterings as f64),
            ("hottest_centre", centre(0)),
            ("coldest_centre", centre(last)),
        ]
    }

    fn host_frontiers(&self) -> Frontier {
        self.params.classes
    }

    fn survivor_frontiers(&self) -> Frontier {
        self.params.classes
    }

    fn asks(&self) -> Asks {
        Asks {
            since: true,
            is_cached: self.params.gc == Survivors::Age,
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        if self.learnt.request.begins(write) {
            self.learnt.requests += 1;
            if self.learnt.requests >= self.params.period {
                self.learnt.requests = 0;
                self.cluster();
            }
        }
        match write.since {
            Some(since) => {
                let recency = write.now.tick - since;
                self.see(recency);
                self.class(recency)
            }
            None => self.params.classes - 1,
        }
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let coldest = self.params.classes - 1;
        let from = survivor.from.min(coldest);
        let knows = match self.params.gc {
            Survivors::Same => return Some(from),
            Survivors::Cold => return Some(coldest),
            Survivors::Age => survivor.is_cached,
            Survivors::Oob => true,
        };
        let class = match survivor.since {
            Some(since) if knows => self.class(survivor.now.tick - since).max(from),
            _ => (from + 1).min(coldest),
        };
        Some(class)
    }

    fn forget(&mut self) {
        self.learnt = Learnt::default();
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.learnt)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let learnt: Learnt = learnt::load(saved)?;
        let classes = usize::from(self.params.classes);
        if !(learnt.centres.is_empty() || learnt.centres.len() == classes) {
            return Err(format!("{} centres for {classes} classes", learnt.centres.len()));
        }
        self.learnt = learnt;
        Ok(())
    }

    fn map_entry_bytes(&self) -> u32 {
        4
    }

    fn memory_bytes(&self) -> u64 {
        // The last writes lie in mapping entries; with the whole map in memory that is all of them.
        8 * u64::from(self.params.sample) + 4 * u64::from(self.logical_units)
    }
}
