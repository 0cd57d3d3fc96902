//! The values that are written most, whether or not a sample holds them: Misra and Gries, "Finding repeated elements", 1982.

use rustc_hash::FxHashMap;

/// A value that is more than one write in so many is among those counted.
const COUNTERS: usize = 64;

/// Values with a count each, which is too low by at most a 65th of all writes.
#[derive(Default)]
pub struct Frequent(FxHashMap<u64, u64>);

impl Frequent {
    pub fn add(&mut self, value: u64) {
        if let Some(count) = self.0.get_mut(&value) {
            *count += 1;
        } else if self.0.len() < COUNTERS {
            self.0.insert(value, 1);
        } else {
            self.0.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(&value, &count)| (value, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_frequent_is_counted_almost_wholly() {
        let mut frequent = Frequent::default();
        // Half of 20,000 writes are of value 7, a tenth of value 8, and the others of values that come once.
        for write in 0..20_000u64 {
            frequent.add(match write % 10 {
                0..5 => 7,
                5 => 8,
                _ => 1000 + write,
            });
        }
        let count = |wanted| {
            frequent
                .iter()
                .find(|&(value, _)| value == wanted)
                .map_or(0, |(_, count)| count)
        };
        assert!((10_000 - 20_000 / 65..=10_000).contains(&count(7)), "{}", count(7));
        assert!((2000 - 20_000 / 65..=2000).contains(&count(8)), "{}", count(8));
        assert!(frequent.iter().count() <= COUNTERS);
    }
}
