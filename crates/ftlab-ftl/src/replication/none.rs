//! No replication: one copy of everything.
//!
//! # Model
//! A unit has one place. A drive without replication keeps no virtual page numbers and pays nothing for them.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! Nothing to model.
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

use super::{CopyPlan, ReadOf, ReadPlan, ReplicationPolicy, Setup, WriteOf};

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn ReplicationPolicy>> {
    Ok(Box::new(None))
}

struct None;

impl ReplicationPolicy for None {
    fn write(&mut self, _: &WriteOf<'_>) -> CopyPlan {
        CopyPlan::ONE
    }

    fn read(&mut self, _: &ReadOf<'_>, _: &mut ReadPlan) {}
}
