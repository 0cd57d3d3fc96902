//! What an answer is made from, where the disks belong to several machines.
//!
//! # Model
//! Of each disk and group: partitions seen, and the sums over its drawn partitions of `totals` (`t`, `t²`; of a ratio `z`, `z²`, `t z` behind them, of a total of Parquet `t x` with the rows `x` of partitions; where records are sampled
//! within partitions, the three sums of their variances; of totals in one formula their products). They are sufficient: value and interval follow from them, and nothing else of a record leaves its machine. Draws of a
//! disk go by its number among all disks, so no two machines draw alike.
//!
//! # Not modelled
//! `--error`: how large a sample must be follows from all disks together. Medians and quantiles: no sum has them, and all values would have to go along.

use std::collections::hash_map::Entry;
use std::time::Instant;

use ftlab_core::{Error, Result};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::asked::Asked;
use super::head::{Head, SCHEMA, VERSION};
use super::{Engine, GoOn, SampleSpec, drawn};
use crate::doubled::Doubled;
use crate::expression::Value;
use crate::formula::Moments;
use crate::sql::{Kind, Shows};
use crate::totals::{Products, Sums, counts_are_plain};

/// Statistics of some disks: a part of an answer.
pub struct Statistics {
    pub(super) head: Head,
    pub groups: Vec<Group>,
}

/// The sums of a group on a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its number among all disks.
    pub disk: u64,
    /// What is grouped by, as `Value::write_key` writes it.
    pub key: Vec<u8>,
    /// Partitions in which it was seen.
    pub seen: u64,
    pub sums: Vec<f64>,
}

/// Draws and counts as `sample` does. `go_on` is called now and then, may look at what is known so far, and may refuse.
pub fn statistics(spec: &SampleSpec, go_on: GoOn<'_>) -> Result<Statistics> {
    spec.check()?;
    if let Some(error) = spec.error {
        return Err(Error::input(format!(
            "--error {error}: statistics of some disks do not say how much all need, expected --ratio or --within"
        )));
    }
    if let Some(share) = spec.join_keys {
        return Err(Error::input(format!(
            "--join-keys {share}: a key lies on several machines, of which no one has all rows; expected --ratio or --within"
        )));
    }
    let started = Instant::now();
    let asked = Asked::open(spec, go_on)?;
    let mut columns = asked.plan.columns.iter();
    if let Some(column) = columns.find(|column| matches!(column.shows, Shows::Quantile(_))) {
        return Err(Error::input(format!(
            "`{}`: statistics are sums, of which no median or quantile follows; expected count, sum, avg, proportion, or what is made of them",
            column.name
        )));
    }
    drawn(spec, asked, started, go_on, Statistics::of)
}

impl Statistics {
    fn of(engine: &Engine<'_>, head: Head) -> Statistics {
        let (lanes, words) = (engine.locked_lanes(), engine.locked_words());
        let numbers = Numbers::of(&head);
        let mut groups = Vec::new();
        for (at, lanes) in lanes.chunks(engine.lanes_of_disk).enumerate() {
            let disk = engine.first_disk + at as u64;
            let mut found: FxHashMap<&[u8], (u64, Moments)> = FxHashMap::default();
            let words = words.get(at).into_iter().flatten().flat_map(|words| words.groups());
            let words = words.map(|(key, seen, sums)| (key, seen, Moments::of_counts(&engine.select, sums)));
            for (key, seen, moments) in lanes.iter().flat_map(|lane| lane.all_moments()).chain(words) {
                match found.entry(key) {
                    Entry::Vacant(entry) => {
                        entry.insert((seen, moments));
                    }
                    Entry::Occupied(mut entry) => {
                        let (all_seen, all) = entry.get_mut();
                        *all_seen += seen;
                        all.add(&moments);
                    }
                }
            }
            let first = groups.len();
            groups.extend(found.into_iter().map(|(key, (seen, moments))| Group {
                disk,
                key: key.to_vec(),
                seen,
                sums: numbers.flat(&moments),
            }));
            groups[first..].sort_unstable_by(|a, b| a.key.cmp(&b.key));
        }
        let sums = groups.len() as u64;
        Statistics {
            head: Head { sums, ..head },
            groups,
        }
    }

    /// All but the groups.
    pub fn head(&self) -> Result<Json> {
        serde_json::to_value(&self.head).map_err(|e| Error::input(format!("statistics: {e}")))
    }

    /// Of what `head` and `groups` have given; groups may come in any order.
    pub fn parse(head: &str, groups: Vec<Group>) -> Result<Statistics> {
        let refuse = |why: String| Err(Error::input(format!("statistics: {why}")));
        let head: Json = match serde_json::from_str(head) {
            Ok(head) => head,
            Err(e) => return refuse(format!("no JSON ({e})")),
        };
        match head.get("schema").and_then(Json::as_str) {
            Some(SCHEMA) => {}
            Some(other) => return refuse(format!("schema {other}, expected {SCHEMA}")),
            None => return refuse(format!("no schema, expected {SCHEMA}")),
        }
        match head.get("version").and_then(Json::as_str) {
            Some(VERSION) => {}
            other => {
                let other = other.unwrap_or("?");
                return refuse(format!(
                    "of ftlab {other}, expected {VERSION}: the same on all machines"
                ));
            }
        }
        let head: Head = match serde_json::from_value(head) {
            Ok(head) => head,
            Err(e) => return refuse(format!("{e}, expected what `sample --statistics` has written")),
        };
        head.check()?;
        if head.sums != groups.len() as u64 {
            return refuse(format!(
                "sums of {} groups, expected the {} that were counted on {}",
                groups.len(),
                head.sums,
                titles(&head)
            ));
        }
        let found = Statistics { head, groups };
        let width = Numbers::of(&found.head).width();
        match found.groups.iter().find(|group| !found.is_right(group, width)) {
            Some(group) => refuse(format!(
                "a group of disk {} that was not counted so, expected all of it as it was written",
                group.disk
            )),
            None => Ok(found),
        }
    }

    fn is_right(&self, group: &Group, width: usize) -> bool {
        let disk = self.head.disks.iter().find(|disk| disk.number == group.disk);
        disk.is_some_and(|disk| group.seen <= disk.drawn)
            && group.sums.len() == width
            && group.sums.iter().all(|sum| sum.is_finite())
            && Value::are_keys(&group.key, self.head.common.select.groups)
    }
}

/// The disks of a part, by number and name.
pub(super) fn titles(head: &Head) -> String {
    let mut titles: Vec<String> = head.disks.iter().take(3).map(|disk| disk.title()).collect();
    if head.disks.len() > titles.len() {
        titles.push("...".to_owned());
    }
    titles.join(", ")
}

/// The order of the numbers in `Group::sums`: those of each aggregate, then those of each pair.
pub(super) struct Numbers<'a> {
    kinds: &'a [Kind],
    /// Aggregates of which products are summed, for formulas.
    pairs: Vec<(usize, usize)>,
    /// Whether records are sampled within partitions.
    within: bool,
    /// Whether partitions tell how many rows they have.
    by_rows: bool,
}

impl Numbers<'_> {
    pub(super) fn of(head: &Head) -> Numbers<'_> {
        let select = &head.common.select;
        Numbers {
            kinds: &select.kinds,
            pairs: select.pairs(),
            within: head.common.record_share < 1.0,
            by_rows: head.is_parquet(),
        }
    }

    fn width(&self) -> usize {
        let own: usize = self.kinds.iter().map(|&kind| self.own(kind)).sum();
        own + self.pairs.len() * self.each()
    }

    /// Numbers of an aggregate: of each sum two, the second what the first leaves over.
    fn own(&self, kind: Kind) -> usize {
        let sums = match kind.is_ratio() {
            true => 5,
            false => 2 + usize::from(self.by_rows),
        } + if self.within { 3 } else { 0 };
        if self.is_plain(kind) { sums } else { 2 * sums }
    }

    /// Numbers of a pair.
    fn each(&self) -> usize {
        if self.within { 4 } else { 2 }
    }

    /// Whether sums of this kind have 64 bits only.
    fn is_plain(&self, kind: Kind) -> bool {
        kind == Kind::Count && counts_are_plain(&self.pairs, self.within, self.by_rows)
    }

    fn flat(&self, moments: &Moments) -> Vec<f64> {
        let mut numbers = Vec::with_capacity(self.width());
        for (&kind, sums) in self.kinds.iter().zip(&moments.sums) {
            if self.is_plain(kind) {
                numbers.extend([sums.t.value(), sums.tt.value()]);
                continue;
            }
            let mut write = |sums: &[Doubled]| numbers.extend(sums.iter().flat_map(|sum| [sum.high, sum.low]));
            write(&[sums.t, sums.tt]);
            if kind.is_ratio() {
                write(&[sums.z, sums.zz, sums.tz]);
            } else if self.by_rows {
                write(&[sums.tx]);
            }
            if self.within {
                write(&[sums.within_tt, sums.within_zz, sums.within_tz]);
            }
        }
        for (both, within) in moments.products.sums() {
            numbers.extend([both.high, both.low]);
            if self.within {
                numbers.extend([within.high, within.low]);
            }
        }
        numbers
    }

    /// The sums of a group by aggregate, and the numbers behind them.
    fn split<'n>(&self, numbers: &'n [f64]) -> (Vec<Sums>, &'n [f64]) {
        let mut rest = numbers;
        let one = |&kind: &Kind| {
            let (own, after) = rest.split_at(self.own(kind));
            rest = after;
            self.unflat(kind, own)
        };
        let sums = self.kinds.iter().map(one).collect();
        (sums, rest)
    }

    pub(super) fn sums(&self, numbers: &[f64]) -> Vec<Sums> {
        self.split(numbers).0
    }

    pub(super) fn moments(&self, numbers: &[f64]) -> Moments {
        let (sums, rest) = self.split(numbers);
        let sum = |own: &[f64]| Doubled {
            high: own[0],
            low: own[1],
        };
        let within = |own: &[f64]| {
            if self.within {
                sum(&own[2..])
            } else {
                Doubled::default()
            }
        };
        let pairs = self.pairs.iter().zip(rest.chunks(self.each()));
        Moments {
            sums,
            products: Products::new(pairs.map(|(&pair, own)| (pair, sum(own), within(own)))),
        }
    }

    fn unflat(&self, kind: Kind, numbers: &[f64]) -> Sums {
        if self.is_plain(kind) {
            return Sums {
                t: numbers[0].into(),
                tt: numbers[1].into(),
                ..Sums::default()
            };
        }
        let mut sums = numbers.chunks_exact(2).map(|both| Doubled {
            high: both[0],
            low: both[1],
        });
        let mut next = |is_there: bool| is_there.then(|| sums.next()).flatten().unwrap_or_default();
        let (ratio, within) = (kind.is_ratio(), self.within);
        Sums {
            t: next(true),
            tt: next(true),
            z: next(ratio),
            zz: next(ratio),
            tz: next(ratio),
            tx: next(!ratio && self.by_rows),
            within_tt: next(within),
            within_zz: next(within),
            within_tz: next(within),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_written_and_read_in_one_order() {
        let number = |high: f64| Doubled {
            high,
            low: high * 1e-20,
        };
        let sums = |first: f64, ratio: f64, within: f64, rows: f64| Sums {
            t: number(first),
            tt: number(first + 1.0),
            z: number(ratio * (first + 2.0)),
            zz: number(ratio * (first + 3.0)),
            tz: number(ratio * (first + 4.0)),
            tx: number(rows * (1.0 - ratio) * (first + 8.0)),
            within_tt: number(within * (first + 5.0)),
            within_zz: number(within * (first + 6.0)),
            within_tz: number(within * (first + 7.0)),
        };
        let plain = Sums {
            t: 1.0.into(),
            tt: 2.0.into(),
            ..Sums::default()
        };
        for (within, by_rows, pairs, width) in [
            (false, false, vec![], 2 + 10 + 4 + 4),
            (false, true, vec![], 6 + 10 + 6 + 6),
            (false, false, vec![(0, 2), (2, 3)], 4 + 10 + 4 + 4 + 2 * 2),
            (true, false, vec![(0, 2), (2, 3)], 10 + 16 + 10 + 10 + 2 * 4),
            (true, true, vec![(0, 2), (2, 3)], 12 + 16 + 12 + 12 + 2 * 4),
        ] {
            let (share, rows) = (f64::from(u8::from(within)), f64::from(u8::from(by_rows)));
            let kinds = [Kind::Count, Kind::Average, Kind::Sum, Kind::Sum];
            let products: Vec<_> = pairs
                .iter()
                .map(|&(a, b)| ((a, b), number(50.0 + b as f64), number(share * (60.0 + b as f64))))
                .collect();
            let numbers = Numbers {
                kinds: &kinds,
                pairs,
                within,
                by_rows,
            };
            let moments = Moments {
                sums: vec![
                    if numbers.is_plain(Kind::Count) {
                        plain
                    } else {
                        sums(1.0, 0.0, share, rows)
                    },
                    sums(10.0, 1.0, share, rows),
                    sums(20.0, 0.0, share, rows),
                    sums(30.0, 0.0, share, rows),
                ],
                products: Products::new(products.into_iter()),
            };
            let flat = numbers.flat(&moments);
            assert_eq!(flat.len(), numbers.width());
            assert_eq!(flat.len(), width);
            assert_eq!(numbers.sums(&flat), moments.sums);
            let read = numbers.moments(&flat);
            assert_eq!((read.sums, read.products), (moments.sums, moments.products));
        }
    }
}
