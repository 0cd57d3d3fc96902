//! No wear levelling: free units are written in the order in which they were erased.
//!
//! # Model
//! A first-in first-out queue of free units per lane.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! Wear; the victim policy's tie rule (fewest erases) still applies.
//!
//! # Errors
//! None.
//!
//! # Cost
//! O(log free units).
//!
//! # Source
//! The null member of the family.

use ftlab_core::Result;
use ftlab_core::catalogue::NoParams;

use super::{Setup, WearPolicy};

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn WearPolicy>> {
    Ok(Box::new(None))
}

struct None;

impl WearPolicy for None {
    fn least_worn_first(&self) -> bool {
        false
    }
}
