//! A placement that keeps its own record of where units lie, from what it is told.

use ftlab_core::{Lpn, RuId};
use ftlab_ftl::placement::{Asks, Event, HostWrite, PlacementPolicy, Survivor};
use ftlab_ftl::units::{Closed, Orders};
use ftlab_ftl::victim::VictimPolicy;
use ftlab_ftl::{Frontier, Now};

/// Host writes alternate between two frontiers, survivors have a third; victims are the emptiest.
pub struct Mirror {
    lies_in: Vec<Option<RuId>>,
    /// Units that lie in each reclaim unit, as far as they belong to one LPN.
    units: Vec<u32>,
    frontiers: Vec<Frontier>,
    /// The drive has nothing in its units but what LPNs own, and tells of trims before it collects.
    is_all: bool,
}

impl Mirror {
    pub fn new(logical_units: u32, rus: u32, is_all: bool) -> Self {
        Mirror {
            lies_in: vec![None; logical_units as usize],
            units: vec![0; rus as usize],
            frontiers: vec![0; rus as usize],
            is_all,
        }
    }

    /// What tells one set of places from another: exact in an f64 on tiny drives.
    pub fn mark(places: impl Iterator<Item = (Lpn, RuId)>) -> f64 {
        places.map(|(lpn, ru)| f64::from(lpn.0 + 1) * f64::from(ru.0 + 1)).sum()
    }

    fn leave(&mut self, lpn: Lpn) {
        if let Some(ru) = self.lies_in[lpn.at()].take() {
            self.units[ru.at()] -= 1;
        }
    }
}

impl PlacementPolicy for Mirror {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let places = self.lies_in.iter().enumerate();
        let places = places.filter_map(|(lpn, ru)| ru.map(|ru| (Lpn(lpn as u32), ru)));
        vec![("mark", Self::mark(places))]
    }

    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        1
    }

    fn asks(&self) -> Asks {
        Asks {
            places: true,
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        (write.now.tick % 2) as Frontier
    }

    fn survivor(&mut self, _: &Survivor) -> Option<Frontier> {
        Some(2)
    }

    fn victim(&mut self) -> Option<&mut dyn VictimPolicy> {
        Some(self)
    }

    fn on(&mut self, event: Event, _: Now) {
        match event {
            Event::Placed { lpn, ru, frontier } => {
                self.leave(lpn);
                self.lies_in[lpn.at()] = Some(ru);
                self.units[ru.at()] += 1;
                self.frontiers[ru.at()] = frontier;
            }
            Event::Gone(lpn) => self.leave(lpn),
            Event::Trimmed(_) | Event::Collecting { .. } | Event::Erased { .. } => {}
        }
    }

    fn forget(&mut self) {
        self.lies_in.fill(None);
        self.units.fill(0);
    }
}

impl VictimPolicy for Mirror {
    fn orders(&self) -> Orders {
        Orders {
            by_valid: true,
            ..Orders::default()
        }
    }

    fn choose(&mut self, closed: &mut Closed<'_>, _: Now) -> Option<RuId> {
        for ru in closed.iter() {
            let (seen, is) = (self.units[ru.at()], closed.ru(ru));
            if self.is_all {
                assert_eq!(seen, is.valid, "{ru:?} is seen with {seen} valid units: {is:?}");
            }
            if seen > 0 {
                assert_eq!(self.frontiers[ru.at()], is.frontier, "{ru:?}");
            }
        }
        closed.fewest_valid()
    }
}
