//! The heads of an episode: which object is referenced when, and to do what.

use ftlab_core::Stream;

use super::deck::Deck;
use crate::model::{Class, Model, width};

/// Gaps up to this many requests are bursts and keep their length when a workload is scaled.
const BURST: u64 = 64;

/// A reference in an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference(u64);

impl Reference {
    fn new(slot: u64, object: u32, op: u8) -> Self {
        Reference(slot << 32 | u64::from(object) << 2 | u64::from(op))
    }

    pub fn object(self) -> usize {
        (self.0 as u32 >> 2) as usize
    }

    pub fn op(self) -> usize {
        (self.0 & 3) as usize
    }
}

/// Objects that fit into a reference.
pub const MOST_OBJECTS: u64 = 1 << 30;
/// Requests that fit into an episode.
pub const MOST_REQUESTS: u64 = 1 << 32;

/// Lives for the objects of all classes, in order of time. `requests` is the episode's length, `scale` the objects' number
/// relative to the model's.
pub fn plan(model: &Model, requests: u64, scale: f64, random: &mut Stream) -> Vec<Reference> {
    let mut references = Vec::with_capacity(requests as usize);
    let mut object = 0;
    for class in &model.classes {
        let mut lives = Lives::new(class);
        // Counts come out as their mean says, however it is rounded.
        let mut owed = 0.0;
        for _ in 0..objects(class, scale) {
            owed += class.references;
            let count = (owed as u64).max(1);
            owed -= count as f64;
            lives.live(count, requests, scale, random);
            let birth = lives.birth(requests, random);
            references.extend(
                lives
                    .events
                    .iter()
                    .map(|&(at, op)| Reference::new(birth + at, object, op)),
            );
            object += 1;
        }
    }
    references.sort_unstable();
    references
}

/// Objects of a class in an episode.
pub fn objects(class: &Class, scale: f64) -> u64 {
    (class.objects as f64 * scale).round().max(1.0) as u64
}

struct Lives {
    start: Deck<u8>,
    next: [Deck<(u8, u64)>; 3],
    parts: u64,
    births: Deck<u64>,
    /// The life drawn last: requests since its first reference, and operations.
    events: Vec<(u64, u8)>,
}

impl Lives {
    fn new(class: &Class) -> Self {
        let start: Vec<(u8, f64)> = (0..3)
            .filter(|&op| class.start[usize::from(op)] > 0.0)
            .map(|op| (op, class.start[usize::from(op)]))
            .collect();
        let next = |from: usize| {
            let row = (0..3u8).flat_map(|to| {
                let gaps = &class.next[from][usize::from(to)].0;
                gaps.iter().map(move |&(gap, weight)| ((to, gap), weight))
            });
            Deck::new(&row.collect::<Vec<_>>())
        };
        Lives {
            start: Deck::new(&start),
            next: [next(0), next(1), next(2)],
            parts: class.parts.max(1),
            births: Deck::of(&class.births),
            events: Vec::new(),
        }
    }

    /// Draws a life of `count` references, shorter than `requests`.
    fn live(&mut self, count: u64, requests: u64, scale: f64, random: &mut Stream) {
        self.events.clear();
        let (mut op, mut at) = (self.start.draw(random).unwrap_or(0), 0);
        self.events.push((0, op));
        for _ in 1..count {
            // What always came last in the trace may come earlier here; any other row will do then.
            let row = [usize::from(op), 0, 1, 2]
                .into_iter()
                .find(|&row| !self.next[row].is_empty());
            let drawn = row.and_then(|row| self.next[row].draw(random));
            let (to, edge) = drawn.unwrap_or((op, 1));
            let gap = edge + random.below(width(edge));
            at += match gap > BURST {
                true => (gap as f64 * scale) as u64,
                false => gap.max(1),
            };
            op = to;
            self.events.push((at, op));
        }
        if at >= requests {
            let shrink = (requests - 1) as f64 / at as f64;
            for (at, _) in &mut self.events {
                *at = (*at as f64 * shrink) as u64;
            }
        }
    }

    /// When the life drawn last begins, so that it ends before `requests`.
    fn birth(&mut self, requests: u64, random: &mut Stream) -> u64 {
        let length = self.events.last().map_or(0, |(at, _)| *at);
        let leeway = requests.saturating_sub(length).max(1);
        let within = random.unit();
        let part = match self.births.draw(random) {
            Some(part) => part.min(self.parts - 1) as f64,
            // Without a distribution births are spread evenly.
            None => random.below(self.parts) as f64,
        };
        ((part + within) / self.parts as f64 * leeway as f64) as u64
    }
}
