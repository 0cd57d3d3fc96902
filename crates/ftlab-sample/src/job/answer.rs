//! The rows of an answer, of what all lanes have counted.

use std::sync::MutexGuard;

use rustc_hash::FxHashMap;
use serde_json::{Value as Json, json};

use super::{Engine, locked};
use crate::estimate::{Estimate, Estimator, Quantiles};
use crate::expression::Value;
use crate::sql::{self, Plan, Shows};
use crate::totals::{Sums, Totals};

/// A row of the answer.
pub(super) struct Row {
    groups: Vec<Value<'static>>,
    pub(super) seen: u64,
    pub(super) estimators: Vec<Estimator>,
    /// With intervals only of rows that are shown.
    pub(super) estimates: Vec<Option<Estimate>>,
}

impl Engine<'_> {
    /// All rows, in their order.
    pub(super) fn answer(&self) -> Vec<Row> {
        let strata = self.strata();
        let aggregates = self.plan.aggregates.len();
        let lanes: Vec<MutexGuard<'_, Totals>> = self.lanes.iter().map(locked).collect();
        let negative: Vec<bool> = (0..aggregates)
            .map(|at| lanes.iter().any(|lane| lane.negative[at]))
            .collect();
        struct Group {
            seen: u64,
            disk: usize,
            sums: Vec<Sums>,
            estimators: Vec<Estimator>,
        }
        let fresh = |disk: usize| Group {
            seen: 0,
            disk,
            sums: vec![Sums::default(); aggregates],
            estimators: vec![Estimator::default(); aggregates],
        };
        let end_disk = |group: &mut Group| {
            for (estimator, sums) in group.estimators.iter_mut().zip(&mut group.sums) {
                estimator.add(strata[group.disk], &std::mem::take(sums));
            }
        };
        let mut groups: FxHashMap<&[u8], Group> = FxHashMap::default();
        if self.plan.groups.is_empty() {
            groups.insert(b"", fresh(0));
        }
        // Disks and their lanes come in order, so that each group's sums are added in order, whatever the order of groups.
        for (at, lane) in lanes.iter().enumerate() {
            let disk = at / self.lanes_of_disk;
            for (key, seen, sums) in lane.groups() {
                let group = groups.entry(key).or_insert_with(|| fresh(disk));
                if group.disk != disk {
                    end_disk(group);
                    group.disk = disk;
                }
                group.seen += seen;
                group.sums.iter_mut().zip(&sums).for_each(|(all, one)| all.add(one));
            }
        }
        let within = self.spec.records < 1.0;
        let mut rows: Vec<Row> = groups
            .into_iter()
            .map(|(key, mut group)| {
                end_disk(&mut group);
                let values = group.estimators.iter().zip(&self.plan.aggregates);
                let value = |(estimator, aggregate): (&Estimator, &sql::Aggregate)| {
                    Some(Estimate {
                        value: estimator.value(aggregate.kind)?,
                        interval: None,
                    })
                };
                Row {
                    groups: Value::read_keys(key),
                    seen: group.seen,
                    estimates: values.map(value).collect(),
                    estimators: group.estimators,
                }
            })
            .collect();
        let by_groups = |a: &Row, b: &Row| {
            let pairs = a.groups.iter().zip(&b.groups);
            pairs
                .map(|(a, b)| a.order(b))
                .find(|order| order.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        };
        let number = |row: &Row, at: usize| row.estimates[at].map_or(f64::NEG_INFINITY, |estimate| estimate.value);
        rows.sort_by(|a, b| {
            for &(column, falls) in &self.plan.orders {
                let order = match self.plan.columns[column].shows {
                    Shows::Group(at) => a.groups[at].order(&b.groups[at]),
                    Shows::Aggregate(at) => number(a, at).total_cmp(&number(b, at)),
                };
                let order = if falls { order.reverse() } else { order };
                if order.is_ne() {
                    return order;
                }
            }
            by_groups(a, b)
        });
        let shown = self.plan.limit.unwrap_or(usize::MAX).min(rows.len());
        let mut quantiles = Quantiles::new(self.spec.level);
        for row in &mut rows[..shown] {
            for (at, aggregate) in self.plan.aggregates.iter().enumerate() {
                row.estimates[at] =
                    row.estimators[at].finish(aggregate.kind, &strata, &mut quantiles, within, negative[at]);
            }
        }
        rows
    }
}

impl Row {
    pub(super) fn json(&self, plan: &Plan, engine: &Engine<'_>) -> Json {
        let values: Vec<Json> = plan
            .columns
            .iter()
            .map(|column| match column.shows {
                Shows::Group(at) => match &self.groups[at] {
                    Value::Null => Json::Null,
                    Value::Bool(truth) => json!(truth),
                    Value::Number(number) => json!(number),
                    Value::Text(text) => json!(String::from_utf8_lossy(text)),
                },
                Shows::Aggregate(at) => match self.estimates[at] {
                    None => Json::Null,
                    Some(Estimate { value, interval: None }) => json!({"value": value}),
                    Some(Estimate {
                        value,
                        interval: Some(interval),
                    }) => json!({
                        "value": value, "low": interval.low, "high": interval.high, "half_width": interval.half_width,
                        "standard_error": interval.standard_error, "df": if interval.df.is_finite() { json!(interval.df) } else { Json::Null },
                    }),
                },
            })
            .collect();
        json!({"values": values, "partitions_seen": self.seen, "is_reliable": engine.is_reliable(self.seen)})
    }
}
