//! What an operator may do: look, reset, add and clear faults, cut the power, stop.

use serde_json::{Value, json};

use crate::protocol::error;
use crate::report::Report;
use crate::request::Body;
use ftlab_core::LiveDrive;

use super::Engine;
use super::data::{holds, restore};

impl<D: LiveDrive> Engine<'_, D> {
    /// A command of an operator.
    pub(super) fn command(&mut self, text: &str) -> Result<Value, String> {
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
                    one => Some(
                        one.parse()
                            .map_err(|_| format!("clear `{one}`: expected the number of a fault, or all"))?,
                    ),
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
    pub(super) fn release_stuck(&mut self) {
        let (held, free): (Vec<_>, Vec<_>) = std::mem::take(&mut self.stuck)
            .into_iter()
            .partition(|(fault, _)| self.faults.is_active(*fault));
        self.stuck = held;
        for (_, request) in free {
            self.arrived(request);
        }
    }

    pub(super) fn cut_power(&mut self) -> Result<Value, String> {
        let Some(mut log) = self.log.take() else {
            return Err(
                "power-cut: the drive keeps nothing to recover from; set ftl.checkpoint, e.g. to \"1GiB\"".to_owned(),
            );
        };
        let now = self.clock.now_ns();
        // Connections go with the power: no client sees an answer from before it afterwards.
        self.doors.hang_up();
        let lost = self.give_up(error::ESHUTDOWN);
        let loss = self.drive.cut_power();
        let back = log.fail(|unit| self.drive.version(unit).unwrap_or(0));
        let bytes = log.unit_bytes();
        let (mut units, mut refused) = (0u64, 0u64);
        for (unit, data) in back {
            // Trims of what held nothing have changed nothing.
            if !holds(self.store.as_mut(), unit * bytes, bytes, data.as_deref()) {
                units += 1;
                refused += u64::from(!restore(self.store.as_mut(), unit * bytes, bytes, data.as_deref()));
            }
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
        match refused {
            0 => Ok(cut),
            _ => Err(format!(
                "power-cut: the older data of {refused} units could not be put back: no memory, or the image refuses"
            )),
        }
    }

    /// Everything that is under way ends with `error`; how many that were.
    pub(super) fn give_up(&mut self, error: u32) -> usize {
        self.parts.clear();
        self.delayed.clear();
        self.busy.clear();
        self.flushing = false;
        let ops = self.ops.clear().into_iter().filter_map(|op| op.request);
        let stuck = std::mem::take(&mut self.stuck).into_iter().map(|(_, request)| request);
        let all: Vec<_> = ops.chain(stuck).chain(std::mem::take(&mut self.held)).collect();
        let count = all.len();
        for request in all {
            self.reply(&request, error, Body::None);
        }
        self.send_replies();
        // Sent before the power failed: it must not change what new clients see.
        self.incoming.clear();
        count
    }
}
