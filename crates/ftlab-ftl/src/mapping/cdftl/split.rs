//! How much memory each level of `cdftl` deserves: what left either of them last, and how much of it was missed.

use ftlab_core::IndexList;

/// Bytes of a key or the number of a page that has left.
const NUMBER_BYTES: u32 = 4;

/// Remembers the entries that one page more of memory for the first level would still hold, and the page that it would hold in
/// the second.
pub struct Split {
    every: u32,
    /// Look-ups since the levels were last compared.
    looked_up: u32,
    /// Entries that take the memory of a page.
    pub step: u32,
    entries: IndexList,
    page: Option<u32>,
    missed_entries: u32,
    missed_pages: u32,
}

/// Which level gets a page of the other's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grows {
    First,
    Second,
}

impl Split {
    pub fn new(every: u32, step: u32) -> Self {
        Split {
            every,
            looked_up: 0,
            step,
            entries: IndexList::new(step),
            page: None,
            missed_entries: 0,
            missed_pages: 0,
        }
    }

    /// Memory for what has left, `step` keys and a page's number.
    pub fn bytes(step: u32) -> u64 {
        (u64::from(step) + 1) * u64::from(NUMBER_BYTES)
    }

    /// The next look-up; every so many of them, the level of which more was missed.
    #[inline]
    pub fn next(&mut self) -> Option<Grows> {
        self.looked_up += 1;
        if self.looked_up < self.every {
            return None;
        }
        self.looked_up = 0;
        let missed = (
            std::mem::take(&mut self.missed_entries),
            std::mem::take(&mut self.missed_pages),
        );
        match missed.0.cmp(&missed.1) {
            std::cmp::Ordering::Greater => Some(Grows::First),
            std::cmp::Ordering::Less => Some(Grows::Second),
            std::cmp::Ordering::Equal => None,
        }
    }

    /// A look-up found neither the entry nor its page.
    pub fn missed(&mut self, key: u32, tvpn: u32) {
        self.missed_entries += u32::from(self.entries.contains(key));
        self.missed_pages += u32::from(self.page == Some(tvpn));
    }

    pub fn entry_left(&mut self, key: u32) {
        self.entries.touch(key);
        if self.entries.len() > self.step {
            self.entries.pop_back();
        }
    }

    pub fn entry_came(&mut self, key: u32) {
        self.entries.remove(key);
    }

    pub fn page_left(&mut self, tvpn: u32) {
        self.page = Some(tvpn);
    }

    /// What was missed is forgotten, and what has left.
    pub fn clear(&mut self) {
        *self = Split::new(self.every, self.step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_that_would_have_hit_more_often_grows() {
        let mut split = Split::new(3, 2);
        (1..4).for_each(|key| split.entry_left(key));
        split.page_left(9);
        // Of the entries only 2 and 3 are remembered: one miss of each level.
        split.missed(1, 9);
        split.missed(2, 0);
        assert_eq!((split.next(), split.next(), split.next()), (None, None, None));
        split.missed(3, 0);
        assert_eq!(
            (split.next(), split.next(), split.next()),
            (None, None, Some(Grows::First))
        );
        // What was counted once is not counted again, and what has come back was not missed.
        split.entry_came(3);
        split.missed(3, 9);
        assert_eq!(
            (split.next(), split.next(), split.next()),
            (None, None, Some(Grows::Second))
        );
        split.page_left(8);
        split.missed(0, 9);
        split.clear();
        split.missed(2, 8);
        assert_eq!((split.next(), split.next(), split.next()), (None, None, None));
    }
}
