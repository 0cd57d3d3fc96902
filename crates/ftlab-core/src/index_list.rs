//! Ordered sets of numbers with O(1) membership, insertion at an end and removal: the list under every cache.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NONE: u32 = u32::MAX;

/// A doubly linked list of distinct keys, each with a value. Front = most recent by convention.
///
/// Nodes live in an arena and are found through a hash table, so its memory follows the number of keys it holds and not
/// the size of the key space; nothing is allocated once it has reached its largest length.
#[derive(Clone, Debug)]
pub struct IndexList<V = ()> {
    nodes: Vec<Node<V>>,
    place: FxHashMap<u32, u32>,
    unused: Vec<u32>,
    front: u32,
    back: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node<V> {
    key: u32,
    before: u32,
    after: u32,
    value: V,
}

impl<V: Copy + Default> IndexList<V> {
    /// An empty list with room for `expected` keys.
    pub fn new(expected: u32) -> Self {
        let expected = expected as usize;
        IndexList {
            nodes: Vec::with_capacity(expected),
            place: FxHashMap::with_capacity_and_hasher(expected, Default::default()),
            unused: Vec::new(),
            front: NONE,
            back: NONE,
        }
    }

    #[inline]
    pub fn contains(&self, key: u32) -> bool {
        self.place.contains_key(&key)
    }

    pub fn len(&self) -> u32 {
        self.place.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    pub fn front(&self) -> Option<u32> {
        self.nodes.get(self.front as usize).map(|node| node.key)
    }

    pub fn back(&self) -> Option<u32> {
        self.nodes.get(self.back as usize).map(|node| node.key)
    }

    /// Puts `key` at the front, moving it there if it is present. True if it was.
    pub fn touch(&mut self, key: u32) -> bool {
        self.touch_node(key).1
    }

    /// As [`IndexList::touch`], with a new value. Returns the value before, if the key was present.
    pub fn put(&mut self, key: u32, value: V) -> Option<V> {
        let (node, present) = self.touch_node(key);
        let before = std::mem::replace(&mut self.nodes[node as usize].value, value);
        present.then_some(before)
    }

    /// The value of a present key.
    #[inline]
    pub fn get(&self, key: u32) -> Option<&V> {
        let &node = self.place.get(&key)?;
        Some(&self.nodes[node as usize].value)
    }

    /// Replaces the value of a present key without moving it. Returns the value before.
    pub fn replace(&mut self, key: u32, value: V) -> Option<V> {
        let &node = self.place.get(&key)?;
        Some(std::mem::replace(&mut self.nodes[node as usize].value, value))
    }

    /// The node of `key`, at the front, and whether it was there before.
    fn touch_node(&mut self, key: u32) -> (u32, bool) {
        let present = self.place.get(&key).copied();
        let node = match present {
            Some(node) if node == self.front => return (node, true),
            Some(node) => {
                self.unlink(node);
                node
            }
            None => {
                let blank = Node {
                    key,
                    before: NONE,
                    after: NONE,
                    value: V::default(),
                };
                let node = self.unused.pop().unwrap_or(self.nodes.len() as u32);
                if node as usize == self.nodes.len() {
                    self.nodes.push(blank)
                } else {
                    self.nodes[node as usize] = blank
                }
                self.place.insert(key, node);
                node
            }
        };
        let old = std::mem::replace(&mut self.front, node);
        (self.nodes[node as usize].before, self.nodes[node as usize].after) = (NONE, old);
        match old {
            NONE => self.back = node,
            old => self.nodes[old as usize].before = node,
        }
        (node, present.is_some())
    }

    /// Removes `key`; true if it was present.
    pub fn remove(&mut self, key: u32) -> bool {
        self.take(key).is_some()
    }

    /// Removes `key` and returns its value.
    pub fn take(&mut self, key: u32) -> Option<V> {
        let node = self.place.remove(&key)?;
        self.unlink(node);
        self.unused.push(node);
        Some(self.nodes[node as usize].value)
    }

    pub fn pop_back(&mut self) -> Option<u32> {
        self.take_back().map(|(key, _)| key)
    }

    /// Removes the key at the back.
    pub fn take_back(&mut self) -> Option<(u32, V)> {
        let key = self.back()?;
        self.take(key).map(|value| (key, value))
    }

    /// Keys from the back (least recent) to the front.
    pub fn from_back(&self) -> impl Iterator<Item = u32> + '_ {
        let mut node = self.back;
        std::iter::from_fn(move || {
            let found = self.nodes.get(node as usize)?;
            node = found.before;
            Some(found.key)
        })
    }

    pub fn clear(&mut self) {
        self.nodes.clear();
        self.place.clear();
        self.unused.clear();
        (self.front, self.back) = (NONE, NONE);
    }

    fn unlink(&mut self, node: u32) {
        let Node { before, after, .. } = self.nodes[node as usize];
        match before {
            NONE => self.front = after,
            before => self.nodes[before as usize].after = after,
        }
        match after {
            NONE => self.back = before,
            after => self.nodes[after as usize].before = before,
        }
    }
}

/// As the keys and values from the back to the front.
impl<V: Copy + Default + Serialize> Serialize for IndexList<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |key| (key, self.nodes[self.place[&key] as usize].value);
        self.from_back().map(value).collect::<Vec<_>>().serialize(serializer)
    }
}

impl<'de, V: Copy + Default + Deserialize<'de>> Deserialize<'de> for IndexList<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = Vec::<(u32, V)>::deserialize(deserializer)?;
        let mut list = IndexList::new(entries.len() as u32);
        for (key, value) in entries {
            list.put(key, value);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_list_of_distinct_keys() {
        let mut list = IndexList::<()>::new(2);
        assert!(!list.touch(1) && !list.touch(2) && !list.touch(3));
        assert!(list.touch(1));
        assert_eq!(list.from_back().collect::<Vec<_>>(), [2, 3, 1]);
        assert!(list.remove(3) && !list.remove(3));
        assert_eq!(list.pop_back(), Some(2));
        assert_eq!((list.front(), list.back(), list.len()), (Some(1), Some(1), 1));
        assert!(!list.touch(9));
        assert_eq!(list.from_back().collect::<Vec<_>>(), [1, 9]);
        list.clear();
        assert!(list.is_empty() && !list.contains(1));
    }

    #[test]
    fn a_saved_list_is_the_same_list() {
        let mut list = IndexList::new(0);
        for (key, value) in [(7, 'x'), (3, 'y'), (7, 'z'), (9, 'w')] {
            list.put(key, value);
        }
        let text = serde_json::to_string(&list).unwrap();
        assert_eq!(text, r#"[[3,"y"],[7,"z"],[9,"w"]]"#);
        let mut again: IndexList<char> = serde_json::from_str(&text).unwrap();
        assert_eq!((again.take_back(), again.front()), (Some((3, 'y')), Some(9)));
    }

    #[test]
    fn values_go_with_their_keys() {
        let mut list = IndexList::new(2);
        assert_eq!(
            (list.put(1, 'a'), list.put(2, 'b'), list.put(1, 'c')),
            (None, None, Some('a'))
        );
        assert_eq!((list.replace(2, 'd'), list.replace(3, 'e')), (Some('b'), None));
        assert_eq!((list.get(2), list.get(3)), (Some(&'d'), None));
        assert_eq!(
            (list.take_back(), list.take(1), list.take_back()),
            (Some((2, 'd')), Some('c'), None)
        );
        assert_eq!(
            list.put(5, 'f'),
            None,
            "an old value does not stay in the room of a new key"
        );
    }
}
