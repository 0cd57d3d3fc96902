//! A placement policy that takes even and odd LPNs for those of two volumes.

use ftlab_core::{LaneId, Layout};
use ftlab_ftl::placement::{HostWrite, PlacementPolicy, Survivor};
use ftlab_ftl::{Frontier, WriteContext};

pub struct ByParity(pub Box<dyn PlacementPolicy>);

impl PlacementPolicy for ByParity {
    fn host_frontiers(&self) -> Frontier {
        self.0.host_frontiers()
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        self.0.own_survivor_frontiers()
    }

    fn survivor_frontiers(&self) -> Frontier {
        self.0.survivor_frontiers()
    }

    fn keeps_survivors_apart(&self) -> bool {
        self.0.keeps_survivors_apart()
    }

    fn lanes(&self, frontier: Frontier, layout: &Layout) -> Option<Vec<LaneId>> {
        self.0.lanes(frontier, layout)
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let mut context: WriteContext = *write.context;
        context.volume = (write.lpn.0 % 2) as u16;
        self.0.host(&HostWrite {
            context: &context,
            ..*write
        })
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        self.0.survivor(survivor)
    }
}
