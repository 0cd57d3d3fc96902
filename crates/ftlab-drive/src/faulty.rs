//! A device some of whose requests fail, wait or are answered falsely.
//!
//! # Model
//! Each request is judged when it is submitted; before it, a die fails whose time has come. A request that fails does not reach the
//! device and is answered at once. A stalled one is carried out as ever, and its completion comes later by the stall, which counts as
//! waiting (`queue_ns`).
//!
//! # Not modelled
//! What a host does about an error: it goes on as if it had been answered.
//!
//! # Cost
//! A look at each fault a request, and an ordered map of completions.

use std::collections::BTreeMap;

use ftlab_core::faults::{Failure, Faults, Target};
use ftlab_core::{BlockDevice, Breakdown, Completion, DeviceGeometry, IoContext, IoRequest, OpKind, Status, flags};
use rustc_hash::FxHashMap;

use crate::instrumented::{Gauges, Instrumented};
use crate::power::PowerCut;
use crate::tiles::Tile;

/// What faults are put on.
pub trait Driven: BlockDevice + Instrumented {}

impl<D: BlockDevice + Instrumented> Driven for D {}

/// A device with faults.
pub struct Faulty<'a> {
    device: &'a mut dyn Driven,
    faults: Faults,
    rated_pe_cycles: u32,
    /// By tag, of requests in the device.
    stalls: FxHashMap<u64, u64>,
    /// By time, then in the order in which they came.
    completed: BTreeMap<(u64, u64), Completion>,
    came: u64,
    of_device: Vec<Completion>,
    failed: [u64; Failure::ALL.len()],
}

impl<'a> Faulty<'a> {
    /// `rated_pe_cycles` is what the blocks are said to stand.
    pub fn new(device: &'a mut dyn Driven, faults: Faults, rated_pe_cycles: u32) -> Self {
        Faulty {
            device,
            faults,
            rated_pe_cycles,
            stalls: FxHashMap::default(),
            completed: BTreeMap::new(),
            came: 0,
            of_device: Vec::new(),
            failed: Default::default(),
        }
    }

    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Requests that failed, by what as.
    pub fn failed(&self) -> impl Iterator<Item = (Failure, u64)> {
        Failure::ALL.into_iter().zip(self.failed)
    }

    fn complete(&mut self, done: Completion) {
        self.completed.insert((done.done_ns, self.came), done);
        self.came += 1;
    }

    /// Answers without the device, after a stall.
    fn answer(&mut self, tag: u64, op: OpKind, status: Status, now_ns: u64, stall_ns: u64) {
        self.complete(Completion {
            tag,
            op,
            status,
            submitted_ns: now_ns,
            done_ns: now_ns + stall_ns,
            parts: Breakdown {
                queue_ns: stall_ns,
                ..Breakdown::default()
            },
        });
    }
}

impl BlockDevice for Faulty<'_> {
    fn geometry(&self) -> DeviceGeometry {
        self.device.geometry()
    }

    fn submit(&mut self, tag: u64, io: &IoRequest<'_>, now_ns: u64) {
        let target = Target {
            op: io.op,
            offset: io.offset,
            length: u64::from(io.length),
            fua: io.context.flags & flags::FUA != 0,
            now_ns,
        };
        let (device, rated) = (&self.device, f64::from(self.rated_pe_cycles));
        let mut verdict = self.faults.judge(&target, || device.mean_erases() / rated);
        if let Some(failed) = verdict.failed_die {
            let lost = self.device.fail_die(failed.die);
            self.faults.die_failed(failed, lost);
        }
        if self.faults.has_failed_dies() && verdict.failure.is_none() {
            let unit = u64::from(self.device.geometry().unit_bytes);
            let is_lost = target.needs(unit).any(|unit| self.device.is_lost(unit));
            verdict.failure = is_lost.then_some(Failure::Io);
        }
        if let Some(failure) = verdict.failure {
            self.failed[failure as usize] += 1;
            return self.answer(tag, io.op, Status::Failed, now_ns, 0);
        }
        let torn = if verdict.torn {
            Target::torn(u64::from(io.length)) as u32
        } else {
            io.length
        };
        if (verdict.drop_flush && io.op == OpKind::Flush) || (torn == 0 && io.length > 0) {
            return self.answer(tag, io.op, Status::Done, now_ns, verdict.stall_ns);
        }
        if verdict.stall_ns > 0 {
            self.stalls.insert(tag, verdict.stall_ns);
        }
        let kept = if verdict.drop_flush { !flags::FUA } else { !0 };
        let context = IoContext {
            flags: io.context.flags & kept,
            ..*io.context
        };
        let reaches = IoRequest {
            length: torn,
            context: &context,
            ..*io
        };
        self.device.submit(tag, &reaches, now_ns);
    }

    fn next_wakeup(&mut self) -> Option<u64> {
        let first = self.completed.first_key_value().map(|(&(at, _), _)| at);
        [first, self.device.next_wakeup()].into_iter().flatten().min()
    }

    fn advance(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        let mut of_device = std::mem::take(&mut self.of_device);
        self.device.advance(now_ns, &mut of_device);
        for mut done in of_device.drain(..) {
            let stall = self.stalls.remove(&done.tag).unwrap_or(0);
            done.done_ns += stall;
            done.parts.queue_ns += stall;
            self.complete(done);
        }
        self.of_device = of_device;
        while let Some(first) = self.completed.first_entry().filter(|first| first.key().0 <= now_ns) {
            out.push(first.remove());
        }
    }

    fn prefetch(&self, op: OpKind, offset: u64, ahead: usize) {
        self.device.prefetch(op, offset, ahead);
    }
}

impl Instrumented for Faulty<'_> {
    fn gauges(&self) -> Gauges {
        self.device.gauges()
    }

    fn uncollected(&self) -> f64 {
        self.device.uncollected()
    }

    fn tiles(&self, most: usize) -> Vec<Tile> {
        self.device.tiles(most)
    }

    fn mean_erases(&self) -> f64 {
        self.device.mean_erases()
    }

    fn is_offline(&self) -> bool {
        self.device.is_offline()
    }

    fn fail_die(&mut self, die: u32) -> u64 {
        self.device.fail_die(die)
    }

    fn is_lost(&self, unit: u64) -> bool {
        self.device.is_lost(unit)
    }

    fn cut_power(&mut self) -> PowerCut {
        self.stalls.clear();
        // Nobody hears of what was only to be answered.
        let unanswered = std::mem::take(&mut self.completed).len() as u64;
        let cut = self.device.cut_power();
        PowerCut {
            lost_requests: cut.lost_requests + unanswered,
            ..cut
        }
    }
}
