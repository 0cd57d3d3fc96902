//! Cached mapping entries: nodes in an arena, found by key through open addressing, linked in any number of lists.

use super::allocated;
use super::list::{Linked, List, NONE};
use super::table::Table;

/// One cached entry, on a line of the processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Node {
    pub key: u32,
    /// The record's raw entry of the key when it was last loaded, updated or moved.
    pub entry: u32,
    /// For the policy: an age or a time.
    pub stamp: u64,
    links: [u32; 2],
    /// For the policy: a list, a class, where the entry came from.
    pub tag: u8,
    pub dirty: bool,
}

impl Linked for Node {
    fn links(&self) -> [u32; 2] {
        self.links
    }

    fn links_mut(&mut self) -> &mut [u32; 2] {
        &mut self.links
    }
}

/// The arena. It grows to the largest number of entries held and allocates no more after that.
///
/// Costs a node and 12 bytes in the table (up to 24 if it had to grow) for each entry: the simulator's memory, not the drive's.
#[derive(Clone, Debug)]
pub struct Arena {
    nodes: Vec<Node>,
    unused: Vec<u32>,
    table: Table,
    len: u32,
}

impl Arena {
    /// Room for `expected` entries.
    pub fn new(expected: u32) -> Self {
        Arena {
            nodes: Vec::with_capacity(expected as usize),
            unused: Vec::new(),
            table: Table::new(expected),
            len: 0,
        }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The node of `key`, if it is cached.
    #[inline]
    pub fn find(&self, key: u32) -> Option<u32> {
        self.table.find(key, |node| self.nodes[node as usize].key == key)
    }

    #[inline]
    pub fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    #[inline]
    pub fn node_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// Adds an entry, which belongs to no list yet.
    ///
    /// # Panics
    /// In debug builds, if the key is present.
    pub fn insert(&mut self, key: u32, entry: u32) -> u32 {
        debug_assert!(self.find(key).is_none(), "key {key} is cached twice");
        if self.table.is_full(self.len) {
            self.grow();
        }
        let fresh = Node {
            key,
            entry,
            stamp: 0,
            links: [NONE; 2],
            tag: 0,
            dirty: false,
        };
        let node = match self.unused.pop() {
            Some(node) => {
                self.nodes[node as usize] = fresh;
                node
            }
            None => {
                self.nodes.push(fresh);
                self.nodes.len() as u32 - 1
            }
        };
        self.len += 1;
        self.table.enter(key, node);
        node
    }

    fn grow(&mut self) {
        self.table = Table::new(self.len.saturating_mul(2).saturating_add(8));
        for (at, node) in self.nodes.iter().enumerate() {
            if node.key != NONE {
                self.table.enter(node.key, at as u32);
            }
        }
    }

    /// Removes a node that belongs to no list any more.
    pub fn remove(&mut self, node: u32) {
        // No key any more: see `grow`.
        let key = std::mem::replace(&mut self.nodes[node as usize].key, NONE);
        self.unused.push(node);
        self.table.remove(key, node, |other| self.nodes[other as usize].key);
        self.len -= 1;
    }

    pub fn push_front(&mut self, list: &mut List, node: u32) {
        list.push_front(&mut self.nodes, node);
    }

    /// Takes a node out of the list it is in.
    pub fn unlink(&mut self, list: &mut List, node: u32) {
        list.unlink(&mut self.nodes, node);
    }

    #[inline]
    pub fn touch(&mut self, list: &mut List, node: u32) {
        list.touch(&mut self.nodes, node);
    }

    /// Nodes from the back (least recent) to the front.
    pub fn from_back(&self, list: &List) -> impl Iterator<Item = u32> + '_ {
        list.from_back(&self.nodes)
    }

    /// Bytes of the simulator's memory.
    pub fn bytes(&self) -> u64 {
        allocated(&self.nodes) + allocated(&self.unused) + self.table.bytes()
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.unused.clear();
        self.table.clear();
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;
    use std::collections::BTreeMap;

    #[test]
    fn behaves_like_a_map_with_lists() {
        let mut random = Stream::new(5, "arena");
        let mut arena = Arena::new(4);
        let mut lists = [List::default(), List::default()];
        let mut model: BTreeMap<u32, (u32, u8)> = BTreeMap::new();
        let mut orders: [Vec<u32>; 2] = [Vec::new(), Vec::new()];
        for step in 0..20_000u32 {
            let key = random.below(97) as u32 * 0x0100_0001;
            match (arena.find(key), random.below(4)) {
                (None, _) => {
                    let node = arena.insert(key, step);
                    let which = random.below(2) as usize;
                    arena.node_mut(node).tag = which as u8;
                    arena.push_front(&mut lists[which], node);
                    orders[which].push(key);
                    model.insert(key, (step, which as u8));
                }
                (Some(node), 0 | 1) => {
                    let which = usize::from(arena.node(node).tag);
                    arena.unlink(&mut lists[which], node);
                    arena.remove(node);
                    orders[which].retain(|&k| k != key);
                    model.remove(&key);
                }
                (Some(node), 2) => {
                    let which = usize::from(arena.node(node).tag);
                    arena.touch(&mut lists[which], node);
                    orders[which].retain(|&k| k != key);
                    orders[which].push(key);
                }
                (Some(node), _) => arena.node_mut(node).entry = *model.get(&key).map(|(e, _)| e).unwrap(),
            }
            assert_eq!(arena.len() as usize, model.len());
            if step % 97 == 0 {
                for (key, (entry, tag)) in &model {
                    let node = arena.node(arena.find(*key).unwrap());
                    assert_eq!((node.key, node.entry, node.tag), (*key, *entry, *tag));
                }
                for which in 0..2 {
                    let keys: Vec<u32> = arena.from_back(&lists[which]).map(|n| arena.node(n).key).collect();
                    assert_eq!(keys, orders[which]);
                    assert_eq!(lists[which].len() as usize, keys.len());
                }
            }
        }
        arena.clear();
        assert!(arena.is_empty() && arena.find(0).is_none());
    }
}
