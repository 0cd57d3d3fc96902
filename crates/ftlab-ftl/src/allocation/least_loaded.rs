//! Least-loaded allocation: each page goes to the lane whose die has the shortest queue.
//!
//! # Model
//! Takes the lane with the fewest operations queued or running on its first die; ties go to the next lane in turn after the
//! last one chosen. On the counting backend every queue is empty, so it is round robin there.
//!
//! # Parameters
//! * `order` (word, default `CWDP`): the order of channel, way, die and plane in which ties are settled.
//!
//! # Not modelled
//! The length of the queued operations; the channel's queue.
//!
//! # Errors
//! An order that is no permutation of CWDP is refused.
//!
//! # Cost
//! O(lanes) per page.
//!
//! # Source
//! Dynamic allocation as in SSDSim (Hu et al., ICS 2011).

use crate::frontier::Frontier;
use ftlab_core::{LaneId, Lpn, Result};

use super::round_robin::Params;
use super::{AllocationPolicy, Setup};
use crate::backend::Load;

pub fn new(_: Params, setup: &mut Setup) -> Result<Box<dyn AllocationPolicy>> {
    Ok(Box::new(LeastLoaded {
        next: 0,
        lanes: setup.lanes,
    }))
}

struct LeastLoaded {
    next: u32,
    lanes: u32,
}

impl AllocationPolicy for LeastLoaded {
    fn lane(&mut self, _: Lpn, _: Frontier, load: &mut dyn FnMut(LaneId) -> Load) -> LaneId {
        let start = self.next;
        let lane = (0..self.lanes)
            .map(|step| LaneId((start + step) % self.lanes))
            .min_by_key(|&lane| load(lane).queued)
            .unwrap_or(LaneId(0));
        self.next = (lane.0 + 1) % self.lanes;
        lane
    }
}
