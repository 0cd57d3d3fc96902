//! Multi-hash counters: a unit is hot when all the counters that its address hashes to are high.
//!
//! # Model
//! A table of `counters` saturating counters of `bits` bits. A write increments the counters that `hashes` hash
//! functions of the LPN select. The unit is hot if all of them are then at `threshold` or more. After every `decay`
//! writes all counters are halved. Hot writes go to frontier 1, all others and all survivors to frontier 0. A unit that
//! shares its counters with others by chance may be taken for hot.
//!
//! # Parameters
//! * `counters` (1 to 2^26, default 4096), `bits` (1 to 8, default 4), `hashes` (1 to 16, default 2).
//! * `threshold` (count, default 4): the upper two of four bits are not all zero.
//! * `decay` (writes, default 4096).
//!
//! # Not modelled
//! The variant that increments only the lowest of the counters.
//!
//! # Errors
//! Parameters outside their ranges are refused, and a threshold that no counter reaches.
//!
//! # Cost
//! O(hashes) a write and O(counters / decay) for halving; `counters × bits` bits of controller memory.
//!
//! # Source
//! Hsieh, Kuo and Chang, "Efficient identification of hot data for flash memory storage systems", ACM Transactions on Storage
//! 2(1), 2006.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::hashing::hash;
use super::{HostWrite, PlacementPolicy, Setup, Survivor, learnt};
use crate::frontier::Frontier;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub counters: u32,
    pub bits: u32,
    pub hashes: u32,
    pub threshold: u8,
    pub decay: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            counters: 4096,
            bits: 4,
            hashes: 2,
            threshold: 4,
            decay: 4096,
        }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    let refused = |text: String| Err(Error::input(format!("placement policy `multi_hash`: {text}")));
    if !(1..=8).contains(&params.bits) || !(1..=16).contains(&params.hashes) {
        return refused(format!(
            "bits = {}, hashes = {}; expected 1 to 8 and 1 to 16",
            params.bits, params.hashes
        ));
    }
    if !(1..=1 << 26).contains(&params.counters) || params.decay == 0 {
        return refused(format!(
            "counters = {}, decay = {}; expected 1 to 2^26 and at least 1",
            params.counters, params.decay
        ));
    }
    let greatest = ((1u32 << params.bits) - 1) as u8;
    if params.threshold == 0 || params.threshold > greatest {
        return refused(format!("threshold = {}, expected 1 to {greatest}", params.threshold));
    }
    Ok(Box::new(MultiHash {
        counters: vec![0; params.counters as usize],
        writes: 0,
        greatest,
        params,
    }))
}

struct MultiHash {
    params: Params,
    greatest: u8,
    counters: Vec<u8>,
    /// Since the last halving.
    writes: u32,
}

impl PlacementPolicy for MultiHash {
    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn survivor_frontiers(&self) -> Frontier {
        1
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let mut least = self.greatest;
        for number in 0..self.params.hashes {
            let at = hash(write.lpn.0, number, self.params.counters);
            let counter = &mut self.counters[at];
            *counter = counter.saturating_add(1).min(self.greatest);
            least = least.min(*counter);
        }
        self.writes += 1;
        if self.writes == self.params.decay {
            self.writes = 0;
            self.counters.iter_mut().for_each(|counter| *counter /= 2);
        }
        Frontier::from(least >= self.params.threshold)
    }

    fn survivor(&mut self, _: &Survivor) -> Option<Frontier> {
        Some(0)
    }

    fn forget(&mut self) {
        self.counters.fill(0);
        self.writes = 0;
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&(&self.counters, self.writes))
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let (counters, writes): (Vec<u8>, u32) = learnt::load(saved)?;
        if counters.len() != self.counters.len() {
            return Err(format!("{} counters, expected {}", counters.len(), self.counters.len()));
        }
        (self.counters, self.writes) = (counters, writes);
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        (u64::from(self.params.counters) * u64::from(self.params.bits)).div_ceil(8)
    }
}
