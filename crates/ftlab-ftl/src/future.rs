//! The future, for oracles: when each version of each unit will die.
//!
//! A first pass of the workload over a drive whose placement is a [`Recorder`] finds what is placed and what dies, in
//! order; with it a second pass knows at each placement when that version will be superseded or trimmed. Versions are
//! counted LPN by LPN, so that the order between LPNs may differ between the passes (on a drive with time it does).

use std::sync::{Arc, Mutex, PoisonError};

use ftlab_core::Lpn;

use crate::Now;
use crate::frontier::Frontier;
use crate::placement::{Event, HostWrite, PlacementPolicy};

const NONE: u32 = u32::MAX;

/// One version of one unit.
#[derive(Clone, Copy, Debug)]
struct Version {
    /// The next version of the same unit.
    next: u32,
    /// Tick at which it dies; `u64::MAX` if it outlives the workload.
    dies: u64,
}

/// Deaths by LPN and version.
#[derive(Clone, Debug, Default)]
pub struct Future {
    versions: Vec<Version>,
    first: Vec<u32>,
    /// The present version of each LPN.
    present: Vec<u32>,
}

impl Future {
    fn new(logical_units: u32) -> Self {
        Future {
            versions: Vec::new(),
            first: vec![NONE; logical_units as usize],
            present: vec![NONE; logical_units as usize],
        }
    }

    /// A version of `lpn` is placed: the one before it dies.
    fn placed(&mut self, lpn: Lpn, tick: u64) {
        self.dies(lpn, tick);
        let number = self.versions.len() as u32;
        match self.present[lpn.at()] {
            NONE => self.first[lpn.at()] = number,
            before => self.versions[before as usize].next = number,
        }
        self.present[lpn.at()] = number;
        self.versions.push(Version {
            next: NONE,
            dies: u64::MAX,
        });
    }

    /// The present version of `lpn` dies, if it has not died yet.
    fn dies(&mut self, lpn: Lpn, tick: u64) {
        if let Some(version) = self.versions.get_mut(self.present[lpn.at()] as usize) {
            version.dies = version.dies.min(tick);
        }
    }

    /// Back to the beginning.
    fn rewind(mut self) -> Self {
        self.present.fill(NONE);
        self
    }

    /// The next version of `lpn` is being placed; when it will die.
    pub(crate) fn place(&mut self, lpn: Lpn) -> Option<u64> {
        let present = &mut self.present[lpn.at()];
        *present = match *present {
            NONE => self.first[lpn.at()],
            before => self.versions.get(before as usize).map_or(NONE, |version| version.next),
        };
        self.of(lpn)
    }

    /// When the present version of `lpn` will die.
    pub(crate) fn of(&self, lpn: Lpn) -> Option<u64> {
        let version = self.versions.get(self.present[lpn.at()] as usize)?;
        (version.dies != u64::MAX).then_some(version.dies)
    }
}

/// A placement that puts everything at one frontier and writes down what is placed and what dies.
pub struct Recorder {
    future: Arc<Mutex<Future>>,
}

/// Where a [`Recorder`] leaves what it has seen.
pub struct Recorded(Arc<Mutex<Future>>);

impl Recorder {
    pub fn new(logical_units: u32) -> (Self, Recorded) {
        let future = Arc::new(Mutex::new(Future::new(logical_units)));
        (Recorder { future: future.clone() }, Recorded(future))
    }

    fn write(&self, change: impl FnOnce(&mut Future)) {
        change(&mut self.future.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Recorded {
    /// The future as a run from the beginning will meet it.
    pub fn into_future(self) -> Future {
        let seen = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        seen.rewind()
    }
}

impl PlacementPolicy for Recorder {
    fn host_frontiers(&self) -> Frontier {
        1
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        self.write(|future| future.placed(write.lpn, write.now.tick));
        0
    }

    fn on(&mut self, event: Event, now: Now) {
        if let Event::Trimmed(lpn) = event {
            self.write(|future| future.dies(lpn, now.tick));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_come_by_overwrite_and_by_trim() {
        let mut future = Future::new(2);
        future.placed(Lpn(0), 1);
        future.placed(Lpn(1), 2);
        future.placed(Lpn(0), 5);
        future.dies(Lpn(0), 7);
        future.dies(Lpn(0), 8);
        future.placed(Lpn(0), 9);
        let mut future = future.rewind();
        assert_eq!(future.of(Lpn(0)), None);
        assert_eq!([0, 1, 2].map(|_| future.place(Lpn(0))), [Some(5), Some(7), None]);
        assert_eq!((future.place(Lpn(1)), future.place(Lpn(1))), (None, None));
    }
}
