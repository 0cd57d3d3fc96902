//! What the writes to come will look up on a drive that deduplicates, brought into the processor's cache. No effect on the model.
//!
//! A write waits for memory four times, each time for what the last answer names: where to look, the fingerprint there, what that
//! stands for, and the fingerprint of what is overwritten. So each is asked for some requests before its turn, for a group of requests
//! at once: short loops cost half of what four steps for each request do. A small table stays in the cache by itself; values and the
//! map do not.

use ftlab_core::Lpn;

use crate::backend::Backend;
use crate::dedup::fingerprints::Fingerprints;
use crate::dedup::units::{of_place, place_of};
use crate::ftl::Ftl;
use crate::indirection::Of;
use crate::record::{Entry, Target};

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
                table.prefetch_place(place_of(Of::Lpn(lpn)));
            }
        }
        for (lpn, content) in ahead(3) {
            let of = self.known_as(lpn);
            if let Of::Vpn(vpn) = of {
                self.indirection.prefetch(vpn);
            }
            if is_large {
                table.prefetch_at_content(content);
                match of {
                    Of::Lpn(_) => table.prefetch_at_place(place_of(of)),
                    Of::Vpn(_) => table.prefetch_place(place_of(of)),
                }
            }
        }
        for (lpn, content) in ahead(2) {
            self.prefetch_found(table, is_large, lpn, content);
        }
        if is_large {
            for (lpn, _) in ahead(1) {
                table.prefetch_end(place_of(self.known_as(lpn)));
            }
        }
    }

    #[inline(always)]
    fn prefetch_found(&self, table: &Fingerprints, is_large: bool, lpn: Lpn, content: u64) {
        let ends = match self.record.map.get(lpn.at()).map(|&entry| Entry(entry).target()) {
            Some(Target::Slot(slot)) => Some(slot),
            Some(Target::Vpn(vpn)) => {
                if is_large {
                    table.prefetch_at_place(place_of(Of::Vpn(vpn)));
                }
                self.indirection.ends_with_one(vpn)
            }
            _ => None,
        };
        if let Some(slot) = ends {
            self.record.prefetch_validity(slot);
            self.units.prefetch(self.layout.ru_of(slot));
        }
        match table.prefetch_hit(content).map(of_place) {
            Some(Of::Vpn(vpn)) => self.indirection.prefetch(vpn),
            Some(Of::Lpn(lpn)) => self.record.prefetch_entry(lpn.0),
            None => {}
        }
    }

    /// What the dedup policy knows the unit at `lpn` by.
    #[inline(always)]
    fn known_as(&self, lpn: Lpn) -> Of {
        match self.record.map.get(lpn.at()).map(|&entry| Entry(entry).target()) {
            Some(Target::Vpn(vpn)) => Of::Vpn(vpn),
            _ => Of::Lpn(lpn),
        }
    }
}
