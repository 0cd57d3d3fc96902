//! The guard of MiDAS against a last group that is all valid: it would be collected again and again while what is invalid lies in
//! groups that are within their sizes.

use super::Midas;
use crate::Now;

/// Collections in one go after which groups are merged, as in the public code.
const MOST: u32 = 25;

/// Collections at one tick, since they have freed a reclaim unit together.
#[derive(Clone, Debug, Default)]
pub(super) struct Go {
    tick: u64,
    count: u32,
    /// Mapping units that they have freed.
    freed: u32,
    /// The group of the last victim.
    group: usize,
}

impl Midas {
    /// A unit of `group` is collected, by which so many mapping units are freed.
    pub(super) fn count_collection(&mut self, group: usize, freed: u32, now: Now) {
        let go = &mut self.learnt.go;
        if go.tick != now.tick || go.freed >= self.units_per_ru {
            *go = Go::default();
        }
        *go = Go {
            tick: now.tick,
            count: go.count + 1,
            freed: go.freed + freed,
            group,
        };
    }

    /// Merges the group that was collected last with all later ones if the collections of this go are too many for what they have
    /// freed; the last group takes in the one before it. The hot group is dissolved with the last other group.
    pub(super) fn merge_if_stuck(&mut self, now: Now) {
        let Go {
            tick,
            count,
            freed,
            group,
        } = self.learnt.go;
        let is_stuck = tick == now.tick && count >= MOST && freed < self.units_per_ru;
        if !is_stuck || (self.learnt.shares.is_empty() && !self.learnt.is_hot_used) {
            return;
        }
        self.learnt.go = Go::default();
        let before_last = self.learnt.shares.len();
        self.merge_from(group.min(before_last).saturating_sub(1));
        if self.learnt.shares.is_empty() && self.learnt.is_hot_used {
            (self.learnt.is_hot_used, self.learnt.hot_ages) = (false, (0, 0));
        }
    }

    /// Groups but the first `kept` ones and the hot group become one, the last.
    pub(super) fn merge_from(&mut self, kept: usize) {
        self.learnt.shares.truncate(kept);
        self.learnt.predicted.truncate(kept);
        self.learnt.is_graded = self.params.graded;
        self.learnt.merged += 1;
    }
}
