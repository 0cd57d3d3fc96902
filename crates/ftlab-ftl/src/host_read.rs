//! Host reads.

use ftlab_core::{Lpn, Slot};

use crate::backend::{Backend, FlashOp, Need, OpId, Ticket};
use crate::ftl::Ftl;
use crate::indirection::Of;
use crate::mapping::Why;
use crate::pages_to_read::PagesToRead;
use crate::record::Target;
use crate::request::HostRequest;
use crate::units::RuState;

impl<B: Backend> Ftl<B> {
    #[inline(always)]
    pub(crate) fn read(&mut self, request: &HostRequest<'_>, ticket: Ticket) {
        self.counts.host_read_requests += 1;
        self.counts.host_reads += u64::from(request.units);
        if request.units == 1
            && self.plain_mapping
            && self.plain_buffer
            && self.roles.replication.is_none()
            && !self.roles.tells_reads
            && let Some(slot) = self.record.entry(request.first).as_slot()
        {
            return self.read_plain(request, slot, ticket);
        }
        self.read_units(request, ticket);
    }

    #[inline(never)]
    fn read_units(&mut self, request: &HostRequest<'_>, ticket: Ticket) {
        let asks = self.roles.replication.is_some();
        if !self.plain_mapping {
            let end = request.first.0 + request.units;
            self.look_up(0, request.first.0..end, end, Why::HostRead, ticket);
            if !self.roles.is_none() {
                self.look_up_behind(request.first.0..end, ticket);
            }
        }
        let unit_bytes = self.layout.geometry.unit_bytes;
        let mut pages = (request.units > 1).then(|| std::mem::take(&mut self.pages_to_read));
        for step in 0..request.units {
            let lpn = Lpn(request.first.0 + step);
            if !self.plain_buffer && self.read_buffered(lpn) {
                self.counts.buffer_read_hits += 1;
                continue;
            }
            let mut wanted = unit_bytes;
            if step == 0 {
                wanted -= request.head_skip;
            }
            if step + 1 == request.units {
                wanted -= request.tail_skip;
            }
            let slot = match self.record.entry(lpn).target() {
                Target::Unmapped => {
                    self.counts.unmapped_reads += 1;
                    if let Some(versions) = &self.versions {
                        versions.check(lpn, 0, format_args!("where nothing is mapped"));
                    }
                    continue;
                }
                Target::Slot(slot) => slot,
                Target::Vpn(vpn) => {
                    if self.roles.tells_reads {
                        self.tell_read(Of::Vpn(vpn));
                    }
                    self.read_value(lpn, vpn, wanted, pages.as_mut(), ticket);
                    continue;
                }
                Target::Chunks(row) => {
                    self.read_chunks(lpn, row, wanted, pages.as_mut(), ticket);
                    continue;
                }
            };
            self.check_read(lpn, slot);
            if self.roles.tells_reads {
                self.tell_read(Of::Lpn(lpn));
            }
            if asks {
                self.plan_read(lpn, None, &[slot]);
            }
            let page = self.layout.page_of(slot);
            match &mut pages {
                Some(pages) => pages.add(page, wanted),
                None => {
                    self.issue_host_read(page, wanted, ticket);
                }
            }
        }
        if let Some(mut pages) = pages {
            self.read_pages(&mut pages, ticket);
            self.pages_to_read = pages;
        }
        self.wait_for_map(ticket);
        if !self.plain_buffer && !self.end_of_life {
            self.drain_buffer(Ticket::NONE);
        }
    }

    /// Whether the write buffer holds `lpn`; if not, the unit that lies in flash may enter it.
    fn read_buffered(&mut self, lpn: Lpn) -> bool {
        let in_flash = self.stamp_of(self.record.entry(lpn));
        let hit = self.buffer.read(lpn, in_flash);
        if let (true, Some(versions)) = (hit, &self.versions) {
            let found = self.buffer.held(lpn).unwrap_or(0);
            versions.check(lpn, found, format_args!("in the write buffer"));
        }
        hit
    }

    /// The common case: one unit that lies in flash, and nobody to ask.
    #[inline(always)]
    fn read_plain(&mut self, request: &HostRequest<'_>, slot: Slot, ticket: Ticket) {
        self.check_read(request.first, slot);
        let bytes = self.layout.geometry.unit_bytes - request.head_skip - request.tail_skip;
        let page = self.layout.page_of(slot);
        if B::TIMED && self.map_ready.is_empty() && !self.being_filled(page) {
            self.counts.data_page_reads += 1;
            self.backend.issue_sole(FlashOp::host_read(page, bytes, ticket));
        } else {
            self.issue_host_read(page, bytes, ticket);
            self.wait_for_map(ticket);
        }
    }

    /// Reads what has been gathered for the host.
    fn read_pages(&mut self, pages: &mut PagesToRead, ticket: Ticket) {
        for (page, bytes) in pages.iter() {
            self.issue_host_read(page, bytes, ticket);
        }
        pages.clear();
    }

    /// Reads `bytes` of a page for the host, from the controller if the page is still being assembled there.
    #[inline]
    pub(crate) fn issue_host_read(&mut self, page: u32, bytes: u32, ticket: Ticket) -> OpId {
        if self.being_filled(page) {
            self.counts.buffer_read_hits += 1;
            self.wait_for_inputs(page, ticket);
            return OpId::DONE;
        }
        self.counts.data_page_reads += 1;
        if !B::TIMED {
            self.assert_written(page);
            return OpId::DONE;
        }
        let page = if self.roles.stand_ins.is_some() {
            self.least_loaded_page(page)
        } else {
            page
        };
        self.backend
            .issue(FlashOp::host_read(page, bytes, ticket), &self.map_ready)
    }

    /// Whether `page` is still being assembled in the controller.
    #[inline]
    pub(crate) fn being_filled(&self, page: u32) -> bool {
        if self.layout.units_per_page == 1 {
            return false;
        }
        let first = Slot(page * self.layout.units_per_page);
        let ru = &self.units.rus[self.layout.ru_of(first).at()];
        ru.state == RuState::Open && {
            let open = &self.frontiers.open[ru.place as usize];
            first.0 + self.layout.units_per_page > open.base + open.next
        }
    }

    /// Without a flash array behind the operations this is what notices a read of an erased or unwritten page; a backend with
    /// time asserts it when the read is issued.
    ///
    /// # Panics
    /// If `page` is not in flash: the program is wrong.
    #[inline]
    pub(crate) fn assert_written(&self, page: u32) {
        let first = Slot(page * self.layout.units_per_page);
        let ru = &self.units.rus[self.layout.ru_of(first).at()];
        let written = match ru.state {
            RuState::Closed | RuState::Collecting => true,
            RuState::Open => {
                let open = &self.frontiers.open[ru.place as usize];
                first.0 < open.base + open.next
            }
            RuState::Free | RuState::Bad => false,
        };
        assert!(written, "read of page {page}, which is erased or not yet written");
    }

    /// A unit of a page that is still being assembled may be waiting for its own source (a copy of garbage collection).
    pub(crate) fn wait_for_inputs(&mut self, page: u32, ticket: Ticket) {
        if B::TIMED && ticket.is_awaited() {
            let ru = self.layout.ru_of(Slot(page * self.layout.units_per_page));
            let open = &self.frontiers.open[self.units.rus[ru.at()].place as usize];
            if !open.inputs.is_empty() {
                self.backend.join(&open.inputs, Need::All, ticket, None);
            }
        }
    }

    /// Holds a read against the last version written (checked runs only).
    #[inline]
    pub(crate) fn check_read(&self, lpn: Lpn, slot: Slot) {
        if let Some(versions) = &self.versions {
            assert!(
                self.record.is_valid(slot),
                "{lpn:?} is mapped to {slot:?}, which is not valid"
            );
            versions.check(lpn, versions.of_slot(slot), format_args!("at {slot:?}"));
        }
    }
}
