//! Write-back buffer, first in first out.
//!
//! # Model
//! A write is acknowledged when its data is in the buffer. Once more units are dirty than the buffer holds, the one that
//! became dirty first is programmed. An overwrite of a buffered unit replaces it in place (the first version is never
//! programmed) and does not change its turn. A read of a dirty unit is served from the buffer.
//!
//! # Parameters
//! None; size and power-loss protection are `buffer.capacity` and `buffer.power_loss_protected`.
//!
//! # Not modelled
//! DRAM bandwidth and latency; clean data is not kept (see `lru`).
//!
//! # Errors
//! None.
//!
//! # Cost
//! O(1) per unit, one hash look-up.
//!
//! # Source
//! The write cache of the ATA and NVMe standards.

use ftlab_core::catalogue::NoParams;
use ftlab_core::{IndexList, Lpn, Result};

use super::{BufferPolicy, Replaced, Setup};
use crate::request::WriteContext;

pub fn new(_: NoParams, setup: &mut Setup) -> Result<Box<dyn BufferPolicy>> {
    Ok(Box::new(WriteBack {
        queue: IndexList::new(setup.capacity_units),
        capacity: setup.capacity_units,
    }))
}

struct WriteBack {
    queue: IndexList<WriteContext>,
    capacity: u32,
}

impl BufferPolicy for WriteBack {
    fn write_back(&self) -> bool {
        true
    }

    fn write(&mut self, lpn: Lpn, context: &WriteContext) -> Replaced {
        match self.queue.replace(lpn.0, *context) {
            Some(before) => Replaced::Dirty(before),
            None => {
                self.queue.put(lpn.0, *context);
                Replaced::Nothing
            }
        }
    }

    fn read(&mut self, lpn: Lpn, _: u32) -> bool {
        self.queue.contains(lpn.0)
    }

    fn held(&self, lpn: Lpn) -> Option<u32> {
        self.queue.get(lpn.0).map(|context| context.stamp)
    }

    fn is_dirty(&self, lpn: Lpn) -> bool {
        self.queue.contains(lpn.0)
    }

    fn evict(&mut self, all: bool) -> Option<(Lpn, WriteContext)> {
        (all || self.queue.len() > self.capacity)
            .then(|| self.queue.take_back().map(|(key, context)| (Lpn(key), context)))
            .flatten()
    }

    fn forget(&mut self, lpn: Lpn) -> Option<WriteContext> {
        self.queue.take(lpn.0)
    }

    fn dirty(&self) -> Vec<Lpn> {
        self.queue.from_back().map(Lpn).collect()
    }

    fn clear(&mut self) {
        self.queue.clear();
    }
}
