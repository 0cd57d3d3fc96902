//! Write-through buffer: writes are programmed at once; reads may hit data that was recently written or read.
//!
//! # Model
//! A write completes when its pages are programmed, as with `none`, and stays in the buffer clean. A read hit costs no
//! flash operation. The least recently used unit is evicted.
//!
//! # Parameters
//! None; the size is `buffer.capacity`.
//!
//! # Not modelled
//! DRAM bandwidth and latency. The time until the data of a read miss arrives: it enters the buffer at once.
//!
//! # Errors
//! None.
//!
//! # Cost
//! O(1) per unit, one hash look-up.
//!
//! # Source
//! Textbook.

use ftlab_core::catalogue::NoParams;
use ftlab_core::{IndexList, Lpn, Result};

use super::{BufferPolicy, Replaced, Setup};
use crate::request::WriteContext;

pub fn new(_: NoParams, setup: &mut Setup) -> Result<Box<dyn BufferPolicy>> {
    Ok(Box::new(WriteThrough {
        recency: IndexList::new(setup.capacity_units),
        capacity: setup.capacity_units,
    }))
}

struct WriteThrough {
    /// The units held, with their stamps.
    recency: IndexList<u32>,
    capacity: u32,
}

impl WriteThrough {
    /// Makes `lpn` the most recent; a unit that enters has this stamp.
    fn touch(&mut self, lpn: Lpn, stamp: u32) -> bool {
        let hit = self.recency.touch(lpn.0);
        if !hit {
            self.recency.replace(lpn.0, stamp);
        }
        if self.recency.len() > self.capacity {
            self.recency.pop_back();
        }
        hit
    }
}

impl BufferPolicy for WriteThrough {
    fn write_back(&self) -> bool {
        false
    }

    fn write(&mut self, lpn: Lpn, context: &WriteContext) -> Replaced {
        if self.touch(lpn, context.stamp) {
            self.recency.replace(lpn.0, context.stamp);
            Replaced::Clean
        } else {
            Replaced::Nothing
        }
    }

    fn read(&mut self, lpn: Lpn, in_flash: u32) -> bool {
        self.touch(lpn, in_flash)
    }

    fn held(&self, lpn: Lpn) -> Option<u32> {
        self.recency.get(lpn.0).copied()
    }

    fn is_dirty(&self, _: Lpn) -> bool {
        false
    }

    fn evict(&mut self, _: bool) -> Option<(Lpn, WriteContext)> {
        None
    }

    fn forget(&mut self, lpn: Lpn) -> Option<WriteContext> {
        self.recency.remove(lpn.0);
        None
    }

    fn dirty(&self) -> Vec<Lpn> {
        Vec::new()
    }

    fn clear(&mut self) {
        self.recency.clear();
    }
}
