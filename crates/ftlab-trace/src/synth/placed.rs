//! Requests drawn from the keys of every kind, placed by a [`Pattern`].

use ftlab_core::{Batch, OpKind, Stream};
use rand_distr::Distribution;

use super::spec::{Common, Ops, Sizes};
use super::time::Time;
use super::{Arrivals, Pattern, threshold};

/// A kind's places under requests drawn from the common keys.
pub struct Placed {
    pub common: Common,
    pub pattern: Box<dyn Pattern>,
    /// Reads, writes and trims still to come.
    pub left: u64,
    op_random: Stream,
    size_random: Stream,
    place_random: Stream,
    clock: Clock,
    writes_to_flush: u64,
}

impl Placed {
    pub fn new(common: Common, pattern: Box<dyn Pattern>) -> Self {
        let stream = |name| Stream::new(common.seed, name);
        Placed {
            left: common.requests,
            op_random: stream("workload operations"),
            size_random: stream("workload sizes"),
            place_random: stream("workload offsets"),
            clock: Clock {
                random: stream("workload arrivals"),
                time: Time::default(),
            },
            writes_to_flush: common.flush,
            common,
            pattern,
        }
    }

    /// Fills a batch that is empty.
    pub fn fill(&mut self, batch: &mut Batch) {
        let n = self.left.min(Batch::TARGET as u64) as usize;
        self.left -= n as u64;
        self.fill_times(n, &mut batch.time_ns);
        self.fill_ops(n, &mut batch.op);
        self.fill_lengths(n, &mut batch.length);
        batch.volume.resize(n, 0);
        batch.flags.resize(n, 0);
        self.pattern.place(batch, &mut self.place_random);
        if self.common.flush > 0 {
            self.add_flushes(batch);
        }
    }

    fn fill_ops(&mut self, n: usize, op: &mut Vec<OpKind>) {
        let Ops { read, trim } = self.common.ops;
        if let Some(always) = self.common.ops.always() {
            op.resize(n, always);
            return;
        }
        let (below_read, below_trim) = (threshold(read), threshold(read + trim));
        op.extend((0..n).map(|_| {
            let draw = self.op_random.next_u64() >> 1;
            // Arithmetic instead of branches: a mix is unpredictable by design.
            let code = u8::from(draw >= below_read) + u8::from(draw >= below_trim);
            [OpKind::Read, OpKind::Trim, OpKind::Write][usize::from(code)]
        }));
    }

    fn fill_lengths(&mut self, n: usize, length: &mut Vec<u32>) {
        match &self.common.sizes {
            Sizes::One(size) => length.resize(n, *size),
            Sizes::Many(sizes) => length.extend((0..n).map(|_| {
                let draw = self.size_random.unit();
                sizes
                    .iter()
                    .find(|s| draw < s.up_to)
                    .or(sizes.last())
                    .map_or(0, |s| s.bytes)
            })),
        }
    }

    fn fill_times(&mut self, n: usize, time_ns: &mut Vec<u64>) {
        match self.common.arrivals {
            Arrivals::Closed { .. } => time_ns.resize(n, 0),
            Arrivals::Open { per_second } => {
                let fixed = self.common.fixed_gaps;
                time_ns.extend((0..n).map(|_| self.clock.next(1e9 / per_second, fixed)));
            }
        }
    }

    /// Puts a flush behind each so many writes.
    fn add_flushes(&mut self, batch: &mut Batch) {
        let mut with = Batch::default();
        for i in 0..batch.len() {
            crate::rows::append(&mut with, batch, i);
            if batch.op[i] == OpKind::Write {
                self.writes_to_flush -= 1;
                if self.writes_to_flush == 0 {
                    self.writes_to_flush = self.common.flush;
                    let mut flush = Batch::default();
                    flush.push(batch.time_ns[i], OpKind::Flush, 0, 0, 0, 0);
                    crate::rows::append(&mut with, &flush, 0);
                }
            }
        }
        *batch = with;
    }
}

/// Arrivals with a given mean gap.
struct Clock {
    random: Stream,
    time: Time,
}

impl Clock {
    #[inline]
    fn next(&mut self, mean_gap: f64, fixed: bool) -> u64 {
        let gap: f64 = if fixed {
            mean_gap
        } else {
            let draw: f64 = rand_distr::Exp1.sample(self.random.generator());
            mean_gap * draw
        };
        self.time.advance(gap)
    }
}
