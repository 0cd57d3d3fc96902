//! A placement that is told the future and checks it.

use ftlab_core::Lpn;
use ftlab_ftl::placement::{Asks, Event, HostWrite, PlacementPolicy, Survivor};
use ftlab_ftl::{Frontier, Now};
use rustc_hash::FxHashMap;

/// What dies within so many ticks goes to frontier 0, the rest to frontier 1.
pub struct Seer {
    soon: u64,
    /// What was said of the present version of each LPN that has been placed: when it will die.
    said: FxHashMap<Lpn, Option<u64>>,
    under_way: Option<Lpn>,
    /// Overwrites and trims that came when they had been foretold, and survivors whose death was known.
    deaths: u64,
    survivors: u64,
}

impl Seer {
    pub fn new(soon: u64) -> Self {
        Seer {
            soon,
            said: FxHashMap::default(),
            under_way: None,
            deaths: 0,
            survivors: 0,
        }
    }

    /// The present version of an LPN dies now.
    fn dies(&mut self, lpn: Lpn, tick: u64) {
        if let Some(said) = self.said.remove(&lpn) {
            assert_eq!(said, Some(tick), "{lpn:?} dies at {tick}");
            self.deaths += 1;
        }
    }
}

impl PlacementPolicy for Seer {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![("deaths", self.deaths as f64), ("survivors", self.survivors as f64)]
    }

    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn sees_survivors(&self) -> bool {
        true
    }

    fn leaves_survivors(&self) -> bool {
        true
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
        self.said.insert(write.lpn, write.dies);
        Frontier::from(write.dies.is_none_or(|tick| tick > write.now.tick + self.soon))
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let lpn = survivor.lpn?;
        // The old version of what is being placed dies with it.
        let dies_now = self.under_way == Some(lpn) && survivor.dies == Some(survivor.now.tick);
        if let Some(&said) = self.said.get(&lpn) {
            assert!(
                dies_now || survivor.dies == said,
                "{lpn:?} survives: {:?}, said was {said:?}",
                survivor.dies
            );
        }
        self.survivors += u64::from(survivor.dies.is_some());
        None
    }

    fn on(&mut self, event: Event, now: Now) {
        if let Event::Trimmed(lpn) = event {
            self.dies(lpn, now.tick);
        }
    }
}
