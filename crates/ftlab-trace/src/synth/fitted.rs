//! A workload fitted to a trace or to published figures, described by a model file.
//!
//! # Model
//! The object renewal model of `crate::model`: an episode as long as the trace is planned (every object's references,
//! in order of time), then issued. A longer workload has further episodes over the same objects, each in another order:
//! no further addresses, and where the model has contents no further values that are read but not written.
//! `footprint` scales the number of objects, and with it the length of the episode and the distances. So miss ratios of
//! caches with the same share of the footprint stay the same.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `model` | the model file; not needed where the spec itself is one | path | |
//! | `requests` | reads, writes and trims | | an episode |
//! | `footprint` | objects relative to the model's | above 0 to 1000 | 1 |
//! | `span` | part of the drive over which the pages lie: a share, or bytes | | the model's, at most the drive |
//! | `rate` | mean arrivals per second; bursts keep their shape | above 0 | the model's |
//! | `qd` | closed loop with this many requests outstanding instead | 1 to 1048576 | 32 where the model has no times |
//! | `seed` | of this workload | | the run's seed |
//! # Not modelled
//! The points that `crate::model` names. Flushes follow writes, whatever they followed in the trace. A request longer
//! than the cluster in which it begins reaches into the space behind it.
//! # Cost
//! 8 bytes a request and 32 an object of an episode, 4 bytes a touched page (12 with contents) times the model's room.
//! A reference that is placed by its age examines up to 40 earlier requests.
//! # Source
//! What `crate::model` says.

mod asked;
mod births;
mod clock;
mod deck;
mod plan;
mod space;
#[cfg(test)]
mod tests;
mod values;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ftlab_core::{Batch, Error, OpKind, Result, Stream};
use serde_json::{Map, Value};

use self::asked::Asked;
use self::clock::Clock;
use self::deck::{Deck, DeckRows};
use self::plan::Reference;
use self::space::Space;
use self::values::Values;
use super::{Arrivals, Keys};
use crate::model::{Head, Model, PAGE, Size, step, width};

pub use asked::KEYS;

/// Requests remembered for objects that are born over an earlier one.
const HISTORY: u64 = 1 << 20;
/// Requests drawn ahead for a run at most.
const LONGEST_RUN: u64 = 1 << 20;
const KINDS: [OpKind; 3] = [OpKind::Read, OpKind::Write, OpKind::Trim];
const TRIM: usize = 2;

/// A workload being dealt out.
pub struct Fitted {
    model: Model,
    asked: Asked,
    /// Requests of an episode.
    episode: u64,
    plan: Vec<Reference>,
    planned: usize,
    /// Reads, writes and trims given out, and those still to come.
    given: u64,
    pub(super) left: u64,
    objects: Vec<Object>,
    /// Decks by class and operation.
    first: Vec<[Deck<Head>; 3]>,
    later: Vec<[DeckRows<Head>; 3]>,
    ages: [Deck<u64>; 3],
    /// Those of classes that have their own.
    class_ages: Vec<Option<Deck<u64>>>,
    stride: Deck<u64>,
    follow: [DeckRows<Size>; 3],
    last: [DeckRows<Size>; 3],
    flags: [Deck<u64>; 3],
    space: Space,
    /// First page and pages of the last requests; trims have none.
    history: Vec<(u32, u32)>,
    /// Runs to be continued: by the request's number that does so, and the run's.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    runs: Vec<Run>,
    idle: Vec<u32>,
    values: Option<Values>,
    clock: Option<Clock>,
    random: Streams,
}

/// A stream for each purpose: changing one distribution leaves the other draws as they were.
struct Streams {
    plan: Stream,
    heads: Stream,
    places: Stream,
    runs: Stream,
    flags: Stream,
    values: Stream,
}

#[derive(Clone, Copy)]
struct Object {
    start: u32,
    class: u32,
    /// Its last head.
    last: Head,
    /// The sector at which its requests begin where a head leaves that open.
    shift: u8,
}

const UNBORN: u32 = u32::MAX;

/// What is left of a run.
#[derive(Default)]
struct Run {
    op: usize,
    /// Where the next request begins: a page of the space, bytes behind its start, and the byte on the drive.
    page: u32,
    within: u64,
    offset: u64,
    sizes: Vec<u32>,
    next: usize,
}

impl Fitted {
    pub fn new(model: Model, keys: &mut Keys, logical_bytes: u64, run_seed: u64) -> Result<Self> {
        let asked = Asked::read(&model, keys, logical_bytes, run_seed)?;
        let episode = (model.requests as f64 * asked.footprint).round().max(1.0) as u64;
        let mut objects = Vec::new();
        for (class, number) in model.classes.iter().zip(0..) {
            let count = plan::objects(class, asked.footprint);
            if objects.len() as u64 + count > plan::MOST_OBJECTS || episode >= plan::MOST_REQUESTS {
                return Err(Error::input(format!(
                    "the workload `{}` is too large to be planned: expected a smaller `footprint`",
                    model.title
                )));
            }
            let unborn = Object {
                start: UNBORN,
                class: number,
                last: Head::SAME,
                shift: 0,
            };
            objects.resize(objects.len() + count as usize, unborn);
        }
        let stream = |name| Stream::new(asked.seed, name);
        let clock = match (&model.gaps, asked.arrivals) {
            (Some(gaps), Arrivals::Open { per_second }) => {
                Some(Clock::new(gaps, 1e9 / per_second, stream("workload arrivals")))
            }
            _ => None,
        };
        let space = Space::new(asked.pages, asked.span, &model.clusters, model.room);
        Ok(Fitted {
            episode,
            plan: Vec::new(),
            planned: 0,
            given: 0,
            left: asked.requests,
            objects,
            first: model
                .classes
                .iter()
                .map(|class| class.first.each_ref().map(Deck::of))
                .collect(),
            later: model
                .classes
                .iter()
                .map(|class| class.later.each_ref().map(DeckRows::new))
                .collect(),
            ages: model.overlap.each_ref().map(|overlap| Deck::of(&overlap.ages)),
            class_ages: model
                .classes
                .iter()
                .map(|class| class.over.as_ref().map(|over| Deck::of(&over.ages)))
                .collect(),
            stride: Deck::of(&model.stride),
            follow: model.follow.each_ref().map(DeckRows::new),
            last: model.last.each_ref().map(DeckRows::new),
            flags: model.flags.each_ref().map(Deck::of),
            history: vec![(0, 0); episode.min(HISTORY) as usize],
            due: BinaryHeap::new(),
            runs: Vec::new(),
            idle: Vec::new(),
            values: model
                .contents
                .as_ref()
                .map(|contents| Values::new(contents, space.pages(), asked.seed)),
            space,
            clock,
            random: Streams {
                plan: stream("workload plan"),
                heads: stream("workload sizes"),
                places: stream("workload offsets"),
                runs: stream("workload runs"),
                flags: stream("workload flags"),
                values: stream("workload values"),
            },
            model,
            asked,
        })
    }

    pub fn describe(&self, keys: &mut Map<String, Value>) {
        self.asked.describe(keys);
    }

    pub fn arrivals(&self) -> Arrivals {
        self.asked.arrivals
    }

    pub fn requests(&self) -> u64 {
        self.asked.requests
    }

    /// Appends a batch's worth of requests (flushes come beyond it).
    pub fn fill(&mut self, batch: &mut Batch) {
        let n = self.left.min(Batch::TARGET as u64);
        self.left -= n;
        for _ in 0..n {
            let due = self.due.peek().is_some_and(|Reverse((due, _))| *due <= self.given);
            if due {
                self.follow(batch);
            } else if self.planned < self.plan.len() {
                self.head(batch);
            } else if self.due.is_empty() {
                self.plan = plan::plan(&self.model, self.episode, self.asked.footprint, &mut self.random.plan);
                self.planned = 0;
                self.head(batch);
            } else {
                self.follow(batch);
            }
        }
    }

    /// The next planned reference.
    fn head(&mut self, batch: &mut Batch) {
        let Some(&reference) = self.plan.get(self.planned) else {
            return;
        };
        self.planned += 1;
        let (number, op) = (reference.object(), reference.op());
        let mut object = self.objects[number];
        let head = self.draw_head(&object, op);
        let run = self.idle.pop().unwrap_or_else(|| {
            self.runs.push(Run::default());
            self.runs.len() as u32 - 1
        });
        let sizes = std::mem::take(&mut self.runs[run as usize].sizes);
        let sizes = self.draw_run(head, op, sizes);
        let born = object.start == UNBORN;
        if born {
            object.shift = self.random.heads.below(8) as u8;
        }
        let shift = u64::from(if head.shift == Head::ANY {
            object.shift
        } else {
            head.shift
        }) * 512;
        let bytes = u64::from(head.bytes) + sizes.iter().map(|&size| u64::from(size)).sum::<u64>();
        let pages = u32::try_from((shift + bytes).div_ceil(PAGE))
            .unwrap_or(u32::MAX)
            .min(self.space.pages());
        if born {
            let start = self.birth(&object, op, pages, 1 + sizes.len() as u64);
            object.start = self.space.place(start, pages).0;
        }
        object.last = head;
        self.objects[number] = object;
        let (page, device) = self.space.place(object.start, pages);
        // The drive ends behind its last page; what would reach beyond lies as far behind as there is room.
        let offset = (device * PAGE + shift).min(self.asked.span.saturating_sub(bytes));
        self.give(batch, op, page, shift, offset, head.bytes);
        if sizes.is_empty() {
            self.runs[run as usize].sizes = sizes;
            self.idle.push(run);
            return;
        }
        let within = shift + u64::from(head.bytes);
        let rest = &mut self.runs[run as usize];
        rest.sizes = sizes;
        rest.op = op;
        rest.page = page.saturating_add((within / PAGE) as u32);
        rest.within = within % PAGE;
        rest.offset = offset + u64::from(head.bytes);
        rest.next = 0;
        self.schedule(run);
    }

    fn draw_head(&mut self, object: &Object, op: usize) -> Head {
        let class = object.class as usize;
        let random = &mut self.random.heads;
        let later = match object.start {
            UNBORN => None,
            _ => self.later[class][op].draw_exactly(object.last.kind(), random),
        };
        // What always came last in the trace says nothing of what follows: a life begins anew.
        match later.or_else(|| self.first[class][op].draw(random)) {
            Some(head) if head != Head::SAME => head,
            _ if object.start != UNBORN => object.last,
            _ => Head {
                bytes: PAGE as u32,
                shift: 0,
                run: 1,
            },
        }
    }

    /// Sizes of the requests behind a head.
    fn draw_run(&mut self, head: Head, op: usize, mut sizes: Vec<u32>) -> Vec<u32> {
        sizes.clear();
        if head.run <= 1 {
            return sizes;
        }
        let random = &mut self.random.runs;
        let requests = head.run.min(LONGEST_RUN);
        let mut bytes = head.bytes;
        for at in 1..requests {
            let rows = if at + 1 == requests {
                &mut self.last[op]
            } else {
                &mut self.follow[op]
            };
            let size = rows.draw(step(bytes, head.bytes), random);
            if let Some(Size(drawn)) = size.filter(|size| *size != Size::SAME) {
                bytes = drawn;
            }
            sizes.push(bytes);
        }
        sizes
    }

    /// The next request of the run that has waited longest.
    fn follow(&mut self, batch: &mut Batch) {
        let Some(Reverse((_, run))) = self.due.pop() else {
            return;
        };
        let rest = &mut self.runs[run as usize];
        let bytes = rest.sizes[rest.next];
        let (op, page, within, offset) = (rest.op, rest.page, rest.within, rest.offset);
        rest.next += 1;
        let end = within + u64::from(bytes);
        rest.page = page.saturating_add((end / PAGE) as u32);
        rest.within = end % PAGE;
        rest.offset += u64::from(bytes);
        let ended = rest.next == rest.sizes.len();
        self.give(batch, op, page, within, offset, bytes);
        if ended {
            self.idle.push(run);
        } else {
            self.schedule(run);
        }
    }

    fn schedule(&mut self, run: u32) {
        let edge = self.stride.draw(&mut self.random.runs).unwrap_or(1);
        let stride = edge.max(1) + self.random.runs.below(width(edge));
        self.due.push(Reverse((self.given - 1 + stride, run)));
    }

    /// Appends a request that begins `within` bytes behind the start of `page`.
    fn give(&mut self, batch: &mut Batch, op: usize, page: u32, within: u64, offset: u64, bytes: u32) {
        let time = self.clock.as_mut().map_or(0, Clock::next);
        let flags = self.flags[op].draw(&mut self.random.flags).unwrap_or(0) as u8;
        batch.push(time, KINDS[op], offset, bytes, 0, flags);
        let page = page.min(self.space.pages() - 1);
        let pages = (within + u64::from(bytes)).div_ceil(PAGE) as u32;
        let kept = (self.given % self.history.len() as u64) as usize;
        if op == TRIM {
            self.history[kept] = (0, 0);
        } else {
            self.space.touch(page, pages, number(self.given));
            self.history[kept] = (page, pages.min(self.space.pages() - page));
        }
        self.given += 1;
        if let Some(values) = &mut self.values {
            if op != TRIM {
                values.fill(op == 1, page, pages, &mut batch.content, &mut self.random.values);
            }
            batch.content_end.push(batch.content.len() as u32);
        }
        if op == 1 && self.model.flush > 0.0 {
            self.flushes(batch, time);
        }
    }

    fn flushes(&mut self, batch: &mut Batch, time: u64) {
        let mut owed = self.model.flush;
        while owed > 0.0 && self.random.flags.unit() < owed {
            batch.push(time, OpKind::Flush, 0, 0, 0, 0);
            if self.values.is_some() {
                batch.content_end.push(batch.content.len() as u32);
            }
            owed -= 1.0;
        }
    }
}

/// A request's number as pages remember it; 0 is none.
fn number(request: u64) -> u32 {
    (request % u64::from(u32::MAX)) as u32 + 1
}
