//! Out of order by class: mapping, then host reads, host writes, garbage collection, erases.
//!
//! # Model
//! A die serves the first non-empty class of that order, each in order of readiness. So that a stream of writes cannot
//! starve the collection it depends on, GC is promoted: after `gc_after` host writes in a row that overtook a waiting GC
//! or erase operation on a die, one such operation goes before the next host write (GC before erase). On a channel, read
//! commands go before data, so that cells work while data moves; then data of reads, erase commands, programs. Reads may
//! suspend programs and erases where the flash allows it.
//! # Parameters
//! `gc_after` (operations, default 4, 0 = never): host writes that may overtake waiting GC work before it goes first.
//! # Not modelled
//! A limit on the time that writes and GC wait behind reads: endless reads starve them.
//! # Errors
//! None.
//! # Cost
//! A table look-up per operation.
//! # Source
//! The class order of MQSim's PRIORITY_OUT_OF_ORDER unit (Tavakkol et al., FAST 2018); the promotion by count is ours
//! (MQSim promotes GC when a plane is short of free blocks, which here belongs to the FTL's thresholds).

use ftlab_core::Result;
use serde::{Deserialize, Serialize};

use super::{Plan, SchedulePolicy, Setup};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Host writes that may overtake waiting GC work before it goes first; 0 = never.
    pub gc_after: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { gc_after: 4 }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn SchedulePolicy>> {
    Ok(Box::new(OutOfOrder { params }))
}

struct OutOfOrder {
    params: Params,
}

impl SchedulePolicy for OutOfOrder {
    fn plan(&self) -> Plan {
        Plan {
            class_ranks: [0, 1, 2, 3, 4],
            channel_ranks: [0, 1, 3, 2],
            gc_after: (self.params.gc_after > 0).then_some(self.params.gc_after),
            chip_exclusive: false,
            suspend: true,
        }
    }
}
