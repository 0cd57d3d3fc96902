//! Which files a folder holds.
//!
//! In order of their names, folder by folder. Symbolic links below what the user named are not followed, so that loops end; a file with
//! several names counts once; pipes, sockets and devices are left out.

use std::fs::{self, FileType};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};
use rustc_hash::FxHashSet;
use serde_json::{Value, json};

/// Unreadable files that are named.
const NAMED: usize = 20;

/// A file, and how many bytes of it are read.
pub struct Found {
    pub path: PathBuf,
    /// `None`: read to its end, as block devices are, and files that have no length before they are read (`/proc`).
    pub bytes: Option<u64>,
}

#[derive(Default)]
pub struct Walk {
    pub files: Vec<Found>,
    pub folders: u64,
    pub empty: u64,
    /// Files of which fewer bytes came than they had when the folder was walked.
    pub shrunk: u64,
    pub hard_links: u64,
    pub symlinks: u64,
    pub special: u64,
    pub unreadable: u64,
    /// The first of them, with the system's words.
    pub unreadable_names: Vec<String>,
    /// Device and number of folders, and of files that have several names.
    known: FxHashSet<(u64, u64)>,
}

impl Walk {
    /// All files at or below these paths.
    pub fn of(paths: &[PathBuf]) -> Result<Self> {
        let mut walk = Walk::default();
        for path in paths {
            // What the user names may be a link.
            let refused = |e| Error::io(path, &e);
            let at = fs::metadata(path).map_err(refused)?;
            let kind = at.file_type();
            if kind.is_dir() {
                fs::read_dir(path).map_err(refused)?;
                walk.folder(path, &at);
            } else if kind.is_file() || kind.is_block_device() {
                fs::File::open(path).map_err(refused)?;
                walk.file(path, &at);
            } else {
                return Err(Error::input(format!(
                    "{}: {}, expected a file, a folder or a disk image",
                    path.display(),
                    special_name(kind)
                )));
            }
        }
        Ok(walk)
    }

    pub fn unreadable(&mut self, path: &Path, cause: &std::io::Error) {
        self.unreadable += 1;
        if self.unreadable_names.len() < NAMED {
            self.unreadable_names.push(format!("{}: {cause}", path.display()));
        }
    }

    pub fn describe(&self) -> Value {
        json!({
            "files": self.files.len(),
            "empty": self.empty,
            "shrunk": self.shrunk,
            "folders": self.folders,
            "hard_links": self.hard_links,
            "symlinks": self.symlinks,
            "special": self.special,
            "unreadable": self.unreadable,
            "unreadable_names": self.unreadable_names,
        })
    }

    fn folder(&mut self, path: &Path, at: &fs::Metadata) {
        let mut waiting = vec![(path.to_owned(), (at.dev(), at.ino()))];
        while let Some((folder, id)) = waiting.pop() {
            // Also when two of the paths lie one in the other, or by a bind mount.
            if !self.known.insert(id) {
                continue;
            }
            let entries = fs::read_dir(&folder).and_then(|entries| entries.collect::<std::io::Result<Vec<_>>>());
            let mut names: Vec<PathBuf> = match entries {
                Ok(entries) => entries.iter().map(fs::DirEntry::path).collect(),
                Err(cause) => {
                    self.unreadable(&folder, &cause);
                    continue;
                }
            };
            self.folders += 1;
            names.sort_unstable();
            let mut folders = Vec::new();
            for path in names {
                match fs::symlink_metadata(&path) {
                    Err(cause) => self.unreadable(&path, &cause),
                    Ok(at) if at.is_dir() => folders.push((path, (at.dev(), at.ino()))),
                    Ok(at) if at.is_file() => self.file(&path, &at),
                    Ok(at) if at.is_symlink() => self.symlinks += 1,
                    Ok(_) => self.special += 1,
                }
            }
            folders.reverse();
            waiting.append(&mut folders);
        }
    }

    fn file(&mut self, path: &Path, at: &fs::Metadata) {
        let device = at.file_type().is_block_device();
        // The same file may also be named twice.
        if !self.known.insert((at.dev(), at.ino())) {
            self.hard_links += 1;
            return;
        }
        self.files.push(Found {
            path: path.to_owned(),
            bytes: (!device && at.len() > 0).then_some(at.len()),
        });
    }
}

fn special_name(kind: FileType) -> &'static str {
    match () {
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device without blocks",
    }
}
