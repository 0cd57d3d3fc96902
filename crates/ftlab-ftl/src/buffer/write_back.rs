//! Write-back buffer: units leave in the order of their first write, or a full buffer leaves as a whole, sorted.
//!
//! # Model
//! A write is acknowledged when its data is in the buffer. An overwrite of a buffered unit replaces it (the first version is never
//! programmed). A read of a dirty unit is served from the buffer.
//! * `order = age`: once more units are dirty than the buffer holds, the one that became dirty first is programmed. An
//!   overwrite does not change its turn.
//! * `order = lpn`: once more units are dirty than the buffer holds, all of them are programmed, in order of LPN. Consecutive LPNs
//!   then lie in consecutive places, which mapping policies that store runs (`leaftl`, `sftl`) make shorter maps of. A unit
//!   that is overwritten often is programmed once each time the buffer fills, however late it came.
//!
//! Units that leave at a flush, or when the drive shuts down, leave in the same order.
//!
//! # Parameters
//! * `order` (`age` or `lpn`, default `age`): in which units leave.
//!
//! Size and power-loss protection are `buffer.capacity` and `buffer.power_loss_protected`.
//!
//! # Not modelled
//! * DRAM bandwidth and latency; clean data is not kept (see `lru`); the time of sorting.
//! * With `order = lpn`, a second buffer that fills while the first one empties: the write that fills the buffer waits until all
//!   but the last programs have ended.
//!
//! # Errors
//! None.
//!
//! # Cost
//! O(1) per unit, one hash look-up; with `order = lpn`, O(log of the buffered units).
//!
//! # Source
//! The write cache of the ATA and NVMe standards. Sorting: Sun et al., "LeaFTL", ASPLOS 2023, whose public code
//! (platformxlab/LeaFTL, wiscsim) empties a full buffer in order of LPN.

use std::collections::BTreeMap;

use ftlab_core::{IndexList, Lpn, Result};
use serde::{Deserialize, Serialize};

use super::{BufferPolicy, Replaced, Setup};
use crate::request::WriteContext;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub order: Order,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    #[default]
    Age,
    Lpn,
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn BufferPolicy>> {
    let capacity = setup.capacity_units;
    Ok(match params.order {
        Order::Age => Box::new(WriteBack {
            queue: IndexList::new(capacity),
            capacity,
        }),
        Order::Lpn => Box::new(Sorted {
            units: BTreeMap::new(),
            capacity,
            leaving: false,
        }),
    })
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

/// Dirty units in order of LPN.
struct Sorted {
    units: BTreeMap<u32, WriteContext>,
    capacity: u32,
    /// The buffer was full and is not empty yet.
    leaving: bool,
}

impl BufferPolicy for Sorted {
    fn write_back(&self) -> bool {
        true
    }

    fn write(&mut self, lpn: Lpn, context: &WriteContext) -> Replaced {
        match self.units.insert(lpn.0, *context) {
            Some(before) => Replaced::Dirty(before),
            None => Replaced::Nothing,
        }
    }

    fn read(&mut self, lpn: Lpn, _: u32) -> bool {
        self.units.contains_key(&lpn.0)
    }

    fn held(&self, lpn: Lpn) -> Option<u32> {
        self.units.get(&lpn.0).map(|context| context.stamp)
    }

    fn is_dirty(&self, lpn: Lpn) -> bool {
        self.units.contains_key(&lpn.0)
    }

    fn evict(&mut self, all: bool) -> Option<(Lpn, WriteContext)> {
        self.leaving |= self.units.len() > self.capacity as usize;
        self.leaving &= !self.units.is_empty();
        if !all && !self.leaving {
            return None;
        }
        self.units.pop_first().map(|(lpn, context)| (Lpn(lpn), context))
    }

    fn forget(&mut self, lpn: Lpn) -> Option<WriteContext> {
        let forgotten = self.units.remove(&lpn.0);
        self.leaving &= !self.units.is_empty();
        forgotten
    }

    fn dirty(&self) -> Vec<Lpn> {
        self.units.keys().copied().map(Lpn).collect()
    }

    fn clear(&mut self) {
        self.units.clear();
        self.leaving = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(order: Order, capacity_units: u32) -> Box<dyn BufferPolicy> {
        new(Params { order }, &mut Setup { capacity_units }).unwrap()
    }

    fn write(buffer: &mut dyn BufferPolicy, lpns: &[u32]) {
        for &lpn in lpns {
            buffer.write(Lpn(lpn), &WriteContext::default());
        }
    }

    fn leave(buffer: &mut dyn BufferPolicy, all: bool) -> Vec<u32> {
        std::iter::from_fn(|| buffer.evict(all).map(|(lpn, _)| lpn.0)).collect()
    }

    #[test]
    fn by_age_only_what_is_too_much_leaves() {
        let mut b = buffer(Order::Age, 3);
        write(&mut *b, &[7, 3, 9, 7]);
        assert_eq!(leave(&mut *b, false), [0; 0]);
        write(&mut *b, &[1]);
        assert_eq!(leave(&mut *b, false), [7]);
        assert_eq!(b.dirty(), [3, 9, 1].map(Lpn));
        assert_eq!(leave(&mut *b, true), [3, 9, 1]);
    }

    #[test]
    fn by_lpn_a_full_buffer_leaves_sorted_and_as_a_whole() {
        let mut b = buffer(Order::Lpn, 3);
        write(&mut *b, &[7, 3, 9, 7]);
        assert_eq!(leave(&mut *b, false), [0; 0]);
        write(&mut *b, &[1]);
        assert_eq!(b.dirty(), [1, 3, 7, 9].map(Lpn));
        assert_eq!(leave(&mut *b, false), [1, 3, 7, 9]);
        // Fewer than it holds stay, until a flush.
        write(&mut *b, &[5, 2]);
        assert_eq!(leave(&mut *b, false), [0; 0]);
        assert_eq!(leave(&mut *b, true), [2, 5]);
        write(&mut *b, &[8]);
        assert_eq!(leave(&mut *b, false), [0; 0]);
    }

    /// What is trimmed while a full buffer leaves does not leave, and what is trimmed last ends the leaving.
    #[test]
    fn by_lpn_an_interrupted_leaving_goes_on_until_nothing_is_left() {
        let mut b = buffer(Order::Lpn, 2);
        write(&mut *b, &[4, 6, 8]);
        assert_eq!(b.evict(false).map(|(lpn, _)| lpn), Some(Lpn(4)));
        b.forget(Lpn(6));
        assert_eq!(b.evict(false).map(|(lpn, _)| lpn), Some(Lpn(8)));
        write(&mut *b, &[1, 2, 3]);
        b.evict(false);
        b.forget(Lpn(2));
        b.forget(Lpn(3));
        write(&mut *b, &[5]);
        assert_eq!(b.evict(false), None);
    }
}
