//! The agenda: one pending event per source (die, channel, timer queue), in order of time.
//!
//! A die has at most one event ahead of it, and a suspension *moves* that event; so there are no stale entries and never
//! more entries than sources. They lie sorted in a ring: the next is taken from the front, and a new one is let in from the
//! nearer end: a program is among the latest, a transfer among the next. For the tens to hundreds of dies of a drive this
//! costs a fraction of a heap; with thousands it would be linear in the number of busy dies. Equal times come out in the
//! order they went in.

use super::table::Table;

/// No event.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy)]
struct Entry {
    time: u64,
    source: u32,
}

/// Pending events of a fixed set of sources.
pub(super) struct Agenda {
    /// A power of two larger than the number of sources.
    ring: Table<Entry>,
    mask: usize,
    /// Index of the first and of one past the last, before masking.
    head: usize,
    tail: usize,
    /// Time at the head.
    next: u64,
}

impl Agenda {
    pub fn new(sources: usize) -> Self {
        let size = (sources + 1).next_power_of_two();
        let empty = Entry { time: NEVER, source: 0 };
        Agenda {
            ring: (0..size).map(|_| empty).collect(),
            mask: size - 1,
            head: 0,
            tail: 0,
            next: NEVER,
        }
    }

    /// Time of the earliest event, [`NEVER`] if there is none.
    #[inline(always)]
    pub fn next_time(&self) -> u64 {
        self.next
    }

    /// Takes the earliest event; its source.
    #[inline(always)]
    pub fn pop(&mut self) -> u32 {
        debug_assert!(self.head != self.tail, "no event to take");
        let entry = &mut self.ring[self.head & self.mask];
        entry.time = NEVER;
        let source = entry.source;
        self.head = self.head.wrapping_add(1);
        // An empty ring has `NEVER` at its head: `pop` and `clear` leave it there.
        self.next = self.ring[self.head & self.mask].time;
        source
    }

    /// Adds the event of a source that has none.
    #[inline]
    pub fn push(&mut self, source: usize, time: u64) {
        let entry = Entry {
            time,
            source: source as u32,
        };
        let pending = self.tail.wrapping_sub(self.head);
        debug_assert!(pending < self.mask, "a source has two events");
        self.next = self.next.min(time);
        // Places outside hold `NEVER`, the middle of an empty ring too.
        if time < self.ring[self.head.wrapping_add(pending / 2) & self.mask].time {
            self.head = self.head.wrapping_sub(1);
            let mut at = self.head;
            loop {
                let after = self.ring[at.wrapping_add(1) & self.mask];
                if after.time > time {
                    break;
                }
                self.ring[at & self.mask] = after;
                at = at.wrapping_add(1);
            }
            self.ring[at & self.mask] = entry;
        } else {
            let mut at = self.tail;
            self.tail = at.wrapping_add(1);
            while at != self.head {
                let before = self.ring[at.wrapping_sub(1) & self.mask];
                if before.time <= time {
                    break;
                }
                self.ring[at & self.mask] = before;
                at = at.wrapping_sub(1);
            }
            self.ring[at & self.mask] = entry;
        }
    }

    /// Replaces the event of a source by one at `time`, or adds it.
    pub fn set(&mut self, source: usize, time: u64) {
        let mut at = self.head;
        while at != self.tail && self.ring[at & self.mask].source != source as u32 {
            at = at.wrapping_add(1);
        }
        if at != self.tail {
            while at.wrapping_add(1) != self.tail {
                self.ring[at & self.mask] = self.ring[at.wrapping_add(1) & self.mask];
                at = at.wrapping_add(1);
            }
            self.ring[at & self.mask].time = NEVER;
            self.tail = at;
            self.next = self.ring[self.head & self.mask].time;
        }
        if time != NEVER {
            self.push(source, time);
        }
    }

    pub fn clear(&mut self) {
        self.ring.fill(Entry { time: NEVER, source: 0 });
        self.head = 0;
        self.tail = 0;
        self.next = NEVER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    #[test]
    fn events_come_out_by_time_and_move() {
        for sources in [1usize, 2, 7, 8, 41, 300] {
            let mut agenda = Agenda::new(sources);
            let mut times = vec![NEVER; sources];
            let mut draw = Stream::new(3, "agenda");
            for _ in 0..5000 {
                let least = *times.iter().min().unwrap();
                assert_eq!(agenda.next_time(), least);
                if draw.below(3) == 0 && least != NEVER {
                    let source = agenda.pop() as usize;
                    assert_eq!(times[source], least);
                    times[source] = NEVER;
                    continue;
                }
                let source = draw.below(sources as u64) as usize;
                let time = if draw.below(5) == 0 { NEVER } else { draw.below(20) };
                if times[source] == NEVER && time != NEVER {
                    agenda.push(source, time);
                } else {
                    agenda.set(source, time);
                }
                times[source] = time;
            }
        }
    }

    #[test]
    fn equal_times_come_out_in_the_order_they_went_in() {
        let mut agenda = Agenda::new(4);
        for (source, time) in [(2, 5), (0, 5), (3, 4), (1, 5)] {
            agenda.push(source, time);
        }
        let order: Vec<u32> = (0..4).map(|_| agenda.pop()).collect();
        assert_eq!(order, [3, 2, 0, 1]);
        assert_eq!(agenda.next_time(), NEVER);
    }
}
