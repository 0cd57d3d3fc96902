//! Three streams by LPN, whose survivors are the drive's.

use ftlab_core::Lpn;
use ftlab_ftl::Frontier;
use ftlab_ftl::placement::{HostWrite, PlacementPolicy};

pub struct ThreeStreams;

pub const STREAMS: Frontier = 3;

pub fn stream_of(lpn: Lpn) -> Frontier {
    (lpn.0 % u32::from(STREAMS)) as Frontier
}

impl PlacementPolicy for ThreeStreams {
    fn host_frontiers(&self) -> Frontier {
        STREAMS
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        stream_of(write.lpn)
    }
}
