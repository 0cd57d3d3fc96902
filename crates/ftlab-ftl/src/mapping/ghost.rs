//! What a larger cache would still hold: the keys that left last, all of a few or a sample of many.
//!
//! A key is sampled by a hash of it alone, so that a miss of a sampled one stands for as many as one was taken from. Each takes 4 bytes
//! of a drive's memory. The more keys are watched within that memory, the fewer of them are sampled: the ones that left longest ago may
//! come back more often than the last, as in a loop that is a little longer than the cache.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// Keys of the directory for each of which one is kept.
const SHARE: u64 = 4;
/// Most keys of the directory for which as many are kept: a quarter of fewer would say nothing.
const ALL: u64 = 32;
const KEY_BYTES: u64 = 4;

/// Bytes of the keys that are kept beside a directory of so many.
pub fn bytes(directory: u64) -> u64 {
    kept(directory) * KEY_BYTES
}

/// How many are kept beside a directory of so many keys.
fn kept(directory: u64) -> u64 {
    match directory <= ALL {
        true => directory,
        false => directory / SHARE,
    }
}

/// A key has come back.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Back {
    /// Keys that it stands for.
    pub keys: f64,
    /// The number of its leaving.
    pub left: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Ghost {
    /// Sampled keys that may be kept.
    room: usize,
    /// Keys that one that comes back stands for.
    weight: f64,
    /// Keys with hashes below it are sampled.
    below: u64,
    /// Keys in the order in which they left, each with the number of its leaving.
    queue: VecDeque<(u32, u64)>,
    /// The latest number of each.
    left: FxHashMap<u32, u64>,
    number: u64,
}

/// Hashes are below this.
const HASHES: u64 = 1 << 32;

fn hash(key: u32) -> u64 {
    u64::from(key.wrapping_mul(0x9E37_79B1))
}

impl Ghost {
    /// Watches the last `keys` keys that left, within the memory beside a directory of so many.
    pub fn keep(&mut self, keys: u64, directory: u64) {
        let room = keys.min(kept(directory));
        let below = HASHES * room / keys.max(1);
        self.weight = keys as f64 / room.max(1) as f64;
        self.room = room as usize;
        if below < std::mem::replace(&mut self.below, below) {
            self.queue.retain(|&(key, _)| hash(key) < below);
            self.left.retain(|&key, _| hash(key) < below);
        }
        self.shrink();
    }

    /// The key leaves the cache.
    pub fn put(&mut self, key: u32) {
        self.number += 1;
        if hash(key) >= self.below {
            return;
        }
        self.left.insert(key, self.number);
        self.queue.push_back((key, self.number));
        self.shrink();
    }

    /// The number of the last leaving.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The key comes back, if a larger cache would have held it.
    pub fn take(&mut self, key: u32) -> Option<Back> {
        let left = self.left.remove(&key).filter(|_| self.room > 0)?;
        Some(Back {
            keys: self.weight,
            left,
        })
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

    fn weight(ghost: &mut Ghost, key: u32) -> f64 {
        ghost.take(key).map_or(0.0, |back| back.keys)
    }

    #[test]
    fn the_last_keys_are_kept() {
        let mut ghost = Ghost::default();
        ghost.put(1);
        assert_eq!(weight(&mut ghost, 1), 0.0, "without room nothing is kept");
        ghost.keep(2, 3);
        [1, 2, 3].iter().for_each(|&key| ghost.put(key));
        assert_eq!([1, 2, 3].map(|key| weight(&mut ghost, key)), [0.0, 1.0, 1.0]);
        assert_eq!(weight(&mut ghost, 2), 0.0, "it is in the cache again");
        // One that left twice has the place of the second time.
        [1, 2, 1].iter().for_each(|&key| ghost.put(key));
        assert_eq!((weight(&mut ghost, 2), weight(&mut ghost, 1)), (1.0, 1.0));
        [1, 2].iter().for_each(|&key| ghost.put(key));
        ghost.keep(1, 3);
        assert_eq!([1, 2].map(|key| weight(&mut ghost, key)), [0.0, 1.0]);
        assert_eq!([3, 32, 33, 400].map(bytes), [12, 128, 32, 400]);
    }

    /// Of a loop of 80 more keys than the cache holds, each has left 80 others ago when it comes back.
    #[test]
    fn of_many_keys_a_sample_of_all_is_kept() {
        for (directory, watched, comes_back) in [(20, 100, 1.0), (20, 60, 0.0), (400, 100, 1.0), (400, 60, 0.0)] {
            let mut ghost = Ghost::default();
            ghost.keep(watched, directory);
            let (mut back, keys) = (0.0, 4000);
            for key in 0..keys {
                if key >= 80 {
                    back += weight(&mut ghost, key - 80);
                }
                ghost.put(key);
            }
            let share = back / f64::from(keys - 80);
            assert!((share - comes_back).abs() < 0.1, "{directory} {watched}: {share}");
        }
    }

    #[test]
    fn what_is_no_longer_sampled_is_forgotten() {
        let mut ghost = Ghost::default();
        ghost.keep(20, 20);
        (0..20).for_each(|key| ghost.put(key));
        ghost.keep(40, 20);
        let back = (0..20).map(|key| weight(&mut ghost, key)).collect::<Vec<_>>();
        let kept = back.iter().filter(|&&weight| weight == 2.0).count();
        assert!(
            kept + back.iter().filter(|&&weight| weight == 0.0).count() == 20 && (8..=12).contains(&kept),
            "{back:?}"
        );
    }
}
