//! Even and odd LPNs in streams of their own, and their survivors in two more.

use ftlab_ftl::placement::{HostWrite, PlacementPolicy, Survivor};

pub struct TwoStreams;

impl PlacementPolicy for TwoStreams {
    fn host_frontiers(&self) -> u8 {
        2
    }

    fn own_survivor_frontiers(&self) -> u8 {
        2
    }

    fn host(&mut self, write: &HostWrite) -> u8 {
        (write.lpn.0 % 2) as u8
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<u8> {
        let parity = (survivor.lpn.0 % 2) as u8;
        assert!(
            survivor.from % 2 == parity,
            "{survivor:?} comes from a unit of the other stream"
        );
        Some(2 + parity)
    }
}
