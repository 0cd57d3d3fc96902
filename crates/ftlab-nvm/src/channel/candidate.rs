//! What waits for each bank that nobody owns, and which of it is next.

use super::{Channel, Class, NOWHERE};
use crate::schedule::{Limit, Scheduler};

/// What waits for one bank that nobody owns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub bank: u32,
    pub hit: Option<u32>,
    pub other: Option<u32>,
}

impl Candidate {
    /// Which request is next for the bank, whether it is a hit, and whether it counts for the limit of hits.
    pub(super) fn chosen(self, scheduler: Scheduler, passed: u32) -> (u32, bool, bool) {
        let counts_all = matches!(scheduler, Scheduler::HitsFirst { limit: Limit::Run(_) });
        match (self.hit, self.other) {
            (Some(hit), None) => (hit, true, counts_all),
            (None, Some(other)) => (other, false, false),
            (Some(hit), Some(other)) => {
                let passes = other < hit;
                let closes = match scheduler {
                    Scheduler::Fcfs | Scheduler::ReadyFirst | Scheduler::FirstReady { .. } => passes,
                    Scheduler::HitsFirst { limit } => match limit {
                        Limit::Never => false,
                        Limit::Cap(cap) => passes && passed >= cap,
                        Limit::Run(run) => passed >= run,
                    },
                };
                if closes {
                    (other, false, false)
                } else {
                    (hit, true, passes || counts_all)
                }
            }
            (None, None) => unreachable!("a candidate comes with its first request"),
        }
    }
}

impl Channel {
    /// For every bank that nobody owns: the oldest queued hit and the oldest other request, banks in the order of their oldest.
    pub(super) fn gather(&mut self, class: Class, alone: bool) {
        debug_assert!(self.candidates.is_empty());
        if alone && !self.owners.is_empty() {
            return;
        }
        let list = match class {
            Class::Reads => &self.reads,
            Class::Writes => &self.writes,
            Class::Staged => &self.staged,
        };
        for (index, queued) in list.iter().enumerate() {
            let bank = &self.banks[queued.bank as usize];
            if bank.owned || (queued.write && bank.paused.is_some()) {
                // The head waits for its own bank only.
                if alone {
                    return;
                }
                continue;
            }
            let at = &mut self.place_of[queued.bank as usize];
            if *at == NOWHERE {
                *at = self.candidates.len() as u32;
                self.candidates.push(Candidate {
                    bank: queued.bank,
                    hit: None,
                    other: None,
                });
            }
            let candidate = &mut self.candidates[*at as usize];
            let found = if bank.open == queued.row {
                &mut candidate.hit
            } else {
                &mut candidate.other
            };
            if found.is_none() {
                *found = Some(index as u32);
            }
            if alone {
                return;
            }
        }
    }
}
