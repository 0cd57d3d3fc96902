//! One answer of the statistics of several machines.
//!
//! # Model
//! Each disk is a stratum, whichever machine it belongs to: the estimators are those of one machine, and they get the same sums in the order of the disks' numbers. So the
//! answer is, to the bit, that of one machine with all disks, in whichever order the parts come.
//!
//! # Not modelled
//! Disks that are missing. On request the answer is about the records of the others, and its intervals hold for these alone: nothing is assumed of what is not there.
//!
//! # Errors
//! Parts of different questions, seeds, levels, partition sizes, files that are joined, or versions; a disk twice; a missing disk, unless that was asked for.

use std::collections::BTreeMap;
use std::time::Instant;

use ftlab_core::{Error, Result};
use rustc_hash::FxHashMap;
use serde_json::json;

use super::answer::{Answer, Basis, Groups};
use super::head::{Common, Drawn, Head};
use super::statistics::{Group, Numbers, Statistics, titles};
use crate::formula::Moments;
use crate::stop::Stop;

/// The answer of all parts together; with `partial`, also where disks are missing.
pub fn merge(parts: &[Statistics], partial: bool) -> Result<Answer> {
    let started = Instant::now();
    let head = merged(parts, partial)?;
    let strata = head.strata();
    let mut groups: Vec<(usize, &Group)> = Vec::new();
    for part in parts {
        for group in &part.groups {
            // Disks are in the order of their numbers, each once.
            let at = head.disks.partition_point(|disk| disk.number < group.disk);
            groups.push((at, group));
        }
    }
    groups.sort_by(|(a, group), (b, other)| (a, &group.key).cmp(&(b, &other.key)));
    let is_same = |a: &Group, b: &Group| a.disk == b.disk && a.key == b.key;
    if let Some(twice) = groups.windows(2).find(|pair| is_same(pair[0].1, pair[1].1)) {
        return Err(Error::input(format!(
            "statistics: a group of disk {} twice, expected each once",
            twice[0].1.disk
        )));
    }
    let basis = Basis {
        select: &head.common.select,
        strata: &strata,
        keys: None,
        negative: &head.negative,
        level: head.common.level,
        within: head.common.record_share < 1.0,
        stop: &Stop::default(),
    };
    // All parts have what the numbers go by alike.
    let numbers = Numbers::of(&head);
    let mut counts: Counts = Counts {
        numbers: &numbers,
        disks: strata.len(),
        of: FxHashMap::default(),
    };
    if !head.common.select.formulas.is_empty() {
        for &(disk, group) in &groups {
            counts.of.entry(&group.key).or_default().push((disk, &group.sums));
        }
    }
    let rows = basis.rows(&counts, |each| {
        for &(disk, group) in &groups {
            each(disk, &group.key, group.seen, &numbers.sums(&group.sums));
        }
    });
    Ok(head.answer(&rows, None, started.elapsed().as_secs_f64()))
}

/// What all parts have of each group.
struct Counts<'a> {
    numbers: &'a Numbers<'a>,
    disks: usize,
    /// Disks and numbers.
    of: FxHashMap<&'a [u8], Vec<(usize, &'a [f64])>>,
}

impl Groups for Counts<'_> {
    fn moments(&self, key: &[u8]) -> Vec<Option<Moments>> {
        let mut moments: Vec<Option<Moments>> = (0..self.disks).map(|_| None).collect();
        for &(disk, numbers) in self.of.get(key).into_iter().flatten() {
            moments[disk] = Some(self.numbers.moments(numbers));
        }
        moments
    }

    /// Statistics are sums alone.
    fn quantile(&self, _: &[u8], _: usize) -> Option<f64> {
        None
    }
}

/// What the parts are together.
fn merged(parts: &[Statistics], partial: bool) -> Result<Head> {
    let Some((first, others)) = parts.split_first() else {
        return Err(Error::input("statistics: none, expected those of one machine at least"));
    };
    let mut all = first.head.clone();
    for part in others {
        let head = &part.head;
        if let Some((what, is, expected)) = difference(&head.common, &all.common) {
            return Err(Error::input(format!(
                "statistics of {}: {what} {is}, expected {expected} as of {}",
                titles(head),
                titles(&first.head)
            )));
        }
        all.disks.extend(head.disks.iter().cloned());
        if all.asked != head.asked {
            all.asked = json!({});
        }
        all.records = all.records.saturating_add(head.records);
        all.bytes_read = all.bytes_read.saturating_add(head.bytes_read);
        all.indexed_bytes = all.indexed_bytes.saturating_add(head.indexed_bytes);
        all.walked_bytes = all.walked_bytes.saturating_add(head.walked_bytes);
        all.direct |= head.direct;
        all.cached_files = all.cached_files.saturating_add(head.cached_files);
        all.grown_files = all.grown_files.saturating_add(head.grown_files);
        all.negative
            .iter_mut()
            .zip(&head.negative)
            .for_each(|(any, &one)| *any |= one);
        all.without_value.retain(|field| head.without_value.contains(field));
        all.sums = all.sums.saturating_add(head.sums);
    }
    all.disks.sort_by_key(|disk| disk.number);
    once(&all.disks)?;
    let missing = all.missing();
    if !partial && !missing.is_empty() {
        let numbers: Vec<String> = missing.iter().take(8).map(u64::to_string).collect();
        let more = if missing.len() > numbers.len() { ", ..." } else { "" };
        return Err(Error::input(format!(
            "statistics: {} of {} disks are missing (number {}{more}); expected all, or --partial for an answer about the others alone",
            missing.len(),
            all.common.all_disks,
            numbers.join(", ")
        )));
    }
    Ok(all)
}

/// Refuses a disk that is there twice, by its number or its name. They come in the order of their numbers.
fn once(disks: &[Drawn]) -> Result<()> {
    if let Some(same) = disks.windows(2).find(|pair| pair[0].number == pair[1].number) {
        return Err(Error::input(format!(
            "statistics: {} and {}, expected numbers of its own for each machine's disks (--first-disk)",
            same[0].title(),
            same[1].title()
        )));
    }
    let mut named: BTreeMap<_, &Drawn> = BTreeMap::new();
    for disk in disks {
        if let Some(same) = named.insert((&disk.node, &disk.name), disk) {
            return Err(Error::input(format!(
                "statistics: {} and {}, expected each disk once, and another --node on each machine",
                same.title(),
                disk.title()
            )));
        }
    }
    Ok(())
}

/// The first thing that parts do not have alike: what it is called, what it is, what was expected.
fn difference(part: &Common, first: &Common) -> Option<(&'static str, String, String)> {
    // Naming every field here makes the compiler ask for one that is new.
    let said = |common: &Common| {
        let Common {
            query,
            level,
            seed,
            record_share,
            partition_bytes,
            format,
            delimiter,
            header,
            fields,
            files,
            joined,
            select,
            all_disks,
        } = common;
        [
            ("query", query.clone()),
            ("level", level.to_string()),
            ("seed", seed.to_string()),
            ("share of records", record_share.to_string()),
            ("partition of bytes", partition_bytes.to_string()),
            ("format", format.clone()),
            ("delimiter", delimiter.clone().unwrap_or_default()),
            ("header", header.to_string()),
            ("fields", fields.join(", ")),
            ("files", files.clone()),
            ("checksum of the joined file", joined.clone().unwrap_or_default()),
            ("columns", json!(select).to_string()),
            ("number of all disks", all_disks.to_string()),
        ]
    };
    let pairs = said(part).into_iter().zip(said(first));
    pairs
        .map(|((what, is), (_, expected))| (what, is, expected))
        .find(|(_, is, expected)| is != expected)
}
