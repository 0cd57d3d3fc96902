//! One object in two roles: a placement that learns how often LPNs are written, and the victim rule that goes with it.

use ftlab_core::RuId;
use ftlab_ftl::Frontier;
use ftlab_ftl::Now;
use ftlab_ftl::placement::{HostWrite, PlacementPolicy};
use ftlab_ftl::units::Closed;
use ftlab_ftl::victim::VictimPolicy;

/// Placement: what has been written more than twice goes to frontier 1. Victims: the emptiest, among equals of the stream
/// whose turn it is.
pub struct Lifetimes {
    writes: Vec<u32>,
    victims: u32,
}

impl Lifetimes {
    pub fn new(units: u32) -> Self {
        Lifetimes {
            writes: vec![0; units as usize],
            victims: 0,
        }
    }
}

impl PlacementPolicy for Lifetimes {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![("victims", f64::from(self.victims))]
    }

    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        self.writes[write.lpn.at()] += 1;
        Frontier::from(self.writes[write.lpn.at()] > 2)
    }

    fn victim(&mut self) -> Option<&mut dyn VictimPolicy> {
        Some(self)
    }
}

impl VictimPolicy for Lifetimes {
    fn choose(&mut self, closed: &mut Closed<'_>, _: Now) -> Option<RuId> {
        self.victims += 1;
        let wanted = (self.victims % 2) as Frontier;
        closed
            .iter()
            .min_by_key(|&ru| (closed.ru(ru).valid, closed.ru(ru).frontier != wanted, ru))
    }
}
