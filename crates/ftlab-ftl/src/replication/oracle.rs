//! Oracle: every read is served by the die with the least load, as if all of them held all data, at no cost.
//!
//! # Model
//! What "ideal all-chip replication" could reach: a host read is served by the die that has the fewest operations
//! waiting or running when the read is issued. Among equal dies it is the one that holds the data, otherwise the next
//! one after it. No copy is ever written. Writes, collection and look-ups of the map are as without replication.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! Reads that overtake some of the operations counted as load (a schedule that prefers reads); the load of channels.
//! The choice is greedy: it may be worse for later requests, so that in a single run another policy may come out ahead.
//! A die on which almost nothing has been written yet is not used. Reads of units that are being assembled or
//! programmed are served from the controller, as always. Without time the policy has no effect.
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
