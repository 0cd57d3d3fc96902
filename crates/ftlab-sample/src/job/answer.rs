//! The rows of an answer, of what all lanes, or all machines, have counted.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::MutexGuard;

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};

use super::Engine;
use crate::bootstrap::{self, Ranked, Settings, TOGETHER};
use crate::estimate::{Estimate, Estimator, Quantiles, Shown, Stratum, all_rows};
use crate::expression::{Rank, Value};
use crate::formula::{Formula, Moments};
use crate::sql::{Column, Kind, Select, Shows};
use crate::totals::{Sums, Totals};

/// A row of the answer.
pub(super) struct Row {
    key: Box<[u8]>,
    groups: Vec<Value<'static>>,
    pub(super) seen: u64,
    /// Of keys: those of them that were taken by chance.
    pub(super) by_chance: u64,
    /// How many equal partitions, or keys, would weigh as much: of that number without values below 0 in which the fewest do.
    pub(super) units: f64,
    pub(super) estimators: Vec<Estimator>,
    /// Column by column, none of groups. With intervals only of rows that are shown.
    pub(super) estimates: Vec<Option<Estimate>>,
}

/// What is looked up of single groups.
pub(super) trait Groups {
    /// Of each disk, sums and products; for formulas.
    fn moments(&self, key: &[u8]) -> Vec<Option<Moments>>;

    /// The value of a quantile by its number.
    fn quantile(&self, key: &[u8], quantile: usize) -> Option<f64>;
}

/// Of keys of a join: the stratum of those that are certain, in front of that of the others.
const CERTAIN: usize = 0;

/// What rows are made by, beside sums.
pub(super) struct Basis<'a> {
    pub(super) select: &'a Select,
    pub(super) strata: &'a [Stratum],
    /// Where keys of a join were sampled: their share. A group has its own degrees of freedom then.
    pub(super) keys: Option<f64>,
    /// Whether a value below 0 has come, of each aggregate.
    pub(super) negative: &'a [bool],
    pub(super) level: f64,
    /// Whether records are sampled within partitions.
    pub(super) within: bool,
}

/// Lanes that nothing is added to.
struct Lanes<'a> {
    engine: &'a Engine<'a>,
    lanes: &'a [MutexGuard<'a, Totals>],
    strata: &'a [Stratum],
    with_quantiles: bool,
}

impl Engine<'_> {
    /// All rows, in their order.
    pub(super) fn answer(&self) -> Vec<Row> {
        let lanes = self.locked_lanes();
        let mut rows = self.rows_of(&lanes, &self.strata_of(&lanes), true);
        self.add_quantiles(&lanes, &mut rows);
        rows
    }

    /// Rows of what has been counted by now, without quantiles; and partitions counted. It changes no later answer.
    pub(super) fn so_far(&self) -> (Vec<Row>, u64) {
        let mut lanes = self.locked_lanes();
        // A lane is locked between two partitions only, so that what is under way is whole.
        lanes.iter_mut().for_each(|lane| lane.close());
        let strata = self.strata_of(&lanes);
        let counted = strata.iter().map(|stratum| stratum.drawn).sum();
        (self.rows_of(&lanes, &strata, false), counted)
    }

    /// All rows, in their order. Quantiles have a value where rows are sorted by it, but no interval.
    fn rows_of(&self, lanes: &[MutexGuard<'_, Totals>], strata: &[Stratum], with_quantiles: bool) -> Vec<Row> {
        let basis = Basis {
            select: &self.select,
            strata,
            keys: None,
            negative: &self.negative(lanes),
            level: self.spec.level,
            within: self.spec.records < 1.0,
        };
        let counted = lanes.iter().enumerate().flat_map(|(at, lane)| {
            let disk = at / self.lanes_of_disk;
            lane.groups().map(move |(key, seen, sums)| (disk, key, seen, sums))
        });
        let of = Lanes {
            engine: self,
            lanes,
            strata,
            with_quantiles,
        };
        basis.rows(counted, &of)
    }

    /// The values of a group in the whole sample.
    fn ranked(&self, lanes: &[MutexGuard<'_, Totals>], key: &[u8], quantile: usize) -> Ranked {
        let mut before = 0;
        let mut kept = Vec::new();
        for (disk, drawn) in self.done.iter().enumerate() {
            for lane in 0..self.lanes_of_disk {
                let of = lanes[disk * self.lanes_of_disk + lane].kept(key, quantile);
                // A lane has every `lanes_of_disk`-th partition of the disk's sample.
                let number = |at: u64| before + lane + at as usize * self.lanes_of_disk;
                kept.extend(of.map(|(at, scale, values)| (number(at), scale, values)));
            }
            before += *drawn as usize;
        }
        Ranked::new(self.plan.quantiles[quantile].p, kept.into_iter())
    }

    fn add_quantiles(&self, lanes: &[MutexGuard<'_, Totals>], rows: &mut [Row]) {
        let shown = self.select.shown(rows.len());
        let settings = Settings {
            replicates: self.spec.replicates,
            level: self.spec.level,
            seed: self.spec.seed,
            threads: self.threads(),
            within: self.spec.records < 1.0,
        };
        let strata = self.strata();
        for rows in rows[..shown].chunks_mut(TOGETHER) {
            for (column, shown) in self.select.columns.iter().enumerate() {
                let Shows::Quantile(at) = shown.shows else { continue };
                let ranked: Vec<Ranked> = rows.iter().map(|row| self.ranked(lanes, &row.key, at)).collect();
                let found = bootstrap::estimates(&strata, &ranked, settings);
                for (row, found) in rows.iter_mut().zip(found) {
                    row.estimates[column] = found;
                }
            }
        }
    }
}

impl Groups for Lanes<'_> {
    fn moments(&self, key: &[u8]) -> Vec<Option<Moments>> {
        let of_disk = |lanes: &[MutexGuard<'_, Totals>]| {
            let some = lanes.iter().filter_map(|lane| lane.moments(key));
            some.reduce(|mut all, one| {
                all.add(&one);
                all
            })
        };
        self.lanes.chunks(self.engine.lanes_of_disk).map(of_disk).collect()
    }

    fn quantile(&self, key: &[u8], quantile: usize) -> Option<f64> {
        let found = || self.engine.ranked(self.lanes, key, quantile).value(self.strata);
        self.with_quantiles.then(found).flatten()
    }
}

impl Basis<'_> {
    /// All rows, in their order, of sums: disk, key, partitions seen, sums of each aggregate. Disks, and lanes of a disk, come in order, so that each group's sums are added
    /// in order, whatever the order of groups.
    pub(super) fn rows<'k>(
        &self,
        counted: impl Iterator<Item = (usize, &'k [u8], u64, Vec<Sums>)>,
        of: &dyn Groups,
    ) -> Vec<Row> {
        let Basis { select, .. } = *self;
        let aggregates = select.kinds.len();
        struct Group {
            seen: u64,
            /// Of `disk` alone.
            seen_there: u64,
            disk: usize,
            sums: Vec<Sums>,
            estimators: Vec<Estimator>,
        }
        let all_rows = all_rows(self.strata);
        // Where totals are by rows, those of disks without the group count as well.
        let without = |estimators: &mut [Estimator], disks: Range<usize>| {
            for stratum in self.strata[disks].iter().filter(|_| all_rows.is_some()) {
                let totals = estimators.iter_mut().zip(&select.kinds);
                let totals = totals.filter(|(_, kind)| !kind.is_ratio());
                totals.for_each(|(estimator, _)| estimator.add(*stratum, &Sums::default()));
            }
        };
        let fresh = |disk: usize| {
            let estimator = |kind: &Kind| Estimator::of_rows(all_rows.filter(|_| !kind.is_ratio()));
            let mut estimators: Vec<Estimator> = select.kinds.iter().map(estimator).collect();
            without(&mut estimators, 0..disk);
            Group {
                seen: 0,
                seen_there: 0,
                disk,
                sums: vec![Sums::default(); aggregates],
                estimators,
            }
        };
        let end_disk = |group: &mut Group, next: usize| {
            let stratum = self.of_group(group.disk, group.seen_there);
            for (estimator, sums) in group.estimators.iter_mut().zip(&mut group.sums) {
                estimator.add(stratum, &std::mem::take(sums));
            }
            without(&mut group.estimators, group.disk + 1..next);
            group.disk = next;
        };
        let mut groups: FxHashMap<&[u8], Group> = FxHashMap::default();
        if select.groups == 0 {
            groups.insert(b"", fresh(0));
        }
        for (disk, key, seen, sums) in counted {
            let group = groups.entry(key).or_insert_with(|| fresh(disk));
            if group.disk != disk {
                end_disk(group, disk);
                group.seen_there = 0;
            }
            group.seen += seen;
            group.seen_there += seen;
            group.sums.iter_mut().zip(&sums).for_each(|(all, one)| all.add(one));
        }
        let formulas = self.formulas();
        let orders = select.orders.iter();
        let sorted_by: Vec<Shows> = orders.map(|&(column, _)| select.columns[column].shows).collect();
        let rows: Vec<Row> = groups
            .into_iter()
            .map(|(key, mut group)| {
                let by_chance = if group.disk == CERTAIN { 0 } else { group.seen_there };
                end_disk(&mut group, self.strata.len());
                let value = |column: &Column| {
                    let value = match column.shows {
                        Shows::Group(_) => None,
                        Shows::Aggregate(at) => {
                            let known = self.known(at);
                            known.or_else(|| group.estimators[at].value(select.kinds[at]))
                        }
                        Shows::Formula(at) => formulas[at].value(&|total| group.estimators[total].total()),
                        // Sorting all values of all groups is left out where nothing is sorted by it.
                        Shows::Quantile(_) if !sorted_by.contains(&column.shows) => None,
                        Shows::Quantile(at) => of.quantile(key, at),
                    }?;
                    Some(Estimate { value, interval: None })
                };
                let weighed = group.estimators.iter().enumerate();
                let weighed = weighed.filter(|&(at, _)| select.kinds[at].is_ratio() || !self.negative[at]);
                Row {
                    units: weighed
                        .map(|(_, estimator)| estimator.units())
                        .fold(f64::INFINITY, f64::min),
                    groups: Value::read_keys(key),
                    key: key.into(),
                    seen: group.seen,
                    by_chance,
                    estimates: select.columns.iter().map(value).collect(),
                    estimators: group.estimators,
                }
            })
            .collect();
        let mut rows = self.sort(rows);
        let shown = select.shown(rows.len());
        self.add_intervals(&mut rows[..shown], &formulas, of);
        rows
    }

    /// The value of an aggregate that counts all rows, if it is known how many there are.
    fn known(&self, aggregate: usize) -> Option<f64> {
        all_rows(self.strata).filter(|_| self.select.rows.contains(&aggregate))
    }

    /// Formulas in which what is known is a number, so that nothing varies with it.
    fn formulas(&self) -> Cow<'_, [Formula]> {
        let Select { formulas, rows, .. } = self.select;
        match all_rows(self.strata) {
            Some(known) if !rows.is_empty() => {
                let known = formulas.iter().map(|formula| formula.with(rows, known));
                Cow::Owned(known.collect())
            }
            _ => Cow::Borrowed(formulas),
        }
    }

    /// The disk as a group sees it: of keys only its own matter, as those without it add nothing to totals or their variance.
    fn of_group(&self, disk: usize, seen: u64) -> Stratum {
        match self.keys {
            None => self.strata[disk],
            Some(share) => Stratum::of_keys(if disk == CERTAIN { 1.0 } else { share }, seen),
        }
    }

    fn sort(&self, rows: Vec<Row>) -> Vec<Row> {
        let order = self.order(&rows);
        let mut left: Vec<Option<Row>> = rows.into_iter().map(Some).collect();
        order.into_iter().filter_map(|row| left[row].take()).collect()
    }

    /// Numbers of rows in their order. Rows that are otherwise alike stand in the order of their keys.
    fn order(&self, rows: &[Row]) -> Vec<usize> {
        // Texts are read as numbers once, not at each comparison.
        let ranks = rows.iter().map(|row| row.groups.iter().map(Value::rank).collect());
        let ranks: Vec<Box<[Rank<'_>]>> = ranks.collect();
        let number = |row: usize, column: usize| {
            rows[row].estimates[column].map_or(f64::NEG_INFINITY, |estimate| estimate.value)
        };
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by(|&a, &b| {
            for &(column, falls) in &self.select.orders {
                let order = match self.select.columns[column].shows {
                    Shows::Group(at) => ranks[a][at].cmp(&ranks[b][at]),
                    _ => number(a, column).total_cmp(&number(b, column)),
                };
                let order = if falls { order.reverse() } else { order };
                if order.is_ne() {
                    return order;
                }
            }
            ranks[a].cmp(&ranks[b]).then_with(|| rows[a].key.cmp(&rows[b].key))
        });
        order
    }

    /// Those of all but quantiles.
    fn add_intervals(&self, rows: &mut [Row], formulas: &[Formula], of: &dyn Groups) {
        let Basis { select, within, .. } = *self;
        let mut quantiles = Quantiles::new(self.level);
        for row in rows {
            let own = self.keys.map(|_| {
                let certain = row.seen - row.by_chance;
                [
                    self.of_group(CERTAIN, certain),
                    self.of_group(CERTAIN + 1, row.by_chance),
                ]
            });
            let strata = own.as_ref().map_or(self.strata, |own| &own[..]);
            let moments = if formulas.is_empty() {
                Vec::new()
            } else {
                of.moments(&row.key)
            };
            for (column, estimate) in select.columns.iter().zip(&mut row.estimates) {
                *estimate = match column.shows {
                    Shows::Aggregate(at) => {
                        let (kind, negative) = (select.kinds[at], self.negative[at]);
                        match self.known(at) {
                            Some(known) => Some(Estimate::exact(known)),
                            None => row.estimators[at].finish(kind, strata, &mut quantiles, within, negative),
                        }
                    }
                    Shows::Formula(at) => formulas[at].estimate(&moments, strata, &mut quantiles, within),
                    Shows::Group(_) | Shows::Quantile(_) => continue,
                };
            }
        }
    }
}

/// An answer as JSON, whose many rows are text from the start.
pub struct Answer {
    /// But for its rows.
    head: Map<String, Json>,
    rows: String,
}

impl Answer {
    /// `head` has an empty list of `rows` where they are to stand.
    pub(super) fn new(head: Map<String, Json>, rows: &[(&Row, bool)], select: &Select) -> Answer {
        let mut written = Vec::with_capacity(128 * rows.len());
        let all = rows.iter().map(|&(row, is_reliable)| row.shown(select, is_reliable));
        // Neither do numbers and texts fail, nor does memory.
        let is_written = serde_json::Serializer::new(&mut written).collect_seq(all).is_ok();
        debug_assert!(is_written, "rows are numbers and texts");
        Answer {
            head,
            rows: String::from_utf8(written).unwrap_or_default(),
        }
    }

    pub fn json(&self) -> Json {
        let mut head = self.head.clone();
        head.insert("rows".to_owned(), serde_json::from_str(&self.rows).unwrap_or_default());
        Json::Object(head)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (key, value)) in self.head.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            write!(f, "{before}{}:", Json::from(key.as_str()))?;
            match &key[..] {
                "rows" => f.write_str(&self.rows)?,
                _ => write!(f, "{value}")?,
            }
        }
        f.write_str("}")
    }
}

#[derive(Serialize)]
struct ShownRow<'a> {
    values: Vec<Cell<'a>>,
    partitions_seen: u64,
    is_reliable: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Cell<'a> {
    Truth(bool),
    Number(f64),
    Text(Cow<'a, str>),
    Estimate(Option<Shown>),
}

impl Row {
    fn shown(&self, select: &Select, is_reliable: bool) -> ShownRow<'_> {
        let cell = |(at, column): (usize, &Column)| match column.shows {
            Shows::Group(at) => match &self.groups[at] {
                Value::Null => Cell::Estimate(None),
                Value::Bool(truth) => Cell::Truth(*truth),
                // JSON has no such numbers, and null is another group.
                Value::Number(number) if !number.is_finite() => Cell::Text(Cow::Owned(number.to_string())),
                Value::Number(number) => Cell::Number(*number),
                Value::Whole(number) => Cell::Text(Cow::Owned(number.to_string())),
                Value::Text(text) => Cell::Text(String::from_utf8_lossy(text)),
            },
            // Statistics that somebody has changed may give no number.
            _ => {
                let found = self.estimates[at].filter(|estimate| estimate.value.is_finite());
                Cell::Estimate(found.map(|estimate| estimate.shown()))
            }
        };
        ShownRow {
            values: select.columns.iter().enumerate().map(cell).collect(),
            partitions_seen: self.seen,
            is_reliable,
        }
    }
}
