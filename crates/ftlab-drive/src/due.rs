//! What is due at known times, in order of time.
//!
//! A ring that knows when its next entry is due, or that there is none, by one number: a run asks several times for each request,
//! and which answer comes is hard to foresee.

/// Nothing is due.
pub const NEVER: u64 = u64::MAX;

pub struct Due<T> {
    /// A power of two, larger than the number of entries; places without one hold [`NEVER`].
    ring: Vec<(u64, T)>,
    /// Places of the next entry and behind the last.
    head: usize,
    tail: usize,
    next_ns: u64,
    /// No entry is due later.
    last_ns: u64,
}

impl<T: Copy + Default> Default for Due<T> {
    fn default() -> Self {
        Due {
            ring: vec![(NEVER, T::default()); 64],
            head: 0,
            tail: 0,
            next_ns: NEVER,
            last_ns: 0,
        }
    }
}

impl<T: Copy + Default> Due<T> {
    /// When the next entry is due, [`NEVER`] if there is none.
    #[inline(always)]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes the next entry.
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)]
    pub fn pop(&mut self) -> T {
        assert!(self.next_ns != NEVER, "nothing is due");
        let place = &mut self.ring[self.head];
        place.0 = NEVER;
        let what = place.1;
        self.head = self.after(self.head);
        self.next_ns = self.ring[self.head].0;
        what
    }

    /// Adds an entry, after those that are due at the same time or earlier.
    #[inline(always)]
    pub fn push(&mut self, at_ns: u64, what: T) {
        let at = self.tail;
        self.ring[at] = (at_ns, what);
        self.tail = self.after(at);
        self.next_ns = self.next_ns.min(at_ns);
        if at_ns < self.last_ns {
            self.sink(at);
        } else {
            self.last_ns = at_ns;
        }
        if self.tail == self.head {
            self.grow();
        }
    }

    #[inline(always)]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.ring.len() - 1)
    }

    /// Brings the last entry, which lies at `at`, before those that are due later.
    #[cold]
    fn sink(&mut self, mut at: usize) {
        while at != self.head {
            let before = at.wrapping_sub(1) & (self.ring.len() - 1);
            if self.ring[before].0 <= self.ring[at].0 {
                break;
            }
            self.ring.swap(before, at);
            at = before;
        }
    }

    /// Doubles the ring, which is full.
    #[cold]
    fn grow(&mut self) {
        self.ring.rotate_left(self.head);
        self.head = 0;
        self.tail = self.ring.len();
        self.ring.resize(2 * self.ring.len(), (NEVER, T::default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    #[test]
    fn entries_come_out_by_time_and_those_of_one_time_as_they_came() {
        let mut due = Due::default();
        let mut reference: Vec<(u64, u32)> = Vec::new();
        let mut draw = Stream::new(7, "due");
        let mut most = 0;
        for number in 0..20_000u32 {
            assert_eq!(due.next_ns(), reference.first().map_or(NEVER, |first| first.0));
            // Long times of filling and of emptying: the ring grows while it is anywhere.
            if draw.below(100) < 40 + u64::from(number / 5000 % 2) * 20 && !reference.is_empty() {
                assert_eq!(due.pop(), reference.remove(0).1);
            } else {
                let at_ns = u64::from(number / 50) + draw.below(3) * draw.below(3);
                let after = reference.partition_point(|other| other.0 <= at_ns);
                reference.insert(after, (at_ns, number));
                due.push(at_ns, number);
            }
            most = most.max(reference.len());
        }
        assert!(most > 300, "the ring grows");
    }
}
