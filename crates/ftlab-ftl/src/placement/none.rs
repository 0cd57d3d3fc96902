//! No placement: one frontier for all host writes.
//!
//! # Model
//! Host writes share one frontier. Survivors of garbage collection go where `gc.survivors` says.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! Any knowledge of lifetimes.
//!
//! # Errors
//! None.
//!
//! # Cost
//! Nothing.
//!
//! # Source
//! The null member of the family.

use crate::frontier::Frontier;
use ftlab_core::Result;
use ftlab_core::catalogue::NoParams;

use super::{HostWrite, PlacementPolicy, Setup};

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    Ok(Box::new(None))
}

struct None;

impl PlacementPolicy for None {
    fn host_frontiers(&self) -> Frontier {
        1
    }

    fn host(&mut self, _: &HostWrite<'_>) -> Frontier {
        0
    }

    fn is_none(&self) -> bool {
        true
    }
}
