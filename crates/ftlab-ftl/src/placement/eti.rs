//! ETI (extent-based temperature identification): extents of the address space count the requests that write them.
//!
//! # Model
//! At first the address space is one extent with counter 0. A write request increments the counters (at most 15) of the
//! extents that it covers completely. An extent that it covers in part is split at the request's bounds, if the parts fit
//! into `extents` extents and its counter is below 15; otherwise it is left as it is. Before every `decay`th request all counters
//! are halved, and neighbouring extents are merged if their counters are equal or both below `threshold`: that of the first one
//! stays. A host write goes
//! to frontier 0 (hot) if its extent's counter is at `threshold` or above, otherwise to frontier 1. Survivors go to
//! frontier 2.
//!
//! # Parameters
//! * `extents` (count, default 1024), `decay` (requests, default 4096), `threshold` (1 to 15, default 4).
//!
//! # Not modelled
//! Requests that a write buffer has merged: their units count as parts of the requests that they came with.
//!
//! # Errors
//! Parameters outside their ranges are refused.
//!
//! # Cost
//! A search of the extents a write; O(extents) for each split and each `decay` requests; 5 bytes of controller memory an extent.
//!
//! # Source
//! Shafaei, Desnoyers and Fitzpatrick, "Write amplification reduction in flash-based SSDs through extent-based temperature
//! identification", HotStorage 2016.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::requests::Requests;
use super::{HostWrite, PlacementPolicy, Setup, Survivor, learnt};
use crate::frontier::Frontier;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub extents: u32,
    pub decay: u32,
    pub threshold: u8,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            extents: 1024,
            decay: 4096,
            threshold: 4,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if params.extents == 0 || params.decay == 0 || !(1..=GREATEST).contains(&params.threshold) {
        return Err(Error::input(format!(
            "placement policy `eti`: extents = {}, decay = {}, threshold = {}; expected at least 1, at least 1, and 1 to {GREATEST}",
            params.extents, params.decay, params.threshold
        )));
    }
    Ok(Box::new(Eti {
        extents: vec![WHOLE],
        end: setup.logical_units,
        requests: Requests::default(),
        since_decay: 0,
        params,
    }))
}

/// Counters have four bits.
const GREATEST: u8 = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Extent {
    first: u32,
    counter: u8,
}

/// The address space before anything has been written.
const WHOLE: Extent = Extent { first: 0, counter: 0 };

struct Eti {
    params: Params,
    /// In order of address; each reaches to the next, the last one to `end`.
    extents: Vec<Extent>,
    end: u32,
    requests: Requests,
    /// Requests since the counters were halved.
    since_decay: u32,
}

impl Eti {
    fn at(&self, unit: u32) -> usize {
        self.extents.partition_point(|extent| extent.first <= unit) - 1
    }

    fn end_of(&self, at: usize) -> u32 {
        self.extents.get(at + 1).map_or(self.end, |next| next.first)
    }

    /// Counts a request that writes the units from `first` up to `end`.
    fn count(&mut self, first: u32, end: u32) {
        self.since_decay += 1;
        if self.since_decay >= self.params.decay {
            self.since_decay = 0;
            self.decay();
        }
        let mut at = self.at(first);
        while at < self.extents.len() && self.extents[at].first < end {
            at = self.count_in(at, first, end);
        }
    }

    /// Counts a request in extent number `at`, which it touches. Returns the number of the one that follows.
    fn count_in(&mut self, at: usize, first: u32, end: u32) -> usize {
        let Extent { first: begins, counter } = self.extents[at];
        let ends = self.end_of(at);
        let (has_head, has_tail) = (begins < first, end < ends);
        let mut inside = at;
        if counter < GREATEST && (has_head || has_tail) {
            let more = usize::from(has_head) + usize::from(has_tail);
            if self.extents.len() + more > self.params.extents as usize {
                return at + 1;
            }
            if has_tail {
                self.extents.insert(at + 1, Extent { first: end, counter });
            }
            if has_head {
                self.extents.insert(at + 1, Extent { first, counter });
                inside += 1;
            }
        }
        self.extents[inside].counter = (counter + 1).min(GREATEST);
        inside + 1
    }

    fn decay(&mut self) {
        let threshold = self.params.threshold;
        self.extents.iter_mut().for_each(|extent| extent.counter /= 2);
        self.extents.dedup_by(|next, kept| {
            next.counter == kept.counter || (next.counter < threshold && kept.counter < threshold)
        });
    }
}

impl PlacementPolicy for Eti {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![("extents", self.extents.len() as f64)]
    }

    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        1
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        if self.requests.begins(write) {
            self.count(write.context.request_first.0, write.context.request_end());
        }
        let counter = self.extents[self.at(write.lpn.0)].counter;
        Frontier::from(counter < self.params.threshold)
    }

    fn survivor(&mut self, _: &Survivor) -> Option<Frontier> {
        Some(2)
    }

    fn forget(&mut self) {
        self.extents = vec![WHOLE];
        self.requests = Requests::default();
        self.since_decay = 0;
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&(&self.extents, self.requests, self.since_decay))
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let (extents, requests, since_decay): (Vec<Extent>, _, _) = learnt::load(saved)?;
        if extents.first().is_none_or(|extent| extent.first != 0) || !extents.is_sorted_by_key(|extent| extent.first) {
            return Err("extents that do not cover the drive".into());
        }
        (self.extents, self.requests, self.since_decay) = (extents, requests, since_decay);
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        5 * u64::from(self.params.extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    /// A request inside an extent cuts it into three.
    #[test]
    fn there_are_never_more_extents_than_may_be() {
        for limit in 1..8 {
            let mut eti = Eti {
                params: Params {
                    extents: limit,
                    ..Params::default()
                },
                extents: vec![WHOLE],
                end: 100,
                requests: Requests::default(),
                since_decay: 0,
            };
            let mut random = Stream::new(u64::from(limit), "requests");
            let mut most = 0;
            for _ in 0..500 {
                let first = random.below(90) as u32;
                eti.count(first, first + 1 + random.below(10) as u32);
                most = most.max(eti.extents.len());
            }
            assert!(
                most <= limit as usize && most + 1 >= limit as usize,
                "{most} of {limit}"
            );
        }
    }
}
