//! Pairs gathered by their first page: what a correlated translation page stores.
//!
//! For the pairs (a,b), (a,c) and (b,c) there are the groups {a: b c} and {b: c}. Groups are ordered by the support of
//! their best pair, then by key; the members of a group by support, then by LPN. So whoever packs groups into a limited
//! space takes them from the front.

use std::cmp::Reverse;

use ftlab_core::Lpn;

use crate::Pair;

/// A page and the pages that are read after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group<'a> {
    pub key: Lpn,
    /// Windows that contain the group's best pair.
    pub windows: u32,
    /// At least one page, best first.
    pub members: &'a [Lpn],
}

/// All groups of a set, in one arena: 16 bytes a group and 4 a member.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Groups {
    heads: Vec<Head>,
    members: Vec<Lpn>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Head {
    key: Lpn,
    windows: u32,
    start: u32,
    end: u32,
}

impl Groups {
    /// Gathers pairs that are in the order of a set (each pair once, most supported first).
    pub(crate) fn of(pairs: &[Pair]) -> Self {
        let mut by_key: Vec<u32> = (0..pairs.len() as u32).collect();
        // Stable order of the pairs within a key: their index, so best first.
        by_key.sort_unstable_by_key(|&i| (pairs[i as usize].first, i));
        let mut groups = Groups {
            heads: Vec::new(),
            members: Vec::with_capacity(pairs.len()),
        };
        for run in by_key.chunk_by(|&i, &j| pairs[i as usize].first == pairs[j as usize].first) {
            let best = &pairs[run[0] as usize];
            let start = groups.members.len() as u32;
            groups.members.extend(run.iter().map(|&i| pairs[i as usize].second));
            let end = groups.members.len() as u32;
            groups.heads.push(Head {
                key: best.first,
                windows: best.windows,
                start,
                end,
            });
        }
        groups
            .heads
            .sort_unstable_by_key(|head| (Reverse(head.windows), head.key));
        groups
    }

    pub fn len(&self) -> usize {
        self.heads.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    pub fn get(&self, index: usize) -> Option<Group<'_>> {
        self.heads.get(index).map(|head| self.group(head))
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Group<'_>> {
        self.heads.iter().map(|head| self.group(head))
    }

    fn group(&self, head: &Head) -> Group<'_> {
        Group {
            key: head.key,
            windows: head.windows,
            members: &self.members[head.start as usize..head.end as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(first: u32, second: u32, windows: u32) -> Pair {
        Pair {
            first: Lpn(first),
            second: Lpn(second),
            windows,
        }
    }

    #[test]
    fn pairs_are_gathered_by_their_first_page() {
        // (a,b), (a,c), (b,c) give {a: b c} and {b: c}; 9's only pair is the best supported and comes first.
        let groups = Groups::of(&[pair(9, 1, 8), pair(1, 3, 5), pair(1, 2, 4), pair(2, 3, 4)]);
        let listed: Vec<_> = groups
            .iter()
            .map(|g| (g.key.0, g.windows, g.members.to_vec()))
            .collect();
        let expected = vec![(9, 8, vec![Lpn(1)]), (1, 5, vec![Lpn(3), Lpn(2)]), (2, 4, vec![Lpn(3)])];
        assert_eq!(listed, expected);
        assert_eq!(groups.get(1).map(|g| g.key), Some(Lpn(1)));
        assert!(groups.get(3).is_none() && groups.len() == 3);
        assert!(Groups::of(&[]).is_empty());
    }
}
