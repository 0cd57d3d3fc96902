//! Runs: one entry of the arena for the many reads, or the many programs, of a collection.
//!
//! # Why
//! A collection reads the live pages of a block and programs them elsewhere: hundreds of operations that are issued at one
//! instant and carried out one by one. With an entry each they would be written, started and completed at three distant
//! times. A run is one entry that shows the member that is next; what the others need lies in a list of a few bytes each.
//! Nothing else changes: members have ids and places in the order of issue as if each had an entry.
//!
//! # Reads
//! Pages of one block that wait for nothing, issued at one instant with nothing else for their die in between. All are ready at
//! once and next to each other in the ready queue, so they start, leave the die and complete in order of issue. The entry
//! stays in the queue until the last has started.
//!
//! # Programs
//! Pages of one block, in order. Each waits for the one before it and for at most one other operation: the last of those
//! that bring its data (members of one run of reads complete in order). When one completes, the entry shows the next one,
//! which is then ready or waits for its data.
//!
//! # Ids
//! Member *n* has the generation of the first plus *n*. The entry's own generation counts the members that have completed.
//!
//! # What is no run
//! Operations that somebody waits for by a ticket or a notice; programs whose data comes from several dies; a drive with
//! multi-plane commands, where operations leave their queues out of order; times of nothing.

use ftlab_ftl::{FlashOp, FlashOpKind, OpId};

use super::Timed;
use super::ops::{Dependency, Kind, NONE, Op, State};
use super::places::Place;
use super::table::Table;

/// A read of a run.
#[derive(Clone, Copy)]
pub(super) struct Fetch {
    pub page: u32,
    pub bytes: u32,
    pub page_in_block: u16,
}

/// A program of a run.
#[derive(Clone, Copy)]
pub(super) struct Store {
    /// Brings its data; `OpId::DONE` if that is there.
    pub data: OpId,
    pub sequence: u32,
}

pub(super) struct Run<M> {
    pub members: Vec<M>,
    /// The member that the entry shows.
    pub at: usize,
    /// Generation of the first member.
    pub generation: u32,
}

/// All runs of reads, or of programs.
pub(super) struct Runs<M> {
    pub each: Table<Run<M>>,
    free: Vec<u32>,
}

impl<M> Runs<M> {
    pub fn new() -> Self {
        Runs {
            each: Table::new(),
            free: Vec::new(),
        }
    }

    fn begin(&mut self, first: M, generation: u32) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.each.push(Run {
                members: Vec::new(),
                at: 0,
                generation: 0,
            })
        });
        let run = &mut self.each[number as usize];
        run.members.clear();
        run.members.push(first);
        (run.at, run.generation) = (0, generation);
        number
    }

    fn end(&mut self, number: u32) {
        self.free.push(number);
    }

    pub fn clear(&mut self) {
        self.free.clear();
        self.free.extend(0..self.each.len() as u32);
    }
}

// Issuing.
impl Timed {
    /// Makes the new entry a run of reads, of which it is the first.
    pub(super) fn begin_reads(&mut self, index: u32) {
        let op = self.ops.at_mut(index);
        let first = Fetch {
            page: op.page,
            bytes: op.bytes,
            page_in_block: op.page_in_block,
        };
        op.kind = Kind::Reads;
        op.notice = self.reads.begin(first, op.generation);
        let die = &mut self.dies[usize::from(op.die)];
        die.reads = index;
    }

    /// Makes the new entry a run of programs, of which it is the first.
    pub(super) fn begin_programs(&mut self, index: u32) {
        let op = self.ops.at_mut(index);
        let first = Store {
            data: OpId::DONE,
            sequence: op.sequence,
        };
        op.kind = Kind::Programs;
        op.notice = self.programs.begin(first, op.generation);
    }

    /// Adds a read to the last run of its die, if it belongs there.
    #[inline]
    pub(super) fn add_to_reads(&mut self, flash: &FlashOp, place: Place) -> Option<OpId> {
        let die = &mut self.dies[usize::from(place.die)];
        let index = die.reads;
        if index == NONE {
            return None;
        }
        let op = self.ops.at_mut(index);
        let fits = op.block == place.block
            && op.cause == flash.cause
            && op.ready_ns == self.now
            && op.left < u16::MAX
            && die.is_last(flash.class, index);
        if !fits || !self.blocks.holds(place.block, place.page) {
            return None;
        }
        let id = OpId {
            index,
            generation: op.generation.wrapping_add(u32::from(op.left)),
        };
        op.left += 1;
        die.queued += 1;
        die.internal += 1;
        self.reads.each[op.notice as usize].members.push(Fetch {
            page: flash.page,
            bytes: flash.bytes,
            page_in_block: place.page,
        });
        self.ops.skip_sequence();
        Some(id)
    }

    /// Adds a program to the run that is the last of its block, if it belongs there.
    #[inline]
    pub(super) fn add_to_programs(&mut self, flash: &FlashOp, place: Place, after: &[OpId]) -> Option<OpId> {
        let index = self.blocks.last(place.block)?;
        let op = self.ops.at(index);
        let fits = op.kind == Kind::Programs
            && op.cause == flash.cause
            && op.bytes == flash.bytes
            && op.left < u16::MAX
            && place.page == op.page_in_block + op.left;
        let data = if fits { self.last_of(after)? } else { return None };
        self.blocks.add_program(place.block, place.page);
        let sequence = self.ops.skip_sequence();
        let op = self.ops.at_mut(index);
        let id = OpId {
            index,
            generation: op.generation.wrapping_add(u32::from(op.left)),
        };
        op.left += 1;
        self.programs.each[op.notice as usize]
            .members
            .push(Store { data, sequence });
        self.programs_outstanding += 1;
        let die = &mut self.dies[usize::from(place.die)];
        die.queued += 1;
        die.internal += 1;
        if data == OpId::DONE {
            die.reads = NONE;
        }
        Some(id)
    }

    /// The one operation whose completion means that all of `after` have; none if there is no such one.
    #[inline]
    fn last_of(&self, after: &[OpId]) -> Option<OpId> {
        let mut last = OpId::DONE;
        for &id in after {
            let Some(index) = self.ops.live(id) else { continue };
            if last == OpId::DONE {
                last = id;
            } else if last.index != index || self.ops.at(index).kind != Kind::Reads {
                return None;
            } else if (id.generation.wrapping_sub(last.generation) as i32) > 0 {
                last = id;
            }
        }
        Some(last)
    }
}

// Completing.
impl Timed {
    /// The read that the entry shows has left its die: it shows the next one.
    #[inline(always)]
    pub(super) fn show_next_read(&mut self, index: u32) {
        let op = self.ops.at_mut(index);
        let run = &mut self.reads.each[op.notice as usize];
        run.at += 1;
        if let Some(next) = run.members.get(run.at) {
            op.page = next.page;
            op.bytes = next.bytes;
            op.page_in_block = next.page_in_block;
        }
    }

    /// A read of a run has completed: its waiters go on; with the last, its block.
    #[inline(always)]
    pub(super) fn finish_read(&mut self, index: u32) {
        let op = self.ops.at_mut(index);
        let (generation, waited_for) = (op.generation, op.edges != NONE);
        self.counts.ops[FlashOpKind::Read as usize][op.cause as usize] += 1;
        self.dies[usize::from(op.die)].has_copied(self.now);
        if op.left == 1 {
            return self.finish_last(index);
        }
        if self.observer.is_some() {
            self.report_member_done(index);
        }
        if waited_for {
            self.step_waiters(index, generation);
        }
        let op = self.ops.at_mut(index);
        op.generation = generation.wrapping_add(1);
        op.left -= 1;
    }

    /// A program of a run has completed: its waiters go on, and the next one is shown.
    #[inline(always)]
    pub(super) fn finish_program(&mut self, index: u32) {
        let op = self.ops.at_mut(index);
        let (generation, waited_for) = (op.generation, op.edges != NONE);
        self.counts.ops[FlashOpKind::Program as usize][op.cause as usize] += 1;
        self.dies[usize::from(op.die)].has_copied(self.now);
        self.programs_outstanding -= 1;
        if op.left == 1 {
            return self.finish_last(index);
        }
        self.blocks.has_programmed(op);
        if self.observer.is_some() {
            self.report_member_done(index);
        }
        if waited_for {
            self.step_waiters(index, generation);
        }
        let op = self.ops.at_mut(index);
        op.generation = generation.wrapping_add(1);
        op.left -= 1;
        self.show_next_program(index);
    }

    /// The last member has completed: so has the run.
    #[inline(never)]
    fn finish_last(&mut self, index: u32) {
        let op = self.ops.at_mut(index);
        op.state = State::Done;
        let generation = op.generation;
        if let Some(erase) = self.blocks.leave(&self.ops, index) {
            self.step(erase, Dependency::Order, index);
        }
        if self.observer.is_some() {
            self.report_member_done(index);
        }
        self.step_waiters(index, generation);
        self.end_run(index);
    }

    #[inline(never)]
    fn step_waiters(&mut self, index: u32, generation: u32) {
        while let Some((waiter, dependency)) = self.ops.disconnect_member(index, generation) {
            self.step(waiter, dependency, index);
        }
    }

    fn end_run(&mut self, index: u32) {
        if let Some((waiter, dependency)) = self.ops.take_first(index) {
            self.step(waiter, dependency, index);
        }
        let op = self.ops.at(index);
        match op.kind {
            Kind::Reads => self.reads.end(op.notice),
            _ => self.programs.end(op.notice),
        }
        self.ops.release(index);
    }

    #[inline(always)]
    fn show_next_program(&mut self, index: u32) {
        let op = self.ops.at_mut(index);
        let run = &mut self.programs.each[op.notice as usize];
        run.at += 1;
        let Store { data, sequence } = run.members[run.at];
        // Pages of a block are as far apart as their reclaim unit is wide.
        op.page += self.width;
        op.page_in_block += 1;
        op.sequence = sequence;
        op.state = State::Waiting;
        match self.ops.live(data) {
            None => self.make_ready(index),
            Some(source) => {
                self.ops.at_mut(index).inputs = 1;
                self.ops.connect(source, data.generation, index, Dependency::Input);
            }
        }
    }

    /// What brings the data of `page`, which a run of programs carries but does not show yet; none if it is there.
    pub(super) fn data_of(&self, program: u32, page: u16) -> Option<OpId> {
        let op = self.ops.at(program);
        let run = &self.programs.each[op.notice as usize];
        let data = run.members[run.at + usize::from(page - op.page_in_block)].data;
        self.ops.live(data).map(|_| data)
    }

    /// Pages that a run of programs has still to program, with their places in the order of issue; the first is the one shown.
    pub(super) fn stores_left(&self, op: &Op) -> impl Iterator<Item = (u32, u32)> + use<'_> {
        let run = &self.programs.each[op.notice as usize];
        let (first, width) = (op.page, self.width);
        let left = run.members[run.at..].iter().enumerate();
        left.map(move |(n, member)| (first + n as u32 * width, member.sequence))
    }

    /// The id of the operation that an entry shows.
    pub(super) fn id_of_shown(&self, index: u32) -> OpId {
        let op = self.ops.at(index);
        let run = op.notice as usize;
        let generation = match op.kind {
            Kind::Reads => self.reads.each[run]
                .generation
                .wrapping_add(self.reads.each[run].at as u32),
            _ => op.generation,
        };
        OpId { index, generation }
    }

    /// Id and page of the first member that has not completed. Of a run of reads it may have left the die.
    pub(super) fn oldest_member(&self, index: u32) -> (OpId, u32) {
        let op = self.ops.at(index);
        let page = match op.kind {
            Kind::Reads => {
                let members = &self.reads.each[op.notice as usize].members;
                members[members.len() - usize::from(op.left)].page
            }
            _ => op.page,
        };
        (self.ops.id(index), page)
    }
}
