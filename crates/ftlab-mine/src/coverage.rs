//! How much of later reads a set announces.
//!
//! A pair is *seen* at an access of its second page if its first page was accessed at most `window` accesses before (the
//! set's window, sliding). An access is *announced* if a pair is seen there. This is what a cache could profit from that
//! loads a page's group when the page is read and keeps it for a window.

use ftlab_core::Lpn;
use serde::Serialize;

use crate::{CorrelationSet, Reads};

/// What a set was worth on a stream of reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Coverage {
    /// Accesses of the stream.
    pub accesses: u64,
    /// Those at which a pair is seen.
    pub announced: u64,
    /// Pairs of the set.
    pub pairs: u64,
    /// Those that are seen at least once: the useful ones.
    pub seen: u64,
}

impl Coverage {
    /// Replays `reads` against `set`; says as well for each pair of the set, in its order, whether it was seen.
    pub fn of(set: &CorrelationSet, reads: &Reads) -> (Self, Vec<bool>) {
        // Pairs by their second page, and all pages that are some pair's first, by number.
        let pairs = set.pairs();
        let mut by_second: Vec<u32> = (0..pairs.len() as u32).collect();
        by_second.sort_unstable_by_key(|&i| (pairs[i as usize].second, i));
        let mut firsts: Vec<Lpn> = pairs.iter().map(|pair| pair.first).collect();
        firsts.sort_unstable();
        firsts.dedup();
        let number = |lpn: Lpn| firsts.binary_search(&lpn);
        let first_of: Vec<u32> = by_second
            .iter()
            .map(|&i| number(pairs[i as usize].first).map_or(u32::MAX, |n| n as u32))
            .collect();
        let mut seconds: Vec<(Lpn, u32)> = Vec::new();
        for (at, &i) in by_second.iter().enumerate() {
            let second = pairs[i as usize].second;
            if seconds.last().is_none_or(|&(last, _)| last != second) {
                seconds.push((second, at as u32));
            }
        }

        let mut last = vec![u64::MAX; firsts.len()];
        let mut seen = vec![false; pairs.len()];
        let window = u64::from(set.about().window);
        let mut announced = 0;
        for (now, &lpn) in reads.lpns().iter().enumerate() {
            let (now, lpn) = (now as u64, Lpn(lpn));
            if let Ok(at) = seconds.binary_search_by_key(&lpn, |&(second, _)| second) {
                let end = seconds.get(at + 1).map_or(pairs.len(), |&(_, start)| start as usize);
                let mut any = false;
                for i in seconds[at].1 as usize..end {
                    let place = last[first_of[i] as usize];
                    if place != u64::MAX && now - place <= window {
                        any = true;
                        seen[by_second[i] as usize] = true;
                    }
                }
                announced += u64::from(any);
            }
            if let Ok(number) = number(lpn) {
                last[number] = now;
            }
        }
        let useful = seen.iter().filter(|&&seen| seen).count() as u64;
        let coverage = Coverage {
            accesses: reads.lpns().len() as u64,
            announced,
            pairs: pairs.len() as u64,
            seen: useful,
        };
        (coverage, seen)
    }
}

/// Useful pairs that several sets know together. Each set comes with which of its pairs were seen, as [`Coverage::of`] says.
pub fn useful(sets: &[(CorrelationSet, Vec<bool>)]) -> u64 {
    let mut all: Vec<(Lpn, Lpn)> = Vec::new();
    for (set, seen) in sets {
        let pairs = set.pairs().iter().zip(seen).filter(|&(_, &seen)| seen);
        all.extend(pairs.map(|(pair, _)| (pair.first, pair.second)));
    }
    all.sort_unstable();
    all.dedup();
    all.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::reads;
    use crate::{About, Pair};

    fn set(window: u32, pairs: &[(u32, u32)]) -> CorrelationSet {
        let about = About {
            source: String::new(),
            miner: String::new(),
            unit: 4096,
            window,
            support: 0.0,
            windows: 1,
        };
        let pairs = pairs
            .iter()
            .map(|&(a, b)| Pair {
                first: Lpn(a),
                second: Lpn(b),
                windows: 1,
            })
            .collect();
        CorrelationSet::new(about, pairs).unwrap()
    }

    #[test]
    fn an_access_is_announced_by_a_recent_first_page() {
        // Window 2. Access 1 (page 2) follows page 1 at once; access 4 (page 2) follows page 1 after four; access 6
        // (page 5) follows page 2 after two. The pair (5, 1) is never seen: 1 comes first. Page 2 at access 5 follows page 1
        // (too far), so only accesses 1 and 6 are announced.
        let reads = reads(&[1, 2, 9, 9, 2, 9, 5]);
        let (coverage, seen) = Coverage::of(&set(2, &[(1, 2), (2, 5), (5, 1)]), &reads);
        assert_eq!(
            coverage,
            Coverage {
                accesses: 7,
                announced: 2,
                pairs: 3,
                seen: 2
            }
        );
        assert_eq!(seen, [true, true, false]);
        assert_eq!(Coverage::of(&set(2, &[]), &reads).0.announced, 0);
    }

    #[test]
    fn useful_pairs_are_those_of_all_sets() {
        let reads = reads(&[1, 2, 3]);
        let sets = [set(5, &[(1, 2), (3, 1)]), set(5, &[(1, 2), (1, 3), (2, 3)])];
        let own: Vec<u64> = sets.iter().map(|set| Coverage::of(set, &reads).0.seen).collect();
        let all = useful(&sets.map(|set| {
            let (_, seen) = Coverage::of(&set, &reads);
            (set, seen)
        }));
        assert_eq!((all, own), (3, vec![1, 3]));
    }
}
