//! Training and testing: a source cut by requests into equal parts.
//!
//! Mine one part, test on the next. Parts count every request, not only reads, so that a run over the same requests of
//! the trace sees the same part.

use std::ops::Range;

use ftlab_core::{Batch, Error, Result, Source};

use crate::{Items, Reads};

/// The requests of part `part` (from 0) of `parts` equal ones; earlier parts are longer by one where they do not divide.
pub fn part(requests: u64, parts: u64, part: u64) -> Range<u64> {
    let (each, rest) = (requests / parts.max(1), requests % parts.max(1));
    let start = |part: u64| part * each + part.min(rest);
    start(part)..start(part + 1)
}

/// Requests that a source has left, by reading it.
pub fn count(mut source: impl Source) -> Result<u64> {
    let mut batch = Batch::default();
    let mut requests = 0;
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(requests);
        }
        requests += batch.len() as u64;
    }
}

/// A source whose reads are recorded part by part; one part is in memory at a time.
pub struct Parts<S> {
    source: S,
    batch: Batch,
    /// Next request of the batch, and its number in the source.
    row: usize,
    number: u64,
}

impl<S: Source> Parts<S> {
    pub fn new(source: S) -> Self {
        Parts {
            source,
            batch: Batch::default(),
            row: 0,
            number: 0,
        }
    }

    pub fn inner(&self) -> &S {
        &self.source
    }

    /// The reads among these requests; ranges must follow each other.
    pub fn record(&mut self, requests: Range<u64>, unit: u32, items: Items) -> Result<Reads> {
        if requests.start < self.number {
            return Err(Error::input(format!(
                "request {} was passed already: expected a part at or after request {}",
                requests.start, self.number
            )));
        }
        let mut reads = Reads::new(unit, items)?;
        while self.number < requests.end {
            if self.row == self.batch.len() {
                self.source.next_batch(&mut self.batch)?;
                self.row = 0;
                if self.batch.is_empty() {
                    break;
                }
            }
            if self.number >= requests.start {
                reads.add(&self.batch, self.row)?;
            }
            self.row += 1;
            self.number += 1;
        }
        Ok(reads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::OpKind;

    /// Reads of the units 0, 1, 2, …, in batches of 3.
    struct Counting(u64, u64);

    impl Source for Counting {
        fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
            batch.clear();
            let end = (self.0 + 3).min(self.1);
            for i in self.0..end {
                batch.push(i, OpKind::Read, i * 4096, 4096, 0, 0);
            }
            self.0 = end;
            Ok(())
        }
    }

    #[test]
    fn parts_cover_all_requests_once() {
        let parts: Vec<_> = (0..4).map(|i| part(10, 4, i)).collect();
        assert_eq!(parts, [0..3, 3..6, 6..8, 8..10]);
        assert_eq!(part(3, 1, 0), 0..3);
        assert_eq!(count(Counting(0, 10)).unwrap(), 10);
        let mut cut = Parts::new(Counting(0, 10));
        let first = cut.record(parts[0].clone(), 4096, Items::Pages).unwrap();
        let third = cut.record(parts[2].clone(), 4096, Items::Pages).unwrap();
        let last = cut.record(parts[3].start..99, 4096, Items::Pages).unwrap();
        assert_eq!(
            (first.lpns(), third.lpns(), last.lpns()),
            (&[0, 1, 2][..], &[6, 7][..], &[8, 9][..])
        );
        assert!(cut.record(0..3, 4096, Items::Pages).is_err());
    }
}
