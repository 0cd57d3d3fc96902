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

use super::{BufferPolicy, Setup};

pub fn new(_: NoParams, setup: &mut Setup) -> Result<Box<dyn BufferPolicy>> {
    Ok(Box::new(WriteBack {
        queue: IndexList::new(setup.capacity_units),
        capacity: setup.capacity_units,
    }))
}

struct WriteBack {
    queue: IndexList,
    capacity: u32,
}

impl BufferPolicy for WriteBack {
    fn write_back(&self) -> bool {
        true
    }

    fn write(&mut self, lpn: Lpn) -> bool {
        let present = self.queue.contains(lpn.0);
        if !present {
            self.queue.touch(lpn.0);
        }
        present
    }

    fn read(&mut self, lpn: Lpn) -> bool {
        self.queue.contains(lpn.0)
    }

    fn is_dirty(&self, lpn: Lpn) -> bool {
        self.queue.contains(lpn.0)
    }

    fn evict(&mut self, all: bool) -> Option<Lpn> {
        (all || self.queue.len() > self.capacity)
            .then(|| self.queue.pop_back().map(Lpn))
            .flatten()
    }

    fn forget(&mut self, lpn: Lpn) {
        self.queue.remove(lpn.0);
    }

    fn dirty(&self) -> Vec<Lpn> {
        self.queue.from_back().map(Lpn).collect()
    }

    fn clear(&mut self) {
        self.queue.clear();
    }
}
