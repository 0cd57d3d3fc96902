//! The dirty entry index: changed entries apart from the clean ones, grouped by translation page, in the order of their use.

use super::super::arena::Arena;
use super::super::list::List;
use super::super::paging::Paging;

/// Tag of an entry that has been read since it was written.
const READ: u8 = 1;
/// Tag of a node that has had its second chance and has not been changed since.
const SPARED: u8 = 1;

/// An entry that leaves the index because it has been written to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub key: u32,
    pub entry: u32,
    /// Since it was changed.
    pub read: bool,
    /// Look-up that it last served or changed in.
    pub last_use: u64,
}

#[derive(Clone, Debug)]
pub struct DirtyIndex {
    paging: Paging,
    entry_bytes: u64,
    node_bytes: u64,
    /// Bytes it may take, and takes.
    limit: u64,
    used: u64,
    entries: Arena,
    /// A node per translation page, in `recent`; its entries in the list of the same number.
    nodes: Arena,
    recent: List,
    lists: Vec<List>,
}

impl DirtyIndex {
    pub fn new(paging: Paging, limit: u64, entry_bytes: u32, node_bytes: u32) -> Self {
        DirtyIndex {
            paging,
            entry_bytes: u64::from(entry_bytes),
            node_bytes: u64::from(node_bytes),
            limit,
            used: 0,
            entries: Arena::new(0),
            nodes: Arena::new(0),
            recent: List::default(),
            lists: Vec::new(),
        }
    }

    pub fn used(&self) -> u64 {
        self.used
    }

    pub fn nodes(&self) -> u32 {
        self.nodes.len()
    }

    #[inline]
    pub fn find(&self, key: u32) -> Option<u32> {
        self.entries.find(key)
    }

    /// Brings what [`DirtyIndex::find`] touches for `key` into the processor's cache.
    pub fn prefetch(&self, key: u32) {
        self.entries.prefetch(key);
    }

    pub fn entry(&self, id: u32) -> u32 {
        self.entries.node(id).entry
    }

    /// The entry serves look-up `now`.
    pub fn hit(&mut self, key: u32, id: u32, read: bool, now: u64) {
        let entry = self.entries.node_mut(id);
        entry.stamp = now;
        if read {
            entry.tag = READ;
        }
        if let Some(node) = self.nodes.find(self.paging.page_of(key)) {
            self.nodes.touch(&mut self.recent, node);
        }
    }

    /// Collection moved the entry's data: it says the new place, and nothing was used.
    pub fn refresh(&mut self, id: u32, entry: u32) {
        self.entries.node_mut(id).entry = entry;
    }

    /// Whether one more entry of this translation page fits.
    pub fn fits(&self, tvpn: u32) -> bool {
        let node = match self.nodes.find(tvpn) {
            Some(_) => 0,
            None => self.node_bytes,
        };
        self.used + self.entry_bytes + node <= self.limit
    }

    /// An entry that changed at look-up `now`; a new one must fit.
    pub fn put(&mut self, key: u32, entry: u32, now: u64) {
        let tvpn = self.paging.page_of(key);
        let node = match self.nodes.find(tvpn) {
            Some(node) => {
                self.nodes.touch(&mut self.recent, node);
                node
            }
            None => {
                let node = self.nodes.insert(tvpn, 0);
                self.nodes.push_front(&mut self.recent, node);
                if self.lists.len() <= node as usize {
                    self.lists.resize(node as usize + 1, List::default());
                }
                self.lists[node as usize] = List::default();
                self.used += self.node_bytes;
                node
            }
        };
        self.nodes.node_mut(node).tag = 0;
        match self.entries.find(key) {
            Some(id) => {
                let node = self.entries.node_mut(id);
                (node.entry, node.tag, node.stamp) = (entry, 0, now);
            }
            None => {
                let id = self.entries.insert(key, entry);
                self.entries.node_mut(id).stamp = now;
                self.entries.push_front(&mut self.lists[node as usize], id);
                self.used += self.entry_bytes;
            }
        }
    }

    /// The translation page to be written: the least recent one that is not `protected` (given its number and how many dirty
    /// entries it has). A protected one goes to the front instead, once until it is changed again; so if all are protected, the
    /// least recent one is what the pass comes to in the end.
    pub fn victim(&mut self, protected: impl Fn(u32, u32) -> bool) -> Option<(u32, u64)> {
        let mut spared = 0;
        loop {
            let node = self.recent.back()?;
            let &super::super::arena::Node { key, tag, .. } = self.nodes.node(node);
            if tag == SPARED || !protected(key, self.lists[node as usize].len()) {
                return Some((key, spared));
            }
            spared += 1;
            self.nodes.node_mut(node).tag = SPARED;
            self.nodes.touch(&mut self.recent, node);
        }
    }

    /// The node of a translation page leaves; calls `left` with each of its entries, oldest first. Returns how many there were.
    pub fn take(&mut self, tvpn: u32, mut left: impl FnMut(Left)) -> u32 {
        let Some(node) = self.nodes.find(tvpn) else { return 0 };
        let mut list = std::mem::take(&mut self.lists[node as usize]);
        let entries = list.len();
        while let Some(id) = list.back() {
            let entry = *self.entries.node(id);
            self.entries.unlink(&mut list, id);
            self.entries.remove(id);
            left(Left {
                key: entry.key,
                entry: entry.entry,
                read: entry.tag == READ,
                last_use: entry.stamp,
            });
        }
        self.nodes.unlink(&mut self.recent, node);
        self.nodes.remove(node);
        self.used -= self.node_bytes + u64::from(entries) * self.entry_bytes;
        entries
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.nodes.clear();
        self.recent = List::default();
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Translation pages of 16 entries; room for three nodes of one entry.
    fn index() -> DirtyIndex {
        DirtyIndex::new(Paging::new(256, 64, 4), 66, 6, 16)
    }

    #[test]
    fn a_node_leaves_whole_and_tells_what_was_read() {
        let mut index = index();
        [0, 1, 2, 16].iter().for_each(|&key| index.put(key, key + 500, 7));
        // Two nodes and four entries.
        assert_eq!((index.used(), index.fits(0), index.fits(32)), (56, true, false));
        index.hit(1, index.find(1).unwrap(), true, 9);
        index.hit(16, index.find(16).unwrap(), false, 9);
        let mut left = Vec::new();
        assert_eq!(index.victim(|_, _| false), Some((0, 0)));
        assert_eq!(
            index.take(0, |entry| left.push((
                entry.key,
                entry.entry,
                entry.read,
                entry.last_use
            ))),
            3
        );
        let expected = vec![(0, 500, false, 7), (1, 501, true, 9), (2, 502, false, 7)];
        assert_eq!((left, index.used(), index.find(0)), (expected, 22, None));
    }

    #[test]
    fn a_protected_node_gets_one_second_chance() {
        let mut index = index();
        [0, 16, 32].iter().for_each(|&key| index.put(key, 0, 0));
        // 0 is protected: 1 goes instead, and then 2; after that 0 has had its chance.
        let protected = |tvpn, _| tvpn == 0;
        assert_eq!(index.victim(protected), Some((1, 1)));
        index.take(1, |_| {});
        assert_eq!(index.victim(protected), Some((2, 0)));
        index.take(2, |_| {});
        assert_eq!(index.victim(protected), Some((0, 0)));
        // A change gives it a new one.
        index.put(0, 1, 0);
        index.put(16, 1, 0);
        assert_eq!(index.victim(protected), Some((1, 1)));
    }

    #[test]
    fn if_all_are_protected_the_least_recent_one_goes() {
        let mut index = index();
        [0, 16, 32].iter().for_each(|&key| index.put(key, 0, 0));
        assert_eq!(index.victim(|_, _| true), Some((0, 3)));
    }
}
