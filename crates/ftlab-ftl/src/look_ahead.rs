//! What the writes to come will look up on a drive that deduplicates, brought into the processor's cache. No effect on the model.
//!
//! A write waits for memory four times, each time for what the last answer names: where to look, the fingerprint there, what that
//! stands for, and the fingerprint of what is overwritten. So each is asked for some requests before its turn, for a group of requests
//! at once: short loops cost half of what four steps for each request do. Nothing here jumps on what a unit or a table holds, as half
//! of such jumps would be guessed wrongly, each for as long as twenty instructions: where there is nothing to bring, something is asked
//! for that is in the cache anyway. A small table stays in the cache by itself; values and the map do not.

use std::hint::select_unpredictable;

use ftlab_core::{Lpn, Slot};

use crate::backend::Backend;
use crate::dedup::fingerprints::{Fingerprints, Place};
use crate::dedup::units::place_of;
use crate::ftl::Ftl;
use crate::indirection::{Of, Vpn};
use crate::record::Entry;

/// Requests of a group.
pub const GROUP: usize = 8;

/// The processor's cache keeps a table with so many fingerprints by itself.
const CACHED: u32 = 1 << 14;

impl<B: Backend> Ftl<B> {
    /// Whether [`Ftl::prefetch_contents`] does anything.
    pub fn looks_contents_up(&self) -> bool {
        self.contents_table().is_some()
    }

    fn contents_table(&self) -> Option<&Fingerprints> {
        self.roles.dedup.as_ref().and_then(|policy| policy.fingerprints())
    }

    /// Called once a [`GROUP`] of requests, before the first of them. `ahead` names the units, with their contents, of the group so
    /// many groups ahead; none where there are none.
    #[inline(always)]
    pub fn prefetch_contents<I: Iterator<Item = (Lpn, u64)>>(&self, ahead: impl Fn(usize) -> I) {
        let Some(table) = self.contents_table() else { return };
        let is_large = table.count() > CACHED;
        for (lpn, content) in ahead(4) {
            self.record.prefetch_entry(lpn.0);
            if is_large {
                table.prefetch_content(content);
            }
        }
        for (lpn, content) in ahead(3) {
            let known = self.known(lpn);
            self.indirection.prefetch(known.vpn);
            if is_large {
                table.prefetch_place(known.place);
                table.prefetch_at_content(content);
            }
        }
        for (lpn, content) in ahead(2) {
            let known = self.known(lpn);
            if is_large {
                table.prefetch_at_place(known.place);
            }
            let of_value = self.indirection.ends_with_one(known.vpn);
            let ends = select_unpredictable(known.is_value, of_value.map_or(NOWHERE, |slot| slot.0), known.entry);
            let ends = Slot(ends.min(self.layout.slots() - 1));
            self.record.prefetch_validity(ends);
            self.units.prefetch(self.layout.ru_of(ends));
            let place = table.prefetch_hit(content);
            let (number, is_value) = ((place >> 1) as u32, place & 1 == 1);
            self.indirection
                .prefetch(Vpn(select_unpredictable(is_value, number, 0)));
            self.record.prefetch_entry(select_unpredictable(is_value, 0, number));
        }
        if is_large {
            for (lpn, _) in ahead(1) {
                table.prefetch_end(self.known(lpn).place);
            }
        }
    }

    #[inline(always)]
    fn known(&self, lpn: Lpn) -> Known {
        let entry = self
            .record
            .map
            .get(lpn.at())
            .map_or(Entry::UNMAPPED, |&entry| Entry(entry));
        let vpn = entry.as_vpn();
        let is_value = vpn.is_some();
        let vpn = Vpn(select_unpredictable(is_value, vpn.unwrap_or_default().0, 0));
        let (direct, of_value) = (place_of(Of::Lpn(lpn)), place_of(Of::Vpn(vpn)));
        Known {
            entry: entry.0,
            is_value,
            vpn,
            place: select_unpredictable(is_value, of_value, direct),
        }
    }
}

/// No slot.
const NOWHERE: u32 = u32::MAX;

/// What the map says of a unit.
struct Known {
    entry: u32,
    is_value: bool,
    /// Of one that is no value: 0, which is in the cache.
    vpn: Vpn,
    /// What the dedup policy knows the unit by.
    place: Place,
}
