//! The flash pages that a host read needs: each once, however its units alternate between them.

use ftlab_core::Slot;
use rustc_hash::FxHashMap;

use crate::indirection::ChunkId;

/// So many pages are looked through one by one; more have a table.
const FEW: usize = 32;

/// Pages in the order in which the request meets them, and how many bytes of each it takes.
#[derive(Default)]
pub(crate) struct PagesToRead {
    pages: Vec<(u32, u32)>,
    /// Place of each page among the `pages`, of as many as have been entered; only where there are more than a few.
    places: FxHashMap<u32, usize>,
    /// A page holds several units, so that one may be met again.
    shared: bool,
    /// What several units of the request may share, and how many bytes of it they take.
    met: FxHashMap<Shared, u32>,
}

/// What units share that are stored once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shared {
    Unit(Slot),
    Chunk(ChunkId),
}

impl PagesToRead {
    pub fn new(units_per_page: u32) -> Self {
        PagesToRead {
            shared: units_per_page > 1,
            ..PagesToRead::default()
        }
    }

    /// The request takes `bytes` more of `page`.
    #[inline]
    pub fn add(&mut self, page: u32, bytes: u32) {
        match self.pages.last_mut() {
            Some(last) if last.0 == page => last.1 += bytes,
            Some(_) if self.shared => self.add_known(page, bytes),
            _ => self.pages.push((page, bytes)),
        }
    }

    /// The request takes `bytes` of what lies in `page`; as many are taken already if another of its units shares that.
    pub fn add_shared(&mut self, page: u32, bytes: u32, what: Shared) {
        let taken = self.met.entry(what).or_default();
        let more = bytes.saturating_sub(*taken);
        *taken += more;
        if more > 0 {
            self.add_known(page, more);
        }
    }

    /// As [`PagesToRead::add`], of a page that may have been met before the last.
    fn add_known(&mut self, page: u32, bytes: u32) {
        let place = if self.pages.len() <= FEW {
            self.pages.iter().position(|known| known.0 == page)
        } else {
            for place in self.places.len()..self.pages.len() {
                self.places.insert(self.pages[place].0, place);
            }
            self.places.get(&page).copied()
        };
        match place {
            Some(place) => self.pages[place].1 += bytes,
            None => self.pages.push((page, bytes)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.pages.iter().copied()
    }

    pub fn clear(&mut self) {
        self.pages.clear();
        if !self.places.is_empty() {
            self.places.clear();
        }
        if !self.met.is_empty() {
            self.met.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit that occurs again costs nothing more, but for what it takes beyond the first.
    #[test]
    fn what_is_shared_is_read_once() {
        let mut pages = PagesToRead::new(1);
        for bytes in [1000, 4096, 4096] {
            pages.add_shared(7, bytes, Shared::Unit(Slot(7)));
            pages.add_shared(9, 1024, Shared::Chunk(ChunkId(3)));
        }
        pages.add_shared(9, 1024, Shared::Chunk(ChunkId(4)));
        assert_eq!(pages.iter().collect::<Vec<_>>(), [(7, 4096), (9, 2048)]);
        pages.clear();
        pages.add_shared(7, 4096, Shared::Unit(Slot(7)));
        assert_eq!(pages.iter().collect::<Vec<_>>(), [(7, 4096)]);
    }

    /// Units by turns of 300 pages, each a fourth time at last: every page once, in the order of the first, with all its bytes.
    #[test]
    fn every_page_is_read_once_for_all_its_bytes() {
        let mut pages = PagesToRead::new(4);
        for _ in 0..2 {
            for round in 0..4 {
                for page in 0..300 {
                    pages.add(7 * page % 300, if round == 0 { 100 } else { 4096 });
                }
            }
            let want: Vec<(u32, u32)> = (0..300).map(|page| (7 * page % 300, 100 + 3 * 4096)).collect();
            assert_eq!(pages.iter().collect::<Vec<_>>(), want);
            pages.clear();
        }
    }
}
