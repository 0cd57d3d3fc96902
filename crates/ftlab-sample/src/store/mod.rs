//! Persistent LDDs: datasets that are kept as logs, one a disk.
//!
//! # Model
//! A store is a folder with `ldd.json` (`manifest`), which names its disks. Each disk is a folder with a log of partitions (`log`) and an index of where
//! they end. Partitions are cut between records (`cutter`) and appended to the disk with the shortest queue (`writer`). Nothing that was written changes.
//!
//! A commit makes logs and indices durable and then puts a new `ldd.json` in the place of the old one; what is behind the lengths that it names is
//! no part of the store. So after a kill the store is as at its last commit, or at the one under way.
//!
//! # Not modelled
//! Removal of partitions. Copies on several disks: what one disk loses is lost.
//!
//! # Errors
//! A second writer; a disk that is another's, shorter than what was committed, or whose bytes are not those that were written.
//!
//! # Cost
//! 8 bytes a partition in memory and in the index, 16 in the log.
//!
//! # Source
//! Zhou, PhD thesis, University of Central Florida 2018, sections 1.3.2 and 1.3.4 (writing).

mod cutter;
mod load;
mod log;
mod manifest;
mod writer;

pub use load::{CreateSpec, LoadSpec, load};
pub use log::Log;
pub use manifest::{Manifest, Placement};
pub use writer::Writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ftlab_core::{Error, Result};
use serde_json::{Value as Json, json};

use crate::layout::{Dataset, Disk, Piece};

/// A store as of its last commit, for reading.
#[derive(Debug)]
pub struct Store {
    pub path: PathBuf,
    pub manifest: Manifest,
    logs: Vec<Arc<Log>>,
}

impl Store {
    pub fn open(path: &Path) -> Result<Store> {
        let mut manifest = Manifest::read(path)?;
        loop {
            let logs: Result<Vec<_>> = (0..manifest.disks.len())
                .map(|disk| Log::open(path, &manifest, disk).map(Arc::new))
                .collect();
            // A writer may have committed since the manifest was read.
            let now = Manifest::read(path)?;
            if logs.is_err() && now != manifest {
                manifest = now;
                continue;
            }
            return Ok(Store {
                path: path.to_owned(),
                logs: logs?,
                manifest,
            });
        }
    }

    /// As what is sampled: a partition of the store is one of the layout.
    pub fn dataset(&self) -> Result<Dataset> {
        let mut disks = Vec::new();
        for (log, disk) in self.logs.iter().zip(&self.manifest.disks) {
            let mut files = Vec::new();
            if disk.partitions > 0 {
                files.push(Piece {
                    path: log.path.clone(),
                    file: log.file()?,
                    bytes: disk.bytes,
                    header: 0,
                    first: 0,
                    partition_bytes: self.manifest.partition_bytes,
                    index: None,
                    frames: None,
                    row_groups: None,
                    direct: None,
                    opened: None,
                    log: Some(log.clone()),
                });
            }
            disks.push(Disk {
                name: self.manifest.folder(&self.path, disk).display().to_string(),
                files,
                partitions: disk.partitions,
                bytes: disk.bytes,
            });
        }
        if self.manifest.partitions() == 0 {
            return Err(Error::input(format!(
                "{}: nothing in it, expected records",
                self.path.display()
            )));
        }
        Ok(Dataset {
            form: self.manifest.form()?,
            partition_bytes: self.manifest.partition_bytes,
            disks,
            columns: self.manifest.columns.clone(),
            indexed_bytes: 0,
            walked_bytes: 0,
            footer_bytes: 0,
            cached_files: 0,
        })
    }

    /// What there is, without reading it.
    pub fn info(&self) -> Result<Json> {
        let mut disks = Vec::new();
        for (log, disk) in self.logs.iter().zip(&self.manifest.disks) {
            disks.push(json!({
                "folder": self.manifest.folder(&self.path, disk).display().to_string(), "partitions": disk.partitions,
                "records": disk.records, "bytes": disk.bytes, "uncommitted_bytes": log.behind()?,
            }));
        }
        let sum = |of: fn(&manifest::Disk) -> u64| self.manifest.disks.iter().map(of).sum::<u64>();
        Ok(json!({
            "schema": "ftlab.ldd/1", "path": self.path.display().to_string(), "format": self.manifest.form()?.name(),
            "columns": self.manifest.columns, "pairs": self.manifest.pairs, "partition_bytes": self.manifest.partition_bytes,
            "placement": self.manifest.placement, "commits": self.manifest.commits, "files": self.manifest.files,
            "partitions": sum(|disk| disk.partitions), "records": sum(|disk| disk.records), "bytes": sum(|disk| disk.bytes),
            "disks": disks,
        }))
    }

    /// Reads every partition; the first that is not as it was written is an error.
    pub fn check(&self, go_on: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut buffer = Vec::new();
        for log in &self.logs {
            for number in 0..log.partitions() {
                log.load(number, &mut buffer)?;
                if number % 64 == 0 {
                    go_on()?;
                }
            }
        }
        Ok(())
    }
}
