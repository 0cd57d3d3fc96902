//! Writes to the cells that are paused for reads.

use super::Channel;
use crate::{Memory, Ps};

impl Channel {
    /// Ends writes to the cells that reads wait for, and goes on with those that none waits for.
    pub(super) fn pause_and_resume(&mut self, memory: &Memory, now: Ps) -> bool {
        let writes_first = self.serves_writes(memory);
        let mut any = false;
        for index in 0..self.banks.len() {
            let awaited = self.reads.of_bank(index as u32).any(|(_, read)| !read.owns);
            let has_power = self.has_power(memory);
            let bank = &mut self.banks[index];
            if let Some((start, end)) = bank.writing {
                if end <= now {
                    bank.writing = None;
                } else if awaited && !writes_first {
                    let stop = start + now.saturating_sub(start).div_ceil(memory.pause_step) * memory.pause_step;
                    if stop < end {
                        bank.writing = None;
                        bank.paused = Some(end - stop);
                        // What the commands before the write ask for still holds.
                        bank.next_column = bank.but_for_writing.0.max(stop);
                        bank.next_row = bank.but_for_writing.1.max(stop);
                        bank.counts.pauses += 1;
                        bank.take_back_busy(end - stop);
                        self.timeline.take_back(index as u32, stop, end);
                        if let Some(held) = self.writing.iter_mut().find(|held| **held == end) {
                            *held = stop;
                        }
                        // One that stops at once leaves its power to the next.
                        self.writing.retain(|&end| end > now);
                        self.claims_from = 0;
                        any = true;
                    }
                }
            }
            let idle = !bank.owned && bank.next_column <= now && bank.next_row <= now && now < self.next_refresh;
            if let Some(left) = bank.paused
                && idle
                && (!awaited || writes_first)
                && has_power
            {
                let end = now + left;
                bank.but_for_writing = (now, now);
                bank.hold_until(end);
                bank.paused = None;
                bank.writing = Some((now, end));
                bank.count_busy(now, end);
                self.works_until = self.works_until.max(end);
                if memory.at_once > 0 {
                    self.writing.push(end);
                }
                self.timeline.add(index as u32, now, end);
                self.claims_from = 0;
                any = true;
            }
        }
        any
    }
}
