//! Free pages of the span, given out from the lowest on.

use std::collections::BTreeMap;

/// Pages from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub first: u64,
    pub pages: u64,
}

/// Free extents by their first page; those that touch are one.
pub struct Extents {
    free: BTreeMap<u64, u64>,
}

impl Extents {
    pub fn new(pages: u64) -> Self {
        Extents {
            free: BTreeMap::from([(0, pages)]),
        }
    }

    /// So many pages: the lowest extent that has room for all of them, or else the lowest pages there are.
    pub fn take(&mut self, pages: u64) -> Vec<Extent> {
        let fitting = self.free.iter().find(|&(_, &room)| room >= pages);
        if let Some((&first, &room)) = fitting {
            self.cut(first, room, pages);
            return vec![Extent { first, pages }];
        }
        let (mut taken, mut left) = (Vec::new(), pages);
        while left > 0 {
            let (&first, &room) = self
                .free
                .first_key_value()
                .expect("the span was found to be large enough");
            let pages = room.min(left);
            self.cut(first, room, pages);
            taken.push(Extent { first, pages });
            left -= pages;
        }
        taken
    }

    fn cut(&mut self, first: u64, room: u64, pages: u64) {
        self.free.remove(&first);
        if room > pages {
            self.free.insert(first + pages, room - pages);
        }
    }

    pub fn give_back(&mut self, extent: Extent) {
        let Extent { mut first, mut pages } = extent;
        if let Some((&before, &room)) = self.free.range(..first).next_back()
            && before + room == first
        {
            self.free.remove(&before);
            (first, pages) = (before, room + pages);
        }
        if let Some(room) = self.free.remove(&(first + pages)) {
            pages += room;
        }
        self.free.insert(first, pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten pages: 4 and 4 are taken, the first 4 given back; 5 do not fit side by side and are taken from both ends.
    #[test]
    fn what_is_given_back_is_taken_first() {
        let mut extents = Extents::new(10);
        let first = extents.take(4);
        assert_eq!(extents.take(4), [Extent { first: 4, pages: 4 }]);
        extents.give_back(first[0]);
        assert_eq!(
            extents.take(5),
            [Extent { first: 0, pages: 4 }, Extent { first: 8, pages: 1 }]
        );
        extents.give_back(Extent { first: 8, pages: 1 });
        assert_eq!(extents.take(2), [Extent { first: 8, pages: 2 }]);
    }
}
