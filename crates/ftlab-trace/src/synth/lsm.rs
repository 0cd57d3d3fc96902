//! A tree of sorted runs as a key-value store writes it, with contents: a pair goes through log, flush and compactions.
//!
//! # Model
//! Keys are put by Zipf's law. Each put makes a new version of its pair, with a content of its own. When the buffer is
//! full, its puts are written to the log, and its newest versions are written in order of their keys (**flush**) as a
//! run of level 0, and the log is trimmed. When a level has `fanout` runs, they are read and merged into one run of the
//! next level (**compaction**), without the versions that newer ones replace. Then the merged runs are trimmed. So a
//! version that is not replaced is written once by the log, once by the flush, and once by each of up to `levels`
//! compactions. The last level merges its own runs: there a pair that is still valid is written again each time.
//!
//! Which pages and chunks are equal follows from the layout. Pairs of `pair` bytes lie one after the other or, with
//! `aligned`, in blocks of 4 KiB whose rest is empty (RocksDB's `block_align`). The content of a chunk of 1 KiB is
//! given by the parts of pairs in it, the content of a page by its four chunks.
//! * `log = record`: records of the log have a header, and are no copies of what tables hold.
//! * `log = table`: the log has the layout of a table (the modified log), in the order of the puts.
//! * `log = none`: there is none.
//!
//! Program contexts and labels: `log` is 1, `flush` 2, `compaction` 3 for those to level 1, 4 for those to level 2, and so on.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `keys` | different keys | 1 to 2^28 | as many as the span has room for, at most 100,000 |
//! | `theta` | exponent of the keys' popularity; 0 is uniform | 0 to 10 | 0.99 |
//! | `pair` | bytes of a pair | 64 B to 64 KiB | 1 KiB |
//! | `aligned` | blocks lie on pages | `true`, `false` | `true` |
//! | `log` | `record`, `table` or `none` | | `record` |
//! | `buffer` | bytes of pairs that are put before a flush | one pair to 1 GiB | 1 MiB |
//! | `levels` | compactions that a pair goes through on its way down | 1 to 16 | 5 |
//! | `fanout` | runs that are merged | 2 to 64 | 4 |
//! | `reads` | compactions read what they merge | `true`, `false` | `true` |
//! | `size` | bytes of the largest request, in pages of 4 KiB | 4 KiB to 1 GiB | 128 KiB |
//! | `span` | part of the drive that is used, from its start: a share, or bytes | | 1.0 |
//! | `requests` | reads, writes and trims | | 100,000 |
//! | `qd` | closed loop with this many requests outstanding | 1 to 1048576 | 32 |
//! | `rate` | open loop with this many requests a second, evenly, instead | above 0 | |
//! | `seed` | of this workload | | the run's seed |
//! # Not modelled
//! Keys of their own, indexes, filters and checksums in tables; deletions; reads of the store's users; compression; compactions of a part
//! of a level, which write a pair more often (RocksDB's `level` style: this is its `universal`).
//! # Cost
//! 8 bytes a pair of each run, 4 a key.
//! # Source
//! Kim's dissertation on program contexts in flash storage (Seoul National University 2019), sections 3.3 and 5.2: log, flush and compaction
//! write a pair, which can repeat as often as the tree has levels. O'Neil et al., "The log-structured merge-tree", 1996.

mod extents;
mod layout;
mod tree;

use std::collections::VecDeque;

use ftlab_core::{Batch, Error, OpKind, Result, units};
use serde_json::{Map, Value, json};

use self::extents::Extents;
use self::tree::{Log, Shape, Tree};
use super::{Arrivals, Keys, spec, zipf};

pub(super) const PAGE: u64 = 4096;
const MOST_KEYS: u64 = 1 << 28;
const DEFAULT_KEYS: u64 = 100_000;
const LABELS: [&str; 4] = ["none", "log", "flush", "compaction"];

/// One request of the store.
pub(super) struct Made {
    pub op: OpKind,
    pub offset: u64,
    pub length: u32,
    /// 1 is the log, 2 a flush, 3 and more compactions; 0 nobody.
    pub context: u64,
    /// Ids of its chunks; empty but for writes.
    pub chunks: Vec<u64>,
}

/// The workload being dealt out.
pub struct Lsm {
    tree: Tree,
    due: VecDeque<Made>,
    arrivals: Arrivals,
    requests: u64,
    pub(super) left: u64,
    given: u64,
    described: Map<String, Value>,
}

impl Lsm {
    pub fn new(keys: &mut Keys, logical_bytes: u64, run_seed: u64) -> Result<Self> {
        let seed = keys.count("seed")?.unwrap_or(run_seed);
        let span = spec::span(keys, logical_bytes)?;
        let arrivals = spec::arrivals(keys)?;
        let requests = keys.requests()?.unwrap_or(100_000);
        let theta = zipf::theta(keys, 0.99)?;
        let pair = keys.bytes_within("pair", 1024, 64..=64 << 10)?;
        let buffer = keys.bytes_within("buffer", 1 << 20, pair..=1 << 30)?;
        let size = keys.bytes_within("size", 128 << 10, PAGE..=1 << 30)?;
        let mut within = |key, default, range: std::ops::RangeInclusive<u64>| {
            let value = keys.count(key)?.unwrap_or(default);
            let expected = format!("{} to {}", range.start(), range.end());
            if range.contains(&value) {
                Ok(value)
            } else {
                Err(keys.wrong(key, &value.to_string(), &expected))
            }
        };
        let (levels, fanout) = (within("levels", 5, 1..=16)?, within("fanout", 4, 2..=64)?);
        let log = match keys.text("log").as_deref() {
            None | Some("record") => Log::Record,
            Some("table") => Log::Table,
            Some("none") => Log::None,
            Some(other) => return Err(keys.wrong("log", other, "record, table or none")),
        };
        let mut shape = Shape {
            keys: 0,
            theta,
            pair,
            aligned: keys.switch("aligned", true)?,
            log,
            buffered: (buffer / pair) as usize,
            levels: levels as usize,
            fanout: fanout as usize,
            reads: keys.switch("reads", true)?,
            request_pages: size / PAGE,
            seed,
        };
        let asked = keys.count("keys")?;
        if let Some(asked) = asked.filter(|asked| !(1..=MOST_KEYS).contains(asked)) {
            return Err(keys.wrong("keys", &asked.to_string(), "1 to 268435456"));
        }
        let room = span / PAGE;
        let fits = |keys: u64| Shape { keys, ..shape }.most_pages() <= room;
        shape.keys = match asked {
            Some(asked) if fits(asked) => asked,
            None if fits(1) => most(fits, DEFAULT_KEYS),
            _ => {
                let needed = Shape {
                    keys: asked.unwrap_or(1),
                    ..shape
                }
                .most_pages()
                    * PAGE;
                return Err(Error::input(format!(
                    "workload `lsm`: its tree may take {}, and the span has {}: expected fewer `keys`, a smaller `buffer`, or a larger drive",
                    units::show_bytes(needed),
                    units::show_bytes(span)
                )));
            }
        };
        let log = match log {
            Log::Record => "record",
            Log::Table => "table",
            Log::None => "none",
        };
        let mut described = Map::from_iter([
            ("keys".to_owned(), json!(shape.keys)),
            ("theta".to_owned(), json!(theta)),
            ("pair".to_owned(), json!(format!("{pair}B"))),
            ("aligned".to_owned(), json!(shape.aligned)),
            ("log".to_owned(), json!(log)),
            ("buffer".to_owned(), json!(format!("{buffer}B"))),
            ("levels".to_owned(), json!(levels)),
            ("fanout".to_owned(), json!(fanout)),
            ("reads".to_owned(), json!(shape.reads)),
            ("size".to_owned(), json!(format!("{size}B"))),
            ("span".to_owned(), json!(format!("{span}B"))),
            ("requests".to_owned(), json!(requests)),
            ("seed".to_owned(), json!(seed)),
        ]);
        match arrivals {
            Arrivals::Closed { queue_depth } => described.insert("qd".to_owned(), json!(queue_depth)),
            Arrivals::Open { per_second } => described.insert("rate".to_owned(), json!(per_second)),
        };
        Ok(Lsm {
            tree: Tree::new(shape, Extents::new(room)),
            due: VecDeque::new(),
            arrivals,
            requests,
            left: requests,
            given: 0,
            described,
        })
    }

    /// Fills a batch that is empty.
    pub fn fill(&mut self, batch: &mut Batch) {
        while self.left > 0 && batch.len() < Batch::TARGET {
            let Some(made) = self.due.pop_front() else {
                self.tree.go_on(&mut self.due);
                continue;
            };
            let time = match self.arrivals {
                Arrivals::Closed { .. } => 0,
                Arrivals::Open { per_second } => (self.given as f64 * 1e9 / per_second) as u64,
            };
            batch.push(time, made.op, made.offset, made.length, 0, 0);
            batch.pc.push(made.context);
            batch.label.push(made.context.min(3) as u16);
            for page in made.chunks.chunks(4) {
                batch.content.push(layout::page(page));
            }
            batch.chunk.extend(made.chunks);
            batch.content_end.push(batch.content.len() as u32);
            self.left -= 1;
            self.given += 1;
        }
    }

    pub fn describe(&self, into: &mut Map<String, Value>) {
        into.extend(self.described.clone());
    }

    pub fn labels(&self) -> &'static [&'static str] {
        &LABELS
    }

    pub fn arrivals(&self) -> Arrivals {
        self.arrivals
    }

    pub fn requests(&self) -> u64 {
        self.requests
    }
}

/// The largest number up to `limit` that fits, where 1 does and smaller ones fit if larger ones do.
fn most(fits: impl Fn(u64) -> bool, limit: u64) -> u64 {
    let (mut low, mut past) = (1, limit + 1);
    while past - low > 1 {
        let middle = low.midpoint(past);
        *if fits(middle) { &mut low } else { &mut past } = middle;
    }
    low
}

#[cfg(test)]
mod tests;
