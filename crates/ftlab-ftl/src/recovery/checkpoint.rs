//! Checkpoints: the whole map in flash, from which a new log begins.

use crate::backend::{Backend, Cause, OpId, Ticket};
use crate::ftl::Ftl;
use crate::indirection::{ROW_BYTES, VALUE_BYTES};
use crate::owner::Owner;
use crate::recovery::log::{NO_PAGE, NextBase};
use crate::translation::CHECKPOINT_TABLE;

impl<B: Backend> Ftl<B> {
    /// Takes a checkpoint if enough has been written since the last one. Called between requests.
    pub fn checkpoint_if_due(&mut self) {
        self.promote_checkpoint();
        if let Some(recovery) = &self.recovery
            && recovery.next.is_none()
            && !self.end_of_life
            && (self.tick - recovery.last_checkpoint_tick >= self.config.checkpoint_units
                || recovery.journal().count() > recovery.checkpoint_pages.max(1) as usize)
        {
            self.checkpoint();
        }
    }

    /// Units of a whole checkpoint as the drive is now: the map, and the tables of values and rows.
    pub(crate) fn checkpoint_units(&self) -> u32 {
        let (values, rows) = self.indirection.in_use_count();
        let copies = u64::from(values) + self.roles.further;
        self.units_of_checkpoint(copies, u64::from(rows))
    }

    /// The most that a checkpoint may take: each place of a value is a slot.
    pub(crate) fn most_checkpoint_units(&self) -> u32 {
        let places = self.roles.most_values(&self.layout);
        self.units_of_checkpoint(u64::from(places), u64::from(self.roles.most_rows(&self.config)))
    }

    fn units_of_checkpoint(&self, places: u64, rows: u64) -> u32 {
        let unit_bytes = self.layout.geometry.unit_bytes;
        self.config.logical_units.div_ceil(unit_bytes / 4) + units_behind(places, rows, unit_bytes) as u32
    }

    /// Writes the map, values and rows to flash (cause `metadata`) and starts a new log.
    pub fn checkpoint(&mut self) {
        let pages = if self.tick == 0 { 0 } else { self.checkpoint_units() };
        let left_over = self.translation.with_checkpoint(pages);
        left_over.into_iter().for_each(|slot| self.invalidate(slot));
        for tvpn in 0..pages {
            let owner = Owner::Map {
                table: CHECKPOINT_TABLE,
                tvpn,
            };
            if let Some(slot) = self.append_metadata(owner, Cause::Metadata, &[]) {
                self.translation.page_moved(CHECKPOINT_TABLE, tvpn, slot);
            }
        }
        self.counts.checkpoints += u64::from(pages > 0);
        // What the map says must be in flash; a protected page being assembled comes by the log.
        if !self.config.buffer.power_loss_protected {
            if !self.program_packs(Ticket::NONE) {
                return;
            }
            (0..self.frontiers.open.len()).for_each(|place| self.pad(place));
        }
        let values = self.values_now();
        let Some(mut recovery) = self.recovery.take() else {
            return;
        };
        let mut live = self.record.validity().to_vec();
        for open in &self.frontiers.open {
            let filled = open.next % self.layout.units_per_page;
            for slot in open.base + open.next - filled..open.base + open.next {
                live[slot as usize / 64] &= !(1 << (slot % 64));
            }
        }
        // Its own place in the log tells erases before it from erases after it.
        recovery.programmed(NO_PAGE, OpId::DONE);
        recovery.next = Some(NextBase {
            live,
            values,
            log: recovery.log.len(),
            changes: recovery.changes.len(),
            pages,
        });
        recovery.last_checkpoint_tick = self.tick;
        self.recovery = Some(recovery);
        self.promote_checkpoint();
    }

    /// A checkpoint counts when it and all that was issued before it is in flash.
    #[inline]
    pub(super) fn promote_checkpoint(&mut self) {
        let backend = &self.backend;
        let Some(recovery) = &mut self.recovery else { return };
        let Some(end) = recovery.next.as_ref().map(|next| next.log) else {
            return;
        };
        recovery.advance(|id| backend.is_done(id));
        if recovery.done < end {
            return;
        }
        let mut dead = Vec::new();
        let rested = recovery.promote(&mut dead);
        self.indirection.wake(rested);
        dead.into_iter().for_each(|slot| self.invalidate(slot));
    }
}

/// Units of the tables of values, by their places, and of rows of chunks.
pub(crate) fn units_behind(places: u64, rows: u64, unit_bytes: u32) -> u64 {
    let bytes = places * u64::from(VALUE_BYTES) + rows * u64::from(ROW_BYTES);
    bytes.div_ceil(u64::from(unit_bytes))
}
