//! Sums of what a chain's partitions give, and the estimates that follow.

use ftlab_core::{Error, Result};
use rustc_hash::FxHashMap;

use crate::estimate::{Estimate, Estimator, Quantiles, Stratum};
use crate::job::RARE;
use crate::keys::hash;
use crate::sql::Kind;
use crate::totals::{self, Shape, Totals};

pub struct ChainSums {
    kind: Kind,
    within: bool,
    partitions: Vec<u64>,
    disks: Vec<Totals>,
}

/// What a partition adds: of each row a key's number, a value, what a ratio is over, and the sampled record it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub keys: Option<&'a [u32]>,
    pub t: &'a [f64],
    pub z: Option<&'a [f64]>,
    pub parents: Option<&'a [u32]>,
}

/// An estimate of a key.
#[derive(Debug)]
pub struct Found {
    pub key: u32,
    /// None of a ratio over nothing.
    pub estimate: Option<Estimate>,
    pub partitions_seen: u64,
    pub is_reliable: bool,
}

impl ChainSums {
    /// `partitions` of each disk; `within`: records are sampled within them.
    pub fn new(kind: &str, partitions: Vec<u64>, within: bool) -> Result<ChainSums> {
        let kinds = [Kind::Count, Kind::Sum, Kind::Average, Kind::Proportion];
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let found = kinds.into_iter().find(|one| one.name() == kind);
        let kind = found.ok_or_else(|| ftlab_core::error::unknown("kind", kind, &names))?;
        let shape = Shape::new(vec![kind], within);
        Ok(ChainSums {
            kind,
            within,
            disks: partitions.iter().map(|_| Totals::new(shape.clone())).collect(),
            partitions,
        })
    }

    /// Adds a partition of a disk: `taken` of its `records` were sampled.
    pub fn add(&mut self, disk: usize, (records, taken): (u64, u64), rows: Rows<'_>) -> Result<()> {
        let is_even = [
            rows.keys.map(<[u32]>::len),
            rows.z.map(<[f64]>::len),
            rows.parents.map(<[u32]>::len),
        ]
        .into_iter()
        .flatten()
        .all(|length| length == rows.t.len());
        let Some(totals) = self.disks.get_mut(disk).filter(|_| is_even) else {
            return Err(Error::input(
                "ldd: expected a disk of the source, and as many keys as values",
            ));
        };
        totals.begin(records, taken);
        let mut last = None;
        for at in 0..rows.t.len() {
            let parent = rows.parents.map(|parents| parents[at]);
            if last != Some(parent) {
                last = Some(parent);
                totals.record();
            }
            let (t, z) = (rows.t[at], rows.z.map_or(1.0, |z| z[at]));
            totals::summable(t)
                .and(totals::summable(z))
                .map_err(|wrong| Error::input(wrong.0))?;
            let key = rows.keys.map_or(0, |keys| keys[at]);
            let key = key.to_le_bytes();
            let group = totals.group(&key, hash(&key));
            totals.add(group, 0, t, z);
        }
        Ok(())
    }

    /// Estimates by keys, in their order; those of key 0 also where nothing was seen.
    pub fn finish(&mut self, level: f64) -> Vec<Found> {
        let strata: Vec<Stratum> = self
            .partitions
            .iter()
            .zip(&self.disks)
            .map(|(&partitions, totals)| Stratum::new(partitions, totals.partitions))
            .collect();
        let drawn: u64 = strata.iter().map(|stratum| stratum.drawn).sum();
        let is_exact = !self.within && strata.iter().all(Stratum::is_whole);
        let negative = self.disks.iter().any(|totals| totals.negative[0]);
        let mut groups: FxHashMap<u32, (u64, Estimator)> = FxHashMap::default();
        groups.insert(0, (0, Estimator::default()));
        for (totals, &stratum) in self.disks.iter_mut().zip(&strata) {
            totals.close();
            for (key, seen, sums) in totals.groups() {
                let key = u32::from_le_bytes(key.try_into().unwrap_or_default());
                let group = groups.entry(key).or_default();
                group.0 += seen;
                group.1.add(stratum, &sums[0]);
            }
        }
        let mut found: Vec<(u32, (u64, Estimator))> = groups.into_iter().collect();
        found.sort_by_key(|(key, _)| *key);
        let mut quantiles = Quantiles::new(level);
        found
            .into_iter()
            .map(|(key, (seen, estimator))| Found {
                key,
                estimate: estimator.finish(self.kind, &strata, &mut quantiles, self.within, negative),
                partitions_seen: seen,
                is_reliable: is_exact || seen >= RARE || (seen == drawn && drawn >= 5),
            })
            .collect()
    }
}
