//! What a larger cache would still hold: the keys that left last, of one in four.
//!
//! A key is sampled by a hash of it alone, so that a miss of a sampled one stands for four. Each takes 4 bytes of a drive's memory.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// Keys that one sampled key stands for.
pub const SHARE: u32 = 4;
pub const KEY_BYTES: u64 = 4;

#[derive(Clone, Debug, Default)]
pub struct Ghost {
    /// Sampled keys that may be kept.
    room: usize,
    /// Keys in the order in which they left, each with the number of its leaving.
    queue: VecDeque<(u32, u64)>,
    /// The latest number of each.
    left: FxHashMap<u32, u64>,
    number: u64,
}

impl Ghost {
    /// Keeps the last `keys` keys that left, sampled ones and others.
    pub fn keep(&mut self, keys: u64) {
        self.room = (keys / u64::from(SHARE)) as usize;
        self.shrink();
    }

    fn is_sampled(key: u32) -> bool {
        key.wrapping_mul(0x9E37_79B1) >> 30 == 0
    }

    /// The key leaves the cache.
    pub fn put(&mut self, key: u32) {
        if self.room == 0 || !Self::is_sampled(key) {
            return;
        }
        self.number += 1;
        self.left.insert(key, self.number);
        self.queue.push_back((key, self.number));
        self.shrink();
    }

    /// The key comes back. Whether a larger cache would have held it.
    pub fn take(&mut self, key: u32) -> bool {
        self.room > 0 && self.left.remove(&key).is_some()
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
        assert!(!ghost.take(a), "without room nothing is kept");
        // Two sampled keys of eight.
        ghost.keep(8);
        [a, other, b, c].iter().for_each(|&key| ghost.put(key));
        assert_eq!([a, other, b, c].map(|key| ghost.take(key)), [false, false, true, true]);
        assert!(!ghost.take(b), "it is in the cache again");
        // One that left twice has the place of the second time.
        [a, b, a].iter().for_each(|&key| ghost.put(key));
        assert_eq!((ghost.take(b), ghost.take(a)), (true, true));
        ghost.put(a);
        ghost.keep(3);
        assert!(!ghost.take(a));
    }
}
