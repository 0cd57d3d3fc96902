//! The engine: it owns the device and the data, and knows the time.
//!
//! # Model
//! A request's data is taken or copied when the request arrives, then its parts enter the device; it is answered when the device has
//! completed them, and later if a fault says so. A flush covers what was acknowledged before it. Trims and write-zeroes of whole
//! mapping units are trims of the device; write-zeroes at the edges of units, and where holes are forbidden, are writes.

mod clients;
mod command;
mod data;
mod device;
mod places;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use ftlab_core::faults::{Failure, Faults, Target};
use ftlab_core::{Completion, LiveDrive, OpKind};
use rustc_hash::FxHashSet;
use serde_json::json;

use crate::clock::Clock;
use crate::power_log::PowerLog;
use crate::protocol::{Command, command_flag, error};
use crate::report::Report;
use crate::request::{Body, Message, Request};
use crate::server::Doors;
use crate::store::Store;
pub use clients::Clients;
use places::Places;

/// How long clients have to take their answers once the service is to end.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often the drive is asked whether to go on.
const LOOK: Duration = Duration::from_millis(100);

/// A request that the device works on.
struct Op {
    /// `None`: a flush of the server's own.
    request: Option<Request>,
    kind: OpKind,
    body: Body,
    error: u32,
    parts_left: u32,
    then_flush: bool,
    stall_ns: u64,
    /// When the first of its parts entered the device.
    submitted_ns: u64,
    done_ns: u64,
    /// Units that it changes, where that is logged or may be refused.
    units: std::ops::Range<u64>,
    /// What the range of a write held, where the drive may refuse it when the data is in the store already.
    before: Option<Vec<u8>>,
    /// Acknowledgements that it covers, of a flush that is carried out.
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
    held: VecDeque<Request>,
    /// Answers that a fault holds back.
    delayed: BinaryHeap<Reverse<(u64, usize)>>,
    stuck: Vec<(u64, Request)>,
    /// After a power cut: when the drive takes requests again.
    ready_ns: u64,
    flushing: bool,
    /// The device takes no more writes.
    worn_out: bool,
    contents: Vec<u64>,
    clients: Clients,
    /// Requests that have come and not entered yet.
    incoming: Vec<Request>,
}

impl<'a, D: LiveDrive> Engine<'a, D> {
    pub fn new(
        drive: &'a mut D,
        store: Box<dyn Store>,
        durable: bool,
        clock: Clock,
        doors: &'a Doors,
        clients: Clients,
        faults: Faults,
    ) -> Self {
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
            worn_out: false,
            contents: Vec::new(),
            clients,
            incoming: Vec::new(),
        }
    }

    pub(super) fn reply(&mut self, request: &Request, error: u32, body: Body) {
        self.clients.answer(request, error, body);
    }

    pub(super) fn send_replies(&mut self) {
        self.clients.send(self.doors, &mut self.incoming);
    }

    /// Serves until it is told to end, and everybody has gone.
    pub fn run(mut self, messages: &Receiver<Message>) -> Report {
        let mut completions = Vec::new();
        let mut looked = Instant::now();
        let mut ending: Option<Instant> = None;
        loop {
            self.take_time(&mut completions);
            self.send_replies();
            if self.incoming.is_empty() {
                let until = self.next_moment();
                let clients = &mut self.clients;
                // Should the system refuse to wait, there is something to look for all the same.
                self.clock.wait(until, |longest| clients.wait(longest).unwrap_or(true));
                self.clients.read(self.doors.epoch(), &mut self.incoming);
            }
            // What has come meanwhile enters at the same time, so that none waits for another's answer.
            for request in std::mem::take(&mut self.incoming) {
                self.arrived(request);
            }
            let all_gone = loop {
                match messages.try_recv() {
                    Ok(message) => self.hear(message),
                    Err(TryRecvError::Empty) => break false,
                    Err(TryRecvError::Disconnected) => break self.clients.is_empty(),
                }
            };
            if all_gone {
                break;
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.clients.look_for_slow();
                if !self.drive.goes_on(self.clock.now_ns()) {
                    self.doors.close();
                }
                if self.doors.are_closed() {
                    let since = *ending.get_or_insert_with(Instant::now);
                    for (_, request) in std::mem::take(&mut self.stuck) {
                        self.reply(&request, error::ESHUTDOWN, Body::None);
                    }
                    if since.elapsed() > FAREWELL {
                        self.doors.hang_up();
                        break;
                    }
                }
            }
        }
        self.send_replies();
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
            Message::Connection(connection) => self.clients.enter(*connection, self.doors),
            Message::Asked(mut request, answer) => {
                request.asker = self.clients.waits(answer);
                self.arrived(*request);
            }
            Message::Command(text, answer) => {
                let said = self
                    .command(&text)
                    .unwrap_or_else(|sentence| json!({ "error": sentence }));
                let _ = answer.send(said);
            }
        }
    }

    fn arrived(&mut self, request: Request) {
        if request.head.command == Command::BlockStatus {
            return self.block_status(&request);
        }
        let units = self.changes(&request);
        let conflicts = units.clone().any(|unit| self.busy.contains(&unit));
        let behind = |held: &Request| {
            let other = self.changes(held);
            other.start < units.end && units.start < other.end
        };
        if self.clock.now_ns() < self.ready_ns || conflicts || self.held.iter().any(behind) {
            self.report.held += 1;
            self.held.push_back(request);
            return;
        }
        self.begin(request);
    }

    /// That a request fails which needs what was lost with a die, or would leave some of that behind.
    fn lost(&self, target: &Target, command: Command, torn: bool) -> Option<Failure> {
        let op = if command == Command::WriteZeroes {
            OpKind::Write
        } else {
            target.op
        };
        let unit = u64::from(self.drive.geometry().unit_bytes);
        if !self.faults.has_failed_dies() {
            return None;
        }
        let needed = Target { op, ..*target }.needs(unit);
        let touched = target.offset / unit..(target.offset + target.length).div_ceil(unit);
        let is_lost = |unit| self.drive.is_lost(unit);
        let fails = needed.into_iter().any(is_lost) || torn && op == OpKind::Write && touched.into_iter().any(is_lost);
        fails.then_some(Failure::Io)
    }

    fn take_up_held(&mut self) {
        let waiting = std::mem::take(&mut self.held);
        for request in waiting {
            let before = self.report.held;
            self.arrived(request);
            self.report.held = before;
        }
    }

    fn begin(&mut self, mut request: Request) {
        let now = self.clock.now_ns();
        let head = request.head;
        let kind = match head.command {
            Command::Read => OpKind::Read,
            Command::Write => OpKind::Write,
            Command::Flush => OpKind::Flush,
            _ => OpKind::Trim,
        };
        let target = Target {
            op: kind,
            offset: head.offset,
            length: u64::from(head.length),
            fua: head.flags & command_flag::FUA != 0,
            now_ns: now,
        };
        let verdict = self.faults.judge(&target, || self.drive.wear());
        if let Some(failed) = verdict.failed_die {
            let lost = self.drive.fail_die(failed.die);
            self.faults.die_failed(failed, lost);
        }
        if let Some(fault) = verdict.stuck_by {
            self.stuck.push((fault, request));
            return;
        }
        let writes = matches!(head.command, Command::Write | Command::WriteZeroes);
        let failure = verdict
            .failure
            .or_else(|| self.lost(&target, head.command, verdict.torn));
        if let Some(error) = failure
            .map(error::of)
            .or((self.worn_out && writes).then_some(error::EPERM))
        {
            self.report.failed(error);
            return self.reply(&request, error, Body::None);
        }
        let fua = head.flags & command_flag::FUA != 0 && !verdict.drop_flush;
        let dropped = kind == OpKind::Flush && verdict.drop_flush;
        let units = self.changes(&request);
        // Before the data is moved: what is written behind it would have to wait until all of that is in memory.
        let op = self.ops.enter(Op {
            request: None,
            kind,
            body: Body::None,
            error: 0,
            parts_left: 0,
            then_flush: fua && kind == OpKind::Trim,
            stall_ns: verdict.stall_ns,
            submitted_ns: u64::MAX,
            done_ns: now,
            units: units.clone(),
            before: None,
            covers: (kind == OpKind::Flush && !dropped).then(|| self.log.as_ref().map_or(0, PowerLog::acknowledged)),
            forced: fua && kind == OpKind::Write,
        });
        let before = self.before_a_write(&head);
        let body = match self.move_data(&mut request, &units, &verdict) {
            Ok(body) => {
                self.ops.get_mut(op).before = before;
                body
            }
            Err(error) => {
                self.ops.leave(op);
                self.undo(&units);
                self.report.failed(error);
                return self.reply(&request, error, Body::None);
            }
        };
        self.busy.extend(units);
        let export = request.export;
        let data = std::mem::take(&mut request.data);
        let entered = self.ops.get_mut(op);
        (entered.request, entered.body) = (Some(request), body);
        if dropped {
            entered.submitted_ns = now;
        } else {
            self.submit_all(op, &head, kind, fua, &data, export);
        }
        if self.ops.get(op).parts_left == 0 {
            self.finish(op, now);
        }
    }
}
