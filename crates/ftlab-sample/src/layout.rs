//! Files cut into partitions, disk by disk (a dataset in place, as an LDD of the chapter is after loading).
//!
//! # Model
//! A partition is a range of a file of at most `partition` bytes, all of a file of one size (of Parquet a row group); a record belongs to the partition that holds its first byte, also where it ends later.
//! Partitions of a disk are numbered through its files in order of their names; a file with several names (links) is there once. A disk is what
//! `--disk` names, else the file system on which a file lies.
//!
//! # Not modelled
//! Where blocks of a file lie on a device, and devices behind one file system (RAID, LVM): they are one disk here, unless `--disk` says otherwise.
//!
//! # Errors
//! No such file, nothing in any, compressed files that are not made of frames (`frames`), headers that differ; see `row_groups`.
//!
//! # Cost
//! A few dozen bytes a file and none a partition; 8 bytes a partition in files whose quoted fields hold line ends (`index`).
//!
//! # Source
//! Zhou, PhD thesis, University of Central Florida 2018, section 1.3.2.

mod names;
mod refusals;

pub use names::matching;
use names::{by_name, is_absent, once, without_indices};
use refusals::{refuse_nested, refuse_old_ends, refuse_packed, refuse_wide};

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ftlab_core::{Error, Result, units};
use rustix::fs::Advice;

use crate::frames::{Frames, Stream, read_error};
use crate::index::{Borders, Index};
use crate::read;
use crate::record::{Form, Pick, Quotes};
use crate::row_groups::RowGroups;
use crate::stop::Stop;
use crate::store::Log;

/// Sizes that partitions may be asked to have.
pub const PARTITIONS: std::ops::RangeInclusive<u64> = 2048..=1 << 30;
/// The byte order mark of UTF-8, which is no text.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// Of a header, at most so much is read.
const LONGEST_HEADER: usize = 1 << 20;

#[derive(Debug)]
pub struct Dataset {
    pub form: Form,
    pub partition_bytes: u64,
    pub disks: Vec<Disk>,
    /// Names of the fields, of forms that have a fixed number of them.
    pub columns: Vec<String>,
    /// Bytes read to make indices.
    pub indexed_bytes: u64,
    /// Those of them that were read to find frames.
    pub walked_bytes: u64,
    /// Bytes of footers that were read.
    pub footer_bytes: u64,
    /// Files that cannot be read past the system's cache, as was asked for.
    pub cached_files: usize,
}

#[derive(Debug)]
pub struct Disk {
    pub name: String,
    pub files: Vec<Piece>,
    pub partitions: u64,
    pub bytes: u64,
}

/// A file, and the number of its first partition on its disk.
#[derive(Debug)]
pub struct Piece {
    pub path: Arc<Path>,
    pub file: File,
    /// The same file, read past the system's cache.
    pub direct: Option<File>,
    pub bytes: u64,
    /// Bytes of the header, which is no record.
    pub header: u64,
    pub first: u64,
    /// At most as many as were asked for, so that the last is as large as the others: a short one would make counts uncertain.
    pub partition_bytes: u64,
    pub index: Option<Arc<Index>>,
    /// Of compressed text: its partitions are frames, and places of records, of the header too, are those in the text.
    pub frames: Option<Frames>,
    /// Of Parquet.
    pub row_groups: Option<RowGroups>,
    /// As it was found; none of a stored LDD, whose partitions have checks of their own.
    pub opened: Option<Stamp>,
    /// Of a stored LDD: its partitions are those of the log.
    pub log: Option<Arc<Log>>,
}

impl Piece {
    /// Whether line ends may stand within quotes.
    pub fn is_quoted(&self) -> bool {
        self.index.is_some() || self.log.as_ref().is_some_and(|log| log.quoted)
    }

    /// Bytes of its text, unpacked.
    pub fn text_bytes(&self) -> u64 {
        self.frames.as_ref().map_or(self.bytes, Frames::text_bytes)
    }

    /// Its text from the beginning on, unpacked.
    pub fn text(&self) -> Box<dyn Read + '_> {
        // What follows is read ahead, if the system will.
        let _ = advise(&self.path, &self.file, Advice::Sequential);
        text(&self.file, self.frames.as_ref())
    }

    /// What the place of a byte is a place in, for sentences.
    pub fn of_what(&self) -> &'static str {
        self.frames.as_ref().map_or("", |_| " of the unpacked text")
    }

    fn partitions(&self) -> u64 {
        match (&self.row_groups, &self.frames) {
            (Some(groups), _) => groups.count(),
            (_, Some(frames)) => frames.partitions(),
            _ => self.bytes.div_ceil(self.partition_bytes),
        }
    }
}

/// What tells a file that has changed from one that has not; within a tick of the system's clock (some milliseconds) it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(meta: &fs::Metadata) -> Stamp {
        Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }
}

/// A partition: a range of a file.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub piece: &'a Piece,
    pub start: u64,
    pub end: u64,
    /// Number within the file.
    pub number: u64,
}

impl Dataset {
    /// The same if its partitions are records one behind the other, as an LDD needs them.
    pub fn of_records(self, files: &str) -> Result<Dataset> {
        match self.form {
            Form::Parquet => Err(Error::input(format!(
                "{files}: Parquet, expected text, CSV, TSV or JSON lines, as an LDD consists of records; `ftlab sample` reads Parquet in place"
            ))),
            _ => Ok(self),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.disks.iter().map(|disk| disk.bytes).sum()
    }

    pub fn partitions(&self) -> u64 {
        self.disks.iter().map(|disk| disk.partitions).sum()
    }

    /// The most bytes that a partition takes in memory.
    pub fn largest(&self, picks: &[Pick]) -> u64 {
        let files = self.disks.iter().flat_map(|disk| &disk.files);
        let of_file = |piece: &Piece| match (&piece.row_groups, &piece.frames) {
            (Some(groups), _) => groups.largest(picks),
            (_, Some(frames)) => frames.largest(),
            _ => piece.partition_bytes,
        };
        files.map(of_file).max().unwrap_or(self.partition_bytes)
    }

    /// Refuses fields that are no values.
    pub fn check(&self, picks: &[Pick]) -> Result<()> {
        let files = self.disks.iter().flat_map(|disk| &disk.files);
        let mut files = files.filter_map(|piece| Some((&*piece.path, piece.row_groups.as_ref()?)));
        let Some(first) = files.clone().next() else {
            return Ok(());
        };
        files.try_for_each(|(path, groups)| groups.check(path, picks, first))
    }

    /// Numbers of the fields that `check` would refuse in the first file.
    pub fn refused(&self) -> Vec<usize> {
        let mut files = self.disks.iter().flat_map(|disk| &disk.files);
        let first = files.find_map(|piece| piece.row_groups.as_ref());
        first.map(RowGroups::refused).unwrap_or_default()
    }

    /// Whether a picked field holds floats of 32 bits in all files.
    pub fn is_single(&self, pick: &Pick) -> bool {
        let mut files = self.disks.iter().flat_map(|disk| &disk.files);
        self.form == Form::Parquet
            && files.all(|piece| piece.row_groups.as_ref().is_some_and(|groups| groups.is_single(pick)))
    }

    /// Rows of each disk, of Parquet, whose footers tell.
    pub fn rows(&self) -> Option<Vec<u64>> {
        let disks = (self.form == Form::Parquet).then_some(self.disks.iter())?;
        let rows = |disk: &Disk| {
            let groups = disk.files.iter().filter_map(|piece| piece.row_groups.as_ref());
            groups.map(RowGroups::all_rows).sum()
        };
        Some(disks.map(rows).collect())
    }

    /// Refuses files that are no longer what they were when they were opened. How many have grown at their end, which is not read: that is how logs are.
    pub fn check_unchanged(&self) -> Result<u64> {
        let mut grown = 0;
        for piece in self.disks.iter().flat_map(|disk| &disk.files) {
            let Some(opened) = piece.opened else { continue };
            let refuse = |what: &str| {
                Err(Error::input(format!(
                    "{}: {what} while it was read, expected a file that does not change",
                    piece.path.display()
                )))
            };
            let named = match fs::metadata(&piece.path) {
                Ok(meta) => Stamp::of(&meta),
                Err(e) if is_absent(&e) => return refuse("was taken away"),
                Err(e) => return Err(Error::io(&piece.path, &e)),
            };
            if (named.device, named.inode) != (opened.device, opened.inode) {
                return refuse("another file took its name");
            }
            let now = Stamp::of(&piece.file.metadata().map_err(|e| Error::io(&piece.path, &e))?);
            if now == opened {
                continue;
            }
            if now.bytes < opened.bytes {
                return refuse("was cut");
            }
            if now.bytes == opened.bytes || piece.row_groups.is_some() {
                return refuse("was written to");
            }
            grown += 1;
        }
        Ok(grown)
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let files = self.disks.iter().flat_map(|disk| &disk.files);
        files.map(|piece| piece.path.as_ref())
    }

    pub fn place(&self, disk: usize, partition: u64) -> Place<'_> {
        let files = &self.disks[disk].files;
        let piece = &files[files.partition_point(|file| file.first <= partition) - 1];
        let number = partition - piece.first;
        if let Some(log) = &piece.log {
            let (start, end) = log.ends(number);
            return Place {
                piece,
                start,
                end,
                number,
            };
        }
        if let Some(frames) = &piece.frames {
            let std::ops::Range { start, end } = frames.place(number);
            return Place {
                piece,
                start,
                end,
                number,
            };
        }
        let start = number * piece.partition_bytes;
        Place {
            piece,
            start,
            end: (start + piece.partition_bytes).min(piece.bytes),
            number,
        }
    }
}

/// How files are found and cut.
#[derive(Clone, Debug)]
pub struct Cut {
    /// Folders that are disks; without any, the file system tells.
    pub disks: Vec<String>,
    pub partition_bytes: u64,
    /// As given; else by the ends of names.
    pub form: Option<Form>,
    /// Between fields, where names tell the form.
    pub delimiter: Option<String>,
    pub header: bool,
    /// The user says that no quoted field holds a line end.
    pub no_quoted_newlines: bool,
    /// Reads go past the system's cache where it can be.
    pub direct: bool,
    pub stop: Stop,
}

/// Finds the files of `pattern`, and cuts them.
pub fn open(pattern: &str, cut: &Cut) -> Result<Dataset> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    if cut.disks.is_empty() {
        for path in matching(pattern)? {
            let device = fs::metadata(&path).map_err(|e| Error::io(&path, &e))?.dev();
            found.push((format!("device {}:{}", device >> 8 & 0xfff, device & 0xff), path));
        }
    } else {
        for disk in &cut.disks {
            if !Path::new(disk).is_dir() {
                return Err(Error::input(format!("--disk {disk}: expected a folder")));
            }
            let within = Path::new(disk).join(pattern);
            if Path::new(pattern).is_absolute() {
                return Err(Error::input(format!(
                    "{pattern}: expected a path within each --disk, not one from the root"
                )));
            }
            let files = matching(&within.to_string_lossy())?;
            found.extend(files.into_iter().map(|path| (disk.clone(), path)));
        }
    }
    if found.is_empty() {
        return Err(Error::input(format!("{pattern}: no such file")));
    }
    let found = without_indices(once(found)?);
    let form = match (&cut.form, &cut.delimiter) {
        (Some(form), _) => form.clone(),
        (None, None) => by_name(&found)?,
        // What is no JSON or Parquet by its name is CSV by its delimiter.
        (None, Some(delimiter)) => {
            for (_, path) in &found {
                let is = match Form::of_name(&path.to_string_lossy()) {
                    Form::Json => "JSON lines",
                    Form::Parquet => "Parquet",
                    Form::Text | Form::Csv { .. } => continue,
                };
                return Err(Error::input(format!(
                    "--delimiter {delimiter}: {} is {is} by its name, expected none, or --format csv",
                    path.display()
                )));
            }
            Form::parse("csv", Some(delimiter))?
        }
    };
    let mut dataset = Dataset {
        form,
        partition_bytes: cut.partition_bytes,
        disks: cut.disks.iter().map(|name| Disk::empty(name)).collect(),
        columns: Vec::new(),
        indexed_bytes: 0,
        walked_bytes: 0,
        footer_bytes: 0,
        cached_files: 0,
    };
    let mut columns: Option<Known> = None;
    for (disk, path) in found {
        cut.stop.check()?;
        let Some(piece) = piece(&path, cut, &mut dataset, &mut columns)? else {
            continue;
        };
        let at = dataset
            .disks
            .iter()
            .position(|known| known.name == disk)
            .unwrap_or_else(|| {
                dataset.disks.push(Disk::empty(&disk));
                dataset.disks.len() - 1
            });
        dataset.disks[at].add(piece);
    }
    if dataset.partitions() == 0 {
        return Err(Error::input(format!("{pattern}: nothing in it, expected records")));
    }
    dataset.columns = columns.map(|known| known.names).unwrap_or_default();
    Ok(dataset)
}

impl Disk {
    fn empty(name: &str) -> Disk {
        Disk {
            name: name.to_owned(),
            files: Vec::new(),
            partitions: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, mut piece: Piece) {
        piece.first = self.partitions;
        self.partitions += piece.partitions();
        self.bytes += piece.bytes;
        self.files.push(piece);
    }
}

/// Opens a file; none if it is empty.
fn piece(path: &Path, cut: &Cut, dataset: &mut Dataset, columns: &mut Option<Known>) -> Result<Option<Piece>> {
    let io = |e: std::io::Error| Error::io(path, &e);
    // A pipe is not even opened: that would wait for whoever writes to it.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(Error::input(format!("{}: expected a file", path.display())));
    }
    let file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    if meta.len() == 0 {
        return Ok(None);
    }
    advise(path, &file, Advice::Random)?;
    let (mut frames, mut start) = (None, Vec::new());
    let row_groups = if dataset.form == Form::Parquet {
        let mut groups = RowGroups::open(path, &file, meta.len())?;
        dataset.footer_bytes += groups.footer_bytes;
        let first = columns.get_or_insert_with(|| Known {
            names: groups.names.clone(),
            path: path.to_owned(),
        });
        // Columns go by name, and only those that are asked for are compared.
        groups.align(&first.names);
        Some(groups)
    } else {
        let mut head = [0; 18];
        let count = head.len().min(meta.len() as usize);
        file.read_exact_at(&mut head[..count], 0).map_err(io)?;
        frames = Frames::open(path, &file, &meta, &head[..count], cut.partition_bytes, &cut.stop)?;
        match &frames {
            Some(frames) if frames.text_bytes() == 0 => return Ok(None),
            Some(frames) => {
                dataset.footer_bytes += frames.table_bytes;
                dataset.indexed_bytes += frames.walked_bytes;
                dataset.walked_bytes += frames.walked_bytes;
            }
            None => refuse_packed(path, &head[..count])?,
        }
        start = beginning(&mut text(&file, frames.as_ref()), &dataset.form, cut.no_quoted_newlines)
            .map_err(|e| read_error(path, &e))?;
        if frames.is_some() {
            refuse_nested(path, &start)?;
        }
        refuse_wide(path, &start)?;
        refuse_old_ends(path, &start)?;
        None
    };
    let partition_bytes = even(meta.len(), cut.partition_bytes);
    let mut header = if start.starts_with(MARK) { MARK.len() as u64 } else { 0 };
    if let Form::Csv { delimiter, quotes } = dataset.form {
        // Quotes that do not close are told where records are looked for.
        let end = first_end(&start, &dataset.form, cut.no_quoted_newlines);
        let end = end.or_else(|| memchr::memchr(b'\n', &start)).unwrap_or(start.len());
        let line = &start[..end];
        let fields = crate::record::header_fields(line, delimiter, quotes);
        let names: Vec<String> = if cut.header {
            header = (line.len() + 1) as u64;
            fields
        } else {
            (1..=fields.len()).map(|number| format!("c{number}")).collect()
        };
        Known::check(columns, path, names)?;
    }
    let index = if let (
        &Form::Csv {
            quotes: true,
            delimiter,
        },
        false,
    ) = (&dataset.form, cut.no_quoted_newlines)
    {
        advise(path, &file, Advice::Sequential)?;
        let borders = match &frames {
            Some(frames) => Borders::At(frames.starts()),
            None => Borders::Even {
                partition_bytes,
                bytes: meta.len(),
            },
        };
        let (index, is_read) = Index::of(
            path,
            &mut text(&file, frames.as_ref()),
            &meta,
            &borders,
            delimiter,
            &cut.stop,
        )?;
        dataset.indexed_bytes += if is_read { meta.len() } else { 0 };
        advise(path, &file, Advice::Random)?;
        index.map(Arc::new)
    } else {
        None
    };
    let direct = if cut.direct { read::past_cache(path) } else { None };
    dataset.cached_files += usize::from(cut.direct && direct.is_none());
    Ok(Some(Piece {
        path: path.into(),
        file,
        direct,
        bytes: meta.len(),
        header,
        first: 0,
        partition_bytes,
        index,
        frames,
        row_groups,
        opened: Some(Stamp::of(&meta)),
        log: None,
    }))
}

/// The text of a file from the beginning on, unpacked if it is made of frames.
fn text<'a>(file: &'a File, frames: Option<&'a Frames>) -> Box<dyn Read + 'a> {
    match frames {
        Some(frames) => Box::new(Stream::new(frames, file)),
        None => Box::new(From { file, at: 0 }),
    }
}

/// A file from a place on, whatever else reads it.
struct From<'a> {
    file: &'a File,
    at: u64,
}

impl Read for From<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read_at(to, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// The first bytes of a text, with all of its first record if that is not too long.
fn beginning(text: &mut dyn Read, form: &Form, no_quoted_newlines: bool) -> std::io::Result<Vec<u8>> {
    let mut found = Vec::new();
    let mut wanted = 4096;
    loop {
        let read = text.take((wanted - found.len()) as u64).read_to_end(&mut found)?;
        let is_whole = first_end(&found, form, no_quoted_newlines).is_some();
        if read == 0 || is_whole || wanted == LONGEST_HEADER {
            return Ok(found);
        }
        wanted = (wanted * 4).min(LONGEST_HEADER);
    }
}

/// Where the first record of a text ends: at a line end that is not within quotes.
fn first_end(text: &[u8], form: &Form, no_quoted_newlines: bool) -> Option<usize> {
    let (
        &Form::Csv {
            delimiter,
            quotes: true,
        },
        false,
    ) = (form, no_quoted_newlines)
    else {
        return memchr::memchr(b'\n', text);
    };
    let mark = if text.starts_with(MARK) { MARK.len() } else { 0 };
    let text = &text[mark..];
    let mut quotes = Quotes::new(delimiter);
    let mut ends = memchr::memchr2_iter(b'"', b'\n', text).filter(|&at| {
        if text[at] == b'"' {
            quotes.meets(at as u64, at.checked_sub(1).map(|before| text[before]));
        }
        text[at] == b'\n' && !quotes.within
    });
    ends.next().map(|at| mark + at)
}

/// A size of partitions as it is written.
pub fn partition_bytes(text: &str) -> Option<u64> {
    units::bytes(text).ok().filter(|bytes| PARTITIONS.contains(bytes))
}

/// The same as an option of the command.
pub fn partition_option(text: &str) -> Result<u64> {
    partition_bytes(text)
        .ok_or_else(|| Error::input(format!("--partition {text}: expected 2KiB to 1GiB, with the unit")))
}

/// Bytes of each of as few partitions of at most `most` as `bytes` need.
fn even(bytes: u64, most: u64) -> u64 {
    bytes.div_ceil(bytes.div_ceil(most).max(1)).max(1)
}

/// Without read-ahead a sample reads little more than it asks for.
fn advise(path: &Path, file: &File, advice: Advice) -> Result<()> {
    rustix::fs::fadvise(file, 0, None, advice).map_err(|e| Error::io(path, &e.into()))
}

/// Fields of the first file, which all others have as well.
struct Known {
    names: Vec<String>,
    path: PathBuf,
}

impl Known {
    fn check(known: &mut Option<Known>, path: &Path, names: Vec<String>) -> Result<()> {
        let Some(known) = known else {
            *known = Some(Known {
                names,
                path: path.to_owned(),
            });
            return Ok(());
        };
        if known.names != names {
            return Err(Error::input(format!(
                "{}: fields {}, expected those of {} ({})",
                path.display(),
                names.join(", "),
                known.path.display(),
                known.names.join(", ")
            )));
        }
        Ok(())
    }
}

/// Refuses an output that is one of the files that are read.
pub fn refuse_read<'a>(output: &Path, mut read: impl Iterator<Item = &'a Path>) -> Result<()> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    let Some(there) = identity(output) else { return Ok(()) };
    match read.find(|path| identity(path) == Some(there)) {
        Some(path) => Err(Error::input(format!(
            "output {}: is {}, which the query reads; expected another file",
            output.display(),
            path.display()
        ))),
        None => Ok(()),
    }
}
