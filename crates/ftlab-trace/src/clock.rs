//! The clock of one file: time stamps as they stand become times, each by what stands around it.
//!
//! # Rule
//! * Stamps that lie up to [`BACK`] behind the latest one so far are out of order; whether they are put in their place is
//!   settled by [`crate::arrivals`].
//! * A stamp more than [`BACK`] ahead, after which most of the next [`NEAR`] stamps go back to where the clock was, is a
//!   stray. So is one of less, the file's first one included, where the next stamps are all in order and all before it, and
//!   the order of the file counts.
//! * A stamp more than [`AHEAD`] after the latest one, or more than [`BACK`] before it, leaves the clock's course. Where the
//!   next [`CONFIRM`] stamps follow it the clock was set, and time goes on from the request before; at the end of the file
//!   they must outnumber the old course. Otherwise it is a stray.
//!
//! The request of a stray stamp arrives together with the one before. So a bogus stamp moves nothing else, a clock that is
//! set at boot gives no pause of forty years, and pauses of up to a year stay as they are.

/// A step back of more than this is not disorder but another course of the clock: one minute.
pub const BACK: u64 = 60 * SECOND;
/// A step ahead of more than this is not a pause: 366 days.
pub const AHEAD: u64 = 366 * 86_400 * SECOND;
/// So many stamps in a row make a course.
pub const CONFIRM: usize = 64;
/// So many stamps tell whether a step ahead was a pause.
const NEAR: usize = 8;
const SECOND: u64 = 1_000_000_000;

/// The clock of one file.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Requests will be sorted by their times, so that a stamp within [`BACK`] is never a stray.
    pub sorting: bool,
    course: Option<Course>,
    /// The latest time given out.
    now: u64,
    /// Stamps before the latest one so far.
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
    stamps: u64,
}

impl Course {
    fn new(stamp: u64, at: u64) -> Self {
        Course {
            from: stamp,
            at,
            last: stamp,
            stamps: 0,
        }
    }

    fn continues_with(&self, stamp: u64) -> bool {
        stamp.saturating_add(BACK) >= self.last && stamp <= self.last.saturating_add(AHEAD)
    }

    fn time_of(&self, stamp: u64) -> u64 {
        match stamp.checked_sub(self.from) {
            Some(later) => self.at.saturating_add(later),
            None => self.at.saturating_sub(self.from - stamp),
        }
    }
}

/// The stamps behind one: those of its batch, then those of the next.
#[derive(Clone, Copy)]
struct Coming<'a> {
    here: &'a [u64],
    next: &'a [u64],
}

impl<'a> Coming<'a> {
    fn stamps(self) -> impl Iterator<Item = u64> + 'a {
        self.here.iter().chain(self.next).copied()
    }
}

impl Clock {
    /// Turns stamps into times, in place; `next` are the stamps of the batch behind, none at the end of the file. The first
    /// stamp of the file keeps its value.
    pub fn run(&mut self, stamps: &mut [u64], next: &[u64]) {
        for i in 0..stamps.len() {
            let stamp = stamps[i];
            let follower = stamps.get(i + 1).or(next.first()).copied().unwrap_or(u64::MAX);
            // The common case: a little later than the one before, and not later than the one behind.
            if let Some(course) = &mut self.course
                && stamp.wrapping_sub(course.last) <= BACK
                && follower >= stamp
            {
                course.last = stamp;
                course.stamps += 1;
                stamps[i] = course.time_of(stamp);
                self.now = self.now.max(stamps[i]);
            } else {
                let here = &stamps[i + 1..];
                stamps[i] = self.step(stamp, Coming { here, next });
            }
        }
    }

    #[cold]
    fn step(&mut self, stamp: u64, coming: Coming<'_>) -> u64 {
        let Some(course) = self.course else {
            return self.start(stamp, coming);
        };
        if !course.continues_with(stamp) {
            return match is_followed(&course, stamp, coming) {
                true => {
                    self.jumps += 1;
                    self.go_on(Course::new(stamp, self.now), stamp)
                }
                false => self.stray(),
            };
        }
        if stamp > course.last && self.is_outlier(course.last, stamp, coming) {
            return self.stray();
        }
        self.out_of_order += u64::from(stamp < course.last);
        self.go_on(course, stamp)
    }

    fn start(&mut self, stamp: u64, coming: Coming<'_>) -> u64 {
        let second = coming.stamps().next().unwrap_or(stamp);
        let from = match self.is_outlier(second, stamp, coming) {
            true => second,
            false => stamp,
        };
        self.now = from;
        if from == stamp {
            return self.go_on(Course::new(stamp, stamp), stamp);
        }
        self.course = Some(Course::new(from, from));
        self.stray()
    }

    fn go_on(&mut self, mut course: Course, stamp: u64) -> u64 {
        course.last = course.last.max(stamp);
        course.stamps += 1;
        let time = course.time_of(stamp);
        self.now = self.now.max(time);
        self.course = Some(course);
        time
    }

    fn stray(&mut self) -> u64 {
        self.strays += 1;
        self.now
    }

    /// Whether a stamp behind `last` lies alone: what follows goes on from `last`, before it.
    fn is_outlier(&self, last: u64, stamp: u64, coming: Coming<'_>) -> bool {
        let far = |follower: u64| follower.saturating_add(BACK) < stamp && follower.saturating_add(BACK) >= last;
        if stamp.saturating_sub(last) > BACK {
            let near = coming.stamps().take(NEAR);
            let (all, back) = near.fold((0, 0), |(all, back), f| (all + 1, back + usize::from(far(f))));
            return back * 2 > all;
        }
        if self.sorting {
            return false;
        }
        let followers: Vec<u64> = coming.stamps().take(CONFIRM).collect();
        followers.len() > 1 && followers.is_sorted() && followers[0] >= last && followers.last() < Some(&stamp)
    }
}

/// Whether a stamp off the course `old` begins another one, by those that follow.
fn is_followed(old: &Course, stamp: u64, coming: Coming<'_>) -> bool {
    let mut new = Course::new(stamp, 0);
    let (mut all, mut on_it) = (1, 1);
    for follower in coming.stamps().take(CONFIRM - 1) {
        all += 1;
        if old.continues_with(follower) && follower.abs_diff(old.last) < follower.abs_diff(new.last) {
            return false;
        }
        if new.continues_with(follower) {
            on_it += 1;
            new.last = new.last.max(follower);
        }
    }
    match all == CONFIRM {
        true => on_it * 2 > all,
        false => on_it as u64 > old.stamps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_sorting(stamps: &[u64], sorting: bool) -> (Vec<u64>, Clock) {
        let mut clock = Clock {
            sorting,
            ..Clock::default()
        };
        let mut times = stamps.to_vec();
        // Cut anywhere: batches must not matter.
        let (one, two) = times.split_at_mut(stamps.len() / 2);
        clock.run(one, two);
        clock.run(two, &[]);
        (times, clock)
    }

    fn run(stamps: &[u64]) -> (Vec<u64>, Clock) {
        run_sorting(stamps, false)
    }

    #[test]
    fn disorder_is_counted_and_left_to_others() {
        let (times, clock) = run(&[10, 30, 20, 30, 25, 40]);
        assert_eq!(times, [10, 30, 20, 30, 25, 40]);
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
    fn one_outlier_in_the_middle_is_no_pause_of_days() {
        for far in [1_000_000, 300, 61] {
            let (times, clock) = run(&[1, 2, far, 3, 4, 5].map(|s| s * SECOND));
            assert_eq!(
                (times, clock.strays),
                ([1, 2, 2, 3, 4, 5].map(|s| s * SECOND).to_vec(), 1)
            );
        }
        // A pause of days with one stamp from before it stays a pause.
        let (times, _) = run(&[1, 2, 1_000_000, 3, 1_000_001, 1_000_002, 1_000_003].map(|s| s * SECOND));
        assert_eq!(times[6] / SECOND, 1_000_003);
        // Seconds too late among requests in order: what follows must not wait for it.
        let (times, clock) = run(&[1, 2, 30, 3, 4, 5]);
        assert_eq!((times, clock.strays), (vec![1, 2, 2, 3, 4, 5], 1));
        // What is sorted finds its place.
        assert_eq!(run_sorting(&[1, 2, 30, 3, 4, 5], true).0, [1, 2, 30, 3, 4, 5]);
    }

    #[test]
    fn a_first_stamp_that_alone_is_late_holds_nothing_up() {
        for late in [10 * SECOND, 4_000 * SECOND, u64::MAX / 2] {
            let (times, clock) = run(&[late, 100, 200, 300]);
            assert_eq!((times, clock.strays), (vec![100, 100, 200, 300], 1), "{late}");
        }
    }

    #[test]
    fn a_clock_that_is_set_goes_on_without_a_pause() {
        let set = 1_400_000_000 * SECOND;
        let stamps: Vec<u64> = (0..10).chain((0..100).map(|i| set + i * 10)).collect();
        let (times, clock) = run(&stamps);
        assert_eq!((times[9], times[10], times[11], times[109]), (9, 9, 19, 9 + 990));
        assert_eq!((clock.jumps, clock.strays), (1, 0));
        // A first stamp of 0 before few others.
        let (times, clock) = run(&[0, set, set + 10, set + 20]);
        assert_eq!((times, clock.jumps), (vec![0, 0, 10, 20], 1));
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
        run(&[u64::MAX, 0, u64::MAX, u64::MAX - 1, 1]);
        run(&(0..200)
            .map(|i| if i < 100 { u64::MAX - i } else { i })
            .collect::<Vec<_>>());
    }
}
