//! Conversion: any source into any form that can be written, to a file, a file per volume, or standard output.
//!
//! ```no_run
//! # fn main() -> ftlab_core::Result<()> {
//! use ftlab_trace::{ConvertOptions, ReadOptions, Volumes, convert, open};
//! let options = ReadOptions { volumes: Volumes::Merge, ..ReadOptions::default() };
//! let mut trace = open(&["hm_0.csv.gz".into()], &options)?;
//! let report = convert(&mut trace, "hm_0.mqsim.zst".as_ref(), &ConvertOptions::default(), &mut |_| true)?;
//! for loss in &report.lost {
//!     println!("{loss}");
//! }
//! # Ok(()) }
//! ```
//!
//! # Rules
//! * The form is the one asked for, or the one that the output's name ends in; `.gz`, `.zst`, `.xz` and `.bz2` behind that
//!   compress.
//! * A file appears under its name only when it is complete: until then it is `NAME.part`, which goes away when writing
//!   fails or is stopped. An existing file is replaced only with `force`. Devices and pipes are written as they are.
//! * `{volume}` in the name gives each volume a file of its own, at most [`MOST_FILES`]. Times keep their common start.
//! * What a form without volumes gets should have been opened with `Volumes::SideBySide`, so that volumes do not overlap;
//!   what any other form gets, with `Volumes::Merge`.
//!
//! Memory is constant, but for the buffers of each open file.

mod output;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ftlab_core::{Batch, Error, Result, Source};
use rustc_hash::FxHashSet;
use serde::Serialize;

use self::output::Output;
use crate::packing::Packing;
use crate::rows;
use crate::write::{self, Format, Loss, Names, Options, Writer};

/// Most files that one conversion writes.
pub const MOST_FILES: usize = 1000;
/// Wall time between two reports of progress.
const PERIOD: Duration = Duration::from_millis(200);
/// In an output's name: stands for the volume.
const VOLUME: &str = "{volume}";

/// What to write and how.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// Name of the form; `None` goes by the output's name.
    pub format: Option<String>,
    /// Options of the writer.
    pub writer: Options,
    /// Replace files that exist.
    pub force: bool,
    /// The volumes lie in one address range already: a form that would lay them out again gets one volume instead.
    pub joined: bool,
}

impl ConvertOptions {
    /// The form in which `output` would be written.
    pub fn form(&self, output: &Path) -> Result<&'static Format> {
        Target::new(output, self).map(|target| target.format)
    }
}

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConvertReport {
    /// Name of the form.
    pub format: String,
    pub files: Vec<ConvertedFile>,
    /// Requests that the source gave.
    pub read: u64,
    /// Requests in the files; parts of a request that was cut count each.
    pub requests: u64,
    /// Bytes in the files, compressed where they are.
    pub bytes: u64,
    /// What the form could not hold.
    pub lost: Vec<Loss>,
}

/// One file written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConvertedFile {
    /// Its name; `-` is standard output.
    pub path: PathBuf,
    /// The volume in it, where each has its own file.
    pub volume: Option<String>,
    pub requests: u64,
    pub bytes: u64,
}

/// How far a conversion is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConvertProgress {
    /// Requests read so far.
    pub requests: u64,
    /// Share of the work, 0 to 1, where the source knows what is still to come.
    pub share: Option<f64>,
    pub wall_s: f64,
}

/// Writes all of `source` to `output` (`-` is standard output).
///
/// `observer` is called about five times a second; when it answers `false` the conversion stops with
/// [`Error::Interrupted`] and leaves nothing behind. The same holds for any other error.
pub fn convert(
    source: &mut (dyn Source + '_),
    output: &Path,
    options: &ConvertOptions,
    observer: &mut dyn FnMut(&ConvertProgress) -> bool,
) -> Result<ConvertReport> {
    let target = Target::new(output, options)?;
    if target.per_volume() {
        split(source, &target, observer)
    } else {
        whole(source, &target, observer)
    }
}

fn whole(
    source: &mut (dyn Source + '_),
    target: &Target<'_>,
    observer: &mut dyn FnMut(&ConvertProgress) -> bool,
) -> Result<ConvertReport> {
    let output = Output::create(target.path, target)?;
    let mut writer = Writer::new(target.format.name, &target.options.writer, output)?;
    let mut pass = Pass::new(source, observer);
    let mut volumes = 1;
    while pass.next()? {
        if target.options.joined {
            volumes = volumes.max(pass.batch.volume.iter().map(|&v| u64::from(v) + 1).max().unwrap_or(1));
            pass.batch.volume.fill(0);
            pass.names.volumes.truncate(if volumes > 1 { 0 } else { 1 });
        }
        writer.names(&pass.names);
        writer.write(&pass.batch)?;
    }
    let read = pass.read;
    let written = writer.finish()?;
    let mut lost = written.lost.clone();
    if volumes > 1 {
        lost.push(Loss {
            what: "names of volumes".to_owned(),
            count: volumes,
            detail: "they lie side by side and are written as one; `{volume}` in the output's name keeps them"
                .to_owned(),
        });
    }
    target.check(read, written.requests, &lost)?;
    let file = Output::complete(written, target, None)?;
    Ok(ConvertReport {
        format: target.format.name.to_owned(),
        read,
        requests: file.requests,
        bytes: file.bytes,
        files: vec![file],
        lost,
    })
}

/// One volume's file.
struct Part {
    /// Its one volume, and the labels so far.
    names: Names,
    writer: Writer<Output>,
    batch: Batch,
}

fn split(
    source: &mut (dyn Source + '_),
    target: &Target<'_>,
    observer: &mut dyn FnMut(&ConvertProgress) -> bool,
) -> Result<ConvertReport> {
    // By number of the volume; a number that has not appeared has no file.
    let mut parts: Vec<Option<Part>> = Vec::new();
    let mut taken = FxHashSet::default();
    let mut pass = Pass::new(source, observer);
    while pass.next()? {
        for i in 0..pass.batch.len() {
            let volume = usize::from(pass.batch.volume[i]);
            if parts.len() <= volume {
                parts.resize_with(volume + 1, || None);
            }
            let part = match &mut parts[volume] {
                Some(part) => part,
                empty => {
                    if taken.len() == MOST_FILES {
                        return Err(Error::input(format!(
                            "the trace has more than {MOST_FILES} volumes: expected at most so many for a file each"
                        )));
                    }
                    let name = pass.names.volumes.get(volume).cloned();
                    empty.insert(target.part(name.unwrap_or_else(|| volume.to_string()), &mut taken)?)
                }
            };
            rows::append(&mut part.batch, &pass.batch, i);
        }
        for part in parts.iter_mut().flatten().filter(|part| !part.batch.is_empty()) {
            part.batch.volume.fill(0);
            let known = part.names.labels.len();
            let new = pass.names.labels.get(known..).unwrap_or_default();
            part.names.labels.extend_from_slice(new);
            part.writer.names(&part.names);
            part.writer.write(&part.batch)?;
            part.batch.clear();
        }
    }
    let mut report = ConvertReport {
        format: target.format.name.to_owned(),
        read: pass.read,
        ..ConvertReport::default()
    };
    let mut complete = Vec::new();
    for mut part in parts.into_iter().flatten() {
        let written = part.writer.finish()?;
        add_losses(&mut report.lost, &written.lost);
        report.requests += written.requests;
        complete.push((written, part.names.volumes.pop()));
    }
    target.check(report.read, report.requests, &report.lost)?;
    // Names are given only when every file is written.
    for (written, volume) in complete {
        let file = Output::complete(written, target, volume)?;
        report.bytes += file.bytes;
        report.files.push(file);
    }
    Ok(report)
}

fn add_losses(all: &mut Vec<Loss>, new: &[Loss]) {
    for loss in new {
        match all.iter_mut().find(|known| known.what == loss.what) {
            Some(known) => known.count += loss.count,
            None => all.push(loss.clone()),
        }
    }
}

/// One pass over a source: batches, names as they come, progress.
struct Pass<'a> {
    source: &'a mut (dyn Source + 'a),
    observer: &'a mut dyn FnMut(&ConvertProgress) -> bool,
    batch: Batch,
    names: Names,
    read: u64,
    started: Instant,
    reported: Instant,
}

impl<'a> Pass<'a> {
    fn new(source: &'a mut (dyn Source + '_), observer: &'a mut dyn FnMut(&ConvertProgress) -> bool) -> Self {
        let now = Instant::now();
        Pass {
            source,
            observer,
            batch: Batch::default(),
            names: Names::default(),
            read: 0,
            started: now,
            reported: now,
        }
    }

    /// False at the end.
    fn next(&mut self) -> Result<bool> {
        if self.reported.elapsed() >= PERIOD {
            self.reported = Instant::now();
            let left = self.source.remaining();
            let progress = ConvertProgress {
                requests: self.read,
                share: left.map(|left| self.read as f64 / (self.read.saturating_add(left)).max(1) as f64),
                wall_s: self.started.elapsed().as_secs_f64(),
            };
            if !(self.observer)(&progress) {
                return Err(Error::Interrupted);
            }
        }
        self.source.next_batch(&mut self.batch)?;
        self.read += self.batch.len() as u64;
        let unnamed = |column: &[u16], names: &[String]| {
            let highest = column.iter().max();
            highest.is_some_and(|&highest| usize::from(highest) >= names.len())
        };
        if unnamed(&self.batch.volume, &self.names.volumes) || unnamed(&self.batch.label, &self.names.labels) {
            self.names.volumes = self.source.volume_names();
            self.names.labels = self.source.label_names();
        }
        Ok(!self.batch.is_empty())
    }
}

/// Compression by the ending of a name.
const PACKINGS: [(&str, Packing); 4] = [
    ("gz", Packing::Gzip),
    ("zst", Packing::Zstandard),
    ("xz", Packing::Xz),
    ("bz2", Packing::Bzip2),
];

/// What is written where.
struct Target<'a> {
    path: &'a Path,
    options: &'a ConvertOptions,
    format: &'static Format,
    packing: Packing,
}

impl<'a> Target<'a> {
    fn new(path: &'a Path, options: &'a ConvertOptions) -> Result<Self> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let ending = |name: &str| name.rsplit_once('.').map(|(_, ending)| ending.to_lowercase());
        let packed = ending(&name).and_then(|e| PACKINGS.iter().find(|(known, _)| *known == e));
        let packing = packed.map_or(Packing::Plain, |(_, packing)| *packing);
        let inner = match packed {
            Some((known, _)) => &name[..name.len() - known.len() - 1],
            None => &name,
        };
        let format = match &options.format {
            Some(format) => write::named(format)?,
            None => ending(inner).and_then(|e| by_ending(&e)).ok_or_else(|| {
                let known = write::names().join(", ");
                Error::input(format!(
                    "{}: the name does not say the format: expected one that ends in .FORMAT, or the format as an option \
                     (known: {known})",
                    path.display()
                ))
            })?,
        };
        Ok(Target {
            path,
            options,
            format,
            packing,
        })
    }

    fn per_volume(&self) -> bool {
        self.path.to_string_lossy().contains(VOLUME)
    }

    fn part(&self, volume: String, taken: &mut FxHashSet<String>) -> Result<Part> {
        let safe: String = volume
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "._-".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .take(100)
            .collect();
        let mut name = if safe.is_empty() { "_".to_owned() } else { safe };
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        let path = PathBuf::from(self.path.to_string_lossy().replace(VOLUME, &name));
        let output = Output::create(&path, self)?;
        Ok(Part {
            names: Names {
                volumes: vec![volume],
                labels: Vec::new(),
            },
            writer: Writer::new(self.format.name, &self.options.writer, output)?,
            batch: Batch::default(),
        })
    }

    /// A conversion of which nothing is left is a mistake.
    fn check(&self, read: u64, written: u64, lost: &[Loss]) -> Result<()> {
        if read == 0 || written > 0 {
            return Ok(());
        }
        let lost: Vec<String> = lost.iter().map(Loss::to_string).collect();
        Err(Error::input(format!(
            "none of the {read} requests can be written as {}: {}",
            self.format.name,
            lost.join("; ")
        )))
    }
}

fn by_ending(ending: &str) -> Option<&'static Format> {
    let fits = |format: &&Format| format.endings.contains(&ending) || format.name == ending;
    write::catalogue().iter().find(fits)
}
