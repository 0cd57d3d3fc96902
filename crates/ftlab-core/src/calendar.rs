//! The event calendar: a total order of (time, order of issue).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Pending events, each a time in nanoseconds and a 32-bit payload. Equal times come out in the order they went in.
#[derive(Debug, Default)]
pub struct Calendar {
    /// time << 64 | sequence << 32 | payload, so one comparison decides.
    heap: BinaryHeap<Reverse<u128>>,
    sequence: u32,
}

impl Calendar {
    /// Adds an event.
    #[inline]
    pub fn push(&mut self, time_ns: u64, payload: u32) {
        // The sequence number orders events of equal time; it may wrap, because fewer than 2^31 are ever pending
        // and `rebase` renumbers them when that happens.
        if self.sequence == u32::MAX {
            self.rebase();
        }
        let key = u128::from(time_ns) << 64 | u128::from(self.sequence) << 32 | u128::from(payload);
        self.sequence += 1;
        self.heap.push(Reverse(key));
    }

    /// Time of the next event.
    #[inline]
    pub fn next_time(&self) -> Option<u64> {
        self.next().map(|(time_ns, _)| time_ns)
    }

    /// The next event, which stays.
    #[inline]
    pub fn next(&self) -> Option<(u64, u32)> {
        self.heap.peek().map(|Reverse(key)| ((key >> 64) as u64, *key as u32))
    }

    /// Removes and returns the next event if it is due at `now` or before.
    #[inline]
    pub fn pop_due(&mut self, now: u64) -> Option<(u64, u32)> {
        let next = self.next().filter(|&(time_ns, _)| time_ns <= now)?;
        self.heap.pop();
        Some(next)
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    pub fn clear(&mut self) {
        self.heap.clear();
    }

    #[cold]
    fn rebase(&mut self) {
        let mut pending: Vec<u128> = self.heap.drain().map(|Reverse(key)| key).collect();
        pending.sort_unstable();
        for (order, key) in pending.into_iter().enumerate() {
            let rebased = key & !(0xffff_ffff_u128 << 32) | (order as u128) << 32;
            self.heap.push(Reverse(rebased));
        }
        self.sequence = self.heap.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_come_out_in_order_of_issue_across_a_rebase() {
        let mut c = Calendar {
            sequence: u32::MAX - 1,
            ..Calendar::default()
        };
        c.push(5, 1);
        c.push(5, 2);
        c.push(5, 3);
        c.push(4, 4);
        let order: Vec<u32> = std::iter::from_fn(|| c.pop_due(10).map(|(_, p)| p)).collect();
        assert_eq!(order, [4, 1, 2, 3]);
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let mut c = Calendar::default();
        c.push(7, 1);
        assert_eq!(c.pop_due(6), None);
        assert_eq!(c.next_time(), Some(7));
        assert_eq!(c.pop_due(7), Some((7, 1)));
    }
}
