//! What a trace is like: one pass, constant memory.
//!
//! ```text
//! Batch ─ pages ─┬─ counts, sizes, arrivals, footprint, address_map, sequentiality, dirty_reads
//!                └─ contexts ─ content ─ records (sample): reuse, lifetimes, skew
//! ```
//!
//! Each analysis is one file with `add` (or `access`) and `finish`; what it reports is documented with the structures
//! of [`Inspection`], which hold what is computed, in which unit, with what error.
//!
//! # Memory
//! With the default options at most about 70 MiB: pages 18, bitmaps of the footprint 16, values 16, contexts up to 18
//! (the last two only where a trace carries them), histograms 2.
//! # Not modelled
//! Overlapping requests within one time stamp, response times, queue depths.

mod address_map;
mod arrivals;
mod content;
mod contexts;
mod counts;
mod dirty_reads;
mod footprint;
mod frequent;
mod hyperloglog;
mod inspection;
mod lifetimes;
mod octaves;
mod pages;
mod records;
mod reuse;
mod sample;
mod sequentiality;
mod sizes;
mod skew;
mod stack;
mod strata;
#[cfg(test)]
mod tests;

use ftlab_core::{Batch, OpKind, Result, Source};

pub use inspection::*;
pub use stack::Stack;

pub use crate::splitmix::mix;

use crate::write::Names;
use records::{Clock, Records};

/// Limits of an inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InspectOptions {
    /// Take the volumes of a trace as one address range instead of keeping pages of different volumes apart. With
    /// volumes already laid side by side this makes no difference, so `Volumes::Merge` and false inspect several
    /// devices in one pass without laying them out.
    pub merge_volumes: bool,
    /// Most pages whose records are kept: beyond, half of the pages go (by hash), and half of this limit holds from
    /// then on.
    pub sample_pages: usize,
    /// Page accesses (and ids of values) that are looked at beyond one a request, before the sample is thinned to bound
    /// the time; at least 1024.
    pub sample_accesses: u64,
    /// Most values whose records are kept; the same.
    pub sample_values: usize,
    /// Most regions of 512 pages with exact bitmaps.
    pub bitmap_chunks: usize,
}

impl Default for InspectOptions {
    fn default() -> Self {
        InspectOptions {
            merge_volumes: false,
            sample_pages: 1 << 17,
            sample_accesses: 4 << 20,
            sample_values: 1 << 16,
            bitmap_chunks: 96 << 10,
        }
    }
}

/// Reads `source` to its end, and calls its volumes and labels as it does.
pub fn inspect(source: &mut dyn Source, options: InspectOptions) -> Result<Inspection> {
    let mut inspector = Inspector::new(options);
    let mut batch = Batch::default();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        inspector.add(&batch);
    }
    Ok(inspector.finish(&Names {
        volumes: source.volume_names(),
        labels: source.label_names(),
    }))
}

/// All analyses of a trace that passes by.
pub struct Inspector {
    options: InspectOptions,
    pages: pages::Pages,
    counts: counts::Counts,
    sizes: sizes::Sizes,
    arrivals: arrivals::Arrivals,
    footprint: footprint::Footprint,
    address_map: address_map::Map,
    sequentiality: sequentiality::Sequentiality,
    dirty_reads: dirty_reads::DirtyReads,
    records: Records,
    contexts: contexts::Contexts,
    content: content::Content,
    /// Whether any request so far carried content.
    has_content: bool,
    clock: Clock,
}

impl Inspector {
    pub fn new(options: InspectOptions) -> Self {
        Inspector {
            options,
            pages: pages::Pages::default(),
            counts: counts::Counts::default(),
            sizes: sizes::Sizes::default(),
            arrivals: arrivals::Arrivals::default(),
            footprint: footprint::Footprint::new(options.bitmap_chunks),
            address_map: address_map::Map::default(),
            sequentiality: sequentiality::Sequentiality::default(),
            dirty_reads: dirty_reads::DirtyReads::default(),
            records: Records::new(options.sample_pages, options.sample_accesses),
            contexts: contexts::Contexts::default(),
            content: content::Content::new(options.sample_values, options.sample_accesses),
            has_content: false,
            clock: Clock::default(),
        }
    }

    /// Adds the next requests of the trace.
    pub fn add(&mut self, batch: &Batch) {
        self.pages.set(batch, self.options.merge_volumes);
        self.counts.add(batch, &self.pages);
        self.sizes.add(batch);
        self.arrivals.add(batch);
        self.footprint.add(batch, &self.pages);
        self.address_map.add(batch, &self.pages);
        self.sequentiality.add(batch);
        self.dirty_reads.add(batch, &self.pages);
        self.has_content |= !batch.content.is_empty();
        let has_contexts = contexts::Contexts::carried(batch);
        for i in 0..batch.len() {
            let mut ids = contexts::NO_CONTEXTS;
            if has_contexts {
                let records = &mut self.records;
                ids = self
                    .contexts
                    .enter(batch, i, |kind, places| records.renumber(kind, places));
            }
            self.add_pages(batch, i, ids);
        }
    }

    #[inline]
    fn add_pages(&mut self, batch: &Batch, i: usize, ids: contexts::Ids) {
        let (op, first, count) = (batch.op[i], self.pages.first[i], u64::from(self.pages.count[i]));
        self.clock.time_ns = batch.time_ns[i];
        let clock = self.clock;
        match op {
            OpKind::Read | OpKind::Write => {
                if self.has_content {
                    let written = self.content.access(op, first, count, batch.content_of(i));
                    self.contexts.wrote_content(ids, written.ids, written.duplicates);
                }
                self.records.access(op, first, count, clock, ids, &mut self.contexts);
            }
            OpKind::Trim => {
                if self.has_content {
                    self.content.forget(first, count);
                }
                self.records.trim(first, count, clock, &mut self.contexts);
            }
            OpKind::Flush => {}
        }
        self.clock.request += 1;
        self.clock.ticks += if op == OpKind::Write { count } else { 0 };
    }

    /// What was found out. `names` are those of volumes and labels; numbers are used where it is silent.
    pub fn finish(self, names: &Names) -> Inspection {
        let accesses = [self.counts.page_reads(), self.counts.page_writes()];
        let span = self.counts.span_bytes(self.options.merge_volumes);
        let records = self.records.finish(accesses, self.clock.ticks, self.arrivals.timed());
        let mut inspection = Inspection {
            schema: SCHEMA.to_owned(),
            counts: self.counts.finish(),
            sizes: self.sizes.finish(),
            arrivals: self.arrivals.finish(),
            footprint: self.footprint.finish(span, accesses[0], accesses[1]),
            address_map: self.address_map.finish(),
            sequentiality: self.sequentiality.finish(),
            page_sampling: records.sampling,
            skew: records.skew,
            reuse: records.reuse,
            lifetimes: records.lifetimes,
            dirty_reads: self.dirty_reads.finish(),
            content: self.content.finish(),
            contexts: self.contexts.finish(),
        };
        inspection.name(names);
        inspection
    }
}

impl Inspection {
    /// Calls volumes and labels by these names, as far as there are any.
    fn name(&mut self, names: &Names) {
        for volume in &mut self.counts.volumes {
            if let Some(name) = names.volumes.get(volume.number as usize) {
                volume.name.clone_from(name);
            }
        }
        for table in &mut self.contexts {
            contexts::rename(table, names);
        }
    }
}
