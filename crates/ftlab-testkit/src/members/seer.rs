//! A placement that is told the future and checks it.

use ftlab_ftl::placement::{Asks, Event, HostWrite, PlacementPolicy, Survivor};
use ftlab_ftl::{Frontier, Now};

/// What dies soon goes to frontier 0, the rest to frontier 1.
pub struct Seer {
    /// What was said of the present version of each LPN: not placed, or when it will die.
    said: Vec<Option<Option<u64>>>,
    under_way: Option<ftlab_core::Lpn>,
    pub deaths: u64,
}

impl Seer {
    pub fn new(units: u32) -> Self {
        Seer {
            said: vec![None; units as usize],
            under_way: None,
            deaths: 0,
        }
    }

    /// The present version of an LPN dies now.
    fn dies(&mut self, lpn: ftlab_core::Lpn, tick: u64) {
        if let Some(said) = self.said[lpn.at()].take() {
            assert_eq!(said, Some(tick), "{lpn:?} dies at {tick}");
            self.deaths += 1;
        }
    }
}

impl PlacementPolicy for Seer {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![("deaths", self.deaths as f64)]
    }

    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn asks(&self) -> Asks {
        Asks {
            future: true,
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        self.dies(write.lpn, write.now.tick);
        self.under_way = Some(write.lpn);
        self.said[write.lpn.at()] = Some(write.dies);
        Frontier::from(write.dies.is_none_or(|tick| tick > write.now.tick + 50))
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let lpn = survivor.lpn?;
        // The old version of what is being placed dies with it.
        let dies_now = self.under_way == Some(lpn) && survivor.dies == Some(survivor.now.tick);
        assert!(
            dies_now || Some(survivor.dies) == self.said[lpn.at()],
            "{lpn:?} survives: {:?}, said was {:?}",
            survivor.dies,
            self.said[lpn.at()]
        );
        None
    }

    fn on(&mut self, event: Event, now: Now) {
        if let Event::Trimmed(lpn) = event {
            self.dies(lpn, now.tick);
        }
    }
}
