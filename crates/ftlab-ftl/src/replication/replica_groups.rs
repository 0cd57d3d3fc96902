//! Values with several copies in the order in which their space is taken back: by recency, or within the part that has not been used
//! for longest by how little their pages are blocked.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug)]
struct Group {
    /// Copies beyond the first.
    further: u32,
    /// Greater for what was used later.
    used_at: u64,
    /// In the priority region: the blocking probability with which it came there.
    priority: Option<u64>,
    blocking: f64,
}

/// The replica groups of a drive. The most recently used are the recency region; what it has no room for is the priority region.
pub struct ReplicaGroups<K> {
    groups: FxHashMap<K, Group>,
    recent: BTreeMap<u64, K>,
    /// By blocking probability (as the bits of a number from 0 on), the longest unused first.
    candidates: BTreeSet<(u64, u64, K)>,
    clock: u64,
    /// Copies beyond the first of all groups, and of the recency region.
    further: u64,
    recent_further: u64,
    /// Greatest size of the recency region; of all groups.
    recency: u64,
    budget: u64,
}

impl<K: Copy + Ord + Hash> ReplicaGroups<K> {
    /// With room for `budget` copies, of which `recency` are the recency region; plain LRU with all of them.
    pub fn new(budget: u64, recency: u64) -> Self {
        ReplicaGroups {
            groups: FxHashMap::default(),
            recent: BTreeMap::new(),
            candidates: BTreeSet::new(),
            clock: 0,
            further: 0,
            recent_further: 0,
            recency,
            budget,
        }
    }

    /// Another room, as when what is copied has grown; what no longer fits is there to be evicted.
    pub fn resize(&mut self, budget: u64, recency: u64) {
        (self.budget, self.recency) = (budget, recency);
        self.leave_recency();
    }

    pub fn clear(&mut self) {
        *self = ReplicaGroups::new(self.budget, self.recency);
    }

    /// Copies beyond the first in all groups.
    pub fn further(&self) -> u64 {
        self.further
    }

    pub fn contains(&self, key: K) -> bool {
        self.groups.contains_key(&key)
    }

    /// One more copy of `key`, whose group comes to the head.
    pub fn add(&mut self, key: K, blocking: f64) {
        let before = self.remove(key);
        self.insert(key, before + 1, blocking);
    }

    /// `key` has been used: its group, if it has one, comes to the head.
    pub fn touch(&mut self, key: K, blocking: f64) {
        let further = self.remove(key);
        if further > 0 {
            self.insert(key, further, blocking);
        }
    }

    fn insert(&mut self, key: K, further: u32, blocking: f64) {
        self.clock += 1;
        let group = Group {
            further,
            used_at: self.clock,
            priority: None,
            blocking,
        };
        self.groups.insert(key, group);
        self.recent.insert(self.clock, key);
        self.further += u64::from(further);
        self.recent_further += u64::from(further);
        self.leave_recency();
    }

    fn leave_recency(&mut self) {
        while self.recent_further > self.recency && self.recent.len() > 1 {
            let Some((_, oldest)) = self.recent.pop_first() else {
                break;
            };
            let Some(group) = self.groups.get_mut(&oldest) else {
                break;
            };
            let priority = group.blocking.max(0.0).to_bits();
            group.priority = Some(priority);
            self.recent_further -= u64::from(group.further);
            self.candidates.insert((priority, group.used_at, oldest));
        }
    }

    /// Takes the group of `key` out; how many further copies it had.
    pub fn remove(&mut self, key: K) -> u32 {
        let Some(group) = self.groups.remove(&key) else {
            return 0;
        };
        self.further -= u64::from(group.further);
        match group.priority {
            Some(priority) => {
                self.candidates.remove(&(priority, group.used_at, key));
            }
            None => {
                self.recent.remove(&group.used_at);
                self.recent_further -= u64::from(group.further);
            }
        }
        group.further
    }

    /// The next group to give up, with its further copies, while there are more of them than fit.
    pub fn evict(&mut self) -> Option<(K, u32)> {
        if self.further <= self.budget {
            return None;
        }
        self.give_up()
    }

    /// The next group to give up, with its further copies, whether they fit or not.
    pub fn give_up(&mut self) -> Option<(K, u32)> {
        let victim = self.victim()?;
        let further = self.remove(victim);
        Some((victim, further))
    }

    fn victim(&self) -> Option<K> {
        let candidate = self.candidates.first().map(|&(.., key)| key);
        candidate.or_else(|| self.recent.first_key_value().map(|(_, &key)| key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indirection::Vpn;

    /// Seven groups A to G, A used last, with the priority region of three of figure 3.
    fn figure_3(recency: u64) -> Vec<char> {
        let blocking = [
            ('A', 0.10),
            ('B', 0.02),
            ('C', 0.05),
            ('D', 0.01),
            ('E', 0.09),
            ('F', 0.01),
            ('G', 0.04),
        ];
        let mut groups = ReplicaGroups::new(7, recency);
        for &(name, blocking) in blocking.iter().rev() {
            groups.add(Vpn(name as u32), blocking);
        }
        assert!(groups.evict().is_none(), "all seven have room");
        let mut evicted = Vec::new();
        for budget in [6, 5, 4] {
            groups.budget = budget;
            let (victim, further) = groups.evict().unwrap();
            assert_eq!((further, groups.evict()), (1, None));
            evicted.push(char::from_u32(victim.0).unwrap());
        }
        evicted
    }

    #[test]
    fn evictions_go_as_in_figure_3() {
        assert_eq!(
            figure_3(4),
            ['F', 'G', 'E'],
            "PBLRU: the lowest blocking probability of the priority region first"
        );
        assert_eq!(figure_3(7), ['G', 'F', 'E'], "LRU: the tail first");
    }

    #[test]
    fn use_brings_a_group_back_to_the_recency_region() {
        let mut groups = ReplicaGroups::new(3, 1);
        for vpn in 1..=3 {
            groups.add(Vpn(vpn), 0.5);
        }
        groups.touch(Vpn(1), 0.5);
        groups.touch(Vpn(9), 0.5);
        assert_eq!((groups.further(), groups.contains(Vpn(9))), (3, false));
        groups.add(Vpn(3), 0.0);
        assert_eq!(groups.evict(), Some((Vpn(2), 1)), "four copies, of which 3 has two");
        assert_eq!(groups.remove(Vpn(3)), 2);
        assert_eq!((groups.further(), groups.evict()), (1, None));
        groups.clear();
        assert_eq!((groups.further(), groups.contains(Vpn(1))), (0, false));
    }
}
