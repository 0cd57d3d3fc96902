//! Translation pages that a larger cache would still have a node of: their last entries left lately.
//!
//! Selective prefetching follows the number of nodes, and where it is switched it stays for long. So a cache that has lent some of
//! its memory counts nodes as if it had all of it: one counts until as many more entries have left as the lent memory would hold. When
//! the memory comes back the cache has room for as many, and they enter without pushing anything out; then it is these that are counted.

use std::collections::VecDeque;

/// Bytes of a drive's memory for each: a number of 3 bytes, and how many entries have left since the one before.
const NODE_BYTES: u64 = 4;
/// Most that are kept.
const MOST: u64 = 8;

/// Bytes of what is kept beside a directory of so many keys.
pub fn bytes(directory: u64) -> u64 {
    directory.min(MOST) * NODE_BYTES
}

#[derive(Clone, Debug, Default)]
pub struct Lingering {
    /// Pages that may be kept; none: nothing is lent.
    room: usize,
    /// Bytes that they take, until the last one has gone.
    bytes: u64,
    /// Entries that the lent memory would hold.
    reach: f64,
    /// Entries that have left less those that came back, and since the memory came back those that entered.
    passed: f64,
    /// Translation pages in the order in which they left, with `passed` then.
    nodes: VecDeque<(u32, f64)>,
}

impl Lingering {
    /// Memory is lent to a directory of so many keys; 0: it has come back.
    pub fn lend(&mut self, directory: u64) {
        self.room = directory.min(MOST) as usize;
        if directory > 0 {
            self.bytes = bytes(directory);
        }
    }

    /// So many entries find no room for want of the memory that is lent.
    pub fn keep(&mut self, entries: u64) {
        if self.room > 0 {
            self.reach = entries as f64;
        }
    }

    /// Bytes of a drive's memory now.
    pub fn bytes(&self) -> u64 {
        match self.room > 0 || !self.nodes.is_empty() {
            true => self.bytes,
            false => 0,
        }
    }

    /// Whether a node that leaves now goes on counting.
    pub fn is_lent(&self) -> bool {
        self.room > 0 && self.reach > 0.0
    }

    /// The last entry of the page has left. The page that is given up for it, if there are too many.
    pub fn put(&mut self, tvpn: u32) -> Option<u32> {
        self.nodes.push_back((tvpn, self.passed));
        (self.nodes.len() > self.room).then(|| self.nodes.pop_front().map(|(oldest, _)| oldest))?
    }

    /// The page has entries again. Whether it was here.
    pub fn take(&mut self, tvpn: u32) -> bool {
        let at = self.nodes.iter().position(|&(page, _)| page == tvpn);
        at.and_then(|at| self.nodes.remove(at)).is_some()
    }

    /// So many entries that had left are back.
    pub fn came_back(&mut self, entries: f64) {
        self.passed -= entries;
    }

    /// An entry leaves.
    pub fn leave(&mut self) {
        if self.room > 0 {
            self.passed += 1.0;
        }
    }

    /// An entry enters.
    pub fn enter(&mut self) {
        if self.room == 0 {
            self.passed += 1.0;
        }
    }

    /// A page that would have no node by now.
    pub fn next_gone(&mut self) -> Option<u32> {
        let &(tvpn, then) = self.nodes.front()?;
        let is_gone = self.passed - then > self.reach;
        is_gone.then(|| self.nodes.pop_front())?;
        is_gone.then_some(tvpn)
    }

    pub fn clear(&mut self) {
        *self = Lingering::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With memory for 3 entries lent, a page counts while the next 3 leave.
    fn lent(directory: u64) -> Lingering {
        let mut lingering = Lingering::default();
        lingering.lend(directory);
        lingering.keep(3);
        lingering
    }

    fn gone(lingering: &mut Lingering) -> Vec<u32> {
        std::iter::from_fn(|| lingering.next_gone()).collect()
    }

    #[test]
    fn a_page_counts_until_as_many_entries_have_left_as_the_lent_memory_would_hold() {
        let mut lingering = lent(40);
        assert!(lingering.is_lent() && lingering.put(7).is_none());
        let mut left = Vec::new();
        for _ in 0..4 {
            lingering.enter();
            lingering.leave();
            left.push(gone(&mut lingering));
        }
        assert_eq!(left, [vec![], vec![], vec![], vec![7]]);
        assert!(!lingering.take(7), "it has gone");
    }

    /// What comes back leaves its place to what left for it.
    #[test]
    fn entries_that_come_back_do_not_age_the_others() {
        let mut lingering = lent(40);
        lingering.put(7);
        for _ in 0..9 {
            lingering.came_back(1.0);
            lingering.leave();
        }
        assert!(gone(&mut lingering).is_empty() && lingering.take(7) && !lingering.take(7));
    }

    /// Once the memory is back as many enter without pushing anything out, and then the page would have left.
    #[test]
    fn with_the_memory_back_what_enters_counts() {
        let mut lingering = lent(40);
        lingering.put(7);
        lingering.put(8);
        lingering.leave();
        (lingering.lend(0), lingering.keep(0));
        assert!(!lingering.is_lent());
        assert_eq!(lingering.bytes(), bytes(40), "until the last has gone");
        lingering.leave();
        for _ in 0..2 {
            lingering.enter();
        }
        assert!(gone(&mut lingering).is_empty());
        lingering.enter();
        assert_eq!((gone(&mut lingering), lingering.bytes()), (vec![7, 8], 0));
    }

    #[test]
    fn no_more_are_kept_than_memory_is_charged_for() {
        for (directory, kept) in [(5, 5), (40, 8)] {
            let mut lingering = lent(directory);
            let out: Vec<u32> = (0..20).filter_map(|page| lingering.put(page)).collect();
            assert_eq!((out.len(), out[0]), (20 - kept, 0), "the oldest go first");
            assert_eq!(lingering.bytes(), 4 * kept as u64);
        }
        assert!(!lent(0).is_lent() && lent(0).bytes() == 0);
    }
}
