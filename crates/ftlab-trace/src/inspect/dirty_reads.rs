//! Reads of pages written earlier in the same partition of 1024 requests (see [`DirtyReads`](super::DirtyReads)).
//!
//! # Model
//! Partitions count reads and writes, not trims and flushes. A partition's writes are kept as ranges of pages, found
//! through chains by region of 64 pages; a request of more than 8 regions is compared with all ranges, or all with it.
//! # Memory
//! 100 KiB.

use ftlab_core::{Batch, OpKind};

use super::Curve;
use super::inspection::share;
use super::octaves::Octaves;
use super::pages::Pages;
use crate::splitmix::mix;

pub const PARTITION: u64 = 1024;
const HEADS: usize = 2048;
const REGION_SHIFT: u32 = 6;
const MOST_REGIONS: u64 = 8;
const GROUPS: usize = 512;
const END: u32 = u32::MAX;

pub struct DirtyReads {
    partition: Partition,
    /// Reads and writes in the current partition.
    requests: u64,
    reads: u64,
    writes: u64,
    read_after_writes: u64,
    total_reads: u64,
    total_writes: u64,
    total_read_after_writes: u64,
    partitions: u64,
    /// Sum, number, least and largest of the ratios of partitions with writes.
    ratios: (f64, u64, f64, f64),
    /// Read-after-writes and writes of groups of equally many partitions.
    groups: Vec<[u64; 2]>,
    group_partitions: u64,
    distance: Octaves,
}

/// What the current partition wrote.
struct Partition {
    /// First and last page, and number within the partition, of each write.
    writes: Vec<(u64, u64, u32)>,
    /// Newest node of each chain; a node is a write and the next older node.
    heads: Vec<u32>,
    nodes: Vec<(u32, u32)>,
    /// Writes that are in no chain.
    wide: Vec<u32>,
}

impl Default for DirtyReads {
    fn default() -> Self {
        DirtyReads {
            partition: Partition {
                writes: Vec::new(),
                heads: vec![END; HEADS],
                nodes: Vec::new(),
                wide: Vec::new(),
            },
            requests: 0,
            reads: 0,
            writes: 0,
            read_after_writes: 0,
            total_reads: 0,
            total_writes: 0,
            total_read_after_writes: 0,
            partitions: 0,
            ratios: (0.0, 0, f64::INFINITY, 0.0),
            groups: Vec::new(),
            group_partitions: 1,
            distance: Octaves::default(),
        }
    }
}

impl DirtyReads {
    pub fn add(&mut self, batch: &Batch, pages: &Pages) {
        for i in 0..batch.len() {
            let (op, first, count) = (batch.op[i], pages.first[i], u64::from(pages.count[i]));
            if !matches!(op, OpKind::Read | OpKind::Write) {
                continue;
            }
            let last = first.saturating_add(count.saturating_sub(1));
            let number = self.requests as u32;
            if op == OpKind::Write {
                self.writes += 1;
                if count > 0 {
                    self.partition.write(first, last, number);
                }
            } else {
                self.reads += 1;
                if count > 0
                    && let Some(written) = self.partition.newest(first, last)
                {
                    self.read_after_writes += 1;
                    self.distance.add(u64::from(number - written), 1);
                }
            }
            self.requests += 1;
            if self.requests == PARTITION {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.partition.clear();
        if self.writes > 0 {
            let ratio = self.read_after_writes as f64 / self.writes as f64;
            let (sum, number, min, max) = self.ratios;
            self.ratios = (sum + ratio, number + 1, min.min(ratio), max.max(ratio));
        }
        let group = (self.partitions / self.group_partitions) as usize;
        if group == GROUPS {
            self.groups = self
                .groups
                .chunks(2)
                .map(|c| [c[0][0] + c[1][0], c[0][1] + c[1][1]])
                .collect();
            self.group_partitions *= 2;
        }
        let group = (self.partitions / self.group_partitions) as usize;
        self.groups.resize(group + 1, [0; 2]);
        self.groups[group][0] += self.read_after_writes;
        self.groups[group][1] += self.writes;
        self.partitions += 1;
        self.total_reads += self.reads;
        self.total_writes += self.writes;
        self.total_read_after_writes += self.read_after_writes;
        (self.requests, self.reads, self.writes, self.read_after_writes) = (0, 0, 0, 0);
    }

    pub fn finish(mut self) -> super::DirtyReads {
        if self.requests > 0 {
            self.close();
        }
        let mut series = Curve::new("first_request", "ratio");
        for (group, &[read_after_writes, writes]) in self.groups.iter().enumerate() {
            let first = group as u64 * self.group_partitions * PARTITION;
            series.push(first as f64, share(read_after_writes, writes).unwrap_or(0.0));
        }
        let (sum, number, min, max) = self.ratios;
        let some = |value| (number > 0).then_some(value);
        super::DirtyReads {
            partition_requests: PARTITION,
            partitions: self.partitions,
            read_after_writes: self.total_read_after_writes,
            ratio: share(self.total_read_after_writes, self.total_writes),
            share_of_reads: share(self.total_read_after_writes, self.total_reads),
            mean: some(sum / number as f64),
            min: some(min),
            max: some(max),
            series,
            distance: self.distance.by_octave(("distance_requests", "reads"), 1.0, 1.0),
            distance_percentiles_requests: self.distance.percentiles(1.0),
        }
    }
}

impl Partition {
    fn clear(&mut self) {
        self.writes.clear();
        self.nodes.clear();
        self.wide.clear();
        self.heads.fill(END);
    }

    fn write(&mut self, first: u64, last: u64, number: u32) {
        let write = self.writes.len() as u32;
        self.writes.push((first, last, number));
        let (from, to) = (first >> REGION_SHIFT, last >> REGION_SHIFT);
        if to - from >= MOST_REGIONS {
            self.wide.push(write);
            return;
        }
        for region in from..=to {
            let head = &mut self.heads[mix(region) as usize % HEADS];
            self.nodes.push((write, *head));
            *head = self.nodes.len() as u32 - 1;
        }
    }

    /// Number of the newest write that has a page of this range.
    fn newest(&self, first: u64, last: u64) -> Option<u32> {
        let overlaps = |&(from, to, _): &(u64, u64, u32)| from <= last && first <= to;
        let (from, to) = (first >> REGION_SHIFT, last >> REGION_SHIFT);
        if to - from >= MOST_REGIONS {
            return self
                .writes
                .iter()
                .rev()
                .find(|write| overlaps(write))
                .map(|write| write.2);
        }
        let mut newest = self
            .wide
            .iter()
            .rev()
            .copied()
            .find(|&write| overlaps(&self.writes[write as usize]));
        for region in from..=to {
            let mut at = self.heads[mix(region) as usize % HEADS];
            while at != END {
                let (write, older) = self.nodes[at as usize];
                if newest.is_some_and(|newest| write <= newest) {
                    break;
                }
                if overlaps(&self.writes[write as usize]) {
                    newest = Some(write);
                }
                at = older;
            }
        }
        newest.map(|write| self.writes[write as usize].2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn added(requests: &[(OpKind, u64, u32)]) -> DirtyReads {
        let (mut batch, mut pages, mut dirty) = (Batch::default(), Pages::default(), DirtyReads::default());
        for &(op, offset, length) in requests {
            batch.push(0, op, offset, length, 0, 0);
        }
        pages.set(&batch, false);
        dirty.add(&batch, &pages);
        dirty
    }

    fn run(requests: &[(OpKind, u64, u32)]) -> super::super::DirtyReads {
        added(requests).finish()
    }

    #[test]
    fn counted_once_for_each_request_and_only_within_the_partition() {
        use OpKind::{Flush, Read, Write};
        let mut requests = vec![
            (Write, 0, 4096),
            (Write, 8192, 4096),
            (Read, 0, 12288), // pages 0 and 2 were written: once, at distance 1
            (Read, 4096, 4096),
            (Flush, 0, 0),
            (Read, 100, 512), // page 0, four reads and writes after its write
        ];
        let figures = run(&requests);
        assert_eq!(
            (figures.read_after_writes, figures.ratio, figures.share_of_reads),
            (2, Some(1.0), Some(2.0 / 3.0))
        );
        assert_eq!(
            (figures.distance.x, figures.distance.y),
            (vec![1.0, 2.0, 4.0], vec![1.0, 0.0, 1.0])
        );
        // The 1025th read or write begins a partition, where page 0 has not been written.
        requests.resize(1025, (Read, 1 << 30, 512));
        requests.extend([(Read, 0, 4096), (Write, 0, 4096)]);
        let figures = run(&requests);
        assert_eq!((figures.read_after_writes, figures.partitions), (2, 2));
        assert_eq!(
            (figures.mean, figures.min, figures.max),
            (Some(0.5), Some(0.0), Some(1.0))
        );
        assert_eq!(
            (figures.series.x, figures.series.y),
            (vec![0.0, 1024.0], vec![1.0, 0.0])
        );
    }

    #[test]
    fn the_series_is_bounded() {
        let requests: Vec<_> = (0..1_200_000u64)
            .map(|i| (OpKind::ALL[(i % 2) as usize], i / 2 * 4096 % 65536, 512))
            .collect();
        let figures = run(&requests);
        assert!(figures.series.x.len() > 256 && figures.series.x.len() <= 512);
        assert!(figures.ratio.unwrap() > 0.9);
        assert_eq!(run(&[]).mean, None);
    }

    proptest! {
        #[test]
        fn as_a_map_of_pages(
            requests in prop::collection::vec(
                (0usize..2, 0u64..3000, prop_oneof![1u64..4, 1u64..100, 500u64..1500]),
                1..3000,
            )
        ) {
            let (mut expected, mut distances) = (0, 0u64);
            let mut written = rustc_hash::FxHashMap::default();
            for (i, &(op, page, pages)) in requests.iter().enumerate() {
                if i % 1024 == 0 {
                    written.clear();
                }
                if op == 1 {
                    written.extend((page..page + pages).map(|p| (p, i)));
                } else if let Some(newest) = (page..page + pages).filter_map(|p| written.get(&p)).max() {
                    expected += 1;
                    distances += (i - newest) as u64;
                }
            }
            let requests: Vec<_> =
                requests.iter().map(|&(op, page, pages)| (OpKind::ALL[op], page << 12, (pages << 12) as u32)).collect();
            let dirty = added(&requests);
            // Distances are kept in bins; their sum is checked to the width of those.
            let bins = dirty.distance.bins().iter().enumerate();
            let sum: u64 = bins.map(|(bin, n)| n * ftlab_core::bins::lower::<{ super::super::octaves::FINE }>(bin)).sum();
            prop_assert!(sum <= distances && distances as f64 <= sum as f64 * 1.004 + 1.0, "{} {}", sum, distances);
            prop_assert_eq!(dirty.finish().read_after_writes, expected);
        }
    }
}
