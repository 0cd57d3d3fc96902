//! A set of correlations: ordered pairs of LPNs, most supported first, and where they come from.
//!
//! The support of a pair is the share of windows that contain it: `windows` of the pair over `windows` of the set. All
//! pairs of a set have the same denominator, so pairs from different regions compare.

use std::cmp::Reverse;

use ftlab_core::{Error, Lpn, Result};

use crate::Groups;

/// `second` was read after `first` within `windows` of the set's windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    pub first: Lpn,
    pub second: Lpn,
    /// Windows that contain the pair in this order; at least 1.
    pub windows: u32,
}

impl Pair {
    /// The order of a set: by support, then by key.
    pub(crate) fn rank(&self) -> (Reverse<u32>, Lpn, Lpn) {
        (Reverse(self.windows), self.first, self.second)
    }
}

/// Where a set comes from and in which units it speaks.
#[derive(Clone, PartialEq, Debug)]
pub struct About {
    /// What was mined (a file, a generator), one line.
    pub source: String,
    /// The miner and its parameters, one line.
    pub miner: String,
    /// Bytes of the unit that an LPN numbers.
    pub unit: u32,
    /// Accesses in a window.
    pub window: u32,
    /// The least support that was asked for, as a share of the windows.
    pub support: f64,
    /// Windows that were counted.
    pub windows: u64,
}

/// Pairs of LPNs in a fixed order (support, then first, then second), each once.
#[derive(Clone, PartialEq, Debug)]
pub struct CorrelationSet {
    about: About,
    pairs: Vec<Pair>,
}

impl CorrelationSet {
    /// Orders `pairs`; refuses a pair of a page with itself, one that appears twice, and one of no window or of more
    /// windows than there are.
    pub fn new(about: About, mut pairs: Vec<Pair>) -> Result<Self> {
        for pair in &pairs {
            check(pair, about.windows).map_err(Error::Input)?;
        }
        pairs.sort_unstable_by_key(|pair| (pair.first, pair.second));
        if let Some(twice) = pairs
            .windows(2)
            .find(|w| (w[0].first, w[0].second) == (w[1].first, w[1].second))
        {
            let Pair { first, second, .. } = twice[0];
            return Err(Error::input(format!(
                "the pair {} {} appears twice; expected each pair once",
                first.0, second.0
            )));
        }
        pairs.sort_unstable_by_key(Pair::rank);
        Ok(CorrelationSet { about, pairs })
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    /// The pairs, most supported first.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Share of the windows that contain `pair`.
    pub fn support(&self, pair: &Pair) -> f64 {
        f64::from(pair.windows) / self.about.windows.max(1) as f64
    }

    /// The pairs gathered by their first page: for (a,b), (a,c), (b,c) the groups {a: b c} and {b: c}.
    pub fn groups(&self) -> Groups {
        Groups::of(&self.pairs)
    }

    /// Bytes of the pairs in memory.
    pub fn bytes(&self) -> usize {
        self.pairs.len() * size_of::<Pair>()
    }
}

/// What is wrong with a pair of a set of `windows` windows, as a sentence.
pub(crate) fn check(pair: &Pair, windows: u64) -> std::result::Result<(), String> {
    let Pair {
        first,
        second,
        windows: count,
    } = *pair;
    if first == second {
        return Err(format!(
            "the pair {} {} is a page with itself; expected two pages",
            first.0, second.0
        ));
    }
    if count == 0 || u64::from(count) > windows {
        return Err(format!(
            "the pair {} {} is in {count} windows; expected 1 to {windows}, the windows of the set",
            first.0, second.0
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(windows: u64) -> About {
        About {
            source: "test".into(),
            miner: "by hand".into(),
            unit: 4096,
            window: 512,
            support: 0.001,
            windows,
        }
    }

    fn pair(first: u32, second: u32, windows: u32) -> Pair {
        Pair {
            first: Lpn(first),
            second: Lpn(second),
            windows,
        }
    }

    #[test]
    fn pairs_are_ordered_by_support_and_then_by_key() {
        let pairs = vec![pair(7, 1, 2), pair(1, 9, 2), pair(1, 3, 2), pair(8, 2, 5)];
        let set = CorrelationSet::new(about(10), pairs).unwrap();
        assert_eq!(
            set.pairs(),
            [pair(8, 2, 5), pair(1, 3, 2), pair(1, 9, 2), pair(7, 1, 2)]
        );
        assert_eq!(set.support(&set.pairs()[0]), 0.5);
    }

    #[test]
    fn what_is_no_pair_is_refused_with_a_sentence() {
        let refused = |pairs| CorrelationSet::new(about(10), pairs).unwrap_err().to_string();
        assert_eq!(
            refused(vec![pair(4, 4, 1)]),
            "the pair 4 4 is a page with itself; expected two pages"
        );
        assert_eq!(
            refused(vec![pair(4, 5, 11)]),
            "the pair 4 5 is in 11 windows; expected 1 to 10, the windows of the set"
        );
        assert!(refused(vec![pair(4, 5, 0)]).contains("in 0 windows"));
        assert!(refused(vec![pair(4, 5, 1), pair(1, 2, 1), pair(4, 5, 3)]).contains("4 5 appears twice"));
    }
}
