//! Reads first: mapping and host reads overtake everything else, in order of readiness among themselves.
//!
//! # Model
//! A die serves the classes `mapping` and `host_read` before the others; within each of the two groups the operation
//! that has been ready longest goes first. On a channel, read commands go before data, so that cells work while data
//! moves; data of reads goes before programs. Reads may suspend programs and erases where the flash allows it.
//! # Parameters
//! None.
//! # Not modelled
//! A limit on the time that writes wait behind reads: endless reads starve them. Reads of GC rank with GC.
//! # Errors
//! None.
//! # Cost
//! A table look-up and at most two comparisons per operation.
//! # Source
//! The usual read priority of SSD controllers; Wu and He, FAST 2012, for suspension.

use ftlab_core::Result;
use ftlab_core::catalogue::NoParams;

use super::{Plan, SchedulePolicy, Setup};

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn SchedulePolicy>> {
    Ok(Box::new(ReadFirst))
}

struct ReadFirst;

impl SchedulePolicy for ReadFirst {
    fn plan(&self) -> Plan {
        Plan {
            class_ranks: [0, 0, 1, 1, 1],
            channel_ranks: [0, 1, 2, 2],
            gc_after: None,
            chip_exclusive: false,
            suspend: true,
        }
    }
}
