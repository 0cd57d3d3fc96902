//! The way of a request into the queue or the write buffer, and on into the queue of its bank.

use super::{Access, Channel, Done, Queued};
use crate::{Memory, Ps};

impl Channel {
    /// Lets requests in until one finds no place.
    pub(super) fn admit(&mut self, memory: &Memory, now: Ps, done: &mut Vec<Done>) {
        self.place_freed = false;
        let mut any = false;
        while let Some(&access) = self.waiting.front() {
            let buffered = self.posted;
            let held = buffered && self.holds_write(access.place.bank, access.line);
            let answered = match (buffered, access.write) {
                (true, true) if held => {
                    self.counts.replaced += 1;
                    Some(now)
                }
                (true, true) if self.writes.len() - self.early(memory, true) < memory.buffer => {
                    self.enter(access);
                    Some(now)
                }
                (true, false) if held => {
                    self.counts.from_buffer += 1;
                    Some(now + memory.t_cl + memory.t_burst)
                }
                (_, write) if !(buffered && write) && self.reads.len() - self.early(memory, false) < memory.queue => {
                    self.enter(access);
                    None
                }
                _ => break,
            };
            self.counts.held[usize::from(access.write)] += u128::from(now - access.arrived);
            if let Some(at) = answered {
                done.push(Done {
                    tag: access.tag,
                    at: at + memory.link,
                    arrived: access.arrived,
                    write: access.write,
                });
            }
            self.waiting.pop_front();
            any = true;
        }
        if any && memory.buffer > 0 && !self.draining && self.writes.len() >= memory.high {
            self.draining = true;
            self.counts.drains += 1;
        }
    }

    /// Requests that are still listed and have given up their places, in the write buffer or in the queue.
    #[inline]
    pub(super) fn early(&self, memory: &Memory, buffered: bool) -> usize {
        if !memory.frees_early || memory.bank_queue > 0 {
            return 0;
        }
        match (self.posted, buffered) {
            (true, true) => self.owners.writes(),
            (true, false) => self.owners.len() - self.owners.writes(),
            (false, true) => 0,
            (false, false) => self.owners.len(),
        }
    }

    /// Whether a write of this line waits for its bank.
    fn holds_write(&self, bank: u32, line: u64) -> bool {
        let is_it = |(_, held): (u32, &Queued)| held.write && held.line == line;
        self.writes.of_bank(bank).any(is_it) || self.staged.of_bank(bank).any(is_it)
    }

    /// Sends one request on to the queue of its bank.
    #[inline]
    pub(super) fn stage(&mut self, memory: &Memory) -> bool {
        if memory.bank_queue == 0 {
            return false;
        }
        let writes = self.serves_writes(memory);
        let list = if writes { &mut self.writes } else { &mut self.reads };
        let places = &self.staged_of;
        let has_place = |(_, queued): &(u32, &Queued)| (places[queued.bank as usize] as usize) < memory.bank_queue;
        let Some((slot, _)) = list.iter().find(has_place) else {
            return false;
        };
        let queued = list.remove(slot);
        self.staged_of[queued.bank as usize] += 1;
        self.staged.push(Queued {
            sequence: self.sequence,
            ..queued
        });
        self.sequence += 1;
        self.look_at(queued.bank);
        if writes {
            self.draining &= self.writes.len() > memory.low;
        }
        true
    }

    pub(super) fn enter(&mut self, access: Access) {
        let queued = Queued {
            sequence: self.sequence,
            tag: access.tag,
            arrived: access.arrived,
            write: access.write,
            owns: false,
            is_counted: false,
            bank: access.place.bank,
            row: access.place.row,
            line: access.line,
        };
        self.sequence += 1;
        self.look_at(queued.bank);
        if access.write && self.posted {
            self.writes.push(queued);
        } else {
            self.reads.push(queued);
        }
    }
}
