//! Engines of the controller: each does one work at a time, in the order in which they can begin.

use ftlab_core::Calendar;
use ftlab_ftl::{Class, OpId, Ticket};

use super::Timed;
use super::ops::{Kind, NONE, Op, State};
use crate::due::NEVER;

/// When each engine will be free, and the works under way.
#[derive(Default)]
pub(super) struct Engines {
    free_ns: Vec<u64>,
    works: Calendar,
}

impl Engines {
    pub fn clear(&mut self) {
        self.free_ns.clear();
        self.works.clear();
    }
}

impl Timed {
    pub(super) fn issue_work(&mut self, engine: u16, ns: u64, after: &[OpId], ticket: Ticket) -> OpId {
        let length = u32::try_from(ns).unwrap_or_else(|_| panic!("a work of {ns} ns; expected less than 4.3 s"));
        let index = self.ops.insert(Op {
            kind: Kind::Work,
            class: Class::HostWrite,
            ticket: ticket.0,
            page: u32::from(engine),
            bytes: length,
            ..Op::EMPTY
        });
        if ticket != Ticket::NONE {
            self.begin_path(index, ticket);
        }
        self.depend(index, after);
        let id = self.ops.id(index);
        if self.ops.at(index).deps == 0 {
            self.make_ready(index);
        }
        id
    }

    /// The work waits for its engine, and ends when that has done it.
    #[cold]
    pub(super) fn begin_work(&mut self, index: u32) {
        let now = self.now;
        let op = self.ops.at_mut(index);
        op.state = State::Running;
        let (engine, length) = (op.page as usize, u64::from(op.bytes));
        let engines = &mut self.engines;
        if engines.free_ns.len() <= engine {
            engines.free_ns.resize(engine + 1, 0);
        }
        let end = engines.free_ns[engine].max(now) + length;
        engines.free_ns[engine] = end;
        engines.works.push(end, index);
        let next = engines.works.next_time().unwrap_or(NEVER);
        self.agenda.set(self.engines_source(), next);
    }

    /// The work that ends now is done.
    pub(super) fn end_work(&mut self) {
        let now = self.now;
        if let Some((_, index)) = self.engines.works.pop_due(now) {
            let op = self.ops.at(index);
            if op.ticket != NONE {
                let length = u64::from(op.bytes);
                self.paths[index as usize].leave(now, 0, length);
            }
            self.complete(index);
        }
        // What has just completed may have begun another work, which has set the next time.
        let next = self.engines.works.next_time().unwrap_or(NEVER);
        self.agenda.set(self.engines_source(), next);
    }
}
