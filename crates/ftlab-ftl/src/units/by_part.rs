//! Closed units by the part that a policy assigns them to: how many there are of each, and the oldest of all parts but the last. Only the
//! last part is in the order by valid counts.
//!
//! A unit is assigned when the policy looks at its pool next, and again when what the policy goes by has changed.

use std::collections::VecDeque;

use super::by_age::{ByAge, is_current};
use super::{Ru, RuState};

/// Part of a unit that has yet to be assigned, and of one in the last part.
const NONE: u8 = u8::MAX;
const LAST: u8 = u8::MAX - 1;

#[derive(Clone, Debug)]
pub(super) struct ByPart {
    part_of: Vec<u8>,
    pools: Vec<Parts>,
}

#[derive(Clone, Debug, Default)]
struct Parts {
    /// What the policy went by when the units were assigned; `None` before.
    key: Option<u64>,
    /// (unit, its sequence number at closing) of those closed since; stale as in [`ByAge`].
    pending: Vec<(u32, u32)>,
    /// Units of each part but the last, oldest first, as in [`ByAge`], and how many of them are not stale.
    queues: Vec<VecDeque<(u32, u32)>>,
    lengths: Vec<u32>,
    in_last: u32,
}

impl ByPart {
    pub fn new(rus: u32, pools: usize) -> Self {
        ByPart {
            part_of: vec![NONE; rus as usize],
            pools: vec![Parts::default(); pools],
        }
    }

    /// Forgets every unit.
    pub fn clear(&mut self) {
        self.part_of.fill(NONE);
        self.pools.fill_with(Parts::default);
    }

    pub fn close(&mut self, pool: usize, ru: u32, sequence: u32) {
        let parts = &mut self.pools[pool];
        if parts.key.is_some() {
            parts.pending.push((ru, sequence));
        }
    }

    pub fn remove(&mut self, pool: usize, ru: u32) {
        let parts = &mut self.pools[pool];
        match std::mem::replace(&mut self.part_of[ru as usize], NONE) {
            NONE => {}
            LAST => parts.in_last -= 1,
            part => parts.lengths[usize::from(part)] -= 1,
        }
    }

    #[inline]
    pub fn is_in_last(&self, ru: u32) -> bool {
        self.part_of[ru as usize] == LAST
    }

    /// Whether the units of `pool` were assigned by something else than `key`.
    pub fn is_outdated(&self, pool: usize, key: u64) -> bool {
        self.pools[pool].key != Some(key)
    }

    /// No unit of `pool` is assigned; those of `closed`, which are all of them, will be by `key`, into `count` parts.
    pub fn begin(&mut self, pool: usize, key: u64, count: usize, closed: &[u32], ages: &ByAge, rus: &[Ru]) {
        assert!((1..usize::from(LAST)).contains(&count), "{count} parts");
        closed.iter().for_each(|&ru| self.part_of[ru as usize] = NONE);
        let oldest_first = ages.oldest_first(pool, rus);
        self.pools[pool] = Parts {
            key: Some(key),
            pending: oldest_first.map(|ru| (ru, ages.closed_at(ru))).collect(),
            queues: vec![VecDeque::new(); count - 1],
            lengths: vec![0; count - 1],
            in_last: 0,
        };
    }

    /// The units of `pool` that have yet to be assigned, oldest first.
    pub fn take_pending(&mut self, pool: usize) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.pools[pool].pending)
    }

    /// `pending` has been dealt with: its memory is used again.
    pub fn give_back(&mut self, pool: usize, mut pending: Vec<(u32, u32)>) {
        pending.clear();
        self.pools[pool].pending = pending;
    }

    /// Puts a unit into `part`. True if that is the last.
    pub fn assign(&mut self, pool: usize, entry: (u32, u32), part: usize) -> bool {
        let parts = &mut self.pools[pool];
        let is_last = part == parts.queues.len();
        if is_last {
            self.part_of[entry.0 as usize] = LAST;
            parts.in_last += 1;
        } else {
            self.part_of[entry.0 as usize] = part as u8;
            parts.queues[part].push_back(entry);
            parts.lengths[part] += 1;
        }
        is_last
    }

    pub fn len(&self, pool: usize, part: usize) -> u32 {
        let parts = &self.pools[pool];
        parts.lengths.get(part).copied().unwrap_or(parts.in_last)
    }

    /// The unit of `part`, which is not the last, that was closed first.
    pub fn oldest(&mut self, pool: usize, part: usize, ages: &ByAge, rus: &[Ru]) -> Option<u32> {
        let parts = &mut self.pools[pool];
        let queue = &mut parts.queues[part];
        while queue
            .front()
            .is_some_and(|&entry| !is_current(entry, rus, ages.all_closed_at()))
        {
            queue.pop_front();
        }
        if queue.len() > 2 * parts.lengths[part] as usize + 64 {
            queue.retain(|&entry| is_current(entry, rus, ages.all_closed_at()));
        }
        let oldest = queue.front().map(|&(ru, _)| ru);
        debug_assert!(oldest.is_none_or(|ru| rus[ru as usize].state == RuState::Closed));
        oldest
    }
}
