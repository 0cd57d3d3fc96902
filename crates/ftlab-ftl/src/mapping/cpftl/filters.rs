//! Bloom filters of one size, one to a page, laid out so that all are asked at once.
//!
//! All filters share size and hash functions, so a key's bits stand at the same positions in each. For every position there
//! is a row with a bit per page; a question is the intersection of a few rows, whatever the number of pages. The bits are
//! those of filters kept one by one, and so is their number.

/// Most hash functions of a filter.
const MOST_HASHES: u32 = 16;
/// Fixed: results must not depend on anything but the key.
const SEED: u64 = 0x6370_6674_6c00_0001;

#[derive(Clone, Debug, Default)]
pub struct Filters {
    /// `bits` rows of `words` words.
    rows: Vec<u64>,
    words: usize,
    bits: u32,
    hashes: u32,
}

/// Bits of a filter of `keys` keys whose share of false positives is at most about `false_positive`.
pub fn bits_for(keys: u32, false_positive: f64) -> u32 {
    let bits = f64::from(keys) * bits_per_key(false_positive);
    (bits.ceil() as u32).max(8).next_multiple_of(8)
}

/// The most keys whose filter has no more than `bits` bits.
pub fn keys_for(bits: u32, false_positive: f64) -> u32 {
    (f64::from(bits / 8 * 8) / bits_per_key(false_positive)) as u32
}

/// With k hash functions and k/ln 2 bits a key the share of false positives is 2^-k.
fn bits_per_key(false_positive: f64) -> f64 {
    let mut hashes = 1;
    let mut share = 0.5;
    while share > false_positive && hashes < MOST_HASHES {
        share /= 2.0;
        hashes += 1;
    }
    f64::from(hashes) / std::f64::consts::LN_2
}

impl Filters {
    /// Empty filters of `bits` bits for `pages` pages of up to `keys` keys.
    pub fn new(pages: usize, bits: u32, keys: u32) -> Self {
        let words = pages.div_ceil(64);
        let best = f64::from(bits) / f64::from(keys.max(1)) * std::f64::consts::LN_2;
        Filters {
            rows: vec![0; words * bits as usize],
            words,
            bits,
            hashes: (best.round() as u32).clamp(1, MOST_HASHES),
        }
    }

    /// The row of each hash function for `key`, as the start of the row.
    fn starts(&self, key: u32) -> [usize; MOST_HASHES as usize] {
        // splitmix64, and from there a congruential generator of which the high half is used.
        let mut hash = (u64::from(key) ^ SEED).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        std::array::from_fn(|_| {
            let position = ((hash >> 32) * u64::from(self.bits)) >> 32;
            hash = hash
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            position as usize * self.words
        })
    }

    /// The filter of `page` holds these keys and no others.
    pub fn set(&mut self, page: u32, keys: impl Iterator<Item = u32>) {
        let (word, bit) = (page as usize / 64, 1u64 << (page % 64));
        self.rows
            .iter_mut()
            .skip(word)
            .step_by(self.words)
            .for_each(|row| *row &= !bit);
        for key in keys {
            let starts = self.starts(key);
            for start in &starts[..self.hashes as usize] {
                self.rows[start + word] |= bit;
            }
        }
    }

    /// Calls `found` for each page of `live` (a bit per page) whose filter may hold `key`, in ascending order.
    #[inline]
    pub fn ask(&self, key: u32, live: &[u64], mut found: impl FnMut(u32)) {
        let starts = self.starts(key);
        for (word, &live) in live.iter().enumerate() {
            let mut bits = live;
            for start in &starts[..self.hashes as usize] {
                if bits == 0 {
                    break;
                }
                bits &= self.rows[start + word];
            }
            while bits != 0 {
                found(word as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// Probability that the filter of `page` takes a key that it does not hold for one that it does, from its bits.
    pub fn false_positive(&self, page: u32) -> f64 {
        let (word, bit) = (page as usize / 64, 1u64 << (page % 64));
        let set = self.rows.iter().skip(word).step_by(self.words);
        let set = set.filter(|&&row| row & bit != 0).count();
        let share = set as f64 / f64::from(self.bits.max(1));
        (0..self.hashes).fold(1.0, |product, _| product * share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_held_is_denied_and_few_others_are_taken_for_held() {
        // 70 pages of 32 keys: page p holds 1000 p to 1000 p + 31.
        let bits = bits_for(32, 0.001);
        // 10 hash functions: 32 x 10 / ln 2 = 461.7.
        assert_eq!(bits, 464);
        let mut filters = Filters::new(70, bits, 32);
        let live = [u64::MAX, 63];
        (0..70).for_each(|page| filters.set(page, (0..32).map(|i| 1000 * page + i)));
        let mut wrong = 0;
        for page in 0..70 {
            for i in 0..32 {
                let mut held = false;
                filters.ask(1000 * page + i, &live, |found| {
                    held |= found == page;
                    wrong += u32::from(found != page);
                });
                assert!(held);
            }
        }
        // 70 x 32 x 69 questions at 0.001 are 155 expected; five standard deviations are 62.
        assert!((93..=217).contains(&wrong), "{wrong}");
        let share = filters.false_positive(3);
        assert!((0.0003..0.003).contains(&share), "{share}");
        // A page that is not live is not found, and a new content replaces the old one.
        filters.ask(5, &[u64::MAX - 1, 63], |found| assert_ne!(found, 0));
        filters.set(0, [77_000_000].into_iter());
        let mut found = Vec::new();
        filters.ask(77_000_000, &live, |page| found.push(page));
        assert_eq!(found[0], 0);
        assert!(filters.false_positive(0) < 1e-10);
    }
}
