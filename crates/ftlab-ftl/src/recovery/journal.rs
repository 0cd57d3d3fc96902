//! The journal: pages of changes that no spare area tells of.

use ftlab_core::Slot;

use crate::backend::{Backend, Cause, Class, Need, OpId, Ticket};
use crate::ftl::Ftl;
use crate::owner::{Owner, Packed};
use crate::recovery::Recovery;
use crate::recovery::log::JournalPage;

impl<B: Backend> Ftl<B> {
    /// Writes the changes since the last flush to the journal; `ticket` waits for all of it that is under way.
    pub(crate) fn flush_journal(&mut self, ticket: Ticket) {
        self.write_journal(ticket);
        let Some(recovery) = &self.recovery else { return };
        // Changes may have been written before, on behalf of a collection.
        let programs = recovery.journal.iter().map(|page| page.program);
        let under_way: Vec<OpId> = programs.filter(|&id| !self.backend.is_done(id)).collect();
        if B::TIMED && ticket != Ticket::NONE && !under_way.is_empty() {
            self.backend.join(&under_way, Need::All, ticket, None);
        }
    }

    /// False if there is no room for all of them.
    pub(crate) fn write_journal(&mut self, ticket: Ticket) -> bool {
        let Some(recovery) = &self.recovery else { return true };
        if recovery.is_journalled() {
            return true;
        }
        let unit_bytes = self.layout.geometry.unit_bytes;
        let frontier = self.metadata_frontier(Owner::Journal);
        self.shorten_journal();
        // Making room may write the journal, or a checkpoint replace it.
        while let Some(recovery) = &self.recovery
            && !recovery.is_journalled()
            && let Some(place) = self.place_for_own(frontier)
        {
            let owner = Packed::from(Owner::Journal);
            let slot = self.append(place, owner, Cause::Metadata, Class::HostWrite, ticket);
            self.pad(place);
            if let Some(recovery) = &mut self.recovery {
                let first = recovery.journalled;
                let end = first + recovery.changes.fit(first, unit_bytes);
                let program = recovery.program(recovery.log.len() - 1);
                recovery.journalled = end;
                recovery.journal.push(JournalPage {
                    slot: Some(slot),
                    first,
                    end,
                    program,
                });
            }
        }
        self.recovery.as_ref().is_none_or(Recovery::is_journalled)
    }

    /// A journal of many pages that hold a few changes each is written anew.
    fn shorten_journal(&mut self) {
        let unit_bytes = u64::from(self.layout.geometry.unit_bytes);
        let backend = &self.backend;
        let Some(recovery) = &mut self.recovery else { return };
        let pages = recovery.changes.journal_bytes().div_ceil(unit_bytes);
        if recovery.journal().count() as u64 <= 2 * pages {
            return;
        }
        // A collection has to get along with what is free: all of the journal at once may be more than that.
        if self.gc.depth > 0 {
            let least = self.units.pools.iter().map(|pool| pool.free).min().unwrap_or(0);
            let pages_per_ru = u64::from(self.layout.slots_per_ru / self.layout.units_per_page);
            if pages > u64::from(least.saturating_sub(1)) * pages_per_ru {
                return;
            }
        }
        let complete = |page: &JournalPage| page.slot.is_none() || backend.is_done(page.program);
        if recovery.journal.iter().all(complete) {
            recovery.journal.retain(|page| page.slot.is_some());
        }
        let replaced: Vec<Slot> = recovery
            .journal
            .iter_mut()
            .filter_map(|page| page.slot.take())
            .collect();
        recovery.journalled = 0;
        replaced.into_iter().for_each(|slot| self.invalidate(slot));
    }
}
