//! The scheduler `first_ready`: commands to banks are chosen among, not requests.

use super::{CLOSED, Channel, Class, Done, Owner, Queued, owners};
use crate::schedule::Scheduler;
use crate::{Memory, Ps};

/// The next command of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Column,
    Open,
    Close,
}

impl Channel {
    /// One command, if there is one that can go out; sets `claims_from`.
    pub(super) fn first_ready(&mut self, memory: &Memory, now: Ps, done: &mut Vec<Done>) -> bool {
        self.claims_from = Ps::MAX;
        if now < self.command_free {
            self.claims_from = self.command_free;
            return false;
        }
        let sent = self.for_owners(memory, now, done) || self.for_queued(memory, now, done);
        if sent {
            self.command_free = now + memory.command_cycle;
        }
        sent
    }

    /// Of requests for which a row was opened, the oldest whose command can go out.
    fn for_owners(&mut self, memory: &Memory, now: Ps, done: &mut Vec<Done>) -> bool {
        let mut chosen: Option<(u64, owners::At)> = None;
        for (at, owner) in self.owners.iter() {
            let bank = &self.banks[owner.bank as usize];
            let from = match bank.open {
                CLOSED => self.open_from(memory, bank.next_row),
                _ => self.column_from(memory, owner),
            };
            if from > now {
                self.claims_from = self.claims_from.min(from);
            } else if chosen.is_none_or(|(older, _)| owner.sequence < older) {
                chosen = Some((owner.sequence, at));
            }
        }
        let Some((_, at)) = chosen else {
            return false;
        };
        let owner = *self.owners.get(at);
        let bank = &mut self.banks[owner.bank as usize];
        if bank.open == CLOSED {
            bank.open = owner.row;
            bank.passed = 0;
            self.owners.remove(at);
            self.owners.add(Owner {
                ready: now + memory.t_rcd,
                ..owner
            });
            self.opened.rotate_left(1);
            self.opened[3] = Some(now);
        } else {
            bank.passed += 1;
            self.send(memory, now, at, done);
        }
        true
    }

    /// Of queued requests, the oldest whose command can go out and whose row has not had its run of hits; if there is none, the oldest of
    /// all, if its command can.
    fn for_queued(&mut self, memory: &Memory, now: Ps, done: &mut Vec<Done>) -> bool {
        let Scheduler::FirstReady { run } = memory.scheduler else {
            unreachable!("called for this scheduler only");
        };
        if now >= self.next_refresh {
            return false;
        }
        let class = self.class(memory);
        let mut oldest = None;
        let mut chosen = None;
        let mut wake = self.claims_from;
        for (slot, queued) in self.list(class).iter().filter(|(_, queued)| !queued.owns) {
            let (next, from) = self.next_of(memory, queued);
            let bank = &self.banks[queued.bank as usize];
            let is_spent = bank.open == queued.row && run.is_some_and(|run| bank.passed > run);
            if from > now {
                wake = wake.min(from);
            } else if !is_spent {
                chosen = Some((slot, next));
                break;
            }
            oldest.get_or_insert((slot, next, from));
        }
        self.claims_from = wake;
        let spent = oldest
            .filter(|(_, _, from)| *from <= now)
            .map(|(slot, next, _)| (slot, next));
        let Some((slot, next)) = chosen.or(spent) else {
            return false;
        };
        self.issue(memory, now, class, (slot, next), done);
        true
    }

    /// The next command of a queued request, and when it can go out as far as bank and data bus go.
    fn next_of(&self, memory: &Memory, queued: &Queued) -> (Next, Ps) {
        let bank = &self.banks[queued.bank as usize];
        let owner = if bank.owned {
            self.owners.of_bank(queued.bank)
        } else {
            None
        };
        match owner {
            // The request that opened the row goes first.
            Some(_) if bank.open == CLOSED => (Next::Open, Ps::MAX),
            Some(_) if bank.open == queued.row => (Next::Column, Ps::MAX),
            Some(owner) => (Next::Close, bank.next_row.max(owner.ready).max(self.close_from)),
            None if bank.open == CLOSED => (Next::Open, self.open_from(memory, bank.next_row)),
            None if bank.open == queued.row => {
                (Next::Column, self.bus_from(memory, queued.write).max(bank.next_column))
            }
            None => (Next::Close, bank.next_row.max(self.close_from)),
        }
    }

    /// When a row may be opened in a bank that is free at `bank`: not too soon after the activation before and the fourth before.
    fn open_from(&self, memory: &Memory, bank: Ps) -> Ps {
        let after = |opened: Option<Ps>, time: Ps| opened.map_or(0, |at| at + time);
        bank.max(after(self.opened[3], memory.t_rrd))
            .max(after(self.opened[0], memory.t_faw))
    }

    fn issue(&mut self, memory: &Memory, now: Ps, class: Class, (slot, next): (u32, Next), done: &mut Vec<Done>) {
        let queued = self.list_mut(class).get_mut(slot);
        let is_first = !std::mem::replace(&mut queued.is_counted, true);
        queued.owns = next != Next::Close;
        let queued = *queued;
        let bank = &mut self.banks[queued.bank as usize];
        // As Ramulator does: what the first command for a request found.
        match next {
            Next::Column => bank.counts.hits += u64::from(is_first),
            Next::Open => bank.counts.misses += u64::from(is_first),
            Next::Close => bank.counts.conflicts += u64::from(is_first),
        }
        match next {
            Next::Column => {
                bank.owned = true;
                bank.passed += 1;
                let at = self.owners.add(Owner::of(slot, &queued, now, now));
                self.send(memory, now, at, done);
            }
            Next::Open => {
                bank.owned = true;
                bank.open = queued.row;
                bank.passed = 0;
                self.opened.rotate_left(1);
                self.opened[3] = Some(now);
                self.place_freed |= memory.frees_early;
                self.owners.add(Owner::of(slot, &queued, now + memory.t_rcd, now));
            }
            Next::Close => {
                self.counts.closed_unserved += u64::from(bank.owned);
                bank.clean();
                bank.open = CLOSED;
                bank.hold_until(now + memory.t_rp);
                self.close_from = now + memory.t_ppd;
            }
        }
    }
}

impl Owner {
    fn of(slot: u32, queued: &Queued, ready: Ps, since: Ps) -> Owner {
        Owner {
            sequence: queued.sequence,
            slot,
            bank: queued.bank,
            row: queued.row,
            write: queued.write,
            ready,
            since,
        }
    }
}
