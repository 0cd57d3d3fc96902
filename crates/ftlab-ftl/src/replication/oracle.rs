//! Oracle: every read is served by the die with the least load, as if all of them held all data, at no cost.
//!
//! # Model
//! What "ideal all-chip replication" could reach: a host read waits for, senses and sends from the die that has the fewest operations
//! waiting or running when it is issued; of equal ones its own, or else the next one after it. No copy is ever written, and
//! writes, collection and look-ups of the map are as without it.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! That a read would overtake some of what it counts as load (a schedule that prefers reads); the load of channels. The choice is greedy: it may be
//! worse for later requests, so that in a single run another policy may come out ahead. A die on which next to nothing has been written
//! yet is not used. Reads of units that are assembled or programmed just now are served from the controller, as always. Without time it
//! changes nothing.
//!
//! # Errors
//! None.
//!
//! # Cost
//! O(dies) a read on a busy die.
//!
//! # Source
//! Elyasi et al., "Content Popularity-Based Selective Replication for Read Redirection in SSDs", section IV: the bound that they compare
//! with. Ties are ours.

use ftlab_core::Result;
use ftlab_core::catalogue::NoParams;

use super::{CopyPlan, ReadOf, ReadPlan, ReplicationPolicy, Setup, WriteOf};

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn ReplicationPolicy>> {
    Ok(Box::new(Oracle))
}

struct Oracle;

impl ReplicationPolicy for Oracle {
    fn write(&mut self, _: &WriteOf<'_>) -> CopyPlan {
        CopyPlan::ONE
    }

    fn read(&mut self, _: &ReadOf<'_>, _: &mut ReadPlan) {}

    fn reads_anywhere(&self) -> bool {
        true
    }
}
