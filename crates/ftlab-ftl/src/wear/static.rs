//! Static wear levelling: cold data is moved from the least worn unit to the most worn free one.
//!
//! # Model
//! Free units are opened as in `dynamic`. In addition, after every `interval` erases of a pool the most worn unit of
//! the pool is compared with its least worn closed unit. If their erases differ by more than `threshold`, the data of
//! the least worn unit moves to the most worn free unit (cause `wear`), and the least worn unit becomes free.
//!
//! # Parameters
//! * `threshold` (erases, default 20): difference that starts a move.
//! * `interval` (erases of the pool, default 64, at least 1): how often the difference is checked.
//!
//! # Not modelled
//! Detecting that the data in the least worn unit is cold: few erases are taken as the sign.
//!
//! # Errors
//! An interval of 0 is refused.
//!
//! # Cost
//! O(units of the pool) per check.
//!
//! # Source
//! The threshold scheme common to textbooks and drives, as described by Chang, Hsieh and Kuo, DAC 2007.

use ftlab_core::{Error, Result, RuId};
use serde::{Deserialize, Serialize};

use super::{Setup, WearPolicy};
use crate::learnt;
use crate::units::{RuState, Units};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub threshold: u32,
    pub interval: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            threshold: 20,
            interval: 64,
        }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn WearPolicy>> {
    if params.interval == 0 {
        return Err(Error::input("wear policy `static`: interval = 0, expected at least 1"));
    }
    Ok(Box::new(Static {
        params,
        erases: Vec::new(),
    }))
}

struct Static {
    params: Params,
    /// Erases of each pool since its last look.
    erases: Vec<u32>,
}

impl WearPolicy for Static {
    fn least_worn_first(&self) -> bool {
        true
    }

    fn moves_cold_data(&self) -> bool {
        true
    }

    fn due(&mut self, units: &Units, pool: usize) -> Option<RuId> {
        if self.erases.len() <= pool {
            self.erases.resize(units.pools.len(), 0);
        }
        self.erases[pool] += 1;
        if self.erases[pool] < self.params.interval {
            return None;
        }
        self.erases[pool] = 0;
        let of_pool = units.pools[pool].lanes.iter().flat_map(|&lane| units.of_lane(lane));
        let most = of_pool.clone().map(|ru| units.rus[ru.at()].erases).max()?;
        let least = of_pool
            .filter(|ru| units.rus[ru.at()].state == RuState::Closed)
            .min_by_key(|ru| (units.rus[ru.at()].erases, ru.0))?;
        (most - units.rus[least.at()].erases > self.params.threshold).then_some(least)
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.erases)
    }

    fn load(&mut self, saved: &[u8], pools: usize) -> std::result::Result<(), String> {
        let erases: Vec<u32> = learnt::load(saved)?;
        if !erases.is_empty() && erases.len() != pools {
            return Err(format!("erases of {} pools, expected {pools}", erases.len()));
        }
        self.erases = erases;
        Ok(())
    }
}
