//! The hardware's side: ends of phases, what dies ask for, and granting channels.

use ftlab_core::Part;
use ftlab_core::geometry::Divisor;
use ftlab_ftl::{Class, FlashOpKind};

use super::Timed;
use super::dies::{Batch, Doing};
use super::graph::path_of;
use super::observe::{Span, Subject};
use super::ops::{Kind, NONE, Op, State};
use super::ranks::{INTERNAL, bit};
use crate::schedule::Phase;

/// Operations at the head of a ready queue among which partners for a multi-plane operation are sought.
pub const MERGE_WINDOW: u32 = 16;

impl Timed {
    /// The event of `source` happens now.
    #[inline(always)]
    pub(super) fn happen(&mut self, source: usize) {
        if source < self.dies.len() {
            self.end_phase(source as u16);
        } else {
            self.happen_elsewhere(source);
        }
    }

    /// The event of a channel, of the decoder, of the timers or of the engines.
    #[inline(never)]
    fn happen_elsewhere(&mut self, source: usize) {
        if source < self.decoding_source() {
            self.mark_channel((source - self.dies.len()) as u32);
        } else if source == self.decoding_source() {
            if let Some((_, index)) = self.decoding.pop_front() {
                if let Some(&(next, _)) = self.decoding.front() {
                    self.agenda.push(source, next);
                }
                self.charge_op(index, Part::Flash);
                self.complete(index);
            }
        } else if source != self.timer_source() {
            self.end_work();
        } else {
            if let Some((_, slot)) = self.timers.pop_due(self.now) {
                self.timer_free.push(slot);
                let notice = self.timer_notices[slot as usize];
                self.raised.push(super::Event::Notice(notice));
            }
            if let Some(next) = self.timers.next_time() {
                self.agenda.push(source, next);
            }
        }
    }

    /// The phase of `die` ends now. Most are those of reads: two comparisons are easier to foresee than a table of jumps.
    #[inline(always)]
    fn end_phase(&mut self, number: u16) {
        let doing = self.dies[usize::from(number)].doing;
        if doing == Doing::Sending {
            self.end_sending(number);
        } else if doing == Doing::Sensing {
            self.end_sensing(number);
        } else {
            self.end_change(number);
        }
    }

    /// The cells have been read: their data goes out at once, or waits for the channel.
    #[inline(always)]
    fn end_sensing(&mut self, number: u16) {
        let now = self.now;
        let die = &mut self.dies[usize::from(number)];
        die.doing = Doing::Holding;
        let (channel, wish) = (die.channel, die.wish);
        let alone = !self.has_dirty() && self.agenda.next_time() > now;
        if alone && self.channels.is_idle(channel, now) {
            let duration = self.send(number);
            self.channels.occupy(channel, now, duration);
        } else {
            let rank = self.ranks.channel[Phase::DataOut as usize];
            self.channels.wish(channel, wish, rank, now);
            if alone && !self.channels.can_grant(channel, now) {
                self.wake_when_free(channel);
            } else {
                self.mark_channel(channel);
            }
        }
    }

    #[inline(never)]
    fn end_change(&mut self, number: u16) {
        let die = &self.dies[usize::from(number)];
        match die.doing {
            Doing::Changing => self.end_changing(number),
            Doing::Suspending => {
                let index = die.batch.first;
                self.release_die(number, index);
            }
            doing => unreachable!("die {number} has no event while {doing:?}"),
        }
    }

    /// The data of the first operation of a batch of reads is out.
    #[inline(always)]
    fn end_sending(&mut self, number: u16) {
        let now = self.now;
        let die = &mut self.dies[usize::from(number)];
        let batch = &mut die.batch;
        let index = batch.first;
        let op = self.ops.at_mut(index);
        if op.ticket != NONE {
            let transfer = self.transfers.ns(op.bytes) + batch.command_ns;
            let path = path_of(op, index, &mut self.paths, &mut self.tickets);
            path.leave(now, batch.cell_ns, transfer);
        }
        // The entry of a run may be in its ready queue: only operations of several planes are linked.
        let next = match batch.count {
            1 => NONE,
            _ => std::mem::replace(&mut op.next, NONE),
        };
        let kind = op.kind;
        if next == NONE {
            let channel = die.channel;
            self.release_die(number, index);
            self.mark_channel(channel);
        } else {
            batch.first = next;
            let bytes = self.ops.at(next).bytes;
            let end = now + self.transfers.ns(bytes);
            self.agenda.push_transfer(usize::from(number), end);
        }
        if kind == Kind::Reads {
            self.show_next_read(index);
        }
        if self.timing.ecc_ns == 0 {
            self.complete(index);
        } else {
            self.decode(index);
        }
    }

    /// A read has left its die and goes through the decoder.
    fn decode(&mut self, index: u32) {
        let op = self.ops.at_mut(index);
        if op.kind == Kind::Read {
            op.state = State::Decoding;
        }
        let done = self.now + self.timing.ecc_ns;
        if self.decoding.is_empty() {
            let source = self.decoding_source();
            self.agenda.push(source, done);
        }
        self.decoding.push_back((done, index));
    }

    /// The programs or erases of the die are done.
    #[inline(always)]
    fn end_changing(&mut self, number: u16) {
        let now = self.now;
        let first = self.dies[usize::from(number)].batch.first;
        self.release_die(number, first);
        let mut index = first;
        while index != NONE {
            let op = self.ops.at_mut(index);
            let next = std::mem::replace(&mut op.next, NONE);
            if op.ticket != NONE {
                let batch = &self.dies[usize::from(number)].batch;
                let mut transfer = batch.command_ns;
                if op.kind == Kind::Program {
                    transfer += self.transfers.ns(op.bytes);
                }
                self.paths[index as usize].leave(now, batch.cell_ns, transfer);
            }
            self.complete(index);
            index = next;
        }
    }

    fn charge_op(&mut self, index: u32, part: Part) {
        if self.ops.at(index).ticket != NONE {
            let now = self.now;
            self.path(index).charge(part, now);
        }
    }

    /// The die is free; its batch, of which `index` is one, is kept for those that complete now.
    #[inline(always)]
    fn release_die(&mut self, number: u16, index: u32) {
        let now = self.now;
        if self.observer.is_some() {
            self.report_hold(number, index);
        }
        let die = &mut self.dies[usize::from(number)];
        die.let_go(now);
        self.mark_die(number);
        if self.ranks.chip_exclusive {
            self.mark_chip(number);
        }
    }

    #[inline(always)]
    pub(super) fn mark_die(&mut self, number: u16) {
        let die = &mut self.dies[usize::from(number)];
        if !die.dirty {
            die.dirty = true;
            self.dirty_dies.push(u32::from(number));
        }
    }

    #[inline(always)]
    fn mark_channel(&mut self, number: u32) {
        let channel = &mut self.channels.each[number as usize];
        if !channel.dirty {
            channel.dirty = true;
            self.dirty_channels.push(number);
        }
    }

    /// Numbers of the dies that share a chip with `number`, itself included.
    fn chip_of(&self, number: u16) -> impl Iterator<Item = u16> + use<> {
        // die = channel + channels · (way + ways · die in chip)
        let (step, count) = (self.channels.each.len() * self.ways, self.dies.len());
        (usize::from(number) % step..count).step_by(step).map(|n| n as u16)
    }

    fn mark_chip(&mut self, number: u16) {
        for sibling in self.chip_of(number) {
            self.mark_die(sibling);
        }
    }

    fn chip_is_busy(&self, number: u16) -> bool {
        self.chip_of(number)
            .any(|n| self.dies[usize::from(n)].doing != Doing::Idle)
    }

    /// Starts whatever can start now.
    #[inline(always)]
    pub(super) fn dispatch(&mut self) {
        // The usual case: a die has ended something, and nobody else has.
        if let Some(number) = self.dirty_dies.only() {
            self.dirty_dies.clear();
            self.dies[number as usize].dirty = false;
            self.reconsider(number as u16);
        } else {
            self.reconsider_all();
        }
        match self.dirty_channels.only() {
            // The only one is busy, or nobody waits for it.
            Some(number) if !self.channels.can_grant(number, self.now) => {
                self.dirty_channels.clear();
                self.channels.each[number as usize].dirty = false;
                self.wake_when_free(number);
            }
            None if self.dirty_channels.count() == 0 => {}
            _ => self.arbitrate_all(),
        }
    }

    #[inline(never)]
    fn reconsider_all(&mut self) {
        while let Some(number) = self.dirty_dies.pop() {
            self.dies[number as usize].dirty = false;
            self.reconsider(number as u16);
        }
    }

    #[inline(never)]
    fn arbitrate_all(&mut self) {
        while let Some(number) = self.dirty_channels.pop() {
            self.channels.each[number as usize].dirty = false;
            self.arbitrate(number);
        }
    }

    /// What does this die want now? Asks its channel, suspends or resumes.
    #[inline(always)]
    fn reconsider(&mut self, number: u16) {
        let die = &self.dies[usize::from(number)];
        match die.doing {
            Doing::Idle => {}
            Doing::Changing if self.ranks.suspend => return self.consider_suspending(number),
            _ => return,
        }
        let class = if self.ranks.chip_exclusive && die.ready != 0 && self.chip_is_busy(number) {
            None
        } else {
            die.select(&self.ops, &self.ranks)
        };
        let die = &mut self.dies[usize::from(number)];
        let (channel, wish) = (die.channel, die.wish);
        let Some(class) = class else {
            self.channels.withdraw(channel, wish);
            if die.parked.is_some() {
                self.resume(number);
            }
            return;
        };
        die.choice = class;
        // With no other decision to make at this instant, the die is granted the channel without asking.
        let alone = self.dirty_dies.count() == 0
            && (self.dirty_channels.count() == 0 || self.dirty_channels.only() == Some(channel));
        if alone && self.channels.is_idle(channel, self.now) {
            if self.dirty_channels.pop().is_some() {
                self.channels.each[channel as usize].dirty = false;
            }
            let duration = self.start(number);
            return self.channels.occupy(channel, self.now, duration);
        }
        let head = self.ops.at(die.head(class));
        let phase = match head.kind {
            Kind::Read | Kind::Reads => Phase::ReadCommand,
            Kind::Program | Kind::Programs => Phase::Program,
            _ => Phase::Erase,
        };
        let rank = self.ranks.channel[phase as usize];
        self.channels.wish(channel, wish, rank, head.ready_ns);
        self.mark_channel(channel);
    }

    /// Grants the channel while it is free and somebody waits.
    #[inline]
    fn arbitrate(&mut self, number: u32) {
        let now = self.now;
        loop {
            let channel = &mut self.channels.each[number as usize];
            if channel.waiting == 0 {
                return;
            }
            if channel.busy_until_ns > now {
                return self.wake_when_free(number);
            }
            let place = self.channels.take_next(number);
            // die = channel + channels · place
            let die = (number as usize + self.channels.each.len() * place) as u16;
            let duration = match self.dies[usize::from(die)].doing {
                Doing::Holding => self.send(die),
                _ => self.start(die),
            };
            self.channels.occupy(number, now, duration);
        }
    }

    /// Somebody may wait for the channel, which is busy if so: it is looked at again when it is free.
    #[inline(always)]
    fn wake_when_free(&mut self, number: u32) {
        let channel = &mut self.channels.each[number as usize];
        let until = channel.busy_until_ns;
        if channel.waiting > 0 && std::mem::replace(&mut channel.woken_at_ns, until) != until {
            let source = self.channel_source(number);
            self.agenda.push_transfer(source, until);
        }
    }

    /// The die has the channel for its data. Returns for how long.
    #[inline(always)]
    fn send(&mut self, number: u16) -> u64 {
        let now = self.now;
        let die = &mut self.dies[usize::from(number)];
        die.doing = Doing::Sending;
        let (channel, first, count) = (die.channel, die.batch.first, die.batch.count);
        let first_ns = self.transfers.ns(self.ops.at(first).bytes);
        if self.observer.is_some() {
            self.report_transfer(channel, Phase::DataOut, first, now, first_ns);
        }
        let mut duration = first_ns;
        if count > 1 {
            duration += self.send_others(channel, first, now + first_ns);
        }
        self.agenda.push_transfer(usize::from(number), now + first_ns);
        // The die's last event comes when the channel is free again.
        self.channels.each[channel as usize].woken_at_ns = now + duration;
        duration
    }

    /// The data of those that are linked to `first` follows on the channel from `start_ns` on. Returns for how long.
    fn send_others(&mut self, channel: u32, first: u32, start_ns: u64) -> u64 {
        let mut duration = 0;
        let mut at = self.ops.at(first).next;
        while at != NONE {
            let op = self.ops.at(at);
            let (transfer, next) = (self.transfers.ns(op.bytes), op.next);
            if self.observer.is_some() {
                self.report_transfer(channel, Phase::DataOut, at, start_ns + duration, transfer);
            }
            duration += transfer;
            at = next;
        }
        duration
    }

    /// The die has the channel for a command and starts what it has chosen. Returns for how long it needs the channel.
    #[inline(always)]
    fn start(&mut self, number: u16) -> u64 {
        let now = self.now;
        let die = &mut self.dies[usize::from(number)];
        let class = die.choice;
        let first = die.head(class);
        let op = self.ops.at_mut(first);
        let after = op.next;
        let more_of_run = op.kind == Kind::Reads && {
            die.reads = NONE;
            let run = &self.reads.each[op.notice as usize];
            run.at + 1 < run.members.len()
        };
        if !more_of_run {
            op.next = NONE;
            op.state = State::Running;
            die.set_head(class, after);
        }
        let kind = op.kind.flash().unwrap_or(FlashOpKind::Read);
        let timing = &self.timing;
        let (command_ns, cell_ns) = match kind {
            FlashOpKind::Read => (
                timing.read_command_ns,
                cell_ns(&timing.read_ns, self.page_types, op.page_in_block),
            ),
            FlashOpKind::Program => (
                timing.program_command_ns,
                cell_ns(&timing.program_ns, self.page_types, op.page_in_block),
            ),
            FlashOpKind::Erase => (timing.erase_command_ns, timing.erase_ns),
        };
        let mut duration = command_ns;
        if kind == FlashOpKind::Program {
            duration += self.transfers.ns(op.bytes);
        }
        if op.ticket != NONE {
            let path = path_of(op, first, &mut self.paths, &mut self.tickets);
            path.start(now, die.gc_clock(now));
        }
        // What this one releases and what probably comes next are needed soon.
        let follower = op.successor;
        let internal = op.is_internal();
        self.ops.prefetch(after);
        self.ops.prefetch_waiter(follower);
        die.batch = Batch {
            first,
            count: 1,
            kind,
            class,
            internal,
            suspends: 0,
            command_ns,
            cell_ns,
        };
        if self.observer.is_some() {
            let (channel, phase) = (die.channel, die.batch.phase());
            self.report_transfer(channel, phase, first, now, duration);
        }
        if self.merges && after != NONE {
            duration += self.start_others(number, now + duration);
        }
        let die = &mut self.dies[usize::from(number)];
        if bit(class) & INTERNAL != 0 {
            die.overtaken = 0;
        } else if class == Class::HostWrite && die.ready & INTERNAL != 0 {
            die.overtaken = die.overtaken.saturating_add(1);
        }
        let until = now + duration + cell_ns;
        die.urged = false;
        die.cell_from_ns = now + duration;
        die.cell_until_ns = until;
        let reads = kind == FlashOpKind::Read;
        die.hold(if reads { Doing::Sensing } else { Doing::Changing }, now);
        self.agenda.push(usize::from(number), until);
        if self.ranks.chip_exclusive {
            self.withdraw_chip(number);
        }
        duration
    }

    /// What can run together with the first of the die's batch follows it on the channel from `start_ns` on. Returns for how long.
    #[inline(never)]
    fn start_others(&mut self, number: u16, start_ns: u64) -> u64 {
        let now = self.now;
        self.gather(number);
        let die = &mut self.dies[usize::from(number)];
        let (command_ns, gc_ns, channel) = (die.batch.command_ns, die.gc_clock(now), die.channel);
        let mut duration = 0;
        let mut at = self.ops.at(die.batch.first).next;
        while at != NONE {
            let die = &mut self.dies[usize::from(number)];
            let op = self.ops.at_mut(at);
            op.state = State::Running;
            die.batch.internal |= op.is_internal();
            let (mut transfer, next) = (command_ns, op.next);
            if die.batch.kind == FlashOpKind::Program {
                transfer += self.transfers.ns(op.bytes);
            }
            if op.ticket != NONE {
                path_of(op, at, &mut self.paths, &mut self.tickets).start(now, gc_ns);
            }
            if self.observer.is_some() {
                let phase = die.batch.phase();
                self.report_transfer(channel, phase, at, start_ns + duration, transfer);
            }
            duration += transfer;
            at = next;
        }
        let batch = &mut self.dies[usize::from(number)].batch;
        batch.command_ns *= u64::from(batch.count);
        duration
    }

    /// Takes what can run together with the first of the die's batch out of the ready queue.
    fn gather(&mut self, number: u16) {
        let die = &mut self.dies[usize::from(number)];
        let (first, class) = (die.batch.first, die.batch.class);
        let Op {
            kind, page_in_block, ..
        } = *self.ops.at(first);
        let mut last = first;
        let (mut before, mut at) = (NONE, die.head(class));
        for _ in 1..MERGE_WINDOW {
            if at == NONE || die.batch.count == self.planes {
                break;
            }
            let op = self.ops.at(at);
            let next = op.next;
            let plane = self.places.plane_of(op.block);
            let mut fits = op.kind == kind && (kind == Kind::Erase || op.page_in_block == page_in_block);
            let mut taken = first;
            while fits && taken != NONE {
                fits = self.places.plane_of(self.ops.at(taken).block) != plane;
                taken = self.ops.at(taken).next;
            }
            if fits {
                die.unlink(&mut self.ops, class, before, at);
                self.ops.at_mut(last).next = at;
                last = at;
                die.batch.count += 1;
                self.counts.merged += 1;
            } else {
                before = at;
            }
            at = next;
        }
    }

    /// The other dies of a chip that has become busy take no command.
    fn withdraw_chip(&mut self, number: u16) {
        for sibling in self.chip_of(number) {
            let die = &mut self.dies[usize::from(sibling)];
            if die.doing == Doing::Idle {
                self.channels.withdraw(die.channel, die.wish);
            }
        }
    }
}

/// Cell time of a page, whose type follows from its number.
#[inline(always)]
fn cell_ns(by_type: &[u64], types: Divisor, page: u16) -> u64 {
    match *by_type {
        [only] => only,
        _ => by_type[types.split(u32::from(page)).1 as usize],
    }
}

// Reports to the observer, when there is one.
impl Timed {
    fn subject(&self, index: u32) -> Option<Subject> {
        let op = self.ops.at(index);
        Some(Subject {
            id: self.id_of_shown(index),
            kind: op.kind.flash()?,
            class: op.class,
            cause: op.cause,
            page: op.page,
        })
    }

    #[cold]
    fn report_transfer(&mut self, channel: u32, phase: Phase, index: u32, start_ns: u64, duration: u64) {
        let subject = self.subject(index);
        if let (Some(observer), Some(subject)) = (&mut self.observer, subject) {
            let end_ns = start_ns + duration;
            observer.channel(channel, phase, &subject, Span { start_ns, end_ns });
        }
    }

    #[cold]
    fn report_hold(&mut self, number: u16, index: u32) {
        let die = &self.dies[usize::from(number)];
        let span = Span {
            start_ns: die.held_ns,
            end_ns: self.now,
        };
        let planes = die.batch.count;
        let subject = self.subject(index);
        if let (Some(observer), Some(subject)) = (&mut self.observer, subject) {
            observer.die(u32::from(number), &subject, planes, span);
        }
    }

    #[cold]
    pub(super) fn report_done(&mut self, index: u32) {
        let (now, subject) = (self.now, self.subject(index));
        if let (Some(observer), Some(subject)) = (&mut self.observer, subject) {
            observer.done(&subject, now);
        }
    }

    #[cold]
    pub(super) fn report_member_done(&mut self, index: u32) {
        let (id, page) = self.oldest_member(index);
        let (now, subject) = (self.now, self.subject(index));
        if let (Some(observer), Some(subject)) = (&mut self.observer, subject) {
            observer.done(&Subject { id, page, ..subject }, now);
        }
    }
}
