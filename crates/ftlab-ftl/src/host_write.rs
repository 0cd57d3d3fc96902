//! Host writes, trims and flushes, and the write buffer between them and flash.

use ftlab_core::{Lpn, Slot};

use crate::backend::{Backend, Cause, Class, Need, OpId, Ticket};
use crate::buffer::Replaced;
use crate::dedup;
use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::indirection::Of;
use crate::mapping::Why;
use crate::placement::Event;
use crate::record::{Entry, Target};
use crate::replication;
use crate::request::{HostRequest, WriteContext};

impl<B: Backend> Ftl<B> {
    pub(crate) fn write(&mut self, request: &HostRequest<'_>, ticket: Ticket) {
        self.counts.host_write_requests += 1;
        self.counts.host_writes += u64::from(request.units);
        if let Some(tenants) = &mut self.tenants {
            tenants.written(request);
        }
        if self.plain_buffer
            && self.tenants.is_none()
            && self.roles.is_none()
            && request.units == 1
            && request.head_skip | request.tail_skip == 0
        {
            return self.write_plain(request, ticket);
        }
        if let Some(content) = self.only_content(request) {
            return self.write_known(request, content, ticket);
        }
        let through = !self.buffer.write_back() || request.fua();
        let mut context = request.write_context();
        if self.roles.dedup.is_some() && !request.context.contents.is_empty() {
            context.contents = Some(self.contents.enter(request, self.layout.geometry.unit_bytes));
        }
        self.know_parts(request, context.contents);
        let mut frontier = 0;
        let mut last_read = None;
        for step in 0..request.units {
            let lpn = Lpn(request.first.0 + step);
            self.tick += 1;
            context.content = context.contents.and_then(|list| self.contents.get(list).unit(step));
            if let Some(versions) = &mut self.versions {
                versions.written(lpn);
                if let Some(content) = context.content {
                    versions.written_content(lpn, content);
                }
                context.stamp = versions.of_lpn(lpn);
            }
            let partial = request.is_partial(step);
            if !self.plain_buffer && !through {
                match self.buffer_unit(lpn, &context) {
                    Replaced::Nothing if partial => {
                        self.read_old_version(request, step, &mut last_read, Ticket::NONE);
                    }
                    Replaced::Nothing => {}
                    Replaced::Clean | Replaced::Dirty(_) => self.counts.buffer_write_hits += 1,
                }
                self.map_ready.clear();
                continue;
            }
            if partial {
                self.read_old_version(request, step, &mut last_read, ticket);
                self.roles.old_version = self.map_ready.last().copied();
            }
            let stored = self.store(lpn, &context, context.request_end(), ticket);
            self.roles.old_version = None;
            let Some(chosen) = stored else {
                self.refused(lpn);
                break;
            };
            frontier = chosen;
            if !self.plain_buffer {
                if self.buffer.write_back() {
                    self.forget_buffered(lpn);
                } else {
                    self.buffer.write(lpn, &context);
                }
            }
        }
        self.contents.let_go(context.contents);
        if through {
            self.end_write_through(frontier, request, ticket);
        } else {
            self.drain_buffer(ticket);
        }
        if self.roles.idle_at.is_some() {
            self.copy_when_due();
        }
        if self.roles.merge_at.is_some() {
            self.merge_when_due();
        }
    }

    /// A write that may not wait in memory has ended: what it refers to is programmed, and it waits for that.
    fn end_write_through(&mut self, frontier: Frontier, request: &HostRequest<'_>, ticket: Ticket) {
        if self.roles.dedup.is_none() || self.config.buffer.power_loss_protected {
            return self.end_page_of(frontier, request.first, request.units);
        }
        self.program_packs(Ticket::NONE);
        self.end_page_of(frontier, request.first, request.units);
        self.wait_for_values(request.first.0..request.first.0 + request.units, ticket);
        if request.fua() && self.recovery.is_some() {
            self.flush_journal(ticket);
        }
    }

    /// The content of a write that consists of one whole unit, where the dedup policy is the only one to be asked about it.
    #[inline]
    fn only_content(&self, request: &HostRequest<'_>) -> Option<u64> {
        let [content] = *request.context.contents else {
            return None;
        };
        let is_one = request.units == 1
            && request.head_skip | request.tail_skip == 0
            && request.context.content_bytes == self.layout.geometry.unit_bytes
            && request.context.chunks.is_empty();
        let is_alone = self.has_one_frontier() && self.roles.dedup.is_some() && self.roles.replication.is_none();
        (is_one && is_alone).then_some(content)
    }

    /// The common case of a drive that deduplicates: one whole unit, and its content decides.
    fn write_known(&mut self, request: &HostRequest<'_>, content: u64, ticket: Ticket) {
        let lpn = request.first;
        self.tick += 1;
        self.contents.enter_only(content, self.layout.geometry.unit_bytes);
        if let Some(parts) = &mut self.parts {
            // An id of the whole says nothing of its parts.
            parts.forget(lpn);
        }
        let mut context = WriteContext {
            content: Some(content),
            ..request.write_context()
        };
        if let Some(versions) = &mut self.versions {
            versions.written(lpn);
            versions.written_content(lpn, content);
            context.stamp = versions.of_lpn(lpn);
        }
        match self.store(lpn, &context, lpn.0 + 1, ticket) {
            Some(frontier) => self.end_write_through(frontier, request, ticket),
            None => {
                self.refused(lpn);
                self.end_write_through(0, request, ticket);
            }
        }
        if self.roles.merge_at.is_some() {
            self.merge_when_due();
        }
    }

    /// Puts a unit into the write buffer, with what is known of it.
    fn buffer_unit(&mut self, lpn: Lpn, context: &WriteContext) -> Replaced {
        let replaced = self.buffer.write(lpn, context);
        if let Some(list) = context.contents {
            self.contents.hold(list);
        }
        if let Replaced::Dirty(before) = replaced {
            self.contents.let_go(before.contents);
        }
        replaced
    }

    /// The buffer gives up `lpn`: it has been trimmed, or written past the buffer.
    fn forget_buffered(&mut self, lpn: Lpn) {
        if let Some(context) = self.buffer.forget(lpn) {
            self.contents.let_go(context.contents);
        }
    }

    /// The common case: one whole unit that goes straight to flash, and only placement may be asked where.
    #[inline]
    fn write_plain(&mut self, request: &HostRequest<'_>, ticket: Ticket) {
        let lpn = request.first;
        self.tick += 1;
        if let Some(versions) = &mut self.versions {
            versions.written(lpn);
        }
        if !self.plain_mapping {
            self.look_up(0, lpn.0..lpn.0 + 1, lpn.0 + 1, Why::HostWrite, ticket);
        }
        let frontier = if self.plain_placement {
            0
        } else {
            self.place_host(lpn, &request.write_context())
        };
        let stored = self.program_unit(lpn, frontier, Cause::Host, Class::HostWrite, ticket);
        if stored && !self.plain_placement {
            self.note_placed(lpn);
        }
        if !self.plain_mapping {
            self.map_changed(0, lpn.0, ticket);
            self.wait_for_map(ticket);
        }
        if !stored {
            self.refused(lpn);
        }
        if stored || !self.plain_mapping {
            self.end_page_of(frontier, request.first, request.units);
        }
    }

    /// Whether writes pass no buffer and neither a policy nor tenants say where they go.
    #[inline(always)]
    pub(crate) fn has_one_frontier(&self) -> bool {
        self.plain_buffer && self.plain_placement && self.tenants.is_none()
    }

    #[cold]
    fn refused(&mut self, lpn: Lpn) {
        if let Some(versions) = &mut self.versions {
            versions.refused(lpn);
        }
    }

    /// Writes one unit past the buffer: look-up, dedup, placement, program. Returns the frontier, `None` at end of life. The
    /// units up to `request_end` will be looked up next; a unit that leaves the buffer comes alone.
    pub(crate) fn store(
        &mut self,
        lpn: Lpn,
        context: &WriteContext,
        request_end: u32,
        ticket: Ticket,
    ) -> Option<Frontier> {
        if let Some(versions) = &mut self.versions {
            versions.storing(context.stamp);
        }
        if !self.plain_mapping {
            self.look_up(0, lpn.0..lpn.0 + 1, request_end, Why::HostWrite, ticket);
        }
        let frontier = if self.plain_placement {
            0
        } else {
            self.place_host(lpn, context)
        };
        let programmed = self.counts.data_programs();
        let stored = if self.roles.is_none() {
            self.program_unit(lpn, frontier, Cause::Host, Class::HostWrite, ticket)
        } else {
            self.store_with_roles(lpn, frontier, context, ticket)
        };
        if stored {
            self.note_placed(lpn);
            if let Some(tenants) = &mut self.tenants {
                tenants.stored(lpn, context, self.counts.data_programs() - programmed);
            }
        }
        if !self.plain_mapping {
            self.map_changed(0, lpn.0, ticket);
        }
        self.wait_for_map(ticket);
        stored.then_some(frontier)
    }

    /// The request waits for its look-ups even if no data operation does.
    #[inline]
    pub(crate) fn wait_for_map(&mut self, ticket: Ticket) {
        if B::TIMED && ticket != Ticket::NONE && !self.map_ready.is_empty() {
            self.backend.join(&self.map_ready, Need::All, ticket, None);
        }
        self.map_ready.clear();
    }

    /// A write of `units` from `first` on that may not wait in memory has ended: program the pages that hold its last units.
    #[inline]
    pub(crate) fn end_page_of(&mut self, frontier: Frontier, first: Lpn, units: u32) {
        if self.layout.units_per_page == 1 {
            return;
        }
        if self.may_split() {
            for step in 0..units {
                self.end_pages_of_unit(Lpn(first.0 + step));
            }
        } else {
            let place = self.frontiers.place(frontier, self.current_lane[frontier as usize]);
            self.pad(place);
        }
    }

    /// Whether the units of one request may lie in several pages that are not full: by address, by stream, or because a
    /// collection in between has put copies elsewhere.
    fn may_split(&self) -> bool {
        self.layout.lanes > 1 || !self.plain_placement || !self.plain_mapping || !self.roles.is_none()
    }

    /// Programs the pages being assembled in which `lpn` lies.
    fn end_pages_of_unit(&mut self, lpn: Lpn) {
        match self.record.entry(lpn).target() {
            Target::Unmapped => {}
            Target::Slot(slot) => self.end_page_at(slot),
            Target::Vpn(_) | Target::Chunks(_) => {
                let mut slots = std::mem::take(&mut self.roles.slots);
                slots.clear();
                self.places_into(self.record.entry(lpn), &mut slots);
                slots.iter().for_each(|&slot| self.end_page_at(slot));
                self.roles.slots = slots;
            }
        }
    }

    fn end_page_at(&mut self, slot: Slot) {
        if self.being_filled(self.layout.page_of(slot)) {
            let ru = self.layout.ru_of(slot);
            self.pad(self.units.rus[ru.at()].place as usize);
        }
    }

    /// Programs what the buffer can no longer hold, and lets the request wait while too much is under way.
    pub(crate) fn drain_buffer(&mut self, ticket: Ticket) {
        while let Some((lpn, context)) = self.buffer.evict(false) {
            if !self.evict_unit(lpn, &context) {
                return;
            }
        }
        if B::TIMED {
            self.wait_for_buffer(ticket);
        }
    }

    pub(crate) fn wait_for_buffer(&mut self, ticket: Ticket) {
        while self.buffering.in_flight.len() > self.buffering.allowance {
            let Some(oldest) = self.buffering.in_flight.pop_front() else {
                return;
            };
            if ticket != Ticket::NONE && !self.backend.is_done(oldest) {
                self.backend.join(&[oldest], Need::All, ticket, None);
            }
        }
    }

    /// How much of the write buffer's room for programs under way is taken, 0 to 1.
    pub(crate) fn buffer_pressure(&self) -> f64 {
        let is_under_way = |program: &&OpId| !self.backend.is_done(**program);
        let under_way = self.buffering.in_flight.iter().filter(is_under_way).count();
        under_way as f64 / self.buffering.allowance.max(1) as f64
    }

    /// Programs a unit that leaves the write buffer.
    pub(crate) fn evict_unit(&mut self, lpn: Lpn, context: &WriteContext) -> bool {
        let stored = self.store(lpn, context, lpn.0 + 1, Ticket::NONE).is_some();
        if stored {
            self.contents.let_go(context.contents);
        } else {
            // A worn-out drive keeps what it can no longer program where it can be read.
            self.buffer.write(lpn, context);
        }
        stored
    }

    pub(crate) fn trim(&mut self, request: &HostRequest<'_>, ticket: Ticket) {
        self.counts.host_trim_requests += 1;
        let first = request.first.0 + u32::from(request.head_skip > 0);
        let end = request.first.0 + request.units - u32::from(request.tail_skip > 0 && request.units > 0);
        for lpn in (first..end).map(Lpn) {
            self.counts.host_trims += 1;
            if !self.plain_buffer {
                self.forget_buffered(lpn);
            }
            if let Some(versions) = &mut self.versions {
                versions.trimmed(lpn);
            }
            if !self.plain_placement {
                let now = self.now();
                self.placement.on(Event::Trimmed(lpn), now);
            }
            if self.record.entry(lpn) == Entry::UNMAPPED {
                continue;
            }
            if !self.plain_mapping {
                self.look_up(0, lpn.0..lpn.0 + 1, end, Why::Trim, ticket);
            }
            if self.roles.replication.is_some() {
                self.tell_replication(replication::Event::Gone(Of::Lpn(lpn)));
            }
            // The look-up may have written translation pages, so that a collection has moved the unit.
            let old = self.record.entry(lpn);
            match old.as_slot() {
                Some(slot) => {
                    self.invalidate(slot);
                    self.tell_dedup(dedup::Event::Gone(Of::Lpn(lpn)));
                }
                None => self.release(old),
            }
            self.record.set_entry(lpn, Entry::UNMAPPED);
            if let Some(recovery) = &mut self.recovery {
                recovery.trimmed(lpn);
            }
            if !self.plain_mapping {
                self.map_changed(0, lpn.0, ticket);
            }
            self.wait_for_map(ticket);
        }
        self.tell_places((first..end).map(Lpn));
    }

    pub(crate) fn flush(&mut self, ticket: Ticket) {
        self.counts.host_flushes += 1;
        if self.buffer.write_back() && !self.config.buffer.power_loss_protected {
            while let Some((lpn, context)) = self.buffer.evict(true) {
                if !self.evict_unit(lpn, &context) {
                    return;
                }
            }
            self.program_packs(Ticket::NONE);
            for place in 0..self.frontiers.open.len() {
                self.pad(place);
            }
            self.backend.barrier(ticket);
        } else if self.roles.dedup.is_some() && !self.config.buffer.power_loss_protected {
            // The journal may hold writes that still wait for what they refer to.
            self.backend.barrier(ticket);
        }
        if self.recovery.is_some() && !self.config.buffer.power_loss_protected {
            self.flush_journal(ticket);
        }
    }
}
