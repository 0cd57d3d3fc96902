//! Distances and times from one access of a page to the next, over the sampled pages.
//!
//! Distances in the sample and their counts are both scaled up by the sampling rate at that moment, as in SHARDS; below
//! 1 / rate pages the miss ratio curve has no detail. Memory: three stacks of 12 to 20 bytes a page and 3 × 3 × 2 histograms
//! of 4 KiB.

use ftlab_core::bins::last;

use super::inspection::share;
use super::octaves::{EIGHTHS, Octaves};
use super::records::Access;
use super::stack::Stack;
use super::strata::{HOT_FROM, Scale, Strata};
use super::{Curve, ReuseFigures};

#[derive(Default)]
pub struct Reuse {
    strings: [OneString; 3],
}

/// Reads, writes, or both.
#[derive(Default)]
struct OneString {
    stack: Stack,
    first: u64,
    distance: Strata,
    requests: Strata,
    ticks: Strata,
}

/// When a page was accessed last: request and ticks.
pub type Moment = (u64, u64);

/// Earlier accesses of a page: how many, and the last one's moment.
#[derive(Clone, Copy)]
pub struct Earlier {
    pub count: u32,
    pub last: Option<Moment>,
}

const ALL: usize = 2;

impl Reuse {
    /// An access of page `id`, read (0) or written (1), and what it is to the accesses of that kind and to all.
    #[inline]
    pub fn access(&mut self, id: u32, op: usize, own: Earlier, any: Earlier, access: &Access) {
        self.strings[op].access(id, own, access);
        self.strings[ALL].access(id, any, access);
    }

    /// What an access of page `id` looks at first comes into the cache.
    #[inline]
    pub fn prefetch(&self, id: u32, op: usize) {
        self.strings[op].stack.prefetch(id);
        self.strings[ALL].stack.prefetch(id);
    }

    pub fn forget(&mut self, id: u32) {
        self.strings.iter_mut().for_each(|string| string.stack.remove(id));
    }

    /// `accesses` are the true numbers of page reads and writes.
    pub fn finish(&self, accesses: [u64; 2]) -> super::Reuse {
        let [read, write, all] = &self.strings;
        super::Reuse {
            read: read.finish(accesses[0]),
            write: write.finish(accesses[1]),
            all: all.finish(accesses[0] + accesses[1]),
        }
    }
}

impl OneString {
    #[inline]
    fn access(&mut self, id: u32, earlier: Earlier, access: &Access) {
        match (self.stack.access(id), earlier.last) {
            (Some(distance), Some((request, ticks))) => {
                let (hot, weight) = (earlier.count + 1 >= HOT_FROM, access.weight);
                self.distance.add(hot, distance.saturating_mul(weight), weight);
                self.requests.add(hot, access.request - request, weight);
                self.ticks.add(hot, access.ticks - ticks, weight);
            }
            _ => self.first += access.weight,
        }
    }

    fn finish(&self, accesses: u64) -> ReuseFigures {
        let scale = Scale::new(
            accesses,
            self.first + self.distance.cold.total(),
            self.distance.hot.total(),
        );
        let together = self.distance.together(scale);
        let seen = self.first + together.total();
        let named = |counts: &Octaves, x_name| {
            let curve = counts.by_octave((x_name, "access_share"), seen as f64, 1.0);
            (curve, counts.percentiles(1.0))
        };
        let (distance, distance_percentiles_pages) = named(&together, "distance_pages");
        let (time_requests, time_requests_percentiles) = named(&self.requests.together(scale), "time_requests");
        let (time_ticks, time_ticks_percentiles) = named(&self.ticks.together(scale), "time_ticks");
        ReuseFigures {
            accesses,
            first_touch_share: share(self.first, seen),
            distance,
            distance_percentiles_pages,
            miss_ratio: miss_ratio(&together, seen),
            time_requests,
            time_requests_percentiles,
            time_ticks,
            time_ticks_percentiles,
        }
    }
}

/// From a cache of one page to the first that misses first touches alone.
fn miss_ratio(distances: &Octaves, seen: u64) -> Curve {
    let mut curve = Curve::new("cache_pages", "miss_ratio");
    let bins = distances.eighths();
    let Some(end) = bins.iter().rposition(|&weight| weight > 0) else {
        if seen > 0 {
            curve.push(1.0, 1.0);
        }
        return curve;
    };
    let mut misses = seen;
    for (bin, weight) in bins.iter().enumerate().take(end + 1) {
        misses -= weight;
        // A cache of C pages hits distances below C. Above 8 every second bin ends at a quarter of an octave.
        let pages = last::<EIGHTHS>(bin) as f64 + 1.0;
        if bin < 8 || bin % 2 == 1 || bin == end {
            curve.push(pages, misses as f64 / seen as f64);
        }
    }
    curve
}
