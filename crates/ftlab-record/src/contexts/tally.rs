//! What lies in each page of the device, who wrote it, and what each context has written so far.

use ftlab_core::OpKind;
use ftlab_core::request::flags;
use rustc_hash::FxHashMap;

use super::files::{Kinds, Written};
use super::grouping::Grouping;
use super::names::{find_telling, name};
use super::places::{Pairs, Places};
use super::spread::Spread;
use super::{ContextReport, Report, SCHEMA};
use crate::recording::{Call, Op, Tables};
use crate::replay::{Content, Options, Replay, Request};

pub(super) struct Tally {
    grouping: Grouping,
    kinds: Kinds,
    contexts: Vec<Figures>,
    pub(super) calls: u64,
    last_ns: u64,
    /// What lies in each page of the device.
    device: FxHashMap<u64, Lying>,
    places: Places,
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
    places: Pairs,
    known_pages: u64,
    duplicate_pages: u64,
    known_chunks: u64,
    duplicate_chunks: u64,
    files: Written,
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
    pub(super) fn new(grouping: Grouping, tables: &Tables) -> Self {
        Tally {
            kinds: Kinds::new(tables),
            contexts: vec![Figures::default(); grouping.count()],
            grouping,
            calls: 0,
            last_ns: 0,
            device: FxHashMap::default(),
            places: Places::default(),
            pages: Live::default(),
            chunks: Live::default(),
            requests: [0; 4],
            tick: 0,
            trimmed: 0,
        }
    }

    pub(super) fn call(&mut self, op: &Op) {
        self.calls += 1;
        self.last_ns = op.time_ns;
        if op.call == Call::Write {
            let figures = &mut self.contexts[self.grouping.of(op.context, Some(op.file)) as usize];
            figures.calls += 1;
            figures.bytes += op.length;
            figures.files.of(self.kinds.of(op.file)).bytes += op.length;
        }
    }

    pub(super) fn requests(&mut self, replay: &mut Replay) {
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
                        self.end_life(page, request.time_ns);
                    }
                    self.trimmed += u64::from(request.length) / 4096;
                }
                OpKind::Read | OpKind::Flush => {}
            }
        }
        replay.clear();
    }

    fn write(&mut self, request: &Request, contents: &[Content]) {
        let context = self.grouping.of(request.context, request.file);
        let figures = &mut self.contexts[context as usize];
        figures.requests += 1;
        if let Some(file) = request.file {
            figures.files.of(self.kinds.of(file)).pages += u64::from(request.length) / 4096;
        }
        let first = request.offset / 4096;
        for (i, page) in (first..first + u64::from(request.length) / 4096).enumerate() {
            self.end_life(page, request.time_ns);
            let content = contents.get(i).copied().unwrap_or_default();
            let figures = &mut self.contexts[context as usize];
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
                context,
                tick: self.tick,
                time_ns: request.time_ns,
                content,
            };
            self.device.insert(page, lying);
            self.tick += 1;
        }
    }

    /// What lay in a page is gone, if anything did.
    fn end_life(&mut self, page: u64, now: u64) {
        let Some(lying) = self.device.remove(&page) else {
            return;
        };
        let figures = &mut self.contexts[lying.context as usize];
        let lifetime = self.tick - lying.tick;
        figures.ticks.add(lifetime);
        figures.times.add(now.saturating_sub(lying.time_ns));
        if let Some(before) = self.places.ended(page, lifetime) {
            figures.places.add(before, lifetime);
        }
        self.pages.take(lying.content.page);
        lying
            .content
            .chunks
            .into_iter()
            .for_each(|chunk| self.chunks.take(chunk));
    }

    pub(super) fn finish(self, tables: &Tables, options: &Options) -> Report {
        let mut live = vec![0u64; self.contexts.len()];
        self.device.values().for_each(|lying| live[lying.context as usize] += 1);
        let written = self.requests[OpKind::Write as usize];
        let mut contexts: Vec<(usize, ContextReport)> = Vec::new();
        for (number, figures) in self.contexts.iter().enumerate() {
            if figures.calls == 0 && figures.pages == 0 {
                continue;
            }
            let known = ContextReport {
                files: figures.files.report(&self.kinds),
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
                place_correlation: figures.places.correlation(),
                duplicate_pages: share(figures.duplicate_pages, figures.known_pages),
                duplicate_chunks: share(figures.duplicate_chunks, figures.known_chunks),
                ..ContextReport::default()
            };
            contexts.push((number, known));
        }
        contexts.sort_by_key(|(number, c)| (std::cmp::Reverse((c.pages, c.bytes)), *number));
        let named = contexts.into_iter().map(|(number, known)| {
            match (self.grouping.context(number, tables), self.grouping.title(number)) {
                (Some(context), _) => name(known, context, tables),
                (None, title) => ContextReport {
                    signature: format!("{:016x}", 0),
                    program: title.unwrap_or("").to_owned(),
                    ..known
                },
            }
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
            places: self.places.report(),
            contexts,
            notes: tables.notes.clone(),
        }
    }
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}
