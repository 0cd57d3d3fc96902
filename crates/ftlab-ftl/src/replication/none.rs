//! No replication: one copy of everything.
//!
//! # Model
//! A unit has one place. A drive with this member keeps no virtual page numbers and pays nothing for the seam.
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

use ftlab_core::catalogue::NoParams;
use ftlab_core::{Lpn, Result};

use super::{ReadPlan, ReplicationPolicy, Setup};
use crate::Now;
use crate::backend::Load;

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn ReplicationPolicy>> {
    Ok(Box::new(None))
}

struct None;

impl ReplicationPolicy for None {
    fn copies(&mut self, _: Lpn, _: Now) -> u8 {
        1
    }

    fn read(&mut self, _: Lpn, _: &[Load], _: Now, plan: &mut ReadPlan) {
        plan.order.push(0);
    }
}
