//! Manual streams: the host says with each write which stream it belongs to.
//!
//! # Model
//! A write with stream id `s` goes to frontier `s`; id 0 (none) is the default stream. Ids beyond the device's streams
//! share the last one. Data of different streams never share a reclaim unit as long as survivors are kept apart too
//! (`gc.separate_frontier = false`, or `gc.internal_streams = true`). Multi-stream SSDs and FDP placement handles both behave so.
//!
//! # Parameters
//! * `streams` (count, default 8, 1 to 4,095): streams of the device besides the default one.
//!
//! # Not modelled
//! Opening and closing streams, which costs nothing here; a device's limit on open streams other than their number.
//!
//! # Errors
//! A count outside the range is refused.
//!
//! # Cost
//! O(1) per write; one open unit per stream and lane.
//!
//! # Source
//! Kang, Hyun, Maeng and Cho, HotStorage 2014; NVMe streams directive and TP4146 (FDP).

use crate::frontier::Frontier;
use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{HostWrite, PlacementPolicy, Setup};

/// Each stream has an open unit on every lane: more would be a slip of the pen.
const MOST_STREAMS: u16 = 4095;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub streams: u16,
}

impl Default for Params {
    fn default() -> Self {
        Params { streams: 8 }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !(1..=MOST_STREAMS).contains(&params.streams) {
        return Err(Error::input(format!(
            "placement policy `manual`: streams = {}, expected 1 to {MOST_STREAMS}",
            params.streams
        )));
    }
    Ok(Box::new(Manual { last: params.streams }))
}

struct Manual {
    last: u16,
}

impl PlacementPolicy for Manual {
    fn host_frontiers(&self) -> Frontier {
        self.last + 1
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        write.context.stream.min(self.last)
    }
}
