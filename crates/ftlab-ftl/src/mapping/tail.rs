//! The tail of a cache: how many of the entries that were used least recently are used again, and how many leave.
//!
//! What a smaller cache would not hold is seen without making it smaller. The times of last use are there, for the order of entries
//! wants them; so the tail is no more than a time, and its entries are those that were last used before. As entries go the time is found
//! anew from those that are there.

use std::collections::BTreeMap;

/// Bytes of a drive's memory: a time of 4, and three counts of 2.
pub const BYTES: u64 = 10;
/// Most that a count of 2 bytes must hold.
const MOST: u32 = u16::MAX as u32 / 2;

#[derive(Clone, Debug, Default)]
pub struct Tail {
    /// Whether anything is counted.
    looking: bool,
    /// Entries of the tail.
    size: u32,
    /// Entries that were last used before this look-up are of the tail.
    before: u64,
    /// Entries that have left it since this time was found; none: it is to be found.
    since: Option<u32>,
    /// Entries that are seen before what they say is known.
    enough: u32,
    /// Since the look began, the later ones with more weight: entries of the tail that were used again, and entries that left.
    used: u32,
    left: u32,
    /// Whether the last entry used was of the tail.
    again: bool,
    /// The oldest entries' times, each with how many have it, and the youngest of these: none older is missing. Kept while there is a
    /// look, so that not all entries are gone through each time. No memory of the drive's, which has the order of use.
    oldest: BTreeMap<u64, u32>,
    youngest: Option<u64>,
    held: usize,
    /// To find them.
    times: Vec<u64>,
}

impl Tail {
    /// So many entries are the tail from now on.
    pub fn keep(&mut self, size: u32) {
        self.size = size;
    }

    /// Looks anew.
    pub fn look(&mut self) {
        if !self.looking {
            self.youngest = None;
        }
        (self.looking, self.since, self.used, self.left) = (true, None, 0, 0);
    }

    pub fn stop(&mut self) {
        (self.looking, self.youngest) = (false, None);
    }

    pub fn is_looking(&self) -> bool {
        self.looking
    }

    /// Entries that it holds.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Share of the tail's entries that are used again, once enough have been seen: a quarter of those that the cache holds, or of many
    /// sixteen times the tail.
    pub fn used(&self) -> Option<f64> {
        let seen = self.used + self.left;
        let is_known = self.looking && self.since.is_some() && seen >= self.enough;
        is_known.then(|| f64::from(self.used) / f64::from(seen.max(1)))
    }

    /// Whether its time is to be found: after half as many have left it as it holds.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.looking && self.since.is_none_or(|since| since > (self.size / 2).min(MOST))
    }

    /// Finds its time from those of all `entries`, where `free` more would find room. As many are older as the tail holds and a quarter
    /// more, so that it holds as many in the mean.
    pub fn find(&mut self, entries: usize, times: impl Iterator<Item = u64>, free: u32) {
        let older = (self.size + self.size.div_ceil(4)).saturating_sub(free) as usize;
        self.before = match older < entries {
            true => self.time_of(older, times),
            false => u64::MAX,
        };
        self.enough = (entries as u32 / 4).min(16 * self.size.min(MOST)).clamp(1, MOST);
        self.since = Some(0);
    }

    fn goes(&mut self) {
        if let Some(since) = &mut self.since {
            *since += 1;
        }
        if self.used + self.left > 2 * self.enough {
            self.used /= 2;
            self.left /= 2;
        }
    }

    /// The time of the entry before which `older` are.
    fn time_of(&mut self, older: usize, times: impl Iterator<Item = u64>) -> u64 {
        let mut by_all = None;
        if self.youngest.is_none() || self.held <= older {
            self.times.clear();
            self.times.extend(times);
            let all = self.times.len();
            let most = (16 * older).max(all / 8).min(all - 1);
            let youngest = *self.times.select_nth_unstable(most).1;
            (self.youngest, self.held) = (Some(youngest), 0);
            self.oldest.clear();
            for at in 0..all {
                self.came(self.times[at]);
            }
        } else if cfg!(debug_assertions) {
            let mut all: Vec<u64> = times.collect();
            by_all = Some(*all.select_nth_unstable(older).1);
        }
        let mut passed = 0;
        let found = self.oldest.iter().find(|&(_, &count)| {
            passed += count as usize;
            passed > older
        });
        let found = *found.expect("more than `older` are held").0;
        debug_assert!(by_all.is_none_or(|time| time == found), "{found}, by all {by_all:?}");
        found
    }

    /// An entry is there that was used last at `time`, or no longer.
    #[inline]
    pub fn came(&mut self, time: u64) {
        if self.youngest.is_some_and(|youngest| time <= youngest) {
            *self.oldest.entry(time).or_default() += 1;
            self.held += 1;
        }
    }

    #[inline]
    pub fn went(&mut self, time: u64) {
        if self.youngest.is_some_and(|youngest| time <= youngest)
            && let Some(count) = self.oldest.get_mut(&time)
        {
            *count -= 1;
            self.held -= 1;
            if *count == 0 {
                self.oldest.remove(&time);
            }
        }
    }

    /// An entry is used `now`, last time at `before`.
    #[inline]
    pub fn hit(&mut self, before: u64, now: u64) {
        self.went(before);
        self.came(now);
        self.again = self.looking && self.since.is_some() && before < self.before;
        if self.again {
            self.used += 1;
            self.goes();
        }
    }

    /// Whether the entry used last was of the tail.
    pub fn is_used(&self) -> bool {
        self.again
    }

    /// One is given up.
    pub fn leave(&mut self) {
        if self.looking && self.since.is_some() {
            self.left += 1;
            self.goes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of `times`, of which `used` says by its number which is used next; none: the oldest leaves for another.
    fn after(keys: u64, free: u32, size: u32, steps: u64, used: impl Fn(u64) -> Option<usize>) -> Tail {
        let mut times: Vec<u64> = (0..keys).collect();
        let mut tail = Tail::default();
        tail.keep(size);
        tail.look();
        for now in keys..keys + steps {
            if tail.is_due() {
                tail.find(times.len(), times.iter().copied(), free);
                // As if all were gone through.
                let mut sorted = times.clone();
                sorted.sort_unstable();
                let older = (size + size.div_ceil(4)).saturating_sub(free) as usize;
                assert_eq!(tail.before, sorted.get(older).copied().unwrap_or(u64::MAX));
            }
            match used(now) {
                Some(at) => tail.hit(std::mem::replace(&mut times[at], now), now),
                None => {
                    let oldest = (0..times.len()).min_by_key(|&at| times[at]).unwrap();
                    tail.leave();
                    tail.went(std::mem::replace(&mut times[oldest], now));
                    tail.came(now);
                }
            }
        }
        tail
    }

    #[test]
    fn in_a_loop_that_just_fits_all_of_the_tail_is_used_again() {
        let in_loop = |now| Some(now as usize % 1000);
        assert_eq!(after(1000, 0, 40, 249, in_loop).used(), None, "a quarter of 1000");
        assert_eq!(after(1000, 0, 40, 250, in_loop).used(), Some(1.0));
        assert_eq!(
            after(1000, 50, 40, 9000, in_loop).used(),
            None,
            "as much is free as the tail holds"
        );
        // Of a large cache, sixteen times the tail.
        assert_eq!(after(1000, 0, 4, 64, in_loop).used(), Some(1.0));
    }

    #[test]
    fn what_is_used_often_is_not_in_the_tail() {
        // The newest hundred, again and again, and every fourth time what comes in pushes out the oldest.
        let tail = after(1000, 0, 40, 1200, |now| {
            (now % 4 > 0).then_some(900 + now as usize % 100)
        });
        assert_eq!(tail.used(), Some(0.0));
    }

    /// Entries are used at random and leave in between: of those that leave the tail, the share is that of its size and the cache's.
    #[test]
    fn it_holds_as_many_as_it_should_in_the_mean() {
        let draw = |now: u64| (now.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        let tail = after(640, 0, 80, 6000, |now| (now % 9 > 0).then(|| draw(now) % 640));
        // Of nine steps eight use one of 640, 80 of which are the tail: as many as leave.
        let used = tail.used().unwrap();
        assert!((0.42..0.58).contains(&used), "{used}");
    }

    #[test]
    fn nothing_is_counted_while_nobody_looks() {
        let mut tail = after(100, 0, 10, 100, |now| Some(now as usize % 100));
        assert!(tail.is_looking() && tail.used() == Some(1.0));
        tail.stop();
        tail.hit(0, 9000);
        assert!(!tail.is_due() && tail.used().is_none());
        tail.look();
        assert!(tail.is_due() && tail.used().is_none());
    }
}
