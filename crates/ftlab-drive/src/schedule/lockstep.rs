//! Lockstep, as MQSim runs a channel: waiting data goes before any new command, and a chip works on one die at a time.
//!
//! # Model
//! When a channel becomes free, waiting data-outs go before commands; so under load all chips of a channel transfer one
//! after the other and then start reading together. A chip (way) with a busy die takes no command for its other dies.
//! Classes are ordered as in `out_of_order`, without promotion of GC. No suspension.
//! # Parameters
//! None.
//! # Not modelled
//! MQSim's round robin over chips (here: the longest waiting operation); its GC urgency.
//! # Errors
//! None.
//! # Cost
//! A table look-up per operation.
//! # Source
//! Behaviour measured on MQSim 7ec40e3 (Tavakkol et al., FAST 2018); for comparison with it, not a recommendation.

use ftlab_core::Result;
use ftlab_core::catalogue::NoParams;

use super::{Plan, SchedulePolicy, Setup};

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn SchedulePolicy>> {
    Ok(Box::new(Lockstep))
}

struct Lockstep;

impl SchedulePolicy for Lockstep {
    fn plan(&self) -> Plan {
        Plan {
            class_ranks: [0, 1, 2, 3, 4],
            channel_ranks: [1, 0, 1, 1],
            gc_after: None,
            chip_exclusive: true,
            suspend: false,
        }
    }
}
