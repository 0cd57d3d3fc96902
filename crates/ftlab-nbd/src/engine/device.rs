//! Requests in the device: their parts go in, completions come out, and answers follow.

use std::cmp::Reverse;
use std::time::Instant;

use ftlab_core::{Completion, IoContext, IoRequest, LiveDrive, OpKind, Status, flags};
use xxhash_rust::xxh3::xxh3_128;

use crate::power_log::PowerLog;
use crate::protocol::{Command, RequestHead, command_flag, error};
use crate::request::Body;

use super::data::restore;
use super::{Engine, Op, Part};

/// Bytes of older data from which on the server flushes the drive itself.
const MOST_LOGGED: u64 = 256 << 20;

impl<D: LiveDrive> Engine<'_, D> {
    /// The parts of a request enter the device.
    pub(super) fn submit_all(
        &mut self,
        op: usize,
        head: &RequestHead,
        kind: OpKind,
        fua: bool,
        data: &[u8],
        export: usize,
    ) {
        let (offset, length) = (head.offset, u64::from(head.length));
        match (head.command, kind) {
            (Command::WriteZeroes, _) if head.flags & command_flag::NO_HOLE != 0 => {
                self.submit_write(op, offset, length, fua, &[], export);
            }
            (Command::WriteZeroes, _) => {
                let (first, end) = self.whole_units(offset, length);
                if first >= end {
                    return self.submit_write(op, offset, length, fua, &[], export);
                }
                self.submit(op, OpKind::Trim, first, end - first, false, export);
                for (from, to) in [(offset, first), (end, offset + length)] {
                    if from < to {
                        self.submit_write(op, from, to - from, fua, &[], export);
                    }
                }
            }
            (_, OpKind::Write) => self.submit_write(op, offset, length, fua, data, export),
            _ => self.submit(op, kind, offset, length, fua, export),
        }
    }

    /// A write whose data is in the store by now, and is `data` if that is given.
    fn submit_write(&mut self, op: usize, offset: u64, length: u64, fua: bool, data: &[u8], export: usize) {
        self.contents.clear();
        if let Some(bytes) = self.drive.content_bytes() {
            self.know_contents(offset, length, data, bytes);
        }
        self.submit(op, OpKind::Write, offset, length, fua, export);
    }

    /// The ids of all units that the write touches, of those that it covers in part by what lies around it.
    fn know_contents(&mut self, offset: u64, length: u64, data: &[u8], bytes: u32) {
        let unit = u64::from(self.drive.geometry().unit_bytes);
        let (first, end) = (offset / unit * unit, (offset + length).next_multiple_of(unit));
        // The low half of XXH3-128, so that equal data has equal ids, and different data practically never.
        let id = |piece: &[u8]| xxh3_128(piece) as u64;
        if (first, end) == (offset, offset + length) && !data.is_empty() {
            self.contents.extend(data.chunks_exact(bytes as usize).map(id));
        } else if self.store.keeps_data() {
            let mut whole = vec![0; (end - first) as usize];
            // Where the store cannot be read, nothing is known.
            if self.store.read(first, &mut whole).is_ok() {
                self.contents.extend(whole.chunks_exact(bytes as usize).map(id));
            }
        }
    }

    pub(super) fn submit(&mut self, op: usize, kind: OpKind, offset: u64, length: u64, fua: bool, export: usize) {
        let now = self.clock.now_ns();
        let forced = fua && kind == OpKind::Write;
        let context = IoContext {
            flags: flags::WHOLE_UNITS | if forced { flags::FUA } else { 0 },
            volume: export as u16,
            contents: if kind == OpKind::Write { &self.contents } else { &[] },
            content_bytes: self.drive.content_bytes().unwrap_or(4096),
            ..IoContext::NONE
        };
        let io = IoRequest {
            op: kind,
            offset,
            length: length as u32,
            context: &context,
        };
        let asking = self.ops.get_mut(op);
        asking.parts_left += 1;
        asking.submitted_ns = asking.submitted_ns.min(now);
        let tag = self.parts.enter(Part {
            op,
            offset,
            length: length as u32,
        });
        self.drive.submitted(&io, now);
        self.drive.submit(tag as u64, &io, now);
    }

    pub(super) fn part_done(&mut self, done: &Completion, now: u64) {
        let part = self.parts.leave(done.tag as usize);
        self.drive.completed(done, part.offset, part.length);
        let op = self.ops.get_mut(part.op);
        op.parts_left -= 1;
        op.done_ns = op.done_ns.max(done.done_ns);
        if done.status == Status::WornOut {
            self.worn_out = true;
            // What it holds can be read, and trims take nothing; what a volatile buffer holds can no longer become durable.
            op.error = match done.op {
                OpKind::Write => error::EPERM,
                OpKind::Flush if !self.drive.keeps_what_it_acknowledged() => error::EIO,
                _ => op.error,
            };
        }
        if op.parts_left > 0 {
            return;
        }
        if std::mem::take(&mut op.then_flush) {
            op.covers = self.log.as_ref().map(PowerLog::acknowledged);
            op.forced = true;
            return self.submit(part.op, OpKind::Flush, 0, 0, false, 0);
        }
        self.finish(part.op, now);
    }

    pub(super) fn finish(&mut self, op: usize, now: u64) {
        let done = self.ops.get_mut(op);
        done.done_ns += std::mem::take(&mut done.stall_ns);
        if done.done_ns > now {
            self.delayed.push(Reverse((done.done_ns, op)));
        } else {
            self.answer(op);
        }
    }

    pub(super) fn answer(&mut self, place: usize) {
        let mut op = self.ops.leave(place);
        for unit in op.units.clone() {
            self.busy.remove(&unit);
        }
        let late_ns = self.clock.now_ns().saturating_sub(op.done_ns);
        let durable_now = op.forced || (op.covers.is_some() && op.request.is_some());
        if self.durable && durable_now && op.error == 0 {
            // Nobody who has an answer waits for the disk.
            self.send_replies();
            let before = Instant::now();
            if self.store.sync().is_err() {
                op.error = error::EIO;
            }
            self.report.synchronised(before.elapsed().as_nanos() as u64);
        }
        self.account(&op);
        if let (error::EPERM, Some(before), Some(request)) = (op.error, op.before.take(), &op.request) {
            // The request fails in any case.
            let _ = restore(self.store.as_mut(), request.head.offset, 0, Some(&before));
        }
        let Some(request) = op.request else {
            self.flushing = false;
            return;
        };
        if op.error == 0 {
            let now = self.clock.now_ns();
            let delivered = now.saturating_sub(self.clock.at(request.arrived).min(op.submitted_ns));
            self.report
                .answered(op.kind, op.done_ns - op.submitted_ns, delivered, late_ns);
        } else {
            self.report.failed(op.error);
        }
        self.reply(&request, op.error, op.body);
        if !self.held.is_empty() && self.clock.now_ns() >= self.ready_ns {
            self.take_up_held();
        }
        self.bound_log();
    }

    /// What an answer means for what a power cut may bring back.
    pub(super) fn account(&mut self, op: &Op) {
        let Some(log) = &mut self.log else { return };
        if op.error != 0 && op.kind != OpKind::Flush {
            // A worn-out drive has refused it, or some of it: what the device still holds comes back.
            let bytes = log.unit_bytes();
            for unit in op.units.clone() {
                if let Some(data) = log.undo(unit, self.drive.version(unit).unwrap_or(0)) {
                    // The request fails in any case.
                    let _ = restore(self.store.as_mut(), unit * bytes, bytes, data.as_deref());
                }
            }
            log.changed(op.units.clone(), false);
            return;
        }
        let covered = op.covers.filter(|_| op.error == 0);
        if !op.units.is_empty() {
            let kept = self.drive.keeps_what_it_acknowledged() && op.kind == OpKind::Write;
            log.changed(op.units.clone(), kept || op.forced);
        }
        if let Some(acknowledged) = covered {
            log.flushed(acknowledged);
        }
    }

    /// A client that never flushes must not make the log grow without bound.
    pub(super) fn bound_log(&mut self) {
        let logged = self.log.as_ref().map_or(0, PowerLog::bytes);
        if logged <= MOST_LOGGED || self.flushing {
            return;
        }
        self.flushing = true;
        self.report.own_flushes += 1;
        let now = self.clock.now_ns();
        let op = self.ops.enter(Op {
            request: None,
            kind: OpKind::Flush,
            body: Body::None,
            error: 0,
            parts_left: 0,
            then_flush: false,
            stall_ns: 0,
            submitted_ns: u64::MAX,
            done_ns: now,
            units: 0..0,
            before: None,
            covers: self.log.as_ref().map(PowerLog::acknowledged),
            forced: false,
        });
        self.submit(op, OpKind::Flush, 0, 0, false, 0);
    }
}
