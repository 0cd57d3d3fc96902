//! Fitting a trace's addresses to a drive.

use ftlab_core::{Batch, Error, Result, Source};

use crate::{Opened, Scan};

/// What to do with addresses beyond the drive (`--fit`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FitRule {
    /// Refuse, naming the request and the drive's size.
    #[default]
    Error,
    /// Take addresses modulo the drive's size.
    Wrap,
    /// Renumber the touched units in address order.
    Compact,
    /// The drive is made as large as the trace needs (by the caller: `Scan::report.end_byte`); here as `Error`.
    Grow,
}

impl FitRule {
    /// Parses `error`, `wrap`, `compact` or `grow`.
    pub fn parse(_text: &str) -> Result<Self> {
        Err(Error::input("not built yet"))
    }
}

/// A source whose requests all lie on a drive of the given size.
pub struct Fit<S = Opened> {
    inner: S,
}

impl<S: Source> Fit<S> {
    /// `compact` needs the scan of the same trace, made with `ReadOptions::unit_bytes` = the drive's mapping unit.
    pub fn new(inner: S, _rule: FitRule, _logical_bytes: u64, _scan: Option<&Scan>) -> Result<Self> {
        Ok(Fit { inner })
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: Source> Source for Fit<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        self.inner.next_batch(batch)
    }
}
