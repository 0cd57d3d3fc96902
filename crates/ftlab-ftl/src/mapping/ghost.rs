//! What a larger cache would still hold: the keys that left last, all of a few or one in four of many.
//!
//! A key is sampled by a hash of it alone, so that a miss of a sampled one stands for four. Each takes 4 bytes of a drive's memory.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// Keys that one sampled key stands for.
const SHARE: u64 = 4;
/// Most keys of which all are kept: one in four of fewer would say nothing.
const ALL: u64 = 32;
const KEY_BYTES: u64 = 4;

/// Bytes that it takes to remember so many keys.
pub fn bytes(keys: u64) -> u64 {
    share(keys, keys) * KEY_BYTES
}

/// How many are kept of so many keys, where there is room for those of `most`.
fn share(keys: u64, most: u64) -> u64 {
    match most <= ALL {
        true => keys,
        false => keys / SHARE,
    }
}

#[derive(Clone, Debug, Default)]
pub struct Ghost {
    /// Keys that may be kept, sampled ones if they are sampled.
    room: usize,
    sampled: bool,
    /// Keys that one that comes back stands for.
    weight: f64,
    /// Keys in the order in which they left, each with the number of its leaving.
    queue: VecDeque<(u32, u64)>,
    /// The latest number of each.
    left: FxHashMap<u32, u64>,
    number: u64,
}

impl Ghost {
    /// Watches the last `keys` keys that left, within the memory for `most`. Those beyond it are taken to come back as often.
    pub fn keep(&mut self, keys: u64, most: u64) {
        let sampled = most > ALL;
        if std::mem::replace(&mut self.sampled, sampled) != sampled {
            self.clear();
        }
        let watched = keys.min(most);
        self.room = share(watched, most) as usize;
        let stands_for = if sampled { SHARE as f64 } else { 1.0 };
        self.weight = stands_for * keys as f64 / watched.max(1) as f64;
        self.shrink();
    }

    fn is_sampled(key: u32) -> bool {
        key.wrapping_mul(0x9E37_79B1) >> 30 == 0
    }

    /// The key leaves the cache.
    pub fn put(&mut self, key: u32) {
        if self.room == 0 || (self.sampled && !Self::is_sampled(key)) {
            return;
        }
        self.number += 1;
        self.left.insert(key, self.number);
        self.queue.push_back((key, self.number));
        self.shrink();
    }

    /// The key comes back. How many keys that a larger cache would have held it stands for; 0: it would not.
    pub fn take(&mut self, key: u32) -> f64 {
        match self.room > 0 && self.left.remove(&key).is_some() {
            true => self.weight,
            false => 0.0,
        }
    }

    fn shrink(&mut self) {
        while self.queue.len() > self.room {
            let Some((key, number)) = self.queue.pop_front() else {
                break;
            };
            if self.left.get(&key) == Some(&number) {
                self.left.remove(&key);
            }
        }
    }

    pub fn clear(&mut self) {
        self.queue.clear();
        self.left.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sampled_keys_are_kept() {
        let sampled: Vec<u32> = (0..1000).filter(|&key| Ghost::is_sampled(key)).collect();
        assert!((230..270).contains(&sampled.len()), "{}", sampled.len());
        let other = (0..1000).find(|&key| !Ghost::is_sampled(key)).unwrap();
        let [a, b, c] = sampled[..3] else { panic!("three") };
        let mut ghost = Ghost::default();
        ghost.put(a);
        assert_eq!(ghost.take(a), 0.0, "without room nothing is kept");
        // Two sampled keys of eight.
        ghost.keep(8, 1000);
        [a, other, b, c].iter().for_each(|&key| ghost.put(key));
        assert_eq!([a, other, b, c].map(|key| ghost.take(key)), [0.0, 0.0, 4.0, 4.0]);
        assert_eq!(ghost.take(b), 0.0, "it is in the cache again");
        // One that left twice has the place of the second time.
        [a, b, a].iter().for_each(|&key| ghost.put(key));
        assert_eq!((ghost.take(b), ghost.take(a)), (4.0, 4.0));
        ghost.put(a);
        ghost.keep(3, 1000);
        assert_eq!(ghost.take(a), 0.0);
    }

    #[test]
    fn of_a_few_keys_all_are_kept_and_stand_for_those_beyond() {
        let mut ghost = Ghost::default();
        ghost.keep(2, 3);
        [1, 2, 3].iter().for_each(|&key| ghost.put(key));
        assert_eq!([1, 2, 3].map(|key| ghost.take(key)), [0.0, 1.0, 1.0]);
        // Six keys' worth of memory is taken, and there is room to watch three.
        ghost.keep(6, 3);
        (1..5).for_each(|key| ghost.put(key));
        assert_eq!([1, 2, 3, 4].map(|key| ghost.take(key)), [0.0, 2.0, 2.0, 2.0]);
        // With much room they are sampled; what was kept before is forgotten.
        ghost.put(1);
        ghost.keep(400, 400);
        assert_eq!(ghost.take(1), 0.0);
        assert_eq!([3, 32, 33, 400].map(bytes), [12, 128, 32, 400]);
    }
}
