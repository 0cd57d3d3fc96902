//! The attribute table: lifetimes and streams of program contexts.

use ftlab_core::IndexList;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::super::kmeans::{self, Weighted};
use super::super::learnt;
use super::{Distance, Weight};
use crate::frontier::Frontier;

/// Bytes of an entry: a signature of 64 bits and a lifetime of 32.
const BYTES: u64 = 12;

/// Samples that are averaged before later ones weigh an eighth.
const AVERAGED: u32 = 8;

/// The share of its value by which a lifetime changes, and of the contexts that change, before they are clustered anew.
const CHANGE: f64 = 0.1;

/// Units after which contexts without a stream are clustered with the others again.
const PATIENCE: u64 = 1 << 16;

/// Most rounds of one clustering.
const ROUNDS: usize = 100;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Context {
    signature: u64,
    lifetime: f64,
    /// Deaths seen; 0 where the lifetime is but the age of what is still there.
    samples: u32,
    /// The lifetime that it was clustered with; 0 for never.
    clustered: f64,
    /// 0 for none yet.
    stream: Frontier,
    writes: u64,
    has_changed: bool,
}

impl Context {
    fn has_lifetime(&self) -> bool {
        self.samples > 0 || self.lifetime > 0.0
    }
}

#[derive(Serialize, Deserialize)]
pub(in super::super) struct Contexts {
    each: Vec<Context>,
    /// Numbers of contexts that have left.
    unused: Vec<u32>,
    /// That have come, or changed their lifetime, since they were clustered.
    changed: u32,
    /// Tick of the last clustering, and whether it left contexts without a stream.
    clustered_at: u64,
    has_streamless: bool,
    #[serde(serialize_with = "learnt::sorted")]
    numbers: FxHashMap<u64, u32>,
    /// Numbers, that of the last write in front; only where the table is bounded.
    order: IndexList,
    /// 0: unbounded.
    most: u32,
    evictions: u64,
}

impl Contexts {
    pub fn new(most: u32) -> Self {
        Contexts {
            each: Vec::new(),
            unused: Vec::new(),
            changed: 0,
            clustered_at: 0,
            has_streamless: false,
            numbers: FxHashMap::default(),
            order: IndexList::new(0),
            most,
            evictions: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    pub fn bytes(&self) -> u64 {
        BYTES * self.len() as u64
    }

    /// A unit comes with context `signature`.
    pub fn wrote(&mut self, signature: u64) {
        let number = match self.numbers.get(&signature) {
            Some(&number) => number,
            None => self.enter(signature),
        };
        self.each[number as usize].writes += 1;
        if self.most > 0 {
            self.order.touch(number);
        }
    }

    fn enter(&mut self, signature: u64) -> u32 {
        if self.most > 0
            && self.len() >= self.most as usize
            && let Some(oldest) = self.order.pop_back()
        {
            self.numbers.remove(&self.each[oldest as usize].signature);
            self.changed -= u32::from(self.each[oldest as usize].has_changed);
            self.unused.push(oldest);
            self.evictions += 1;
        }
        let context = Context {
            signature,
            has_changed: true,
            ..Context::default()
        };
        self.changed += 1;
        let number = match self.unused.pop() {
            Some(number) => {
                self.each[number as usize] = context;
                number
            }
            None => {
                self.each.push(context);
                (self.each.len() - 1) as u32
            }
        };
        self.numbers.insert(signature, number);
        number
    }

    /// Data of context `signature` has died at this age.
    pub fn died(&mut self, signature: u64, age: f64) {
        let Some(&number) = self.numbers.get(&signature) else {
            return;
        };
        let context = &mut self.each[number as usize];
        context.samples = context.samples.saturating_add(1);
        context.lifetime = match context.samples {
            1 => age,
            n if n <= AVERAGED => context.lifetime + (age - context.lifetime) / f64::from(n),
            _ => context.lifetime + (age - context.lifetime) / f64::from(AVERAGED),
        };
        self.note_change(number);
    }

    fn note_change(&mut self, number: u32) {
        let context = &mut self.each[number as usize];
        let change = (context.lifetime - context.clustered).abs();
        if !context.has_changed && change > CHANGE * context.clustered {
            context.has_changed = true;
            self.changed += 1;
        }
    }

    /// Contexts without a death get the age of what they have written.
    pub fn take_ages(&mut self, ages: &[(u64, f64)]) {
        for &(signature, age) in ages {
            if let Some(&number) = self.numbers.get(&signature) {
                let context = &mut self.each[number as usize];
                if context.samples == 0 {
                    context.lifetime = age;
                }
            }
        }
    }

    /// Whether they should be clustered at `tick`: many have changed, or some have waited long for a stream.
    pub fn is_due(&self, tick: u64) -> bool {
        let many = self.changed > 0 && f64::from(self.changed) >= CHANGE * self.len() as f64;
        many || (self.has_streamless && tick - self.clustered_at >= PATIENCE)
    }

    /// Gives every context with a lifetime a stream, from 1 on, by lifetime.
    pub fn cluster(&mut self, tick: u64, streams: u16, distance: Distance, weight: Weight) {
        let scaled = |context: &Context| match distance {
            Distance::Linear => context.lifetime,
            Distance::Log => libm::log2(1.0 + context.lifetime),
        };
        let is_here = |&number: &u32| {
            let context = &self.each[number as usize];
            context.has_lifetime() && self.numbers.get(&context.signature) == Some(&number)
        };
        let mut here: Vec<u32> = (0..self.each.len() as u32).filter(is_here).collect();
        here.sort_by(|&a, &b| {
            let (a, b) = (&self.each[a as usize], &self.each[b as usize]);
            scaled(a).total_cmp(&scaled(b)).then(a.signature.cmp(&b.signature))
        });
        let centres = if here.len() <= usize::from(streams) {
            Vec::new()
        } else {
            let weighted = |&number: &u32| {
                let context = &self.each[number as usize];
                Weighted {
                    value: scaled(context),
                    weight: match weight {
                        Weight::Contexts => 1.0,
                        Weight::Writes => context.writes.max(1) as f64,
                    },
                }
            };
            let mut values: Vec<Weighted> = here.iter().map(weighted).collect();
            kmeans::centres(&mut values, usize::from(streams), ROUNDS)
        };
        for (place, &number) in here.iter().enumerate() {
            let cluster = match centres[..] {
                [] => place,
                _ => kmeans::nearest(&centres, scaled(&self.each[number as usize])),
            };
            let context = &mut self.each[number as usize];
            context.stream = cluster as Frontier + 1;
            context.clustered = context.lifetime;
        }
        self.each.iter_mut().for_each(|context| context.has_changed = false);
        self.changed = 0;
        self.clustered_at = tick;
        self.has_streamless = here.len() < self.len();
    }

    /// 0 for a context that has none yet.
    pub fn stream_of(&self, signature: u64) -> Frontier {
        let number = self.numbers.get(&signature);
        number.map_or(0, |&number| self.each[number as usize].stream)
    }
}
