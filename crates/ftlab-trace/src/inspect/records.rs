//! A record for each page of the sample, and what it tells: reuse, lifetimes, skew.
//!
//! # Model
//! All pages while there are few, then those of a [`Sample`] by hash. To bound the time as well, the sample is also
//! thinned when it is accessed much more than once a request: an access to a sampled page takes 1 from an allowance of
//! `InspectOptions::sample_accesses`, a request gives 1 back, and when nothing is left half of the sample goes and half
//! of the allowance is restored. A request of n pages costs n hashes (1,048,576 at most, 1 ms) and its sampled pages; a
//! trim of more pages than there are records looks at the records instead.
//! # Memory
//! 72 bytes and 12 of index a page, 36 to 60 for the three stacks: 15 to 18 MiB with the default of 131,072 pages.

use ftlab_core::OpKind;

use super::Sampling;
use super::contexts::{Contexts, Ids, NO_CONTEXTS};
use super::lifetimes::{Life, Lifetimes};
use super::reuse::{Earlier, Moment, Reuse};
use super::sample::{Allowance, Sample};
use super::skew;
use crate::splitmix::mix;

/// Pages of a request that are looked up together, so that their cache misses overlap.
const TOGETHER: usize = 16;
/// Below this number of pages there is nothing to overlap.
const FEW: usize = 3;

#[derive(Clone, Copy, Default)]
pub struct Page {
    reads: u32,
    writes: u32,
    /// Valid if it was read, and written.
    read_at: Moment,
    written_at: Moment,
    written_ns: u64,
    /// Holds what was last written.
    alive: bool,
    /// Who wrote that.
    contexts: Ids,
}

impl Page {
    #[inline]
    fn earlier(&self, op: OpKind) -> Earlier {
        let (count, at) = if op == OpKind::Read {
            (self.reads, self.read_at)
        } else {
            (self.writes, self.written_at)
        };
        Earlier {
            count,
            last: (count > 0).then_some(at),
        }
    }
}

/// The moment of a request.
#[derive(Clone, Copy, Default)]
pub struct Clock {
    /// Requests before it.
    pub request: u64,
    /// Host pages written before it.
    pub ticks: u64,
    pub time_ns: u64,
}

/// An access to one page of the sample.
#[derive(Clone, Copy)]
pub struct Access {
    pub request: u64,
    pub ticks: u64,
    /// How many accesses it stands for.
    pub weight: u64,
}

/// The records and what they add up to.
pub struct Records {
    sample: Sample<Page>,
    reuse: Reuse,
    lifetimes: Lifetimes,
    allowance: Allowance,
    accesses: u64,
}

impl Records {
    pub fn new(most: usize, accesses: u64) -> Self {
        Records {
            sample: Sample::new(most),
            reuse: Reuse::default(),
            lifetimes: Lifetimes::default(),
            allowance: Allowance::new(accesses),
            accesses: 0,
        }
    }

    /// A read or write of `count` pages from `first` on.
    #[inline]
    pub fn access(&mut self, op: OpKind, first: u64, count: u64, clock: Clock, ids: Ids, contexts: &mut Contexts) {
        self.allowance.earn();
        let past = first.saturating_add(count);
        let mut ticks = clock.ticks;
        for start in (first..past).step_by(TOGETHER) {
            let hashes = self.hashes(start, past, Some(op));
            for (key, hash) in (start..past).zip(hashes) {
                if self.sample.belongs(hash) {
                    self.one(op, key, hash, Clock { ticks, ..clock }, ids, contexts);
                }
                ticks += u64::from(op == OpKind::Write);
            }
        }
    }

    /// Of up to [`TOGETHER`] pages from `start` on, whose records are on their way into the cache then, and with an operation the
    /// places that it takes them from.
    #[inline]
    fn hashes(&self, start: u64, past: u64, op: Option<OpKind>) -> [u64; TOGETHER] {
        let hashes = std::array::from_fn(|i| mix(start.wrapping_add(i as u64)));
        let here = &hashes[..TOGETHER.min((past - start) as usize)];
        if here.len() >= FEW {
            let sampled = || here.iter().filter(|hash| self.sample.belongs(**hash));
            sampled().for_each(|&hash| self.sample.prefetch_index(hash));
            for &hash in sampled() {
                if let Some(id) = self.sample.prefetch_record(hash)
                    && let Some(op) = op
                {
                    self.reuse.prefetch(id, op as usize);
                }
            }
        }
        hashes
    }

    fn one(&mut self, op: OpKind, key: u64, hash: u64, clock: Clock, ids: Ids, contexts: &mut Contexts) {
        if !self.allowance.spend() {
            self.thin();
        }
        let id = match self.sample.find(hash, key) {
            Some(id) => id,
            None => {
                while self.sample.is_full() {
                    self.thin();
                }
                if !self.sample.belongs(hash) {
                    return;
                }
                self.sample.insert(hash, key)
            }
        };
        self.accesses += 1;
        let weight = self.sample.weight();
        let access = Access {
            request: clock.request,
            ticks: clock.ticks,
            weight,
        };
        let moment = (clock.request, clock.ticks);
        let page = self.sample.get_mut(id);
        let read = page.earlier(OpKind::Read);
        let written = page.earlier(OpKind::Write);
        let any = Earlier {
            count: read.count.saturating_add(written.count),
            last: read.last.max(written.last),
        };
        let own = if op == OpKind::Read { read } else { written };
        self.reuse.access(id, op as usize, own, any, &access);
        if op == OpKind::Read {
            page.reads = page.reads.saturating_add(1);
            page.read_at = moment;
            return;
        }
        end_life(page, clock, false, weight, &mut self.lifetimes, contexts);
        page.writes = page.writes.saturating_add(1);
        (page.written_at, page.written_ns, page.alive, page.contexts) = (moment, clock.time_ns, true, ids);
        contexts.wrote(ids, weight);
    }

    /// A trim that covers `count` pages from `first` on.
    pub fn trim(&mut self, first: u64, count: u64, clock: Clock, contexts: &mut Contexts) {
        let weight = self.sample.weight();
        let past = first.saturating_add(count);
        if count > self.sample.len() as u64 {
            for (key, _, page) in self.sample.iter_mut() {
                if (first..past).contains(&key) {
                    end_life(page, clock, true, weight, &mut self.lifetimes, contexts);
                }
            }
            return;
        }
        for start in (first..past).step_by(TOGETHER) {
            let hashes = self.hashes(start, past, None);
            for (key, hash) in (start..past).zip(hashes) {
                if self.sample.belongs(hash)
                    && let Some(id) = self.sample.find(hash, key)
                {
                    let page = self.sample.get_mut(id);
                    end_life(page, clock, true, weight, &mut self.lifetimes, contexts);
                }
            }
        }
    }

    fn thin(&mut self) {
        self.sample.thin(|id| self.reuse.forget(id));
    }

    /// Contexts of one kind got other ids.
    pub fn renumber(&mut self, kind: usize, places: &[Option<u32>]) {
        for (_, _, page) in self.sample.iter_mut() {
            let id = &mut page.contexts[kind];
            let place = places.get(usize::from(*id)).copied().flatten();
            *id = place.map_or(NO_CONTEXTS[kind], |place| place as u16);
        }
    }

    /// `accesses` are the true numbers of page reads and writes.
    pub fn finish(mut self, accesses: [u64; 2], ticks: u64, timed: bool) -> Finished {
        let weight = self.sample.weight();
        for (_, _, page) in self.sample.iter().filter(|(_, _, page)| page.alive) {
            self.lifetimes.alive(ticks - page.written_at.1, page.writes, weight);
        }
        let counts = |of: fn(&Page) -> u32| self.sample.iter().map(|(_, _, page)| of(page)).collect::<Vec<_>>();
        let all: Vec<u32> = counts(|page| page.reads.saturating_add(page.writes));
        let both = accesses[0] + accesses[1];
        Finished {
            sampling: Sampling {
                exact: self.sample.level() == 0,
                rate: self.sample.rate(),
                sampled: self.sample.len() as u64,
                accesses: self.accesses,
                standard_error: skew::standard_error(&all, both, weight),
            },
            skew: super::Skew {
                read: skew::figures(counts(|page| page.reads), accesses[0], weight),
                write: skew::figures(counts(|page| page.writes), accesses[1], weight),
                all: skew::figures(all, both, weight),
            },
            reuse: self.reuse.finish(accesses),
            lifetimes: self.lifetimes.finish(accesses[1], timed),
        }
    }
}

/// What the records add up to.
pub struct Finished {
    pub sampling: Sampling,
    pub skew: super::Skew,
    pub reuse: super::Reuse,
    pub lifetimes: super::Lifetimes,
}

#[inline]
fn end_life(
    page: &mut Page,
    clock: Clock,
    trimmed: bool,
    weight: u64,
    lifetimes: &mut Lifetimes,
    contexts: &mut Contexts,
) {
    if !page.alive {
        return;
    }
    page.alive = false;
    let life = Life {
        ticks: clock.ticks - page.written_at.1,
        nanoseconds: clock.time_ns.saturating_sub(page.written_ns),
        writes: page.writes,
        trimmed,
    };
    lifetimes.end(life, weight);
    contexts.end_life(page.contexts, life.ticks, weight);
}
