//! Cached mapping entries: nodes in an arena, found by key through open addressing, linked in any number of lists.

use std::fmt::Debug;
use std::ops::{Deref, DerefMut, Range};

use ftlab_core::memory::prefetch;

use super::table::Table;
use super::{Ahead, allocated};

/// No node.
pub const NONE: u32 = u32::MAX;

/// What a policy keeps with an entry beside its key and its place in a list.
pub trait Beside: Copy + Debug + Send {
    /// A type of the alignment that keeps a node from lying across two lines of the processor's cache.
    type Line: Copy + Debug + Send;

    fn new(entry: u32) -> Self;
}

/// Nothing is kept: the record knows the entry.
impl Beside for () {
    type Line = Line16;

    fn new(_: u32) -> Self {}
}

/// All that some policy needs.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// The record's raw entry of the key when it was last loaded, updated or moved.
    pub entry: u32,
    /// For the policy: an age or a time.
    pub stamp: u64,
}

impl Beside for Kept {
    type Line = Line32;

    fn new(entry: u32) -> Self {
        Kept { entry, stamp: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
pub struct Line16;

#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Line32;

/// One cached entry: 16 bytes, and what is kept beside. The latter reads as if it were a part of the node.
#[derive(Clone, Copy, Debug)]
pub struct Node<B: Beside = Kept> {
    pub key: u32,
    before: u32,
    after: u32,
    pub dirty: bool,
    /// For the policy: a list, a class, where the entry came from.
    pub tag: u8,
    beside: B,
    _line: [B::Line; 0],
}

impl<B: Beside> Deref for Node<B> {
    type Target = B;

    #[inline]
    fn deref(&self) -> &B {
        &self.beside
    }
}

impl<B: Beside> DerefMut for Node<B> {
    #[inline]
    fn deref_mut(&mut self) -> &mut B {
        &mut self.beside
    }
}

/// A doubly linked list of nodes. Front = most recent by convention.
#[derive(Clone, Copy, Debug)]
pub struct List {
    front: u32,
    back: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        List::EMPTY
    }
}

impl List {
    pub const EMPTY: List = List {
        front: NONE,
        back: NONE,
        len: 0,
    };

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The most recent node; `NONE` of an empty list.
    pub fn front(&self) -> u32 {
        self.front
    }

    /// The least recent node.
    pub fn back(&self) -> Option<u32> {
        (self.back != NONE).then_some(self.back)
    }
}

/// The arena. It grows to the largest number of entries held and allocates no more after that.
///
/// Costs a node and 12 bytes in the table (up to 24 if it had to grow) for each entry: the simulator's memory, not the drive's.
#[derive(Clone, Debug)]
pub struct Arena<B: Beside = Kept> {
    nodes: Vec<Node<B>>,
    unused: Vec<u32>,
    table: Table,
    /// The nodes that were prefetched last, by key.
    seen: [u32; SEEN],
    len: u32,
}

/// Several times as many as requests are looked at ahead.
const SEEN: usize = 64;

impl<B: Beside> Arena<B> {
    /// Room for `expected` entries.
    pub fn new(expected: u32) -> Self {
        Arena {
            nodes: Vec::with_capacity(expected as usize),
            unused: Vec::new(),
            table: Table::new(expected),
            seen: [NONE; SEEN],
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

    /// The same where the key was probably found at, or has been inserted as, the node `hint`.
    #[inline]
    pub fn find_near(&self, key: u32, hint: u32) -> Option<u32> {
        match self.nodes.get(hint as usize) {
            Some(node) if node.key == key => Some(hint),
            _ => self.find(key),
        }
    }

    /// Brings what [`Arena::find`] reads for `key`, or (nearer) the node that it finds, into the processor's cache. Returns the node,
    /// where it is known.
    #[inline]
    pub fn prefetch(&mut self, key: u32, ahead: Ahead) -> Option<u32> {
        match ahead {
            Ahead::Far => {
                self.table.prefetch(key);
                None
            }
            Ahead::Near => {
                // Without a look at the node, which is on its way.
                let likely = self.table.find(key, |_| true);
                let node = likely.unwrap_or(NONE);
                self.seen[key as usize % SEEN] = node;
                self.prefetch_node(node);
                likely
            }
        }
    }

    /// As [`Arena::find`], for a key that [`Arena::prefetch`] has been told of.
    #[inline]
    pub fn find_seen(&self, key: u32) -> Option<u32> {
        self.find_near(key, self.seen[key as usize % SEEN])
    }

    #[inline]
    pub fn prefetch_node(&self, node: u32) {
        prefetch(&self.nodes, node as usize);
    }

    /// Brings the neighbours of a node that is on its way into the processor's cache.
    #[inline]
    pub fn prefetch_neighbours(&self, node: u32) {
        if let Some(node) = self.nodes.get(node as usize) {
            self.prefetch_node(node.before);
            self.prefetch_node(node.after);
        }
    }

    /// Brings into the processor's cache what it takes to give up `node` later; the node itself was brought when the one behind it
    /// left, if nodes leave in the order of their list.
    #[inline]
    pub fn prefetch_leaving(&self, node: u32) {
        if let Some(leaving) = self.nodes.get(node as usize) {
            self.table.prefetch(leaving.key);
            self.prefetch_node(leaving.before);
        }
    }

    /// Makes what is cached of `keys` clean, and returns how many entries were dirty.
    pub fn clean(&mut self, keys: Range<u32>) -> u64 {
        let mut dirty = 0;
        for key in keys {
            if let Some(node) = self.find(key) {
                dirty += u64::from(std::mem::take(&mut self.nodes[node as usize].dirty));
            }
        }
        dirty
    }

    #[inline]
    pub fn node(&self, node: u32) -> &Node<B> {
        &self.nodes[node as usize]
    }

    #[inline]
    pub fn node_mut(&mut self, node: u32) -> &mut Node<B> {
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
            before: NONE,
            after: NONE,
            dirty: false,
            tag: 0,
            beside: B::new(entry),
            _line: [],
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
        // No key any more: see `find_near` and `grow`.
        let key = std::mem::replace(&mut self.nodes[node as usize].key, NONE);
        self.unused.push(node);
        self.table.remove(key, node, |other| self.nodes[other as usize].key);
        self.len -= 1;
    }

    pub fn push_front(&mut self, list: &mut List, node: u32) {
        let old = std::mem::replace(&mut list.front, node);
        self.link(node, NONE, old);
        if old == NONE {
            list.back = node;
        } else {
            self.nodes[old as usize].before = node;
        }
        list.len += 1;
    }

    pub fn push_back(&mut self, list: &mut List, node: u32) {
        let old = std::mem::replace(&mut list.back, node);
        self.link(node, old, NONE);
        if old == NONE {
            list.front = node;
        } else {
            self.nodes[old as usize].after = node;
        }
        list.len += 1;
    }

    fn link(&mut self, node: u32, before: u32, after: u32) {
        let node = &mut self.nodes[node as usize];
        (node.before, node.after) = (before, after);
    }

    /// Takes a node out of the list it is in.
    pub fn unlink(&mut self, list: &mut List, node: u32) {
        let Node { before, after, .. } = self.nodes[node as usize];
        if before == NONE {
            list.front = after;
        } else {
            self.nodes[before as usize].after = after;
        }
        if after == NONE {
            list.back = before;
        } else {
            self.nodes[after as usize].before = before;
        }
        list.len -= 1;
    }

    #[inline]
    pub fn touch(&mut self, list: &mut List, node: u32) {
        if list.front != node {
            self.unlink(list, node);
            self.push_front(list, node);
        }
    }

    /// The node in front of this one in its list.
    pub fn before(&self, node: u32) -> Option<u32> {
        let before = self.nodes[node as usize].before;
        (before != NONE).then_some(before)
    }

    /// Nodes from the back (least recent) to the front.
    pub fn from_back(&self, list: &List) -> impl Iterator<Item = u32> + '_ {
        let mut at = list.back;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            Some(std::mem::replace(&mut at, node.before))
        })
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
        let mut arena: Arena = Arena::new(4);
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
