//! Files into a store.
//!
//! # Model
//! Files are read in the order in which they are named, a pattern's sorted, and their records appended. A header is left out. After files that make
//! `COMMIT_EVERY` bytes, and at the end, what was loaded is committed: files as a whole, so that a load that was ended can go on with the next file.
//!
//! What a sample could not read is refused here, with file and line: records of CSV and TSV have as many fields as there are names, of JSON lines each is an object, and of all files together some
//! record comes.
//!
//! # Errors
//! Files of different forms or fields; records that are none of their form; files without a record; a store of another form; a file that ends within quotes; what the disks refuse, with the number of files that are safe.

use std::io::Read;
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::manifest::{self, Placement};
use super::writer::LONGEST_RECORD;
use super::{Store, Writer};
use crate::asked_json;
use crate::expression::{Value, Wrong};
use crate::frames::read_error;
use crate::layout::{self, Cut, Piece};
use crate::record::{self, Form, Pick, Quotes};
use crate::stop::Stop;

const COMMIT_EVERY: u64 = 256 << 20;
const CHUNK: usize = 4 << 20;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// The store's folder.
    pub name: PathBuf,
    pub files: Vec<String>,
    #[serde(default)]
    pub disks: Vec<PathBuf>,
    #[serde(default)]
    pub partition: Option<String>,
    #[serde(default)]
    pub placement: Option<Placement>,
    #[serde(default)]
    pub format: Option<String>,
    #[serde(default)]
    pub delimiter: Option<String>,
    #[serde(default = "yes")]
    pub header: bool,
    #[serde(default)]
    pub no_quoted_newlines: bool,
    #[serde(default)]
    pub append: bool,
}

fn yes() -> bool {
    true
}

impl LoadSpec {
    pub fn parse(json: &str) -> Result<LoadSpec> {
        asked_json::read("ldd load", json)
    }

    fn refuse_changes(&self) -> Result<()> {
        let given = [
            ("disk", !self.disks.is_empty()),
            ("partition", self.partition.is_some()),
            ("placement", self.placement.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(Error::input(format!(
                "--{name}: expected none with --append, as {} has its own",
                self.name.display()
            ))),
            None => Ok(()),
        }
    }
}

/// A new store, without files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateSpec {
    pub name: PathBuf,
    #[serde(default)]
    pub disks: Vec<PathBuf>,
    #[serde(default)]
    pub partition: Option<String>,
    #[serde(default)]
    pub placement: Option<Placement>,
    pub format: String,
    #[serde(default)]
    pub columns: Vec<String>,
    /// Whether each record is a key and a value.
    #[serde(default)]
    pub pairs: bool,
}

impl CreateSpec {
    pub fn parse(json: &str) -> Result<CreateSpec> {
        asked_json::read("ldd", json)
    }

    pub fn create(&self) -> Result<Writer> {
        let form = Form::parse(&self.format, None)?;
        if form == Form::Parquet {
            return Err(Error::input(
                "format parquet: expected text, csv, tsv or json, as an LDD consists of records",
            ));
        }
        if matches!(form, Form::Csv { .. }) == self.columns.is_empty() {
            return Err(Error::input(format!(
                "{}: format {} with {} columns, expected columns for CSV and TSV only",
                self.name.display(),
                self.format,
                self.columns.len()
            )));
        }
        once(&self.name.display().to_string(), &self.columns)?;
        let partition = partition_bytes(self.partition.as_deref())?;
        let mut writer = Writer::create(&self.name, &self.disks, &form, &self.columns, partition)?;
        writer.manifest.placement = self.placement.unwrap_or_default();
        writer.manifest.pairs = self.pairs;
        writer.commit()?;
        Ok(writer)
    }
}

fn partition_bytes(text: Option<&str>) -> Result<u64> {
    layout::partition_option(text.unwrap_or("64KiB"))
}

/// Loads, and says what there is then. `go_on` is called now and then, and may refuse.
pub fn load(spec: &LoadSpec, go_on: &mut dyn FnMut() -> Result<()>) -> Result<Json> {
    let is_there = spec.name.join(manifest::NAME).exists();
    if is_there && spec.append {
        spec.refuse_changes()?;
    } else if is_there {
        return Err(Error::input(format!(
            "{}: an LDD, expected a new name, or --append",
            spec.name.display()
        )));
    }
    let (form, columns, files) = opened(spec)?;
    let partition = partition_bytes(spec.partition.as_deref())?;
    let (mut writer, notes) = if is_there {
        let (writer, notes) = Writer::append(&spec.name)?;
        let (known, theirs) = (writer.manifest.form()?, &writer.manifest.columns);
        if known != form || *theirs != columns {
            return Err(Error::input(format!(
                "{}: {} with fields {}, expected {} with those of {} ({})",
                spec.files.join(" "),
                form.name(),
                columns.join(", "),
                known.name(),
                spec.name.display(),
                theirs.join(", ")
            )));
        }
        (writer, notes)
    } else {
        let mut writer = Writer::create(&spec.name, &spec.disks, &form, &columns, partition)?;
        writer.manifest.placement = spec.placement.unwrap_or_default();
        (writer, Vec::new())
    };
    let (count, already) = (files.len() as u64, writer.manifest.files);
    let loaded = append(&mut writer, &form, spec.no_quoted_newlines, &files, go_on);
    match loaded {
        Err(error) if !is_there && manifest::Manifest::read(&spec.name)?.partitions() == 0 => {
            writer.remove();
            Err(error)
        }
        Ok(()) => {
            drop(writer);
            let mut info = Store::open(&spec.name)?.info()?;
            info["notes"] = json!(notes);
            Ok(info)
        }
        Err(error) => {
            drop(writer);
            let safe = manifest::Manifest::read(&spec.name)?.files - already;
            let name = spec.name.display();
            let loaded = format!("{name}: the first {safe} of {count} files are loaded");
            Err(match error {
                Error::Io(sentence) => Error::Io(format!("{sentence}; {loaded}")),
                Error::Input(sentence) if safe > 0 => Error::input(format!("{sentence}; {loaded}")),
                error => error,
            })
        }
    }
}

/// Refuses two columns of one name, of which records would show one.
fn once(what: &str, columns: &[String]) -> Result<()> {
    let twice = columns.iter().enumerate().find_map(|(at, name)| {
        let first = columns[..at].iter().position(|known| known == name)?;
        Some((name, first, at))
    });
    match twice {
        None => Ok(()),
        Some((name, first, second)) => Err(Error::input(format!(
            "{what}: columns {} and {} are called `{name}`, expected names of their own",
            first + 1,
            second + 1
        ))),
    }
}

/// The files in order, their form and their fields.
fn opened(spec: &LoadSpec) -> Result<(Form, Vec<String>, Vec<Piece>)> {
    let form = match (&spec.format, &spec.delimiter) {
        (Some(name), delimiter) => Some(Form::parse(name, delimiter.as_deref())?),
        (None, _) => None,
    };
    let cut = Cut {
        disks: Vec::new(),
        partition_bytes: 64 << 10,
        form,
        delimiter: spec.delimiter.clone(),
        header: spec.header,
        // Every file is read from its beginning on, so that no index is needed.
        no_quoted_newlines: true,
        direct: false,
        stop: Stop::default(),
    };
    let mut found: Option<(Form, Vec<String>, String)> = None;
    let mut files = Vec::new();
    for pattern in &spec.files {
        let dataset = layout::open(pattern, &cut)?.of_records(pattern)?;
        match &found {
            Some((form, columns, first)) if *form != dataset.form || *columns != dataset.columns => {
                return Err(Error::input(format!(
                    "{pattern}: {} with fields {}, expected the same as {first}: {} with {}",
                    dataset.form.name(),
                    dataset.columns.join(", "),
                    form.name(),
                    columns.join(", ")
                )));
            }
            Some(_) => {}
            None => {
                once(pattern, &dataset.columns)?;
                found = Some((dataset.form.clone(), dataset.columns.clone(), pattern.clone()));
            }
        }
        files.extend(dataset.disks.into_iter().flat_map(|disk| disk.files));
    }
    match found {
        Some((form, columns, _)) => Ok((form, columns, files)),
        None => Err(Error::input("ldd load: expected files")),
    }
}

fn append(
    writer: &mut Writer,
    form: &Form,
    no_quoted_newlines: bool,
    files: &[Piece],
    go_on: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    let (mut since, mut records) = (0, 0);
    for (at, piece) in files.iter().enumerate() {
        records += records_of(piece, form, no_quoted_newlines, writer, go_on)?;
        writer.manifest.files += 1;
        since += piece.bytes;
        if records == 0 && at + 1 == files.len() {
            let (path, all) = (piece.path.display(), files.len());
            return Err(Error::input(match all {
                1 => format!("{path}: no record in it, expected some behind the header"),
                _ => format!("{path}: no record in it nor in the {} files before it", all - 1),
            }));
        }
        if since >= COMMIT_EVERY || at + 1 == files.len() {
            writer.commit()?;
            since = 0;
        }
    }
    Ok(())
}

/// Appends the records of a file; how many there are.
fn records_of(
    piece: &Piece,
    form: &Form,
    no_quoted_newlines: bool,
    writer: &mut Writer,
    go_on: &mut dyn FnMut() -> Result<()>,
) -> Result<u64> {
    let path: &Path = &piece.path;
    let columns = writer.manifest.columns.clone();
    let mut count = 0;
    let mut file = piece.text();
    let mut buffer = vec![0; CHUNK];
    // Bytes of the buffer that are read, and the place of its first in the file.
    let (mut filled, mut offset) = (0, 0u64);
    let mut skip = piece.header;
    loop {
        go_on()?;
        let read = file.read(&mut buffer[filled..]).map_err(|e| read_error(path, &e))?;
        filled += read;
        let is_last = read == 0;
        let found = ends(form, no_quoted_newlines, &buffer[..filled]);
        writer.expect(found.quoted, no_quoted_newlines)?;
        let end = match found.open {
            Some(opened) if is_last => {
                return Err(Error::input(format!(
                    "{}: the file ends within quotes that opened at byte {}; expected a closing quote, or --no-quoted-newlines where quotes mean nothing",
                    path.display(),
                    offset + opened as u64
                )));
            }
            None if is_last => filled,
            _ => found.end,
        };
        let header = skip.min(end as u64) as usize;
        skip -= header as u64;
        if matches!(form, Form::Csv { .. }) && has_lone_return(&buffer[..header]) {
            return Err(Error::input(format!(
                "{}, line 1: a carriage return within the header, expected lines that end with a line feed",
                path.display()
            )));
        }
        let mut refused = Ok(());
        let read = record::records(form, found.quoted, &buffer[header..end], |_, record| {
            readable(form, &columns, record)?;
            count += 1;
            if refused.is_ok() {
                refused = writer.push(record);
            }
            Ok(())
        });
        refused?;
        if let Err((at, wrong)) = read {
            let line = line_of(piece, offset + (header + at) as u64)?;
            return Err(Error::input(format!("{}, line {line}: {}", path.display(), wrong.0)));
        }
        buffer.copy_within(end..filled, 0);
        filled -= end;
        offset += end as u64;
        if is_last {
            return Ok(count);
        }
        if filled == buffer.len() {
            if filled >= LONGEST_RECORD {
                return Err(Error::input(format!(
                    "{}: no record ends within {LONGEST_RECORD} bytes behind byte {offset}, expected shorter records",
                    path.display()
                )));
            }
            buffer.resize(2 * filled, 0);
        }
    }
}

/// Whether a sample will be able to read all of a record.
fn readable(form: &Form, columns: &[String], record: &[u8]) -> std::result::Result<(), Wrong> {
    match (form, columns.len().checked_sub(1)) {
        // The last field says that there are all in front of it.
        (Form::Csv { .. }, Some(last)) => {
            record::fields(form, &[Pick::Field(last)], columns, record, &mut [Value::Null])
        }
        _ => record::fields(form, &[], columns, record, &mut []),
    }
}

/// Whether a carriage return stands in a line: one in front of its end belongs to that.
fn has_lone_return(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    memchr::memchr(b'\r', line.strip_suffix(b"\r").unwrap_or(line)).is_some()
}

/// The number of the line that holds a byte, from 1 on.
fn line_of(piece: &Piece, byte: u64) -> Result<u64> {
    let mut file = piece.text().take(byte);
    let (mut line, mut buffer) = (1, vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(|e| read_error(&piece.path, &e))? {
            0 => return Ok(line),
            read => line += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64,
        }
    }
}

/// What a piece of a file tells of its records.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ends {
    /// Behind the last record that ends in it.
    end: usize,
    /// Where quotes have opened that do not close in it.
    open: Option<usize>,
    /// Whether a line end stands within quotes.
    quoted: bool,
}

fn ends(form: &Form, no_quoted_newlines: bool, bytes: &[u8]) -> Ends {
    let (
        Form::Csv {
            delimiter,
            quotes: true,
        },
        false,
    ) = (form, no_quoted_newlines)
    else {
        return Ends {
            end: memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1),
            ..Ends::default()
        };
    };
    let (mut found, mut opened) = (Ends::default(), 0);
    let mut quotes = Quotes::new(*delimiter);
    for at in memchr::memchr2_iter(b'"', b'\n', bytes) {
        if bytes[at] == b'"' {
            if quotes.meets(at as u64, at.checked_sub(1).map(|before| bytes[before])) {
                opened = at;
            }
        } else if quotes.within {
            found.quoted = true;
        } else {
            found.end = at + 1;
        }
    }
    found.open = quotes.within.then_some(opened);
    found
}
