//! Parquet in place: its row groups are the partitions.
//!
//! # Model
//! The footer says where each column of each row group lies, so that nothing but the footer and the columns asked for is read. Row groups may be of very unequal size:
//! totals are expanded as of any partitions, and wider for it. Row groups without rows are left out.
//!
//! # Not modelled
//! Statistics, Bloom filters and page indices of the file, which could leave out what a condition excludes.
//!
//! # Errors
//! Files that are none, are cut off, damaged or encrypted, as a whole or in a column that is asked for; columns of another file; a column of another kind than in the first file, or that is not there; codecs that are not built in
//! (Brotli, LZO).
//!
//! # Source
//! Apache Parquet format 2.11: file layout, thrift definitions.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::{Arc, Once};

use ftlab_core::{Error, Result};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use rustc_hash::FxHashMap;

use crate::column::{self, Meaning};
use crate::encrypted;
use crate::expression::{Value, Wrong};
use crate::record::Pick;

/// The footer's length and the last four bytes.
const TAIL: u64 = 8;
/// Rows that are decoded at a time.
const ROWS: usize = 4096;

#[derive(Debug)]
pub struct RowGroups {
    metadata: ParquetMetaData,
    /// Those with rows.
    groups: Vec<Group>,
    pub names: Vec<String>,
    meanings: Vec<Meaning>,
    /// Numbers of columns that are encrypted.
    encrypted: BTreeSet<usize>,
    /// Of each column of the first file, its number in this one.
    places: Vec<Place>,
    pub footer_bytes: u64,
}

/// Where a column of the first file is in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    At(usize),
    Nowhere,
    Twice,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    number: usize,
    rows: u64,
    first_row: u64,
}

impl RowGroups {
    /// Reads the footer of a file.
    pub fn open(path: &Path, file: &File, bytes: u64) -> Result<RowGroups> {
        let refuse = |what: String| Error::input(format!("{}: {what}", path.display()));
        let io = |e: std::io::Error| Error::io(path, &e);
        if bytes < TAIL + 4 {
            return Err(refuse(format!("{bytes} bytes, too few for Parquet")));
        }
        let (mut head, mut tail) = ([0; 4], [0; TAIL as usize]);
        file.read_exact_at(&mut head, 0).map_err(io)?;
        file.read_exact_at(&mut tail, bytes - TAIL).map_err(io)?;
        if &head == b"PARE" || &tail[4..] == b"PARE" {
            return Err(refuse("encrypted Parquet, expected one without encryption".to_owned()));
        }
        if &head != b"PAR1" {
            return Err(refuse("no Parquet, expected `PAR1` as its first bytes".to_owned()));
        }
        if &tail[4..] != b"PAR1" {
            return Err(refuse(
                "Parquet that is cut off, expected `PAR1` as its last bytes".to_owned(),
            ));
        }
        let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        if length == 0 || length > bytes - TAIL - 4 {
            return Err(refuse(format!(
                "a footer of {length} bytes, expected 1 to {}",
                bytes - TAIL - 4
            )));
        }
        let mut footer = vec![0; length as usize];
        file.read_exact_at(&mut footer, bytes - TAIL - length).map_err(io)?;
        let encrypted = encrypted::columns(&footer).unwrap_or_default();
        let metadata = undamaged(|| ParquetMetaDataReader::decode_metadata(&footer).map_err(|e| said(&e)));
        let metadata = metadata.map_err(|what| {
            // What tells of an encrypted column may itself be encrypted.
            match encrypted.first() {
                Some(column) => refuse(format!(
                    "Parquet whose column {} is encrypted, expected one without encryption",
                    column + 1
                )),
                None => refuse(format!("a damaged footer: {what}")),
            }
        })?;
        let columns = metadata.file_metadata().schema_descr().columns();
        let mut groups = Vec::new();
        let mut first_row = 0;
        for (number, group) in metadata.row_groups().iter().enumerate() {
            let rows = u64::try_from(group.num_rows())
                .ok()
                .filter(|_| group.num_columns() == columns.len())
                .ok_or_else(|| refuse(format!("a damaged footer: row group {}", number + 1)))?;
            for column in group.columns() {
                if column.file_path().is_some() {
                    return Err(refuse("columns in another file, expected all in this one".to_owned()));
                }
                let end = extent(column).and_then(|(start, bytes)| start.checked_add(bytes));
                if end.is_none_or(|end| end > bytes - TAIL - length) {
                    return Err(refuse(format!(
                        "a damaged footer: column `{}` of row group {} lies outside the file",
                        column.column_path().string(),
                        number + 1
                    )));
                }
            }
            if rows > 0 {
                groups.push(Group {
                    number,
                    rows,
                    first_row,
                });
            }
            first_row += rows;
        }
        let names: Vec<String> = columns.iter().map(|column| column.path().string()).collect();
        let meanings = columns.iter().map(|column| Meaning::of(column)).collect();
        Ok(RowGroups {
            groups,
            places: (0..names.len()).map(Place::At).collect(),
            names,
            meanings,
            encrypted,
            metadata,
            footer_bytes: length + TAIL + 4,
        })
    }

    /// From now on columns go by their numbers in the first file, whose names are `names`.
    pub fn align(&mut self, names: &[String]) {
        if self.names == names {
            return;
        }
        let mut known: FxHashMap<&str, Place> = FxHashMap::default();
        for (number, name) in self.names.iter().enumerate() {
            let place = known.entry(name).or_insert(Place::At(number));
            if *place != Place::At(number) {
                *place = Place::Twice;
            }
        }
        let place = |name: &String| known.get(&name[..]).copied().unwrap_or(Place::Nowhere);
        self.places = names.iter().map(place).collect();
    }

    /// The number of a picked column in this file, after `check`.
    fn number(&self, pick: &Pick) -> usize {
        match self.places[field(pick)] {
            Place::At(number) => number,
            Place::Nowhere | Place::Twice => unreachable!("files without a picked column are refused"),
        }
    }

    /// Numbers of the columns that are no values.
    pub fn refused(&self) -> Vec<usize> {
        let meanings = self.meanings.iter().enumerate();
        let refused = meanings.filter(|(_, meaning)| matches!(meaning, Meaning::Refused(_)));
        refused.map(|(number, _)| number).collect()
    }

    /// Whether a picked column holds floats of 32 bits.
    pub fn is_single(&self, pick: &Pick) -> bool {
        self.meanings[self.number(pick)] == Meaning::Single
    }

    /// Rows of all row groups.
    pub fn all_rows(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }

    pub fn count(&self) -> u64 {
        self.groups.len() as u64
    }

    pub fn rows(&self, partition: u64) -> u64 {
        self.groups[partition as usize].rows
    }

    /// Where the picked columns of a row group lie: place and length.
    pub fn extents(&self, partition: u64, picks: &[Pick]) -> Vec<(u64, u64)> {
        let group = self.metadata.row_group(self.groups[partition as usize].number);
        picks
            .iter()
            .filter_map(|pick| extent(group.column(self.number(pick))))
            .collect()
    }

    /// The most bytes of picked columns in a row group.
    pub fn largest(&self, picks: &[Pick]) -> u64 {
        let bytes = |partition| self.extents(partition, picks).iter().map(|extent| extent.1).sum();
        (0..self.count()).map(bytes).max().unwrap_or(0)
    }

    /// Refuses columns that are no values, or not as in the `first` file.
    pub fn check(&self, path: &Path, picks: &[Pick], first: (&Path, &RowGroups)) -> Result<()> {
        for pick in picks {
            let name = &first.1.names[field(pick)];
            let number = match self.places[field(pick)] {
                Place::At(number) => number,
                Place::Nowhere => {
                    return Err(Error::input(format!(
                        "{}: no column `{name}`, expected one as in {}",
                        path.display(),
                        first.0.display()
                    )));
                }
                Place::Twice => {
                    return Err(Error::input(format!(
                        "{}: two columns `{name}`, expected one as in {}",
                        path.display(),
                        first.0.display()
                    )));
                }
            };
            let (own, theirs) = (self.meanings[number], first.1.meanings[field(pick)]);
            let is_empty = own == Meaning::Nothing || theirs == Meaning::Nothing;
            let (own, theirs) = (own.name(), theirs.name());
            if own != theirs && !is_empty {
                return Err(Error::input(format!(
                    "{}: column `{name}` is {own}, expected {theirs} as in {}",
                    path.display(),
                    first.0.display()
                )));
            }
            if self.encrypted.contains(&number) {
                return Err(Error::input(format!(
                    "{}: column `{name}` is encrypted, expected one without encryption",
                    path.display()
                )));
            }
            if let Meaning::Refused(what) = self.meanings[number] {
                return Err(Error::input(format!(
                    "{}: column `{name}` is {what}, expected numbers, texts, truths, dates or times",
                    path.display()
                )));
            }
            for group in &self.groups {
                let codec = self.metadata.row_group(group.number).column(number).compression();
                let refused = match codec {
                    Compression::BROTLI(_) => Some("Brotli"),
                    Compression::LZO => Some("LZO"),
                    _ => None,
                };
                if let Some(codec) = refused {
                    return Err(Error::input(format!(
                        "{}: column `{name}` is compressed with {codec}, expected zstd, snappy, gzip, lz4 or nothing",
                        path.display()
                    )));
                }
            }
        }
        Ok(())
    }

    /// Calls `each` with the picked values of all rows of a row group, whose columns stand one behind the other in `columns`. Errors come with the row's number in the file,
    /// from 1 on.
    pub fn each_row(
        &self,
        partition: u64,
        picks: &[Pick],
        columns: Vec<u8>,
        mut each: impl FnMut(u64, &mut Vec<Value<'_>>) -> std::result::Result<(), Wrong>,
    ) -> std::result::Result<(), (u64, Wrong)> {
        let Group {
            number,
            rows,
            first_row,
        } = self.groups[partition as usize];
        let metadata = self.metadata.row_group(number);
        let columns = bytes::Bytes::from(columns);
        let damaged = |row: u64, pick: &Pick, what: String| {
            let name = &self.names[self.number(pick)];
            (
                first_row + row + 1,
                Wrong(format!("column `{name}` is damaged: {what}")),
            )
        };
        let mut readers = Vec::new();
        let mut at = 0;
        for pick in picks {
            let chunk = metadata.column(self.number(pick));
            let (offset, length) = extent(chunk).unwrap_or_default();
            let bytes = columns.slice(at..at + length as usize);
            at += length as usize;
            let reader = undamaged(|| {
                let pages = SerializedPageReader::new(Arc::new(Chunk { offset, bytes }), chunk, rows as usize, None);
                let pages = Box::new(pages.map_err(|e| said(&e))?);
                Ok(column::open(
                    chunk.column_descr_ptr(),
                    self.meanings[self.number(pick)],
                    pages,
                ))
            });
            readers.push(reader.map_err(|what| damaged(0, pick, what))?);
        }
        let mut row = 0;
        while row < rows {
            let some = (rows - row).min(ROWS as u64);
            for (reader, pick) in readers.iter_mut().zip(picks) {
                undamaged(|| reader.fill(some as usize)).map_err(|what| damaged(row, pick, what))?;
            }
            let mut slots = Vec::new();
            for within in 0..some {
                slots.clear();
                slots.extend(readers.iter().map(|reader| reader.value(within as usize)));
                each(row + within, &mut slots).map_err(|wrong| (first_row + row + within + 1, wrong))?;
            }
            row += some;
        }
        Ok(())
    }
}

fn field(pick: &Pick) -> usize {
    match pick {
        Pick::Field(number) => *number,
        Pick::Line | Pick::Path(_) => unreachable!("columns are picked by number"),
    }
}

/// Place and length of a column chunk, if they are none below 0.
fn extent(column: &ColumnChunkMetaData) -> Option<(u64, u64)> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    Some((
        u64::try_from(start).ok()?,
        u64::try_from(column.compressed_size()).ok()?,
    ))
}

thread_local! {
    /// Whether a panic on this thread is damage, of which only our sentence is to be seen.
    static IS_DAMAGE: Cell<bool> = const { Cell::new(false) };
}

/// The library checks what it reads nearly everywhere: where it does not, what it finds is damage as well.
fn undamaged<T>(read: impl FnOnce() -> std::result::Result<T, String>) -> std::result::Result<T, String> {
    static QUIET: Once = Once::new();
    // The hook is the whole process's, so that it stays and asks each thread.
    QUIET.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_DAMAGE.get() {
                others(panic);
            }
        }));
    });
    IS_DAMAGE.set(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    IS_DAMAGE.set(false);
    read.unwrap_or_else(|_| Err("not as its header says".to_owned()))
}

/// What the library says, without the name of the kind of error.
fn said(error: &ParquetError) -> String {
    let text = error.to_string();
    let (_, said) = text.split_once(": ").unwrap_or(("", &text));
    said.lines().next().unwrap_or_default().to_owned()
}

/// A column chunk in memory, as a part of its file.
struct Chunk {
    offset: u64,
    bytes: bytes::Bytes,
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = std::io::Cursor<bytes::Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        let within = start
            .checked_sub(self.offset)
            .filter(|&at| at <= self.bytes.len() as u64);
        let at = within.ok_or_else(|| ParquetError::EOF(format!("byte {start} is outside the column")))?;
        Ok(std::io::Cursor::new(self.bytes.slice(at as usize..)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<bytes::Bytes> {
        let within = start.checked_sub(self.offset).and_then(|at| usize::try_from(at).ok());
        let range = within.and_then(|at| Some(at..at.checked_add(length)?));
        let range = range.filter(|range| range.end <= self.bytes.len());
        let range = range.ok_or_else(|| ParquetError::EOF(format!("byte {start} is outside the column")))?;
        Ok(self.bytes.slice(range))
    }
}
