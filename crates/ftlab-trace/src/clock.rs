//! The clock of one file: time stamps as they stand become times that never decrease.
//!
//! # Rule
//! * A stamp up to [`BACK`] before its predecessor's is out of order: the request arrives together with the one before.
//! * A stamp more than [`AHEAD`] after its predecessor's, or more than [`BACK`] before it, leaves the clock's course. While
//!   fewer than [`CONFIRM`] stamps in a row follow the new course, their requests arrive together with the last one of the
//!   old course. If the stamps return to the old course they were strays; otherwise the clock was set, and time goes on
//!   from there as the new course has it.
//!
//! So a single bogus stamp moves nothing else, a clock that is set at boot gives no pause of forty years, and pauses of up
//! to a year stay as they are.

/// A step back of more than this is not disorder but another course of the clock: one minute.
pub const BACK: u64 = 60 * SECOND;
/// A step ahead of more than this is not a pause: 366 days.
pub const AHEAD: u64 = 366 * 86_400 * SECOND;
/// So many stamps in a row make a course.
pub const CONFIRM: u32 = 64;
const SECOND: u64 = 1_000_000_000;

/// The clock of one file.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    started: bool,
    course: Course,
    /// A course that is not yet believed.
    young: Option<Young>,
    /// The last time given out.
    now: u64,
    pub out_of_order: u64,
    pub jumps: u64,
    pub strays: u64,
}

/// Stamps that belong together: `time = stamp − from + at`.
#[derive(Clone, Copy, Debug, Default)]
struct Course {
    from: u64,
    at: u64,
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Young {
    course: Course,
    stamps: u32,
}

impl Course {
    fn continues_with(&self, stamp: u64) -> bool {
        stamp.saturating_add(BACK) >= self.last && stamp <= self.last.saturating_add(AHEAD)
    }
}

impl Clock {
    /// Turns stamps into times, in place. The first stamp of the file keeps its value.
    pub fn run(&mut self, stamps: &mut [u64]) {
        for stamp in stamps {
            let ahead = stamp.wrapping_sub(self.course.last);
            // The common case: a little later than the one before, on the course.
            if ahead <= AHEAD && self.young.is_none() && self.started && *stamp >= self.course.from {
                self.course.last = *stamp;
                let time = self.course.at.saturating_add(*stamp - self.course.from);
                self.now = self.now.max(time);
                *stamp = self.now;
            } else {
                *stamp = self.step(*stamp);
            }
        }
    }

    #[cold]
    fn step(&mut self, stamp: u64) -> u64 {
        if !self.started {
            self.started = true;
            self.course = Course {
                from: stamp,
                at: stamp,
                last: stamp,
            };
            self.now = stamp;
        } else if self.course.continues_with(stamp) {
            self.strays += self.young.take().map_or(0, |young| u64::from(young.stamps));
            self.out_of_order += u64::from(stamp < self.course.last);
            self.course.last = self.course.last.max(stamp);
            let time = self.course.at.saturating_add(stamp.saturating_sub(self.course.from));
            self.now = self.now.max(time);
        } else {
            self.leave(stamp);
        }
        self.now
    }

    /// A stamp off the course.
    fn leave(&mut self, stamp: u64) {
        match &mut self.young {
            Some(young) if young.course.continues_with(stamp) => {
                young.stamps += 1;
                young.course.last = young.course.last.max(stamp);
            }
            _ => {
                self.strays += self.young.map_or(0, |young| u64::from(young.stamps));
                self.young = Some(Young {
                    course: Course {
                        from: stamp,
                        at: self.now,
                        last: stamp,
                    },
                    stamps: 1,
                });
            }
        }
        if let Some(young) = self.young.filter(|young| young.stamps >= CONFIRM) {
            self.jumps += 1;
            self.course = young.course;
            self.young = None;
            let time = self.course.at.saturating_add(self.course.last - self.course.from);
            self.now = self.now.max(time);
        }
    }

    /// At the end of the file: a course that was never believed was made of strays.
    pub fn end(&mut self) {
        self.strays += self.young.take().map_or(0, |young| u64::from(young.stamps));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stamps: &[u64]) -> (Vec<u64>, Clock) {
        let mut clock = Clock::default();
        let mut times = stamps.to_vec();
        // Cut anywhere: batches must not matter.
        let (one, two) = times.split_at_mut(stamps.len() / 2);
        clock.run(one);
        clock.run(two);
        clock.end();
        (times, clock)
    }

    #[test]
    fn disorder_is_levelled_and_counted() {
        let (times, clock) = run(&[10, 30, 20, 30, 25, 40]);
        assert_eq!(times, [10, 30, 30, 30, 30, 40]);
        assert_eq!((clock.out_of_order, clock.jumps, clock.strays), (2, 0, 0));
    }

    #[test]
    fn a_stray_stamp_moves_nothing_else() {
        let far = 1_270_000_000 * SECOND;
        let (times, clock) = run(&[5, 10, far, 20, far + 9, far - 100 * SECOND, 30, 40]);
        assert_eq!(times, [5, 10, 10, 20, 20, 20, 30, 40]);
        assert_eq!((clock.out_of_order, clock.jumps, clock.strays), (0, 0, 3));
        let (times, clock) = run(&[100 * SECOND, 101 * SECOND, 2 * SECOND, 102 * SECOND]);
        assert_eq!(times, [100, 101, 101, 102].map(|s| s * SECOND));
        assert_eq!(clock.strays, 1);
        assert_eq!(run(&[5, 6, far]).1.strays, 1);
    }

    #[test]
    fn a_clock_that_is_set_goes_on_without_a_pause() {
        let set = 1_400_000_000 * SECOND;
        let stamps: Vec<u64> = (0..10).chain((0..100).map(|i| set + i * 10)).collect();
        let (times, clock) = run(&stamps);
        assert_eq!(times[9], 9);
        // Until the course is believed time stands still; then it is as if it had never stood.
        assert_eq!((times[10], times[72], times[73], times[109]), (9, 9, 9 + 630, 9 + 990));
        assert_eq!((clock.jumps, clock.strays), (1, 0));
        // Set back by a day.
        let back: Vec<u64> = (0..10)
            .map(|i| 200_000 * SECOND + i)
            .chain((0..100).map(|i| 100_000 * SECOND + i))
            .collect();
        let (times, clock) = run(&back);
        assert_eq!((times[109], clock.jumps), (200_000 * SECOND + 9 + 99, 1));
    }

    #[test]
    fn a_pause_of_months_stays() {
        let (times, clock) = run(&[0, 5_000_000 * SECOND]);
        assert_eq!(times, [0, 5_000_000 * SECOND]);
        assert_eq!((clock.jumps, clock.strays), (0, 0));
    }

    #[test]
    fn extreme_stamps_do_no_harm() {
        let (times, _) = run(&[u64::MAX, 0, u64::MAX, u64::MAX - 1, 1]);
        assert!(times.is_sorted());
        let (times, _) = run(&(0..200)
            .map(|i| if i < 100 { u64::MAX - i } else { i })
            .collect::<Vec<_>>());
        assert!(times.is_sorted());
    }
}
