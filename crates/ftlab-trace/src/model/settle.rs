//! From references to classes.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::gaps::octave;
use super::observe::{Age, Event};
use super::{BIRTH_PARTS, Class, Head, Overlap, PAGE, Weights, bin, together};
use crate::splitmix::mix;

/// Sizes and runs told apart in a class and operation; the rarest others are gathered by octaves.
const HEADS: usize = 40;
/// Likewise in each row of what comes later.
const LATER: usize = 4;
/// Likewise where references are placed one by one.
const SINGLE_HEADS: usize = 16;
/// Parts of the trace by which references placed one by one are told apart.
const SINGLE_PARTS: u64 = 32;

pub struct Settled {
    pub classes: Vec<Class>,
    pub overlap: [Overlap; 3],
}

/// What the sample of references stands for.
#[derive(Clone, Copy)]
pub struct Sample {
    /// Requests of the trace.
    pub requests: u64,
    /// Objects whose hash is at most this are in the sample; pages whose hash is at most that have ages.
    pub object_limit: u64,
    pub page_limit: u64,
}

impl Sample {
    fn rate(limit: u64) -> f64 {
        limit as f64 / u64::MAX as f64
    }
}

/// `events` are sorted by object and time. Objects of fewer than `least` references are not kept together: each of their
/// references is placed by itself.
pub fn settle(events: &[Event], sample: Sample, least: u64) -> Settled {
    let requests = sample.requests;
    let rate = Sample::rate(sample.object_limit);
    let both = sample.object_limit.min(sample.page_limit);
    let mut classes = BTreeMap::<(u64, u8), Counts>::new();
    let mut singles = BTreeMap::<(u8, u32, u32), Single>::new();
    let mut overlap = <[OverlapCounts; 3]>::default();
    for life in events.chunk_by(|a, b| a.object == b.object) {
        if (life.len() as u64) < least {
            for event in life.iter().filter(|event| mix(event.object) <= both) {
                let age = match event.age {
                    Age::Requests(age) => 1 + age.max(1).ilog2() / 2,
                    _ => 0,
                };
                let pages = u64::from(event.bytes) * u64::from(event.run.max(1)) / PAGE;
                let key = (event.op, age, pages.max(1).ilog2().div_ceil(2));
                singles.entry(key).or_default().add(event, requests);
            }
            continue;
        }
        let reads = life.iter().filter(|event| event.op == 0).count();
        let key = (half_octave(life.len() as u64), kind(reads, life.len()));
        classes.entry(key).or_default().add(life, requests);
        let first = &life[0];
        if matches!(first.age, Age::Requests(_)) {
            overlap[usize::from(first.op)].add(first);
        }
    }
    Settled {
        classes: classes
            .into_values()
            .map(|counts| counts.finish(rate))
            .chain(singles.into_values().map(|single| single.finish(Sample::rate(both))))
            .collect(),
        overlap: overlap.map(OverlapCounts::finish),
    }
}

/// The bin of a number of references: exact up to 4, then two an octave.
fn half_octave(references: u64) -> u64 {
    match references {
        small @ 0..=4 => small,
        many if many >= octave(many) / 2 * 3 => octave(many) / 2 * 3,
        many => octave(many),
    }
}

/// 0: reads only; 1: mostly reads; 2: mostly others; 3: no reads.
fn kind(reads: usize, all: usize) -> u8 {
    match reads {
        0 => 3,
        r if r == all => 0,
        r => 1 + u8::from(2 * r < all),
    }
}

fn head(event: &Event) -> Head {
    Head {
        bytes: event.bytes,
        shift: event.shift,
        run: u64::from(event.run.max(1)),
    }
}

/// References placed one by one: of one operation, of about one age and length.
#[derive(Default)]
struct Single {
    references: u64,
    op: u8,
    births: Weights<u64>,
    first: FxHashMap<Head, u64>,
    over: OverlapCounts,
}

impl Single {
    fn add(&mut self, event: &Event, requests: u64) {
        self.references += 1;
        self.op = event.op;
        self.births.add(event.index * SINGLE_PARTS / requests, 1.0);
        *self.first.entry(head(event)).or_default() += 1;
        self.over.add(event);
    }

    fn finish(self, rate: f64) -> Class {
        let op = usize::from(self.op);
        let mut class = Class {
            objects: ((self.references as f64 / rate).round() as u64).max(1),
            references: 1.0,
            overlap: f64::from(u8::from(!self.over.ages.is_empty())),
            over: Some(self.over.finish()),
            parts: SINGLE_PARTS,
            births: self.births,
            ..Class::default()
        };
        class.start[op] = 1.0;
        class.first[op] = gather(self.first, SINGLE_HEADS);
        class
    }
}

#[derive(Default)]
struct Counts {
    objects: u64,
    references: u64,
    born_known: u64,
    born_over: u64,
    births: Weights<u64>,
    start: [f64; 3],
    next: [[Weights<u64>; 3]; 3],
    first: [FxHashMap<Head, u64>; 3],
    later: [BTreeMap<u64, FxHashMap<Head, u64>>; 3],
}

impl Counts {
    fn add(&mut self, life: &[Event], requests: u64) {
        let (first, last) = (&life[0], &life[life.len() - 1]);
        self.objects += 1;
        self.references += life.len() as u64;
        self.born_known += u64::from(first.age != Age::Unknown);
        self.born_over += u64::from(matches!(first.age, Age::Requests(_)));
        // The first reference lies in 0..=requests − 1 − length of the life.
        let leeway = requests - (last.index - first.index);
        self.births.add(first.index * BIRTH_PARTS / leeway, 1.0);
        self.start[usize::from(first.op)] += 1.0;
        for pair in life.windows(2) {
            let gap = bin(pair[1].index - pair[0].index);
            self.next[usize::from(pair[0].op)][usize::from(pair[1].op)].add(gap, 1.0);
        }
        *self.first[usize::from(first.op)].entry(head(first)).or_default() += 1;
        for pair in life.windows(2) {
            let (before, after) = (head(&pair[0]), head(&pair[1]));
            let after = if before == after { Head::SAME } else { after };
            let row = self.later[usize::from(pair[1].op)].entry(before.kind()).or_default();
            *row.entry(after).or_default() += 1;
        }
    }

    fn finish(self, rate: f64) -> Class {
        Class {
            objects: ((self.objects as f64 / rate).round() as u64).max(1),
            references: self.references as f64 / self.objects as f64,
            overlap: self.born_over as f64 / self.born_known.max(1) as f64,
            parts: BIRTH_PARTS,
            births: self.births,
            over: None,
            start: self.start,
            next: self.next,
            first: self.first.map(|counts| gather(counts, HEADS)),
            later: self.later.map(|rows| {
                rows.into_iter()
                    .map(|(row, counts)| (row, gather(counts, LATER)))
                    .collect()
            }),
        }
    }
}

/// Keeps the commonest heads and gathers the others by octaves of size and run, each group at its mean size.
fn gather(counts: FxHashMap<Head, u64>, most: usize) -> Weights<Head> {
    let mut heads: Vec<(Head, u64)> = counts.into_iter().collect();
    // By the requests that they stand for: a long run told wrong would be told wrong many times.
    heads.sort_unstable_by_key(|&(head, count)| (std::cmp::Reverse(count * head.run), head));
    let mut weights = Weights::default();
    // `=` is no size, so it must not be gathered with others.
    if let Some(same) = heads.iter().position(|(head, _)| *head == Head::SAME) {
        heads[..=same].rotate_right(1);
    }
    for &(head, count) in heads.iter().take(most) {
        weights.add(head, count as f64);
    }
    let mut groups = BTreeMap::<(u64, u64), Vec<(Head, u64)>>::new();
    for &(head, count) in heads.iter().skip(most) {
        let key = (octave(u64::from(head.bytes)), octave(head.run));
        groups.entry(key).or_default().push((head, count));
    }
    for group in groups.into_values() {
        let total: u64 = group.iter().map(|(_, count)| count).sum();
        let mean = |of: fn(&Head) -> u64| {
            group.iter().map(|(h, count)| of(h) as f64 * *count as f64).sum::<f64>() / total as f64
        };
        // Sizes stay multiples of what all of them are multiples of.
        let grain = [PAGE, 512, 1]
            .into_iter()
            .find(|grain| group.iter().all(|(h, _)| u64::from(h.bytes) % grain == 0))
            .unwrap_or(1);
        let bytes = ((mean(|h| u64::from(h.bytes)) / grain as f64).round() as u64 * grain).max(grain);
        let aligned = group.iter().all(|(h, _)| h.shift == 0);
        let gathered = Head {
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            shift: if aligned { 0 } else { Head::ANY },
            run: (mean(|h| h.run).round() as u64).max(1),
        };
        weights.add(gathered, total as f64);
    }
    weights
}

#[derive(Default)]
struct OverlapCounts {
    ages: Weights<u64>,
    aligned: u64,
    tails: u64,
    fresh: u64,
    together: u64,
}

impl OverlapCounts {
    fn add(&mut self, first: &Event) {
        if let Age::Requests(age) = first.age {
            self.ages.add(bin(age), 1.0);
        }
        self.aligned += u64::from(first.aligned);
        self.tails += u64::from(first.tail != Age::Unknown);
        self.fresh += u64::from(first.tail == Age::Fresh);
        // A run's last page is touched later than its first by as many requests as the run takes.
        let run = u64::from(first.run.max(1));
        if let (Age::Requests(age), Age::Requests(tail)) = (first.age, first.tail) {
            self.together += u64::from(together(age, tail + run, run));
        }
    }

    fn finish(self) -> Overlap {
        Overlap {
            aligned: self.aligned as f64 / self.ages.total().max(1.0),
            fresh: match (self.tails, self.ages.is_empty()) {
                // A run of one page that is fresh ends on a fresh page.
                (0, true) => 1.0,
                (tails, _) => self.fresh as f64 / tails.max(1) as f64,
            },
            together: self.together as f64 / self.tails.max(1) as f64,
            ages: self.ages,
        }
    }
}
