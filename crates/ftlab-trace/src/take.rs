//! Parts of a source: its first requests, or a sample of them.

use ftlab_core::{Batch, Error, Result, Source, Stream};

use crate::rows;

/// The first `n` requests of a source.
pub struct Head<S> {
    inner: S,
    left: u64,
}

impl<S: Source> Head<S> {
    pub fn new(inner: S, n: u64) -> Self {
        Head { inner, left: n }
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: Source> Source for Head<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        batch.clear();
        if self.left == 0 {
            return Ok(());
        }
        self.inner.next_batch(batch)?;
        let (left, read) = (self.left, batch.len() as u64);
        if read > left {
            rows::retain(batch, |_, i| (i as u64) < left);
        }
        self.left -= read.min(left);
        Ok(())
    }

    fn remaining(&self) -> Option<u64> {
        self.inner.remaining().map(|n| n.min(self.left))
    }
}

/// Each request kept with the same probability, independently; times stay as they are.
pub struct Sample<S> {
    inner: S,
    rate: f64,
    random: Stream,
}

impl<S: Source> Sample<S> {
    /// `rate` lies in (0, 1].
    pub fn new(inner: S, rate: f64, seed: u64) -> Result<Self> {
        if !(rate > 0.0 && rate <= 1.0) {
            return Err(Error::input(format!(
                "sampling rate {rate}: expected more than 0, at most 1"
            )));
        }
        Ok(Sample {
            inner,
            rate,
            random: Stream::new(seed, "trace sample"),
        })
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: Source> Source for Sample<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        loop {
            self.inner.next_batch(batch)?;
            if batch.is_empty() || self.rate >= 1.0 {
                return Ok(());
            }
            rows::retain(batch, |_, _| self.random.unit() < self.rate);
            if !batch.is_empty() {
                return Ok(());
            }
        }
    }
}
