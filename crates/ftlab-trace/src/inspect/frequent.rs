//! The most frequent keys of a stream in bounded memory.
//!
//! # Model
//! Counts per key, exact while there are at most `most` of them. When a key finds no room, the median count is taken
//! off all, and keys without anything left go; so a count is never too large, and too small by at most the sum of what
//! was taken off ([`Frequent::error`]), which is at most 2/most of the stream's weight.
//! # Source
//! Misra and Gries, Science of Computer Programming 1982, with the median step of Anderson et al., IMC 2017. Like
//! space-saving (Metwally et al., ICDT 2005), at constant amortised cost without its heap.

use rustc_hash::FxHashMap;

/// Counts of `K`s; the id of a key is its place until something is dropped.
pub struct Frequent<K> {
    index: FxHashMap<K, u32>,
    keys: Vec<K>,
    /// What is left of each key's weight, for the decision what to drop.
    left: Vec<u64>,
    most: usize,
    error: u64,
    /// The key found last.
    recent: Option<(K, u32)>,
}

impl<K: Copy + Eq + std::hash::Hash> Frequent<K> {
    /// At most `most` keys (at least 2).
    pub fn new(most: usize) -> Self {
        Frequent {
            index: FxHashMap::default(),
            keys: Vec::new(),
            left: Vec::new(),
            most: most.max(2),
            error: 0,
            recent: None,
        }
    }

    pub fn keys(&self) -> &[K] {
        &self.keys
    }

    /// Weight that is known of each key; the truth is at most [`Frequent::error`] more.
    pub fn known(&self) -> &[u64] {
        &self.left
    }

    /// 0 while nothing was dropped.
    pub fn error(&self) -> u64 {
        self.error
    }

    /// Adds weight to a key and gives its id. `dropped` is called first when ids change, with the new id of each old
    /// one.
    #[inline]
    pub fn add(&mut self, key: K, weight: u64, dropped: impl FnOnce(&[Option<u32>])) -> u32 {
        if let Some((recent, id)) = self.recent
            && recent == key
        {
            self.left[id as usize] += weight;
            return id;
        }
        let id = match self.index.get(&key) {
            Some(&id) => id,
            None => {
                if self.keys.len() == self.most {
                    dropped(&self.drop_half());
                }
                let id = self.keys.len() as u32;
                self.index.insert(key, id);
                self.keys.push(key);
                self.left.push(0);
                id
            }
        };
        self.left[id as usize] += weight;
        self.recent = Some((key, id));
        id
    }

    fn drop_half(&mut self) -> Vec<Option<u32>> {
        let mut sorted = self.left.clone();
        let middle = (sorted.len() - 1) / 2;
        let median = *sorted.select_nth_unstable(middle).1;
        self.error += median;
        self.index.clear();
        self.recent = None;
        let (mut kept, mut places) = (0, Vec::with_capacity(self.keys.len()));
        for i in 0..self.keys.len() {
            let left = self.left[i].saturating_sub(median);
            places.push((left > 0).then_some(kept as u32));
            if left > 0 {
                (self.keys[kept], self.left[kept]) = (self.keys[i], left);
                self.index.insert(self.keys[kept], kept as u32);
                kept += 1;
            }
        }
        self.keys.truncate(kept);
        self.left.truncate(kept);
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_while_there_is_room() {
        let mut frequent = Frequent::new(3);
        for key in [5, 7, 5, 9, 5, 7] {
            frequent.add(key, 1, |_| panic!("nothing to drop"));
        }
        assert_eq!(
            (frequent.keys(), frequent.known(), frequent.error()),
            (&[5, 7, 9][..], &[3, 2, 1][..], 0)
        );
    }

    #[test]
    fn counts_are_at_most_the_error_too_small() {
        let (mut frequent, mut truth) = (Frequent::new(16), vec![0u64; 1000]);
        for i in 0..100_000u64 {
            // Every third is one of five hot keys, the rest are spread over a thousand.
            let key = if i % 3 == 0 { i / 3 % 5 } else { i * 7919 % 1000 };
            truth[key as usize] += 1;
            frequent.add(key, 1, |_| ());
        }
        assert!(frequent.error() <= 2 * 100_000 / 16, "{}", frequent.error());
        for (key, known) in frequent.keys().iter().zip(frequent.known()) {
            let true_count = truth[*key as usize];
            assert!(*known <= true_count && true_count <= known + frequent.error());
        }
        assert!((0..5).all(|hot| frequent.keys().contains(&hot)));
    }
}
