//! The tail of a cache: how many of the entries that were used least recently are used again, and how many leave.
//!
//! What a smaller cache would not hold is seen without making it smaller. Entries are counted by the time of their last use, in a few
//! generations, so the place of an entry in the order of use is known to within one of these.

use std::collections::VecDeque;

/// Generations of the entries of a full cache, and the most that there are.
const OF_ALL: u32 = 32;
const MOST: usize = 48;

#[derive(Clone, Debug, Default)]
pub struct Tail {
    /// The first look-up of each generation, and its entries last used from then on; the oldest first.
    generations: VecDeque<(u64, u32)>,
    entries: u32,
    /// Entries of the tail.
    size: u32,
    /// Since the look began, the later ones with more weight: entries of the tail that were used again, and that left.
    used: f64,
    left: f64,
}

impl Tail {
    /// So many entries are the tail from now on.
    pub fn keep(&mut self, size: u32) {
        self.size = size;
    }

    /// Looks anew.
    pub fn look(&mut self) {
        (self.used, self.left) = (0.0, 0.0);
    }

    /// Entries that it holds.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Entries that have left it since the look began, used again or given up; beyond twice what the cache holds, the later ones.
    pub fn seen(&self) -> f64 {
        self.used + self.left
    }

    /// Share of the tail's entries that are used again.
    pub fn used(&self) -> f64 {
        self.used / self.seen().max(1.0)
    }

    fn fade(&mut self) {
        if self.seen() > 2.0 * f64::from(self.entries) {
            self.used /= 2.0;
            self.left /= 2.0;
        }
    }

    /// An entry is used at look-up `now`, last time at `before`, where `free` more would find room.
    pub fn hit(&mut self, before: u64, now: u64, free: u32) {
        let older = self.remove(before);
        self.insert(now);
        if older + free < self.size {
            self.used += 1.0;
            self.fade();
        }
    }

    /// One is given up; and removed then.
    pub fn leave(&mut self) {
        self.left += 1.0;
        self.fade();
    }

    /// An entry comes in whose last use was then.
    pub fn insert(&mut self, stamp: u64) {
        self.entries += 1;
        let at = self.generations.partition_point(|&(first, _)| first <= stamp);
        if at < self.generations.len() && at > 0 {
            self.generations[at - 1].1 += 1;
            return;
        }
        if at == 0 {
            match self.generations.front_mut() {
                Some(oldest) => oldest.1 += 1,
                None => self.generations.push_back((stamp, 1)),
            }
            return;
        }
        let newest = &mut self.generations[at - 1];
        if newest.1 > self.entries / OF_ALL && newest.0 < stamp {
            self.generations.push_back((stamp, 1));
            if self.generations.len() > MOST {
                self.merge();
            }
        } else {
            newest.1 += 1;
        }
    }

    /// Makes one of the two neighbours with the fewest entries.
    fn merge(&mut self) {
        let pair = |at: usize| self.generations[at].1 + self.generations[at + 1].1;
        let least = (0..self.generations.len() - 1).min_by_key(|&at| pair(at)).unwrap_or(0);
        if let Some((_, entries)) = self.generations.remove(least + 1) {
            self.generations[least].1 += entries;
        }
    }

    /// An entry that was last used then is there no more. How many are older, without those of its own generation.
    pub fn remove(&mut self, stamp: u64) -> u32 {
        self.entries = self.entries.saturating_sub(1);
        let at = self.generations.partition_point(|&(first, _)| first <= stamp).max(1) - 1;
        let older = self.generations.range(..at).map(|&(_, entries)| entries).sum();
        if let Some(own) = self.generations.get_mut(at) {
            own.1 = own.1.saturating_sub(1);
        }
        while self.generations.front().is_some_and(|&(_, entries)| entries == 0) {
            self.generations.pop_front();
        }
        older
    }

    pub fn clear(&mut self) {
        self.generations.clear();
        self.entries = 0;
        self.look();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop of `keys`, all of which stay: each use is the least recent entry's.
    fn after_loops(keys: u64, free: u32, size: u32) -> Tail {
        let mut tail = Tail::default();
        tail.keep(size);
        (0..keys).for_each(|now| tail.insert(now));
        (keys..3 * keys).for_each(|now| tail.hit(now - keys, now, free));
        tail
    }

    #[test]
    fn in_a_loop_that_just_fits_all_of_the_tail_is_used_again() {
        let tail = after_loops(1000, 0, 40);
        assert_eq!((tail.seen(), tail.used(), tail.entries), (2000.0, 1.0, 1000));
        assert!(tail.generations.len() <= MOST);
        assert_eq!(
            after_loops(1000, 40, 40).seen(),
            0.0,
            "as much is free as the tail holds"
        );
    }

    #[test]
    fn what_is_used_often_is_not_in_the_tail() {
        let mut tail = Tail::default();
        tail.keep(40);
        (0..1000).for_each(|now| tail.insert(now));
        // The newest hundred, again and again, and what comes in pushes out the oldest.
        let mut last: Vec<u64> = (900..1000).collect();
        for now in 1000..3000 {
            let before = std::mem::replace(&mut last[now as usize % 100], now);
            tail.hit(before, now, 0);
        }
        assert_eq!(tail.seen(), 0.0);
        for now in 3000..3050 {
            tail.leave();
            tail.remove(now - 3000);
            tail.insert(now);
        }
        assert_eq!((tail.seen(), tail.used(), tail.entries), (50.0, 0.0, 1000));
        assert!(tail.generations.len() <= MOST);
        tail.look();
        assert_eq!(tail.seen(), 0.0);
    }

    /// Of the entries older than each, as many as there are, to within a generation.
    #[test]
    fn the_place_in_the_order_of_use_is_known_to_within_a_generation() {
        let mut random = ftlab_core::Stream::new(4, "tail");
        let (mut tail, mut model) = (Tail::default(), Vec::new());
        for now in 0..640 {
            tail.insert(now);
            model.push(now);
        }
        for now in 640..20_000 {
            let most = random.below(640) + 1;
            let at = random.below(most) as usize;
            let before = model.remove(at);
            model.push(now);
            let older = tail.remove(before) as usize;
            tail.insert(now);
            assert!(older <= at && at - older <= 2 * 640 / OF_ALL as usize, "{older} {at}");
        }
        tail.clear();
        assert_eq!((tail.entries, tail.generations.len()), (0, 0));
    }
}
