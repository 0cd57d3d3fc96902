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
//! Refresh: from each multiple of `t_refi` on no bank is given away until none is owned. Then every open row is closed (as soon as it may be; `t_rp`, and where rows
//! are what is written, `t_wr` before that for a dirty one, `at_once` of them at one time), and when the last one is closed nothing is served for `t_rfc`.
//!
//! At one instant arrivals come first, then a refresh, then column commands, and then banks are given away, all that can be at once; again, until
//! nothing more happens.
//!
//! # Not modelled
//! But for `first_ready`: the command bus and limits on activations (tFAW, tRRD). Bank groups, errors and retries. Time
//! for arbitration.
//!
//! # Cost
//! O(requests queued for the bank) per command. O(queue) with `fcfs`, `first_ready`, queues of banks, pausing, more than 64 banks, and where a limit on
//! writes at once holds for what is being served.

mod admission;
mod by_bank;
mod candidate;
mod claiming;
mod columns;
mod first_ready;
mod owners;
mod pausing;
mod queue;
mod refreshing;

use std::collections::VecDeque;

use by_bank::ByBank;
use candidate::Candidate;
use owners::{Owner, Owners};
use queue::Queue;

use crate::address::Place;
use crate::bank::{Bank, CLOSED};
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
    /// Whether the first that waits may find a place: it is new, or one was given up since it was looked at.
    place_freed: bool,
    /// In the order of acceptance.
    reads: Queue,
    /// The write buffer, or empty where writes share the queue.
    writes: Queue,
    /// The queues of all banks in one, in the order in which they were filled.
    staged: Queue,
    staged_of: Vec<u32>,
    owners: Owners,
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
            place_freed: false,
            reads: Queue::new(banks),
            writes: Queue::new(banks),
            staged: Queue::new(banks),
            staged_of: vec![0; banks],
            owners: Owners::new(),
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

    /// Whether it is the next to have a place: there is nothing to do for one that waits behind others.
    #[inline]
    pub fn arrive(&mut self, access: Access) -> bool {
        self.waiting.push_back(access);
        let is_next = self.waiting.len() == 1;
        self.place_freed |= is_next;
        is_next
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
        if !self.writing.is_empty() {
            self.writing.retain(|&end| end > now);
        }
        loop {
            if self.place_freed {
                self.admit(memory, now, done);
            }
            while self.stage(memory) {
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
            // What was admitted has been seen by all that follows it.
            if !(refreshed || paused || claimed) {
                return self.next_wake(memory, now);
            }
        }
    }

    /// Whether the write buffer is what is being served.
    fn serves_writes(&self, memory: &Memory) -> bool {
        let reads_wait = !self.reads.is_empty() || !self.staged.is_empty();
        self.draining || (self.posted && !reads_wait && (memory.when_idle || self.flush))
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
                let power = self.power_from();
                wake = wake.min(if free > now { free } else { power });
            }
        }
        wake
    }
}
