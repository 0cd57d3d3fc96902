//! Places of values that lie in several slots: a ring of 8-byte nodes for each value, in one arena.

use ftlab_core::Slot;

use super::grow;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Node {
    pub slot: u32,
    /// The node after this one; of the last one, the first.
    pub next: u32,
}

/// Rings, each known by its last node, so that one more place is added at the end at once.
#[derive(Clone, Debug)]
pub(super) struct Chains {
    nodes: Vec<Node>,
    /// Head of the list of nodes that are not in use.
    unused: u32,
}

impl Default for Chains {
    fn default() -> Self {
        Chains {
            nodes: Vec::new(),
            unused: NONE,
        }
    }
}

impl Chains {
    /// Nodes, and the head of the list of those that are not in use.
    pub fn of(nodes: Vec<Node>, unused: u32) -> Self {
        Chains { nodes, unused }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn unused(&self) -> u32 {
        self.unused
    }

    pub fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node>()
    }

    fn node(&mut self, slot: u32, next: u32) -> u32 {
        if self.unused == NONE {
            grow(&mut self.nodes, Node { slot, next });
            return self.nodes.len() as u32 - 1;
        }
        let node = self.unused;
        self.unused = self.nodes[node as usize].next;
        self.nodes[node as usize] = Node { slot, next };
        node
    }

    fn give_back(&mut self, node: u32) {
        self.nodes[node as usize].next = self.unused;
        self.unused = node;
    }

    /// A ring of two places; its last node.
    pub fn pair(&mut self, first: Slot, second: Slot) -> u32 {
        let first = self.node(first.0, NONE);
        let last = self.node(second.0, first);
        self.nodes[first as usize].next = last;
        last
    }

    /// One more place at the end of the ring that ends with `last`; the new last node.
    pub fn add(&mut self, last: u32, slot: Slot) -> u32 {
        let first = self.nodes[last as usize].next;
        let new = self.node(slot.0, first);
        self.nodes[last as usize].next = new;
        new
    }

    /// Takes `slot` out of the ring that ends with `last`; the last node of what is left, or the only place left.
    ///
    /// # Panics
    /// If the slot is not in the ring.
    pub fn remove(&mut self, last: u32, slot: Slot) -> Left {
        let mut before = last;
        while self.nodes[self.nodes[before as usize].next as usize].slot != slot.0 {
            before = self.nodes[before as usize].next;
            assert!(before != last, "no copy at {slot:?}");
        }
        let gone = self.nodes[before as usize].next;
        self.nodes[before as usize].next = self.nodes[gone as usize].next;
        self.give_back(gone);
        let last = if gone == last { before } else { last };
        let Node { slot, next } = self.nodes[last as usize];
        if next == last {
            self.give_back(last);
            Left::One(Slot(slot))
        } else {
            Left::Ring(last)
        }
    }

    /// The whole ring is given up.
    pub fn free(&mut self, last: u32) {
        let first = std::mem::replace(&mut self.nodes[last as usize].next, self.unused);
        self.unused = first;
    }

    /// The place `old` of the ring that ends with `last` becomes `new`.
    ///
    /// # Panics
    /// If it is not in the ring.
    pub fn replace(&mut self, last: u32, old: Slot, new: Slot) {
        let mut node = last;
        while self.nodes[node as usize].slot != old.0 {
            node = self.nodes[node as usize].next;
            assert!(node != last, "no copy at {old:?}");
        }
        self.nodes[node as usize].slot = new.0;
    }

    /// The places of the ring that ends with `last`, in order; none for `None`.
    pub fn places(&self, last: Option<u32>) -> impl Iterator<Item = Slot> + '_ {
        let mut node = last.map(|last| self.nodes[last as usize].next);
        std::iter::from_fn(move || {
            let at = node?;
            let Node { slot, next } = self.nodes[at as usize];
            node = (Some(at) != last).then_some(next);
            Some(Slot(slot))
        })
    }
}

/// What is left of a ring without one of its places.
pub(super) enum Left {
    One(Slot),
    Ring(u32),
}
