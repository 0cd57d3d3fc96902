//! First come, first served: every die and every channel serves in order of readiness.
//!
//! # Model
//! A die starts the operation that has been ready longest, whatever its class. A channel serves the die that has waited
//! longest, with a command or with data. A command waits from the moment its operation is ready; data waits from the
//! moment it has left the cells. Ties within a die go to the operation issued first, those on a channel to the lower
//! die number.
//! # Parameters
//! None.
//! # Not modelled
//! Suspension: a read waits for the program or erase before it.
//! # Errors
//! None.
//! # Cost
//! Comparing the heads of at most five queues per operation.
//! # Source
//! The order of arrival, the null member of the family.

use ftlab_core::Result;
use ftlab_core::catalogue::NoParams;

use super::{Plan, SchedulePolicy, Setup};

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn SchedulePolicy>> {
    Ok(Box::new(Fcfs))
}

struct Fcfs;

impl SchedulePolicy for Fcfs {
    fn plan(&self) -> Plan {
        Plan {
            class_ranks: [0; 5],
            channel_ranks: [0; 4],
            gc_after: None,
            chip_exclusive: false,
            suspend: false,
        }
    }
}
