//! All of an answer but its rows: what was asked of which disks, and what was read.

use std::fmt::Display;
use std::str::FromStr;

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::answer::{Answer, Row};
use super::keyed::KeySample;
use super::spec::MOST_DISKS;
use super::{Engine, RARE};
use crate::estimate::{Rows, Stratum, widened};
use crate::formula::Formula;
use crate::record::Form;
use crate::sql::{Kind, Select, Shows};

pub(super) const SCHEMA: &str = "ftlab.sample.statistics/4";
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Partitions of a disk, at most, so that those of all disks can be added.
const MOST_PARTITIONS: u64 = 1 << 40;
/// Rows of a disk, at most: as whole numbers of 64 bits have them.
const MOST_ROWS: u128 = 1 << 53;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) schema: String,
    /// Of ftlab.
    pub(super) version: String,
    pub(super) common: Common,
    /// In the order of their numbers.
    pub(super) disks: Vec<Drawn>,
    /// How the size of the sample was given; empty where parts were given different ones.
    pub(super) asked: Json,
    pub(super) records: u64,
    pub(super) bytes_read: u64,
    pub(super) indexed_bytes: u64,
    pub(super) walked_bytes: u64,
    /// Whether reads were to go past the system's cache, and the files of which that could not be.
    pub(super) direct: bool,
    pub(super) cached_files: u64,
    /// Files that grew at their end while they were read.
    #[serde(default)]
    pub(super) grown_files: u64,
    /// Whether a value below 0 has come, of each aggregate.
    pub(super) negative: Vec<bool>,
    /// Fields of JSON lines for which no record has a value.
    pub(super) without_value: Vec<String>,
    /// How many groups of disks there are sums of; none are kept where the answer follows at once.
    pub(super) sums: u64,
    /// Where both sides of a join were sampled by its keys; never of statistics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) keys: Option<KeySample>,
}

/// What parts of one answer have alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Common {
    pub(super) query: String,
    #[serde(with = "crate::exact")]
    pub(super) level: f64,
    pub(super) seed: u64,
    /// Share of the records of a drawn partition.
    pub(super) record_share: f64,
    pub(super) partition_bytes: u64,
    pub(super) format: String,
    pub(super) delimiter: Option<String>,
    pub(super) header: bool,
    /// Names of fields, of forms that have a fixed number of them.
    pub(super) fields: Vec<String>,
    pub(super) files: String,
    /// BLAKE3 of the file that is joined.
    pub(super) joined: Option<String>,
    pub(super) select: Select,
    /// Disks of all machines.
    pub(super) all_disks: u64,
}

/// A disk, and how much of it was drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Drawn {
    pub(super) number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<String>,
    pub(super) name: String,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) partitions: u64,
    pub(super) drawn: u64,
    /// Of Parquet, whose footers tell: rows of its files, of the drawn row groups, and the sums of the squares and cubes of the latter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rows: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) drawn_rows: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) drawn_squares: Option<Exact<u128>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) drawn_cubes: Option<Exact<f64>>,
}

/// A number as text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent, bound = "T: Display + FromStr")]
pub(super) struct Exact<T>(#[serde(with = "crate::exact")] T);

impl Drawn {
    /// Its number, and what it is called.
    pub(super) fn title(&self) -> String {
        let node = self.node.iter().map(|node| format!("{node}:")).collect::<String>();
        format!("disk {} ({node}{})", self.number, self.name)
    }

    /// As answers have it: without what only estimates need.
    fn shown(&self) -> Json {
        let alone = Drawn {
            drawn_squares: None,
            drawn_cubes: None,
            ..self.clone()
        };
        json!(alone)
    }

    fn stratum(&self) -> Stratum {
        let rows = || {
            Some(Rows {
                all: self.rows?,
                drawn: self.drawn_rows?,
                squares: self.drawn_squares?.0,
                cubes: self.drawn_cubes?.0,
            })
        };
        Stratum::new(self.partitions, self.drawn).with_rows(rows())
    }

    /// Whether rows are told of Parquet alone, and so that there may be such partitions.
    fn rows_are_right(&self, is_parquet: bool) -> bool {
        let Some(rows) = self.stratum().rows else {
            let none = (self.rows, self.drawn_rows) == (None, None);
            return !is_parquet && none && self.drawn_squares.is_none() && self.drawn_cubes.is_none();
        };
        let (drawn, all) = (u128::from(rows.drawn), u128::from(rows.all));
        // Each partition has a row, and squares of equal ones are the least.
        let least = (drawn * drawn).div_ceil(u128::from(self.drawn.max(1)));
        is_parquet
            && all <= MOST_ROWS
            && rows.all - rows.drawn.min(rows.all) >= self.partitions - self.drawn
            && rows.drawn >= self.drawn
            && (self.drawn < self.partitions || rows.drawn == rows.all)
            && (least..=drawn * drawn).contains(&rows.squares)
            && (0.999 * rows.squares as f64..=1.001 * drawn as f64 * rows.squares as f64).contains(&rows.cubes)
    }
}

impl Head {
    pub(super) fn of(engine: &Engine<'_>, files: &str, joined: Option<String>, asked: Json, grown_files: u64) -> Head {
        let (spec, dataset) = (engine.spec, engine.dataset);
        let strata = engine.strata_of(&engine.locked_lanes());
        let disks = dataset.disks.iter().zip(strata).zip(engine.first_disk..);
        Head {
            schema: SCHEMA.to_owned(),
            version: VERSION.to_owned(),
            common: Common {
                query: spec.query.clone(),
                level: spec.level,
                seed: spec.seed,
                record_share: spec.records,
                partition_bytes: dataset.partition_bytes,
                format: dataset.form.name().to_owned(),
                delimiter: match dataset.form {
                    Form::Csv { delimiter, .. } => Some(char::from(delimiter).to_string()),
                    _ => None,
                },
                header: spec.header,
                fields: dataset.columns.clone(),
                files: files.to_owned(),
                joined,
                select: engine.select.clone(),
                all_disks: engine.all_disks,
            },
            disks: disks
                .map(|((disk, stratum), number)| Drawn {
                    number,
                    node: spec.node.clone(),
                    name: disk.name.clone(),
                    files: disk.files.len() as u64,
                    bytes: disk.bytes,
                    partitions: disk.partitions,
                    drawn: stratum.drawn,
                    rows: stratum.rows.map(|rows| rows.all),
                    drawn_rows: stratum.rows.map(|rows| rows.drawn),
                    drawn_squares: stratum.rows.map(|rows| Exact(rows.squares)),
                    drawn_cubes: stratum.rows.map(|rows| Exact(rows.cubes)),
                })
                .collect(),
            asked,
            records: engine.records(),
            bytes_read: engine.bytes_read,
            indexed_bytes: dataset.indexed_bytes,
            walked_bytes: dataset.walked_bytes,
            direct: spec.direct,
            cached_files: dataset.cached_files as u64,
            grown_files,
            negative: engine.negative(&engine.locked_lanes()),
            without_value: engine.without_value(),
            sums: 0,
            keys: None,
        }
    }

    pub(super) fn strata(&self) -> Vec<Stratum> {
        widened(self.disks.iter().map(Drawn::stratum).collect())
    }

    /// Numbers of the disks that are not among these.
    pub(super) fn missing(&self) -> Vec<u64> {
        let mut there = self.disks.iter().map(|disk| disk.number).peekable();
        let all = 0..self.common.all_disks;
        all.filter(|number| there.next_if_eq(number).is_none()).collect()
    }

    pub(super) fn is_parquet(&self) -> bool {
        self.common.format == Form::Parquet.name()
    }

    /// Whether these disks were read as a whole.
    fn is_whole(&self) -> bool {
        let all_keys = self.keys.is_none_or(|keys| keys.share >= 1.0);
        all_keys && self.common.record_share >= 1.0 && self.strata().iter().all(Stratum::is_whole)
    }

    /// The answer, of which `rows` are all rows; `replicates` of the bootstrap, where there is one.
    pub(super) fn answer(&self, rows: &[Row], replicates: Option<usize>, wall_s: f64) -> Answer {
        let common = &self.common;
        let select = &common.select;
        let sum = |of: fn(&Drawn) -> u64| self.disks.iter().map(of).fold(0, u64::saturating_add);
        let (partitions, drawn) = (sum(|disk| disk.partitions), sum(|disk| disk.drawn));
        let (whole, missing) = (self.is_whole(), self.missing());
        let is_exact = whole && missing.is_empty();
        let columns: Vec<Json> = select
            .columns
            .iter()
            .map(|column| {
                let kind = match column.shows {
                    Shows::Group(_) => "group",
                    Shows::Aggregate(at) => select.kinds[at].name(),
                    Shows::Formula(_) => "formula",
                    Shows::Quantile(_) => "quantile",
                };
                json!({"name": column.name, "kind": kind})
            })
            .collect();
        let shown = &rows[..select.shown(rows.len())];
        let trusted = |row: &Row| match self.keys {
            None => is_reliable(row.seen, drawn, whole),
            // A key that outweighs the others makes of many keys few.
            Some(_) => whole || row.by_chance.min(row.units as u64) >= RARE,
        };
        let keys = self.keys.map(|keys| {
            json!({
                "share": keys.share, "drawn": keys.drawn, "certain": keys.certain, "missed_below": (!whole).then_some((3.0 / keys.share).ceil()),
            })
        });
        let absent: &[String] = if self.records > 0 { &self.without_value } else { &[] };
        let head = json!({
            "schema": "ftlab.sample/1",
            "query": common.query,
            "data": {
                "files": common.files, "format": common.format, "bytes": sum(|disk| disk.bytes), "partitions": partitions,
                "partition_bytes": (!self.is_parquet()).then_some(common.partition_bytes), "disks": self.disks.iter().map(Drawn::shown).collect::<Vec<Json>>(), "missing_disks": missing,
            },
            "sample": {
                "seed": common.seed, "level": common.level, "ratio": drawn as f64 / partitions as f64, "partitions": drawn,
                "records": self.records, "record_share": common.record_share, "bytes_read": self.bytes_read, "indexed_bytes": self.indexed_bytes, "walked_bytes": self.walked_bytes,
                "is_exact": is_exact, "direct": self.direct, "cached_files": self.cached_files, "grown_files": self.grown_files, "asked": self.asked, "join_keys": keys, "replicates": replicates.filter(|_| !is_exact),
            },
            "columns": columns,
            "rows": [],
            "absent_fields": absent,
            "groups": rows.len(),
            "unreliable": shown.iter().filter(|row| !trusted(row)).count(),
            // By the rule of three, a group in fewer than this share of partitions may have been missed with a chance above 5 %.
            "missed_below": if whole || self.keys.is_some() { Json::Null } else { json!((3.0 / drawn as f64).min(1.0)) },
            "perf": {"wall_s": wall_s},
        });
        let Json::Object(head) = head else {
            unreachable!("it is written as an object")
        };
        let rows: Vec<(&Row, bool)> = shown.iter().map(|row| (row, trusted(row))).collect();
        Answer::new(head, &rows, select)
    }

    /// Refuses what no engine has written.
    pub(super) fn check(&self) -> Result<()> {
        let select = &self.common.select;
        let (kinds, columns) = (select.kinds.len(), select.columns.len());
        let is_total = |at: usize| select.kinds.get(at).is_some_and(|kind| !kind.is_ratio());
        let asked = self.asked.as_object().is_some_and(|asked| {
            asked.iter().all(|(name, value)| match &name[..] {
                "ratio" | "drop" => value.is_f64(),
                "within" => value.is_string(),
                _ => false,
            })
        });
        let right = asked
            && kinds > 0
            && self.negative.len() == kinds
            && select.orders.iter().all(|&(column, _)| column < columns)
            && select.columns.iter().all(|column| match column.shows {
                Shows::Group(at) => at < select.groups,
                Shows::Aggregate(at) => at < kinds,
                Shows::Formula(at) => at < select.formulas.len(),
                Shows::Quantile(_) => false,
            })
            && select.formulas.iter().flat_map(Formula::totals).all(is_total)
            && select.rows.iter().all(|&at| select.kinds.get(at) == Some(&Kind::Count))
            && (select.groups == 0 || select.rows.is_empty())
            && (1..=MOST_DISKS).contains(&self.common.all_disks)
            && self.disks.iter().any(|disk| disk.partitions > 0)
            && self.disks.iter().all(|disk| disk.number < self.common.all_disks)
            && self.disks.iter().all(|disk| disk.drawn <= disk.partitions)
            && self.disks.iter().all(|disk| disk.partitions <= MOST_PARTITIONS)
            && self.disks.is_sorted_by_key(|disk| disk.number)
            && self.disks.iter().all(|disk| disk.rows_are_right(self.is_parquet()))
            && self.common.level > 0.0
            && self.common.level < 1.0
            && self.keys.is_none();
        if right {
            Ok(())
        } else {
            Err(Error::input(
                "statistics: numbers that contradict each other, expected what `sample --statistics` has written",
            ))
        }
    }
}

/// Whether a group that was seen in so many of the drawn partitions has an interval to be trusted.
pub(super) fn is_reliable(seen: u64, drawn: u64, whole: bool) -> bool {
    whole || seen >= RARE || (seen == drawn && drawn >= 5)
}
