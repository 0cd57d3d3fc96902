//! The flash pages that a host read needs: each once, however its units alternate between them.

use rustc_hash::FxHashMap;

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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
