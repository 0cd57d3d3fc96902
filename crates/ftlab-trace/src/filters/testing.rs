//! Streams for the tests of filters and of inspections.

use std::sync::Arc;

use ftlab_core::{Batch, Result, Source};

use super::{Again, Context, Filtered, apply};
use crate::rows;

/// A stream held in memory, delivered in batches of `cut` requests.
#[derive(Clone)]
pub struct Fixed {
    pub batch: Batch,
    pub volumes: Vec<String>,
    pub labels: Vec<String>,
    pub cut: usize,
    pub at: usize,
}

impl Fixed {
    pub fn new(batch: Batch) -> Self {
        Fixed {
            batch,
            volumes: Vec::new(),
            labels: Vec::new(),
            cut: Batch::TARGET,
            at: 0,
        }
    }

    pub fn cut(self, cut: usize) -> Self {
        Fixed { cut, ..self }
    }
}

impl Source for Fixed {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        batch.clear();
        let end = (self.at + self.cut).min(self.batch.len());
        (self.at..end).for_each(|i| rows::append(batch, &self.batch, i));
        self.at = end;
        Ok(())
    }

    fn remaining(&self) -> Option<u64> {
        Some((self.batch.len() - self.at) as u64)
    }

    fn volume_names(&self) -> Vec<String> {
        self.volumes.clone()
    }

    fn label_names(&self) -> Vec<String> {
        self.labels.clone()
    }
}

/// Lines of `time_ns,op,offset,length`.
pub fn requests(csv: &str) -> Fixed {
    let bytes = format!("time_ns,op,offset,length\n{csv}").into_bytes();
    Fixed::new(collect(
        &mut crate::open_bytes("t", bytes, &crate::ReadOptions::default()).unwrap(),
    ))
}

/// Reads of 4 KiB, one behind the other, at these times.
pub fn reads_at(times: &[u64]) -> Fixed {
    let mut batch = Batch::default();
    for (i, &time) in times.iter().enumerate() {
        batch.push(time, ftlab_core::OpKind::Read, i as u64 * 4096, 4096, 0, 0);
    }
    Fixed::new(batch)
}

pub fn synth(spec: &str, bytes: u64) -> Fixed {
    Fixed::new(collect(&mut crate::synth::parse(spec, bytes, 4096, 1).unwrap()))
}

/// Opens `source` again by copying it.
pub fn copies(source: Fixed) -> Again {
    Arc::new(move || Ok(Box::new(source.clone())))
}

pub fn try_behind(specs: &[&str], source: Fixed) -> Result<Filtered> {
    let specs: Vec<String> = specs.iter().map(|&spec| spec.to_owned()).collect();
    let context = Context::repeatable(4096, 1, copies(source.clone()));
    apply(&specs, Box::new(source), &context)
}

pub fn behind(specs: &[&str], source: Fixed) -> Filtered {
    try_behind(specs, source).unwrap()
}

/// All that comes out of the filters.
pub fn filtered(specs: &[&str], source: Fixed) -> Batch {
    collect(&mut behind(specs, source))
}

/// The error with which a stream behind these filters ends.
pub fn failure(specs: &[&str], source: Fixed) -> String {
    let run = |mut filtered: Filtered| {
        let mut batch = Batch::default();
        loop {
            filtered.next_batch(&mut batch)?;
            assert!(!batch.is_empty(), "no error came");
        }
    };
    try_behind(specs, source)
        .and_then(run)
        .map(|(): ()| ())
        .unwrap_err()
        .to_string()
}

/// The error of a filter behind a stream that can be read once only.
pub fn once(spec: &str, source: Fixed) -> String {
    let made = apply(&[spec.to_owned()], Box::new(source), &Context::once(4096, 1));
    made.err().map(|e| e.to_string()).unwrap_or_default()
}

pub fn collect(source: &mut dyn Source) -> Batch {
    let (mut all, mut batch) = (Batch::default(), Batch::default());
    loop {
        source.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            source.next_batch(&mut batch).unwrap();
            assert!(batch.is_empty(), "a stream goes on after its end");
            return all;
        }
        (0..batch.len()).for_each(|i| rows::append(&mut all, &batch, i));
    }
}

pub fn places(batch: &Batch) -> Vec<(u64, u32)> {
    batch.offset.iter().copied().zip(batch.length.iter().copied()).collect()
}
