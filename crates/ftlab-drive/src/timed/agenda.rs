//! The agenda: one pending event per source (die, channel, timer queue), in order of time.
//!
//! A die has at most one event ahead of it, and a suspension *moves* that event; so there are no stale entries and never
//! more entries than sources. They lie sorted in the middle of a table: the next is taken from the front, and a new one is let
//! in from the nearer end: a program is among the latest, a transfer among the next. For the tens to hundreds of dies of a
//! drive this costs a fraction of a heap; with thousands it would be linear in the number of busy dies. Equal times come out
//! in the order they went in.

use super::table::Table;
use crate::due::NEVER;

#[derive(Clone, Copy)]
struct Entry {
    time: u64,
    source: u32,
}

const EMPTY: Entry = Entry { time: NEVER, source: 0 };

/// Pending events of a fixed set of sources.
pub(super) struct Agenda {
    /// Pending entries from `head` up to `tail`, and `NEVER` at `tail`. Four times as long as there can be entries, so that they
    /// are seldom moved to the middle again.
    entries: Table<Entry>,
    head: usize,
    tail: usize,
    /// Time at the head.
    next: u64,
}

impl Agenda {
    pub fn new(sources: usize) -> Self {
        let entries: Table<Entry> = (0..4 * (sources + 1)).map(|_| EMPTY).collect();
        let middle = entries.len() / 2;
        Agenda {
            entries,
            head: middle,
            tail: middle,
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
        let source = self.entries[self.head].source;
        self.head += 1;
        self.next = self.entries[self.head].time;
        source
    }

    /// Adds the event of a source that has none.
    #[inline]
    pub fn push(&mut self, source: usize, time: u64) {
        if self.head == 0 || self.tail + 1 == self.entries.len() {
            self.recentre();
        }
        let entry = Entry {
            time,
            source: source as u32,
        };
        self.next = self.next.min(time);
        let entries = &mut self.entries;
        if time < entries[(self.head + self.tail) / 2].time {
            self.head -= 1;
            let mut at = self.head;
            while entries[at + 1].time <= time {
                entries[at] = entries[at + 1];
                at += 1;
            }
            entries[at] = entry;
        } else {
            let mut at = self.tail;
            self.tail += 1;
            entries[self.tail].time = NEVER;
            while at != self.head && entries[at - 1].time > time {
                entries[at] = entries[at - 1];
                at -= 1;
            }
            entries[at] = entry;
        }
    }

    /// Replaces the event of a source by one at `time`, or adds it.
    pub fn set(&mut self, source: usize, time: u64) {
        let mut pending = self.head..self.tail;
        if let Some(at) = pending.find(|&at| self.entries[at].source == source as u32) {
            // The `NEVER` at the tail comes along.
            self.entries.copy_within(at + 1..=self.tail, at);
            self.tail -= 1;
            self.next = self.entries[self.head].time;
        }
        if time != NEVER {
            self.push(source, time);
        }
    }

    /// Moves the entries to the middle of the table.
    #[cold]
    fn recentre(&mut self) {
        let count = self.tail - self.head;
        let head = (self.entries.len() - count) / 2;
        debug_assert!(
            head > 0 && head + count + 1 < self.entries.len(),
            "a source has two events"
        );
        self.entries.copy_within(self.head..=self.tail, head);
        (self.head, self.tail) = (head, head + count);
    }

    pub fn clear(&mut self) {
        self.entries.fill(EMPTY);
        self.head = self.entries.len() / 2;
        self.tail = self.head;
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
