//! Banks given away one by one: only those are looked at to which something has happened.
//!
//! Gives what `claims` gives, where no decision on one bank depends on another: not for `fcfs`, writes with a limit on how many go at once, or with pausing.

use super::{Channel, Class};
use crate::bank::CLOSED;
use crate::channel::candidate::{Candidate, Oldest};
use crate::memory::WriteCost;
use crate::schedule::{Limit, Scheduler};
use crate::{Memory, Ps};

/// As many banks as a mask has bits.
const MOST: usize = 64;

#[derive(Debug)]
pub(super) struct ByBank {
    is_used: bool,
    /// Only while buffered writes are not what is served: they share a limit.
    for_reads: bool,
    /// A bit for each bank.
    all: u64,
    /// Banks to look at.
    look: u64,
    /// Banks whose next request waits for the bank itself, and until when.
    waits: u64,
    until: Vec<Ps>,
    class: Class,
}

impl ByBank {
    pub fn new(memory: &Memory) -> Self {
        let banks = memory.banks_per_channel();
        let alone = matches!(memory.scheduler, Scheduler::Fcfs | Scheduler::FirstReady { .. });
        let limited = memory.at_once > 0 && memory.cost != WriteCost::Recovery;
        // Reads of a queue without writes write nothing to the cells, unless they close dirty rows.
        let reads_apart = memory.cost == WriteCost::Line && memory.buffer > 0 && memory.bank_queue == 0;
        ByBank {
            is_used: banks <= MOST && !alone && (!limited || reads_apart) && memory.pause_step == 0,
            for_reads: limited,
            all: u64::MAX >> (MOST - banks.min(MOST)),
            look: 0,
            waits: 0,
            until: vec![0; banks],
            class: Class::Reads,
        }
    }
}

impl Channel {
    /// Whether banks are given away one by one now.
    pub(super) fn goes_by_bank(&mut self, memory: &Memory) -> bool {
        if self.by_bank.is_used && !(self.by_bank.for_reads && self.serves_writes(memory)) {
            return true;
        }
        // What happens meanwhile is not kept.
        self.by_bank.class = Class::Writes;
        false
    }

    /// Something has happened that may let this bank be given away.
    #[inline]
    pub(super) fn look_at(&mut self, bank: u32) {
        self.claims_from = 0;
        self.by_bank.look |= 1 << (bank as usize % MOST);
    }

    pub(super) fn look_at_all(&mut self) {
        self.claims_from = 0;
        self.by_bank.look = u64::MAX;
    }

    /// Gives free banks to queued requests; sets `claims_from`.
    pub(super) fn claims_by_bank(&mut self, memory: &Memory, now: Ps) -> bool {
        self.claims_from = Ps::MAX;
        if now >= self.next_refresh {
            return false;
        }
        let class = self.class(memory);
        if class != self.by_bank.class {
            self.by_bank.class = class;
            self.by_bank.look = u64::MAX;
        }
        for bank in bits(self.by_bank.waits) {
            if self.by_bank.until[bank] <= now {
                self.by_bank.look |= 1 << bank;
            }
        }
        let looked = std::mem::take(&mut self.by_bank.look);
        self.by_bank.waits &= !looked;
        // Those that are left wait longer than now.
        for bank in bits(self.by_bank.waits) {
            self.claims_from = self.claims_from.min(self.by_bank.until[bank]);
        }
        let mut any = false;
        for bank in bits(looked & self.by_bank.all) {
            any |= self.give(memory, now, class, bank);
        }
        any
    }

    fn give(&mut self, memory: &Memory, now: Ps, class: Class, index: usize) -> bool {
        let bank = &self.banks[index];
        if bank.owned {
            return false;
        }
        let mut candidate = Candidate::new(index as u32);
        for (slot, queued) in self.list(class).of_bank(index as u32) {
            let found = if queued.row == bank.open {
                &mut candidate.hit
            } else {
                &mut candidate.other
            };
            found.get_or_insert(Oldest {
                sequence: queued.sequence,
                slot,
            });
            let is_settled = match memory.scheduler {
                Scheduler::HitsFirst { limit: Limit::Never } => candidate.hit.is_some(),
                Scheduler::HitsFirst { .. } => candidate.hit.is_some() && candidate.other.is_some(),
                // The oldest, whatever it is.
                _ => true,
            };
            if is_settled || bank.open == CLOSED {
                break;
            }
        }
        if candidate.hit.is_none() && candidate.other.is_none() {
            return false;
        }
        let found = candidate.chosen(memory.scheduler, bank.passed);
        let from = if found.hit { bank.next_column } else { bank.next_row };
        if from > now && !memory.look_ahead {
            self.by_bank.waits |= 1 << index;
            self.by_bank.until[index] = from;
            self.claims_from = self.claims_from.min(from);
            return false;
        }
        self.claim(memory, class, found, now.max(from));
        true
    }
}

/// The numbers of the bits that are set.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        (mask != 0).then(|| {
            mask &= mask - 1;
            bit as usize
        })
    })
}
