//! Column commands: which goes out, and what it means for bank, bus and request.

use super::{Channel, Done, Owner};
use crate::memory::WriteCost;
use crate::{Memory, Ps};

use super::owners;

impl Channel {
    /// Sends the column command of the oldest owner that is ready, if the bus will be free for its data.
    pub(super) fn columns(&mut self, memory: &Memory, now: Ps, done: &mut Vec<Done>) -> bool {
        if self.next_column(memory) > now {
            return false;
        }
        let mut chosen: Option<(u64, owners::At)> = None;
        for write in [false, true] {
            if self.bus_from(memory, write) <= now
                && let Some(oldest) = self.owners.oldest(write, now)
                && chosen.is_none_or(|other| oldest < other)
            {
                chosen = Some(oldest);
            }
        }
        let Some((_, at)) = chosen else {
            return false;
        };
        self.send(memory, now, at, done);
        true
    }

    /// Sends the column command of an owner.
    pub(super) fn send(&mut self, memory: &Memory, now: Ps, at: owners::At, done: &mut Vec<Done>) {
        let owner = self.owners.remove(at);
        let list = if memory.bank_queue > 0 {
            self.staged_of[owner.bank as usize] -= 1;
            &mut self.staged
        } else if owner.write && self.posted {
            &mut self.writes
        } else {
            &mut self.reads
        };
        let request = list.remove(owner.slot);
        debug_assert!(request.sequence == owner.sequence);
        self.place_freed = true;
        let data_end = now + memory.column_latency(owner.write) + memory.t_burst;
        self.bus_free = data_end;
        self.works_until = self.works_until.max(data_end);
        self.counts.bus_busy += memory.t_burst;
        match (owner.write, memory.t_wtr) {
            (true, Some(turn)) => self.read_from = data_end + turn,
            (true, None) => {}
            (false, _) => self.write_from = (data_end + memory.t_rtw).saturating_sub(memory.t_cwl),
        }
        self.look_at(owner.bank);
        let end = self.after_column(memory, &owner, now, data_end);
        if owner.write && self.posted {
            if memory.bank_queue == 0 {
                self.draining &= self.writes.len() > memory.low;
            }
        } else {
            done.push(Done {
                tag: request.tag,
                at: end + memory.link,
                arrived: request.arrived,
                write: request.write,
            });
        }
    }

    /// Earliest column command of any owner.
    #[inline]
    pub(super) fn next_column(&self, memory: &Memory) -> Ps {
        let first = |write: bool| self.owners.soonest(write).max(self.bus_from(memory, write));
        first(false).min(first(true))
    }

    /// Earliest column command of an owner, by its bank, the data bus and the turning of the bus.
    pub(super) fn column_from(&self, memory: &Memory, owner: &Owner) -> Ps {
        owner.ready.max(self.bus_from(memory, owner.write))
    }

    /// Earliest column command by the data bus and the turning of the bus.
    #[inline]
    pub(super) fn bus_from(&self, memory: &Memory, write: bool) -> Ps {
        let bus = self.bus_free.saturating_sub(memory.column_latency(write));
        bus.max(if write { self.write_from } else { self.read_from })
    }

    /// What a column command means for its bank; when the request is done.
    fn after_column(&mut self, memory: &Memory, owner: &Owner, now: Ps, data_end: Ps) -> Ps {
        let bank = &mut self.banks[owner.bank as usize];
        bank.owned = false;
        bank.next_column = bank.next_column.max(now + memory.t_ccd);
        let mut end = data_end;
        match (owner.write, memory.cost) {
            (false, _) => {
                bank.counts.reads += 1;
                bank.next_row = bank.next_row.max(now + memory.t_rtp);
            }
            (true, WriteCost::Line) => {
                end = data_end + memory.t_wr;
                bank.but_for_writing = (bank.next_column, bank.next_row);
                bank.hold_until(end);
                bank.wear_out(owner.row);
                if memory.at_once > 0 {
                    self.writing.push(end);
                }
                if memory.pause_step > 0 {
                    bank.writing = Some((data_end, end));
                }
            }
            (true, WriteCost::Row) => {
                bank.dirty = true;
                bank.next_row = bank.next_row.max(data_end);
            }
            (true, WriteCost::Recovery) => {
                bank.dirty = true;
                bank.next_row = bank.next_row.max(data_end + memory.t_wr);
            }
        }
        bank.counts.writes += u64::from(owner.write);
        let freed = bank.next_column;
        let (from, to) = bank.count_busy(owner.since, freed);
        self.timeline.add(owner.bank, from, to);
        let written = match (owner.write, memory.cost) {
            (true, WriteCost::Recovery) => data_end + memory.t_wr,
            _ => end,
        };
        self.works_until = self.works_until.max(written).max(to);
        end
    }
}
