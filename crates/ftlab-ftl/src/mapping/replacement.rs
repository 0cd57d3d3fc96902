//! Which single entry a full mapping cache gives up: segmented least recent use, or FlashSim's ages.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::allocated;
use super::arena::{Arena, Beside, List};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replacement {
    Slru,
    Lru,
    FlashsimAge,
}

const PROBATIONARY: u8 = 0;
const PROTECTED: u8 = 1;

/// The entries of an arena in the order in which they are given up. `tag` is the segment.
#[derive(Clone, Debug)]
pub struct Order {
    rule: Replacement,
    /// Most entries of the protected segment.
    protected: u32,
    lists: [List; 2],
    /// For ages: (age, node) of each segment, and the age of each node.
    ages: [BTreeSet<(u64, u32)>; 2],
    age: Vec<u64>,
}

impl Order {
    /// For a cache of `capacity` entries, `share` of which may be protected.
    pub fn new(rule: Replacement, capacity: u32, share: f64) -> Self {
        let protected = match rule {
            Replacement::Lru => 0,
            _ => ((f64::from(capacity) * share) as u32).min(capacity.saturating_sub(1)),
        };
        Order {
            rule,
            protected,
            lists: Default::default(),
            ages: Default::default(),
            age: Vec::new(),
        }
    }

    /// A node that has just been loaded.
    pub fn enter<B: Beside>(&mut self, arena: &mut Arena<B>, node: u32) {
        if self.rule == Replacement::FlashsimAge {
            let oldest = self.ages[usize::from(PROTECTED)].last().map_or(0, |&(age, _)| age);
            if self.age.len() <= node as usize {
                self.age.resize(node as usize + 1, 0);
            }
            self.age[node as usize] = oldest.saturating_add(1);
            self.add_aged(arena, node, PROBATIONARY);
        } else {
            arena.node_mut(node).tag = PROBATIONARY;
            arena.push_front(&mut self.lists[usize::from(PROBATIONARY)], node);
        }
    }

    #[inline]
    pub fn hit<B: Beside>(&mut self, arena: &mut Arena<B>, node: u32) {
        if self.rule == Replacement::FlashsimAge {
            return self.hit_aged(arena, node);
        }
        let tag = arena.node(node).tag;
        if tag == PROTECTED || self.protected == 0 {
            return arena.touch(&mut self.lists[usize::from(tag)], node);
        }
        let [probationary, protected] = &mut self.lists;
        arena.unlink(probationary, node);
        arena.node_mut(node).tag = PROTECTED;
        arena.push_front(protected, node);
        if protected.len() > self.protected
            && let Some(down) = protected.back()
        {
            arena.unlink(protected, down);
            arena.node_mut(down).tag = PROBATIONARY;
            arena.push_front(probationary, down);
        }
    }

    /// The node to give up next.
    pub fn victim(&self) -> Option<u32> {
        if self.rule == Replacement::FlashsimAge {
            let lowest = |ages: &BTreeSet<(u64, u32)>| ages.first().map(|&(_, node)| node);
            return lowest(&self.ages[0]).or_else(|| lowest(&self.ages[1]));
        }
        self.lists[0].back().or_else(|| self.lists[1].back())
    }

    /// Brings what giving up the next node will touch into the processor's cache.
    #[inline]
    pub fn prefetch_victim<B: Beside>(&self, arena: &Arena<B>) {
        if let Some(back) = self.lists[0].back() {
            arena.prefetch_leaving(back);
        }
    }

    pub fn leave<B: Beside>(&mut self, arena: &mut Arena<B>, node: u32) {
        let tag = arena.node(node).tag;
        if self.rule == Replacement::FlashsimAge {
            self.ages[usize::from(tag)].remove(&(self.age[node as usize], node));
        } else {
            arena.unlink(&mut self.lists[usize::from(tag)], node);
        }
    }

    pub fn clear(&mut self) {
        self.lists = Default::default();
        self.ages.iter_mut().for_each(BTreeSet::clear);
    }

    /// Bytes of the simulator's memory, but for the tree of ages.
    pub fn bytes(&self) -> u64 {
        allocated(&self.age)
    }

    fn add_aged<B: Beside>(&mut self, arena: &mut Arena<B>, node: u32, tag: u8) {
        arena.node_mut(node).tag = tag;
        self.ages[usize::from(tag)].insert((self.age[node as usize], node));
    }

    fn hit_aged<B: Beside>(&mut self, arena: &mut Arena<B>, node: u32) {
        self.leave(arena, node);
        let age = self.age[node as usize].saturating_add(1);
        self.age[node as usize] = age;
        let tag = arena.node(node).tag;
        if tag == PROTECTED || self.protected == 0 {
            return self.add_aged(arena, node, tag);
        }
        if (self.ages[usize::from(PROTECTED)].len() as u32) < self.protected {
            return self.add_aged(arena, node, PROTECTED);
        }
        match self.ages[usize::from(PROTECTED)].first().copied() {
            Some((lowest, other)) if age >= lowest => {
                self.leave(arena, other);
                self.add_aged(arena, other, PROBATIONARY);
                self.add_aged(arena, node, PROTECTED);
            }
            _ => self.add_aged(arena, node, PROBATIONARY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of four entries; hits and loads keys in turn and returns what is left, in the order of leaving.
    fn left(rule: Replacement, share: f64, keys: &[u32]) -> Vec<u32> {
        let (mut arena, mut order) = (Arena::<()>::new(4), Order::new(rule, 4, share));
        for &key in keys {
            match arena.find(key) {
                Some(node) => order.hit(&mut arena, node),
                None => {
                    if arena.len() == 4 {
                        let victim = order.victim().unwrap();
                        order.leave(&mut arena, victim);
                        arena.remove(victim);
                    }
                    let node = arena.insert(key, 0);
                    order.enter(&mut arena, node);
                }
            }
        }
        let mut left = Vec::new();
        while let Some(victim) = order.victim() {
            left.push(arena.node(victim).key);
            order.leave(&mut arena, victim);
            arena.remove(victim);
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
