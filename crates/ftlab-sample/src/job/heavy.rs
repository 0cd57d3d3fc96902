//! Keys of a join that outweigh the others, which are taken for certain.
//!
//! # Model
//! A sum over keys that each have a chance is as uncertain as its largest: a key with a tenth of all joined rows is either there, `1 / p` times, or not. So rows of each key are counted
//! on both sides first, and from the one with the most joined rows on keys are certain, until one has less than the share `p / 50` of what is left (taken by chance it is one of at
//! least fifty that weigh as much), or than five times the mean of those that are left (where so few keys are taken by chance that all alike would be certain). Which keys are certain does not depend on the hashes that decide of the others, so that these are an unbiased sample of them.
//!
//! Of each side (and lane) the keys with the most rows are counted, at most `most`; where there are more, those with the fewest are forgotten, and begin anew when they come again.
//!
//! # Not modelled
//! The condition, and values: rows decide, whatever is summed of them. A key whose rows of the joined files would not fit beside those of the others is left to chance.
//!
//! # Cost
//! Both sides are read twice.
//!
//! # Source
//! Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, section 3.6 (units taken with certainty); Misra and Gries 1982 for counting with few counters.

use rustc_hash::{FxHashMap, FxHashSet};

use ftlab_core::Result;

use super::joined::{Joined, joined_key};
use super::{Engine, GoOn, Progress, SampleSpec};
use crate::expression::Value;
use crate::layout::Dataset;
use crate::record::Explode;
use crate::sql::{Aggregate, Column, Kind, Plan, Shows};

/// As many keys of one weight that chance takes make an interval that can be trusted.
const FEWEST: f64 = 50.0;
/// So many times as much as the mean of the others is no outlier.
const OUTLIER: f64 = 5.0;
/// Rows of joined files that certain keys may have, unless the share of all is more.
const FIT: u64 = 1 << 20;

/// How many keys are counted exactly.
pub(super) fn most(share: f64) -> usize {
    ((8.0 * FEWEST / share) as usize).clamp(10_000, 100_000)
}

/// Rows by key.
pub(super) struct Counts {
    most: usize,
    of: FxHashMap<Box<[u8]>, u64>,
    rows: u64,
}

impl Counts {
    pub(super) fn new(most: usize) -> Counts {
        Counts {
            most,
            of: FxHashMap::default(),
            rows: 0,
        }
    }

    pub(super) fn add(&mut self, key: &[u8], rows: u64) {
        self.rows += rows;
        if let Some(of) = self.of.get_mut(key) {
            *of += rows;
            return;
        }
        self.of.insert(key.into(), rows);
        if self.of.len() > 2 * self.most {
            let mut all: Vec<u64> = self.of.values().copied().collect();
            let at = all.len() - self.most - 1;
            let (_, &mut least, _) = all.select_nth_unstable(at);
            self.of.retain(|_, &mut rows| rows > least);
        }
    }
}

/// Keys that are certain, of `ours` and `theirs`, where the others are taken with the chance `share`.
fn certain(ours: &Counts, theirs: &Counts, share: f64) -> FxHashSet<Box<[u8]>> {
    let mut both: Vec<(u128, u64, &[u8])> = Vec::new();
    for (key, &rows) in &ours.of {
        if let Some(&other) = theirs.of.get(key) {
            both.push((u128::from(rows) * u128::from(other), other, key));
        }
    }
    both.sort_unstable_by(|a, b| b.cmp(a));
    let mut left: u128 = both.iter().map(|(joined, ..)| joined).sum();
    let mut room = FIT.max((share * theirs.rows as f64) as u64);
    let mut certain = FxHashSet::default();
    let keys = both.len();
    for (joined, other, key) in both {
        let mean = left as f64 / (keys - certain.len()) as f64;
        if joined as f64 <= (share / FEWEST * left as f64).max(OUTLIER * mean) {
            break;
        }
        if other <= room {
            room -= other;
            left -= joined;
            certain.insert(key.into());
        }
    }
    certain
}

/// Reads both sides for it; and how many bytes of the sampled files were read.
pub(super) fn find(
    spec: &SampleSpec,
    dataset: &Dataset,
    plan: &Plan,
    explode: Option<Explode>,
    joined: &Joined,
    share: f64,
    go_on: GoOn<'_>,
) -> Result<(FxHashSet<Box<[u8]>>, u64)> {
    let Some((ours, key)) = &plan.keys else {
        return Ok(Default::default());
    };
    let before = || Progress::before(dataset.partitions());
    let theirs = joined.counts(plan, key, most(share), &mut || go_on(&before))?;
    let rows_of_keys = Plan {
        picks: plan.picks.clone(),
        joined: Vec::new(),
        keys: None,
        condition: None,
        groups: vec![ours.clone()],
        aggregates: vec![Aggregate {
            kind: Kind::Count,
            of: None,
        }],
        formulas: Vec::new(),
        quantiles: Vec::new(),
        columns: vec![Column {
            name: String::new(),
            shows: Shows::Aggregate(0),
        }],
        orders: Vec::new(),
        limit: None,
        singles: Vec::new(),
    };
    let mut engine = Engine::new(spec, dataset, &rows_of_keys, explode, None);
    engine.most_groups = Some(most(share));
    engine.read_all(&mut |_| go_on(&before))?;
    let mut ours = Counts::new(usize::MAX / 2);
    for lane in engine.locked_lanes() {
        for (number, group) in lane.keys().enumerate() {
            if let Some(key) = Value::read_keys(group).next().as_ref().and_then(joined_key) {
                ours.add(&key, lane.total(number, 0).0 as u64);
            }
        }
    }
    Ok((certain(&ours, &theirs, share), engine.bytes_read - dataset.footer_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(most: usize, rows: &[(&str, u64)]) -> Counts {
        let mut counts = Counts::new(most);
        rows.iter().for_each(|&(key, rows)| counts.add(key.as_bytes(), rows));
        counts
    }

    fn names(found: FxHashSet<Box<[u8]>>) -> Vec<String> {
        let mut names: Vec<String> = found
            .iter()
            .map(|key| String::from_utf8_lossy(key).into_owned())
            .collect();
        names.sort();
        names
    }

    /// 100 keys of 10 rows, `a` with 100 and `b` with 30, `b` twice on the other side: of 1160 rows half by chance 11.6 are the least, and five times the mean 57, then 52 of 1060.
    #[test]
    fn the_largest_are_certain_until_the_rest_are_alike() {
        let others: Vec<String> = (0..100).map(|n| format!("k{n}")).collect();
        let small: Vec<(&str, u64)> = others.iter().map(|key| (&key[..], 10)).collect();
        let ours = counts(1000, &[&small[..], &[("a", 100), ("b", 30), ("alone", 5000)]].concat());
        let ones: Vec<(&str, u64)> = others.iter().map(|key| (&key[..], 1)).collect();
        let theirs = counts(1000, &[&ones[..], &[("a", 1), ("b", 2), ("none", 9)]].concat());
        assert_eq!(names(certain(&ours, &theirs, 0.5)), ["a", "b"]);
        // However few are taken by chance, what is alike is not certain.
        assert_eq!(names(certain(&ours, &theirs, 0.001)), ["a", "b"]);
        assert_eq!(
            names(certain(&counts(1000, &small), &counts(1000, &ones), 0.001)),
            [""; 0]
        );
    }

    /// `a` joins 5 times `FIT` and a bit, 20 others one row each; with a chance of 1 there is room for all.
    #[test]
    fn a_key_that_would_not_fit_is_left_to_chance() {
        let others: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
        let ones: Vec<(&str, u64)> = others.iter().map(|key| (&key[..], 1)).collect();
        let ours = counts(100, &[&ones[..], &[("a", 5)]].concat());
        let theirs = counts(100, &[&ones[..], &[("a", FIT + 1)]].concat());
        assert_eq!(names(certain(&ours, &theirs, 0.1)), [""; 0]);
        assert_eq!(names(certain(&ours, &theirs, 1.0)), ["a"]);
    }

    #[test]
    fn those_with_the_fewest_rows_are_forgotten() {
        let mut counts = Counts::new(20);
        for n in 0..10_000 {
            counts.add(b"heavy", 1);
            (0..9).for_each(|other| counts.add(format!("{n}.{other}").as_bytes(), 1));
        }
        assert_eq!((counts.of[&b"heavy"[..]], counts.rows), (10_000, 100_000));
        assert!(counts.of.len() <= 40);
    }
}
