//! Reads of old versions: a write that covers part of a unit takes the rest of it from there.

use ftlab_core::{Lpn, Slot};

use crate::backend::{Backend, FlashOp, OpId, Ticket};
use crate::ftl::Ftl;
use crate::record::Target;
use crate::request::HostRequest;

impl<B: Backend> Ftl<B> {
    /// Reads the old version of unit `step` of a write, which covers part of it. A request has two such units at most: where both
    /// lie in one flash page, that is read once, for the first, and `last` is its read.
    pub(crate) fn read_old_version(
        &mut self,
        request: &HostRequest<'_>,
        step: u32,
        last: &mut Option<OpId>,
        ticket: Ticket,
    ) {
        let lpn = Lpn(request.first.0 + step);
        if let Some(read) = last.take() {
            self.counts.rmw_reads += 1;
            if B::TIMED {
                self.map_ready.push(read);
            }
            return;
        }
        if !self.plain_buffer && self.buffer.is_dirty(lpn) {
            return;
        }
        let Some(slot) = self.old_slot(lpn) else { return };
        self.counts.rmw_reads += 1;
        let page = self.layout.page_of(slot);
        if self.being_filled(page) {
            return;
        }
        self.counts.data_page_reads += 1;
        let with_last = step == 0 && self.last_is_read_from(page, request);
        if !B::TIMED {
            self.assert_written(page);
            *last = with_last.then_some(OpId::DONE);
            return;
        }
        let units = 1 + u32::from(with_last);
        let op = FlashOp::host_read(page, units * self.layout.geometry.unit_bytes, ticket);
        let id = self.backend.issue(op, &[]);
        self.map_ready.push(id);
        *last = with_last.then_some(id);
    }

    /// Whether the old version of the last unit of a write of several is wanted as well, and lies in `page`.
    fn last_is_read_from(&self, page: u32, request: &HostRequest<'_>) -> bool {
        let last = Lpn(request.first.0 + request.units - 1);
        request.units > 1
            && request.is_partial(request.units - 1)
            && (self.plain_buffer || self.buffer.held(last).is_none())
            && self
                .old_slot(last)
                .is_some_and(|slot| self.layout.page_of(slot) == page)
    }

    /// Where the present version of `lpn` lies, or the first part of it.
    fn old_slot(&self, lpn: Lpn) -> Option<Slot> {
        match self.record.entry(lpn).target() {
            Target::Unmapped => None,
            Target::Slot(slot) => Some(slot),
            Target::Vpn(vpn) => self.indirection.first_slot(vpn),
            Target::Chunks(row) => self.indirection.first_slot(self.indirection.row(row)[0].value()),
        }
    }
}
