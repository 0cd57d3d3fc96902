//! Write-back buffer with least-recently-used replacement.
//!
//! # Model
//! Holds the most recently read or written units, clean and dirty. A write is acknowledged when its data is in the
//! buffer; A buffer over its capacity evicts the least recently used unit, and programs it if it is dirty. After a
//! write this happens when the request is complete. Reads evict after each unit, as long as the least recently used
//! unit is clean. A read hit costs no flash operation. A flush programs dirty units in the order of their last writes.
//!
//! # Parameters
//! None; size and power-loss protection are `buffer.capacity`, less room for programs under way, and `buffer.power_loss_protected`.
//!
//! # Not modelled
//! DRAM bandwidth and latency. The time until the data of a read miss arrives: it enters the buffer at once.
//!
//! # Errors
//! None.
//!
//! # Cost
//! O(1) per unit, two hash look-ups.
//!
//! # Source
//! Textbook LRU; the baseline of CFLRU (Park et al., CASES 2006).

use ftlab_core::catalogue::NoParams;
use ftlab_core::{IndexList, Lpn, Result};

use super::{BufferPolicy, Replaced, Setup};
use crate::request::WriteContext;

pub fn new(_: NoParams, setup: &mut Setup) -> Result<Box<dyn BufferPolicy>> {
    let capacity = setup.capacity_units;
    Ok(Box::new(Lru {
        recency: IndexList::new(capacity),
        dirty: IndexList::new(capacity),
        capacity,
    }))
}

struct Lru {
    /// The units held, with their stamps.
    recency: IndexList<u32>,
    /// The dirty units among them, in the order of their last write.
    dirty: IndexList<WriteContext>,
    capacity: u32,
}

impl Lru {
    /// Makes room by dropping clean units; stops at a dirty one, which `evict` hands out.
    fn shed_clean(&mut self) {
        while self.recency.len() > self.capacity {
            match self.recency.back() {
                Some(key) if !self.dirty.contains(key) => self.recency.remove(key),
                _ => return,
            };
        }
    }
}

impl BufferPolicy for Lru {
    fn write_back(&self) -> bool {
        true
    }

    fn write(&mut self, lpn: Lpn, context: &WriteContext) -> Replaced {
        let before = self.dirty.put(lpn.0, *context);
        match (self.recency.put(lpn.0, context.stamp).is_some(), before) {
            (_, Some(before)) => Replaced::Dirty(before),
            (true, None) => Replaced::Clean,
            (false, None) => Replaced::Nothing,
        }
    }

    fn read(&mut self, lpn: Lpn, in_flash: u32) -> bool {
        let hit = self.recency.touch(lpn.0);
        if !hit {
            self.recency.replace(lpn.0, in_flash);
        }
        self.shed_clean();
        hit
    }

    fn held(&self, lpn: Lpn) -> Option<u32> {
        let dirty = self.dirty.get(lpn.0).map(|context| context.stamp);
        dirty.or_else(|| self.recency.get(lpn.0).copied())
    }

    fn is_dirty(&self, lpn: Lpn) -> bool {
        self.dirty.contains(lpn.0)
    }

    fn evict(&mut self, all: bool) -> Option<(Lpn, WriteContext)> {
        if all {
            return self.dirty.take_back().map(|(key, context)| (Lpn(key), context));
        }
        self.shed_clean();
        if self.recency.len() <= self.capacity {
            return None;
        }
        let victim = self.recency.pop_back()?;
        self.dirty.take(victim).map(|context| (Lpn(victim), context))
    }

    fn forget(&mut self, lpn: Lpn) -> Option<WriteContext> {
        self.recency.remove(lpn.0);
        self.dirty.take(lpn.0)
    }

    fn dirty(&self) -> Vec<Lpn> {
        self.dirty.from_back().map(Lpn).collect()
    }

    fn clear(&mut self) {
        self.dirty.clear();
        self.recency.clear();
    }
}
