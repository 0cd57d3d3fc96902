//! The agenda: one pending event per source (die, channel, timer queue), in order of time.
//!
//! A die has at most one event ahead of it, and a suspension *moves* that event; so there are no stale entries and never
//! more entries than sources. Ends of transfers are soon, at most one for each channel, and come in order but for their sizes; they
//! have a list of their own, beside that of everything else. A list lies sorted in the middle of a table: the next is taken from
//! the front, and a new one is let in from the end (transfers) or the nearer end. For the tens to hundreds of dies of a
//! drive this costs a fraction of a heap; with thousands it would be linear in the number of busy dies. Equal times come out
//! in the order they went in.

use super::table::Table;
use crate::due::NEVER;

#[derive(Clone, Copy)]
struct Entry {
    time: u64,
    source: u32,
    /// How many went in before it (wraps).
    sequence: u32,
}

const EMPTY: Entry = Entry {
    time: NEVER,
    source: 0,
    sequence: 0,
};

/// Pending events of a fixed set of sources.
pub(super) struct Agenda {
    transfers: List,
    others: List,
    /// Time of the earliest.
    next: u64,
    /// It is one of the transfers.
    transfer_next: bool,
    sequence: u32,
}

impl Agenda {
    pub fn new(sources: usize) -> Self {
        Agenda {
            transfers: List::new(sources),
            others: List::new(sources),
            next: NEVER,
            transfer_next: false,
            sequence: 0,
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
        let source = if self.transfer_next {
            self.transfers.pop()
        } else {
            self.others.pop()
        };
        self.look();
        source
    }

    /// Adds the event of a source that has none.
    #[inline]
    pub fn push(&mut self, source: usize, time: u64) {
        let entry = self.entry(source, time);
        if time < self.next {
            (self.next, self.transfer_next) = (time, false);
        }
        self.others.insert(entry);
    }

    /// As [`Agenda::push`], for the end of a transfer on a channel.
    #[inline]
    pub fn push_transfer(&mut self, source: usize, time: u64) {
        let entry = self.entry(source, time);
        if time < self.next {
            (self.next, self.transfer_next) = (time, true);
        }
        self.transfers.insert_late(entry);
    }

    /// Replaces the event of a source, which is not the end of a transfer, by one at `time`, or adds it.
    pub fn set(&mut self, source: usize, time: u64) {
        self.others.remove(source as u32);
        if time != NEVER {
            let entry = self.entry(source, time);
            self.others.insert(entry);
        }
        self.look();
    }

    pub fn clear(&mut self) {
        self.transfers.clear();
        self.others.clear();
        self.look();
    }

    #[inline(always)]
    fn entry(&mut self, source: usize, time: u64) -> Entry {
        self.sequence = self.sequence.wrapping_add(1);
        Entry {
            time,
            source: source as u32,
            sequence: self.sequence,
        }
    }

    /// Finds out which event is next.
    #[inline(always)]
    fn look(&mut self) {
        let (transfer, other) = (self.transfers.first(), self.others.first());
        self.transfer_next = transfer.time < other.time
            || (transfer.time == other.time && (transfer.sequence.wrapping_sub(other.sequence) as i32) < 0);
        self.next = transfer.time.min(other.time);
    }
}

/// Entries in order of time.
struct List {
    /// From `head` up to `tail`, and [`EMPTY`] at `tail`. Four times as long as there can be entries, so that they are seldom moved
    /// to the middle again.
    entries: Table<Entry>,
    head: usize,
    tail: usize,
}

impl List {
    fn new(most: usize) -> Self {
        let entries: Table<Entry> = (0..4 * (most + 1)).map(|_| EMPTY).collect();
        let middle = entries.len() / 2;
        List {
            entries,
            head: middle,
            tail: middle,
        }
    }

    /// The first; [`EMPTY`] if there is none.
    #[inline(always)]
    fn first(&self) -> Entry {
        self.entries[self.head]
    }

    #[inline(always)]
    fn pop(&mut self) -> u32 {
        debug_assert!(self.head != self.tail, "no event to take");
        let source = self.entries[self.head].source;
        self.head += 1;
        source
    }

    /// Lets an entry in from the nearer end.
    #[inline(always)]
    fn insert(&mut self, entry: Entry) {
        if self.head == 0 {
            self.recentre();
        }
        if entry.time < self.entries[(self.head + self.tail) / 2].time {
            self.insert_early(entry);
        } else {
            self.insert_late(entry);
        }
    }

    #[inline(always)]
    fn insert_early(&mut self, entry: Entry) {
        self.head -= 1;
        let mut at = self.head;
        while self.entries[at + 1].time <= entry.time {
            self.entries[at] = self.entries[at + 1];
            at += 1;
        }
        self.entries[at] = entry;
    }

    /// Lets an entry in from the end.
    #[inline(always)]
    fn insert_late(&mut self, entry: Entry) {
        if self.tail + 1 == self.entries.len() {
            self.recentre();
        }
        let mut at = self.tail;
        self.tail += 1;
        self.entries[self.tail] = EMPTY;
        while at != self.head && self.entries[at - 1].time > entry.time {
            self.entries[at] = self.entries[at - 1];
            at -= 1;
        }
        self.entries[at] = entry;
    }

    /// Takes the entry of a source out, if there is one.
    fn remove(&mut self, source: u32) {
        let mut pending = self.head..self.tail;
        if let Some(at) = pending.find(|&at| self.entries[at].source == source) {
            // The empty one at the tail comes along.
            self.entries.copy_within(at + 1..=self.tail, at);
            self.tail -= 1;
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

    fn clear(&mut self) {
        self.entries.fill(EMPTY);
        self.head = self.entries.len() / 2;
        self.tail = self.head;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    /// What is pending, as the agenda should have it: time, order of entry, source, end of a transfer.
    type Pending = Vec<(u64, u32, usize, bool)>;

    #[test]
    fn events_come_out_by_time_then_by_entry_and_move() {
        for sources in [1usize, 2, 7, 8, 41, 300] {
            let mut agenda = Agenda::new(sources);
            let mut pending = Pending::new();
            let mut draw = Stream::new(3, "agenda");
            for entered in 0..20_000 {
                pending.sort_unstable();
                assert_eq!(agenda.next_time(), pending.first().map_or(NEVER, |first| first.0));
                if draw.below(3) == 0 && !pending.is_empty() {
                    assert_eq!(agenda.pop() as usize, pending.remove(0).2);
                    continue;
                }
                let source = draw.below(sources as u64) as usize;
                let time = if draw.below(5) == 0 { NEVER } else { draw.below(20) };
                match pending.iter().position(|other| other.2 == source) {
                    None if time != NEVER && draw.below(2) == 0 => {
                        agenda.push_transfer(source, time);
                        pending.push((time, entered, source, true));
                    }
                    None if time != NEVER => {
                        agenda.push(source, time);
                        pending.push((time, entered, source, false));
                    }
                    Some(at) if !pending[at].3 => {
                        agenda.set(source, time);
                        pending.remove(at);
                        if time != NEVER {
                            pending.push((time, entered, source, false));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn a_cleared_agenda_is_empty() {
        let mut agenda = Agenda::new(4);
        agenda.push(2, 5);
        agenda.push_transfer(0, 4);
        agenda.clear();
        assert_eq!(agenda.next_time(), NEVER);
        agenda.push(1, 7);
        assert_eq!((agenda.next_time(), agenda.pop()), (7, 1));
    }
}
