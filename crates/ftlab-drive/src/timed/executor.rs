//! The hardware's side: ends of phases, what dies ask for, and granting channels.

use ftlab_ftl::{Class, FlashOpKind};

use super::Timed;
use super::dies::{Batch, Doing};
use super::observe::{Span, Subject};
use super::ops::{NONE, State};
use super::ranks::{INTERNAL, bit};
use super::tickets::Part;
use crate::schedule::Phase;

/// Operations at the head of a ready queue among which partners for a multi-plane operation are sought.
pub const MERGE_WINDOW: u32 = 16;

impl Timed {
    /// The event of `source` happens now.
    #[inline]
    pub(super) fn happen(&mut self, source: usize) {
        if source < self.dies.len() {
            self.end_phase(source as u16);
        } else if source < self.decoding_source() {
            self.mark_channel((source - self.dies.len()) as u32);
        } else if source == self.decoding_source() {
            if let Some((_, index)) = self.decoding.pop_front() {
                if let Some(&(next, _)) = self.decoding.front() {
                    self.agenda.push(source, next);
                }
                self.charge_op(index, Part::Flash);
                self.complete(index);
            }
        } else {
            if let Some((_, slot)) = self.timers.pop_due(self.now) {
                self.timer_free.push(slot);
                let key = self.timer_keys[slot as usize];
                self.raised.push_back(super::Event::Notice(key));
            }
            if let Some(next) = self.timers.next_time() {
                self.agenda.push(source, next);
            }
        }
    }

    /// The phase of `die` ends now.
    #[inline]
    fn end_phase(&mut self, number: u16) {
        let now = self.now;
        let die = &mut self.dies[usize::from(number)];
        match die.doing {
            Doing::Sensing => {
                die.doing = Doing::Holding;
                die.wants = Some(Phase::DataOut);
                let (channel, wish) = (die.channel, die.wish);
                let rank = self.ranks.channel[Phase::DataOut as usize];
                self.channels.wish(channel, wish, rank, now);
                self.mark_channel(channel);
            }
            Doing::Sending => self.end_sending(number),
            Doing::Changing => {
                let mut index = die.batch.first;
                self.release_die(number, index);
                while index != NONE {
                    let next = self.ops.at(index).next;
                    self.complete_written(number, index);
                    index = next;
                }
            }
            Doing::Suspending => {
                let index = die.batch.first;
                self.release_die(number, index);
            }
            Doing::Idle | Doing::Holding => unreachable!("die {number} has no event while {:?}", die.doing),
        }
    }

    /// The data of the first operation of a batch of reads is out.
    #[inline]
    fn end_sending(&mut self, number: u16) {
        let now = self.now;
        let die = &mut self.dies[usize::from(number)];
        let index = die.batch.first;
        let op = self.ops.at_mut(index);
        let next = op.next;
        op.next = NONE;
        let (ticket, bytes) = (op.ticket, op.bytes);
        if ticket != NONE {
            let path = &mut self.paths[index as usize];
            let transfer = self.timing.transfer_ns(u64::from(bytes)) + die.batch.command_ns;
            path.parts.flash_ns += die.batch.cell_ns;
            path.parts.transfer_ns += transfer;
            // The rest went in waiting for the channel, and for the data of the batch before it.
            path.parts.queue_ns += now - path.until_ns - die.batch.cell_ns - transfer;
            path.until_ns = now;
        }
        die.batch.first = next;
        if next == NONE {
            let channel = die.channel;
            self.release_die(number, index);
            self.mark_channel(channel);
        } else {
            let bytes = self.ops.at(next).bytes;
            let end = now + self.timing.transfer_ns(u64::from(bytes));
            self.agenda.push(usize::from(number), end);
        }
        if self.timing.ecc_ns == 0 {
            self.complete(index);
        } else {
            self.ops.at_mut(index).state = State::Decoding;
            let done = now + self.timing.ecc_ns;
            if self.decoding.is_empty() {
                let source = self.decoding_source();
                self.agenda.push(source, done);
            }
            self.decoding.push_back((done, index));
        }
    }

    /// A program or an erase has left the die.
    #[inline]
    fn complete_written(&mut self, number: u16, index: u32) {
        let now = self.now;
        let op = self.ops.at_mut(index);
        op.next = NONE;
        let (ticket, bytes, is_program) = (op.ticket, op.bytes, op.kind == super::ops::Kind::Program);
        if ticket != NONE {
            let batch = &self.dies[usize::from(number)].batch;
            let data = if is_program {
                self.timing.transfer_ns(u64::from(bytes))
            } else {
                0
            };
            let path = &mut self.paths[index as usize];
            path.parts.flash_ns += batch.cell_ns;
            path.parts.transfer_ns += data + batch.command_ns;
            path.parts.queue_ns += now - path.until_ns - batch.cell_ns - data - batch.command_ns;
            path.until_ns = now;
        }
        self.complete(index);
    }

    fn charge_op(&mut self, index: u32, part: Part) {
        if self.ops.at(index).ticket != NONE {
            let now = self.now;
            self.paths[index as usize].charge(part, now);
        }
    }

    /// The die is free; its batch, of which `index` is one, is kept for those that complete now.
    #[inline]
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
    pub(super) fn dispatch(&mut self) {
        while let Some(number) = self.dirty_dies.pop() {
            self.dies[number as usize].dirty = false;
            self.reconsider(number as u16);
        }
        while let Some(number) = self.dirty_channels.pop() {
            self.channels.each[number as usize].dirty = false;
            self.arbitrate(number);
        }
    }

    /// What does this die want now? Asks its channel, suspends or resumes.
    #[inline]
    fn reconsider(&mut self, number: u16) {
        let die = &self.dies[usize::from(number)];
        match die.doing {
            Doing::Idle => {}
            Doing::Changing => return self.consider_suspending(number),
            _ => return,
        }
        let class = if self.ranks.chip_exclusive && die.ready != 0 && self.chip_is_busy(number) {
            None
        } else {
            die.select(&self.ops, &self.ranks)
        };
        let die = &mut self.dies[usize::from(number)];
        let Some(class) = class else {
            if die.wants.take().is_some() {
                self.channels.withdraw(die.channel, die.wish);
            }
            if die.parked.is_some() {
                self.resume(number);
            }
            return;
        };
        let head = self.ops.at(die.head(class));
        let phase = match head.kind {
            super::ops::Kind::Read => Phase::ReadCommand,
            super::ops::Kind::Program => Phase::Program,
            _ => Phase::Erase,
        };
        let (channel, wish, since_ns) = (die.channel, die.wish, head.ready_ns);
        die.wants = Some(phase);
        self.channels
            .wish(channel, wish, self.ranks.channel[phase as usize], since_ns);
        self.mark_channel(channel);
    }

    /// Grants the channel while it is free and somebody waits.
    #[inline]
    fn arbitrate(&mut self, number: u32) {
        let now = self.now;
        loop {
            let channel = &self.channels.each[number as usize];
            if channel.busy_until_ns > now {
                if channel.waiting > 0 && channel.woken_at_ns != channel.busy_until_ns {
                    let until = channel.busy_until_ns;
                    self.channels.each[number as usize].woken_at_ns = until;
                    let source = self.channel_source(number);
                    self.agenda.push(source, until);
                }
                return;
            }
            let Some(place) = self.channels.next(number) else {
                return;
            };
            // die = channel + channels · place
            let die = (number as usize + self.channels.each.len() * place) as u16;
            let duration = match self.dies[usize::from(die)].doing {
                Doing::Holding => self.send(die),
                _ => self.start(die),
            };
            let channel = &mut self.channels.each[number as usize];
            channel.busy_until_ns = now + duration;
            channel.busy_ns += duration;
        }
    }

    /// The die has the channel for its data. Returns for how long.
    #[inline]
    fn send(&mut self, number: u16) -> u64 {
        let now = self.now;
        let die = &mut self.dies[usize::from(number)];
        die.doing = Doing::Sending;
        die.wants = None;
        let (channel, wish, first) = (die.channel, die.wish, die.batch.first);
        self.channels.withdraw(channel, wish);
        let mut duration = 0;
        let mut first_end = 0;
        let mut at = first;
        while at != NONE {
            let op = self.ops.at(at);
            let transfer = self.timing.transfer_ns(u64::from(op.bytes));
            let next = op.next;
            if self.observer.is_some() {
                self.report_transfer(channel, Phase::DataOut, at, now + duration, transfer);
            }
            duration += transfer;
            if at == first {
                first_end = duration;
            }
            at = next;
        }
        self.agenda.push(usize::from(number), now + first_end);
        // The die's last event comes when the channel is free again.
        self.channels.each[channel as usize].woken_at_ns = now + duration;
        duration
    }

    /// The die has the channel for a command and starts its most urgent work. Returns for how long it needs the channel.
    #[inline]
    fn start(&mut self, number: u16) -> u64 {
        let now = self.now;
        let die = &mut self.dies[usize::from(number)];
        let class = die
            .select(&self.ops, &self.ranks)
            .expect("a die that asks for a command has ready work");
        die.wants = None;
        let (channel, wish) = (die.channel, die.wish);
        self.channels.withdraw(channel, wish);
        let mut batch = self.gather(number, class);
        let page = self.ops.at(batch.first).page_in_block;
        let (command, cell) = match batch.kind {
            FlashOpKind::Read => (self.timing.read_command_ns, self.read_ns(page)),
            FlashOpKind::Program => (self.timing.program_command_ns, self.program_ns(page)),
            FlashOpKind::Erase => (self.timing.erase_command_ns, self.timing.erase_ns),
        };
        batch.command_ns = command * u64::from(batch.count);
        batch.cell_ns = cell;
        let mut duration = 0;
        let mut at = batch.first;
        while at != NONE {
            let op = self.ops.at_mut(at);
            op.state = State::Running;
            let transfer = match batch.kind {
                FlashOpKind::Program => command + self.timing.transfer_ns(u64::from(op.bytes)),
                _ => command,
            };
            batch.internal |= op.is_internal();
            let (ticket, next) = (op.ticket, op.next);
            if ticket != NONE {
                let path = &mut self.paths[at as usize];
                let waited = now - path.until_ns;
                let for_gc = self.dies[usize::from(number)].gc_clock(now) - path.gc_clock_ns;
                path.parts.gc_wait_ns += for_gc;
                path.parts.queue_ns += waited - for_gc;
                path.until_ns = now;
            }
            if self.observer.is_some() {
                self.report_transfer(channel, batch.phase(), at, now + duration, transfer);
            }
            duration += transfer;
            at = next;
        }
        let die = &mut self.dies[usize::from(number)];
        if bit(class) & INTERNAL != 0 {
            die.overtaken = 0;
        } else if class == Class::HostWrite && die.ready & INTERNAL != 0 {
            die.overtaken = die.overtaken.saturating_add(1);
        }
        die.batch = batch;
        die.urged = false;
        die.cell_from_ns = now + duration;
        die.cell_until_ns = now + duration + cell;
        let doing = match batch.kind {
            FlashOpKind::Read => Doing::Sensing,
            _ => Doing::Changing,
        };
        die.hold(doing, now);
        self.agenda.push(usize::from(number), now + duration + cell);
        if self.ranks.chip_exclusive {
            self.withdraw_chip(number);
        }
        duration
    }

    /// Takes the head of the class, and with multi-plane commands what can run with it, out of the ready queue.
    #[inline]
    fn gather(&mut self, number: u16, class: Class) -> Batch {
        let die = &mut self.dies[usize::from(number)];
        let first = die.head(class);
        die.unlink(&mut self.ops, class, NONE, first);
        let kind = self.ops.at(first).kind;
        let mut count = 1;
        let planes = self.layout.geometry.planes;
        if self.timing.multi_plane && planes > 1 && die.ready & bit(class) != 0 {
            let page = self.ops.at(first).page_in_block;
            let plane_of = |plane_block: u32| plane_block / self.layout.geometry.blocks;
            let mut last = first;
            let (mut before, mut at) = (NONE, die.head(class));
            for _ in 1..MERGE_WINDOW {
                if at == NONE || count == planes {
                    break;
                }
                let op = self.ops.at(at);
                let next = op.next;
                let plane = plane_of(op.plane_block);
                let mut fits = op.kind == kind && (kind == super::ops::Kind::Erase || op.page_in_block == page);
                let mut taken = first;
                while fits && taken != NONE {
                    fits = plane_of(self.ops.at(taken).plane_block) != plane;
                    taken = self.ops.at(taken).next;
                }
                if fits {
                    die.unlink(&mut self.ops, class, before, at);
                    self.ops.at_mut(last).next = at;
                    last = at;
                    count += 1;
                    self.counts.merged += 1;
                } else {
                    before = at;
                }
                at = next;
            }
        }
        Batch {
            first,
            count,
            kind: kind.flash().unwrap_or(FlashOpKind::Read),
            class,
            internal: false,
            suspends: 0,
            command_ns: 0,
            cell_ns: 0,
        }
    }

    /// The other dies of a chip that has become busy take no command.
    fn withdraw_chip(&mut self, number: u16) {
        for sibling in self.chip_of(number) {
            let die = &mut self.dies[usize::from(sibling)];
            if die.doing == Doing::Idle && die.wants.take().is_some() {
                self.channels.withdraw(die.channel, die.wish);
            }
        }
    }

    #[inline(always)]
    fn read_ns(&self, page: u32) -> u64 {
        self.timing.read_ns[self.page_types.split(page).1 as usize]
    }

    #[inline(always)]
    fn program_ns(&self, page: u32) -> u64 {
        self.timing.program_ns[self.page_types.split(page).1 as usize]
    }
}

// Reports to the observer, when there is one.
impl Timed {
    fn subject(&self, index: u32) -> Option<Subject> {
        let op = self.ops.at(index);
        Some(Subject {
            id: self.ops.id(index),
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
}
