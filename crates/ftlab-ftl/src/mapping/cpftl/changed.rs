//! Changed entries on their way through the dirty entry index: in, out with their translation page, and moved by a collection.

use super::Cpftl;
use super::params::AfterWriteBack;
use crate::mapping::grouped::WANTED;
use crate::mapping::paging;
use crate::mapping::{Charge, MapCause, RecordView};
use crate::record::Entry;

impl Cpftl {
    /// A changed entry, which the clean cache does not hold, enters the dirty entry index.
    pub(super) fn put_dirty(&mut self, key: u32, entry: u32, charges: &mut Vec<Charge>) {
        let tvpn = self.paging.page_of(key);
        while let Some(dirty) = &mut self.dirty
            && dirty.find(key).is_none()
            && !dirty.fits(tvpn)
        {
            let (updates, most) = (&self.updates, self.params.second_chance);
            let frequent =
                |tvpn, entries| entries < most && updates.as_ref().is_some_and(|table| table.is_frequent(tvpn));
            let Some((victim, spared)) = dirty.victim(frequent) else {
                break;
            };
            self.figures.second_chances += spared;
            paging::rewrite(victim, MapCause::EvictRmw, charges);
            if self.params.serial {
                charges.push(Charge::Then);
            }
            self.flush(victim, charges);
        }
        if let Some(dirty) = &mut self.dirty {
            dirty.put(key, entry, self.cache.clock());
            self.cache.set_beside(tvpn, true);
        }
        self.share(charges);
    }

    /// The translation page has been programmed with its changed entries, which leave the index.
    pub(super) fn flush(&mut self, tvpn: u32, charges: &mut Vec<Charge>) {
        let mut stay = std::mem::take(&mut self.leaving);
        stay.clear();
        if let Some(dirty) = &mut self.dirty {
            let kept = self.params.after_write_back;
            let stored = dirty.take(tvpn, |left| {
                if kept == AfterWriteBack::Clean || (kept == AfterWriteBack::Read && left.read) {
                    stay.push(left);
                }
            });
            self.figures.dirty_stores += u64::from(stored > 0);
            self.figures.dirty_stored += u64::from(stored);
        }
        self.share(charges);
        // Their bytes have just become the clean cache's, so there is room unless it was short of some before.
        for left in &stay {
            self.cache.make_room(tvpn, charges);
            // Nobody looks at the entry unless the cache is checked.
            let entry = left.entry.unwrap_or(Entry::UNMAPPED.0);
            self.cache.insert_since(left.key, entry, WANTED, left.last_use);
        }
        self.cache.set_beside(tvpn, false);
        self.leaving = stay;
    }

    /// Collection with a dirty entry index.
    pub(super) fn moved_beside_dirty(&mut self, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        // First every place is brought up to date, so that whatever leaves meanwhile leaves as it is now.
        for &key in keys {
            let entry = record.entries[key as usize];
            if let Some(dirty) = &mut self.dirty
                && dirty.find(key).is_some()
            {
                dirty.refresh(key, entry);
            } else {
                self.cache.refresh(key, entry);
            }
        }
        let paging = self.paging;
        for of_page in keys.chunk_by(|&a, &b| paging.page_of(a) == paging.page_of(b)) {
            let tvpn = paging.page_of(of_page[0]);
            let missing = of_page.iter().any(|&key| !self.holds(key));
            if missing {
                paging::rewrite(tvpn, MapCause::GcUpdate, charges);
                self.flush(tvpn, charges);
                continue;
            }
            for &key in of_page {
                if self.dirty.as_ref().is_some_and(|dirty| dirty.find(key).is_some()) {
                    continue;
                }
                self.cache.set_beside(tvpn, true);
                if let Some(id) = self.cache.find(key) {
                    self.cache.discard(key, id);
                }
                self.put_dirty(key, record.entries[key as usize], charges);
            }
        }
    }
}
