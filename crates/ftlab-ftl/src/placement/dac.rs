//! DAC (dynamic data clustering): a unit moves up a region with each overwrite and down with each collection.
//!
//! # Model
//! Each unit is in one of `classes` regions, 0 the coldest. A first write goes to region 0. An overwritten unit goes to
//! the region above its own, a survivor of collection to the one below. Region *i* is frontier *i*, for host writes and
//! survivors alike. A unit that preconditioning has placed, and one that was trimmed, counts as never written. Where a write makes room
//! by collecting what it is about to replace, it goes to the region above, but the copy and what is remembered stay in the old region.
//!
//! With `promote_within` a unit goes up only if its old version lived for at most so many host units; with `demote_after` a
//! survivor goes down only if it was written at least so long ago. Those are the time tests of the original; the
//! simulator of SepBIT's authors leaves them out, as the defaults do.
//!
//! # Parameters
//! * `classes` (count, default 6, 2 to 64): regions.
//! * `promote_within` (host units, default 0: no test).
//! * `demote_after` (host units, default 0: no test).
//!
//! # Not modelled
//! The place where a drive keeps the regions: here a byte a unit.
//!
//! # Errors
//! A number of classes outside the range is refused.
//!
//! # Cost
//! O(1); a byte a mapping unit, 4 more with a time test.
//!
//! # Source
//! Chiang, Lee and Chang, "Using data clustering to improve cleaning performance for flash memory", Software: Practice and
//! Experience 29(3), 1999; without the time tests as in the simulator of Wang et al. (SepBIT), FAST 2022.

use ftlab_core::{Error, Result, memory};
use serde::{Deserialize, Serialize};

use super::{Asks, Chosen, Event, HostWrite, PlacementPolicy, Setup, Survivor, SurvivorRun, learnt};
use crate::Now;
use crate::frontier::Frontier;
use crate::gc::mover::AHEAD;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub classes: u8,
    pub promote_within: u64,
    pub demote_after: u64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            classes: 6,
            promote_within: 0,
            demote_after: 0,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !(2..=64).contains(&params.classes) {
        return Err(Error::input(format!(
            "placement policy `dac`: classes = {}, expected 2 to 64",
            params.classes
        )));
    }
    Ok(Box::new(Dac {
        regions: vec![NEVER; setup.logical_units as usize],
        params,
    }))
}

/// Not written yet, or trimmed.
const NEVER: u8 = u8::MAX;

struct Dac {
    params: Params,
    regions: Vec<u8>,
}

impl Dac {
    fn has_tests(&self) -> bool {
        self.params.promote_within > 0 || self.params.demote_after > 0
    }
}

/// The region of a unit that a collection has found alive.
fn demoted(region: u8) -> u8 {
    match region {
        NEVER => 0,
        now => now.saturating_sub(1),
    }
}

impl PlacementPolicy for Dac {
    fn host_frontiers(&self) -> Frontier {
        Frontier::from(self.params.classes)
    }

    fn survivor_frontiers(&self) -> Frontier {
        self.host_frontiers()
    }

    fn asks(&self) -> Asks {
        Asks {
            since: self.has_tests(),
            ..Asks::default()
        }
    }

    fn prefetch(&self, lpn: u32) {
        memory::prefetch(&self.regions, lpn as usize);
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let region = &mut self.regions[write.lpn.at()];
        let within = self.params.promote_within;
        let lived = write.since.map_or(0, |since| write.now.tick - since);
        *region = match *region {
            NEVER => 0,
            now if within > 0 && lived > within => now,
            now => (now + 1).min(self.params.classes - 1),
        };
        Frontier::from(*region)
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let Some(lpn) = survivor.lpn else {
            return Some(survivor.from.min(self.host_frontiers()).saturating_sub(1));
        };
        let region = &mut self.regions[lpn.at()];
        let age = survivor.since.map_or(u64::MAX, |since| survivor.now.tick - since);
        *region = match *region {
            now if now != NEVER && age < self.params.demote_after => now,
            now => demoted(now),
        };
        Some(Frontier::from(*region))
    }

    fn survivor_run(&mut self, run: &SurvivorRun<'_>, chosen: &mut Vec<Chosen>) -> bool {
        if self.has_tests() {
            return false;
        }
        for (at, &lpn) in run.lpns.iter().enumerate() {
            if let Some(&later) = run.lpns.get(at + AHEAD) {
                memory::prefetch(&self.regions, later as usize);
            }
            let region = &mut self.regions[lpn as usize];
            *region = demoted(*region);
            chosen.push(Chosen::by_policy(Frontier::from(*region)));
        }
        true
    }

    fn on(&mut self, event: Event, _: Now) {
        if let Event::Trimmed(lpn) = event {
            self.regions[lpn.at()] = NEVER;
        }
    }

    fn forget(&mut self) {
        self.regions.fill(NEVER);
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.regions)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        self.regions = learnt::load_units(saved, self.regions.len())?;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.regions.len() as u64 * if self.has_tests() { 5 } else { 1 }
    }
}
