//! The tree: a buffer, levels of sorted runs, and the requests that flushes and compactions make.

use std::collections::VecDeque;

use ftlab_core::{OpKind, Stream};

use super::extents::{Extent, Extents};
use super::layout::{Layout, mix};
use super::{Made, PAGE};
use crate::synth::permutation::Permutation;
use crate::synth::zipf_draw::ZipfDraw;

/// Bytes of the head of a record of the log.
const RECORD_HEAD: u64 = 24;
/// Makes a pair in a record of the log differ from one in a table.
const IN_RECORD: u64 = 0x6c6f67;
const LOG: u64 = 1;
const FLUSH: u64 = 2;
/// Of the compaction to level 1.
const COMPACTION: u64 = 3;

/// How the log holds pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    Record,
    Table,
    None,
}

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub keys: u64,
    pub theta: f64,
    pub pair: u64,
    pub aligned: bool,
    pub log: Log,
    /// Puts before a flush.
    pub buffered: usize,
    pub levels: usize,
    pub fanout: usize,
    pub reads: bool,
    pub request_pages: u64,
    pub seed: u64,
}

impl Shape {
    fn tables(&self) -> Layout {
        Layout {
            pair: self.pair,
            aligned: self.aligned,
        }
    }

    fn log(&self) -> Layout {
        match self.log {
            Log::Record => Layout {
                pair: self.pair + RECORD_HEAD,
                aligned: false,
            },
            Log::Table | Log::None => self.tables(),
        }
    }

    /// Pages that the tree takes at most: log, full levels, and the largest run that is made while what it is made of is still there.
    pub fn most_pages(&self) -> u64 {
        let buffered = self.buffered as u64;
        let mut run = buffered.min(self.keys);
        let mut pages = self.log().pages(buffered);
        for _ in 0..=self.levels {
            pages += self.fanout as u64 * self.tables().pages(run);
            run = run.saturating_mul(self.fanout as u64).min(self.keys);
        }
        pages + self.tables().pages(run)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Pair {
    key: u32,
    version: u32,
}

struct Run {
    /// By key, one version of each.
    pairs: Vec<Pair>,
    extents: Vec<Extent>,
}

pub struct Tree {
    shape: Shape,
    draw: ZipfDraw,
    spread: Permutation,
    random: Stream,
    /// Newest version of each key; 0: never put.
    versions: Vec<u32>,
    /// The oldest run of a level first.
    levels: Vec<Vec<Run>>,
    extents: Extents,
}

impl Tree {
    pub fn new(shape: Shape, extents: Extents) -> Self {
        Tree {
            draw: ZipfDraw::new(shape.keys, shape.theta),
            spread: Permutation::new(shape.keys, shape.seed),
            random: Stream::new(shape.seed, "workload offsets"),
            versions: vec![0; shape.keys as usize],
            levels: (0..=shape.levels).map(|_| Vec::new()).collect(),
            extents,
            shape,
        }
    }

    /// Fills the buffer, flushes it, and compacts the levels that are full.
    pub fn go_on(&mut self, due: &mut VecDeque<Made>) {
        let puts: Vec<Pair> = (0..self.shape.buffered)
            .map(|_| {
                let key = self.spread.apply(self.draw.draw(&mut self.random)) as u32;
                let version = &mut self.versions[key as usize];
                *version = version.wrapping_add(1);
                Pair { key, version: *version }
            })
            .collect();
        let log = (self.shape.log != Log::None).then(|| {
            let head = if self.shape.log == Log::Record { IN_RECORD } else { 0 };
            let chunks = self.shape.log().chunks(&self.contents(&puts, head));
            self.write(&chunks, LOG, due)
        });
        let run = self.make(newest(puts), FLUSH, due);
        log.into_iter().for_each(|log| self.remove(&log, due));
        self.levels[0].push(run);
        for level in 0..self.levels.len() {
            if self.levels[level].len() == self.shape.fanout {
                self.compact(level, due);
            }
        }
    }

    fn compact(&mut self, level: usize, due: &mut VecDeque<Made>) {
        let merged = std::mem::take(&mut self.levels[level]);
        if self.shape.reads {
            for &extent in merged.iter().flat_map(|run| &run.extents) {
                self.requests(OpKind::Read, 0, extent, &[], due);
            }
        }
        let into = (level + 1).min(self.shape.levels);
        let pairs = merged.iter().flat_map(|run| run.pairs.iter().copied()).collect();
        // The last level merges its own runs.
        let context = COMPACTION + level.min(self.shape.levels - 1) as u64;
        let run = self.make(newest(pairs), context, due);
        merged.iter().for_each(|run| self.remove(&run.extents, due));
        self.levels[into].push(run);
    }

    fn make(&mut self, pairs: Vec<Pair>, context: u64, due: &mut VecDeque<Made>) -> Run {
        let chunks = self.shape.tables().chunks(&self.contents(&pairs, 0));
        let extents = self.write(&chunks, context, due);
        Run { pairs, extents }
    }

    /// Contents of pairs; `head` makes them differ from those with another one.
    fn contents(&self, pairs: &[Pair], head: u64) -> Vec<u64> {
        let salt = mix(self.shape.seed, head);
        let content = |pair: &Pair| mix(salt, u64::from(pair.key) << 32 | u64::from(pair.version));
        pairs.iter().map(content).collect()
    }

    /// Writes a file of these chunks.
    fn write(&mut self, chunks: &[u64], context: u64, due: &mut VecDeque<Made>) -> Vec<Extent> {
        let extents = self.extents.take(chunks.len() as u64 / 4);
        let mut from = 0;
        for &extent in &extents {
            let past = from + 4 * extent.pages as usize;
            self.requests(OpKind::Write, context, extent, &chunks[from..past], due);
            from = past;
        }
        extents
    }

    fn remove(&mut self, extents: &[Extent], due: &mut VecDeque<Made>) {
        for &extent in extents {
            self.requests(OpKind::Trim, 0, extent, &[], due);
            self.extents.give_back(extent);
        }
    }

    /// Requests for an extent, cut to the largest size.
    fn requests(&self, op: OpKind, context: u64, extent: Extent, chunks: &[u64], due: &mut VecDeque<Made>) {
        for done in (0..extent.pages).step_by(self.shape.request_pages as usize) {
            let pages = self.shape.request_pages.min(extent.pages - done);
            let of_it = 4 * done as usize..4 * (done + pages) as usize;
            due.push_back(Made {
                op,
                offset: (extent.first + done) * PAGE,
                length: (pages * PAGE) as u32,
                context,
                chunks: chunks.get(of_it).unwrap_or(&[]).to_vec(),
            });
        }
    }
}

/// The newest version of each key, by key.
fn newest(mut pairs: Vec<Pair>) -> Vec<Pair> {
    pairs.sort_unstable_by_key(|pair| (pair.key, std::cmp::Reverse(pair.version)));
    pairs.dedup_by_key(|pair| pair.key);
    pairs
}
