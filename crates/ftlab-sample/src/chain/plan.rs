//! What becomes of the records of a partition, up to where Python takes over.

use std::borrow::Cow;

use ftlab_core::{Error, Result, Stream};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::kernel::{Kernel, Way};
use crate::expression::Value;
use crate::layout::{Dataset, Place};
use crate::read::Loaded;
use crate::record::{self, Form, Pick};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Share of records, and its seed, behind so many of the steps.
    #[serde(default)]
    pub sample: Option<Sample>,
    /// Equal texts become one, with their number.
    #[serde(default)]
    pub count: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    pub way: Way,
    #[serde(flatten)]
    pub kernel: Kernel,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    pub behind: usize,
    pub ratio: f64,
    pub seed: u64,
}

/// Texts in rows of `width`, some of them null.
#[derive(Debug, Default)]
pub struct Cells {
    pub width: usize,
    bytes: Vec<u8>,
    /// Behind each text, and whether it is null.
    ends: Vec<(usize, bool)>,
}

impl Cells {
    fn push(&mut self, text: Option<&[u8]>) {
        self.bytes.extend_from_slice(text.unwrap_or_default());
        self.ends.push((self.bytes.len(), text.is_none()));
    }

    pub fn rows(&self) -> usize {
        self.ends.len() / self.width.max(1)
    }

    pub fn get(&self, row: usize, column: usize) -> Option<&[u8]> {
        let at = row * self.width + column;
        let start = if at == 0 { 0 } else { self.ends[at - 1].0 };
        let (end, is_null) = self.ends[at];
        (!is_null).then(|| &self.bytes[start..end])
    }
}

/// What came of a partition.
#[derive(Debug)]
pub struct Part {
    pub disk: usize,
    pub partition: u64,
    /// Records where records were sampled, and those taken; without a sample as many.
    pub records: u64,
    pub taken: u64,
    pub cells: Cells,
    /// Of each row, which of the taken records it comes from.
    pub parents: Option<Vec<u32>>,
    /// Of each row, how often it was there.
    pub counts: Option<Vec<u64>>,
}

impl Plan {
    pub fn parse(json: &str) -> Result<Plan> {
        serde_json::from_str(json).map_err(|e| {
            // A kernel's own words; where they stand in the plan is of no use.
            let said = e.to_string();
            let words = said.rsplit_once(" at line ").map_or(&said[..], |(words, _)| words);
            Error::input(words)
        })
    }

    /// Takes a partition's records through the plan.
    pub fn run(&self, dataset: &Dataset, disk: usize, partition: u64, buffer: &[u8], loaded: &Loaded) -> Result<Part> {
        let place = dataset.place(disk, partition);
        let mut cells = records(dataset, place, &buffer[loaded.records.clone()], loaded)?;
        let behind = self.sample.as_ref().map_or(self.steps.len(), |sample| sample.behind);
        let (before, after) = self.steps.split_at(behind.min(self.steps.len()));
        let mut room = Vec::new();
        if !before.is_empty() {
            cells = through(before, &cells, 0..cells.rows(), &mut room).0;
        }
        let records = cells.rows() as u64;
        let mut part = Part {
            disk,
            partition,
            records,
            taken: records,
            cells,
            parents: None,
            counts: None,
        };
        if let Some(sample) = &self.sample {
            let chosen = choose(sample.seed, disk, partition, records, sample.ratio);
            part.taken = chosen.len() as u64;
            let (cells, parents) = through(after, &part.cells, chosen.iter().map(|&row| row as usize), &mut room);
            (part.cells, part.parents) = (cells, Some(parents));
        }
        if self.count {
            count(&mut part);
        }
        Ok(part)
    }
}

/// The records of a sample within a partition: at least two, in their order; the same as SQL's for the same seed.
pub fn choose(seed: u64, disk: usize, partition: u64, all: u64, ratio: f64) -> Vec<u32> {
    let wanted = ((ratio * all as f64).round() as u64).max(2).min(all);
    let mut random = Stream::new(seed, &format!("records of partition {partition} of disk {disk}"));
    let mut left = wanted;
    let mut chosen = Vec::with_capacity(wanted as usize);
    for number in 0..all {
        if random.below(all - number) < left {
            left -= 1;
            chosen.push(number as u32);
        }
    }
    chosen
}

/// Fields of CSV, lines of the others.
fn records(dataset: &Dataset, place: Place<'_>, bytes: &[u8], loaded: &Loaded) -> Result<Cells> {
    let form = &dataset.form;
    let is_csv = matches!(form, Form::Csv { .. });
    let width = if is_csv { dataset.columns.len() } else { 1 };
    let picks: Vec<Pick> = (0..width).map(Pick::Field).collect();
    let mut cells = Cells {
        width,
        ..Cells::default()
    };
    cells.bytes.reserve(bytes.len());
    let done = record::records(form, place.piece.is_quoted(), bytes, |_, line| {
        if !is_csv {
            cells.push(Some(line));
            return Ok(());
        }
        let mut slots = vec![Value::Null; width];
        record::fields(form, &picks, &dataset.columns, line, &mut slots)?;
        for slot in &slots {
            match slot {
                Value::Text(text) => cells.push(Some(Cow::as_ref(text))),
                _ => cells.push(None),
            }
        }
        Ok(())
    });
    done.map_err(|(at, wrong)| {
        let byte = loaded.offset + (loaded.records.start + at) as u64;
        Error::input(format!(
            "{}, record at byte {byte}{}: {}",
            place.piece.path.display(),
            place.piece.of_what(),
            wrong.0
        ))
    })?;
    Ok(cells)
}

/// Rows through steps; of each that comes out, the number among `rows` of the one it comes from.
fn through(steps: &[Step], cells: &Cells, rows: impl Iterator<Item = usize>, room: &mut Vec<u8>) -> (Cells, Vec<u32>) {
    let mut out = Cells {
        width: cells.width,
        ..Cells::default()
    };
    let mut parents = Vec::new();
    for (number, row) in rows.enumerate() {
        let before = out.rows();
        match steps {
            [] => (0..cells.width).for_each(|column| out.push(cells.get(row, column))),
            [first, rest @ ..] => step(first, rest, cells.get(row, 0), room, &mut out),
        }
        parents.resize(parents.len() + out.rows() - before, number as u32);
    }
    (out, parents)
}

fn step(first: &Step, rest: &[Step], text: Option<&[u8]>, room: &mut Vec<u8>, out: &mut Cells) {
    match rest {
        [] => first.kernel.apply(first.way, text, room, &mut |piece| out.push(piece)),
        [second, rest @ ..] => {
            first.kernel.apply(first.way, text, room, &mut |piece| {
                // The first step's room is in use.
                step(second, rest, piece, &mut Vec::new(), out);
            });
        }
    }
}

/// Equal texts of a record, or of the partition where none were sampled, become one, in the order in which they came first.
fn count(part: &mut Part) {
    let mut out = Cells {
        width: 1,
        ..Cells::default()
    };
    let (mut counts, mut parents): (Vec<u64>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut known: FxHashMap<(u32, Option<&[u8]>), usize> = FxHashMap::default();
    for row in 0..part.cells.rows() {
        let parent = part.parents.as_ref().map_or(0, |parents| parents[row]);
        let text = part.cells.get(row, 0);
        let at = *known.entry((parent, text)).or_insert_with(|| {
            out.push(text);
            counts.push(0);
            parents.push(parent);
            counts.len() - 1
        });
        counts[at] += 1;
    }
    part.counts = Some(counts);
    part.parents = part.parents.is_some().then_some(parents);
    part.cells = out;
}
