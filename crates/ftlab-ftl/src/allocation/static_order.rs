//! Static allocation: the logical address decides the plane.
//!
//! # Model
//! Logical page `p` (LPN divided by the units per page) always goes to lane `p mod lanes`, where the lanes are numbered in
//! the order of the name: `CWDP` changes the channel first, then the way, the die and the plane.
//!
//! # Parameters
//! None; the name is the order. All 24 permutations of C, W, D and P exist.
//!
//! # Not modelled
//! Nothing balances lanes that get more writes than others; that is the point of a static order.
//!
//! # Errors
//! None.
//!
//! # Cost
//! O(1).
//!
//! # Source
//! Hu et al., ICS 2011 (orders of parallelism); MQSim's `Plane_Allocation_Scheme`.

use crate::frontier::Frontier;
use ftlab_core::catalogue::NoParams;
use ftlab_core::{LaneId, Lpn, Result, geometry::Divisor};

use super::{AllocationPolicy, Setup};
use crate::backend::Load;

pub fn new(_: NoParams, setup: &mut Setup) -> Result<Box<dyn AllocationPolicy>> {
    Ok(Box::new(StaticOrder {
        by_page: Divisor::new(setup.units_per_page),
        by_lane: Divisor::new(setup.lanes),
    }))
}

struct StaticOrder {
    by_page: Divisor,
    by_lane: Divisor,
}

impl AllocationPolicy for StaticOrder {
    fn lane(&mut self, lpn: Lpn, _: Frontier, _: &mut dyn FnMut(LaneId) -> Load) -> LaneId {
        LaneId(self.by_lane.split(self.by_page.quotient(lpn.0)).1)
    }

    fn by_address(&self) -> bool {
        true
    }
}
