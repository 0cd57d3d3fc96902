//! Copies that are made while dies are idle.

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, Notice, Ticket};
use crate::ftl::Ftl;
use crate::indirection::MAX_COPIES;
use crate::owner::{Owner, Packed};
use crate::record::Target;
use ftlab_core::{LaneId, Lpn};

impl<B: Backend> Ftl<B> {
    /// Starts the clock of idle-time copies; called once when the drive starts.
    pub fn start_idle_copies(&mut self) {
        if let Some(idle_ns) = self.roles.replication.as_ref().and_then(|policy| policy.idle_ns()) {
            self.backend.arm(idle_ns, Notice::IdleCopy);
        }
    }

    /// If some die is idle, makes the copy that the replication policy wants; then asks again after the same time.
    pub(crate) fn copy_when_idle(&mut self) {
        let now = self.now();
        let idle_ns = self.roles.replication.as_ref().and_then(|policy| policy.idle_ns());
        let Some(idle_ns) = idle_ns else { return };
        let idle: Vec<LaneId> = (0..self.layout.lanes)
            .map(LaneId)
            .filter(|&lane| self.lane_is_idle(lane, idle_ns))
            .collect();
        let wanted = match &mut self.roles.replication {
            Some(policy) if !idle.is_empty() => policy.when_idle(now),
            _ => None,
        };
        if let Some(lpn) = wanted {
            self.add_copy(lpn, &idle);
        }
        self.backend.arm(idle_ns, Notice::IdleCopy);
    }

    /// Makes one more copy of `lpn`, on one of the `idle` lanes that has none yet.
    pub(crate) fn add_copy(&mut self, lpn: Lpn, idle: &[LaneId]) {
        let (vpn, slots) = match self.record.entry(lpn).target() {
            Target::Slot(slot) => (None, vec![slot]),
            Target::Vpn(vpn) if self.indirection.copy_count(vpn) < MAX_COPIES => {
                (Some(vpn), self.indirection.copies_of(vpn).collect())
            }
            _ => return,
        };
        let lanes: Vec<LaneId> = slots
            .iter()
            .map(|&slot| self.layout.lane_of(self.layout.ru_of(slot)))
            .collect();
        let Some(&lane) = idle.iter().find(|lane| !lanes.contains(lane)) else {
            return;
        };
        let Some(place) = self.open_for_copy(0, lane) else {
            return;
        };
        // Making room may have moved the copies: look again.
        let vpn = match (vpn, self.record.entry(lpn).target()) {
            (Some(vpn), _) => vpn,
            (None, Target::Slot(slot)) => self.make_value(lpn, slot),
            _ => return,
        };
        let source = self.indirection.first_slot(vpn).expect("a copied unit lies in flash");
        let page = self.layout.page_of(source);
        if B::TIMED && !self.being_filled(page) {
            let op = FlashOp {
                kind: FlashOpKind::Read,
                class: Class::Gc,
                cause: Cause::Replication,
                page,
                bytes: self.layout.geometry.unit_bytes,
                ticket: Ticket::NONE,
                notice: None,
            };
            let read = self.backend.issue(op, &[]);
            self.frontiers.open[place].inputs.push(read);
        }
        let slot = self.append(
            place,
            Packed::from(Owner::Vpn(vpn)),
            Cause::Replication,
            Class::Gc,
            Ticket::NONE,
        );
        self.counts.replica_programs += 1;
        if let Some(versions) = &mut self.versions {
            versions.moved(source, slot);
        }
        self.indirection.add_copy(vpn, slot);
        self.pad(place);
        self.vpn_changed(vpn, Ticket::NONE);
    }
}
