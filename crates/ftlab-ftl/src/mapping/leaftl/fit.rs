//! Greedy piecewise-linear fitting with an error bound.

use super::segment::{ACCURATE, Segment, Slope};

/// An offset in a group, and what lies there (a place, or a whole number that is no place).
pub type Point = (u8, u32);

/// Values from here on are no places: they are fitted exactly.
pub const FIRST_OTHER: u32 = 1 << 31;
/// The value of offsets that are not mapped.
pub const UNMAPPED: u32 = u32::MAX;

/// Takes off the front of `points`, which ascend by offset, as many as one segment can hold, and returns it with their number.
/// An approximate segment is marked in its slope; its predictions are off by at most `gamma`. `slopes` is memory to work in.
pub fn fit(points: &[Point], gamma: u8, slopes: &mut Vec<f64>) -> (Segment, usize) {
    let (first, value) = points[0];
    if value == UNMAPPED {
        let mut count = 1;
        while count < points.len() && points[count] == (first + count as u8, UNMAPPED) {
            count += 1;
        }
        return (flat(first, first + (count - 1) as u8, UNMAPPED), count);
    }
    let is_place = value < FIRST_OTHER;
    let gamma = if is_place { i64::from(gamma) } else { 0 };
    let mut cone = Cone::new(points[0], gamma as f64);
    slopes.clear();
    for point in &points[1..] {
        if (point.1 < FIRST_OTHER) != is_place || !cone.narrow(*point) {
            break;
        }
        slopes.push(cone.middle());
    }
    // A slope of half precision may not hold all of them.
    while let Some(slope) = slopes.pop() {
        let count = slopes.len() + 2;
        if let Some(segment) = Slope::nearest(slope).and_then(|slope| line(&points[..count], slope, gamma)) {
            return (segment, count);
        }
    }
    (flat(first, first, value), 1)
}

fn flat(first: u8, last: u8, intercept: u32) -> Segment {
    Segment {
        first,
        last,
        slope: Slope::FLAT,
        intercept,
        level: 0,
        list: ACCURATE,
    }
}

/// The line of this slope that is at most `gamma` off every point.
fn line(points: &[Point], slope: Slope, gamma: i64) -> Option<Segment> {
    let above = points
        .iter()
        .map(|&(offset, value)| i64::from(value) - slope.rise(offset));
    let (low, high) = above.fold((i64::MAX, i64::MIN), |(low, high), a| (low.min(a), high.max(a)));
    if high - low > 2 * gamma {
        return None;
    }
    let stride = slope.stride();
    let even = points.windows(2).all(|two| two[1].0 - two[0].0 == stride);
    Some(Segment {
        slope: slope.marked(high > low || !even),
        intercept: ((low + high) >> 1) as u32,
        ..flat(points[0].0, points[points.len() - 1].0, 0)
    })
}

/// The slopes of the lines that are near all points so far: through the middle of the first two points' bounds, as in the
/// greedy fitting of Xie et al.
struct Cone {
    first: (f64, f64),
    /// Around every point.
    bound: f64,
    /// Where all lines meet, once there are two points.
    apex: Option<(f64, f64)>,
    low: f64,
    high: f64,
}

impl Cone {
    fn new(point: Point, bound: f64) -> Self {
        Cone {
            first: (f64::from(point.0), f64::from(point.1)),
            // Far below one place and far above what rounding does.
            bound: bound + 1e-6,
            apex: None,
            low: 0.0,
            high: 0.0,
        }
    }

    /// Takes a further point; false if no line is near it.
    fn narrow(&mut self, point: Point) -> bool {
        let (x, y) = (f64::from(point.0), f64::from(point.1));
        let Some(apex) = self.apex else {
            let across = x - self.first.0;
            self.low = (y - self.first.1 - 2.0 * self.bound) / across;
            self.high = (y - self.first.1 + 2.0 * self.bound) / across;
            self.apex = Some(((self.first.0 + x) / 2.0, (self.first.1 + y) / 2.0));
            return true;
        };
        let (across, up) = (x - apex.0, y - apex.1);
        let (low, high) = ((up - self.bound) / across, (up + self.bound) / across);
        if low > self.high || high < self.low {
            return false;
        }
        (self.low, self.high) = (self.low.max(low), self.high.min(high));
        true
    }

    fn middle(&self) -> f64 {
        (self.low + self.high) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    fn fit_all(points: &[Point], gamma: u8) -> Vec<(Segment, usize)> {
        let (mut rest, mut all) = (points, Vec::new());
        while !rest.is_empty() {
            let (segment, count) = fit(rest, gamma, &mut Vec::new());
            all.push((segment, count));
            rest = &rest[count..];
        }
        all
    }

    #[test]
    fn even_strides_are_one_accurate_segment() {
        for stride in [1u8, 2, 3, 7, 100] {
            for gamma in [0, 1, 4, 16] {
                let points: Vec<Point> = (0..=255 / stride).map(|n| (n * stride, 1000 + u32::from(n))).collect();
                let all = fit_all(&points, gamma);
                assert_eq!(all.len(), 1, "{stride} {gamma}");
                assert!(!all[0].0.slope.is_approximate());
            }
        }
    }

    #[test]
    fn uneven_offsets_on_a_line_are_approximate_and_exact() {
        let all = fit_all(&[(0, 10), (1, 11), (3, 13)], 0);
        assert_eq!(all.len(), 1);
        assert!(all[0].0.slope.is_approximate());
        assert_eq!(all[0].0.predict(3), 13);
    }

    #[test]
    fn a_step_ends_a_segment_unless_the_bound_covers_it() {
        let points: Vec<Point> = (0..100u8)
            .map(|n| (n, 500 + u32::from(n) + u32::from(n >= 50)))
            .collect();
        let exact = fit_all(&points, 0);
        assert_eq!(exact.iter().map(|s| s.1).collect::<Vec<_>>(), [50, 50]);
        assert!(exact.iter().all(|s| !s.0.slope.is_approximate()));
        let near = fit_all(&points, 1);
        assert_eq!(near.len(), 1);
        assert!(near[0].0.slope.is_approximate());
    }

    #[test]
    fn what_is_not_mapped_is_a_run() {
        let all = fit_all(&[(4, UNMAPPED), (5, UNMAPPED), (7, UNMAPPED), (8, 3)], 4);
        assert_eq!(all.iter().map(|s| s.1).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!((all[0].0.predict(4), all[0].0.predict(5)), (UNMAPPED, UNMAPPED));
    }

    #[test]
    fn virtual_pages_are_exact_whatever_the_bound() {
        let points: Vec<Point> = (0..50u8)
            .map(|n| (n, FIRST_OTHER + 3 * u32::from(n) + u32::from(n) % 2))
            .collect();
        let mut at = 0;
        for (segment, count) in fit_all(&points, 16) {
            for &(offset, value) in &points[at..at + count] {
                assert_eq!(segment.predict(offset), value);
            }
            at += count;
        }
    }

    #[test]
    fn the_bound_holds_for_all_points() {
        let mut random = Stream::new(9, "fit");
        for round in 0..3000u32 {
            let gamma = [0, 1, 4, 16][round as usize % 4];
            let spread = [2, 5, 40, 1 << 30][random.below(4) as usize];
            let density = 1 + random.below(4);
            let (mut points, mut value) = (Vec::new(), random.below(1 << 31) as u32);
            for offset in 0..=255u8 {
                if random.below(density) == 0 {
                    value = (value + random.below(spread) as u32) % FIRST_OTHER;
                    points.push((offset, value));
                }
            }
            let mut at = 0;
            for (segment, count) in fit_all(&points, gamma) {
                let held = &points[at..at + count];
                assert_eq!((segment.first, segment.last), (held[0].0, held[count - 1].0));
                for &(offset, value) in held {
                    let off = i64::from(segment.predict(offset)) - i64::from(value);
                    let allowed = if segment.slope.is_approximate() {
                        i64::from(gamma)
                    } else {
                        0
                    };
                    // Wrapped around below place 0, the prediction is near 2^32.
                    let off = if off > 1 << 31 { off - (1 << 32) } else { off };
                    assert!(off.abs() <= allowed, "{off} at {offset} of {segment:?}");
                    assert!(segment.slope.is_approximate() || segment.strides_over(offset));
                }
                at += count;
            }
            assert_eq!(at, points.len());
        }
    }
}
