//! Counting what passes between two filters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ftlab_core::{Batch, OpKind, Result, Source};
use serde::Serialize;

/// Requests and bytes of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amounts {
    pub requests: u64,
    pub reads: u64,
    pub writes: u64,
    pub trims: u64,
    pub flushes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Time of the last request.
    pub last_ns: u64,
}

/// Counters that the stream fills and its report reads.
#[derive(Default)]
pub struct Tally {
    requests: [AtomicU64; 4],
    bytes: [AtomicU64; 4],
    last_ns: AtomicU64,
}

impl Tally {
    pub fn amounts(&self) -> Amounts {
        let requests = |op: OpKind| self.requests[op as usize].load(Ordering::Relaxed);
        let bytes = |op: OpKind| self.bytes[op as usize].load(Ordering::Relaxed);
        Amounts {
            requests: OpKind::ALL.into_iter().map(requests).sum(),
            reads: requests(OpKind::Read),
            writes: requests(OpKind::Write),
            trims: requests(OpKind::Trim),
            flushes: requests(OpKind::Flush),
            bytes_read: bytes(OpKind::Read),
            bytes_written: bytes(OpKind::Write),
            last_ns: self.last_ns.load(Ordering::Relaxed),
        }
    }

    fn add(&self, batch: &Batch) {
        let (mut requests, mut bytes) = ([0u64; 4], [0u64; 4]);
        for (op, &length) in batch.op.iter().zip(&batch.length) {
            requests[*op as usize] += 1;
            bytes[*op as usize] += u64::from(length);
        }
        for op in 0..4 {
            self.requests[op].fetch_add(requests[op], Ordering::Relaxed);
            self.bytes[op].fetch_add(bytes[op], Ordering::Relaxed);
        }
        if let Some(&last) = batch.time_ns.last() {
            self.last_ns.store(last, Ordering::Relaxed);
        }
    }
}

/// A source whose requests are counted.
pub struct Tallied {
    inner: Box<dyn Source>,
    tally: Arc<Tally>,
}

impl Tallied {
    pub fn new(inner: Box<dyn Source>, tally: Arc<Tally>) -> Self {
        Tallied { inner, tally }
    }
}

impl Source for Tallied {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        self.inner.next_batch(batch)?;
        self.tally.add(batch);
        Ok(())
    }

    fn remaining(&self) -> Option<u64> {
        self.inner.remaining()
    }

    fn volume_names(&self) -> Vec<String> {
        self.inner.volume_names()
    }

    fn label_names(&self) -> Vec<String> {
        self.inner.label_names()
    }
}
