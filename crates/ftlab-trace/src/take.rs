//! The first requests of a source.

use ftlab_core::{Batch, Result, Source};

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

    fn volume_names(&self) -> Vec<String> {
        self.inner.volume_names()
    }

    fn label_names(&self) -> Vec<String> {
        self.inner.label_names()
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
}
