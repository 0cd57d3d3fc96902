//! SepBIT: blocks are separated by the time at which they will be invalidated, inferred from the past.
//!
//! # Model
//! Time is counted in mapping units that the host has written. The lifespan of a version is the time from its writing to its
//! overwriting.
//! * **Host writes**: a unit whose old version lived for less than `l` goes to class 1. Every other unit, and a first
//!   write, goes to class 2.
//! * **Survivors**: those of class 1 go to class 3. The others are divided by the time `g` since the unit was written:
//!   with `g < 4 l` to class 4, with `g < 16 l` to class 5, the rest to class 6.
//! * **l** is the mean time from opening to collection of `segments` reclaim units of class 1, rounded down, set anew after each
//!   `segments` of them; infinite before the first. The write that makes room by a collection counts into its time, and its own
//!   time is kept after it.
//!
//! A write after a trim is a first one. What preconditioning has placed lies in class 1, and an overwrite of it is one: its survivors go
//! to class 3, and the collections of its reclaim units enter `l`.
//!
//! Classes are the frontiers 0 to 5. `host = false` puts host writes in one class (the paper's GW), `survivors = false` survivors
//! in one class (its UW).
//!
//! # Parameters
//! * `host` (bool, default true): host writes are separated.
//! * `survivors` (bool, default true): survivors are separated.
//! * `segments` (count, default 16): collected units of class 1 over which `l` is averaged.
//!
//! # Not modelled
//! The FIFO queue of recently written LPNs by which the paper finds lifespans below `l`: here the last write of every
//! unit is kept, 4 bytes each, which leads to the same decisions. Reclaim units are the drive's, not segments of 512
//! MiB.
//!
//! # Errors
//! `segments = 0` is refused.
//!
//! # Cost
//! O(1) a write and a survivor; 4 bytes a mapping unit.
//!
//! # Source
//! Wang, Luo, Wang, Li and Lee, "Separating Data via Block Invalidation Time Inference for Write Amplification Reduction in
//! Log-Structured Storage", FAST 2022, algorithm 1.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Asks, Chosen, Event, HostWrite, PlacementPolicy, Setup, Survivor, SurvivorRun, learnt};
use crate::Now;
use crate::frontier::Frontier;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub host: bool,
    pub survivors: bool,
    pub segments: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            host: true,
            survivors: true,
            segments: 16,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if params.segments == 0 {
        return Err(Error::input(
            "placement policy `sepbit`: segments = 0, expected at least 1",
        ));
    }
    Ok(Box::new(SepBit {
        params,
        lifespan: Lifespan::default(),
        logical_units: setup.logical_units,
    }))
}

struct SepBit {
    params: Params,
    lifespan: Lifespan,
    logical_units: u32,
}

/// `l`, and what it will be set to.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Lifespan {
    mean: Option<u64>,
    collected: u32,
    sum: u64,
}

impl Lifespan {
    /// Whether `age` is below `times` times the mean, which is infinite at first.
    fn is_above(&self, age: u64, times: u64) -> bool {
        self.mean.is_none_or(|mean| age < mean.saturating_mul(times))
    }

    fn add(&mut self, age: u64, segments: u32) {
        self.collected += 1;
        self.sum += age;
        if self.collected >= segments {
            *self = Lifespan {
                mean: Some(self.sum / u64::from(self.collected)),
                ..Lifespan::default()
            };
        }
    }
}

impl PlacementPolicy for SepBit {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![(
            "lifespan_units",
            self.lifespan.mean.map_or(f64::NAN, |mean| mean as f64),
        )]
    }

    fn host_frontiers(&self) -> Frontier {
        if self.params.host { 2 } else { 1 }
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        match (self.params.survivors, self.params.host) {
            (true, true) => 4,
            (true, false) => 3,
            (false, _) => 1,
        }
    }

    fn asks(&self) -> Asks {
        Asks {
            since: true,
            ages: self.params.survivors,
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let is_short = write
            .since
            .is_some_and(|since| self.lifespan.is_above(write.now.tick - since, 1));
        Frontier::from(self.params.host && !is_short)
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let own = self.host_frontiers();
        if !self.params.survivors {
            return Some(own);
        }
        let by_age = if self.params.host {
            if survivor.from == 0 {
                return Some(own);
            }
            own + 1
        } else {
            own
        };
        // What several LPNs own, or what has copies, has been there for as long as its reclaim unit at least.
        let age = survivor.now.tick - survivor.since.unwrap_or(survivor.opened);
        let class = if self.lifespan.is_above(age, 4) {
            0
        } else if self.lifespan.is_above(age, 16) {
            1
        } else {
            2
        };
        Some(by_age + class)
    }

    fn survivor_run(&mut self, run: &SurvivorRun<'_>, chosen: &mut Vec<Chosen>) -> bool {
        let own = self.host_frontiers();
        if !self.params.survivors || self.params.host && run.from == 0 {
            chosen.extend(run.lpns.iter().map(|_| Chosen::by_policy(own)));
            return true;
        }
        let by_age = own + Frontier::from(self.params.host);
        let least = |times| self.lifespan.mean.map_or(u64::MAX, |mean| mean.saturating_mul(times));
        let (older, oldest) = (least(4), least(16));
        let class = |age| by_age + Frontier::from(age >= older) + Frontier::from(age >= oldest);
        run.for_each_age(|age| chosen.push(Chosen::by_policy(class(age))));
        true
    }

    fn on(&mut self, event: Event, now: Now) {
        if let Event::Collecting {
            frontier: 0, opened, ..
        } = event
        {
            self.lifespan.add(now.tick - opened, self.params.segments);
        }
    }

    fn forget(&mut self) {
        self.lifespan = Lifespan::default();
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.lifespan)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        self.lifespan = learnt::load(saved)?;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        4 * u64::from(self.logical_units)
    }
}
