//! What waits for each bank that nobody owns, and which of it is next.

use super::{Channel, Class, NOWHERE};
use crate::schedule::{Limit, Scheduler};

/// A queued request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Oldest {
    pub sequence: u64,
    pub slot: u32,
}

/// What waits for one bank that nobody owns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub bank: u32,
    pub hit: Option<Oldest>,
    pub other: Option<Oldest>,
}

/// Which request is next for a bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub slot: u32,
    pub hit: bool,
    /// Whether it counts for the limit of hits.
    pub passes: bool,
}

impl Candidate {
    pub(super) fn new(bank: u32) -> Self {
        Candidate {
            bank,
            hit: None,
            other: None,
        }
    }

    #[inline]
    pub(super) fn chosen(self, scheduler: Scheduler, passed: u32) -> Found {
        let counts_all = matches!(scheduler, Scheduler::HitsFirst { limit: Limit::Run(_) });
        let open = |hit: Oldest, passes: bool| Found {
            slot: hit.slot,
            hit: true,
            passes,
        };
        let close = |other: Oldest| Found {
            slot: other.slot,
            hit: false,
            passes: false,
        };
        match (self.hit, self.other) {
            (Some(hit), None) => open(hit, counts_all),
            (None, Some(other)) => close(other),
            (Some(hit), Some(other)) => {
                let passes = other.sequence < hit.sequence;
                let closes = match scheduler {
                    Scheduler::Fcfs | Scheduler::ReadyFirst | Scheduler::FirstReady { .. } => passes,
                    Scheduler::HitsFirst { limit } => match limit {
                        Limit::Never => false,
                        Limit::Cap(cap) => passes && passed >= cap,
                        Limit::Run(run) => passed >= run,
                    },
                };
                if closes {
                    close(other)
                } else {
                    open(hit, passes || counts_all)
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
        for (slot, queued) in list.iter() {
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
                self.candidates.push(Candidate::new(queued.bank));
            }
            let candidate = &mut self.candidates[*at as usize];
            let found = if bank.open == queued.row {
                &mut candidate.hit
            } else {
                &mut candidate.other
            };
            found.get_or_insert(Oldest {
                sequence: queued.sequence,
                slot,
            });
            if alone {
                return;
            }
        }
    }
}
