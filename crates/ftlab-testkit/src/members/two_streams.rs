//! Even and odd LPNs in streams of their own, and their survivors in two more.

use ftlab_ftl::Frontier;
use ftlab_ftl::placement::{HostWrite, PlacementPolicy, Survivor};

pub struct TwoStreams;

impl PlacementPolicy for TwoStreams {
    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        2
    }

    fn leaves_survivors(&self) -> bool {
        true
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        (write.lpn.0 % 2) as Frontier
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let parity = (survivor.lpn?.0 % 2) as Frontier;
        assert!(
            survivor.from % 2 == parity,
            "{survivor:?} comes from a unit of the other stream"
        );
        Some(2 + parity)
    }
}
