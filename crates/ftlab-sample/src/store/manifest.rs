//! What a store is and how far it was committed: `ldd.json`.
//!
//! # Model
//! Beside each log stands how many commits there have been (`COMMITS`), written behind each, so that an older `ldd.json` in the place of a newer one, of which part of the logs would be
//! no part, is noticed.
//!
//! One line of JSON, and a line with its check. It is replaced as a whole, by a rename, so that it is always one of two commits. Folders of disks are
//! written as given, from the root on, or relative to the store where they lie in it, so that a store of one folder can be moved.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::asked_json;
use crate::record::Form;

pub(super) const NAME: &str = "ldd.json";
const SCHEMA: &str = "ftlab.ldd/1";
/// Ending of the file beside a log that says how many commits there have been.
pub(super) const COMMITS: &str = "commits";

/// Which disk a partition goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// That with the fewest bytes waiting, then with the fewest written.
    #[default]
    ShortestQueue,
    /// One after another, so that the same load gives the same disks.
    InTurn,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    schema: String,
    /// Of this store alone; checks of partitions depend on it.
    pub(super) id: u64,
    /// Where the store was when it was written last, from the root on.
    pub(super) home: String,
    format: String,
    delimiter: Option<u8>,
    pub columns: Vec<String>,
    /// Whether each record is a key and a value, as JSON.
    pub pairs: bool,
    /// Whether line ends may stand within quotes.
    pub(super) quoted: bool,
    /// Whether files were loaded of which the user said that there are none.
    pub(super) no_quoted_newlines: bool,
    pub partition_bytes: u64,
    pub placement: Placement,
    pub commits: u64,
    /// Files that were loaded.
    pub files: u64,
    pub disks: Vec<Disk>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    pub(super) folder: PathBuf,
    pub partitions: u64,
    pub records: u64,
    /// Of the log, with its head.
    pub bytes: u64,
    /// Check of the index, up to `partitions`.
    pub(super) index: u64,
}

impl Manifest {
    pub(super) fn new(
        id: u64,
        home: &Path,
        form: &Form,
        columns: &[String],
        partition_bytes: u64,
        folders: &[PathBuf],
    ) -> Manifest {
        let disk = |folder: &PathBuf| Disk {
            folder: folder.clone(),
            partitions: 0,
            records: 0,
            bytes: super::log::HEAD,
            index: super::log::check_of(&[]),
        };
        Manifest {
            schema: SCHEMA.to_owned(),
            id,
            home: home.display().to_string(),
            format: form.name().to_owned(),
            delimiter: match form {
                Form::Csv { delimiter, .. } => Some(*delimiter),
                Form::Text | Form::Json | Form::Parquet => None,
            },
            columns: columns.to_vec(),
            pairs: false,
            quoted: false,
            no_quoted_newlines: false,
            partition_bytes,
            placement: Placement::default(),
            commits: 0,
            files: 0,
            disks: folders.iter().map(disk).collect(),
        }
    }

    pub fn form(&self) -> Result<Form> {
        match (Form::parse(&self.format, None)?, self.delimiter) {
            (Form::Csv { quotes, .. }, Some(delimiter)) => Ok(Form::Csv { delimiter, quotes }),
            (form, _) => Ok(form),
        }
    }

    pub fn partitions(&self) -> u64 {
        self.disks.iter().map(|disk| disk.partitions).sum()
    }

    pub(super) fn folder(&self, home: &Path, disk: &Disk) -> PathBuf {
        match disk.folder.as_os_str().is_empty() {
            true => home.to_owned(),
            false => home.join(&disk.folder),
        }
    }

    /// The log of a disk; its index has another ending.
    pub(super) fn log(&self, home: &Path, disk: usize) -> PathBuf {
        let folder = self.folder(home, &self.disks[disk]);
        folder.join(format!("{:016x}-{disk}.log", self.id))
    }

    /// Refuses to write for a copy of a store whose disks lie elsewhere: it would cut off what the other has committed. `whole`: its folder from the root on.
    pub(super) fn check_alone(&self, whole: &Path) -> Result<()> {
        let is_elsewhere = |disk: &Disk| disk.folder.is_absolute();
        let there = Path::new(&self.home);
        if there == whole || !self.disks.iter().any(is_elsewhere) {
            return Ok(());
        }
        match Manifest::read(there) {
            Ok(other) if other.id == self.id => Err(Error::input(format!(
                "{}: a copy of {}, whose disks lie elsewhere, expected the folder in which it was made, or that one removed",
                whole.display(),
                self.home
            ))),
            _ => Ok(()),
        }
    }

    /// Tells the folder of a disk how many commits there are. What is there is whole, the number before or this one.
    pub(super) fn mark(&self, log: &Path) -> Result<()> {
        let path = log.with_extension(COMMITS);
        let unfinished = log.with_extension("commits.unfinished");
        let mut body = format!("{:016x} {}\n", self.id, self.commits);
        body.push_str(&check_line(&body));
        let written = File::create(&unfinished)
            .and_then(|mut file| file.write_all(body.as_bytes()).and_then(|()| file.sync_data()))
            .and_then(|()| fs::rename(&unfinished, &path));
        written.map_err(|e| {
            let _ = fs::remove_file(&unfinished);
            Error::unwritable(&path, &e)
        })
    }

    /// Refuses to be what is older than a log beside it, of which it would know only a part. Logs of before there were such marks say nothing.
    pub(super) fn check_newest(&self, home: &Path, log: &Path) -> Result<()> {
        let path = log.with_extension(COMMITS);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) if e.kind() == ErrorKind::InvalidData => return Err(damaged(&path)),
            Err(e) => return Err(Error::io(&path, &e)),
        };
        let (body, check) = text.split_at(text.find('\n').map_or(text.len(), |end| end + 1));
        let marked = body.trim_end().split_once(' ').filter(|_| check == check_line(body));
        let marked = marked.and_then(|(id, commits)| {
            let is_own = id == format!("{:016x}", self.id);
            commits.parse::<u64>().ok().filter(|_| is_own)
        });
        match marked {
            None => Err(damaged(&path)),
            Some(commits) if commits > self.commits => Err(Error::input(format!(
                "{}: of commit {}, older than commit {commits} of {}; expected the newest {NAME}, as all behind its own commit would be lost",
                home.join(NAME).display(),
                self.commits,
                log.display()
            ))),
            Some(_) => Ok(()),
        }
    }

    pub(super) fn read(home: &Path) -> Result<Manifest> {
        let path = home.join(NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(Error::input(format!(
                    "{}: no LDD, expected a folder that `ftlab ldd load` or LDD.save has made",
                    home.display()
                )));
            }
            Err(e) if e.kind() == ErrorKind::InvalidData => return Err(damaged(&path)),
            Err(e) => return Err(Error::io(&path, &e)),
        };
        let mut lines = text.split_inclusive('\n');
        let (body, check) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        if lines.next().is_some() || check != check_line(body) {
            return Err(damaged(&path));
        }
        let manifest: Manifest = asked_json::read(&path.display().to_string(), body)?;
        match manifest.schema.as_str() {
            SCHEMA => Ok(manifest),
            other => Err(Error::input(format!("{}: {other}, expected {SCHEMA}", path.display()))),
        }
    }

    /// Puts it in the place of the one before, so that it is there after a loss of power.
    pub(super) fn write(&self, home: &Path) -> Result<()> {
        let path = home.join(NAME);
        let unfinished = home.join(format!("{NAME}.unfinished"));
        let mut body = serde_json::to_string(self).map_err(|e| Error::input(format!("{}: {e}", path.display())))?;
        body.push('\n');
        let written = (|| {
            let mut file = File::create(&unfinished)?;
            file.write_all(body.as_bytes())?;
            file.write_all(check_line(&body).as_bytes())?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)
        })();
        if let Err(e) = written {
            let _ = fs::remove_file(&unfinished);
            return Err(Error::unwritable(&path, &e));
        }
        sync_folder(home)
    }
}

/// Makes names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|file| file.sync_all());
    synced.map_err(|e| Error::io(folder, &e))
}

fn check_line(body: &str) -> String {
    format!("xxh3 {:016x}\n", xxh3_64(body.as_bytes()))
}

fn damaged(path: &Path) -> Error {
    Error::input(format!(
        "{}: its check is not that of its text, expected what the last commit wrote",
        path.display()
    ))
}
