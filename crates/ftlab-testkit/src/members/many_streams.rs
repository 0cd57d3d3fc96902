//! More frontiers than a byte can number, of which a few may be open at once.

use ftlab_ftl::Frontier;
use ftlab_ftl::placement::{HostWrite, PlacementPolicy};

pub struct ManyStreams;

pub const STREAMS: Frontier = 300;
pub const OPEN_AT_ONCE: Frontier = 3;

impl PlacementPolicy for ManyStreams {
    fn host_frontiers(&self) -> Frontier {
        STREAMS
    }

    fn open_at_once(&self) -> Frontier {
        OPEN_AT_ONCE
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        // Neighbours share a frontier, so that not every write opens another unit.
        STREAMS - 1 - (write.lpn.0 / 16) as Frontier % STREAMS
    }
}
