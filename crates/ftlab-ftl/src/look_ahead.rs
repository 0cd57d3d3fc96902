//! What the writes to come will look up on a drive that deduplicates, brought into the processor's cache. No effect on the model.
//!
//! A write waits for memory four times, each time for what the last answer names: where to look, the fingerprint there, what that
//! stands for, and the fingerprint of what is overwritten. So each is asked for some requests before its turn. A small table stays in
//! the cache by itself; values and the map do not.

use ftlab_core::Lpn;

use crate::backend::Backend;
use crate::dedup::fingerprints::Fingerprints;
use crate::dedup::units::{of_place, place_of};
use crate::ftl::Ftl;
use crate::indirection::Of;
use crate::record::{Entry, Target};

/// How many requests before its turn each step is taken. The map entry of a unit should be cached by the second.
const AHEAD: [usize; 4] = [24, 18, 12, 6];

/// The processor's cache keeps a table with so many fingerprints by itself.
const CACHED: u32 = 1 << 14;

/// Units of a request that are looked at: those of a long one follow each other in memory.
const MOST: usize = 8;

/// Most requests have one unit.
#[inline(always)]
fn each_of((first, contents): (u32, &[u64]), mut prefetch: impl FnMut(Lpn, u64)) {
    match *contents {
        [] => {}
        [only] => prefetch(Lpn(first), only),
        ref several => {
            let units = (first..).zip(several).take(MOST);
            units.for_each(|(lpn, &content)| prefetch(Lpn(lpn), content));
        }
    }
}

impl<B: Backend> Ftl<B> {
    /// `ahead` names the first unit and the contents of the request so many requests ahead; none where there are none.
    #[inline(always)]
    pub fn prefetch_contents<'a>(&self, ahead: impl Fn(usize) -> (u32, &'a [u64])) {
        let table = self.roles.dedup.as_ref().and_then(|policy| policy.fingerprints());
        let Some(table) = table else { return };
        let is_large = table.count() > CACHED;
        let [first, second, third, last] = AHEAD;
        if is_large {
            each_of(ahead(first), |lpn, content| {
                table.prefetch_content(content);
                table.prefetch_place(place_of(Of::Lpn(lpn)));
            });
        }
        each_of(ahead(second), |lpn, content| {
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
        });
        each_of(ahead(third), |lpn, content| self.prefetch_found(table, lpn, content));
        if is_large {
            each_of(ahead(last), |lpn, _| table.prefetch_end(place_of(self.known_as(lpn))));
        }
    }

    #[inline(always)]
    fn prefetch_found(&self, table: &Fingerprints, lpn: Lpn, content: u64) {
        if let old @ Of::Vpn(vpn) = self.known_as(lpn) {
            if table.count() > CACHED {
                table.prefetch_at_place(place_of(old));
            }
            if let Some(slot) = self.indirection.ends_with_one(vpn) {
                self.record.prefetch_validity(slot);
                self.units.prefetch(self.layout.ru_of(slot));
            }
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
