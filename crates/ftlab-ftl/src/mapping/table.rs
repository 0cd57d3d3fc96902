//! Numbers of nodes by key: open addressing in 32 bits a place.
//!
//! A place holds the node, how far it lies behind the place where the search for its key begins (its home), and with the bits
//! that are left a part of the key's hash. So a search passes over other keys' nodes without a look at them, and what lies behind a
//! removed node moves up without one.

use super::allocated;

/// No node: no number of a node has all bits set.
const EMPTY: u32 = u32::MAX;
/// Bits of a distance, where the numbers of nodes leave room. The largest stands for itself and all beyond.
const DISTANCE_BITS: u32 = 5;

/// At most a third full; keys are those of the nodes, which the caller keeps.
#[derive(Clone, Debug)]
pub struct Table {
    places: Vec<u32>,
    /// Bits of a node's number, which stands lowest, and of its distance above.
    node_bits: u32,
    distance_bits: u32,
    /// Where they stand.
    node_mask: u32,
    farthest: u32,
}

impl Table {
    /// Room for so many nodes, the numbers of which lie below that.
    pub fn new(nodes: u32) -> Self {
        let places = (3 * u64::from(nodes) + 16).min((1 << 32) - 2);
        Table::with_places(places as usize, u64::BITS - (places / 3).leading_zeros())
    }

    fn with_places(places: usize, node_bits: u32) -> Self {
        let distance_bits = (32 - node_bits).min(DISTANCE_BITS);
        Table {
            places: vec![EMPTY; places],
            node_bits,
            distance_bits,
            node_mask: (1 << node_bits) - 1,
            farthest: ((1 << distance_bits) - 1) << node_bits,
        }
    }

    /// Whether there is no room for one node more than `nodes`.
    pub fn is_full(&self, nodes: u32) -> bool {
        u64::from(nodes) >= self.places.len() as u64 / 3
    }

    /// Where the search for a key begins: the hash, as a share of all, of the places.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.places.len() as u64) >> 32) as usize
    }

    #[inline]
    fn behind(&self, at: usize) -> usize {
        if at + 1 == self.places.len() { 0 } else { at + 1 }
    }

    /// What a place holds of a node with this hash at its home, without the node.
    #[inline]
    fn mark(&self, hash: u32) -> u32 {
        // Two shifts: there may be no bits left.
        (hash << self.node_bits) << self.distance_bits
    }

    /// The node for which `is_it` holds, of those that may be that of `key`.
    #[inline]
    pub fn find(&self, key: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = spread(key);
        let mark = self.mark(hash);
        let (mut at, mut distance) = (self.home(hash), 0);
        loop {
            let place = self.places[at];
            if place == EMPTY {
                return None;
            }
            if (place ^ (mark | distance)) >> self.node_bits == 0 {
                let node = place & self.node_mask;
                if is_it(node) {
                    return Some(node);
                }
            }
            at = self.behind(at);
            if distance < self.farthest {
                distance += 1 << self.node_bits;
            }
        }
    }

    /// Adds a node, for which there must be room.
    pub fn enter(&mut self, key: u32, node: u32) {
        let hash = spread(key);
        let (mut at, mut distance) = (self.home(hash), 0);
        while self.places[at] != EMPTY {
            at = self.behind(at);
            if distance < self.farthest {
                distance += 1 << self.node_bits;
            }
        }
        self.places[at] = self.mark(hash) | distance | node;
    }

    /// Removes the node of `key`; `key_of` tells the keys of other nodes.
    pub fn remove(&mut self, key: u32, node: u32, key_of: impl Fn(u32) -> u32) {
        let (node_mask, farthest) = (self.node_mask, self.farthest);
        let mut hole = self.home(spread(key));
        while self.places[hole] & node_mask != node {
            hole = self.behind(hole);
        }
        // Nodes behind the hole move up if their search would stop at it.
        let (mut at, mut gap) = (hole, 0);
        loop {
            at = self.behind(at);
            gap += 1;
            let place = self.places[at];
            if place == EMPTY {
                break;
            }
            let mut distance = (place & farthest) >> self.node_bits;
            if place & farthest == farthest {
                let home = self.home(spread(key_of(place & node_mask)));
                distance = if at >= home {
                    at - home
                } else {
                    at + self.places.len() - home
                } as u32;
            }
            if distance >= gap {
                let nearer = ((distance - gap).min(farthest >> self.node_bits)) << self.node_bits;
                self.places[hole] = place & !farthest | nearer;
                (hole, gap) = (at, 0);
            }
        }
        self.places[hole] = EMPTY;
    }

    /// Bytes of the simulator's memory.
    pub fn bytes(&self) -> u64 {
        allocated(&self.places)
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.places.fill(EMPTY);
    }
}

/// The high bits of a product with 2^32 divided by the golden ratio spread neighbours far apart.
#[inline]
fn spread(key: u32) -> u32 {
    key.wrapping_mul(0x9E37_79B1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    /// Keys the search for which begins at the same few places, in tables with all numbers of bits: long ways from home, around the
    /// end, with distances that are known and such that are not.
    #[test]
    fn behaves_like_a_list_of_pairs() {
        for node_bits in 7..=31 {
            let mut table = Table::with_places(128, node_bits);
            let crowded: Vec<u32> = (0..)
                .filter(|&key| [0, 126].contains(&table.home(spread(key))))
                .take(90)
                .collect();
            let (mut keys, mut random) = (vec![None; 64], Stream::new(9, "table"));
            for _ in 0..3000 {
                let node = random.below(64) as usize;
                match keys[node] {
                    Some(key) => {
                        table.remove(key, node as u32, |other| keys[other as usize].unwrap());
                        keys[node] = None;
                    }
                    None => {
                        let key = crowded[random.below(90) as usize];
                        if keys.contains(&Some(key)) {
                            continue;
                        }
                        keys[node] = Some(key);
                        table.enter(key, node as u32);
                    }
                }
                for &key in &crowded {
                    let expected = keys.iter().position(|&held| held == Some(key)).map(|node| node as u32);
                    let found = table.find(key, |node| keys[node as usize] == Some(key));
                    assert_eq!(found, expected, "key {key}, {node_bits} bits");
                }
            }
        }
    }

    #[test]
    fn there_is_room_for_what_was_asked_for() {
        for nodes in [0, 1, 7, 8, 1000] {
            let table = Table::new(nodes);
            assert!(!table.is_full(nodes) && table.is_full(nodes + 8));
            assert!(u64::from(nodes) < 1 << table.node_bits);
        }
    }
}
