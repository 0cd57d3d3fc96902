//! Sizes of requests by operation. Memory: 200 KiB a histogram, 100 KiB of exact sizes an operation.

use ftlab_core::{Batch, OpKind};
use hdrhistogram::Histogram as Hdr;

use super::frequent::Frequent;
use super::inspection::share;
use super::octaves::{octave_curve, octave_of};
use super::{FrequentSize, Percentiles, SizeFigures};

const EXACT_SIZES: usize = 2048;
const LISTED: usize = 10;

pub struct Sizes {
    ops: [OneOp; 3],
}

struct OneOp {
    requests: u64,
    bytes: u64,
    min: u64,
    max: u64,
    octaves: [u64; 65],
    /// `None` only if the histogram's constant bounds were refused.
    percentiles: Option<Hdr<u64>>,
    frequent: Frequent<u32>,
}

impl OneOp {
    fn new() -> Self {
        OneOp {
            requests: 0,
            bytes: 0,
            min: u64::MAX,
            max: 0,
            octaves: [0; 65],
            percentiles: Hdr::new_with_bounds(1, 1 << 32, 3).ok(),
            frequent: Frequent::new(EXACT_SIZES),
        }
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes {
            ops: [OneOp::new(), OneOp::new(), OneOp::new()],
        }
    }
}

impl Sizes {
    pub fn add(&mut self, batch: &Batch) {
        for (op, &length) in batch.op.iter().zip(&batch.length) {
            if *op == OpKind::Flush {
                continue;
            }
            let one = &mut self.ops[*op as usize];
            let bytes = u64::from(length);
            one.requests += 1;
            one.bytes += bytes;
            one.min = one.min.min(bytes);
            one.max = one.max.max(bytes);
            one.octaves[octave_of(bytes)] += 1;
            if let Some(histogram) = &mut one.percentiles {
                histogram.saturating_record(bytes);
            }
            one.frequent.add(length, 1, |_| ());
        }
    }

    pub fn finish(&self) -> super::Sizes {
        let [read, write, trim] = &self.ops;
        super::Sizes {
            mean_bytes: share(read.bytes + write.bytes, read.requests + write.requests),
            read: read.finish(),
            write: write.finish(),
            trim: trim.finish(),
        }
    }
}

impl OneOp {
    fn finish(&self) -> SizeFigures {
        let some = self.requests > 0;
        SizeFigures {
            requests: self.requests,
            mean_bytes: share(self.bytes, self.requests),
            min_bytes: some.then_some(self.min),
            max_bytes: some.then_some(self.max),
            percentiles_bytes: percentiles(self.percentiles.as_ref(), 1.0),
            histogram: octave_curve(&self.octaves, ("size_bytes", "requests"), 1.0, 1.0),
            frequent: self.frequent_sizes(),
        }
    }

    fn frequent_sizes(&self) -> Vec<FrequentSize> {
        let known = self.frequent.keys().iter().zip(self.frequent.known());
        let mut sizes: Vec<(u64, u32)> = known.map(|(&size, &count)| (count, size)).collect();
        sizes.sort_unstable_by_key(|&(count, size)| (std::cmp::Reverse(count), size));
        let row = |&(requests, size): &(u64, u32)| FrequentSize {
            size_bytes: u64::from(size),
            requests,
            error: self.frequent.error(),
            share: share(requests, self.requests).unwrap_or(0.0),
        };
        sizes.iter().take(LISTED).map(row).collect()
    }
}

/// The percentiles of a histogram times `unit`.
pub fn percentiles(histogram: Option<&Hdr<u64>>, unit: f64) -> Percentiles {
    let some = histogram.filter(|histogram| !histogram.is_empty());
    // The lower end of the bucket: sizes are multiples of 512 bytes, where buckets begin.
    Percentiles::of(|q| some.map(|h| h.lowest_equivalent(h.value_at_quantile(q)) as f64 * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_reads_and_a_write() {
        let mut batch = Batch::default();
        for length in [4096, 512, 4096, 6144] {
            batch.push(0, OpKind::Read, 0, length, 0, 0);
        }
        batch.push(0, OpKind::Write, 0, u32::MAX, 0, 0);
        let mut sizes = Sizes::default();
        sizes.add(&batch);
        let figures = sizes.finish();
        let read = &figures.read;
        assert_eq!(
            (read.mean_bytes, read.min_bytes, read.max_bytes),
            (Some(3712.0), Some(512), Some(6144))
        );
        // Sorted: 512, 4096, 4096, 6144: the second is the median, to three digits.
        let p50 = read.percentiles_bytes.p50.unwrap();
        assert!((p50 / 4096.0 - 1.0).abs() < 0.001, "{p50}");
        assert_eq!(read.histogram.x, [512.0, 1024.0, 2048.0, 4096.0]);
        assert_eq!(read.histogram.y, [1.0, 0.0, 0.0, 3.0]);
        let frequent: Vec<_> = read
            .frequent
            .iter()
            .map(|f| (f.size_bytes, f.requests, f.error))
            .collect();
        assert_eq!(frequent, [(4096, 2, 0), (512, 1, 0), (6144, 1, 0)]);
        assert_eq!(figures.write.max_bytes, Some(u64::from(u32::MAX)));
        assert_eq!(figures.write.histogram.x, [2147483648.0]);
        assert_eq!(
            (
                figures.trim.requests,
                figures.trim.mean_bytes,
                figures.trim.percentiles_bytes.p50
            ),
            (0, None, None)
        );
    }
}
