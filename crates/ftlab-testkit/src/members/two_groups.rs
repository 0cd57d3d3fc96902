//! Two reclaim groups: even LPNs and their survivors on the first half of the lanes, odd ones on the other.

use ftlab_core::{LaneId, Layout};
use ftlab_ftl::Frontier;
use ftlab_ftl::placement::{HostWrite, PlacementPolicy, Survivor};

pub struct TwoGroups;

/// Which half of the lanes `lane` belongs to.
pub fn half_of(lane: LaneId, layout: &Layout) -> u32 {
    u32::from(lane.0 >= layout.lanes / 2)
}

impl PlacementPolicy for TwoGroups {
    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        2
    }

    fn leaves_survivors(&self) -> bool {
        true
    }

    fn lanes(&self, frontier: Frontier, layout: &Layout) -> Option<Vec<LaneId>> {
        if layout.lanes == 1 {
            return None;
        }
        let lanes = (0..layout.lanes).map(LaneId);
        let half = u32::from(frontier % 2);
        Some(lanes.filter(|&lane| half_of(lane, layout) == half).collect())
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        (write.lpn.0 % 2) as Frontier
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        Some(2 + (survivor.lpn?.0 % 2) as Frontier)
    }
}
