//! Duplicates and popularity of the values that a trace writes and reads.
//!
//! # Model
//! A record for each value, sampled by the value's hash when there are too many ([`Sample`]); and for each page that
//! holds a value of the sample, which one, so that the addresses of a value can be counted. At 16 addresses a value is
//! *widespread*: it counts as stored at several addresses from then on, and its further addresses are not followed (so
//! rewriting one of them with the same value is not recognised as a rewrite). A write without an id leaves its pages
//! with unknown content, a trim leaves them without any.
//! # Memory
//! 40 bytes a value and 48 for each of up to 4 pages a value: 16 MiB with the default of 65,536 values.

use ftlab_core::OpKind;
use rustc_hash::FxHashMap;

use super::inspection::share;
use super::sample::{Allowance, Sample};
use super::strata::{HOT_FROM, Scale};
use super::{Estimate, Sampling, Skew, skew};
use crate::splitmix::mix;

const WIDESPREAD: u32 = 16;
const PAGES_PER_VALUE: usize = 4;

#[derive(Default)]
struct Value {
    writes: u32,
    reads: u32,
    /// Pages of `holders` that hold it.
    copies: u32,
    widespread: bool,
}

pub struct Content {
    values: Sample<Value>,
    most: usize,
    /// The sampled value that a page holds.
    holders: FxHashMap<u64, u32>,
    allowance: Allowance,
    accesses: u64,
    ids: [u64; 2],
    /// Weights of the sampled ids read, and written; cold and hot apart, as in everything below.
    weights: [[u64; 2]; 2],
    duplicates: [u64; 2],
    live_duplicates: [u64; 2],
    rewrites: [u64; 2],
    shared_reads: [u64; 2],
}

/// Weights of what one request wrote.
#[derive(Clone, Copy, Default)]
pub struct Written {
    pub ids: u64,
    pub duplicates: u64,
}

impl Content {
    pub fn new(most: usize, accesses: u64) -> Self {
        Content {
            values: Sample::new(most),
            most: most.max(1),
            holders: FxHashMap::default(),
            allowance: Allowance::new(accesses),
            accesses: 0,
            ids: [0; 2],
            weights: [[0; 2]; 2],
            duplicates: [0; 2],
            live_duplicates: [0; 2],
            rewrites: [0; 2],
            shared_reads: [0; 2],
        }
    }

    /// A read or write of `count` pages from `first` on, the contents of the first `ids.len()` of which are known.
    pub fn access(&mut self, op: OpKind, first: u64, count: u64, ids: &[u64]) -> Written {
        self.allowance.earn();
        let mut written = Written::default();
        for (page, &value) in (first..=u64::MAX).zip(ids) {
            self.one(op, page, value, &mut written);
        }
        let known = ids.len() as u64;
        if op == OpKind::Write && count > known {
            self.forget(first.saturating_add(known), count - known);
        }
        written
    }

    #[inline]
    fn one(&mut self, op: OpKind, page: u64, value: u64, written: &mut Written) {
        self.ids[op as usize] += 1;
        let hash = mix(value);
        if !self.values.belongs(hash) {
            self.release(page);
            return;
        }
        if !self.allowance.spend() {
            self.thin();
        }
        let id = match self.values.find(hash, value) {
            Some(id) => id,
            None => {
                while self.values.is_full() || self.holders.len() >= PAGES_PER_VALUE * self.most {
                    self.thin();
                }
                if !self.values.belongs(hash) {
                    self.release(page);
                    return;
                }
                self.values.insert(hash, value)
            }
        };
        self.accesses += 1;
        let weight = self.values.weight();
        let record = self.values.get(id);
        let earlier = if op == OpKind::Read {
            record.reads
        } else {
            record.writes
        };
        let hot = usize::from(earlier + 1 >= HOT_FROM);
        self.weights[op as usize][hot] += weight;
        let rewritten = self.holders.get(&page) == Some(&id);
        if op == OpKind::Write {
            let record = self.values.get_mut(id);
            written.ids += weight;
            if record.writes > 0 {
                written.duplicates += weight;
                self.duplicates[hot] += weight;
            }
            if record.copies > 0 || record.widespread {
                self.live_duplicates[hot] += weight;
            }
            self.rewrites[hot] += if rewritten { weight } else { 0 };
            record.writes = record.writes.saturating_add(1);
        }
        if !rewritten {
            self.release(page);
            let record = self.values.get_mut(id);
            if !record.widespread {
                record.copies += 1;
                record.widespread = record.copies == WIDESPREAD;
                self.holders.insert(page, id);
            }
        }
        if op == OpKind::Read {
            let record = self.values.get_mut(id);
            record.reads = record.reads.saturating_add(1);
            self.shared_reads[hot] += if record.copies >= 2 || record.widespread {
                weight
            } else {
                0
            };
        }
        while self.holders.len() > PAGES_PER_VALUE * self.most {
            self.thin();
        }
    }

    /// What `count` pages from `first` on hold is gone or unknown.
    pub fn forget(&mut self, first: u64, count: u64) {
        let past = first.saturating_add(count);
        if count > self.holders.len() as u64 {
            let values = &mut self.values;
            self.holders.retain(|page, id| {
                let gone = (first..past).contains(page);
                if gone {
                    values.get_mut(*id).copies -= 1;
                }
                !gone
            });
            return;
        }
        (first..past).for_each(|page| self.release(page));
    }

    #[inline]
    fn release(&mut self, page: u64) {
        if let Some(id) = self.holders.remove(&page) {
            self.values.get_mut(id).copies -= 1;
        }
    }

    fn thin(&mut self) {
        let mut gone = rustc_hash::FxHashSet::default();
        self.values.thin(|id| {
            gone.insert(id);
        });
        self.holders.retain(|_, id| !gone.contains(id));
    }

    /// `None` when no request carried an id.
    pub fn finish(&self) -> Option<super::Content> {
        let [read, written] = self.ids;
        if read + written == 0 {
            return None;
        }
        let weight = self.values.weight();
        let counts = |of: fn(&Value) -> u32| self.values.iter().map(|(_, _, value)| of(value)).collect::<Vec<_>>();
        let (writes, reads) = (counts(|v| v.writes), counts(|v| v.reads));
        let both = counts(|v| v.writes.saturating_add(v.reads));
        Some(super::Content {
            ids_written: written,
            ids_read: read,
            sampling: Sampling {
                exact: self.values.level() == 0,
                rate: self.values.rate(),
                sampled: self.values.len() as u64,
                accesses: self.accesses,
                standard_error: skew::standard_error(&both, read + written, weight),
            },
            duplicate_share: self.share(OpKind::Write, self.duplicates),
            duplicate_live_share: self.share(OpKind::Write, self.live_duplicates),
            rewrite_share: self.share(OpKind::Write, self.rewrites),
            unique_written: self.distinct(&writes),
            unique_read: self.distinct(&reads),
            popularity: Skew {
                read: skew::figures(reads, read, weight),
                write: skew::figures(writes, written, weight),
                all: skew::figures(both, read + written, weight),
            },
            shared_read_share: self.share(OpKind::Read, self.shared_reads),
        })
    }

    /// Part of what was read (written), with hot accesses in their true proportion.
    fn share(&self, op: OpKind, [cold, hot]: [u64; 2]) -> Option<f64> {
        let [all_cold, all_hot] = self.weights[op as usize];
        let scale = Scale::new(self.ids[op as usize], all_cold, all_hot);
        share(cold + scale.of(hot), all_cold + scale.of(all_hot))
    }

    fn distinct(&self, counts: &[u32]) -> Estimate {
        let sampled = counts.iter().filter(|count| **count > 0).count();
        let exact = self.values.level() == 0;
        Estimate {
            value: sampled as f64 * self.values.weight() as f64,
            exact,
            relative_error: if exact {
                0.0
            } else {
                1.0 / libm::sqrt((sampled as f64).max(1.0))
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OpKind::{Read, Write};

    fn content() -> Content {
        Content::new(1 << 16, 1 << 22)
    }

    #[test]
    fn duplicates_rewrites_and_shared_reads() {
        let mut content = content();
        assert!(content.finish().is_none());
        content.access(Write, 0, 2, &[7, 8]);
        content.access(Write, 10, 1, &[7]); // a duplicate, of a live value
        content.access(Read, 0, 1, &[7]); // stored at 0 and 10
        content.access(Read, 1, 1, &[8]); // stored once
        content.access(Write, 1, 1, &[8]); // the same page again: a duplicate and a rewrite
        content.access(Write, 1, 1, &[9]); // 8 is stored nowhere now
        let written = content.access(Write, 5, 1, &[8]); // written before, but not live
        assert_eq!((written.ids, written.duplicates), (1, 1));
        content.forget(10, 1);
        content.access(Read, 0, 1, &[7]); // at one address again
        let figures = content.finish().unwrap();
        assert_eq!((figures.ids_written, figures.ids_read), (6, 3));
        assert_eq!(figures.duplicate_share, Some(3.0 / 6.0));
        assert_eq!(figures.duplicate_live_share, Some(2.0 / 6.0));
        assert_eq!(figures.rewrite_share, Some(1.0 / 6.0));
        assert_eq!((figures.unique_written.value, figures.unique_read.value), (3.0, 2.0));
        assert_eq!(figures.shared_read_share, Some(1.0 / 3.0));
        assert!(figures.sampling.exact && figures.unique_read.exact);
    }

    #[test]
    fn a_value_everywhere_does_not_empty_the_sample() {
        let mut content = Content::new(1000, 1 << 22);
        for page in 0..200_000u64 {
            content.access(Write, page, 1, &[if page % 2 == 0 { 0 } else { page % 200 }]);
        }
        content.access(Read, 0, 1, &[0]);
        let figures = content.finish().unwrap();
        assert!(figures.sampling.exact, "{:?}", figures.sampling);
        assert_eq!(figures.unique_written.value, 101.0);
        assert_eq!(figures.shared_read_share, Some(1.0));
    }

    #[test]
    fn a_sample_of_values_agrees_within_its_error() {
        let (mut whole, mut sampled) = (content(), Content::new(1000, 1 << 22));
        let mut state = 1u64;
        for page in 0..60_000u64 {
            state = mix(state);
            // Half of the writes repeat one of the last thousand values or so.
            let value = if state & 1 == 0 {
                page
            } else {
                page.saturating_sub(state >> 8 & 1023)
            };
            for content in [&mut whole, &mut sampled] {
                content.access(Write, page % 5000, 1, &[value]);
            }
        }
        let (whole, sampled) = (whole.finish().unwrap(), sampled.finish().unwrap());
        assert!(whole.sampling.exact && !sampled.sampling.exact);
        let near =
            |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 3.0 * sampled.sampling.standard_error;
        assert!(near(whole.duplicate_share, sampled.duplicate_share));
        assert!(near(whole.duplicate_live_share, sampled.duplicate_live_share));
        let relative = sampled.unique_written.value / whole.unique_written.value - 1.0;
        assert!(
            relative.abs() < 3.0 * sampled.unique_written.relative_error,
            "{relative}"
        );
    }

    #[test]
    fn a_value_of_half_of_all_writes_does_not_spoil_the_sample() {
        // 32 hot values, so that one or the other is sampled whatever the rate; 40,000 values come once each.
        let mut content = Content::new(2000, 1 << 22);
        for i in 0..80_000u64 {
            let value = if i % 2 == 0 { i } else { (1 << 40) | (i / 2 % 32) };
            content.access(Write, i, 1, &[value]);
        }
        let figures = content.finish().unwrap();
        assert!(!figures.sampling.exact);
        // All writes of the hot values but the first of each, of 80,000.
        let truth = (40_000.0 - 32.0) / 80_000.0;
        let error = figures.duplicate_share.unwrap() - truth;
        assert!(error.abs() < 0.05, "{error} at {:?}", figures.sampling);
    }

    #[test]
    fn a_trim_of_everything_looks_at_the_holders_only() {
        let mut content = content();
        content.access(Write, 5, 1, &[1]);
        content.forget(0, u64::MAX);
        content.access(Write, 6, 1, &[1]);
        assert_eq!(content.finish().unwrap().duplicate_live_share, Some(0.0));
    }
}
