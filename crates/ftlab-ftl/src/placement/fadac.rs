//! FADaC: a unit's class rises with each factor of ten by which its write count exceeds the average.
//!
//! # Model
//! Each unit has a counter. It rises by one with each host write and falls by one with each collection that moves the
//! unit. A fading average `F` follows the writes: `F ← F + 1/V − F/V` a unit, where `V` is the number of units that
//! have been written and not trimmed since. The class of a unit with counter `c` is the number of times that `F` can be
//! multiplied by `base` without exceeding `c`, at most `classes − 1`. Class *i* is frontier *i*, for host writes and
//! survivors alike. A trim sets the counter to 0, where it also is for what preconditioning has placed.
//!
//! # Parameters
//! * `classes` (count, default 6, 2 to 64).
//! * `base` (factor, default 10, above 1): between the limits of two classes.
//!
//! # Not modelled
//! The original's choice of the number of classes.
//!
//! # Errors
//! Parameters outside their ranges are refused.
//!
//! # Cost
//! O(classes) a write and a survivor; 4 bytes a mapping unit.
//!
//! # Source
//! Kremer and Brinkmann, "FADaC: A Self-adapting Data Classifier for Flash Memory", SYSTOR 2019; the update of the average as in the
//! simulator of Wang et al. (SepBIT), FAST 2022.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Event, HostWrite, PlacementPolicy, Setup, Survivor, learnt};
use crate::Now;
use crate::frontier::Frontier;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub classes: u16,
    pub base: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { classes: 6, base: 10.0 }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !((2..=64).contains(&params.classes) && params.base > 1.0 && params.base.is_finite()) {
        return Err(Error::input(format!(
            "placement policy `fadac`: classes = {}, base = {}; expected 2 to 64 and above 1",
            params.classes, params.base
        )));
    }
    Ok(Box::new(Fadac {
        counters: vec![0; setup.logical_units as usize],
        average: 0.0,
        valid: 0,
        params,
    }))
}

struct Fadac {
    params: Params,
    /// One more than the counter; 0 for units that are not there.
    counters: Vec<u32>,
    average: f64,
    valid: u64,
}

impl Fadac {
    fn class(&self, counter: u32) -> Frontier {
        let counter = f64::from(counter);
        let mut limit = self.average * self.params.base;
        let mut class = 0;
        while class + 1 < self.params.classes && limit > 0.0 && limit <= counter {
            limit *= self.params.base;
            class += 1;
        }
        class
    }
}

impl PlacementPolicy for Fadac {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![("average_writes", self.average)]
    }

    fn host_frontiers(&self) -> Frontier {
        self.params.classes
    }

    fn survivor_frontiers(&self) -> Frontier {
        self.params.classes
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let counter = &mut self.counters[write.lpn.at()];
        if *counter == 0 {
            *counter = 1;
            self.valid += 1;
        }
        *counter = counter.saturating_add(1);
        let counter = *counter - 1;
        self.average += (1.0 - self.average) / self.valid as f64;
        self.class(counter)
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let Some(lpn) = survivor.lpn else {
            return Some(survivor.from.min(self.params.classes).saturating_sub(1));
        };
        let counter = &mut self.counters[lpn.at()];
        if *counter > 1 {
            *counter -= 1;
        }
        let counter = counter.saturating_sub(1);
        Some(self.class(counter))
    }

    fn on(&mut self, event: Event, _: Now) {
        if let Event::Trimmed(lpn) = event
            && std::mem::take(&mut self.counters[lpn.at()]) > 0
        {
            self.valid -= 1;
        }
    }

    fn forget(&mut self) {
        self.counters.fill(0);
        (self.average, self.valid) = (0.0, 0);
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&(&self.counters, self.average, self.valid))
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let (counters, average, valid): (Vec<u32>, f64, u64) = learnt::load(saved)?;
        if counters.len() != self.counters.len() {
            return Err(format!(
                "{} mapping units, expected {}",
                counters.len(),
                self.counters.len()
            ));
        }
        (self.counters, self.average, self.valid) = (counters, average, valid);
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        4 * self.counters.len() as u64
    }
}
