//! Two-level LRU: a unit becomes hot when it is written again while it is in the list of candidates.
//!
//! # Model
//! The policy keeps two lists of LPNs in order of last write. A write of an LPN in either list puts it at the front of
//! the hot list. A write of any other LPN puts it at the front of the candidates. An LPN evicted from the hot list
//! becomes a candidate; an LPN evicted from the candidates is forgotten. Hot writes go to frontier 1, all others and
//! all survivors to frontier 0.
//!
//! # Parameters
//! * `hot` (count, default 512) and `candidates` (count, default 1024): units in each list.
//!
//! # Not modelled
//! The time of the list operations.
//!
//! # Errors
//! A list without a place is refused.
//!
//! # Cost
//! O(1) a write; 8 bytes of controller memory counted for each place.
//!
//! # Source
//! Chang and Kuo, "An adaptive striping architecture for flash memory storage systems of embedded systems", RTAS 2002.

use ftlab_core::{Error, IndexList, Result};
use serde::{Deserialize, Serialize};

use super::{HostWrite, PlacementPolicy, Setup, Survivor, learnt};
use crate::frontier::Frontier;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub hot: u32,
    pub candidates: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            hot: 512,
            candidates: 1024,
        }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if params.hot == 0 || params.candidates == 0 {
        return Err(Error::input(
            "placement policy `two_level_lru`: hot and candidates need at least one place each",
        ));
    }
    Ok(Box::new(TwoLevelLru {
        hot: IndexList::new(params.hot.min(1 << 16)),
        candidates: IndexList::new(params.candidates.min(1 << 16)),
        params,
    }))
}

struct TwoLevelLru {
    params: Params,
    hot: IndexList,
    candidates: IndexList,
}

impl PlacementPolicy for TwoLevelLru {
    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn survivor_frontiers(&self) -> Frontier {
        1
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let lpn = write.lpn.0;
        let is_hot = self.hot.contains(lpn) || self.candidates.remove(lpn);
        if is_hot {
            self.hot.touch(lpn);
            if self.hot.len() > self.params.hot
                && let Some(last) = self.hot.pop_back()
            {
                self.candidates.touch(last);
            }
        } else {
            self.candidates.touch(lpn);
        }
        if self.candidates.len() > self.params.candidates {
            self.candidates.pop_back();
        }
        Frontier::from(is_hot)
    }

    fn survivor(&mut self, _: &Survivor) -> Option<Frontier> {
        Some(0)
    }

    fn forget(&mut self) {
        self.hot.clear();
        self.candidates.clear();
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&(&self.hot, &self.candidates))
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        (self.hot, self.candidates) = learnt::load(saved)?;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        8 * (u64::from(self.params.hot) + u64::from(self.params.candidates))
    }
}
