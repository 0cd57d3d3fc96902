//! Refresh: open rows are closed, and nothing is served for a while.

use super::Channel;
use crate::bank::{Bank, CLOSED};
use crate::{Memory, Ps};

impl Channel {
    pub(super) fn refresh(&mut self, memory: &Memory, now: Ps) -> bool {
        let Some((every, takes)) = memory.refresh else {
            return false;
        };
        if now < self.next_refresh || !self.owners.is_empty() {
            return false;
        }
        let closed = |bank: &Bank| bank.next_row.max(now) + if bank.open == CLOSED { 0 } else { memory.t_rp };
        let start = self.banks.iter().map(closed).max().unwrap_or(now);
        for bank in &mut self.banks {
            bank.clean();
            bank.open = CLOSED;
            // The refresh waits for a write to the cells, which no read ends from now on.
            bank.writing = None;
            bank.hold_until(start + takes);
        }
        self.next_refresh += every;
        self.counts.refreshes += 1;
        self.look_at_all();
        true
    }

    /// Whether nothing but refreshes will happen until something arrives.
    pub fn is_quiet(&self, memory: &Memory) -> bool {
        self.waiting.is_empty()
            && self.reads.is_empty()
            && self.staged.is_empty()
            && self.owners.is_empty()
            && (self.writes.is_empty() || !self.serves_writes(memory))
            && self.banks.iter().all(|bank| bank.paused.is_none())
    }

    /// Counts the refreshes before `until`, when something arrives, but for the last. The channel must be quiet: each finds what the one
    /// before has left, closed banks that are free. When the next refresh is due.
    pub fn skip_refreshes(&mut self, memory: &Memory, until: Ps) -> Option<Ps> {
        let (every, _) = memory.refresh?;
        let is_settled = |bank: &Bank| bank.open == CLOSED && bank.next_row <= self.next_refresh;
        if self.next_refresh >= until || !self.banks.iter().all(is_settled) {
            return None;
        }
        let skipped = (until - 1 - self.next_refresh) / every;
        self.next_refresh += skipped * every;
        self.counts.refreshes += skipped;
        Some(self.next_refresh)
    }
}
