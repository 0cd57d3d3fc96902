//! The record after a power cut, from the last checkpoint, the log and the journal.

use ftlab_core::{Lpn, RuId, Slot};

use crate::backend::Backend;
use crate::changes::What;
use crate::ftl::Ftl;
use crate::owner::Owner;
use crate::record::Entry;
use crate::recovery::log::Ghost;
use crate::recovery::{Event, Recovery, RecoveryReport};
use crate::surviving::Spare;
use crate::translation::CHECKPOINT_TABLE;

impl<B: Backend> Ftl<B> {
    /// Units whose erase had not begun hold their old data. Returns the units that must be erased before they are used.
    pub(super) fn restore_ghosts(&mut self, recovery: &mut Recovery) -> Vec<bool> {
        let backend = &self.backend;
        let is_done = |id| backend.is_done(id);
        let mut spoilt = vec![false; self.layout.rus as usize];
        let ghosts: Vec<(u32, Vec<Ghost>)> = recovery.ghosts.drain().collect();
        for (ru, ghosts) in ghosts {
            spoilt[ru as usize] = !ghosts.iter().all(|ghost| ghost.is_complete(is_done));
            let mut whole = ghosts.into_iter().filter(|ghost| ghost.is_whole(is_done));
            let Some(first) = whole.next() else { continue };
            let undone = 1 + whole.count() as u32;
            match first.erased_at_before {
                Some(position) => recovery.erased_at.insert(ru, position),
                None => recovery.erased_at.remove(&ru),
            };
            if let Some(content) = first.content {
                let at = self.layout.first_slot(RuId(ru)).at();
                self.record.owners[at..at + content.owners.len()].copy_from_slice(&content.owners);
                if let Some(versions) = &mut self.versions {
                    versions.restore(at, &content.stamps);
                }
                if let Some(lost) = &mut self.lost {
                    lost.restore(at, content.owners.len(), &content.lost);
                }
                recovery.take_spares(at as u32..(at + content.owners.len()) as u32);
                recovery.spares.extend(content.spares);
            }
            if self.units.unerase(RuId(ru), undone) {
                self.counts.retired = self.counts.retired.saturating_sub(1);
            }
        }
        spoilt
    }

    /// The map, from the base, the log and the journal. Protected memory keeps what lies behind values. Returns the LPNs of which
    /// only a spare area said that they refer to a value.
    pub(super) fn rebuild(&mut self, recovery: &Recovery, report: &mut RecoveryReport) -> Vec<Lpn> {
        let rebuilds_values = !self.config.buffer.power_loss_protected && !self.roles.is_none();
        let entries = self.record.map.iter().enumerate();
        let virtual_lpns: Vec<(usize, u32)> = entries
            .filter(|(_, entry)| **entry != Entry::UNMAPPED.0 && Entry(**entry).as_slot().is_none())
            .map(|(lpn, entry)| (lpn, *entry))
            .collect();
        self.record.map.fill(Entry::UNMAPPED.0);
        self.translation.forget();
        let (mut rows, mut by_spare) = (Vec::new(), Vec::new());
        if rebuilds_values {
            self.find_values(recovery);
            self.entries_then(&recovery.base_values, &mut rows);
        }
        let first_row = rows.len();
        rows.extend_from_slice(recovery.changes.rows());
        let per_page = self.layout.units_per_page;
        let layout = self.layout.clone();
        recovery.replay(&layout, |event| match event {
            Event::Kept(slot) => self.adopt(slot, recovery, None),
            Event::Programmed(page) => {
                report.scanned_pages += 1;
                let first = page * per_page;
                for slot in (first..first + per_page).map(Slot) {
                    self.adopt(slot, recovery, rebuilds_values.then_some(&mut by_spare));
                }
            }
            Event::Changed(What::Entry(lpn, entry), _) => self.change_entry(lpn, entry, &rows, first_row),
            Event::Changed(What::Lies(..) | What::Gathered(..), _) => {}
        });
        if rebuilds_values {
            self.count_references(&rows, &mut by_spare);
        } else {
            for (lpn, entry) in virtual_lpns {
                self.record.map[lpn] = entry;
            }
        }
        report.checkpoint_units = u64::from(recovery.checkpoint_pages);
        report.probed_pages = u64::from(self.layout.rus);
        by_spare
    }

    /// The owner in this slot's spare area takes the slot as its newest place. An LPN that a value was written for refers to
    /// it, if nothing newer is known, and is added to `by_spare`.
    fn adopt(&mut self, slot: Slot, recovery: &Recovery, by_spare: Option<&mut Vec<Lpn>>) {
        match (Owner::from(self.record.owner(slot)), recovery.spares.get(&slot.0)) {
            (Owner::Lpn(lpn), _) | (Owner::Vpn(_), Some(&Spare::Was(lpn, _))) => {
                self.record.set_entry(lpn, Entry::slot(slot));
            }
            (Owner::Vpn(vpn), Some(&Spare::For(lpn, _))) => {
                if let Some(by_spare) = by_spare {
                    self.record.set_entry(lpn, Entry::vpn(vpn));
                    by_spare.push(lpn);
                }
            }
            (Owner::Map { table, tvpn }, _) => self.translation.page_moved(table, tvpn, slot),
            (Owner::Policy(page), _) if self.mapping.is_live(page) => self.translation.policy_page_moved(page, slot),
            (Owner::Vpn(_) | Owner::Policy(_) | Owner::Journal | Owner::None, _) => {}
        }
    }

    /// Validity, valid counts and unit states from the rebuilt map.
    pub(super) fn recount(&mut self, spoilt: &[bool]) {
        let protected = self.config.buffer.power_loss_protected;
        self.record.validity_mut().fill(0);
        for lpn in (0..self.config.logical_units).map(Lpn) {
            let entry = self.record.entry(lpn);
            if let Some(slot) = entry.as_slot() {
                self.record.set_valid(slot);
            }
            if !protected && self.versions.is_some() {
                let found = self.stamp(lpn);
                if let Some(versions) = &mut self.versions {
                    versions.recovered(lpn, found);
                }
            }
        }
        let mut others: Vec<Slot> = self.indirection.slots().collect();
        (0..=CHECKPOINT_TABLE).for_each(|table| others.extend(self.translation.slots_of(table)));
        others.extend(self.translation.policy_slots());
        others.into_iter().for_each(|slot| self.record.set_valid(slot));
        let per_ru = self.layout.slots_per_ru;
        let valid: Vec<u32> = (0..self.layout.rus)
            .map(|ru| {
                let mut live = 0;
                self.record.for_each_valid(Slot(ru * per_ru), per_ru, |_| live += 1);
                live
            })
            .collect();
        self.units.recovered(&valid, spoilt, self.tick);
    }
}
