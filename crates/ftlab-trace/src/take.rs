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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth;

    fn count(mut source: impl Source) -> u64 {
        let (mut batch, mut n) = (Batch::default(), 0);
        loop {
            source.next_batch(&mut batch).unwrap();
            if batch.is_empty() {
                return n;
            }
            n += batch.len() as u64;
        }
    }

    fn generated() -> synth::Generator {
        synth::parse("uniform:requests=100000", 1 << 30, 4096, 1).unwrap()
    }

    #[test]
    fn a_head_ends_exactly() {
        for n in [0, 1, 4096, 4097, 99_999, 100_000, 200_000] {
            let head = Head::new(generated(), n);
            assert_eq!(head.remaining(), Some(n.min(100_000)));
            assert_eq!(count(head), n.min(100_000));
        }
    }

    #[test]
    fn a_sample_keeps_its_share() {
        let n = count(Sample::new(generated(), 0.1, 3).unwrap());
        // Three standard deviations of 1e5 draws at 0.1 are 285.
        assert!(n.abs_diff(10_000) < 285, "{n}");
        assert_eq!(count(Sample::new(generated(), 1.0, 3).unwrap()), 100_000);
        assert!(Sample::new(generated(), 0.0, 3).is_err());
    }
}
