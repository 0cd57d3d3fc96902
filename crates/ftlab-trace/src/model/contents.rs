//! Counting values: how often each is written and found, of a sample by hash.

use rustc_hash::FxHashMap;

use super::{Contents, PAGE, Weights, bin};
use crate::splitmix::mix;

/// Values, and pages, remembered at most.
const MOST: usize = 2 << 20;

#[derive(Default)]
struct Count {
    written: u64,
    found: u64,
}

pub struct ValueCounts {
    value_limit: u64,
    page_limit: u64,
    values: FxHashMap<u64, Count>,
    /// What sampled pages hold.
    pages: FxHashMap<u64, u64>,
    /// Writes to sampled pages, and those of them that repeat what the page held.
    writes: u64,
    repeats: u64,
    found: u64,
    found_written: u64,
}

impl Default for ValueCounts {
    fn default() -> Self {
        ValueCounts {
            value_limit: u64::MAX,
            page_limit: u64::MAX,
            values: FxHashMap::default(),
            pages: FxHashMap::default(),
            writes: 0,
            repeats: 0,
            found: 0,
            found_written: 0,
        }
    }
}

impl ValueCounts {
    pub fn add(&mut self, write: bool, offset: u64, content: &[u64]) {
        for (page, &value) in (offset / PAGE..).zip(content) {
            let sampled_page = mix(page) <= self.page_limit;
            let held = if sampled_page {
                self.pages.insert(page, value)
            } else {
                None
            };
            let repeats = held == Some(value);
            if write && sampled_page {
                self.writes += 1;
                self.repeats += u64::from(repeats);
            }
            // A repeat, and a read of what the trace has shown already, say nothing new of a value.
            if (write && repeats) || (!write && (held.is_some() || !sampled_page)) {
                continue;
            }
            if mix(value) <= self.value_limit {
                let count = self.values.entry(value).or_default();
                if write {
                    count.written += 1;
                } else {
                    self.found += 1;
                    self.found_written += u64::from(count.written > 0);
                    count.found += u64::from(count.written == 0);
                }
            }
        }
        if self.values.len() > MOST {
            self.value_limit /= 2;
            let limit = self.value_limit;
            self.values.retain(|&value, _| mix(value) <= limit);
        }
        if self.pages.len() > MOST {
            self.page_limit /= 2;
            let limit = self.page_limit;
            self.pages.retain(|&page, _| mix(page) <= limit);
        }
    }

    pub fn finish(&self) -> Option<Contents> {
        if self.values.is_empty() {
            return None;
        }
        let weights = |of: fn(&Count) -> u64| {
            let mut counts = FxHashMap::<u64, u64>::default();
            self.values
                .values()
                .map(of)
                .filter(|&n| n > 0)
                .for_each(|n| *counts.entry(bin(n)).or_default() += 1);
            Weights::counted(counts)
        };
        Some(Contents {
            repeat: self.repeats as f64 / self.writes.max(1) as f64,
            written: weights(|count| count.written),
            found: weights(|count| count.found),
            found_written: self.found_written as f64 / self.found.max(1) as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_by_what_is_new() {
        let mut counts = ValueCounts::default();
        counts.add(true, 0, &[7, 7]); // value 7 twice, pages 0 and 1
        counts.add(true, 0, &[7]); // a repeat
        counts.add(true, 4096, &[8]); // value 8 once
        counts.add(false, 4096, &[8]); // known
        counts.add(false, 8192, &[9, 7]); // page 2 holds the new value 9, page 3 the written 7
        let contents = counts.finish().unwrap();
        assert_eq!(contents.written.write(), "1 2");
        assert_eq!(contents.found.write(), "1");
        assert_eq!((contents.repeat, contents.found_written), (0.25, 0.5));
    }
}
