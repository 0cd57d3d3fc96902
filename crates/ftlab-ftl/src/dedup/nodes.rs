//! Fingerprints by what they are found by: their content, and the place that they stand for.
//!
//! Both indices are chains through the fingerprints themselves. A drive touches each fingerprint once and far apart; with hash maps
//! beside them it would wait for memory several times more often.

use ftlab_core::memory;

/// What a fingerprint stands for, as its table's user numbers it.
pub type Place = u64;

/// No fingerprint.
pub const NONE: u32 = u32::MAX;

/// Half a line of the processor's cache, and never in two.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Node {
    pub content: u64,
    pub place: Place,
    /// Of a node that is not in use: [`NONE`].
    pub list: u32,
    pub context: u32,
    /// The next node of each chain. Of a node that is not in use, the first: the next such.
    next: [u32; 2],
}

impl Node {
    pub fn new(content: u64, place: Place, context: u32) -> Self {
        Node {
            content,
            place,
            list: 0,
            context,
            next: [NONE; 2],
        }
    }

    fn is_in_use(&self) -> bool {
        self.list != NONE
    }

    #[inline]
    fn key(&self, by: By) -> u64 {
        match by {
            By::Content => self.content,
            By::Place => self.place,
        }
    }
}

#[derive(Clone, Copy)]
pub enum By {
    Content,
    Place,
}

const LEAST_BITS: u32 = 4;

/// Multiplied by 2^64 over the golden ratio: also keys that count up are spread.
#[inline]
fn hash(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The upper half of a key's hash.
#[inline]
pub fn half_hash(key: u64) -> u32 {
    (hash(key) >> 32) as u32
}

#[derive(Clone, Debug)]
pub struct Nodes {
    nodes: Vec<Node>,
    unused: u32,
    count: u32,
    /// First nodes of the chains, by the upper bits of a key's hash: 2^`bits` of each kind, at least two for each node.
    first: [Vec<u32>; 2],
    bits: u32,
}

impl std::ops::Index<u32> for Nodes {
    type Output = Node;

    #[inline]
    fn index(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
    }
}

impl std::ops::IndexMut<u32> for Nodes {
    /// Content and place stay as they are: the chains go by them.
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Node {
        &mut self.nodes[number as usize]
    }
}

impl Nodes {
    /// For so many nodes, without a pause to grow.
    pub fn with_room(count: u32) -> Self {
        let bits = (u64::from(count).max(1 << (LEAST_BITS - 1)) - 1).ilog2() + 2;
        Nodes {
            nodes: Vec::new(),
            unused: NONE,
            count: 0,
            first: [memory::huge(NONE, 1 << bits), memory::huge(NONE, 1 << bits)],
            bits,
        }
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn get(&self, number: u32) -> Option<&Node> {
        self.nodes.get(number as usize)
    }

    #[inline]
    pub fn with_content(&self, content: u64) -> Option<u32> {
        self.find(By::Content, content)
    }

    /// Whether a content has the same [`half_hash`]; all that do are in one chain.
    #[inline]
    pub fn with_half_hash(&self, half: u32) -> bool {
        debug_assert!(self.bits <= 32, "a chain is chosen by {} bits", self.bits);
        let mut number = self.first[By::Content as usize][(half >> (u32::BITS - self.bits)) as usize];
        while let Some(node) = self.nodes.get(number as usize) {
            if half_hash(node.content) == half {
                return true;
            }
            number = node.next[By::Content as usize];
        }
        false
    }

    #[inline]
    pub fn at_place(&self, place: Place) -> Option<u32> {
        self.find(By::Place, place)
    }

    /// All nodes that are in use.
    pub fn in_use(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.is_in_use())
    }

    /// Brings the head of a key's chain into the processor's cache.
    #[inline]
    pub fn prefetch_chain(&self, by: By, key: u64) {
        memory::prefetch(&self.first[by as usize], self.chain(key));
    }

    /// The first node there, or none.
    #[inline]
    pub fn first_of(&self, by: By, key: u64) -> u32 {
        self.first[by as usize][self.chain(key)]
    }

    /// Brings a node into the processor's cache; for none, the last one.
    #[inline(always)]
    pub fn prefetch(&self, number: u32) {
        memory::prefetch_or_last(&self.nodes, number as usize);
    }

    /// A node; for none, the last one.
    #[inline(always)]
    pub fn get_or_last(&self, number: u32) -> Option<&Node> {
        self.nodes.get((number as usize).min(self.nodes.len().wrapping_sub(1)))
    }

    /// Takes in a node whose content and place are those of no other.
    pub fn add(&mut self, node: Node) -> u32 {
        debug_assert!(
            self.at_place(node.place).is_none(),
            "place {:#x} is in use and holds another content",
            node.place
        );
        if self.count >> (self.bits - 1) > 0 {
            self.grow();
        }
        self.count += 1;
        let number = match self.nodes.get(self.unused as usize) {
            Some(free) => std::mem::replace(&mut self.unused, free.next[0]),
            None => self.nodes.len() as u32,
        };
        match self.nodes.get_mut(number as usize) {
            Some(place) => *place = node,
            None => {
                if self.nodes.len() == self.nodes.capacity() {
                    memory::double_huge(&mut self.nodes, 64);
                }
                self.nodes.push(node);
            }
        }
        self.enter(By::Content, number);
        self.enter(By::Place, number);
        number
    }

    /// Takes out a node, which is in no list any more.
    pub fn remove(&mut self, number: u32) -> Node {
        self.leave(By::Content, number);
        self.leave(By::Place, number);
        self.count -= 1;
        let node = self[number];
        self[number].list = NONE;
        self[number].next[0] = std::mem::replace(&mut self.unused, number);
        node
    }

    /// As the removal of a node and the addition of another one in its place.
    #[inline]
    pub fn exchange(&mut self, number: u32, node: Node) -> Node {
        self.leave(By::Content, number);
        self.leave(By::Place, number);
        debug_assert!(
            self.at_place(node.place).is_none(),
            "place {:#x} is in use and holds another content",
            node.place
        );
        let before = std::mem::replace(&mut self[number], node);
        self.enter(By::Content, number);
        self.enter(By::Place, number);
        before
    }

    /// The node is that of another content and context, whose place stays. The context that it was of.
    #[inline]
    pub fn replace(&mut self, number: u32, content: u64, context: u32) -> u32 {
        self.leave(By::Content, number);
        self[number].content = content;
        self.enter(By::Content, number);
        std::mem::replace(&mut self[number].context, context)
    }

    /// The node stands for another place.
    pub fn rename(&mut self, number: u32, place: Place) {
        self.leave(By::Place, number);
        self[number].place = place;
        self.enter(By::Place, number);
    }

    #[inline]
    fn chain(&self, key: u64) -> usize {
        (hash(key) >> (u64::BITS - self.bits)) as usize
    }

    #[inline]
    fn find(&self, by: By, key: u64) -> Option<u32> {
        let mut number = self.first[by as usize][self.chain(key)];
        while let Some(node) = self.nodes.get(number as usize) {
            if node.key(by) == key {
                return Some(number);
            }
            number = node.next[by as usize];
        }
        None
    }

    #[inline]
    fn enter(&mut self, by: By, number: u32) {
        let chain = self.chain(self[number].key(by));
        let first = std::mem::replace(&mut self.first[by as usize][chain], number);
        self[number].next[by as usize] = first;
    }

    #[inline]
    fn leave(&mut self, by: By, number: u32) {
        let chain = self.chain(self[number].key(by));
        let after = self[number].next[by as usize];
        let mut other = self.first[by as usize][chain];
        if other == number {
            self.first[by as usize][chain] = after;
            return;
        }
        while self[other].next[by as usize] != number {
            other = self[other].next[by as usize];
        }
        self[other].next[by as usize] = after;
    }

    /// Twice as many chains.
    #[cold]
    fn grow(&mut self) {
        self.bits += 1;
        for by in [By::Content, By::Place] {
            self.first[by as usize] = memory::huge(NONE, 1 << self.bits);
            for number in 0..self.nodes.len() as u32 {
                if self[number].is_in_use() {
                    self.enter(by, number);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::Stream;
    use rustc_hash::FxHashMap;

    use super::*;

    #[test]
    fn both_indices_are_those_of_two_maps() {
        let (mut nodes, mut random) = (Nodes::with_room(0), Stream::new(3, "nodes"));
        let (mut by_content, mut by_place) = (FxHashMap::default(), FxHashMap::default());
        for step in 0..20_000u64 {
            // Keys of a few chains, so that they are long.
            let content = random.below(900) << 40;
            match (by_content.get(&content).copied(), random.below(3)) {
                (None, _) => {
                    let number = nodes.add(Node::new(content, step, 0));
                    by_content.insert(content, number);
                    by_place.insert(step, number);
                }
                (Some(number), 0) => {
                    let place: Place = nodes.remove(number).place;
                    by_content.remove(&content);
                    by_place.remove(&place);
                }
                (Some(number), 1) => {
                    by_place.remove(&nodes[number].place);
                    nodes.rename(number, step);
                    by_place.insert(step, number);
                }
                _ => {}
            }
            assert_eq!(nodes.count() as usize, by_content.len());
            let place = random.below(step + 1);
            assert_eq!(nodes.at_place(place), by_place.get(&place).copied());
            let content = random.below(900) << 40;
            assert_eq!(nodes.with_content(content), by_content.get(&content).copied());
            let half = half_hash(content ^ random.below(2));
            let is_there = by_content.keys().any(|&other| half_hash(other) == half);
            assert_eq!(nodes.with_half_hash(half), is_there);
        }
        assert!(nodes.count() > 400 && nodes.bits > 8, "{}", nodes.count());
    }
}
