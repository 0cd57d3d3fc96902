//! Refresh: open rows are closed, and nothing is served for a while.

use super::Channel;
use crate::bank::{Bank, CLOSED};
use crate::memory::WriteCost;
use crate::{Memory, Ps};

impl Channel {
    pub(super) fn refresh(&mut self, memory: &Memory, now: Ps) -> bool {
        let Some((every, takes)) = memory.refresh else {
            return false;
        };
        if now < self.next_refresh || !self.owners.is_empty() {
            return false;
        }
        let written = self.write_dirty_rows(memory, now);
        let closed = |bank: &Bank| bank.next_row.max(now) + if bank.open == CLOSED { 0 } else { memory.t_rp };
        let start = self.banks.iter().map(closed).max().unwrap_or(now).max(written);
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

    /// Writes the dirty rows to their cells where rows are what is written, as many at once as may be; when the last of them is closed.
    fn write_dirty_rows(&mut self, memory: &Memory, now: Ps) -> Ps {
        if memory.cost != WriteCost::Row {
            return now;
        }
        let dirty = |at: &usize| self.banks[*at].dirty;
        let mut due: Vec<usize> = (0..self.banks.len()).filter(dirty).collect();
        due.sort_by_key(|&at| self.banks[at].next_row);
        let most = if memory.at_once > 0 {
            memory.at_once as usize
        } else {
            due.len()
        };
        // No bank is owned, so that no write to the cells is under way but these.
        let mut ends: Vec<Ps> = Vec::new();
        for at in due {
            // One write ends no sooner than those that began before it.
            let power = if ends.len() < most {
                now
            } else {
                ends[ends.len() - most]
            };
            let bank = &mut self.banks[at];
            let from = bank.next_row.max(now).max(power);
            let end = from + memory.t_wr;
            let (from, to) = bank.count_busy(from, end);
            self.timeline.add(at as u32, from, to);
            ends.push(end);
        }
        let last = ends.last().copied().unwrap_or(now);
        self.works_until = self.works_until.max(last);
        last + if ends.is_empty() { 0 } else { memory.t_rp }
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
