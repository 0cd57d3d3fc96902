//! Joins of which both sides are sampled, by the hash of what they are joined on.
//!
//! # Model
//! Both sides are read whole, and of both only those rows count whose key has a hash below a share of all hashes: what a taken key has on either side is complete, so that its joined
//! rows are (universe, or correlated, sampling). Each key is taken by itself with that chance, by the seed. So the keys are what is sampled (`estimate`, Poisson sampling): of each group,
//! the total of each key is a number, and these are summed with their squares. Keys that outweigh the others are taken for certain (`heavy`): they are a stratum of their own that was read whole.
//!
//! Rows of the sampled files are never kept: they are counted by key and group as they come, by the threads of any sample, and keys become sums at the end, in their order, so that an answer is
//! the same with any number of threads.
//!
//! # Not modelled
//! Partitions that are not read, of LDDs whose disks are sorted by the key. A key whose values, not rows, outweigh the others and that was not taken: no sample shows it.
//!
//! # Cost
//! In memory: the taken rows of the joined files, and the sums of each taken key and group. Both sides are read whole, which this saves nothing of.
//!
//! # Source
//! Vengerov, Menck, Zait and Chakkappen, Join Size Estimation Subject to Filter Conditions, VLDB 2015 (correlated sampling); Kandula and others, Quickr, SIGMOD 2016 (universe sampler);
//! Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, section 3.2 (Bernoulli sampling).

use std::sync::MutexGuard;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::answer::{Basis, Groups, Row};
use super::{Engine, locked};
use crate::estimate::Stratum;
use crate::formula::Moments;
use crate::keys::hash;
use crate::totals::{Shape, Totals};

/// Which keys of a join are taken.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Taken {
    pub(super) share: f64,
    pub(super) seed: u64,
    pub(super) certain: FxHashSet<Box<[u8]>>,
}

/// Of an answer: the share of keys, and how many of those taken had joined rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeySample {
    pub(super) share: f64,
    /// By chance, and of those that are certain.
    pub(super) drawn: u64,
    pub(super) certain: u64,
}

impl Taken {
    pub(super) fn takes(&self, key: &[u8]) -> bool {
        if self.certain.contains(key) {
            return true;
        }
        // A share of 1 as a number of 64 bits is one less than all hashes.
        self.share >= 1.0 || xxh3_64_with_seed(key, self.seed) < (self.share * 2f64.powi(64)) as u64
    }
}

/// Sums over keys, of those that are certain and of the others; nothing is added to them.
struct Keyed([Totals; 2]);

impl Groups for Keyed {
    fn moments(&self, key: &[u8]) -> Vec<Option<Moments>> {
        self.0.iter().map(|totals| totals.moments(key)).collect()
    }

    /// Refused where it is asked.
    fn quantile(&self, _: &[u8], _: usize) -> Option<f64> {
        None
    }
}

impl Engine<'_> {
    /// All rows, in their order, and what was taken of the keys.
    pub(super) fn keyed(&self, taken: &Taken) -> (Vec<Row>, KeySample) {
        let lanes: Vec<MutexGuard<'_, Totals>> = self.lanes.iter().map(locked).collect();
        // Groups of all lanes, those of a key together, lanes in order.
        let mut found: Vec<(&[u8], &[u8], usize, usize)> = Vec::new();
        for (lane, totals) in lanes.iter().enumerate() {
            for (number, both) in totals.keys().enumerate() {
                let (key, group) = split(both);
                found.push((key, group, lane, number));
            }
        }
        found.sort_unstable();
        let shape = Shape::with_pairs(self.select.kinds.clone(), self.select.pairs(), false, false);
        let mut keyed = Keyed([Totals::new(shape.clone()), Totals::new(shape)]);
        for of_key in found.chunk_by(|a, b| a.0 == b.0) {
            let is_certain = of_key.first().is_some_and(|of| taken.certain.contains(of.0));
            let totals = &mut keyed.0[usize::from(!is_certain)];
            totals.begin(0, 0);
            for &(_, key, lane, number) in of_key {
                let group = totals.group(key, hash(key));
                for aggregate in 0..self.select.kinds.len() {
                    let (t, z) = lanes[lane].total(number, aggregate);
                    totals.add(group, aggregate, t, z);
                }
            }
        }
        keyed.0.iter_mut().for_each(Totals::close);
        let [certain, drawn] = keyed.0.each_ref().map(|totals| totals.partitions);
        let sample = KeySample {
            share: taken.share,
            drawn,
            certain,
        };
        let basis = Basis {
            select: &self.select,
            strata: &[Stratum::of_keys(1.0, certain), Stratum::of_keys(sample.share, drawn)],
            keys: Some(sample.share),
            negative: &self.negative(&lanes),
            level: self.spec.level,
            within: false,
            stop: &self.stop,
        };
        let rows = basis.rows(&keyed, |each| {
            for (at, totals) in keyed.0.iter().enumerate() {
                totals.each_group(|key, seen, sums| each(at, key, seen, sums));
            }
        });
        (rows, sample)
    }
}

/// Puts a key in front of the key of a group.
pub(super) fn write(on: &[u8], key: &mut Vec<u8>) {
    key.extend((on.len() as u32).to_be_bytes());
    key.extend(on);
}

/// The two apart.
fn split(both: &[u8]) -> (&[u8], &[u8]) {
    let (length, rest) = both.split_first_chunk().unwrap_or((&[0; 4], both));
    rest.split_at(u32::from_be_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_with_their_chance_whatever_the_seed() {
        let keys: Vec<Vec<u8>> = (0..2000).map(|n| format!("user-{n}").into_bytes()).collect();
        let taken = |share, seed| {
            let certain = FxHashSet::default();
            let taken = Taken { share, seed, certain };
            keys.iter().filter(move |key| taken.takes(key)).count() as f64
        };
        assert_eq!(taken(1.0, 3), 2000.0);
        // Over 500 seeds, one key after another: as many as chance has it, and independent of its neighbour.
        let (mut together, mut first) = (0.0, 0.0);
        for seed in 0..500 {
            let certain = FxHashSet::default();
            let of = Taken {
                share: 0.2,
                seed,
                certain,
            };
            assert!((taken(0.2, seed) - 400.0).abs() < 5.0 * (2000.0f64 * 0.2 * 0.8).sqrt());
            first += f64::from(u8::from(of.takes(&keys[0])));
            together += keys
                .windows(2)
                .filter(|two| of.takes(&two[0]) && of.takes(&two[1]))
                .count() as f64;
        }
        assert!((first - 100.0).abs() < 5.0 * (500.0f64 * 0.16).sqrt());
        assert!((together / (500.0 * 1999.0) - 0.04).abs() < 0.001);
    }

    #[test]
    fn what_is_put_together_comes_apart() {
        for (on, group) in [(&b""[..], &b""[..]), (b"a", b""), (b"", b"b"), (b"ab", b"\0c")] {
            let mut both = Vec::new();
            write(on, &mut both);
            both.extend(group);
            assert_eq!(split(&both), (on, group));
        }
    }
}
