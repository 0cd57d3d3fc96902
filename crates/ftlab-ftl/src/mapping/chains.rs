//! Entries that know when they were used last and, beside their list, stand in an unordered chain: for what must be found without
//! walking a list, such as a page's dirty entries.

use super::arena::{Arena, Beside, Line32, NONE};

/// What such an entry keeps.
#[derive(Clone, Copy, Debug)]
pub struct Chained {
    /// For the policy: a time.
    pub stamp: u64,
    /// Its neighbours in the chain.
    links: [u32; 2],
}

impl Beside for Chained {
    type Line = Line32;

    fn new(_: u32) -> Self {
        Chained {
            stamp: 0,
            links: [NONE; 2],
        }
    }
}

impl Arena<Chained> {
    /// Adds a node to the chain that begins at `head`.
    pub fn chain(&mut self, head: &mut u32, node: u32) {
        self.node_mut(node).links = [NONE, *head];
        if *head != NONE {
            self.node_mut(*head).links[0] = node;
        }
        *head = node;
    }

    /// Takes a node out of its chain.
    pub fn unchain(&mut self, head: &mut u32, node: u32) {
        let [before, after] = self.node(node).links;
        match before {
            NONE => *head = after,
            before => self.node_mut(before).links[1] = after,
        }
        if after != NONE {
            self.node_mut(after).links[0] = before;
        }
    }

    /// The node behind this one in its chain.
    pub fn next_of_chain(&self, node: u32) -> u32 {
        self.node(node).links[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_lose_nodes_from_anywhere() {
        let (mut arena, mut head) = (Arena::<Chained>::new(4), NONE);
        for key in 0..4 {
            let node = arena.insert(key, 0);
            arena.chain(&mut head, node);
        }
        let nodes = |arena: &Arena<Chained>, head: u32| {
            let mut all = Vec::new();
            let mut at = head;
            while at != NONE {
                all.push(at);
                at = arena.next_of_chain(at);
            }
            all
        };
        arena.unchain(&mut head, 2);
        assert_eq!(nodes(&arena, head), [3, 1, 0]);
        arena.unchain(&mut head, 3);
        arena.unchain(&mut head, 0);
        assert_eq!(nodes(&arena, head), [1]);
        arena.unchain(&mut head, 1);
        assert_eq!(head, NONE);
    }
}
