//! The live table: which contexts have written into a range of addresses, and when.

use std::collections::BTreeMap;

use ftlab_core::IndexList;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::super::learnt;

/// Bytes of a range and of a record, as the source has them.
const BYTES: u64 = 12;

/// What one context has written into a range and what has not died since: the mean time of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    context: u64,
    sum: u64,
    requests: u64,
}

impl Record {
    fn time(&self) -> u64 {
        self.sum / self.requests
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct LiveTable {
    most_bytes: u64,
    #[serde(serialize_with = "learnt::sorted")]
    ranges: FxHashMap<u32, Vec<Record>>,
    records: u64,
    /// Ranges, that of the last write in front.
    order: IndexList,
    evictions: u64,
}

impl LiveTable {
    pub fn new(most_bytes: u64) -> Self {
        LiveTable {
            most_bytes,
            ranges: FxHashMap::default(),
            records: 0,
            order: IndexList::new(0),
            evictions: 0,
        }
    }

    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    pub fn bytes(&self) -> u64 {
        BYTES * (self.ranges.len() as u64 + self.records)
    }

    /// A request of `context` writes into `range` at `tick`.
    pub fn record(&mut self, range: u32, context: u64, tick: u64) {
        self.order.touch(range);
        let records = self.ranges.entry(range).or_default();
        match records.iter_mut().find(|record| record.context == context) {
            Some(record) => {
                record.sum += tick;
                record.requests += 1;
            }
            None => {
                records.push(Record {
                    context,
                    sum: tick,
                    requests: 1,
                });
                self.records += 1;
            }
        }
        while self.bytes() > self.most_bytes
            && self.ranges.len() > 1
            && let Some(oldest) = self.order.pop_back()
        {
            self.drop_range(oldest);
            self.evictions += 1;
        }
    }

    /// Takes out the record of `range` that has been there longest: its context and when it was written.
    pub fn take_oldest(&mut self, range: u32) -> Option<(u64, u64)> {
        let records = self.ranges.get_mut(&range)?;
        let oldest = (0..records.len()).min_by_key(|&at| records[at].time())?;
        let record = records.remove(oldest);
        self.records -= 1;
        if records.is_empty() {
            self.ranges.remove(&range);
            self.order.remove(range);
        }
        Some((record.context, record.time()))
    }

    fn drop_range(&mut self, range: u32) {
        let records = self.ranges.remove(&range).map_or(0, |records| records.len());
        self.records -= records as u64;
    }

    /// The mean age of the records of each context, in order of contexts.
    pub fn ages(&self, tick: u64) -> Vec<(u64, f64)> {
        // Sums of integers: the order in which a hash table gives its entries does not matter.
        let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for record in self.ranges.values().flatten() {
            let (sum, count) = sums.entry(record.context).or_default();
            *sum += tick - record.time();
            *count += 1;
        }
        let mean = |(context, (sum, count))| (context, sum as f64 / count as f64);
        sums.into_iter().map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_record_of_a_range_dies_and_the_range_of_longest_ago_leaves() {
        let mut table = LiveTable::new(6 * BYTES);
        table.record(1, 100, 10);
        table.record(1, 200, 20);
        table.record(1, 100, 40);
        assert_eq!(table.ages(50), [(100, 25.0), (200, 30.0)]);
        assert_eq!(table.take_oldest(1), Some((200, 20)));
        table.record(2, 200, 50);
        table.record(3, 200, 60);
        assert_eq!((table.ranges(), table.bytes()), (3, 6 * BYTES));
        table.record(4, 300, 70);
        assert_eq!(table.take_oldest(1), None, "range 1 has left");
        assert_eq!((table.ranges(), table.evictions()), (3, 1));
        assert_eq!(table.take_oldest(4), Some((300, 70)));
        assert_eq!((table.ranges(), table.bytes()), (2, 4 * BYTES));
    }
}
