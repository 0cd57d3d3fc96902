//! Translation pages that a larger cache would still have a node of: their last entries left lately.
//!
//! Selective prefetching follows the number of nodes, and where it is switched it stays for long. So a cache that has lent some of
//! its memory counts nodes as if it had all of it. One counts until the entries that left after its last one, and have not come back,
//! would fill the lent memory; when that comes back, until the room that the cache then has is filled as well.

use super::ghost::Back;

/// Bytes of a drive's memory for each: a number of 3 bytes, and how many entries stand between it and the one before.
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
    /// Bytes that are lent.
    lent: u64,
    /// Those that have left, the latest last.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    tvpn: u32,
    /// The number of its last entry's leaving.
    left: u64,
    /// Entries that left later and have not come back.
    later: f64,
}

impl Lingering {
    /// Memory is lent to a directory of so many keys; 0: it has come back.
    pub fn lend(&mut self, directory: u64) {
        self.room = directory.min(MOST) as usize;
        if directory > 0 {
            self.bytes = bytes(directory);
        }
    }

    /// So many bytes are lent.
    pub fn keep(&mut self, bytes: u64) {
        self.lent = bytes;
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
        self.room > 0 && self.lent > 0
    }

    /// The last entry of the page has left, as number `left`. The page that is given up for it, if there are too many.
    pub fn put(&mut self, tvpn: u32, left: u64) -> Option<u32> {
        self.nodes.push(Node { tvpn, left, later: 0.0 });
        (self.nodes.len() > self.room).then(|| self.nodes.remove(0).tvpn)
    }

    /// The page has entries again. Whether it was here.
    pub fn take(&mut self, tvpn: u32) -> bool {
        let at = self.nodes.iter().position(|node| node.tvpn == tvpn);
        at.map(|at| self.nodes.remove(at)).is_some()
    }

    /// Entries have come back that a larger cache would not have given up.
    pub fn came_back(&mut self, back: Back) {
        let earlier = self.nodes.iter_mut().filter(|node| node.left < back.left);
        earlier.for_each(|node| node.later -= back.keys);
    }

    /// An entry leaves.
    #[inline]
    pub fn leave(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.later += 1.0);
    }

    /// A page that would have no node by now, where the cache has `free` bytes and an entry takes `each`.
    pub fn next_gone(&mut self, free: u64, each: f64) -> Option<u32> {
        let is_gone = self.nodes.first()?.later * each >= (self.lent + free) as f64;
        is_gone.then(|| self.nodes.remove(0).tvpn)
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn clear(&mut self) {
        *self = Lingering::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 18 bytes are lent, which hold three entries of 6.
    fn lent(directory: u64) -> Lingering {
        let mut lingering = Lingering::default();
        lingering.lend(directory);
        lingering.keep(18);
        lingering
    }

    fn gone(lingering: &mut Lingering, free: u64) -> Vec<u32> {
        std::iter::from_fn(|| lingering.next_gone(free, 6.0)).collect()
    }

    #[test]
    fn a_page_counts_until_entries_that_left_later_fill_the_lent_memory() {
        let mut lingering = lent(40);
        assert!(lingering.is_lent() && lingering.put(7, 1).is_none());
        let mut left = Vec::new();
        for _ in 0..3 {
            lingering.leave();
            left.push(gone(&mut lingering, 0));
        }
        assert_eq!(left, [vec![], vec![], vec![7]]);
        assert!(!lingering.take(7), "it has gone");
    }

    /// What left later and comes back leaves its place to what leaves for it; what left before, as in a loop, does not.
    #[test]
    fn entries_that_left_later_and_come_back_do_not_count() {
        for (left, stays) in [(8, true), (6, false)] {
            let mut lingering = lent(40);
            lingering.put(5, 7);
            for _ in 0..9 {
                lingering.came_back(Back { keys: 1.0, left });
                lingering.leave();
            }
            assert_eq!(gone(&mut lingering, 0).is_empty(), stays);
            assert_eq!((lingering.take(5), lingering.take(5)), (stays, false));
        }
    }

    /// Of the memory that comes back, all or a part, the cache has what is not filled yet.
    #[test]
    fn with_memory_back_the_room_that_the_cache_has_counts() {
        for kept in [0, 40] {
            let mut lingering = lent(40);
            lingering.put(7, 1);
            lingering.put(8, 2);
            lingering.leave();
            lingering.lend(kept);
            lingering.keep(kept / 10);
            assert_eq!(lingering.is_lent(), kept > 0);
            let lent = kept / 10;
            assert_eq!(lingering.bytes(), bytes(40), "until the last has gone");
            assert!(gone(&mut lingering, 18 - lent).is_empty() && gone(&mut lingering, 7 - lent).is_empty());
            assert_eq!(gone(&mut lingering, 6 - lent), vec![7, 8]);
            assert!(lingering.is_empty());
            assert_eq!(lingering.bytes() > 0, kept > 0);
        }
    }

    #[test]
    fn no_more_are_kept_than_memory_is_charged_for() {
        for (directory, kept) in [(5, 5), (40, 8)] {
            let mut lingering = lent(directory);
            let out: Vec<u32> = (0..20).filter_map(|page| lingering.put(page, page.into())).collect();
            assert_eq!((out.len(), out[0]), (20 - kept, 0), "the oldest go first");
            assert_eq!(lingering.bytes(), 4 * kept as u64);
        }
        assert!(!lent(0).is_lent() && lent(0).bytes() == 0);
    }
}
