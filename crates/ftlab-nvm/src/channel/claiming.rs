//! Banks are given to requests: which list is chosen from, all banks together, and what it means for a bank.

use super::candidate::Found;
use super::{Channel, Class, NOWHERE, Owner, Queue};
use crate::bank::CLOSED;
use crate::memory::WriteCost;
use crate::schedule::Scheduler;
use crate::{Memory, Ps};

impl Channel {
    /// Gives free banks to queued requests; sets `claims_from`.
    pub(super) fn claims(&mut self, memory: &Memory, now: Ps) -> bool {
        self.claims_from = Ps::MAX;
        if now >= self.next_refresh {
            return false;
        }
        let class = self.class(memory);
        if class == Class::Writes && memory.cost == WriteCost::Line && !self.has_power(memory) {
            // Whatever waits would write to the cells.
            self.claims_from = self.power_from();
            return false;
        }
        self.gather(class, memory.scheduler == Scheduler::Fcfs);
        let mut any = false;
        for index in 0..self.candidates.len() {
            let candidate = self.candidates[index];
            self.place_of[candidate.bank as usize] = NOWHERE;
            let bank = &self.banks[candidate.bank as usize];
            let found = candidate.chosen(memory.scheduler, bank.passed);
            let from = if found.hit { bank.next_column } else { bank.next_row };
            if from > now && !memory.look_ahead {
                self.claims_from = self.claims_from.min(from);
                continue;
            }
            let closes_dirty = !found.hit && bank.dirty && memory.cost == WriteCost::Row;
            let writes = self.list(class).get(found.slot).write;
            let writes_cells = closes_dirty || (writes && memory.cost == WriteCost::Line);
            if writes_cells && !self.has_power(memory) {
                self.claims_from = self.claims_from.min(self.power_from());
                continue;
            }
            self.claim(memory, class, found, now.max(from));
            any = true;
        }
        self.candidates.clear();
        any
    }

    /// What the scheduler chooses from now.
    #[inline]
    pub(super) fn class(&self, memory: &Memory) -> Class {
        match (memory.bank_queue > 0, self.serves_writes(memory)) {
            (true, _) => Class::Staged,
            (false, true) => Class::Writes,
            (false, false) => Class::Reads,
        }
    }

    #[inline]
    pub(super) fn list_mut(&mut self, class: Class) -> &mut Queue {
        match class {
            Class::Reads => &mut self.reads,
            Class::Writes => &mut self.writes,
            Class::Staged => &mut self.staged,
        }
    }

    #[inline]
    pub(super) fn list(&self, class: Class) -> &Queue {
        match class {
            Class::Reads => &self.reads,
            Class::Writes => &self.writes,
            Class::Staged => &self.staged,
        }
    }

    /// Gives a request its bank, which starts on it at `now`.
    #[inline]
    pub(super) fn claim(&mut self, memory: &Memory, class: Class, found: Found, now: Ps) {
        let queued = self.list_mut(class).get_mut(found.slot);
        queued.owns = true;
        let request = *queued;
        let bank = &mut self.banks[request.bank as usize];
        let mut ready = now;
        if found.hit {
            bank.counts.hits += 1;
            bank.passed = if found.passes { bank.passed + 1 } else { 0 };
        } else {
            bank.passed = 0;
            if bank.open == CLOSED {
                bank.counts.misses += 1;
            } else {
                bank.counts.conflicts += 1;
                if bank.dirty && memory.cost == WriteCost::Row {
                    ready += memory.t_wr;
                    if memory.at_once > 0 {
                        self.writing.push(ready);
                    }
                }
                bank.clean();
                ready += memory.t_rp;
            }
            ready += memory.t_rcd;
            bank.open = request.row;
        }
        bank.owned = true;
        self.place_freed |= memory.frees_early;
        self.owners.add(Owner {
            sequence: request.sequence,
            slot: found.slot,
            bank: request.bank,
            row: request.row,
            write: request.write,
            ready,
            since: now,
        });
    }

    /// When the first of the writes to the cells ends.
    pub(super) fn power_from(&self) -> Ps {
        self.writing.iter().copied().min().unwrap_or(Ps::MAX)
    }

    /// Whether one more write to the cells may start.
    pub(super) fn has_power(&self, memory: &Memory) -> bool {
        if memory.at_once == 0 {
            return true;
        }
        let about_to = match memory.cost {
            WriteCost::Line => self.owners.writes(),
            WriteCost::Row | WriteCost::Recovery => 0,
        };
        self.writing.len() + about_to < memory.at_once as usize
    }
}
