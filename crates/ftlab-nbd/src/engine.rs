//! The engine: it owns the device and the data, and knows the time.
//!
//! # Model
//! A request's data is taken or copied when the request arrives, then its parts enter the device; it is answered when the device has
//! completed them, and later if a fault says so. A flush covers what was acknowledged before it. Trims and write-zeroes of whole
//! mapping units are trims of the device; write-zeroes at the edges of units, and where holes are forbidden, are writes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ftlab_core::{Completion, IoContext, IoRequest, OpKind, Status, flags};
use rustc_hash::FxHashSet;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::LiveDrive;
use crate::clock::Clock;
use crate::faults::{Faults, Target, Verdict};
use crate::power_log::PowerLog;
use crate::protocol::{Command, allocation, command_flag, error};
use crate::report::Report;
use crate::request::{Body, Message, Request};
use crate::server::Doors;
use crate::store::{Refusal, Store};

/// Bytes of older data from which on the server flushes the drive itself.
const MOST_LOGGED: u64 = 256 << 20;
/// Extents in one answer.
const MOST_EXTENTS: usize = 4096;
/// How long clients have to take their answers once the service is to end.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often the drive is asked whether to go on.
const LOOK: Duration = Duration::from_millis(100);
/// Zeros that are written at once.
const ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A request that the device works on.
struct Op {
    /// `None`: a flush of the server's own.
    request: Option<Box<Request>>,
    kind: OpKind,
    body: Body,
    error: u32,
    parts_left: u32,
    then_flush: bool,
    stall_ns: u64,
    submitted_ns: u64,
    done_ns: u64,
    /// Units that it changes, where that is logged.
    units: std::ops::Range<u64>,
    /// Acknowledgements that it covers, of a flush.
    covers: Option<u64>,
    forced: bool,
}

/// What the device was asked for.
#[derive(Clone, Copy)]
struct Part {
    op: usize,
    offset: u64,
    length: u32,
}

pub struct Engine<'a, D> {
    drive: &'a mut D,
    store: Box<dyn Store>,
    durable: bool,
    clock: Clock,
    doors: &'a Doors,
    faults: Faults,
    report: Report,
    log: Option<PowerLog>,
    ops: Places<Op>,
    parts: Places<Part>,
    /// Units that a request under way changes.
    busy: FxHashSet<u64>,
    /// Requests that wait for others on the same units, or for the drive to come back.
    held: VecDeque<Box<Request>>,
    /// Answers that a fault holds back.
    delayed: BinaryHeap<Reverse<(u64, usize)>>,
    stuck: Vec<(u64, Box<Request>)>,
    /// After a power cut: when the drive takes requests again.
    ready_ns: u64,
    flushing: bool,
    contents: Vec<u64>,
}

impl<'a, D: LiveDrive> Engine<'a, D> {
    pub fn new(drive: &'a mut D, store: Box<dyn Store>, durable: bool, clock: Clock, doors: &'a Doors, faults: Faults) -> Self {
        let unit = drive.geometry().unit_bytes;
        let log = drive.version(0).map(|_| PowerLog::new(unit));
        Engine {
            drive,
            store,
            durable,
            clock,
            doors,
            faults,
            report: Report::default(),
            log,
            ops: Places::default(),
            parts: Places::default(),
            busy: FxHashSet::default(),
            held: VecDeque::new(),
            delayed: BinaryHeap::new(),
            stuck: Vec::new(),
            ready_ns: 0,
            flushing: false,
            contents: Vec::new(),
        }
    }

    /// Serves until it is told to end, and everybody has gone.
    pub fn run(mut self, messages: &Receiver<Message>) -> Report {
        let mut completions = Vec::new();
        let mut looked = Instant::now();
        let mut ending: Option<Instant> = None;
        loop {
            self.take_time(&mut completions);
            let until = self.next_moment();
            match self.clock.wait(messages, until) {
                Ok(None) => {}
                Ok(Some(message)) => {
                    self.hear(message);
                    // What has come meanwhile enters at the same time, so that none waits for another's answer.
                    while let Ok(message) = messages.try_recv() {
                        self.hear(message);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                if !self.drive.goes_on(self.clock.now_ns()) {
                    self.doors.close();
                }
                if self.doors.are_closed() {
                    let since = *ending.get_or_insert_with(Instant::now);
                    self.faults.clear(None);
                    self.release_stuck();
                    if since.elapsed() > FAREWELL {
                        self.doors.hang_up();
                        self.give_up(error::ESHUTDOWN);
                    }
                }
            }
        }
        let synchronised = self.store.sync();
        self.report.faults = self.faults.report();
        self.report.data = json!({
            "memory_bytes": self.store.memory_bytes(),
            "log_bytes": self.log.as_ref().map(PowerLog::bytes),
            "sync_error": synchronised.err().map(|error| error.to_string()),
        });
        (self.report.connections, self.report.refused_connections) = self.doors.counts();
        self.report
    }

    /// When there is something to do; `None`: when somebody asks.
    fn next_moment(&mut self) -> Option<u64> {
        let next = [
            self.drive.next_wakeup(),
            self.delayed.peek().map(|Reverse((due, _))| *due),
            (!self.held.is_empty()).then_some(self.ready_ns),
        ];
        let next = next.into_iter().flatten().min();
        match self.clock.is_virtual() {
            // What the drive does by itself goes on when a request comes.
            true if self.parts.is_empty() && self.delayed.is_empty() && self.held.is_empty() => None,
            true => Some(0),
            false => next,
        }
    }

    /// Everything that is due by now; without a wall clock, all that is under way.
    fn take_time(&mut self, completions: &mut Vec<Completion>) {
        loop {
            let mut now = self.clock.now_ns();
            if self.clock.is_virtual() && !self.parts.is_empty() {
                let reached = self.drive.advance_to_completion(None, completions);
                self.clock.reach(reached.unwrap_or(now));
                now = self.clock.now_ns();
            } else {
                self.drive.advance(now, completions);
            }
            for done in completions.drain(..) {
                self.part_done(&done, now);
            }
            while let Some(&Reverse((due, op))) = self.delayed.peek() {
                if due > now && !(self.clock.is_virtual() && self.parts.is_empty()) {
                    break;
                }
                self.clock.reach(due);
                self.delayed.pop();
                self.answer(op);
            }
            if !self.held.is_empty() {
                if self.clock.is_virtual() {
                    self.clock.reach(self.ready_ns);
                }
                if self.clock.now_ns() >= self.ready_ns {
                    self.take_up_held();
                }
            }
            if !self.clock.is_virtual() || (self.parts.is_empty() && self.delayed.is_empty()) {
                return;
            }
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Request(request) => self.arrived(request),
            Message::Command(text, answer) => {
                let said = self.command(&text).unwrap_or_else(|sentence| json!({ "error": sentence }));
                let _ = answer.send(said);
            }
        }
    }

    fn arrived(&mut self, request: Box<Request>) {
        if request.head.command == Command::BlockStatus {
            return self.block_status(request);
        }
        let units = self.changes(&request);
        let conflicts = units.clone().any(|unit| self.busy.contains(&unit));
        let behind = |held: &Request| {
            let other = self.changes(held);
            other.start < units.end && units.start < other.end
        };
        if self.clock.now_ns() < self.ready_ns || conflicts || self.held.iter().any(|held| behind(held)) {
            self.report.held += 1;
            self.held.push_back(request);
            return;
        }
        self.begin(request);
    }

    /// Units whose changes are logged: no two requests change one at a time.
    fn changes(&self, request: &Request) -> std::ops::Range<u64> {
        let head = &request.head;
        match (&self.log, head.command) {
            (Some(log), Command::Write | Command::Trim | Command::WriteZeroes) => {
                log.touched(head.offset, u64::from(head.length))
            }
            _ => 0..0,
        }
    }

    fn take_up_held(&mut self) {
        let waiting = std::mem::take(&mut self.held);
        for request in waiting {
            let before = self.report.held;
            self.arrived(request);
            self.report.held = before;
        }
    }

    fn begin(&mut self, mut request: Box<Request>) {
        let now = self.clock.now_ns();
        let head = request.head;
        let kind = match head.command {
            Command::Read => OpKind::Read,
            Command::Write => OpKind::Write,
            Command::Flush => OpKind::Flush,
            _ => OpKind::Trim,
        };
        let verdict = self.faults.judge(&Target {
            op: kind,
            offset: head.offset,
            length: u64::from(head.length),
            now_ns: now,
        });
        if let Some(fault) = verdict.stuck_by {
            self.stuck.push((fault, request));
            return;
        }
        if let Some(error) = verdict.error {
            self.report.failed(error);
            return request.answer(error, Body::None);
        }
        let mut fua = head.flags & command_flag::FUA != 0;
        if verdict.drop_flush {
            fua = false;
            if kind == OpKind::Flush {
                return request.answer(0, Body::None);
            }
        }
        let units = self.changes(&request);
        let body = match self.move_data(&mut request, &units, &verdict) {
            Ok(body) => body,
            Err(error) => {
                self.undo(&units);
                self.report.failed(error);
                return request.answer(error, Body::None);
            }
        };
        self.busy.extend(units.clone());
        let export = request.export;
        let data = std::mem::take(&mut request.data);
        let op = self.ops.enter(Op {
            request: Some(request),
            kind,
            body,
            error: 0,
            parts_left: 0,
            then_flush: fua && kind == OpKind::Trim,
            stall_ns: verdict.stall_ns,
            submitted_ns: now,
            done_ns: now,
            units,
            covers: (kind == OpKind::Flush).then(|| self.log.as_ref().map_or(0, PowerLog::acknowledged)),
            forced: fua && kind == OpKind::Write,
        });
        self.submit_all(op, &head, kind, fua, &data, export);
        if self.ops.get(op).parts_left == 0 {
            self.finish(op, now);
        }
    }

    /// Takes the data of a write, copies that of a read, and clears what is trimmed. An error: the request's.
    fn move_data(&mut self, request: &mut Request, units: &std::ops::Range<u64>, verdict: &Verdict) -> Result<Body, u32> {
        let (offset, length) = (request.head.offset, u64::from(request.head.length));
        let io = |_: std::io::Error| error::EIO;
        let refused = |refusal: Refusal| match refusal {
            Refusal::Full => error::ENOSPC,
            Refusal::Io(_) => error::EIO,
        };
        let no_hole = request.head.flags & command_flag::NO_HOLE != 0;
        if request.head.command == Command::WriteZeroes && no_hole && request.head.flags & command_flag::FAST_ZERO != 0 {
            return Err(error::ENOTSUP);
        }
        if let Some(log) = &mut self.log {
            for unit in units.clone() {
                let bytes = log.unit_bytes();
                let held = match self.store.extent(unit * bytes, (unit + 1) * bytes).map_err(io)? {
                    (false, end) if end == (unit + 1) * bytes => None,
                    _ => {
                        let mut data = vec![0; bytes as usize].into_boxed_slice();
                        self.store.read(unit * bytes, &mut data).map_err(io)?;
                        Some(data)
                    }
                };
                log.changing(unit, self.drive.version(unit).unwrap_or(0), held);
            }
        }
        match request.head.command {
            Command::Read => {
                let mut data = vec![0; length as usize];
                self.store.read(offset, &mut data).map_err(io)?;
                return Ok(Body::Data(data));
            }
            Command::Write => {
                let all = request.data.len();
                let taken = if verdict.torn { all / 2 / 512 * 512 } else { all };
                self.store.write(offset, &request.data[..taken]).map_err(refused)?;
            }
            Command::Trim => {
                let (first, end) = self.whole_units(offset, length);
                if first < end {
                    self.store.clear(first, end - first).map_err(io)?;
                }
            }
            Command::WriteZeroes if no_hole => {
                let (mut at, end) = (offset, offset + length);
                while at < end {
                    let count = (end - at).min(ZEROS.len() as u64);
                    self.store.write(at, &ZEROS[..count as usize]).map_err(refused)?;
                    at += count;
                }
            }
            Command::WriteZeroes => self.store.clear(offset, length).map_err(io)?,
            _ => {}
        }
        Ok(Body::None)
    }

    /// The bytes of the units that a range covers whole.
    fn whole_units(&self, offset: u64, length: u64) -> (u64, u64) {
        let unit = u64::from(self.drive.geometry().unit_bytes);
        (offset.div_ceil(unit) * unit, (offset + length) / unit * unit)
    }

    fn undo(&mut self, units: &std::ops::Range<u64>) {
        if let Some(log) = &mut self.log {
            for unit in units.clone() {
                log.undo(unit);
            }
        }
    }

    /// The parts of a request enter the device.
    fn submit_all(&mut self, op: usize, head: &crate::protocol::RequestHead, kind: OpKind, fua: bool, data: &[u8], export: usize) {
        let (offset, length) = (head.offset, u64::from(head.length));
        if let (OpKind::Write, Some(bytes)) = (kind, self.drive.content_bytes()) {
            // The low half of XXH3-128, so that equal data has equal ids, and different data practically never.
            self.contents.clear();
            let ids = data.chunks_exact(bytes as usize).map(|piece| xxh3_128(piece) as u64);
            self.contents.extend(ids);
        } else {
            self.contents.clear();
        }
        match (head.command, kind) {
            (Command::WriteZeroes, _) if head.flags & command_flag::NO_HOLE != 0 => {
                self.submit(op, OpKind::Write, offset, length, fua, export);
            }
            (Command::WriteZeroes, _) => {
                let (first, end) = self.whole_units(offset, length);
                if first >= end {
                    return self.submit(op, OpKind::Write, offset, length, fua, export);
                }
                self.submit(op, OpKind::Trim, first, end - first, false, export);
                for (from, to) in [(offset, first), (end, offset + length)] {
                    if from < to {
                        self.submit(op, OpKind::Write, from, to - from, fua, export);
                    }
                }
            }
            _ => self.submit(op, kind, offset, length, fua, export),
        }
    }

    fn submit(&mut self, op: usize, kind: OpKind, offset: u64, length: u64, fua: bool, export: usize) {
        let now = self.clock.now_ns();
        let forced = fua && kind == OpKind::Write;
        let context = IoContext {
            flags: if forced { flags::FUA } else { 0 },
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
        self.ops.get_mut(op).parts_left += 1;
        let tag = self.parts.enter(Part {
            op,
            offset,
            length: length as u32,
        });
        self.drive.submitted(&io, now);
        self.drive.submit(tag as u64, &io, now);
    }

    fn part_done(&mut self, done: &Completion, now: u64) {
        let part = self.parts.leave(done.tag as usize);
        self.drive.completed(done, part.offset, part.length);
        let op = self.ops.get_mut(part.op);
        op.parts_left -= 1;
        op.done_ns = op.done_ns.max(done.done_ns);
        if done.status == Status::WornOut {
            op.error = error::EPERM;
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

    fn finish(&mut self, op: usize, now: u64) {
        let done = self.ops.get_mut(op);
        done.done_ns += std::mem::take(&mut done.stall_ns);
        if done.done_ns > now {
            self.delayed.push(Reverse((done.done_ns, op)));
        } else {
            self.answer(op);
        }
    }

    fn answer(&mut self, place: usize) {
        let mut op = self.ops.leave(place);
        for unit in op.units.clone() {
            self.busy.remove(&unit);
        }
        let durable_now = op.forced || (op.kind == OpKind::Flush && op.request.is_some());
        if self.durable && durable_now && op.error == 0 {
            let before = Instant::now();
            if self.store.sync().is_err() {
                op.error = error::EIO;
            }
            self.report.synchronised(before.elapsed().as_nanos() as u64);
        }
        self.account(&op);
        let Some(request) = op.request else {
            self.flushing = false;
            return;
        };
        if op.error == 0 {
            let now = self.clock.now_ns();
            let delivered = now.saturating_sub(self.clock.at(request.arrived).min(op.submitted_ns));
            let late = now.saturating_sub(op.done_ns);
            self.report.answered(op.kind, op.done_ns - op.submitted_ns, delivered, late);
        } else {
            self.report.failed(op.error);
        }
        request.answer(op.error, if op.error == 0 { op.body } else { Body::None });
        if !self.held.is_empty() && self.clock.now_ns() >= self.ready_ns {
            self.take_up_held();
        }
        self.bound_log();
    }

    /// What an answer means for what a power cut may bring back.
    fn account(&mut self, op: &Op) {
        let Some(log) = &mut self.log else { return };
        if op.error != 0 && op.kind != OpKind::Flush {
            // A worn-out drive has refused it, or some of it: what the device still holds comes back.
            let unchanged = |unit: u64, log: &mut PowerLog| log.undo(unit).map(|data| (unit, data));
            let back: Vec<_> = op.units.clone().filter_map(|unit| unchanged(unit, log)).collect();
            let bytes = log.unit_bytes();
            for (unit, data) in back {
                restore(self.store.as_mut(), unit * bytes, bytes, data.as_deref());
            }
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
    fn bound_log(&mut self) {
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
            submitted_ns: now,
            done_ns: now,
            units: 0..0,
            covers: self.log.as_ref().map(PowerLog::acknowledged),
            forced: false,
        });
        self.submit(op, OpKind::Flush, 0, 0, false, 0);
    }

    fn block_status(&mut self, request: Box<Request>) {
        let (mut at, end) = (request.head.offset, request.head.offset + u64::from(request.head.length));
        let one = request.head.flags & command_flag::REQ_ONE != 0;
        let mut extents: Vec<(u32, u32)> = Vec::new();
        while at < end && extents.len() < MOST_EXTENTS {
            let Ok((held, until)) = self.store.extent(at, end) else {
                self.report.failed(error::EIO);
                return request.answer(error::EIO, Body::None);
            };
            let state = if held { 0 } else { allocation::HOLE | allocation::ZERO };
            extents.push(((until - at) as u32, state));
            at = until;
            if one {
                break;
            }
        }
        request.answer(0, Body::Extents(extents));
    }

    /// A command of an operator.
    fn command(&mut self, text: &str) -> Result<Value, String> {
        let (name, argument) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        match (name, argument.trim()) {
            ("snapshot", "") => {
                self.report.faults = self.faults.report();
                (self.report.connections, self.report.refused_connections) = self.doors.counts();
                let mut figures = self.drive.figures(self.clock.now_ns());
                figures["serve"] = self.report.to_json();
                figures["under_way"] = (self.ops.len() + self.held.len() + self.stuck.len()).into();
                figures["memory_bytes"] = self.store.memory_bytes().into();
                Ok(figures)
            }
            ("reset", "") => {
                self.drive.reset(self.clock.now_ns());
                let cuts = std::mem::take(&mut self.report.cuts);
                self.report = Report::default();
                self.report.cuts = cuts;
                Ok(json!({ "done": "reset" }))
            }
            ("fault", spec) if !spec.is_empty() => {
                let number = self.faults.add(spec).map_err(|error| error.to_string())?;
                Ok(json!({ "done": "fault", "number": number }))
            }
            ("faults", "") => Ok(self.faults.report()),
            ("clear", which) => {
                let number = match which {
                    "" | "all" => None,
                    one => Some(one.parse().map_err(|_| format!("clear `{one}`: expected the number of a fault, or all"))?),
                };
                let cleared = self.faults.clear(number);
                self.release_stuck();
                match (cleared, number) {
                    (0, Some(number)) => Err(format!("clear {number}: no such fault is active")),
                    _ => Ok(json!({ "done": "clear", "cleared": cleared })),
                }
            }
            ("power-cut", "") => self.cut_power(),
            ("stop", "") => {
                self.doors.close();
                Ok(json!({ "done": "stop" }))
            }
            _ => Err(format!(
                "command `{}`: expected snapshot, reset, fault SPEC, faults, clear [NUMBER], power-cut or stop",
                text.trim()
            )),
        }
    }

    /// Requests whose fault is gone are carried out.
    fn release_stuck(&mut self) {
        let (held, free): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.stuck).into_iter().partition(|(fault, _)| self.faults.is_active(*fault));
        self.stuck = held;
        for (_, request) in free {
            self.arrived(request);
        }
    }

    fn cut_power(&mut self) -> Result<Value, String> {
        let Some(mut log) = self.log.take() else {
            return Err("power-cut: the drive keeps nothing to recover from; set ftl.checkpoint, e.g. to \"1GiB\"".to_owned());
        };
        let now = self.clock.now_ns();
        // Connections go with the power: no client sees an answer from before it afterwards.
        self.doors.hang_up();
        let lost = self.give_up(error::ESHUTDOWN);
        let loss = self.drive.cut_power();
        let back = log.fail(|unit| self.drive.version(unit).unwrap_or(0));
        let (bytes, units) = (log.unit_bytes(), back.len());
        for (unit, data) in back {
            restore(self.store.as_mut(), unit * bytes, bytes, data.as_deref());
        }
        self.log = Some(log);
        self.ready_ns = now + loss.recovery_ns;
        let cut = json!({
            "at_ns": now,
            "lost_requests": lost,
            "units_brought_back": units,
            "recovery_ns": loss.recovery_ns,
        });
        self.report.cuts.push(cut.clone());
        Ok(cut)
    }

    /// Everything that is under way ends with `error`; how many that were.
    fn give_up(&mut self, error: u32) -> usize {
        self.parts.clear();
        self.delayed.clear();
        self.busy.clear();
        self.flushing = false;
        let ops = self.ops.clear().into_iter().filter_map(|op| op.request);
        let stuck = std::mem::take(&mut self.stuck).into_iter().map(|(_, request)| request);
        let all: Vec<_> = ops.chain(stuck).chain(std::mem::take(&mut self.held)).collect();
        let count = all.len();
        for request in all {
            request.answer(error, Body::None);
        }
        count
    }
}

/// Puts older data back; an image that refuses is beyond help, and reads will say so.
fn restore(store: &mut dyn Store, offset: u64, bytes: u64, data: Option<&[u8]>) {
    let _ = match data {
        Some(data) => store.write(offset, data).map_err(|_| ()),
        None => store.clear(offset, bytes).map_err(|_| ()),
    };
}

/// Things by number; numbers are used again.
struct Places<T> {
    all: Vec<Option<T>>,
    unused: Vec<usize>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Places {
            all: Vec::new(),
            unused: Vec::new(),
        }
    }
}

impl<T> Places<T> {
    fn enter(&mut self, thing: T) -> usize {
        let place = self.unused.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[place] = Some(thing);
        place
    }

    fn get(&self, place: usize) -> &T {
        self.all[place].as_ref().expect("nothing has left this place")
    }

    fn get_mut(&mut self, place: usize) -> &mut T {
        self.all[place].as_mut().expect("nothing has left this place")
    }

    fn leave(&mut self, place: usize) -> T {
        self.unused.push(place);
        self.all[place].take().expect("nothing leaves twice")
    }

    fn len(&self) -> usize {
        self.all.len() - self.unused.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn clear(&mut self) -> Vec<T> {
        self.unused.clear();
        std::mem::take(&mut self.all).into_iter().flatten().collect()
    }
}
