//! The controller of one channel: a queue, a write buffer, banks and the data bus.
//!
//! # Model
//! Requests arrive in order and wait until the queue (reads, and writes where there is no write buffer) or the write buffer has a place;
//! one that waits holds up those behind it. A request in the queue waits until the scheduler gives it its bank, which then precharges
//! (closing takes `t_rp`, after `t_rtp` from the last read's column command and, by write cost, the write), activates (`t_rcd`) and
//! is ready for the column command. That goes out when the data bus is free for the data `t_cl` (`t_cwl`) later, and ends the bank's
//! work for the request; the next column command to the bank may follow after `t_ccd`.
//!
//! With a write buffer writes are posted: done when they have a place in it. A write of a line that waits there replaces it; a
//! read of one is answered from it after `t_cl + t_burst`, without bank or bus. Reads have priority. From the high mark on writes are
//! served alone (a drain), until the low mark; besides, writes are served while no read is queued (`when_idle`).
//!
//! With `at_once`, a write starts only while fewer are being written to the cells. With `pause_step`, a read for a bank that
//! writes to its cells ends the write at the next multiple of the step, outside drains; the rest is written when the bank has no queued
//! read, and before any other write to it.
//!
//! With `bank_queue` a request goes on from the queue, or the write buffer while that is served, to the queue of its bank as soon as there is a place,
//! in the order of arrival, past those whose bank has none; its place is free then, a write has left the buffer, and the scheduler chooses
//! in the queues of banks only, reads and writes alike.
//!
//! With `place_until = "bank"` a request leaves its place in the queue, or the write buffer, to the next one as soon as it has its bank.
//!
//! With `look_ahead` a bank is given away as soon as the column command of the request before is out, not only when it can take the next command.
//!
//! With `t_wtr` no read's column command goes out until that long after the data of a write have ended, in the whole channel; with `t_rtw`
//! the data of a write start no earlier than that long after those of a read.
//!
//! Refresh: from each multiple of `t_refi` on no bank is given away until none is owned. Then every open row is closed (as soon as it may be; `t_rp`), and
//! when the last one is closed nothing is served for `t_rfc`.
//!
//! At one instant arrivals come first, then a refresh, then column commands, and then banks are given away, all that can be at once; again, until
//! nothing more happens.
//!
//! # Not modelled
//! But for `first_ready`: the command bus and limits on activations (tFAW, tRRD). Bank groups, errors and retries. Writing a dirty
//! row back before a refresh is not charged. Time for arbitration.
//!
//! # Cost
//! O(queue) per command.

mod admission;
mod by_bank;
mod candidate;
mod first_ready;
mod pausing;
mod refreshing;

use std::collections::VecDeque;

use by_bank::ByBank;
use candidate::Candidate;

use crate::address::Place;
use crate::bank::{Bank, CLOSED};
use crate::memory::WriteCost;
use crate::schedule::Scheduler;
use crate::timeline::Timeline;
use crate::{Memory, Ps};

/// What the controller is asked.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Comes back with the completion.
    pub tag: u64,
    pub arrived: Ps,
    pub write: bool,
    /// The address of the line, without the bits inside it.
    pub line: u64,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub tag: u64,
    pub at: Ps,
    pub arrived: Ps,
    pub write: bool,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    sequence: u64,
    tag: u64,
    arrived: Ps,
    write: bool,
    owns: bool,
    /// Whether it was counted as hit, miss or conflict, by `first_ready`.
    is_counted: bool,
    bank: u32,
    row: u32,
    line: u64,
}

/// A request that owns its bank.
#[derive(Clone, Copy, Debug)]
struct Owner {
    sequence: u64,
    bank: u32,
    row: u32,
    write: bool,
    /// Earliest column command.
    ready: Ps,
    since: Ps,
}

/// What the channel has done besides what its banks count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub from_buffer: u64,
    pub replaced: u64,
    pub drains: u64,
    /// Rows that were closed before the request was served that had opened them.
    pub closed_unserved: u64,
    pub refreshes: u64,
    pub bus_busy: Ps,
    /// How long requests waited before they had a place, added up: reads, writes.
    pub held: [u128; 2],
}

#[derive(Debug)]
pub struct Channel {
    pub banks: Vec<Bank>,
    pub counts: Counts,
    pub timeline: Timeline,
    /// Whether writes are posted into a write buffer.
    posted: bool,
    waiting: VecDeque<Access>,
    /// In the order of acceptance.
    reads: Vec<Queued>,
    /// The write buffer, or empty where writes share the queue.
    writes: Vec<Queued>,
    /// The queues of all banks in one, in the order in which they were filled.
    staged: Vec<Queued>,
    staged_of: Vec<u32>,
    owners: Vec<Owner>,
    /// The earliest `ready` of owners that read, and of those that write; not kept for `first_ready`.
    soonest: [Ps; 2],
    /// Ends of the writes to the cells that are under way.
    writing: Vec<Ps>,
    /// When the last data are over, every bank is free of its request and the last write to the cells ends that has started.
    pub works_until: Ps,
    bus_free: Ps,
    /// When the command bus is free, for `first_ready`.
    command_free: Ps,
    /// The last four activations, and the earliest next precharge, for `first_ready`.
    opened: [Option<Ps>; 4],
    close_from: Ps,
    /// Earliest next column commands after a change between reads and writes.
    read_from: Ps,
    write_from: Ps,
    draining: bool,
    next_refresh: Ps,
    sequence: u64,
    /// No bank can be given away before.
    claims_from: Ps,
    /// How banks are given away where no decision on one depends on another.
    by_bank: ByBank,
    candidates: Vec<Candidate>,
    place_of: Vec<u32>,
    flush: bool,
}

/// What the scheduler chooses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Reads,
    Writes,
    Staged,
}

const NOWHERE: u32 = u32::MAX;

impl Channel {
    pub fn new(memory: &Memory) -> Self {
        let banks = memory.banks_per_channel();
        Channel {
            banks: vec![Bank::new(); banks],
            counts: Counts::default(),
            timeline: Timeline::new(banks),
            posted: memory.buffer > 0,
            waiting: VecDeque::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            staged: Vec::new(),
            staged_of: vec![0; banks],
            owners: Vec::new(),
            soonest: [Ps::MAX; 2],
            writing: Vec::new(),
            works_until: 0,
            bus_free: 0,
            command_free: 0,
            opened: [None; 4],
            close_from: 0,
            read_from: 0,
            write_from: 0,
            draining: false,
            next_refresh: memory.refresh.map_or(Ps::MAX, |(every, _)| every),
            sequence: 0,
            claims_from: 0,
            by_bank: ByBank::new(memory),
            candidates: Vec::new(),
            place_of: vec![NOWHERE; banks],
            flush: false,
        }
    }

    pub fn arrive(&mut self, access: Access) {
        self.waiting.push_back(access);
    }

    /// From now on buffered writes go to the banks whenever no read waits: nothing more will arrive.
    pub fn flush(&mut self) {
        self.flush = true;
        self.look_at_all();
    }

    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
            && self.reads.is_empty()
            && self.writes.is_empty()
            && self.staged.is_empty()
            && self.banks.iter().all(|bank| bank.paused.is_none())
    }

    /// Requests that wait for a place, and those in the queue and the write buffer.
    pub fn depth(&self) -> (usize, usize, usize) {
        (
            self.waiting.len(),
            self.reads.len() + self.staged.len(),
            self.writes.len(),
        )
    }

    /// Does what can be done at `now`; the time at which there may be more to do.
    pub fn step(&mut self, memory: &Memory, now: Ps, done: &mut Vec<Done>) -> Ps {
        self.writing.retain(|&end| end > now);
        loop {
            let mut admitted = self.admit(memory, now, done);
            while self.stage(memory) {
                admitted = true;
                self.admit(memory, now, done);
            }
            let refreshed = self.refresh(memory, now);
            let by_command = matches!(memory.scheduler, Scheduler::FirstReady { .. });
            let sent = !by_command && self.columns(memory, now, done);
            if sent {
                continue;
            }
            let paused = memory.pause_step > 0 && self.pause_and_resume(memory, now);
            let claimed = if by_command {
                self.first_ready(memory, now, done)
            } else if self.claims_from > now {
                false
            } else if self.goes_by_bank(memory) {
                self.claims_by_bank(memory, now)
            } else {
                self.claims(memory, now)
            };
            if !(admitted || refreshed || paused || claimed) {
                return self.next_wake(memory, now);
            }
        }
    }

    /// Whether the write buffer is what is being served.
    fn serves_writes(&self, memory: &Memory) -> bool {
        let reads_wait = !self.reads.is_empty() || !self.staged.is_empty();
        self.draining || (self.posted && !reads_wait && (memory.when_idle || self.flush))
    }

    /// Sends the column command of the oldest owner that is ready, if the bus will be free for its data.
    fn columns(&mut self, memory: &Memory, now: Ps, done: &mut Vec<Done>) -> bool {
        if self.next_column(memory) > now {
            return false;
        }
        let mut oldest: Option<usize> = None;
        for (index, owner) in self.owners.iter().enumerate() {
            let can = self.column_from(memory, owner) <= now;
            if can && oldest.is_none_or(|o| owner.sequence < self.owners[o].sequence) {
                oldest = Some(index);
            }
        }
        let Some(index) = oldest else {
            return false;
        };
        self.send(memory, now, index, done);
        true
    }

    /// Sends the column command of an owner.
    fn send(&mut self, memory: &Memory, now: Ps, index: usize, done: &mut Vec<Done>) {
        let owner = self.owners.swap_remove(index);
        let alike = self.owners.iter().filter(|other| other.write == owner.write);
        self.soonest[usize::from(owner.write)] = alike.map(|other| other.ready).min().unwrap_or(Ps::MAX);
        let list = if memory.bank_queue > 0 {
            self.staged_of[owner.bank as usize] -= 1;
            &mut self.staged
        } else if owner.write && self.posted {
            &mut self.writes
        } else {
            &mut self.reads
        };
        let at = list.partition_point(|queued| queued.sequence < owner.sequence);
        let request = list.remove(at);
        debug_assert!(request.sequence == owner.sequence);
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
        let end = self.after_column(memory, owner, request.row, now, data_end);
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
    fn next_column(&self, memory: &Memory) -> Ps {
        let gate = |write: bool, turned: Ps| {
            let bus = self.bus_free.saturating_sub(memory.column_latency(write));
            self.soonest[usize::from(write)].max(bus).max(turned)
        };
        gate(false, self.read_from).min(gate(true, self.write_from))
    }

    /// Earliest column command of an owner, by its bank, the data bus and the turning of the bus.
    fn column_from(&self, memory: &Memory, owner: &Owner) -> Ps {
        let bus = self.bus_free.saturating_sub(memory.column_latency(owner.write));
        let turned = if owner.write { self.write_from } else { self.read_from };
        owner.ready.max(bus).max(turned)
    }

    /// What a column command means for its bank; when the request is done.
    fn after_column(&mut self, memory: &Memory, owner: Owner, row: u32, now: Ps, data_end: Ps) -> Ps {
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
                bank.wear_out(row);
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

    /// Gives free banks to queued requests; sets `claims_from`.
    fn claims(&mut self, memory: &Memory, now: Ps) -> bool {
        self.claims_from = Ps::MAX;
        if now >= self.next_refresh {
            return false;
        }
        let class = self.class(memory);
        self.gather(class, memory.scheduler == Scheduler::Fcfs);
        let mut any = false;
        for index in 0..self.candidates.len() {
            let candidate = self.candidates[index];
            self.place_of[candidate.bank as usize] = NOWHERE;
            let bank = &self.banks[candidate.bank as usize];
            let (at, hit, passes) = candidate.chosen(memory.scheduler, bank.passed);
            let from = if hit { bank.next_column } else { bank.next_row };
            if from > now && !memory.look_ahead {
                self.claims_from = self.claims_from.min(from);
                continue;
            }
            let request = self.list(class)[at as usize];
            let closes_dirty = !hit && bank.dirty && memory.cost == WriteCost::Row;
            let writes_cells = closes_dirty || (request.write && memory.cost == WriteCost::Line);
            if writes_cells && !has_power(memory, &self.writing, &self.owners) {
                let first = self.writing.iter().copied().min().unwrap_or(Ps::MAX);
                self.claims_from = self.claims_from.min(first);
                continue;
            }
            self.claim(memory, request, hit, passes, now.max(from));
            self.list_mut(class)[at as usize].owns = true;
            any = true;
        }
        self.candidates.clear();
        any
    }

    /// What the scheduler chooses from now.
    fn class(&self, memory: &Memory) -> Class {
        match (memory.bank_queue > 0, self.serves_writes(memory)) {
            (true, _) => Class::Staged,
            (false, true) => Class::Writes,
            (false, false) => Class::Reads,
        }
    }

    fn list_mut(&mut self, class: Class) -> &mut Vec<Queued> {
        match class {
            Class::Reads => &mut self.reads,
            Class::Writes => &mut self.writes,
            Class::Staged => &mut self.staged,
        }
    }

    fn list(&self, class: Class) -> &[Queued] {
        match class {
            Class::Reads => &self.reads,
            Class::Writes => &self.writes,
            Class::Staged => &self.staged,
        }
    }

    fn claim(&mut self, memory: &Memory, request: Queued, hit: bool, passes: bool, now: Ps) {
        let bank = &mut self.banks[request.bank as usize];
        let mut ready = now;
        if hit {
            bank.counts.hits += 1;
            bank.passed = if passes { bank.passed + 1 } else { 0 };
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
        let soonest = &mut self.soonest[usize::from(request.write)];
        *soonest = (*soonest).min(ready);
        self.owners.push(Owner {
            sequence: request.sequence,
            bank: request.bank,
            row: request.row,
            write: request.write,
            ready,
            since: now,
        });
    }

    fn next_wake(&self, memory: &Memory, now: Ps) -> Ps {
        let mut wake = if self.reads.is_empty() && self.writes.is_empty() && self.staged.is_empty() {
            Ps::MAX
        } else {
            self.claims_from
        };
        if !matches!(memory.scheduler, Scheduler::FirstReady { .. }) {
            wake = wake.min(self.next_column(memory));
        }
        if now < self.next_refresh {
            wake = wake.min(self.next_refresh);
        }
        if memory.pause_step > 0 {
            for bank in self.banks.iter().filter(|bank| bank.paused.is_some()) {
                let free = bank.next_column.max(bank.next_row);
                let power = self.writing.iter().copied().min().unwrap_or(Ps::MAX);
                wake = wake.min(if free > now { free } else { power });
            }
        }
        wake
    }
}

/// Whether one more write to the cells may start.
fn has_power(memory: &Memory, writing: &[Ps], owners: &[Owner]) -> bool {
    if memory.at_once == 0 {
        return true;
    }
    let about_to = match memory.cost {
        WriteCost::Line => owners.iter().filter(|owner| owner.write).count(),
        WriteCost::Row | WriteCost::Recovery => 0,
    };
    writing.len() + about_to < memory.at_once as usize
}
