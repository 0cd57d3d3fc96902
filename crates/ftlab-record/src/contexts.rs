//! What the program contexts of a recording are like: who writes, how much, how long it lives, how much of it is there already.
//!
//! # Model
//! The recording is replayed into requests to a device, and what reaches the device counts. A context is charged with the pages
//! of 4 KiB that it wrote last before they went down.
//!
//! | figure | what |
//! | --- | --- |
//! | calls, bytes | writes of the program, before the page cache |
//! | pages, requests | what of it reached the device |
//! | synchronous | share of the pages for which somebody waited: `fsync`, `O_SYNC`, direct I/O |
//! | lifetime | from the write of a page to its overwrite or trim: in pages written to the device since, and in time |
//! | ended, live | pages whose life ended within the recording, and those that were there at its end |
//! | duplicate pages, chunks | share of the pages of 4 KiB, or the chunks of 1 KiB, whose content lay elsewhere on the device when they were written |
//!
//! Quantiles are those of a histogram with 16 steps an octave: within 3 %. Lifetimes are those that ended; what lives on has a longer
//! one, so medians of contexts with much live data are too low.
//! # Not modelled
//! Contents that are not known (outside of recordings with contents, and pages that could not be read back) are no duplicates, and not
//! counted.
//! # Source
//! Lifetimes in writes, and duplicates by I/O activity: T. Kim, PhD thesis, Seoul National University 2019, chapters 3 and 4.

use std::io::Read;

use ftlab_core::request::flags;
use ftlab_core::{Error, OpKind, Result};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::recording::{Call, Calls, Context, Op, Process, Reader, Tables};
use crate::replay::{Content, Options, Replay, Request};

pub const SCHEMA: &str = "ftlab.contexts/1";

/// Everything about the contexts of a recording; those that wrote most to the device come first.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    pub command: Vec<String>,
    pub signature: String,
    pub exact: bool,
    pub content: bool,
    pub replay: String,
    pub processes: usize,
    pub files: usize,
    pub duration_ns: u64,
    /// All calls, and of them the writes.
    pub calls: u64,
    pub write_calls: u64,
    pub write_bytes: u64,
    /// What reached the device.
    pub write_requests: u64,
    pub pages: u64,
    pub read_requests: u64,
    pub flushes: u64,
    pub trimmed_pages: u64,
    pub contexts: Vec<ContextReport>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ContextReport {
    /// As hexadecimal digits.
    pub signature: String,
    /// Name of the program that was seen with it first.
    pub program: String,
    /// Names of the functions of the call path, the innermost first, where they are known.
    pub path: Vec<String>,
    /// The path from the first function on that tells the context from most others of its program.
    pub telling: Vec<String>,
    pub frames: Vec<FrameReport>,
    pub calls: u64,
    pub bytes: u64,
    pub requests: u64,
    pub pages: u64,
    /// Shares of all requests and pages.
    pub request_share: f64,
    pub page_share: f64,
    pub synchronous_share: f64,
    pub ended: u64,
    pub live: u64,
    /// In pages of 4 KiB written to the device.
    pub lifetime_pages: Option<Quantiles>,
    pub lifetime_ns: Option<Quantiles>,
    pub duplicate_pages: Option<f64>,
    pub duplicate_chunks: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FrameReport {
    pub module: String,
    pub offset: u64,
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    pub p10: f64,
    pub p25: f64,
    pub median: f64,
    pub p75: f64,
    pub p90: f64,
    pub mean: f64,
    /// Standard deviation over mean.
    pub variation: f64,
}

/// Reads a recording to its end. `watch` is told the number of calls now and then, and stops the work by answering false.
///
/// With `by`, contexts become activities: each name is a function or a program, and contexts that go through it (through the first
/// of the names that they go through) are taken together; the others are `other`.
pub fn report<R: Read>(
    mut reader: Reader<R>,
    options: &Options,
    by: &[String],
    mut watch: impl FnMut(u64) -> bool,
) -> Result<Report> {
    let tables = reader.tables().clone();
    let mut replay = Replay::new(options.clone(), &tables);
    let mut tally = Tally::new(&tables);
    let mut calls = Calls::default();
    loop {
        reader.read(&mut calls)?;
        if calls.ops.is_empty() {
            break;
        }
        for (op, contents) in calls.iter() {
            tally.call(op);
            replay.apply(op, contents)?;
            tally.requests(&mut replay);
        }
        if !watch(tally.calls) {
            return Err(Error::Interrupted);
        }
    }
    replay.finish()?;
    tally.requests(&mut replay);
    match by {
        [] => Ok(tally.finish(&tables, options)),
        names => {
            let (tally, tables) = tally.by_activity(&tables, names);
            Ok(tally.finish(&tables, options))
        }
    }
}

struct Tally {
    contexts: Vec<Figures>,
    calls: u64,
    last_ns: u64,
    /// What lies in each page of the device.
    device: FxHashMap<u64, Lying>,
    pages: Live,
    chunks: Live,
    requests: [u64; 4],
    /// Pages written so far.
    tick: u64,
    trimmed: u64,
}

struct Lying {
    context: u32,
    tick: u64,
    time_ns: u64,
    content: Content,
}

#[derive(Clone, Default)]
struct Figures {
    calls: u64,
    bytes: u64,
    requests: u64,
    pages: u64,
    synchronous: u64,
    ticks: Spread,
    times: Spread,
    known_pages: u64,
    duplicate_pages: u64,
    known_chunks: u64,
    duplicate_chunks: u64,
}

impl Figures {
    fn join(&mut self, other: &Figures) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.requests += other.requests;
        self.pages += other.pages;
        self.synchronous += other.synchronous;
        self.ticks.join(&other.ticks);
        self.times.join(&other.times);
        self.known_pages += other.known_pages;
        self.duplicate_pages += other.duplicate_pages;
        self.known_chunks += other.known_chunks;
        self.duplicate_chunks += other.duplicate_chunks;
    }
}

/// How many places of the device hold each content.
#[derive(Default)]
struct Live(FxHashMap<u64, u32>);

impl Live {
    /// Whether the content is there already.
    fn put(&mut self, content: u64) -> bool {
        let places = self.0.entry(content).or_insert(0);
        *places += 1;
        *places > 1
    }

    fn take(&mut self, content: u64) {
        if let Some(places) = self.0.get_mut(&content) {
            *places -= 1;
            if *places == 0 {
                self.0.remove(&content);
            }
        }
    }
}

impl Tally {
    fn new(tables: &Tables) -> Self {
        Tally {
            contexts: vec![Figures::default(); tables.contexts.len().max(1)],
            calls: 0,
            last_ns: 0,
            device: FxHashMap::default(),
            pages: Live::default(),
            chunks: Live::default(),
            requests: [0; 4],
            tick: 0,
            trimmed: 0,
        }
    }

    fn call(&mut self, op: &Op) {
        self.calls += 1;
        self.last_ns = op.time_ns;
        if op.call == Call::Write {
            let figures = &mut self.contexts[op.context as usize];
            figures.calls += 1;
            figures.bytes += op.length;
        }
    }

    fn requests(&mut self, replay: &mut Replay) {
        let mut from = 0;
        for request in replay.requests() {
            let contents = replay.contents().get(from..request.contents_end).unwrap_or(&[]);
            from = request.contents_end;
            self.requests[request.op as usize] += 1;
            match request.op {
                OpKind::Write => self.write(request, contents),
                OpKind::Trim => {
                    let first = request.offset / 4096;
                    for page in first..first + u64::from(request.length) / 4096 {
                        self.trimmed += u64::from(self.end_life(page, request.time_ns));
                    }
                }
                OpKind::Read | OpKind::Flush => {}
            }
        }
        replay.clear();
    }

    fn write(&mut self, request: &Request, contents: &[Content]) {
        let context = request.context as usize;
        self.contexts[context].requests += 1;
        let first = request.offset / 4096;
        for (i, page) in (first..first + u64::from(request.length) / 4096).enumerate() {
            self.end_life(page, request.time_ns);
            let content = contents.get(i).copied().unwrap_or_default();
            let figures = &mut self.contexts[context];
            figures.pages += 1;
            figures.synchronous += u64::from(request.flags & flags::SYNC != 0);
            if content.page != 0 {
                figures.known_pages += 1;
                figures.duplicate_pages += u64::from(self.pages.put(content.page));
            }
            for chunk in content.chunks.into_iter().filter(|&chunk| chunk != 0) {
                figures.known_chunks += 1;
                figures.duplicate_chunks += u64::from(self.chunks.put(chunk));
            }
            let lying = Lying {
                context: request.context,
                tick: self.tick,
                time_ns: request.time_ns,
                content,
            };
            self.device.insert(page, lying);
            self.tick += 1;
        }
    }

    /// What lay in a page is gone; whether anything did.
    fn end_life(&mut self, page: u64, now: u64) -> bool {
        let Some(lying) = self.device.remove(&page) else {
            return false;
        };
        let figures = &mut self.contexts[lying.context as usize];
        figures.ticks.add(self.tick - lying.tick);
        figures.times.add(now.saturating_sub(lying.time_ns));
        self.pages.take(lying.content.page);
        lying
            .content
            .chunks
            .into_iter()
            .for_each(|chunk| self.chunks.take(chunk));
        true
    }

    /// The figures of activities, and tables in which these stand for contexts.
    fn by_activity(self, tables: &Tables, names: &[String]) -> (Tally, Tables) {
        let other = names.len() as u32;
        let activity = |context: &Context| {
            let program = tables.processes.get(context.process as usize);
            let program = program.map_or("", |process| last_part(&process.program));
            let functions: Vec<String> = context.frames.iter().map(|frame| short(&frame.name)).collect();
            let through = |name: &String| name == program || functions.iter().any(|f| is_called(f, name));
            names.iter().position(through).map_or(other, |at| at as u32)
        };
        let of: Vec<u32> = tables.contexts.iter().map(activity).collect();
        let mut joined = Tally {
            contexts: vec![Figures::default(); names.len() + 1],
            ..self
        };
        for (figures, &activity) in self.contexts.iter().zip(&of) {
            joined.contexts[activity as usize].join(figures);
        }
        for lying in joined.device.values_mut() {
            lying.context = of.get(lying.context as usize).copied().unwrap_or(other);
        }
        let titles = names.iter().map(String::as_str).chain(["other"]);
        let process = |title: &str| Process {
            program: title.to_owned(),
            ..Process::default()
        };
        let named = Tables {
            processes: titles.map(process).collect(),
            contexts: (0..=other)
                .map(|process| Context {
                    process,
                    ..Context::default()
                })
                .collect(),
            ..tables.clone()
        };
        (joined, named)
    }

    fn finish(mut self, tables: &Tables, options: &Options) -> Report {
        let mut live = vec![0u64; self.contexts.len()];
        self.device.values().for_each(|lying| live[lying.context as usize] += 1);
        let written = self.requests[OpKind::Write as usize];
        let mut contexts: Vec<(usize, ContextReport)> = Vec::new();
        for (number, figures) in self.contexts.iter_mut().enumerate() {
            if figures.calls == 0 && figures.pages == 0 {
                continue;
            }
            let known = ContextReport {
                calls: figures.calls,
                bytes: figures.bytes,
                requests: figures.requests,
                pages: figures.pages,
                request_share: share(figures.requests, written).unwrap_or(0.0),
                page_share: share(figures.pages, self.tick).unwrap_or(0.0),
                synchronous_share: share(figures.synchronous, figures.pages).unwrap_or(0.0),
                ended: figures.ticks.count,
                live: live[number],
                lifetime_pages: figures.ticks.quantiles(),
                lifetime_ns: figures.times.quantiles(),
                duplicate_pages: share(figures.duplicate_pages, figures.known_pages),
                duplicate_chunks: share(figures.duplicate_chunks, figures.known_chunks),
                ..ContextReport::default()
            };
            contexts.push((number, known));
        }
        contexts.sort_by_key(|(number, c)| (std::cmp::Reverse((c.pages, c.bytes)), *number));
        let named = contexts
            .into_iter()
            .map(|(number, context)| match tables.contexts.get(number) {
                Some(entry) => name(context, entry, tables),
                None => context,
            });
        let mut contexts: Vec<ContextReport> = named.collect();
        find_telling(&mut contexts);
        Report {
            schema: SCHEMA,
            command: tables.command.clone(),
            signature: tables.signature.clone(),
            exact: tables.exact,
            content: tables.content,
            replay: options.show(),
            processes: tables.processes.len(),
            files: tables.files.len().saturating_sub(1),
            duration_ns: self.last_ns,
            calls: self.calls,
            write_calls: self.contexts.iter().map(|figures| figures.calls).sum(),
            write_bytes: self.contexts.iter().map(|figures| figures.bytes).sum(),
            write_requests: written,
            pages: self.tick,
            read_requests: self.requests[OpKind::Read as usize],
            flushes: self.requests[OpKind::Flush as usize],
            trimmed_pages: self.trimmed,
            contexts,
            notes: tables.notes.clone(),
        }
    }
}

/// Fills in who a context is.
fn name(known: ContextReport, context: &Context, tables: &Tables) -> ContextReport {
    let frames = context.frames.iter().map(|frame| FrameReport {
        module: tables
            .modules
            .get(frame.module as usize)
            .map_or(String::new(), |module| module.path.clone()),
        offset: frame.offset,
        name: frame.name.clone(),
    });
    let frames: Vec<FrameReport> = frames.collect();
    let process = tables.processes.get(context.process as usize);
    ContextReport {
        signature: format!("{:016x}", context.signature),
        program: process.map_or(String::new(), |process| last_part(&process.program).to_owned()),
        path: path(&frames),
        frames,
        ..known
    }
}

/// Leaves out the innermost functions that more than half of the contexts of a program go through: the way every write takes.
fn find_telling(contexts: &mut [ContextReport]) {
    let mut users: FxHashMap<(&str, &str), usize> = FxHashMap::default();
    let mut all: FxHashMap<&str, usize> = FxHashMap::default();
    for context in contexts.iter() {
        *all.entry(&context.program).or_default() += 1;
        let mut functions: Vec<&str> = context.path.iter().map(String::as_str).collect();
        functions.sort_unstable();
        functions.dedup();
        for function in functions {
            *users.entry((&context.program, function)).or_default() += 1;
        }
    }
    let starts = contexts.iter().map(|context| {
        let of_all = all.get(context.program.as_str()).copied().unwrap_or(0);
        let rare = |function: &String| {
            let users = users
                .get(&(context.program.as_str(), function.as_str()))
                .copied()
                .unwrap_or(0);
            2 * users <= of_all
        };
        context.path.iter().position(rare).unwrap_or(0)
    });
    let starts: Vec<usize> = starts.collect();
    for (context, start) in contexts.iter_mut().zip(starts) {
        context.telling = context.path[start..].to_vec();
        context.telling.dedup();
    }
}

/// The named functions; where there are none, the places of the innermost frames.
fn path(frames: &[FrameReport]) -> Vec<String> {
    // What runs before `main` says nothing about a program.
    let tells = |f: &&FrameReport| !f.name.is_empty() && f.name != "_start" && !f.name.starts_with("__libc_start");
    let named: Vec<String> = frames.iter().filter(tells).map(|f| short(&f.name)).collect();
    if !named.is_empty() {
        return named;
    }
    let places = frames.iter().take(3);
    places
        .map(|f| format!("{}+{:#x}", last_part(&f.module), f.offset))
        .collect()
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A function's name without parameters of functions and templates.
fn short(name: &str) -> String {
    let mut shown = String::new();
    let mut depth = 0u32;
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && !shown.is_empty() && !shown.ends_with(':') => break,
            c if depth == 0 => shown.push(c),
            _ => {}
        }
    }
    // Operators and the like have no letters left.
    if shown.chars().any(char::is_alphanumeric) {
        shown
    } else {
        name.to_owned()
    }
}

/// Whether a function goes by this name, with or without what it belongs to: `FlushJob::Run` names `rocksdb::FlushJob::Run`.
fn is_called(function: &str, name: &str) -> bool {
    function
        .strip_suffix(name)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// How values are spread: a histogram of 16 steps an octave, and the first two moments.
#[derive(Clone, Default)]
struct Spread {
    counts: Vec<u64>,
    count: u64,
    sum: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, value: u64) {
        let step = step_of(value);
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
        self.count += 1;
        self.sum += value as f64;
        self.squares += value as f64 * value as f64;
    }

    fn join(&mut self, other: &Spread) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts
            .iter_mut()
            .zip(&other.counts)
            .for_each(|(n, more)| *n += more);
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn quantiles(&self) -> Option<Quantiles> {
        if self.count == 0 {
            return None;
        }
        let at = |q: f64| {
            let wanted = ((q * self.count as f64) as u64).min(self.count - 1);
            let mut passed = 0;
            let step = self.counts.iter().position(|&n| {
                passed += n;
                passed > wanted
            });
            middle_of(step.unwrap_or(0))
        };
        let mean = self.sum / self.count as f64;
        let variance = (self.squares / self.count as f64 - mean * mean).max(0.0);
        Some(Quantiles {
            p10: at(0.1),
            p25: at(0.25),
            median: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            mean,
            variation: if mean > 0.0 { variance.sqrt() / mean } else { 0.0 },
        })
    }
}

/// Values below 16 have a step each; above, 16 steps an octave.
fn step_of(value: u64) -> usize {
    if value < 16 {
        return value as usize;
    }
    let octave = value.ilog2() - 4;
    (16 * (octave as usize + 1)) + ((value >> octave) as usize - 16)
}

fn middle_of(step: usize) -> f64 {
    if step < 16 {
        return step as f64;
    }
    let octave = (step / 16 - 1) as u32;
    let low = ((16 + step % 16) as u64) << octave;
    low as f64 + ((1u64 << octave) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_their_values() {
        for value in [0, 1, 15, 16, 17, 31, 32, 1000, 123_456_789, u64::MAX >> 1] {
            let middle = middle_of(step_of(value));
            assert!(
                (middle - value as f64).abs() <= value as f64 * 0.032,
                "{value} {middle}"
            );
        }
        assert!((0..100_000).map(step_of).is_sorted());
    }

    #[test]
    fn names_are_shown_without_parameters() {
        for (name, shown) in [
            (
                "rocksdb::log::Writer::AddRecord(rocksdb::Slice const&)",
                "rocksdb::log::Writer::AddRecord",
            ),
            (
                "std::vector<int, std::allocator<int> >::push_back(int&&)",
                "std::vector::push_back",
            ),
            ("(anonymous namespace)::flush(int)", "(anonymous namespace)::flush"),
            ("main", "main"),
        ] {
            assert_eq!(short(name), shown);
        }
    }

    #[test]
    fn the_telling_part_of_a_path_starts_where_contexts_part() {
        let context = |path: &[&str]| ContextReport {
            program: "store".to_owned(),
            path: path.iter().map(|&f| f.to_owned()).collect(),
            ..ContextReport::default()
        };
        let mut contexts = vec![
            context(&["write", "append", "log", "main"]),
            context(&["write", "append", "flush", "flush", "main"]),
            context(&["write", "compact", "main"]),
            context(&["write", "append", "main"]),
        ];
        find_telling(&mut contexts);
        // `write` and `main` are in all four, `append` in three; the last one has nothing of its own.
        let telling: Vec<String> = contexts.iter().map(|c| c.telling.join(" ")).collect();
        assert_eq!(telling, ["log main", "flush main", "compact main", "write append main"]);
    }

    /// The sample: the log's page (context 1) is written and synced at 1 ms, the table's two pages (context 2) expire with the
    /// 30 s, the second is written again at 40 s and goes down when that has expired; the log is removed at 41 s.
    #[test]
    fn lifetimes_and_duplicates_of_the_sample() {
        let bytes = crate::recording::sample().unwrap();
        let reader = Reader::new("sample", bytes.as_slice()).unwrap();
        let found = report(reader, &Options::default(), &[], |_| true).unwrap();
        assert_eq!((found.calls, found.write_calls, found.write_bytes), (6, 3, 16384));
        assert_eq!((found.pages, found.flushes, found.trimmed_pages), (4, 1, 1));
        let [table, log] = found.contexts.as_slice() else {
            panic!("{:?}", found.contexts)
        };
        assert_eq!(
            (table.signature.as_str(), table.pages, table.requests),
            ("00000000000000b2", 3, 2)
        );
        // Its second page was the third one written, and overwritten by the fourth.
        assert_eq!((table.ended, table.live), (1, 2));
        assert_eq!(table.lifetime_pages.unwrap().median, 1.0);
        // Page 1 of the table holds what the log holds.
        assert_eq!(
            (table.duplicate_pages, log.duplicate_pages),
            (Some(1.0 / 3.0), Some(0.0))
        );
        assert_eq!((log.ended, log.live, log.synchronous_share), (1, 0, 1.0));
        // Written when 0 pages had been, trimmed when 3 had: the table's two, and its own.
        assert_eq!(log.lifetime_pages.unwrap().median, 3.0);
    }

    #[test]
    fn contexts_that_go_through_a_function_or_a_program_are_taken_together() {
        assert!(is_called("rocksdb::FlushJob::Run", "FlushJob::Run") && is_called("main", "main"));
        assert!(!is_called("domain", "main"));
        let bytes = crate::recording::sample().unwrap();
        let by = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let reader = Reader::new("sample", bytes.as_slice()).unwrap();
            report(reader, &Options::default(), &names, |_| true).unwrap()
        };
        // One program wrote all four pages: two ended, two live.
        let found = by(&["store"]);
        let [all] = found.contexts.as_slice() else {
            panic!("{:?}", found.contexts)
        };
        assert_eq!(
            (all.program.as_str(), all.pages, all.ended, all.live),
            ("store", 4, 2, 2)
        );
        assert_eq!(by(&["none"]).contexts[0].program, "other");
    }
}
