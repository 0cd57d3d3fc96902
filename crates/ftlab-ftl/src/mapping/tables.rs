//! Several demand-paged tables behind one cache of single entries, which numbers the entries of all of them: those of table 0 first.

use std::ops::Range;

use super::Table;
use super::paging::Paging;

/// Most tables.
const MOST: usize = 3;

#[derive(Clone, Debug)]
pub struct Tables {
    pagings: Vec<Paging>,
    /// Number of the first entry of each table; of those that there are not, what no entry has.
    first: [u32; MOST],
}

impl Tables {
    pub fn new(pagings: Vec<Paging>) -> Self {
        let mut first = [u32::MAX; MOST];
        let mut next = 0;
        for (of_table, paging) in first.iter_mut().zip(&pagings) {
            *of_table = next;
            next += paging.keys;
        }
        Tables { pagings, first }
    }

    /// Entries of all tables.
    pub fn entries(&self) -> u32 {
        self.pagings.iter().map(|paging| paging.keys).sum()
    }

    /// What [`MappingPolicy::tables`](super::MappingPolicy::tables) answers.
    pub fn tables(&self) -> Vec<Table> {
        self.pagings.iter().flat_map(Paging::tables).collect()
    }

    pub fn has(&self, table: u8) -> bool {
        usize::from(table) < self.pagings.len()
    }

    /// The number of an entry.
    #[inline]
    pub fn number(&self, table: u8, key: u32) -> u32 {
        self.first[usize::from(table)] + key
    }

    /// Table and translation page of an entry.
    #[inline]
    pub fn page_of(&self, number: u32) -> (u8, u32) {
        let table = self.first[1..].iter().filter(|&&first| number >= first).count();
        (table as u8, self.pagings[table].page_of(number - self.first[table]))
    }

    /// The numbers of the entries of a translation page; of the last one, those that exist.
    pub fn numbers_of(&self, table: u8, tvpn: u32) -> Range<u32> {
        let keys = self.paging(table).keys_of(tvpn);
        self.number(table, keys.start)..self.number(table, keys.end)
    }

    #[inline]
    pub fn paging(&self, table: u8) -> &Paging {
        &self.pagings[usize::from(table)]
    }

    /// Bytes of the global translation directory (GTD).
    pub fn directory_bytes(&self) -> u64 {
        self.pagings.iter().map(Paging::directory_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_numbered_table_by_table() {
        let tables = Tables::new(vec![
            Paging::new(10, 16, 4),
            Paging::new(5, 16, 8),
            Paging::new(3, 16, 16),
        ]);
        assert_eq!(tables.entries(), 18);
        let pages = [0, 9, 10, 14, 15, 17].map(|number| tables.page_of(number));
        assert_eq!(pages, [(0, 0), (0, 2), (1, 0), (1, 2), (2, 0), (2, 2)]);
        assert_eq!((tables.numbers_of(1, 2), tables.numbers_of(2, 1)), (14..15, 16..17));
        let one = Tables::new(vec![Paging::new(10, 16, 4)]);
        assert_eq!((one.page_of(9), one.has(0), one.has(1)), ((0, 2), true, false));
    }
}
