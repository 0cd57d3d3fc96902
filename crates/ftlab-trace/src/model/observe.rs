//! The pass over a trace that a model is fitted from.

use ftlab_core::{Batch, Error, OpKind, Result, Source};
use rustc_hash::{FxHashMap, FxHashSet};

use super::choose::choose;
use super::contents::ValueCounts;
use super::deviation::Deviation;
use super::gaps::GapCounts;
use super::settle::{Sample, settle};
use super::{Model, PAGE, Rows, STREAMS, Size, Weights, bin, rounded, step};
use crate::inspect::{InspectOptions, Inspection, Inspector};
use crate::splitmix::mix;
use crate::touched::Marks;
use crate::write::Names;

/// Sizes that are told apart; further ones are rounded to an eighth of an octave.
const SIZES: usize = 256;
/// Parts in which first touches are counted while the trace's length is unknown.
const TOUCH_PARTS: u64 = 256;
/// Equal parts of the trace at whose ends the model says which share of the pages has been touched.
const TOUCHED: u64 = 64;

/// What [`fit`] may use and write.
#[derive(Clone, Debug)]
pub struct FitOptions {
    pub title: String,
    /// Where the trace comes from, for the file.
    pub source: String,
    /// References remembered at most (64 bytes each); beyond it objects are sampled.
    pub most_events: usize,
    /// Pages remembered at most (32 bytes each); beyond it pages are sampled.
    pub most_pages: usize,
}

impl Default for FitOptions {
    fn default() -> Self {
        FitOptions {
            title: String::new(),
            source: String::new(),
            most_events: 4 << 20,
            most_pages: 4 << 20,
        }
    }
}

/// What a model can be fitted to: all that one pass over a trace has kept of it.
pub struct Observed {
    observer: Observer,
    original: Inspection,
    options: FitOptions,
}

/// Reads `source` to its end and keeps the model whose workload is most like it: [`observe`], then the first of [`Observed::models`].
pub fn fit(source: &mut dyn Source, options: &FitOptions) -> Result<Fitted> {
    let mut models = observe(source, options)?.models(&mut || true)?;
    Ok(models.swap_remove(0))
}

/// Reads `source` to its end. Requests of no length are left out; the addresses of volumes are taken as the source gives
/// them.
pub fn observe(source: &mut dyn Source, options: &FitOptions) -> Result<Observed> {
    let mut observer = Observer::new(options);
    let mut inspector = Inspector::new(InspectOptions {
        merge_volumes: true,
        ..InspectOptions::default()
    });
    let mut batch = Batch::default();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        observer.add(&batch);
        inspector.add(&batch);
    }
    if observer.requests == 0 || observer.marks.count() == 0 {
        return Err(Error::input(
            "a model cannot be fitted to a trace without a read or a write: expected at least one",
        ));
    }
    observer.end_runs();
    Ok(Observed {
        observer,
        original: inspector.finish(&Names::default()),
        options: options.clone(),
    })
}

impl Observed {
    /// Models of the trace, the nearest first. `go_on` is asked often, and ends the search by answering false.
    pub fn models(&self, go_on: &mut (dyn FnMut() -> bool + Send)) -> Result<Vec<Fitted>> {
        let models = choose(&self.original, |least| self.observer.model(&self.options, least), go_on)?;
        let fitted = models.into_iter().map(|(apart, agreement, model)| Fitted {
            agreement,
            page_writes: self.original.counts.page_writes,
            apart,
            model,
        });
        Ok(fitted.collect())
    }
}

/// A model, and how like the trace what it generates is.
#[derive(Clone, Debug)]
pub struct Fitted {
    pub model: Model,
    pub agreement: Vec<Deviation>,
    /// How far the figures lie apart, in one number ([`distance`](super::distance)), on average over several seeds.
    pub apart: f64,
    /// Pages that the trace writes, each request counted anew.
    pub page_writes: u64,
}

/// A reference to a sampled object: the head of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub object: u64,
    /// Number of the request.
    pub index: u64,
    pub bytes: u32,
    /// Requests of the run that it begins; 0 while the run goes on.
    pub run: u32,
    pub age: Age,
    /// That of the last page of its run.
    pub tail: Age,
    pub op: u8,
    /// Sectors behind the page's start.
    pub shift: u8,
    /// The last request over this page began where this one does.
    pub aligned: bool,
}

/// Requests since an object's page was last touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// The page is not in the sample.
    Unknown,
    Fresh,
    Requests(u64),
}

/// A run that may be continued.
#[derive(Clone, Copy)]
struct Run {
    end: u64,
    op: u8,
    bytes: u32,
    /// Bytes of its first request.
    head: u32,
    last: u64,
    requests: u32,
    /// Number of its first request.
    first: u64,
    /// How it came to its last size, if it has been continued.
    step: Option<(u8, u64, u32)>,
    /// Age of its last page so far; unknown while it has one page.
    tail: Age,
}

/// The last request over a page.
struct Last {
    index: u64,
    offset: u64,
}

struct Observer {
    most_events: usize,
    most_pages: usize,
    requests: u64,
    flushes: u64,
    writes: u64,
    lowest: u64,
    highest: u64,
    runs: Vec<Run>,
    events: Vec<Event>,
    /// Objects whose hash is at most this are in the sample.
    object_limit: u64,
    page_limit: u64,
    pages: FxHashMap<u64, Last>,
    sizes: FxHashSet<u32>,
    /// Sizes by operation, step and size: within runs, and at their ends.
    follow: FxHashMap<(u8, u64, u32), u64>,
    ends: FxHashMap<(u8, u64, u32), u64>,
    stride: FxHashMap<u64, u64>,
    touches: Vec<u64>,
    touch_width: u64,
    marks: Marks,
    gaps: GapCounts,
    flags: [[u64; 256]; 3],
    values: ValueCounts,
}

impl Observer {
    fn new(options: &FitOptions) -> Self {
        Observer {
            most_events: options.most_events.max(1024),
            most_pages: options.most_pages.max(1024),
            requests: 0,
            flushes: 0,
            writes: 0,
            lowest: u64::MAX,
            highest: 0,
            runs: Vec::with_capacity(STREAMS),
            events: Vec::new(),
            object_limit: u64::MAX,
            page_limit: u64::MAX,
            pages: FxHashMap::default(),
            sizes: FxHashSet::default(),
            follow: FxHashMap::default(),
            ends: FxHashMap::default(),
            stride: FxHashMap::default(),
            touches: vec![0; TOUCH_PARTS as usize],
            touch_width: 1,
            marks: Marks::new(PAGE as u32),
            gaps: GapCounts::default(),
            flags: [[0; 256]; 3],
            values: ValueCounts::default(),
        }
    }

    fn add(&mut self, batch: &Batch) {
        for i in 0..batch.len() {
            let op = match batch.op[i] {
                OpKind::Read => 0,
                OpKind::Write => 1,
                OpKind::Trim => 2,
                OpKind::Flush => {
                    self.flushes += 1;
                    continue;
                }
            };
            // Beyond 2^62 sums of addresses could overflow; no device is as large.
            if batch.length[i] == 0 || batch.offset[i] >= 1 << 62 {
                continue;
            }
            self.writes += u64::from(op == 1);
            self.gaps.add(batch.time_ns[i]);
            self.flags[op as usize][usize::from(batch.flags[i])] += 1;
            self.request(op, batch.offset[i], batch.length[i]);
            if op < 2 {
                self.values.add(op == 1, batch.offset[i], batch.content_of(i));
            }
        }
    }

    fn request(&mut self, op: u8, offset: u64, length: u32) {
        let index = self.requests;
        self.requests += 1;
        let bytes = self.told_apart(length);
        let (first, last) = (offset / PAGE, (offset + u64::from(length) - 1) / PAGE);
        let tail = if last > first {
            self.age(last, index)
        } else {
            Age::Unknown
        };
        if !self.continued(op, offset, length, bytes, index, tail) {
            self.begun(op, offset, length, bytes, index, tail);
        }
        if op < 2 {
            self.touch(offset, length, index);
        }
    }

    /// The size as it is counted.
    fn told_apart(&mut self, length: u32) -> u32 {
        if self.sizes.len() < SIZES {
            self.sizes.insert(length);
        }
        if self.sizes.contains(&length) {
            length
        } else {
            rounded(length)
        }
    }

    fn continued(&mut self, op: u8, offset: u64, length: u32, bytes: u32, index: u64, tail: Age) -> bool {
        let Some(run) = self.runs.iter_mut().find(|r| r.end == offset && r.op == op) else {
            return false;
        };
        let to = if bytes == run.bytes { Size::SAME.0 } else { bytes };
        // Whether a request is the last of its run shows when the next comes, or none.
        if let Some(before) = run.step.replace((op, step(run.bytes, run.head), to)) {
            *self.follow.entry(before).or_default() += 1;
        }
        *self.stride.entry(bin(index - run.last)).or_default() += 1;
        run.end = offset + u64::from(length);
        run.bytes = bytes;
        // Where requests share a page it is the run itself that has touched it.
        if tail != Age::Unknown {
            run.tail = tail;
        }
        run.last = index;
        run.requests = run.requests.saturating_add(1);
        true
    }

    fn begun(&mut self, op: u8, offset: u64, length: u32, bytes: u32, index: u64, tail: Age) {
        let run = Run {
            end: offset + u64::from(length),
            op,
            bytes,
            head: bytes,
            last: index,
            requests: 1,
            first: index,
            step: None,
            tail,
        };
        if self.runs.len() < STREAMS {
            self.runs.push(run);
        } else {
            // Of 32 runs the one that has waited longest gives its place.
            let at = (0..STREAMS).min_by_key(|&at| self.runs[at].last).unwrap_or(0);
            let ended = std::mem::replace(&mut self.runs[at], run);
            self.end(ended);
        }
        let object = offset / PAGE;
        let hash = mix(object);
        if hash > self.object_limit {
            return;
        }
        let age = self.age(object, index);
        let last = self.pages.get(&object);
        self.events.push(Event {
            object,
            index,
            bytes,
            run: 0,
            age,
            tail: Age::Unknown,
            op,
            shift: (offset % PAGE / 512) as u8,
            aligned: last.is_some_and(|last| last.offset == offset),
        });
        if self.events.len() > self.most_events {
            self.object_limit /= 2;
            let limit = self.object_limit;
            self.events.retain(|event| mix(event.object) <= limit);
        }
    }

    /// Requests since the last touch of a page, before this one touches it.
    fn age(&self, page: u64, index: u64) -> Age {
        match self.pages.get(&page) {
            _ if mix(page) > self.page_limit => Age::Unknown,
            None => Age::Fresh,
            Some(last) => Age::Requests(index - last.index),
        }
    }

    /// Notes the length of a run with the reference that began it.
    fn end(&mut self, run: Run) {
        if let Some(step) = run.step {
            *self.ends.entry(step).or_default() += 1;
        }
        if let Ok(at) = self.events.binary_search_by_key(&run.first, |event| event.index) {
            self.events[at].run = run.requests;
            self.events[at].tail = run.tail;
        }
    }

    fn touch(&mut self, offset: u64, length: u32, index: u64) {
        let end = offset + u64::from(length);
        self.lowest = self.lowest.min(offset);
        self.highest = self.highest.max(end);
        self.marks.mark(0, offset, length);
        for page in offset / PAGE..end.div_ceil(PAGE) {
            if mix(page) > self.page_limit {
                continue;
            }
            if self.pages.insert(page, Last { index, offset }).is_none() {
                self.touched_first(index);
            }
        }
        while self.pages.len() > self.most_pages {
            self.page_limit /= 2;
            let limit = self.page_limit;
            self.pages.retain(|&page, _| mix(page) <= limit);
            // What was counted with the larger sample weighs as much as what follows.
            self.touches.iter_mut().for_each(|count| *count /= 2);
        }
    }

    fn touched_first(&mut self, index: u64) {
        while index / self.touch_width >= TOUCH_PARTS {
            for part in 0..self.touches.len() {
                let pair = |at: usize| self.touches.get(at).copied().unwrap_or(0);
                self.touches[part] = pair(2 * part) + pair(2 * part + 1);
            }
            self.touch_width *= 2;
        }
        self.touches[(index / self.touch_width) as usize] += 1;
    }

    /// The trace has ended: runs are as long as they are.
    fn end_runs(&mut self) {
        for run in std::mem::take(&mut self.runs) {
            self.end(run);
        }
        self.events.sort_unstable_by_key(|event| (event.object, event.index));
    }

    /// The model in which objects of fewer than `least` references are not kept together, without room.
    fn model(&self, options: &FitOptions, least: u64) -> Model {
        let sample = Sample {
            requests: self.requests,
            object_limit: self.object_limit,
            page_limit: self.page_limit,
        };
        let settled = settle(&self.events, sample, least);
        Model {
            title: options.title.clone(),
            source: options.source.clone(),
            requests: self.requests,
            pages: self.marks.count(),
            span: self.highest.saturating_sub(self.lowest),
            clusters: self.clusters(),
            first_touches: self.first_touches(),
            stride: Weights::counted(self.stride.iter().map(|(&stride, &count)| (stride, count))),
            overlap: settled.overlap,
            follow: [0, 1, 2].map(|op| rows(&self.follow, op)),
            last: [0, 1, 2].map(|op| rows(&self.ends, op)),
            least,
            room: 1.0,
            classes: settled.classes,
            gaps: self.gaps.finish(),
            flags: [0, 1, 2].map(|op| self.flags_of(op)),
            flush: self.flushes as f64 / self.writes.max(1) as f64,
            contents: self.values.finish(),
        }
    }

    fn flags_of(&self, op: usize) -> Weights<u64> {
        let counts = self.flags[op].iter().enumerate().filter(|(_, count)| **count > 0);
        let all = Weights::counted(counts.map(|(flags, &count)| (flags as u64, count)));
        let none = all.0.iter().all(|(flags, _)| *flags == 0);
        if none { Weights::default() } else { all }
    }

    fn clusters(&self) -> Weights<u64> {
        let mut lengths = FxHashMap::<u64, u64>::default();
        self.marks.runs(|length| *lengths.entry(bin(length)).or_default() += 1);
        Weights::counted(lengths)
    }

    /// The touched share at the end of each of [`TOUCHED`] parts of the trace.
    fn first_touches(&self) -> Vec<f64> {
        let total = self.touches.iter().sum::<u64>().max(1) as f64;
        let share = |part: u64| {
            // Between the ends of two counted parts the share is taken to grow evenly.
            let at = (part + 1) as f64 / TOUCHED as f64 * self.requests as f64 / self.touch_width as f64;
            let whole = (at as usize).min(self.touches.len());
            let within = self.touches.get(whole).map_or(0.0, |&count| count as f64 * at.fract());
            (self.touches[..whole].iter().sum::<u64>() as f64 + within) / total
        };
        let mut shares: Vec<f64> = (0..TOUCHED).map(share).collect();
        if let Some(last) = shares.last_mut() {
            *last = 1.0;
        }
        shares
    }
}

/// The counted sizes of an operation, by step.
fn rows(counts: &FxHashMap<(u8, u64, u32), u64>, op: u8) -> Rows<Size> {
    let mut rows: Rows<Size> = Vec::new();
    let mut counts: Vec<_> = counts.iter().filter(|((o, ..), _)| *o == op).collect();
    counts.sort_unstable();
    for (&(_, from, to), &count) in counts {
        match rows.last_mut().filter(|(row, _)| *row == from) {
            Some((_, row)) => row.add(Size(to), count as f64),
            None => rows.push((from, Weights(vec![(Size(to), count as f64)]))),
        }
    }
    rows
}
