//! Write-back buffer: units leave in the order of their first write, or a full buffer leaves at once, sorted.
//!
//! # Model
//! A write is acknowledged when its data is in the buffer. An overwrite of a buffered unit replaces it (the first
//! version is never programmed). A read of a dirty unit is served from the buffer. Units beyond the capacity are
//! programmed when the request is complete, not unit by unit: until then the buffer holds more.
//! * `order = age`: once more units are dirty than the buffer holds, the one that became dirty first is programmed. An
//!   overwrite does not change its turn.
//! * `order = lpn`: once more units are dirty than the buffer holds, `share` of them are programmed, in order of LPN.
//!   They are taken from the groups of 256 LPNs with the most dirty units: as many groups as do not exceed that share,
//!   but at least one. Consecutive LPNs then lie in consecutive places, so that mapping policies that store runs
//!   (`leaftl`, `sftl`) need less memory. With a share of 1, a unit that is overwritten often is programmed each time
//!   the buffer fills, even if it was written last.
//!
//! Units that leave at a flush, or when the drive shuts down, leave in the same order.
//!
//! # Parameters
//! * `order` (`age` or `lpn`, default `age`): in which units leave.
//! * `share` (above 0, at most 1, default 1): of a full buffer, programmed at once. Only with `order = lpn`.
//!
//! Size and power-loss protection are `buffer.capacity`, less room for programs under way, and `buffer.power_loss_protected`.
//!
//! # Not modelled
//! * DRAM bandwidth and latency; clean data is not kept (see `lru`); the time of sorting.
//! * With `order = lpn`, a second buffer that fills while the first one empties: the write that fills the buffer waits until all
//!   but the last programs have ended.
//!
//! # Errors
//! A share out of range, or a share without `order = lpn`, is refused.
//!
//! # Cost
//! O(1) per unit, one hash look-up; with `order = lpn`, O(log of the buffered units).
//!
//! # Source
//! The write cache of the ATA and NVMe standards. Sorting: Sun et al., "LeaFTL", ASPLOS 2023. Its public code
//! (platformxlab/LeaFTL, wiscsim) assigns places in order of LPN to 7/8 of 8 MiB of dirty pages, the fullest groups of
//! 256 first; that is `order=lpn,share=0.875`. In that code, data that has a place may stay in the cache until its
//! turn; here it leaves the buffer at once.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ftlab_core::{Error, IndexList, Lpn, Result};
use serde::{Deserialize, Serialize};

use super::{BufferPolicy, Replaced, Setup};
use crate::request::WriteContext;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub order: Order,
    pub share: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            order: Order::Age,
            share: 1.0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Age,
    Lpn,
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn BufferPolicy>> {
    let capacity = setup.capacity_units;
    let share = params.share;
    if !(share > 0.0 && share <= 1.0) || (share < 1.0 && params.order == Order::Age) {
        return Err(Error::input(format!(
            "buffer policy `write_back`: share = {share}: expected above 0, at most 1, and below 1 only with order=lpn"
        )));
    }
    Ok(match params.order {
        Order::Age => Box::new(WriteBack {
            queue: IndexList::new(capacity),
            capacity,
        }),
        Order::Lpn => Box::new(Sorted {
            units: BTreeMap::new(),
            capacity,
            share,
            leaving: Vec::new(),
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
    share: f64,
    /// What leaves since the buffer was full, highest LPN first.
    leaving: Vec<u32>,
}

/// LPNs that leave together.
const GROUP: u32 = 256;

impl Sorted {
    /// The units of the fullest groups, as many as are no more than the share.
    fn choose(&mut self) {
        let mut groups: Vec<(usize, u32)> = Vec::new();
        for lpn in self.units.keys() {
            match groups.last_mut() {
                Some((units, group)) if *group == lpn / GROUP => *units += 1,
                _ => groups.push((1, lpn / GROUP)),
            }
        }
        groups.sort_unstable_by_key(|&(units, group)| (Reverse(units), group));
        let most = self.share * self.units.len() as f64;
        let mut sum = 0;
        let beyond = groups.iter().position(|&(units, _)| {
            sum += units;
            sum as f64 > most
        });
        groups.truncate(beyond.map_or(groups.len(), |at| at.max(1)));
        groups.sort_unstable_by_key(|&(_, group)| Reverse(group));
        for (_, group) in groups {
            let first = group * GROUP;
            let of_group = self.units.range(first..=first + (GROUP - 1));
            self.leaving.extend(of_group.rev().map(|(&lpn, _)| lpn));
        }
    }
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
        if all {
            self.leaving.clear();
            return self.units.pop_first().map(|(lpn, context)| (Lpn(lpn), context));
        }
        if self.leaving.is_empty() && self.units.len() > self.capacity as usize {
            self.choose();
        }
        while let Some(lpn) = self.leaving.pop() {
            // It may have been trimmed since.
            if let Some(context) = self.units.remove(&lpn) {
                return Some((Lpn(lpn), context));
            }
        }
        None
    }

    fn forget(&mut self, lpn: Lpn) -> Option<WriteContext> {
        self.units.remove(&lpn.0)
    }

    fn dirty(&self) -> Vec<Lpn> {
        self.units.keys().copied().map(Lpn).collect()
    }

    fn clear(&mut self) {
        self.units.clear();
        self.leaving.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(order: Order, capacity_units: u32) -> Box<dyn BufferPolicy> {
        let params = Params {
            order,
            ..Params::default()
        };
        new(params, &mut Setup { capacity_units }).unwrap()
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

    #[test]
    fn by_lpn_a_share_leaves_from_the_fullest_groups() {
        let params = |share| Params {
            order: Order::Lpn,
            share,
        };
        let mut setup = Setup { capacity_units: 7 };
        let mut b = new(params(0.75), &mut setup).unwrap();
        // Groups 0, 1, 2 and 3 have 1, 3, 2 and 2 of 8 units: at most 6 may leave, which 3 and 2 are, but not 3, 2 and 2.
        write(&mut *b, &[900, 0, 300, 600, 270, 800, 510, 520]);
        assert_eq!(leave(&mut *b, false), [270, 300, 510, 520, 600]);
        assert_eq!(b.dirty(), [0, 800, 900].map(Lpn));
        // A share that no group keeps to is exceeded by the fullest one.
        let mut b = new(params(0.1), &mut setup).unwrap();
        write(&mut *b, &[3, 2, 1, 0, 260, 259, 258, 257]);
        assert_eq!(leave(&mut *b, false), [0, 1, 2, 3]);
        assert!(new(params(0.0), &mut setup).is_err());
        let by_age = Params {
            order: Order::Age,
            share: 0.5,
        };
        assert!(new(by_age, &mut setup).is_err());
    }

    /// What is trimmed while a full buffer leaves does not leave.
    #[test]
    fn by_lpn_an_interrupted_leaving_goes_on_without_what_was_trimmed() {
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
