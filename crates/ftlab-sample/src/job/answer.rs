//! The rows of an answer, of what all lanes, or all machines, have counted.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::MutexGuard;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value as Json};

use super::Engine;
use super::words::Words;
use crate::bootstrap::{self, Ranked, Settings, TOGETHER};
use crate::estimate::{Estimate, Estimator, Quantiles, Stratum, all_rows, put};
use crate::expression::{EXACT, Rank, Value, ordered};
use crate::formula::{Formula, Moments};
use crate::sql::{Column, Kind, Select, Shows};
use crate::stop::Stop;
use crate::totals::{Sums, Totals};

/// A row of the answer.
pub(super) struct Row {
    /// What is grouped by, as `Value::write_key` writes it.
    key: Box<[u8]>,
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
    /// Ends it without all rows, as nobody wants them.
    pub(super) stop: &'a Stop,
}

/// Lanes that nothing is added to.
struct Lanes<'a> {
    engine: &'a Engine<'a>,
    lanes: &'a [MutexGuard<'a, Totals>],
    words: &'a [Vec<MutexGuard<'a, Words>>],
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
            stop: &self.stop,
        };
        let words = self.locked_words();
        let of = Lanes {
            engine: self,
            lanes,
            words: &words,
            strata,
            with_quantiles,
        };
        basis.rows(&of, |each| {
            for (at, lane) in lanes.iter().enumerate() {
                lane.each_group(|key, seen, sums| each(at / self.lanes_of_disk, key, seen, sums));
            }
            let mut own = vec![Sums::default(); self.select.kinds.len()];
            for (disk, tables) in words.iter().enumerate() {
                for (key, seen, sums) in tables.iter().flat_map(|words| words.groups()) {
                    own.fill(sums);
                    each(disk, key, seen, &own);
                }
            }
        })
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
            if self.stop.is_asked() {
                return;
            }
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
        let add = |mut all: Moments, one: Moments| {
            all.add(&one);
            all
        };
        if !self.words.is_empty() {
            let select = &self.engine.select;
            let of_table = |words: &MutexGuard<'_, Words>| words.sums(key).map(|sums| Moments::of_counts(select, sums));
            let of_disk = |tables: &Vec<_>| tables.iter().filter_map(of_table).reduce(add);
            return self.words.iter().map(of_disk).collect();
        }
        let of_disk = |lanes: &[MutexGuard<'_, Totals>]| lanes.iter().filter_map(|lane| lane.moments(key)).reduce(add);
        self.lanes.chunks(self.engine.lanes_of_disk).map(of_disk).collect()
    }

    fn quantile(&self, key: &[u8], quantile: usize) -> Option<f64> {
        let found = || self.engine.ranked(self.lanes, key, quantile).value(self.strata);
        self.with_quantiles.then(found).flatten()
    }
}

impl Basis<'_> {
    /// All rows, in their order, of sums that `counted` gives: disk, key, partitions seen, sums of each aggregate. Disks, and lanes of a disk, come in order, so that each group's sums
    /// are added in order, whatever the order of groups.
    pub(super) fn rows<'k>(
        &self,
        of: &dyn Groups,
        counted: impl FnOnce(&mut dyn FnMut(usize, &'k [u8], u64, &[Sums])),
    ) -> Vec<Row> {
        let mut all = Counted::new(self);
        if self.select.groups == 0 {
            all.group(b"", 0);
        }
        counted(&mut |disk, key, seen, sums| {
            if !self.stop.is_asked() {
                all.add(disk, key, seen, sums);
            }
        });
        if self.stop.is_asked() {
            return Vec::new();
        }
        all.end();
        let formulas = self.formulas();
        let order = self.order(&all, &formulas, of);
        let order = order.into_iter().take_while(|_| !self.stop.is_asked());
        let mut rows: Vec<Row> = order.map(|group| all.row(group, &formulas, of)).collect();
        let shown = self.select.shown(rows.len());
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

    /// Numbers of groups in their order. Rows that are otherwise alike stand in the order of their keys.
    fn order(&self, all: &Counted<'_, '_>, formulas: &[Formula], of: &dyn Groups) -> Vec<usize> {
        let (groups, count) = (self.select.groups, all.groups.len());
        // Texts are read as numbers once, not at each comparison.
        let ranks: Vec<Rank<'_>> = all.groups.iter().flat_map(|group| Rank::read(group.key)).collect();
        let rank = |group: usize, at: usize| &ranks[group * groups + at];
        let by = self.select.orders.iter().map(|&(column, falls)| {
            let shows = self.select.columns[column].shows;
            let number = |group| all.value(group, shows, formulas, of).unwrap_or(f64::NEG_INFINITY);
            let by = match shows {
                Shows::Group(at) => By::Group(at),
                _ => By::Number((0..count).map(number).map(ordered).collect()),
            };
            (by, falls)
        });
        let by: Vec<(By, bool)> = by.collect();
        // Most are told apart by a number.
        let first = |group: usize| match by.first() {
            Some((By::Number(numbers), falls)) => numbers[group] ^ if *falls { u64::MAX } else { 0 },
            Some((By::Group(at), falls)) => rank(group, *at).beginning() ^ if *falls { u64::MAX } else { 0 },
            None if groups > 0 => rank(group, 0).beginning(),
            None => 0,
        };
        let compare = |a: usize, b: usize| {
            for (by, falls) in &by {
                let order = match by {
                    By::Group(at) => rank(a, *at).cmp(rank(b, *at)),
                    By::Number(numbers) => numbers[a].cmp(&numbers[b]),
                };
                let order = if *falls { order.reverse() } else { order };
                if order.is_ne() {
                    return order;
                }
            }
            let ranks = (0..groups).map(|at| rank(a, at).cmp(rank(b, at)));
            let order = ranks.fold(Ordering::Equal, Ordering::then);
            order.then_with(|| all.groups[a].key.cmp(all.groups[b].key))
        };
        let mut order: Vec<(u64, usize)> = (0..count).map(|group| (first(group), group)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| compare(a.1, b.1)));
        order.into_iter().map(|(_, group)| group).collect()
    }

    /// Those of all but quantiles.
    fn add_intervals(&self, rows: &mut [Row], formulas: &[Formula], of: &dyn Groups) {
        let Basis { select, within, .. } = *self;
        let mut quantiles = Quantiles::new(self.level);
        for row in rows {
            if self.stop.is_asked() {
                return;
            }
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

/// What rows are sorted by.
enum By {
    /// What is grouped by, by its number.
    Group(usize),
    /// A number of each group, as `ordered` has it.
    Number(Vec<u64>),
}

/// Sums of groups as they come, disk by disk.
struct Counted<'b, 'k> {
    basis: &'b Basis<'b>,
    all_rows: Option<f64>,
    numbers: FxHashMap<&'k [u8], usize>,
    groups: Vec<Group<'k>>,
    /// Of the disk under way and of all, those of each aggregate, group by group.
    sums: Vec<Sums>,
    estimators: Vec<Estimator>,
}

struct Group<'k> {
    key: &'k [u8],
    seen: u64,
    /// Of `disk` alone.
    seen_there: u64,
    disk: usize,
}

impl<'b, 'k> Counted<'b, 'k> {
    fn new(basis: &'b Basis<'b>) -> Self {
        Counted {
            basis,
            all_rows: all_rows(basis.strata),
            numbers: FxHashMap::default(),
            groups: Vec::new(),
            sums: Vec::new(),
            estimators: Vec::new(),
        }
    }

    /// Places of a group's aggregates.
    fn own(&self, group: usize) -> Range<usize> {
        let aggregates = self.basis.select.kinds.len();
        group * aggregates..(group + 1) * aggregates
    }

    /// The number of a group; a new one begins with `disk`.
    fn group(&mut self, key: &'k [u8], disk: usize) -> usize {
        let next = self.groups.len();
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.groups.push(Group {
                key,
                seen: 0,
                seen_there: 0,
                disk,
            });
            let kinds = &self.basis.select.kinds;
            self.sums.resize(self.sums.len() + kinds.len(), Sums::default());
            let estimator = |kind: &Kind| Estimator::of_rows(self.all_rows.filter(|_| !kind.is_ratio()));
            self.estimators.extend(kinds.iter().map(estimator));
            self.without(number, 0..disk);
        }
        number
    }

    /// Where totals are by rows, those of disks without the group count as well.
    fn without(&mut self, group: usize, disks: Range<usize>) {
        if self.all_rows.is_none() {
            return;
        }
        let own = self.own(group);
        for stratum in &self.basis.strata[disks] {
            let totals = self.estimators[own.clone()].iter_mut().zip(&self.basis.select.kinds);
            let totals = totals.filter(|(_, kind)| !kind.is_ratio());
            totals.for_each(|(estimator, _)| estimator.add(*stratum, &Sums::default()));
        }
    }

    fn end_disk(&mut self, group: usize, next: usize) {
        let Group { disk, seen_there, .. } = self.groups[group];
        let stratum = self.basis.of_group(disk, seen_there);
        let own = self.own(group);
        let both = self.estimators[own.clone()].iter_mut().zip(&mut self.sums[own]);
        for (estimator, sums) in both {
            estimator.add(stratum, &std::mem::take(sums));
        }
        self.without(group, disk + 1..next);
        self.groups[group].disk = next;
    }

    fn add(&mut self, disk: usize, key: &'k [u8], seen: u64, sums: &[Sums]) {
        let number = self.group(key, disk);
        if self.groups[number].disk != disk {
            self.end_disk(number, disk);
            self.groups[number].seen_there = 0;
        }
        let own = self.own(number);
        let group = &mut self.groups[number];
        group.seen += seen;
        let is_first = group.seen_there == 0;
        group.seen_there += seen;
        if is_first {
            self.sums[own].copy_from_slice(sums);
        } else {
            let both = self.sums[own].iter_mut().zip(sums);
            both.for_each(|(all, one)| all.add(one));
        }
    }

    /// Ends the last disk of each group, whose number stays.
    fn end(&mut self) {
        for group in 0..self.groups.len() {
            let disk = self.groups[group].disk;
            self.end_disk(group, self.basis.strata.len());
            self.groups[group].disk = disk;
        }
    }

    fn value(&self, group: usize, shows: Shows, formulas: &[Formula], of: &dyn Groups) -> Option<f64> {
        let (select, estimators) = (self.basis.select, &self.estimators[self.own(group)]);
        match shows {
            Shows::Group(_) => None,
            Shows::Aggregate(at) => {
                let known = self.basis.known(at);
                known.or_else(|| estimators[at].value(select.kinds[at]))
            }
            Shows::Formula(at) => formulas[at].value(&|total| estimators[total].total()),
            Shows::Quantile(at) => of.quantile(self.groups[group].key, at),
        }
    }

    fn row(&self, group: usize, formulas: &[Formula], of: &dyn Groups) -> Row {
        let select = self.basis.select;
        let Group {
            key,
            seen,
            seen_there,
            disk,
        } = self.groups[group];
        let is_sorted_by = |shows| {
            select
                .orders
                .iter()
                .any(|&(column, _)| select.columns[column].shows == shows)
        };
        let value = |column: &Column| {
            // Sorting all values of all groups is left out where nothing is sorted by it.
            if matches!(column.shows, Shows::Quantile(_)) && !is_sorted_by(column.shows) {
                return None;
            }
            let value = self.value(group, column.shows, formulas, of)?;
            Some(Estimate { value, interval: None })
        };
        let estimators = &self.estimators[self.own(group)];
        let weighed = estimators.iter().enumerate();
        let weighed = weighed.filter(|&(at, _)| select.kinds[at].is_ratio() || !self.basis.negative[at]);
        Row {
            key: key.into(),
            seen,
            by_chance: if disk == CERTAIN { 0 } else { seen_there },
            units: weighed
                .map(|(_, estimator)| estimator.units())
                .fold(f64::INFINITY, f64::min),
            estimates: select.columns.iter().map(value).collect(),
            estimators: estimators.to_vec(),
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
        let mut written = Vec::with_capacity(256 * rows.len() + 2);
        written.push(b'[');
        for (number, &(row, is_reliable)) in rows.iter().enumerate() {
            if number > 0 {
                written.push(b',');
            }
            row.write(select, is_reliable, &mut written);
        }
        written.push(b']');
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

impl Row {
    /// As JSON.
    fn write(&self, select: &Select, is_reliable: bool, out: &mut Vec<u8>) {
        out.extend(b"{\"values\":[");
        for (at, column) in select.columns.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            if let Shows::Group(group) = column.shows {
                match Value::read_keys(&self.key).nth(group).unwrap_or(Value::Null) {
                    Value::Null => out.extend(b"null"),
                    Value::Bool(truth) => put(truth, out),
                    // JSON has no such numbers, and null is another group.
                    Value::Number(number) if !number.is_finite() => put(number.to_string(), out),
                    Value::Number(number) if number.fract() == 0.0 && number.abs() <= EXACT as f64 => {
                        put(number as i64, out);
                    }
                    Value::Number(number) if select.singles.contains(&group) => put(number as f32, out),
                    Value::Number(number) => put(number, out),
                    // Readers of JSON have no more than 64 bits.
                    Value::Whole(number) => match (i64::try_from(number), u64::try_from(number)) {
                        (Ok(number), _) => put(number, out),
                        (_, Ok(number)) => put(number, out),
                        _ => put(number.to_string(), out),
                    },
                    Value::Text(text) => put(String::from_utf8_lossy(&text), out),
                }
                continue;
            }
            // Statistics that somebody has changed may give no number.
            match self.estimates[at].filter(|estimate| estimate.value.is_finite()) {
                Some(found) => found.write(out),
                None => out.extend(b"null"),
            }
        }
        out.extend(b"],\"partitions_seen\":");
        put(self.seen, out);
        out.extend(b",\"is_reliable\":");
        put(is_reliable, out);
        out.push(b'}');
    }
}
