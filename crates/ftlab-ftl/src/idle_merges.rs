//! What deduplication does in idle moments: stored units are read and hashed, and merged with others of the same content.

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, Notice, Ticket};
use crate::dedup::{Idle, IdleWork};
use crate::ftl::Ftl;
use crate::idle_copies::MOST_AT_ONCE;
use crate::indirection::Of;
use crate::mapping::Why;
use crate::record::{Entry, Target};
use crate::replication::Event;
use ftlab_core::{LaneId, Lpn};

impl<B: Backend> Ftl<B> {
    /// If some lane is idle, does what the dedup policy wants; then looks again after the same time.
    pub(crate) fn merge_when_idle(&mut self) {
        let idle_ns = self.roles.dedup.as_ref().and_then(|policy| policy.idle_ns());
        let Some(idle_ns) = idle_ns else { return };
        if (0..self.layout.lanes).any(|lane| self.lane_is_idle(LaneId(lane), idle_ns)) {
            self.merge();
        }
        self.backend.arm(idle_ns, Notice::IdleMerge);
    }

    /// Without time, an idle moment comes after so many host units.
    pub(crate) fn merge_when_due(&mut self) {
        if B::TIMED || self.roles.merge_at.is_none_or(|at| self.tick < at) {
            return;
        }
        let every = self.roles.dedup.as_ref().and_then(|policy| policy.idle_units());
        self.roles.merge_at = every.map(|every| self.tick + every.max(1));
        self.merge();
    }

    fn merge(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            let idle = Idle {
                now: self.now(),
                ends: self.config.logical_units,
                indirection: &self.indirection,
            };
            let Some(policy) = self.roles.dedup.as_mut().filter(|_| !self.end_of_life) else {
                return;
            };
            self.roles.works.clear();
            match policy.when_idle(&idle, &mut self.roles.works) {
                None => return,
                Some(IdleWork::Examine { lpn }) => self.examine(lpn),
                Some(IdleWork::Merge { lpn, into }) => self.merge_unit(lpn, into),
            }
        }
    }

    /// Reads the stored unit of `lpn`; the works that were asked for begin when it has been read.
    fn examine(&mut self, lpn: Lpn) {
        if lpn.0 >= self.config.logical_units {
            return;
        }
        let mut slots = std::mem::take(&mut self.roles.slots);
        slots.clear();
        match self.record.entry(lpn).target() {
            Target::Vpn(vpn) => slots.extend(self.indirection.first_slot(vpn)),
            _ => self.places_into(self.record.entry(lpn), &mut slots),
        }
        slots.sort_unstable_by_key(|slot| slot.0);
        slots.dedup_by_key(|slot| self.layout.page_of(*slot));
        let mut reads = std::mem::take(&mut self.roles.programs);
        reads.clear();
        for &slot in &slots {
            let page = self.layout.page_of(slot);
            if self.being_filled(page) {
                continue;
            }
            if !B::TIMED {
                self.assert_written(page);
                continue;
            }
            let op = FlashOp {
                kind: FlashOpKind::Read,
                class: Class::Gc,
                cause: Cause::Gc,
                page,
                bytes: self.layout.geometry.unit_bytes,
                ticket: Ticket::NONE,
                notice: None,
            };
            reads.push(self.backend.issue(op, &[]));
        }
        if B::TIMED && !slots.is_empty() {
            for work in &self.roles.works {
                self.backend.compute(work.engine, work.ns, &reads, Ticket::NONE);
            }
        }
        (self.roles.slots, self.roles.programs) = (slots, reads);
    }

    /// Maps `lpn` to what lies at `into`, as far as both hold something.
    fn merge_unit(&mut self, lpn: Lpn, into: Of) {
        let other = match into {
            Of::Lpn(other) if other.0 >= self.config.logical_units => return,
            Of::Lpn(other) => self.record.entry(other),
            Of::Vpn(vpn) if self.indirection.is_used(vpn) && self.indirection.first_slot(vpn).is_some() => {
                Entry::vpn(vpn)
            }
            Of::Vpn(_) => return,
        };
        let own = match lpn.0 < self.config.logical_units {
            true => self.record.entry(lpn),
            false => return,
        };
        if own == Entry::UNMAPPED || other == Entry::UNMAPPED || own == other {
            return;
        }
        assert!(
            self.stamp_of(own) == self.stamp_of(other),
            "{lpn:?} is merged with {into:?}, which holds something else"
        );
        if !self.plain_mapping {
            self.look_up(0, lpn.0..lpn.0 + 1, lpn.0 + 1, Why::HostWrite, Ticket::NONE);
        }
        // A collection for the look-up may have merged it.
        if self.record.entry(lpn).as_slot().is_some() {
            self.tell_replication(Event::Gone(Of::Lpn(lpn)));
        }
        if self.share(lpn, into, Ticket::NONE) && !self.plain_mapping {
            self.map_changed(0, lpn.0, Ticket::NONE);
        }
        self.map_ready.clear();
        self.write_full_journal_page();
    }
}
