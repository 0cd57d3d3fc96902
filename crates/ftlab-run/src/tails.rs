//! Counts of latencies coarse enough to be kept for every point of a time series, for the tail of each interval.
//!
//! Eight steps to the octave of nanoseconds: the middle of a step is within 6.3 % of what it stands for.

use ftlab_core::OpKind;
use ftlab_core::bins::{bin_of, last, lower};

/// Steps to the octave, as a power of two.
const BITS: u32 = 3;
/// Up to 2^48 ns (78 hours); what is longer counts as that.
const PLACES: usize = bin_of::<BITS>((1 << 48) - 1) + 1;

/// Latencies of reads and of writes. In one piece, so that many of them in a vector are one allocation.
#[derive(Clone, Debug)]
pub struct Tails([[u32; PLACES]; 2]);

impl Default for Tails {
    fn default() -> Self {
        Tails([[0; PLACES]; 2])
    }
}

impl Tails {
    #[inline]
    pub fn record(&mut self, op: OpKind, latency_ns: u64) {
        if let Some(counts) = self.0.get_mut(op as usize) {
            let count = &mut counts[place_of(latency_ns)];
            *count = count.wrapping_add(1);
        }
    }

    /// The `q`-quantile of what was recorded here since `before`, in nanoseconds; `None` if nothing was.
    pub fn quantile_since(&self, before: &Tails, op: OpKind, q: f64) -> Option<f64> {
        let (now, then) = (self.0.get(op as usize)?, before.0.get(op as usize)?);
        // Differences are right even where a count has gone round.
        let counts = now.iter().zip(then).map(|(now, then)| now.wrapping_sub(*then));
        let total: u64 = counts.clone().map(u64::from).sum();
        let wanted = (q * total as f64).ceil() as u64;
        let mut sum = 0;
        counts.enumerate().find_map(|(place, count)| {
            sum += u64::from(count);
            (count > 0 && sum >= wanted).then(|| middle_of(place))
        })
    }
}

/// Reads and writes come first among the operations.
const _: () = assert!(OpKind::Read as usize == 0 && OpKind::Write as usize == 1);

#[inline]
fn place_of(ns: u64) -> usize {
    bin_of::<BITS>(ns).min(PLACES - 1)
}

fn middle_of(place: usize) -> f64 {
    let (low, high) = (lower::<BITS>(place), last::<BITS>(place));
    low as f64 + (high - low) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_stands_for_what_is_within_a_sixteenth_of_it() {
        let mut last = 0;
        for ns in
            (0..100_000).chain((17..47).flat_map(|octave| (0..64).map(move |i| (1u64 << octave) + (i << (octave - 6)))))
        {
            let place = place_of(ns);
            assert!(place >= last && place < PLACES, "{ns}: {place} after {last}");
            last = place;
            assert!(
                (middle_of(place) - ns as f64).abs() <= ns as f64 / 16.0,
                "{ns}: {}",
                middle_of(place)
            );
        }
        assert_eq!(place_of(u64::MAX), PLACES - 1);
    }

    #[test]
    fn quantiles_are_those_of_an_interval_alone() {
        let mut tails = Tails::default();
        for _ in 0..1000 {
            tails.record(OpKind::Read, 1_000_000);
        }
        let before = tails.clone();
        for ns in 1..=100u64 {
            tails.record(OpKind::Read, 1000 * ns);
        }
        tails.record(OpKind::Flush, 1);
        let p99 = tails.quantile_since(&before, OpKind::Read, 0.99).unwrap();
        assert!((p99 / 99_000.0 - 1.0).abs() <= 0.063, "{p99}");
        assert_eq!(tails.quantile_since(&before, OpKind::Write, 0.99), None);
        let all = tails.quantile_since(&Tails::default(), OpKind::Read, 0.99).unwrap();
        assert!((all / 1e6 - 1.0).abs() <= 0.063, "{all}");
    }
}
