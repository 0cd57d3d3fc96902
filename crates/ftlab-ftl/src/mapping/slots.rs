//! Cached entries by key: open addressing in groups of eight, each of which lies on one line of the processor's cache. Entries
//! never move, so the number of a slot stands for its entry as long as that is cached.

use ftlab_core::memory::{prefetch, which_are};

use super::allocated;
use super::list::NONE;

/// Slots of a group.
const GROUP: usize = 8;
/// How many of them are in use when everything is cached that was expected. More, and a search passes over full groups too often.
const USED: u32 = 5;

/// On one line of the processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Group {
    keys: [u32; GROUP],
    words: [u32; GROUP],
}

impl Group {
    /// The first place that holds `key`; for `NONE`, that is free.
    #[inline(always)]
    fn position(&self, key: u32) -> Option<usize> {
        let places = which_are(&self.keys, key);
        (places != 0).then(|| places.trailing_zeros() as usize)
    }
}

/// Room for a number of entries, and a word beside the key of each. Costs 13 bytes for each that is expected.
#[derive(Clone, Debug)]
pub struct Slots {
    groups: Vec<Group>,
    /// By group: how many keys have passed over it because it was full; the greatest number stands for itself and all above.
    passed: Vec<u8>,
    len: u32,
}

impl Slots {
    /// Room for `expected` entries.
    pub fn new(expected: u32) -> Self {
        assert!(expected <= 1 << 31, "a cache of {expected} entries");
        let groups = expected.div_ceil(USED).max(1) as usize;
        let empty = Group {
            keys: [NONE; GROUP],
            words: [0; GROUP],
        };
        Slots {
            groups: vec![empty; groups],
            passed: vec![0; groups],
            len: 0,
        }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One more than the highest number of a slot.
    pub fn end(&self) -> u32 {
        (GROUP * self.groups.len()) as u32
    }

    /// The group at which the search for a key begins, the same for four neighbours: the high bits of a product with 2^32 divided by
    /// the golden ratio spread them far from others.
    #[inline]
    fn home(&self, key: u32) -> usize {
        let hash = (key / 4).wrapping_mul(0x9E37_79B1);
        ((u64::from(hash) * self.groups.len() as u64) >> 32) as usize
    }

    #[inline]
    fn behind(&self, group: usize) -> usize {
        if group + 1 == self.groups.len() { 0 } else { group + 1 }
    }

    /// The slot of `key`, if it is cached.
    #[inline(always)]
    pub fn find(&self, key: u32) -> Option<u32> {
        let home = self.home(key);
        match self.groups[home].position(key) {
            Some(at) => Some((GROUP * home + at) as u32),
            None if self.passed[home] == 0 => None,
            None => self.find_beyond(key, home),
        }
    }

    #[cold]
    fn find_beyond(&self, key: u32, home: usize) -> Option<u32> {
        let mut group = home;
        while self.passed[group] > 0 {
            group = self.behind(group);
            if group == home {
                break;
            }
            if let Some(at) = self.groups[group].position(key) {
                return Some((GROUP * group + at) as u32);
            }
        }
        None
    }

    /// The same where the key was probably found, or has been inserted, at slot `hint`.
    #[inline]
    pub fn find_near(&self, key: u32, hint: u32) -> Option<u32> {
        match self.groups.get(hint as usize / GROUP) {
            Some(group) if group.keys[hint as usize % GROUP] == key => Some(hint),
            _ => self.find(key),
        }
    }

    /// Brings what [`Slots::find`] reads for `key` into the processor's cache, and the word beside the key.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        prefetch(&self.groups, self.home(key));
    }

    /// The same for a slot.
    #[inline]
    pub fn prefetch_slot(&self, slot: u32) {
        prefetch(&self.groups, slot as usize / GROUP);
    }

    /// The key that a slot holds; `NONE`: it is free.
    #[inline]
    pub fn key(&self, slot: u32) -> u32 {
        self.groups[slot as usize / GROUP].keys[slot as usize % GROUP]
    }

    #[inline]
    pub fn get(&self, slot: u32) -> u32 {
        self.groups[slot as usize / GROUP].words[slot as usize % GROUP]
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut u32 {
        &mut self.groups[slot as usize / GROUP].words[slot as usize % GROUP]
    }

    /// Visits the slots in use.
    pub fn for_each(&self, mut visit: impl FnMut(u32, u32)) {
        for (group, held) in self.groups.iter().enumerate() {
            for at in 0..GROUP {
                if held.keys[at] != NONE {
                    visit((GROUP * group + at) as u32, held.words[at]);
                }
            }
        }
    }

    /// Gives the key, which must not be cached, a slot.
    ///
    /// # Panics
    /// If all slots are in use, of which there are more than were expected.
    pub fn insert(&mut self, key: u32, word: u32) -> u32 {
        debug_assert!(self.find(key).is_none(), "key {key} is cached twice");
        assert!(self.len < self.end(), "a cache holds more than it has room for");
        let mut group = self.home(key);
        let at = loop {
            match self.groups[group].position(NONE) {
                Some(at) => break at,
                None => self.passed[group] = self.passed[group].saturating_add(1),
            }
            group = self.behind(group);
        };
        self.groups[group].keys[at] = key;
        self.groups[group].words[at] = word;
        self.len += 1;
        (GROUP * group + at) as u32
    }

    /// The slot that [`Slots::insert`] will probably give the key.
    #[inline]
    pub fn probable(&self, key: u32) -> Option<u32> {
        let home = self.home(key);
        let at = self.groups[home].position(NONE)?;
        Some((GROUP * home + at) as u32)
    }

    /// Frees a slot that is in use.
    pub fn remove(&mut self, slot: u32) {
        let (last, at) = (slot as usize / GROUP, slot as usize % GROUP);
        let key = std::mem::replace(&mut self.groups[last].keys[at], NONE);
        self.groups[last].words[at] = 0;
        let mut group = self.home(key);
        while group != last {
            if self.passed[group] < u8::MAX {
                self.passed[group] -= 1;
            }
            group = self.behind(group);
        }
        self.len -= 1;
    }

    /// Bytes of the simulator's memory.
    pub fn bytes(&self) -> u64 {
        allocated(&self.groups) + allocated(&self.passed)
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        *self = Slots::new(self.groups.len() as u32 * USED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;
    use std::collections::BTreeMap;

    /// Keys that begin their search at few groups, up to all slots in use: long ways from home, around the end.
    #[test]
    fn behaves_like_a_map() {
        for expected in [1, 5, 6, 60] {
            let mut slots = Slots::new(expected);
            let crowded: Vec<u32> = (0..)
                .filter(|&key| [0, slots.groups.len() - 1].contains(&slots.home(key)))
                .take(2 * slots.end() as usize)
                .collect();
            let (mut model, mut random) = (BTreeMap::new(), Stream::new(9, "slots"));
            for step in 0..20_000 {
                let key = crowded[random.below(crowded.len() as u64) as usize];
                match slots.find(key) {
                    Some(slot) if random.below(2) == 0 => {
                        slots.remove(slot);
                        model.remove(&key);
                    }
                    Some(slot) => *slots.get_mut(slot) = *model.get(&key).unwrap(),
                    None if slots.len() < slots.end() => {
                        slots.insert(key, step);
                        model.insert(key, step);
                    }
                    None => {}
                }
                assert_eq!(slots.len() as usize, model.len());
                for key in &crowded {
                    let found = slots.find(*key).map(|slot| (slots.key(slot), slots.get(slot)));
                    assert_eq!(found, model.get(key).map(|&value| (*key, value)));
                }
                let mut values = Vec::new();
                slots.for_each(|_, value| values.push(value));
                values.sort_unstable();
                assert!(values.is_sorted_by(|a, b| a < b) && values.len() == model.len());
            }
            slots.clear();
            assert!(slots.is_empty() && slots.find(crowded[0]).is_none());
        }
    }

    /// The counters end at 255 and do not come back from there: nothing may be lost by that.
    #[test]
    fn more_keys_than_are_counted_may_pass_a_group() {
        let mut slots = Slots::new(400);
        let keys: Vec<u32> = (0..).filter(|&key| slots.home(key) == 3).take(400).collect();
        for &key in &keys {
            slots.insert(key, key);
        }
        for gone in 0..keys.len() {
            let slot = slots.find(keys[gone]).unwrap();
            slots.remove(slot);
            for (at, &key) in keys.iter().enumerate() {
                assert_eq!(slots.find(key).map(|slot| slots.get(slot)), (at > gone).then_some(key));
            }
        }
    }
}
