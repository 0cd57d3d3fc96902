//! No deduplication.
//!
//! # Model
//! Every unit is stored. A drive without deduplication keeps no virtual page numbers and pays nothing for them.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! Content.
//!
//! # Errors
//! None.
//!
//! # Cost
//! Nothing.
//!
//! # Source
//! The null member of the family.

use ftlab_core::Result;
use ftlab_core::catalogue::NoParams;

use super::{Decision, DedupPolicy, DedupWrite, Setup, Work};

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn DedupPolicy>> {
    Ok(Box::new(None))
}

struct None;

impl DedupPolicy for None {
    fn write(&mut self, _: &DedupWrite<'_>, _: &mut Vec<Work>) -> Decision {
        Decision::Store
    }
}
