//! What each program context, stream, label and process asks for, and how long its data lives.
//!
//! # Model
//! Up to 4096 contexts of a kind have figures of their own; beyond, those with the fewest bytes read and written go
//! (see [`Frequent`]) and their figures join `other`. Lifetimes and duplicates are those of the sampled pages and
//! values as they are: a single page or value of most of a context's accesses weighs too much or too little there. A
//! kind whose column is missing, or is 0 throughout (none), has no table.
//! # Memory
//! 1.1 KiB a context that writes: 18 MiB when all four kinds are full, which program contexts and process ids alone
//! reach in practice.

use ftlab_core::{Batch, OpKind};

use super::frequent::Frequent;
use super::inspection::share;
use super::octaves::{octave_of, place};
use super::{ContextFigures, ContextTable};
use crate::write::Names;

const KINDS: [&str; 4] = ["pc", "stream", "label", "pid"];
const MOST: usize = 4096;
const ROWS: usize = 32;
const PC: usize = 0;
const LABEL: usize = 2;

/// The contexts of a request or of what a page holds, one of each kind.
pub type Ids = [u16; 4];

/// No context of any kind.
pub const NO_CONTEXTS: Ids = [u16::MAX; 4];

#[derive(Default)]
pub struct Contexts {
    tables: [Option<Table>; 4],
}

struct Table {
    ids: Frequent<u64>,
    figures: Vec<Context>,
    dropped: Context,
    /// Contexts entered; some more than once when any was dropped.
    entered: u64,
    not_zero: bool,
}

#[derive(Clone, Default)]
struct Context {
    requests: [u64; 4],
    bytes: [u64; 4],
    write_sizes: Lazy<33>,
    /// Page writes of the sample, and lives of them that ended by half octaves of ticks, both weighted.
    page_writes: u64,
    lives: Lazy<HALVES>,
    ids: u64,
    duplicates: u64,
    labels: Labels,
}

/// Labels of a context's requests: those that came first, a few of them, and the bytes read and written of each.
#[derive(Clone, Default)]
struct Labels(Vec<(u16, [u64; 2])>);

/// Labels of a context that are told apart; what has more is no context of one kind of data.
const MOST_LABELS: usize = 16;

impl Labels {
    #[inline]
    fn add(&mut self, label: u16, bytes: [u64; 2]) {
        if let Some((_, sums)) = self.0.iter_mut().find(|(known, _)| *known == label) {
            *sums = [sums[0] + bytes[0], sums[1] + bytes[1]];
        } else if self.0.len() < MOST_LABELS {
            self.0.push((label, bytes));
        }
    }

    /// The label of most of the bytes written, of a context that writes nothing of those read; and how many these are.
    fn main(&self, writes: bool) -> Option<(u16, u64)> {
        let of = |sums: [u64; 2]| sums[usize::from(writes)];
        let most = self
            .0
            .iter()
            .max_by_key(|(label, sums)| (of(*sums), std::cmp::Reverse(*label)));
        most.map(|&(label, sums)| (label, of(sums)))
            .filter(|(_, bytes)| *bytes > 0)
    }
}

/// Steps of [`half_of`]; the last one holds all from 2^47 on.
const HALVES: usize = 96;

/// Counts that take memory only once there is one.
#[derive(Clone, Default)]
struct Lazy<const N: usize>(Option<Box<[u64; N]>>);

impl<const N: usize> Lazy<N> {
    #[inline]
    fn add(&mut self, at: usize, weight: u64) {
        self.0.get_or_insert_with(|| Box::new([0; N]))[at.min(N - 1)] += weight;
    }

    fn merge(&mut self, other: &Lazy<N>) {
        if let Some(counts) = &other.0 {
            counts
                .iter()
                .enumerate()
                .filter(|(_, c)| **c > 0)
                .for_each(|(at, &count)| self.add(at, count));
        }
    }

    fn counts(&self) -> &[u64] {
        self.0.as_ref().map_or(&[], |counts| counts.as_slice())
    }

    /// The place where a share `q` of the weight is reached, and how far into it.
    fn place(&self, q: f64) -> Option<(usize, f64)> {
        place(self.counts(), self.counts().iter().sum(), q)
    }
}

impl Contexts {
    /// Whether request columns of a batch carry any context.
    pub fn carried(batch: &Batch) -> bool {
        !(batch.pc.is_empty() && batch.stream.is_empty() && batch.label.is_empty() && batch.pid.is_empty())
    }

    /// Enters request `i`. `renumber` is called with a kind and the new places of its contexts when some were dropped.
    pub fn enter(&mut self, batch: &Batch, i: usize, mut renumber: impl FnMut(usize, &[Option<u32>])) -> Ids {
        let columns = [
            batch.pc.get(i).copied(),
            batch.stream.get(i).map(|&id| u64::from(id)),
            batch.label.get(i).map(|&id| u64::from(id)),
            batch.pid.get(i).map(|&id| u64::from(id)),
        ];
        let mut ids = NO_CONTEXTS;
        for (kind, id) in columns.into_iter().enumerate() {
            if let Some(id) = id {
                let table = self.tables[kind].get_or_insert_with(Table::new);
                let at = table.enter(id, batch.op[i], batch.length[i], |places| renumber(kind, places));
                if let (true, Some(&label)) = (kind != LABEL, batch.label.get(i)) {
                    table.label(at, label, batch.op[i], batch.length[i]);
                }
                ids[kind] = at as u16;
            }
        }
        ids
    }

    #[inline]
    fn each(&mut self, ids: Ids, mut change: impl FnMut(&mut Context)) {
        if ids == NO_CONTEXTS {
            return;
        }
        for (table, id) in self.tables.iter_mut().zip(ids) {
            if let Some(context) = table.as_mut().and_then(|t| t.figures.get_mut(usize::from(id))) {
                change(context);
            }
        }
    }

    /// These contexts wrote pages of the sample that stand for `weight` pages.
    #[inline]
    pub fn wrote(&mut self, ids: Ids, weight: u64) {
        self.each(ids, |context| context.page_writes += weight);
    }

    /// What these contexts wrote was overwritten or trimmed after so many ticks.
    #[inline]
    pub fn end_life(&mut self, ids: Ids, ticks: u64, weight: u64) {
        self.each(ids, |context| context.lives.add(half_of(ticks), weight));
    }

    /// These contexts wrote so many content ids of the sample, of which so many were duplicates.
    pub fn wrote_content(&mut self, ids: Ids, written: u64, duplicates: u64) {
        self.each(ids, |context| {
            context.ids += written;
            context.duplicates += duplicates;
        });
    }

    /// Labels go by their numbers until [`rename`].
    pub fn finish(&self) -> Vec<ContextTable> {
        let tables = self.tables.iter().enumerate();
        let seen = tables.filter_map(|(kind, table)| table.as_ref().map(|table| (kind, table)));
        seen.filter(|(kind, table)| table.not_zero || *kind == LABEL)
            .map(|(kind, table)| table.finish(kind))
            .collect()
    }
}

impl Table {
    fn new() -> Self {
        Table {
            ids: Frequent::new(MOST),
            figures: Vec::new(),
            dropped: Context::default(),
            entered: 0,
            not_zero: false,
        }
    }

    #[inline]
    fn enter(&mut self, id: u64, op: OpKind, length: u32, renumber: impl FnOnce(&[Option<u32>])) -> u32 {
        let bytes = u64::from(length);
        let weight = if matches!(op, OpKind::Read | OpKind::Write) {
            bytes
        } else {
            0
        };
        let (figures, dropped) = (&mut self.figures, &mut self.dropped);
        let at = self.ids.add(id, weight, |places| {
            let mut place = places.iter();
            figures.retain(|context| {
                let kept = place.next().is_some_and(Option::is_some);
                if !kept {
                    dropped.merge(context);
                }
                kept
            });
            renumber(places);
        });
        if at as usize == self.figures.len() {
            self.figures.push(Context::default());
            self.entered += 1;
            self.not_zero |= id != 0;
        }
        let context = &mut self.figures[at as usize];
        context.requests[op as usize] += 1;
        context.bytes[op as usize] += bytes;
        if op == OpKind::Write {
            context.write_sizes.add(octave_of(bytes), 1);
        }
        at
    }

    #[inline]
    fn label(&mut self, at: u32, label: u16, op: OpKind, length: u32) {
        let bytes = u64::from(length);
        match op {
            OpKind::Read => self.figures[at as usize].labels.add(label, [bytes, 0]),
            OpKind::Write => self.figures[at as usize].labels.add(label, [0, bytes]),
            OpKind::Trim | OpKind::Flush => {}
        }
    }

    fn finish(&self, kind: usize) -> ContextTable {
        let mut order: Vec<usize> = (0..self.figures.len()).collect();
        let rank = |&at: &usize| {
            let [read, written, ..] = self.figures[at].bytes;
            (std::cmp::Reverse((written, read)), self.ids.keys()[at])
        };
        order.sort_by_key(rank);
        let mut all = self.dropped.clone();
        self.figures.iter().for_each(|context| all.merge(context));
        let all_written = all.bytes[OpKind::Write as usize];
        let mut rest = self.dropped.clone();
        order.iter().skip(ROWS).for_each(|&at| rest.merge(&self.figures[at]));
        let row = |&at: &usize| {
            let id = self.ids.keys()[at];
            self.figures[at].finish(context_name(kind, id), id, all_written)
        };
        let exact = self.ids.error() == 0 && self.entered == self.figures.len() as u64;
        ContextTable {
            kind: KINDS[kind].to_owned(),
            contexts: if exact { self.entered } else { self.figures.len() as u64 },
            exact,
            error_bytes: self.ids.error(),
            rows: order.iter().take(ROWS).map(row).collect(),
            other: (rest.requests != [0; 4]).then(|| rest.finish("other".to_owned(), 0, all_written)),
        }
    }
}

/// What a context of a kind is called where the trace has no name for it.
fn context_name(kind: usize, id: u64) -> String {
    match kind {
        PC => format!("{id:#018x}"),
        _ => id.to_string(),
    }
}

/// Puts the labels' names in a finished table, as far as there are any.
pub fn rename(table: &mut ContextTable, names: &Names) {
    for main in table
        .rows
        .iter_mut()
        .chain(&mut table.other)
        .filter_map(|row| row.main_label.as_mut())
    {
        if let Some(name) = main.parse().ok().and_then(|id: usize| names.labels.get(id)) {
            main.clone_from(name);
        }
    }
    if table.kind == KINDS[LABEL] {
        for row in &mut table.rows {
            if let Some(name) = names.labels.get(row.id as usize) {
                row.name.clone_from(name);
            }
        }
    }
}

impl Context {
    fn merge(&mut self, other: &Context) {
        for op in 0..4 {
            self.requests[op] += other.requests[op];
            self.bytes[op] += other.bytes[op];
        }
        self.write_sizes.merge(&other.write_sizes);
        self.lives.merge(&other.lives);
        self.page_writes += other.page_writes;
        self.ids += other.ids;
        self.duplicates += other.duplicates;
        for &(label, bytes) in &other.labels.0 {
            self.labels.add(label, bytes);
        }
    }

    fn finish(&self, name: String, id: u64, all_written: u64) -> ContextFigures {
        let [reads, writes, trims, _] = self.requests;
        let [bytes_read, bytes_written, ..] = self.bytes;
        let ended: u64 = self.lives.counts().iter().sum();
        let lifetime = |q| self.lives.place(q).map(|(at, inside)| within_half(at, inside));
        let median_write = self.write_sizes.place(0.5);
        let main = self.labels.main(bytes_written > 0);
        let of_all = if bytes_written > 0 { bytes_written } else { bytes_read };
        ContextFigures {
            name,
            id,
            requests: self.requests.iter().sum(),
            reads,
            writes,
            trims,
            bytes_read,
            bytes_written,
            write_share_bytes: share(bytes_written, all_written),
            read_share: share(reads, reads + writes),
            mean_read_bytes: share(bytes_read, reads),
            mean_write_bytes: share(bytes_written, writes),
            median_write_bytes: median_write.map(|(octave, _)| {
                if octave == 0 {
                    0.0
                } else {
                    libm::exp2(octave as f64 - 1.0)
                }
            }),
            lifetime_p10_ticks: lifetime(0.1),
            lifetime_p50_ticks: lifetime(0.5),
            lifetime_p90_ticks: lifetime(0.9),
            main_label: main.map(|(label, _)| label.to_string()),
            main_label_share: main.and_then(|(_, bytes)| share(bytes, of_all)),
            ended_share: share(ended, self.page_writes),
            duplicate_share: share(self.duplicates, self.ids),
        }
    }
}

/// 0 for 0; from there two steps to the octave: 1 for 1, 3 for 2, 4 for 3, 5 for 4 and 5, …
#[inline]
fn half_of(value: u64) -> usize {
    let octave = octave_of(value);
    if octave < 2 {
        return octave;
    }
    2 * octave - 1 + (value >> (octave - 2) & 1) as usize
}

/// The value a part of the way through a half octave.
fn within_half(half: usize, part: f64) -> f64 {
    if half < 2 {
        return half as f64;
    }
    let octave = half.div_ceil(2);
    let low = (1u64 << (octave - 1).min(63)) as f64;
    let (low, width) = if half % 2 == 1 {
        (low, low / 2.0)
    } else {
        (low * 1.5, low / 2.0)
    };
    // Whole numbers, so the last one in it lies one below the next half.
    low + part * (width - 1.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(contexts: &mut Contexts, pc: u64, label: u16, op: OpKind, length: u32) -> Ids {
        let mut batch = Batch::default();
        batch.push(0, op, 0, length, 0, 0);
        batch.pc.push(pc);
        batch.label.push(label);
        contexts.enter(&batch, 0, |_, _| ())
    }

    #[test]
    fn two_contexts() {
        let mut contexts = Contexts::default();
        let a = enter(&mut contexts, 0xab, 1, OpKind::Write, 8192);
        contexts.wrote(a, 2);
        contexts.end_life(a, 100, 1);
        contexts.wrote_content(a, 2, 1);
        enter(&mut contexts, 0xcd, 0, OpKind::Read, 4096);
        enter(&mut contexts, 0xab, 0, OpKind::Read, 4096);
        let names = Names {
            volumes: Vec::new(),
            labels: vec!["journal".to_owned()],
        };
        let mut tables = contexts.finish();
        tables.iter_mut().for_each(|table| rename(table, &names));
        assert_eq!(
            tables.iter().map(|t| t.kind.as_str()).collect::<Vec<_>>(),
            ["pc", "label"]
        );
        let row = &tables[0].rows[0];
        assert_eq!(
            (row.name.as_str(), row.requests, row.read_share),
            ("0x00000000000000ab", 2, Some(0.5))
        );
        assert_eq!(
            (row.bytes_written, row.write_share_bytes, row.median_write_bytes),
            (8192, Some(1.0), Some(8192.0))
        );
        assert_eq!((row.ended_share, row.duplicate_share), (Some(0.5), Some(0.5)));
        // What it read was labelled otherwise.
        assert_eq!(
            (row.main_label.as_deref(), row.main_label_share),
            (Some("1"), Some(1.0))
        );
        let reader = &tables[0].rows[1];
        assert_eq!(
            (reader.main_label.as_deref(), reader.main_label_share),
            (Some("journal"), Some(1.0))
        );
        assert_eq!(tables[1].rows[0].main_label, None);
        let p50 = row.lifetime_p50_ticks.unwrap();
        assert!((96.0..128.0).contains(&p50), "{p50}");
        assert_eq!(
            (tables[0].contexts, tables[0].exact, tables[0].other.is_none()),
            (2, true, true)
        );
        assert_eq!(
            tables[1].rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(),
            ["1", "journal"]
        );
    }

    #[test]
    fn many_contexts_lose_the_small_ones_and_keep_the_sums() {
        let mut contexts = Contexts::default();
        let mut dropped = 0;
        for i in 0..60_000u64 {
            let mut batch = Batch::default();
            batch.push(0, OpKind::Write, 0, if i % 2 == 0 { 65536 } else { 512 }, 0, 0);
            batch
                .pid
                .push(if i % 2 == 0 { (i % 10) as u32 } else { 100 + i as u32 });
            contexts.enter(&batch, 0, |kind, places| {
                assert_eq!(kind, 3);
                dropped += places.iter().filter(|p| p.is_none()).count();
            });
        }
        assert!(dropped > 20_000);
        let table = &contexts.finish()[0];
        assert!(!table.exact && table.error_bytes >= 512);
        let hot: Vec<u64> = table.rows[..5].iter().map(|row| row.id).collect();
        assert_eq!(hot, [0, 2, 4, 6, 8]);
        assert!(table.rows[..5].iter().all(|row| row.writes == 6000));
        let writes: u64 = table.rows.iter().chain(&table.other).map(|row| row.writes).sum();
        assert_eq!(writes, 60_000);
    }

    #[test]
    fn half_octaves_are_contiguous() {
        let mut last = 0;
        for value in 0..100_000 {
            let half = half_of(value);
            let next = if value == 2 { 3 } else { last + 1 };
            assert!(
                half == last || half == next && within_half(half, 0.0) == value as f64,
                "{value}: {half}"
            );
            last = half;
            if half < 2 {
                continue;
            }
            assert!(within_half(half, 1.0) + 1.0 >= value as f64, "{value}");
        }
        // The last step of the last octave; `Lazy` counts it in its own last place.
        assert_eq!(half_of(u64::MAX), 128);
    }
}
