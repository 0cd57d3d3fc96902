//! Which single entry a full mapping cache gives up: segmented least recent use, or FlashSim's ages.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::allocated;
use super::lru::Lru;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replacement {
    Slru,
    Lru,
    FlashsimAge,
}

const PROBATIONARY: usize = 0;
const PROTECTED: usize = 1;

/// Which of the entries is given up.
#[derive(Clone, Debug)]
pub struct Order {
    /// Most entries of the protected segment.
    protected: u32,
    ages: Option<Ages>,
}

impl Order {
    /// For a cache of `capacity` entries, `share` of which may be protected.
    pub fn new(rule: Replacement, capacity: u32, share: f64) -> Self {
        let protected = match rule {
            Replacement::Lru => 0,
            _ => ((f64::from(capacity) * share) as u32).min(capacity.saturating_sub(1)),
        };
        Order {
            protected,
            ages: (rule == Replacement::FlashsimAge).then(Ages::default),
        }
    }

    /// A key that has just been loaded. Returns its entry.
    pub fn enter(&mut self, lru: &mut Lru, key: u32) -> u32 {
        let entry = lru.insert(key);
        if let Some(ages) = &mut self.ages {
            ages.enter(lru, entry);
        }
        entry
    }

    #[inline]
    pub fn hit(&mut self, lru: &mut Lru, entry: u32) {
        if let Some(ages) = &mut self.ages {
            return ages.hit(lru, entry, self.protected);
        }
        if self.protected == 0 || lru.segment(entry) == PROTECTED {
            return lru.touch(entry);
        }
        lru.change_segment(entry);
        if lru.len_of(PROTECTED) > self.protected
            && let Some(down) = lru.oldest(PROTECTED)
        {
            lru.change_segment(down);
        }
    }

    /// The entry to give up next.
    pub fn victim(&self, lru: &mut Lru) -> Option<u32> {
        match &self.ages {
            Some(ages) => ages.victim(),
            None => lru.oldest(PROBATIONARY).or_else(|| lru.oldest(PROTECTED)),
        }
    }

    pub fn leave(&mut self, lru: &mut Lru, entry: u32) {
        if let Some(ages) = &mut self.ages {
            ages.leave(lru, entry);
        }
        lru.remove(entry);
    }

    pub fn clear(&mut self) {
        self.ages.iter_mut().for_each(|ages| *ages = Ages::default());
    }

    /// Bytes of the simulator's memory, but for the trees of ages.
    pub fn bytes(&self) -> u64 {
        self.ages.as_ref().map_or(0, |ages| {
            allocated(&ages.of_entry) + allocated(&ages.entries) + allocated(&ages.unused)
        })
    }
}

/// FlashSim's ages. Of several entries of the same age the one at the lowest place of its array goes; an entry takes the place of
/// the one that left last.
#[derive(Clone, Debug, Default)]
struct Ages {
    /// (age, place) of each segment.
    trees: [BTreeSet<(u64, u32)>; 2],
    /// Age and place of each entry.
    of_entry: Vec<(u64, u32)>,
    /// The entry at each place.
    entries: Vec<u32>,
    unused: Vec<u32>,
}

impl Ages {
    fn enter(&mut self, lru: &Lru, entry: u32) {
        let oldest = self.trees[PROTECTED].last().map_or(0, |&(age, _)| age);
        let place = self.unused.pop().unwrap_or_else(|| {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        });
        self.entries[place as usize] = entry;
        if self.of_entry.is_empty() {
            self.of_entry = vec![(0, 0); lru.end() as usize];
        }
        self.of_entry[entry as usize] = (oldest.saturating_add(1), place);
        self.add(lru, entry);
    }

    /// Puts the entry into the tree of its segment.
    fn add(&mut self, lru: &Lru, entry: u32) {
        self.trees[lru.segment(entry)].insert(self.of_entry[entry as usize]);
    }

    fn take(&mut self, lru: &Lru, entry: u32) {
        self.trees[lru.segment(entry)].remove(&self.of_entry[entry as usize]);
    }

    fn leave(&mut self, lru: &Lru, entry: u32) {
        self.take(lru, entry);
        self.unused.push(self.of_entry[entry as usize].1);
    }

    fn victim(&self) -> Option<u32> {
        let lowest = self.trees[PROBATIONARY]
            .first()
            .or_else(|| self.trees[PROTECTED].first());
        lowest.map(|&(_, place)| self.entries[place as usize])
    }

    fn hit(&mut self, lru: &mut Lru, entry: u32, protected: u32) {
        self.take(lru, entry);
        let (age, _) = &mut self.of_entry[entry as usize];
        *age = age.saturating_add(1);
        let age = *age;
        if lru.segment(entry) == PROBATIONARY && protected > 0 {
            if lru.len_of(PROTECTED) < protected {
                lru.change_segment(entry);
            } else if let Some(&(lowest, place)) = self.trees[PROTECTED].first()
                && age >= lowest
            {
                let other = self.entries[place as usize];
                self.take(lru, other);
                lru.change_segment(other);
                self.add(lru, other);
                lru.change_segment(entry);
            }
        }
        self.add(lru, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of four entries; hits and loads keys in turn and returns what is left, in the order of leaving.
    fn left(rule: Replacement, share: f64, keys: &[u32]) -> Vec<u32> {
        let (mut lru, mut order) = (Lru::new(4), Order::new(rule, 4, share));
        for &key in keys {
            match lru.find(key) {
                Some(entry) => order.hit(&mut lru, entry),
                None => {
                    if lru.len() == 4 {
                        let victim = order.victim(&mut lru).unwrap();
                        order.leave(&mut lru, victim);
                    }
                    order.enter(&mut lru, key);
                }
            }
        }
        let mut left = Vec::new();
        while let Some(victim) = order.victim(&mut lru) {
            left.push(lru.key(victim));
            order.leave(&mut lru, victim);
        }
        left
    }

    #[test]
    fn lru_gives_up_the_least_recent() {
        assert_eq!(left(Replacement::Lru, 0.8, &[1, 2, 3, 4, 1, 5]), [3, 4, 1, 5]);
    }

    #[test]
    fn slru_protects_what_was_hit() {
        // Half of four is two. 1 and 2 are hit and protected; 3, 4, 5, 6 pass through the other half.
        assert_eq!(left(Replacement::Slru, 0.5, &[1, 2, 1, 2, 3, 4, 5, 6]), [5, 6, 1, 2]);
        // A third hit entry sends the least recent protected one (1) down, to the probationary front.
        assert_eq!(left(Replacement::Slru, 0.5, &[1, 2, 1, 2, 3, 4, 3]), [4, 1, 2, 3]);
    }

    #[test]
    fn ages_prefer_what_was_hit_often() {
        // All loaded with age 1. 1: hit, age 2, protected; 2: hit twice, age 3, protected (two of four). 3 enters with the
        // greatest protected age + 1 = 4, and hit once (5) changes places with 1, the lowest.
        assert_eq!(left(Replacement::FlashsimAge, 0.5, &[1, 2, 1, 2, 2, 3, 3]), [1, 2, 3]);
    }
}
