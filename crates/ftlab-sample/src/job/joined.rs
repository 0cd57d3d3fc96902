//! The file that a sample is joined with.

use std::borrow::Cow;
use std::path::Path;

use rustc_hash::FxHashMap;

use ftlab_core::{Error, Result};

use super::LARGEST_JOINED;
use super::heavy::Counts;
use super::keyed::Taken;
use crate::expression::{Expression, Value};
use crate::frames::Unpacker;
use crate::layout::{self, Cut, Dataset};
use crate::read;
use crate::record::{self, Form};
use crate::sql::Plan;
use crate::stop::Stop;

/// A file that is joined: read whole. Where keys are sampled it may be several, of any size, of which rows of other keys are left out.
pub(super) struct Joined {
    pub(super) form: Form,
    pub(super) columns: Vec<String>,
    dataset: Dataset,
}

/// Rows of the joined file by what they are joined on.
pub struct Lookup {
    pub(super) rows: Vec<Vec<Value<'static>>>,
    pub(super) of: FxHashMap<Box<[u8]>, Vec<u32>>,
}

impl Joined {
    pub(super) fn open(pattern: &str, by_keys: bool, stop: &Stop) -> Result<Joined> {
        let cut = Cut {
            disks: Vec::new(),
            partition_bytes: 1 << 20,
            form: None,
            delimiter: None,
            header: true,
            no_quoted_newlines: false,
            direct: false,
            stop: stop.clone(),
        };
        let dataset = layout::open(pattern, &cut)?;
        let files: Vec<_> = dataset.disks.iter().flat_map(|disk| &disk.files).collect();
        if !by_keys {
            let [piece] = &files[..] else {
                return Err(Error::input(format!(
                    "join {pattern}: {} files, expected one, or --join-keys, which samples both sides",
                    files.len()
                )));
            };
            if piece.text_bytes() > LARGEST_JOINED {
                return Err(Error::input(format!(
                    "join {pattern}: {} bytes, expected at most {LARGEST_JOINED}, as a joined file is read whole; the larger file belongs behind `from`, or --join-keys samples both sides",
                    piece.text_bytes()
                )));
            }
        }
        Ok(Joined {
            form: dataset.form.clone(),
            columns: dataset.columns.clone(),
            dataset,
        })
    }

    /// Numbers of the fields that are no values.
    pub(super) fn refused(&self) -> Vec<usize> {
        self.dataset.refused()
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.dataset.paths()
    }

    /// Refuses files that are no longer what they were, as `Dataset` does; called when they have been read.
    pub(super) fn check_unchanged(&self) -> Result<u64> {
        self.dataset.check_unchanged()
    }

    /// BLAKE3 of the file, as text.
    pub(super) fn checksum(&self) -> Result<String> {
        let mut hasher = blake3::Hasher::new();
        for piece in self.dataset.disks.iter().flat_map(|disk| &disk.files) {
            let path: &Path = &piece.path;
            hasher.update(&std::fs::read(path).map_err(|e| Error::io(path, &e))?);
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Rows by what they are joined on; of `taken` keys only, if any are chosen.
    pub(super) fn lookup(
        &self,
        plan: &Plan,
        key: &Expression,
        taken: Option<&Taken>,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Lookup> {
        let mut lookup = Lookup {
            rows: Vec::new(),
            of: FxHashMap::default(),
        };
        self.each(plan, key, go_on, &mut |key, row| {
            if taken.is_none_or(|taken| taken.takes(&key)) {
                lookup.of.entry(key.into()).or_default().push(lookup.rows.len() as u32);
                lookup.rows.push(row.to_vec());
            }
        })?;
        Ok(lookup)
    }

    /// How many rows each key has, of the `most` that have the most.
    pub(super) fn counts(
        &self,
        plan: &Plan,
        key: &Expression,
        most: usize,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Counts> {
        let mut counts = Counts::new(most);
        self.each(plan, key, go_on, &mut |key, _| counts.add(&key, 1))?;
        Ok(counts)
    }

    /// Calls `each` with every row that has a key.
    fn each(
        &self,
        plan: &Plan,
        key: &Expression,
        go_on: &mut dyn FnMut() -> Result<()>,
        each: &mut dyn FnMut(Vec<u8>, &[Value<'static>]),
    ) -> Result<()> {
        // Slots behind those of the sampled files; fields come in their own order.
        let before = plan.picks.len();
        let mut order: Vec<usize> = (0..plan.joined.len()).collect();
        order.sort_by_key(|&at| match plan.joined[at] {
            record::Pick::Field(number) => number,
            _ => at,
        });
        let picks: Vec<record::Pick> = order.iter().map(|&at| plan.joined[at].clone()).collect();
        let mut slots = vec![Value::Null; before + picks.len()];
        let mut keep = |found: &mut dyn Iterator<Item = Value<'_>>| {
            for (value, &at) in found.zip(&order) {
                slots[before + at] = value.owned();
            }
            if let Some(key) = joined_key(&key.evaluate(&slots)?) {
                each(key, &slots[before..]);
            }
            Ok(())
        };
        self.dataset.check(&picks)?;
        let (mut buffer, mut unpacker) = (Vec::new(), Unpacker::default());
        for (disk, of) in self.dataset.disks.iter().enumerate() {
            for partition in 0..of.partitions {
                go_on()?;
                let place = self.dataset.place(disk, partition);
                let path: &Path = &place.piece.path;
                if let Some(groups) = &place.piece.row_groups {
                    let mut columns = Vec::new();
                    read::load(place, &picks, &mut columns)?;
                    groups
                        .each_row(place.number, &picks, columns, |_, slots| keep(&mut slots.drain(..)))
                        .map_err(|(row, wrong)| Error::input(format!("{}, row {row}: {}", path.display(), wrong.0)))?;
                    continue;
                }
                let mut loaded = read::load(place, &picks, &mut buffer)?;
                read::unpack(place, &mut loaded, &mut buffer, &mut unpacker)?;
                let records = &buffer[loaded.records.clone()];
                let mut each_line = |_: usize, line: &[u8]| {
                    let mut found = vec![Value::Null; picks.len()];
                    record::fields(&self.form, &picks, &self.columns, line, &mut found)?;
                    keep(&mut found.into_iter())
                };
                record::records(&self.form, place.piece.is_quoted(), records, &mut each_line).map_err(
                    |(at, wrong)| {
                        let byte = loaded.offset + (loaded.records.start + at) as u64;
                        let of = place.piece.of_what();
                        Error::input(format!("{}, byte {byte}{of}: {}", path.display(), wrong.0))
                    },
                )?;
            }
        }
        Ok(())
    }
}

/// What is compared by a join: text. None of null, which is like nothing.
pub(super) fn joined_key(value: &Value<'_>) -> Option<Vec<u8>> {
    value.text().map(Cow::into_owned)
}
