//! Records of keys (pages, values) in bounded memory: all of them while they fit, then a sample by hash.
//!
//! # Model
//! A key belongs to the sample when the top `level` bits of its hash are 0; the level starts at 0 and rises whenever
//! the records would exceed the limit (half of it from the first time on), and keys that no longer belong are dropped.
//! A key of the final sample has belonged to it from its first access, so its record is complete; whatever is counted
//! on the way is weighted by 2^level at that moment. Rejecting a key costs its hash (about 1 ns).
//! # Source
//! Waldspurger et al., "Efficient MRC construction with SHARDS", FAST 2015, section 3.2 (fixed size), with thresholds
//! restricted to powers of two so that evictions come in bulk.

use ftlab_core::memory::prefetch;

use crate::splitmix::mix;

const NONE: u32 = u32::MAX;

/// Records of type `T` by key; ids stay the same while a record lives.
pub struct Sample<T> {
    /// Ids, by hash with linear probing; `NONE` where empty.
    index: Vec<u32>,
    slots: Vec<(u64, T)>,
    /// Whether an id is in use, and ids to use again.
    used: Vec<bool>,
    free: Vec<u32>,
    most: usize,
    level: u32,
    limit: u64,
}

impl<T: Default> Sample<T> {
    /// At most `most` records (at least 1).
    pub fn new(most: usize) -> Self {
        Sample {
            index: vec![NONE; 64],
            slots: Vec::new(),
            used: Vec::new(),
            free: Vec::new(),
            most: most.clamp(1, 1 << 28),
            level: 0,
            limit: u64::MAX,
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The sampling rate is 2^−level.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// What one sampled key stands for.
    #[inline]
    pub fn weight(&self) -> u64 {
        1 << self.level
    }

    pub fn rate(&self) -> f64 {
        1.0 / self.weight() as f64
    }

    /// Whether keys of this hash belong to the sample.
    #[inline]
    pub fn belongs(&self, hash: u64) -> bool {
        hash <= self.limit
    }

    /// Whether another record needs a thinner sample. Once keys are left out, half of the limit is kept: exactness is
    /// worth more room than a smaller error, and the records then stay in a processor's cache.
    pub fn is_full(&self) -> bool {
        self.len()
            >= if self.level == 0 {
                self.most
            } else {
                (self.most / 2).max(1)
            }
    }

    #[inline]
    pub fn find(&self, hash: u64, key: u64) -> Option<u32> {
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let id = self.index[at];
            if id == NONE {
                return None;
            }
            if self.slots[id as usize].0 == key {
                return Some(id);
            }
            at = (at + 1) & mask;
        }
    }

    /// Where `find` begins comes into the cache.
    #[inline]
    pub fn prefetch_index(&self, hash: u64) {
        prefetch(&self.index, hash as usize & (self.index.len() - 1));
    }

    /// The record that `find` looks at first comes into the cache.
    #[inline]
    pub fn prefetch_record(&self, hash: u64) -> Option<u32> {
        let id = self.index[hash as usize & (self.index.len() - 1)];
        prefetch(&self.slots, id as usize);
        (id != NONE).then_some(id)
    }

    /// The id of a new record; the key must be absent and the sample not full.
    pub fn insert(&mut self, hash: u64, key: u64) -> u32 {
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = (key, T::default());
                self.used[id as usize] = true;
                id
            }
            None => {
                self.slots.push((key, T::default()));
                self.used.push(true);
                self.slots.len() as u32 - 1
            }
        };
        if 2 * self.len() > self.index.len() {
            let larger = 2 * self.index.len();
            self.rebuild(larger);
        } else {
            self.enter(hash, id);
        }
        id
    }

    fn enter(&mut self, hash: u64, id: u32) {
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        while self.index[at] != NONE {
            at = (at + 1) & mask;
        }
        self.index[at] = id;
    }

    fn rebuild(&mut self, size: usize) {
        self.index.clear();
        self.index.resize(size, NONE);
        for id in 0..self.slots.len() {
            if self.used[id] {
                self.enter(mix(self.slots[id].0), id as u32);
            }
        }
    }

    #[inline]
    pub fn get(&self, id: u32) -> &T {
        &self.slots[id as usize].1
    }

    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut T {
        &mut self.slots[id as usize].1
    }

    /// Halves the rate, once; `dropped` is told each id that goes.
    pub fn thin(&mut self, mut dropped: impl FnMut(u32)) {
        self.level = (self.level + 1).min(48);
        self.limit = u64::MAX >> self.level;
        for id in 0..self.slots.len() {
            if self.used[id] && mix(self.slots[id].0) > self.limit {
                self.used[id] = false;
                self.free.push(id as u32);
                dropped(id as u32);
            }
        }
        self.rebuild(self.index.len());
    }

    /// All keys, ids and records, in order of ids.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32, &T)> {
        let slots = self.slots.iter().zip(&self.used).enumerate();
        slots
            .filter(|(_, (_, used))| **used)
            .map(|(id, ((key, record), _))| (*key, id as u32, record))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, u32, &mut T)> {
        let slots = self.slots.iter_mut().zip(&self.used).enumerate();
        slots
            .filter(|(_, (_, used))| **used)
            .map(|(id, ((key, record), _))| (*key, id as u32, record))
    }
}

/// Bounds the work on a sample: every use takes 1, every request gives 1 back (up to what there was at the start).
pub struct Allowance {
    most: u64,
    spent: u64,
}

impl Allowance {
    pub fn new(most: u64) -> Self {
        Allowance {
            most: most.max(1024),
            spent: 0,
        }
    }

    #[inline]
    pub fn earn(&mut self) {
        self.spent = self.spent.saturating_sub(1);
    }

    /// False when nothing was left: half of it is given again, and the sample should be thinned.
    #[inline]
    pub fn spend(&mut self) -> bool {
        self.spent += 1;
        let left = self.spent <= self.most;
        if !left {
            self.spent = self.most / 2;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(sample: &mut Sample<u64>, key: u64) {
        let hash = mix(key);
        if !sample.belongs(hash) {
            return;
        }
        let id = match sample.find(hash, key) {
            Some(id) => id,
            None => {
                while sample.is_full() {
                    sample.thin(|_| ());
                }
                if !sample.belongs(hash) {
                    return;
                }
                sample.insert(hash, key)
            }
        };
        *sample.get_mut(id) += 1;
    }

    #[test]
    fn the_final_sample_has_complete_records_and_the_rate_it_says() {
        let mut sample = Sample::new(1000);
        for _ in 0..3 {
            for key in 0..20_000 {
                touch(&mut sample, key * 8);
            }
        }
        assert!(sample.len() <= 500 && sample.len() > 200);
        assert!(sample.level() == 6, "20000 / 64 = 313: {}", sample.level());
        let estimate = sample.len() as f64 * sample.weight() as f64;
        assert!((estimate / 20_000.0 - 1.0).abs() < 0.15, "{estimate}");
        for (key, id, &count) in sample.iter() {
            assert_eq!(count, 3, "of key {key}");
            assert_eq!(sample.find(mix(key), key), Some(id));
        }
    }

    #[test]
    fn below_the_limit_nothing_is_left_out() {
        let mut sample = Sample::new(1000);
        (0..5000).for_each(|i| touch(&mut sample, i % 1000));
        assert_eq!((sample.len(), sample.level()), (1000, 0));
        assert!(sample.iter().all(|(_, _, &count)| count == 5));
    }
}
