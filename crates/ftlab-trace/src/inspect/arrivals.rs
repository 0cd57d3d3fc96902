//! Rates, bursts, gaps and the series over time.
//!
//! Memory: 500 KiB for the histogram of gaps, 40 KiB for the series. A stamp below its predecessor's counts as equal to
//! it.

use ftlab_core::{Batch, OpKind};
use hdrhistogram::Histogram as Hdr;

use super::inspection::share;
use super::octaves::octave_of;
use super::sizes::percentiles;
use super::{Curve, IdleFigures, WindowFigures};

const MS: u64 = 1_000_000;
const WINDOWS_NS: [u64; 6] = [MS, 10 * MS, 100 * MS, 1000 * MS, 10_000 * MS, 60_000 * MS];
const IDLE_NS: [u64; 4] = [MS, 10 * MS, 100 * MS, 1000 * MS];
const BINS: usize = 1024;
/// Gaps beyond 36 years count as that in the percentiles.
const LONGEST_GAP_NS: u64 = 1 << 60;

pub struct Arrivals {
    requests: u64,
    bytes: u64,
    start_ns: u64,
    last_ns: u64,
    ties: u64,
    backward: u64,
    gaps: Option<Hdr<u64>>,
    gap_max_ns: u64,
    /// Σ gap², saturating.
    gap_squares: u128,
    windows: [Window; WINDOWS_NS.len()],
    idle: [(u64, u64); IDLE_NS.len()],
    /// Reads, writes, trims, bytes read, bytes written of each interval of 2^shift ns.
    bins: Vec<[u64; 5]>,
    shift: u32,
}

#[derive(Clone, Copy, Default)]
struct Window {
    /// Where the current one ends, since the start of the trace.
    end_ns: u64,
    requests: u64,
    bytes: u64,
    peak_requests: u64,
    peak_bytes: u64,
    /// Of the windows that are over.
    sum: u64,
    squares: u128,
}

impl Default for Arrivals {
    fn default() -> Self {
        Arrivals {
            requests: 0,
            bytes: 0,
            start_ns: 0,
            last_ns: 0,
            ties: 0,
            backward: 0,
            gaps: Hdr::new_with_bounds(1, LONGEST_GAP_NS, 3).ok(),
            gap_max_ns: 0,
            gap_squares: 0,
            windows: [Window::default(); WINDOWS_NS.len()],
            idle: [(0, 0); IDLE_NS.len()],
            bins: vec![[0; 5]; BINS],
            shift: 10,
        }
    }
}

impl Arrivals {
    pub fn add(&mut self, batch: &Batch) {
        for i in 0..batch.len() {
            let (op, length) = (batch.op[i], u64::from(batch.length[i]));
            let moved = if matches!(op, OpKind::Read | OpKind::Write) {
                length
            } else {
                0
            };
            let now = self.arrive(batch.time_ns[i]);
            self.requests += 1;
            self.bytes += moved;
            for (window, length_ns) in self.windows.iter_mut().zip(WINDOWS_NS) {
                if now >= window.end_ns {
                    window.close();
                    window.end_ns = (now / length_ns + 1).saturating_mul(length_ns);
                }
                window.requests += 1;
                window.bytes += moved;
            }
            while now >> self.shift >= BINS as u64 {
                self.widen();
            }
            let bin = &mut self.bins[(now >> self.shift) as usize];
            match op {
                OpKind::Read => {
                    bin[0] += 1;
                    bin[3] += length;
                }
                OpKind::Write => {
                    bin[1] += 1;
                    bin[4] += length;
                }
                OpKind::Trim => bin[2] += 1,
                OpKind::Flush => {}
            }
        }
    }

    /// Time since the first request.
    #[inline]
    fn arrive(&mut self, stamp: u64) -> u64 {
        if self.requests == 0 {
            (self.start_ns, self.last_ns) = (stamp, stamp);
            return 0;
        }
        if stamp <= self.last_ns {
            let equal = stamp == self.last_ns;
            self.ties += u64::from(equal);
            self.backward += u64::from(!equal);
            self.gap(0);
        } else {
            let gap = stamp - self.last_ns;
            self.last_ns = stamp;
            self.gap(gap);
        }
        self.last_ns - self.start_ns
    }

    #[inline]
    fn gap(&mut self, gap: u64) {
        if let Some(gaps) = &mut self.gaps {
            gaps.saturating_record(gap);
        }
        if gap > IDLE_NS[0] {
            for ((count, time), threshold) in self.idle.iter_mut().zip(IDLE_NS) {
                if gap > threshold {
                    *count += 1;
                    *time += gap;
                }
            }
        }
        self.gap_max_ns = self.gap_max_ns.max(gap);
        self.gap_squares = self.gap_squares.saturating_add(u128::from(gap) * u128::from(gap));
    }

    /// Intervals twice as long.
    fn widen(&mut self) {
        self.shift += 1;
        for to in 0..BINS / 2 {
            let (a, b) = (self.bins[2 * to], self.bins[2 * to + 1]);
            self.bins[to] = std::array::from_fn(|i| a[i] + b[i]);
        }
        self.bins[BINS / 2..].fill([0; 5]);
    }

    /// Whether stamps differ at all.
    pub fn timed(&self) -> bool {
        self.last_ns > self.start_ns
    }

    pub fn finish(&self) -> super::Arrivals {
        if !self.timed() {
            return super::Arrivals {
                backward: self.backward,
                ..untimed()
            };
        }
        let duration_ns = self.last_ns - self.start_ns;
        let seconds = duration_ns as f64 / 1e9;
        let gaps = (self.requests - 1) as f64;
        let mean_gap = duration_ns as f64 / gaps;
        let variance = (self.gap_squares as f64 / gaps - mean_gap * mean_gap).max(0.0);
        let mean_rate = self.requests as f64 / seconds;
        let windows = self.windows.iter().zip(WINDOWS_NS);
        let idle = self.idle.iter().zip(IDLE_NS);
        super::Arrivals {
            timed: true,
            duration_s: Some(seconds),
            mean_rate_per_s: Some(mean_rate),
            mean_bytes_per_s: Some(self.bytes as f64 / seconds),
            gap_mean_s: Some(mean_gap / 1e9),
            gap_cv: Some(libm::sqrt(variance) / mean_gap),
            gap_percentiles_s: percentiles(self.gaps.as_ref(), 1e-9),
            gaps: self.gap_shares(),
            gap_max_s: Some(self.gap_max_ns as f64 / 1e9),
            tie_share: share(self.ties, self.requests),
            backward: self.backward,
            windows: windows
                .filter(|(_, length)| *length <= duration_ns)
                .map(|(window, length)| window.finish(length, duration_ns, mean_rate))
                .collect(),
            idle: idle
                .map(|(&(gaps, time), threshold)| IdleFigures {
                    longer_than_s: threshold as f64 / 1e9,
                    gaps,
                    time_share: time as f64 / duration_ns as f64,
                })
                .collect(),
            interval_s: Some((1u64 << self.shift) as f64 / 1e9),
            reads: self.series(0, "reads"),
            writes: self.series(1, "writes"),
            trims: self.series(2, "trims"),
            bytes_read: self.series(3, "bytes_read"),
            bytes_written: self.series(4, "bytes_written"),
        }
    }

    /// Gaps by octave.
    fn gap_shares(&self) -> Curve {
        let mut octaves = [0u64; 65];
        for gap in self.gaps.iter().flat_map(|gaps| gaps.iter_recorded()) {
            octaves[octave_of(gap.value_iterated_to())] += gap.count_at_value();
        }
        let gaps = (self.requests - 1) as f64;
        let mut curve = Curve::new("gap_s", "gap_share");
        for (octave, &count) in octaves.iter().enumerate().filter(|(_, count)| **count > 0) {
            let from_ns = if octave == 0 {
                0.0
            } else {
                libm::exp2(octave as f64 - 1.0)
            };
            curve.push(from_ns / 1e9, count as f64 / gaps);
        }
        curve
    }

    fn series(&self, column: usize, name: &str) -> Curve {
        let mut curve = Curve::new("time_s", name);
        let last = (self.last_ns - self.start_ns) >> self.shift;
        for (i, bin) in self.bins.iter().enumerate().take(last as usize + 1) {
            curve.push(((i as u64) << self.shift) as f64 / 1e9, bin[column] as f64);
        }
        curve
    }
}

fn untimed() -> super::Arrivals {
    let series = |name| Curve::new("time_s", name);
    super::Arrivals {
        reads: series("reads"),
        writes: series("writes"),
        trims: series("trims"),
        bytes_read: series("bytes_read"),
        bytes_written: series("bytes_written"),
        ..super::Arrivals::default()
    }
}

impl Window {
    fn close(&mut self) {
        self.peak_requests = self.peak_requests.max(self.requests);
        self.peak_bytes = self.peak_bytes.max(self.bytes);
        self.sum += self.requests;
        self.squares += u128::from(self.requests) * u128::from(self.requests);
        (self.requests, self.bytes) = (0, 0);
    }

    /// The current window is the last, and cut off: it counts for the peak alone.
    fn finish(&self, length_ns: u64, duration_ns: u64, mean_rate: f64) -> WindowFigures {
        let whole = duration_ns / length_ns;
        let seconds = length_ns as f64 / 1e9;
        let mean = self.sum as f64 / whole as f64;
        let variance = (self.squares as f64 / whole as f64 - mean * mean).max(0.0);
        let peak = self.peak_requests.max(self.requests) as f64 / seconds;
        WindowFigures {
            window_s: seconds,
            peak_rate_per_s: peak,
            peak_bytes_per_s: self.peak_bytes.max(self.bytes) as f64 / seconds,
            peak_to_mean: peak / mean_rate,
            index_of_dispersion: (whole >= 10 && self.sum > 0).then(|| variance / mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(times_ns: impl IntoIterator<Item = u64>) -> super::super::Arrivals {
        let (mut arrivals, mut batch) = (Arrivals::default(), Batch::default());
        for time in times_ns {
            batch.push(time, OpKind::Write, 0, 1000, 0, 0);
        }
        arrivals.add(&batch);
        arrivals.finish()
    }

    #[test]
    fn a_burst_and_a_gap() {
        // 10 requests in the first millisecond, 0.1 ms apart, then one at 20.9 ms (a gap of 20 ms).
        let figures = arrivals((0..10).map(|i| 500 + i * 100_000).chain([500 + 20_900_000]));
        assert!(figures.timed);
        assert!((figures.duration_s.unwrap() - 0.0209).abs() < 1e-12);
        assert!((figures.mean_rate_per_s.unwrap() - 11.0 / 0.0209).abs() < 1e-6);
        // Windows of 1 ms: 10, then 19 empty ones (1 to 19), then the cut-off one with 1.
        let first = figures.windows[0];
        assert_eq!(
            (first.window_s, first.peak_rate_per_s, first.peak_bytes_per_s),
            (0.001, 10_000.0, 1e7)
        );
        // 20 whole windows: mean 0.5, mean square 5, variance 4.75.
        assert!((first.index_of_dispersion.unwrap() - 9.5).abs() < 1e-9);
        assert_eq!(figures.windows.len(), 2, "10 ms fit, 100 ms do not");
        assert_eq!(figures.windows[1].index_of_dispersion, None);
        let idle = &figures.idle;
        assert_eq!((idle[0].gaps, idle[1].gaps, idle[2].gaps), (1, 1, 0));
        assert!((idle[1].time_share - 20.0 / 20.9).abs() < 1e-12);
        // Gaps: nine of 0.1 ms and one of 20 ms; mean 2.09, mean square 40.009, variance 35.6409.
        assert!((figures.gap_cv.unwrap() - 35.6409f64.sqrt() / 2.09).abs() < 1e-9);
        assert!((figures.gap_percentiles_s.p50.unwrap() / 1e-4 - 1.0).abs() < 0.002);
        // 0.1 ms lies in the octave from 65,536 ns, 20 ms in that from 16,777,216 ns.
        assert_eq!(figures.gaps.x, [65_536e-9, 16_777_216e-9]);
        assert_eq!(figures.gaps.y, [0.9, 0.1]);
    }

    #[test]
    fn gaps_by_octave_have_ties_apart_and_sum_to_one() {
        let figures = arrivals([5, 5, 6, 8, 11, 1 << 50]);
        assert_eq!(figures.gaps.x[..3], [0.0, 1e-9, 2e-9]);
        assert_eq!(figures.gaps.y, [0.2, 0.2, 0.4, 0.2]);
    }

    #[test]
    fn series_holds_everything_however_long_the_trace() {
        let figures = arrivals((0..5000).map(|i| i * i * 1_000_003));
        assert_eq!(figures.writes.y.iter().sum::<f64>(), 5000.0);
        assert_eq!(figures.bytes_written.y.iter().sum::<f64>(), 5e6);
        assert!(figures.writes.x.len() > 512 && figures.writes.x.len() <= BINS);
        assert!((figures.writes.x[1] - figures.interval_s.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn equal_stamps_are_no_time() {
        let figures = arrivals([7; 100]);
        assert!(!figures.timed && figures.mean_rate_per_s.is_none() && figures.windows.is_empty());
        assert!(!arrivals([]).timed && !arrivals([9]).timed);
        let figures = arrivals([0, 0, 5, 3, u64::MAX]);
        assert_eq!((figures.tie_share, figures.backward), (Some(0.2), 1));
    }

    #[test]
    fn regular_arrivals_have_no_variation() {
        let figures = arrivals((0..100_000).map(|i| i * 10_000));
        assert!(figures.gap_cv.unwrap() < 1e-6);
        assert!(figures.windows[0].index_of_dispersion.unwrap() < 1e-6);
        assert!((figures.windows[0].peak_to_mean - 1.0).abs() < 1e-4);
    }
}
