//! A mapping policy that caches nothing and costs nothing: it takes down how deep each look-up lies in an LRU stack.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ftlab_ftl::mapping::paging::{Paging, SLOT_BYTES};
use ftlab_ftl::mapping::{CacheCounts, Charge, MappingPolicy, RecordView, Table, Why};

use super::stack::Stack;
use super::tally::Tally;

/// A stack and what was touched in it.
pub struct Level {
    pub stack: Stack,
    pub tally: Tally,
}

impl Level {
    fn new(keys: u32) -> Self {
        Level {
            stack: Stack::new(keys),
            tally: Tally::default(),
        }
    }

    #[inline]
    fn touch(&mut self, kind: usize, key: u32) {
        let depth = self.stack.touch(key);
        self.tally.add(kind, depth);
    }
}

/// What the look-ups of a run were.
pub struct Lookups {
    /// Of single entries.
    pub entries: Level,
    /// Of the translation pages that hold them.
    pub pages: Level,
    pub trims: u64,
}

/// Shared between the drive, which owns its mapping policy, and who wants to know.
#[derive(Clone)]
pub struct Recorder {
    paging: Paging,
    lookups: Arc<Mutex<Lookups>>,
}

impl Recorder {
    pub fn new(logical_units: u32, unit_bytes: u32) -> Self {
        let paging = Paging::new(logical_units, unit_bytes, SLOT_BYTES);
        let lookups = Lookups {
            entries: Level::new(logical_units),
            pages: Level::new(paging.pages()),
            trims: 0,
        };
        Recorder {
            paging,
            lookups: Arc::new(Mutex::new(lookups)),
        }
    }

    pub fn paging(&self) -> &Paging {
        &self.paging
    }

    pub fn lookups(&self) -> MutexGuard<'_, Lookups> {
        self.lookups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MappingPolicy for Recorder {
    fn tables(&self) -> Vec<Table> {
        self.paging.tables()
    }

    fn look_up(&mut self, _: u8, first: u32, count: u32, why: Why, _: RecordView<'_>, _: &mut Vec<Charge>) {
        let kind = usize::from(why != Why::HostRead);
        let paging = self.paging;
        let mut lookups = self.lookups();
        let lookups = &mut *lookups;
        lookups.trims += u64::from(why == Why::Trim);
        for key in first..first + count {
            lookups.entries.touch(kind, key);
            lookups.pages.touch(kind, paging.page_of(key));
        }
    }

    /// What is updated was looked up just before and is on top. Collections change entries where they are and leave the order
    /// of use alone.
    fn updated(&mut self, _: u8, _: u32, _: RecordView<'_>, _: &mut Vec<Charge>) {}

    fn moved(&mut self, _: u8, _: &[u32], _: RecordView<'_>, _: &mut Vec<Charge>) {}

    fn cached(&self, _: u8, _: u32) -> Option<(u32, bool)> {
        None
    }

    /// A cache of every size is none in particular.
    fn is_cached(&self, _: u32) -> bool {
        false
    }

    fn counts(&self) -> CacheCounts {
        CacheCounts::default()
    }

    /// The measurement begins: what was looked up before is in the cache, but not in the counts.
    fn reset_counts(&mut self) {
        let mut lookups = self.lookups();
        lookups.entries.tally = Tally::default();
        lookups.pages.tally = Tally::default();
        lookups.trims = 0;
    }

    fn forget(&mut self) {
        let mut lookups = self.lookups();
        lookups.entries.stack.clear();
        lookups.pages.stack.clear();
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_keeps_the_cache_and_a_power_cut_the_counts() {
        // 2048 units in two translation pages; keys 0 and 1 lie in the same one.
        let mut recorder = Recorder::new(2048, 4096);
        let shared = recorder.clone();
        let look_up = |recorder: &mut Recorder, first, count, why| {
            let view = RecordView::of_map(&[], first + count);
            recorder.look_up(0, first, count, why, view, &mut Vec::new());
        };
        // First look-ups of entries and of pages, and trims.
        let counted = || {
            let seen = shared.lookups();
            (seen.entries.tally.first(), seen.pages.tally.first(), seen.trims)
        };
        look_up(&mut recorder, 0, 2, Why::HostRead);
        look_up(&mut recorder, 1024, 1, Why::Trim);
        assert_eq!(counted(), ([2, 1], [1, 1], 1));
        recorder.reset_counts();
        look_up(&mut recorder, 1, 1, Why::HostWrite);
        assert_eq!(counted(), ([0, 0], [0, 0], 0));
        // 1024 was touched after 1, and its page after that of 1.
        assert_eq!(shared.lookups().entries.tally.hits(&[1, 2]), [[0, 0], [0, 1]]);
        assert_eq!(shared.lookups().pages.tally.hits(&[1, 2]), [[0, 0], [0, 1]]);
        recorder.forget();
        look_up(&mut recorder, 1, 1, Why::HostWrite);
        assert_eq!(counted(), ([0, 1], [0, 1], 0));
        assert_eq!(shared.lookups().entries.tally.touches(), [0, 2]);
    }
}
