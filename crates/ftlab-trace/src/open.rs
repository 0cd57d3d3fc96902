//! Opening traces.

use std::path::PathBuf;

use ftlab_core::{Batch, Error, Result, Source};

use crate::{ReadOptions, Touched, TraceReport};

/// A trace being read: a [`Source`] that knows what it has seen.
pub struct Opened {
    report: TraceReport,
}

/// What one pass over a trace found: its complete report and the units it touches, with volumes laid out as asked.
pub struct Scan {
    pub report: TraceReport,
    /// Units of `ReadOptions::unit_bytes` touched by reads and writes.
    pub touched: Touched,
}

/// Opens one trace made of these files (merged by time if several; `-` is standard input).
///
/// Scans first where several volumes have to be laid side by side.
pub fn open(_paths: &[PathBuf], _options: &ReadOptions) -> Result<Opened> {
    Err(Error::input("not built yet"))
}

/// Like [`open`], with the result of an earlier [`scan`] of the same files and options.
pub fn open_scanned(_paths: &[PathBuf], _options: &ReadOptions, _scan: &Scan) -> Result<Opened> {
    Err(Error::input("not built yet"))
}

/// Reads the whole trace once, in constant memory but for one bit per touched unit.
pub fn scan(_paths: &[PathBuf], _options: &ReadOptions) -> Result<Scan> {
    Err(Error::input("not built yet"))
}

impl Opened {
    /// What is known so far; complete when the stream has been read to its end.
    pub fn report(&self) -> TraceReport {
        self.report.clone()
    }

    /// Share of the input read so far, 0 to 1, where its size is known.
    pub fn progress(&self) -> Option<f64> {
        None
    }
}

impl Source for Opened {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        batch.clear();
        Ok(())
    }
}
