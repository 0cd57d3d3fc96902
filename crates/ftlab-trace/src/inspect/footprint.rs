//! Distinct pages read, written and touched, and how they grow.
//!
//! # Model
//! Two bits for each page (read, written) in regions of 512 pages, exact; when more regions are touched than allowed,
//! all pages go into a HyperLogLog for reads and one for writes, and what is touched is estimated from the two
//! together.
//! # Memory
//! About 170 bytes a region: 16 MiB with the default of 98,304 regions (192 GiB where dense), then 32 KiB.
//! # Cost
//! One look-up a region and one step a 64 pages while exact; one hash a page afterwards.

use ftlab_core::{Batch, OpKind};
use rustc_hash::{FxHashMap, FxHashSet};

use super::hyperloglog::{HyperLogLog, RELATIVE_ERROR};
use super::inspection::share;
use super::pages::{PAGE_SHIFT, Pages};
use super::{Curve, Estimate};
use crate::splitmix::mix;

const CHUNK: u64 = 512;
const WORDS: usize = 8;
const POINTS: usize = 512;
const FIRST: u64 = 10_000;

pub struct Footprint {
    set: Set,
    most_chunks: usize,
    requests: u64,
    next_point: u64,
    step: u64,
    /// Requests, and distinct pages read, written, touched.
    points: Vec<(u64, [f64; 3])>,
    first_pages: First,
    first_writes: First,
}

enum Set {
    Bitmaps(Bitmaps),
    Sketches([HyperLogLog; 2]),
}

#[derive(Default)]
struct Bitmaps {
    index: FxHashMap<u64, u32>,
    /// Bits of pages read, and written.
    chunks: Vec<[[u64; WORDS]; 2]>,
    keys: Vec<u64>,
    last: Option<(u64, usize)>,
    /// Distinct pages read, and written; and either.
    counts: [u64; 2],
    touched: u64,
}

/// Distinct pages among the first so many.
#[derive(Default)]
struct First {
    seen: u64,
    distinct: FxHashSet<u64>,
}

impl First {
    #[inline]
    fn add(&mut self, page: u64) {
        self.seen += 1;
        self.distinct.insert(page);
    }
}

impl Footprint {
    pub fn new(most_chunks: usize) -> Self {
        Footprint {
            set: Set::Bitmaps(Bitmaps::default()),
            most_chunks,
            requests: 0,
            next_point: 1,
            step: 1,
            points: Vec::new(),
            first_pages: First::default(),
            first_writes: First::default(),
        }
    }

    pub fn add(&mut self, batch: &Batch, pages: &Pages) {
        for i in 0..batch.len() {
            let (first, count, op) = (pages.first[i], u64::from(pages.count[i]), batch.op[i]);
            if matches!(op, OpKind::Read | OpKind::Write) && count > 0 {
                self.touch(op as usize, first, count);
                if op == OpKind::Write {
                    self.watch_first(first, count);
                }
            }
            self.requests += 1;
            if self.requests == self.next_point {
                self.point();
            }
        }
    }

    fn touch(&mut self, op: usize, first: u64, count: u64) {
        if let Set::Bitmaps(bitmaps) = &mut self.set {
            match bitmaps.mark(op, first, count, self.most_chunks) {
                Ok(()) => return,
                Err(Full) => self.set = Set::Sketches(bitmaps.sketches()),
            }
        }
        if let Set::Sketches(sketches) = &mut self.set {
            for page in first..first.saturating_add(count) {
                sketches[op].add(mix(page));
            }
        }
    }

    #[inline]
    fn watch_first(&mut self, first: u64, count: u64) {
        if self.first_pages.seen < FIRST {
            let wanted = count.min(FIRST - self.first_pages.seen);
            (first..first.saturating_add(wanted)).for_each(|page| self.first_pages.add(page));
        }
        if self.first_writes.seen < FIRST {
            self.first_writes.add(first);
        }
    }

    fn point(&mut self) {
        self.push_point();
        if self.points.len() == POINTS {
            self.step *= 2;
            let step = self.step;
            self.points.retain(|(requests, ..)| requests % step == 0);
        }
        self.next_point = (self.requests / self.step + 1) * self.step;
    }

    /// Estimates may fall a little from one point to the next; the curve does not.
    fn push_point(&mut self) {
        let counts = self.set.counts().map(|estimate| estimate.value);
        let (_, least) = self.points.last().copied().unwrap_or_default();
        let point = std::array::from_fn(|i| counts[i].max(least[i]));
        self.points.push((self.requests, point));
    }

    pub fn finish(mut self, span_bytes: u64, page_reads: u64, page_writes: u64) -> super::Footprint {
        if self.points.last().is_some_and(|last| last.0 != self.requests) || self.points.is_empty() && self.requests > 0
        {
            self.push_point();
        }
        let [read, written, touched] = self.set.counts();
        let unique = |estimate: Estimate, all: u64| (all > 0).then(|| (estimate.value / all as f64).min(1.0));
        let mut growth = ["pages_read", "pages_written", "pages_touched"].map(|name| Curve::new("requests", name));
        for (requests, counts) in self.points {
            for (curve, count) in growth.iter_mut().zip(counts) {
                curve.push(requests as f64, count);
            }
        }
        let [growth_read, growth_written, growth_touched] = growth;
        super::Footprint {
            pages_read: read,
            pages_written: written,
            pages_touched: touched,
            span_bytes,
            unique_write_share: unique(written, page_writes),
            unique_read_share: unique(read, page_reads),
            density: share(1 << PAGE_SHIFT, span_bytes).map(|page| page * touched.value),
            growth_written,
            growth_read,
            growth_touched,
            unique_in_first_page_writes: self.first_pages.distinct.len() as u64,
            first_page_writes: self.first_pages.seen,
            unique_in_first_writes: self.first_writes.distinct.len() as u64,
            first_writes: self.first_writes.seen,
        }
    }
}

impl Set {
    /// Distinct pages read, written, touched.
    fn counts(&self) -> [Estimate; 3] {
        match self {
            Set::Bitmaps(b) => [b.counts[0], b.counts[1], b.touched].map(Estimate::exact),
            Set::Sketches([read, written]) => {
                [read.estimate(), written.estimate(), read.union_estimate(written)].map(|value| Estimate {
                    value,
                    exact: value == 0.0,
                    relative_error: if value == 0.0 { 0.0 } else { RELATIVE_ERROR },
                })
            }
        }
    }
}

/// More regions than allowed.
struct Full;

impl Bitmaps {
    #[inline]
    fn mark(&mut self, op: usize, first: u64, count: u64, most: usize) -> Result<(), Full> {
        let (mut page, last) = (first, first.saturating_add(count - 1));
        loop {
            let at = self.chunk(page / CHUNK, most)?;
            let until = last.min(page | (CHUNK - 1));
            let [read, written] = &mut self.chunks[at];
            while page <= until {
                let end = until.min(page | 63);
                let bits = u64::MAX >> (63 - (end - page)) << (page % 64);
                let word = (page % CHUNK / 64) as usize;
                let (mine, other) = if op == 0 {
                    (&mut read[word], written[word])
                } else {
                    (&mut written[word], read[word])
                };
                let new = bits & !*mine;
                *mine |= bits;
                self.counts[op] += u64::from(new.count_ones());
                self.touched += u64::from((new & !other).count_ones());
                if end == last {
                    return Ok(());
                }
                page = end + 1;
            }
        }
    }

    #[inline]
    fn chunk(&mut self, key: u64, most: usize) -> Result<usize, Full> {
        if let Some((last, at)) = self.last
            && last == key
        {
            return Ok(at);
        }
        let at = match self.index.get(&key) {
            Some(&at) => at as usize,
            None if self.chunks.len() >= most => return Err(Full),
            None => {
                self.index.insert(key, self.chunks.len() as u32);
                self.chunks.push([[0; WORDS]; 2]);
                self.keys.push(key);
                self.chunks.len() - 1
            }
        };
        self.last = Some((key, at));
        Ok(at)
    }

    /// The same pages in sketches.
    fn sketches(&self) -> [HyperLogLog; 2] {
        let mut sketches = [HyperLogLog::default(), HyperLogLog::default()];
        for (chunk, key) in self.chunks.iter().zip(&self.keys) {
            for (bitmap, sketch) in chunk.iter().zip(&mut sketches) {
                for (word, bits) in bitmap.iter().enumerate() {
                    let mut bits = *bits;
                    while bits != 0 {
                        sketch.add(mix(key * CHUNK + word as u64 * 64 + u64::from(bits.trailing_zeros())));
                        bits &= bits - 1;
                    }
                }
            }
        }
        sketches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn run(requests: &[(OpKind, u64, u32)], most_chunks: usize) -> super::super::Footprint {
        let (mut batch, mut pages, mut footprint) = (Batch::default(), Pages::default(), Footprint::new(most_chunks));
        for &(op, offset, length) in requests {
            batch.push(0, op, offset, length, 0, 0);
        }
        pages.set(&batch, false);
        footprint.add(&batch, &pages);
        let count = |wanted| {
            (0..batch.len())
                .filter(|&i| batch.op[i] == wanted)
                .map(|i| u64::from(pages.count[i]))
                .sum()
        };
        footprint.finish(1 << 20, count(OpKind::Read), count(OpKind::Write))
    }

    #[test]
    fn read_written_and_either() {
        use OpKind::{Read, Trim, Write};
        let figures = run(
            &[
                (Write, 0, 8192),
                (Write, 4096, 8192),
                (Read, 8192, 8192),
                (Trim, 1 << 30, 4096),
            ],
            10,
        );
        // Written: pages 0, 1, 2 by four page writes; read: 2, 3; touched: 0 to 3.
        assert_eq!(
            (
                figures.pages_written.value,
                figures.pages_read.value,
                figures.pages_touched.value
            ),
            (3.0, 2.0, 4.0)
        );
        assert!(figures.pages_touched.exact);
        assert_eq!(figures.unique_write_share, Some(0.75));
        assert_eq!(figures.growth_written.x, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(figures.growth_written.y, [2.0, 3.0, 3.0, 3.0]);
        assert_eq!(figures.growth_read.y, [0.0, 0.0, 2.0, 2.0]);
        assert_eq!(figures.density, Some(4.0 / 256.0));
        assert_eq!((figures.unique_in_first_page_writes, figures.first_page_writes), (3, 4));
        assert_eq!((figures.unique_in_first_writes, figures.first_writes), (2, 2));
    }

    #[test]
    fn the_largest_request_at_the_highest_offset_ends() {
        let figures = run(
            &[
                (OpKind::Write, u64::MAX - 5000, u32::MAX),
                (OpKind::Read, 1 << 40, u32::MAX),
            ],
            10_000,
        );
        assert_eq!(figures.pages_written.value, 2.0);
        assert_eq!(figures.pages_read.value, f64::from(1 << 20));
    }

    proptest! {
        #[test]
        fn bitmaps_as_a_set_and_sketches_within_four_errors(
            requests in prop::collection::vec((0u8..2, 0u64..1 << 34, 1u32..1 << 20), 1..60)
        ) {
            let mut sets = [BTreeSet::new(), BTreeSet::new()];
            let requests: Vec<_> = requests
                .into_iter()
                .map(|(op, offset, length)| {
                    let last = (offset + u64::from(length) - 1) >> 12;
                    sets[usize::from(op)].extend(offset >> 12..=last);
                    (OpKind::ALL[usize::from(op)], offset, length)
                })
                .collect();
            let either = sets[0].union(&sets[1]).count() as f64;
            let exact = run(&requests, 1 << 20);
            prop_assert_eq!(exact.pages_read.value, sets[0].len() as f64);
            prop_assert_eq!(exact.pages_written.value, sets[1].len() as f64);
            prop_assert_eq!(exact.pages_touched.value, either);
            let sketched = run(&requests, 3);
            if !sketched.pages_touched.exact {
                let error = sketched.pages_touched.value / either - 1.0;
                prop_assert!(error.abs() < 4.0 * sketched.pages_touched.relative_error, "{}", error);
            }
        }
    }
}
