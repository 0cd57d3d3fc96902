//! Round-robin allocation: each page goes to the lane after the last one.
//!
//! # Model
//! Every frontier takes the lanes in turn, in the plane order, one page at a time.
//!
//! # Parameters
//! * `order` (word, default `CWDP`): the order of channel, way, die and plane.
//!
//! # Not modelled
//! Load: a busy lane gets its page all the same.
//!
//! # Errors
//! An order that is no permutation of CWDP is refused.
//!
//! # Cost
//! O(1).
//!
//! # Source
//! The dynamic allocation of log-structured drives, e.g. Agrawal et al., USENIX ATC 2008 (write order interleaving).

use crate::frontier::Frontier;
use ftlab_core::{LaneId, Lpn, Result};
use serde::{Deserialize, Serialize};

use super::{AllocationPolicy, Setup};
use crate::backend::Load;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Consumed where the drive numbers its planes (`allocation::plane_order`).
    pub order: String,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            order: "CWDP".to_owned(),
        }
    }
}

pub fn new(_: Params, setup: &mut Setup) -> Result<Box<dyn AllocationPolicy>> {
    Ok(Box::new(RoundRobin {
        next: vec![0; setup.frontiers as usize],
        lanes: setup.lanes,
    }))
}

struct RoundRobin {
    next: Vec<u32>,
    lanes: u32,
}

impl AllocationPolicy for RoundRobin {
    fn lane(&mut self, _: Lpn, frontier: Frontier, _: &mut dyn FnMut(LaneId) -> Load) -> LaneId {
        let next = &mut self.next[frontier as usize];
        let lane = *next;
        *next = if lane + 1 == self.lanes { 0 } else { lane + 1 };
        LaneId(lane)
    }
}
