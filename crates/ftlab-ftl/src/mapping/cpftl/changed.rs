//! Changed entries on their way through the dirty entry index: in, out with their translation page, and moved by a collection.

use super::Cpftl;
use super::dirty::DirtyIndex;
use super::params::AfterWriteBack;
use crate::mapping::grouped::WANTED;
use crate::mapping::paging;
use crate::mapping::{Charge, MapCause, RecordView};
use crate::record::Entry;

impl Cpftl {
    /// Bytes for entries that nobody uses.
    fn unused(&self) -> u64 {
        self.cache.budget.saturating_sub(self.cache.used)
    }

    /// What must stay unused where changed entries take more than their share, and keep what has been written back.
    fn margin(&self) -> u64 {
        (self.params.margin * self.budget as f64) as u64
    }

    /// Before clean entries are loaded: changed ones beyond their share make room for them.
    pub(super) fn give_back(&mut self, charges: &mut Vec<Charge>) {
        while self.dirty.as_ref().is_some_and(DirtyIndex::is_over)
            && self.unused() < self.margin() / 2
            && self.write_back(charges)
        {}
    }

    /// A changed entry, which the clean cache does not hold, enters the dirty entry index.
    pub(super) fn put_dirty(&mut self, key: u32, entry: u32, charges: &mut Vec<Charge>) {
        let tvpn = self.paging.page_of(key);
        while let Some(dirty) = &self.dirty
            && dirty.find(key).is_none()
            && !dirty.fits(tvpn, self.unused().saturating_sub(self.margin()))
            && self.write_back(charges)
        {}
        if let Some(dirty) = &mut self.dirty {
            dirty.put(key, entry, self.cache.clock());
            self.cache.set_beside(tvpn, true);
        }
        self.share(charges);
    }

    /// A translation page is programmed with its changed entries. False if there is none.
    fn write_back(&mut self, charges: &mut Vec<Charge>) -> bool {
        let Some(dirty) = &mut self.dirty else { return false };
        let (updates, most) = (&self.updates, self.params.second_chance);
        let frequent = |tvpn, entries| entries < most && updates.as_ref().is_some_and(|table| table.is_frequent(tvpn));
        let Some((victim, spared)) = dirty.victim(frequent) else {
            return false;
        };
        self.figures.second_chances += spared;
        paging::rewrite(victim, MapCause::EvictRmw, charges);
        if self.params.serial {
            charges.push(Charge::Then);
        }
        self.flush(victim, charges);
        true
    }

    /// The translation page has been programmed with its changed entries, which leave the index.
    pub(super) fn flush(&mut self, tvpn: u32, charges: &mut Vec<Charge>) {
        let mut stay = std::mem::take(&mut self.leaving);
        stay.clear();
        // A collection writes pages back for what is not cached, however much room there is.
        let is_roomy = self.unused() >= self.margin();
        if let Some(dirty) = &mut self.dirty {
            let kept = self.params.after_write_back;
            let stored = dirty.take(tvpn, |left| {
                let stays = match kept {
                    AfterWriteBack::Room => left.read || is_roomy,
                    AfterWriteBack::Read => left.read,
                    AfterWriteBack::Clean => true,
                    AfterWriteBack::Drop => false,
                };
                if stays {
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

#[cfg(test)]
mod tests {
    use crate::mapping::testing::Harness;

    const QUIET: &str = "cpftl:dei=on,dirty_share=0.25,margin=0.125,request_prefetch=false,selective_prefetch=false";

    fn changed_bytes(harness: &Harness) -> u64 {
        let memory = harness.policy.memory();
        memory.iter().find(|(name, _)| *name == "dirty_entry_index").unwrap().1
    }

    #[test]
    fn with_the_whole_map_in_memory_nothing_is_written_back() {
        // 256 entries of 6 bytes in 16 nodes of 16, and an eighth more.
        let mut harness = Harness::new(QUIET, 256, 64, 2100);
        for round in 0..3 {
            let stores: Vec<String> = (0..256)
                .map(|key| harness.write(key))
                .filter(|w| !w.is_empty())
                .collect();
            assert!(stores.is_empty(), "round {round}: {stores:?}");
        }
        assert_eq!(changed_bytes(&harness), 256 * 6 + 16 * 16);
        // With less than an eighth beside them some are.
        let mut tight = Harness::new(QUIET, 256, 64, 2000);
        assert!(
            (0..256)
                .map(|key| tight.write(key))
                .any(|words| words.contains("evict"))
        );
    }

    #[test]
    fn what_a_collection_writes_back_stays_where_there_is_room() {
        let mut harness = Harness::new(QUIET, 256, 64, 2100);
        (0..8).for_each(|key| assert!(harness.write(key).is_empty()));
        // Key 9 is not cached: its page is written, and with it the eight, which nobody has read since.
        assert_eq!(harness.moved(&[3, 9]), "gc 0");
        assert_eq!(
            (changed_bytes(&harness), harness.policy.cached(0, 3)),
            (0, Some((harness.entries[3], false)))
        );
        assert!((0..8).all(|key| harness.write(key).is_empty()));
        assert_eq!(harness.hits(), (8, 16));
    }

    #[test]
    fn what_is_beyond_the_share_is_given_back_when_entries_are_loaded() {
        let mut harness = Harness::new(QUIET, 256, 64, 1000);
        // Six pages of 16: 672 bytes, of which 250 are their share.
        assert!((0..96).all(|key| harness.write(key).is_empty()));
        assert_eq!(changed_bytes(&harness), 672);
        let words: Vec<String> = (96..256).map(|key| harness.read(key)).collect();
        // 265 bytes of entries fit before a sixteenth is left: two pages and a part. Pages go in the order of their writes.
        let evicted: Vec<&String> = words.iter().filter(|words| words.contains("evict")).collect();
        assert_eq!(
            evicted,
            ["evict 0 load 8", "evict 1 load 9", "evict 2 load 10", "evict 3 load 11"]
        );
        assert_eq!(changed_bytes(&harness), 224);
    }
}
