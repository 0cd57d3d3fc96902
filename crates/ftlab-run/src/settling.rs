//! Whether a run has settled: the ends of passes, and looking again at growing lengths.

use ftlab_drive::config::DriveConfig;

use crate::measure::End;
use crate::sampler::{Reading, Sampler};
use crate::verdict::{Measure, Verdict};

/// Host writes by which a window grows from one look to the next.
const GROWTH: f64 = 1.25;
/// A run that is to become steady writes no more, in logical capacities.
pub const MOST_DRIVE_WRITES: f64 = 100.0;
/// Most readings that are kept of ends of passes.
const MOST_PASSES: usize = 64;

/// What is asked of a run.
#[derive(Clone, Copy, Debug)]
pub struct Settles {
    pub measure: Measure,
    /// Whether the run ends when it is steady, and what it makes before that in any case.
    pub until: Option<Look>,
}

impl Settles {
    /// Judged by an interval of half a `width`, and not ended by it.
    pub fn at(width: f64, config: &DriveConfig) -> Self {
        let logical_units = config.ftl.logical_units;
        Settles {
            measure: Measure { logical_units, width },
            until: None,
        }
    }
}

/// When a run that is to become steady may end.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// At the end of a pass over the workload.
    Pass,
    /// After so many requests.
    Requests(u64),
}

/// The ends of passes so far, and the next look.
#[derive(Debug)]
pub struct Settling {
    asked: Settles,
    /// One reading in `every` passes; the first is the beginning.
    passes: Vec<Reading>,
    every: u64,
    finished: u64,
    look_at_writes: f64,
    /// Requests and passes when the drive had last written something.
    wrote_at: (u64, u64),
    host_writes: u64,
    /// Requests that failed since.
    failed: u64,
}

impl Settling {
    pub fn new(asked: Settles) -> Self {
        Settling {
            asked,
            passes: vec![Reading::default()],
            every: 1,
            finished: 0,
            look_at_writes: 0.0,
            wrote_at: (0, 0),
            host_writes: 0,
            failed: 0,
        }
    }

    /// Looks at the last reading, before which so many passes were `finished`, and where it matters at the share of the invalid
    /// space that is `uncollected`. The end of the run, if this is one.
    pub fn look(&mut self, series: &Sampler, finished: u64, uncollected: impl FnOnce() -> f64) -> Option<End> {
        let now = *series.readings().last()?;
        let pass_ended = finished > self.finished;
        if pass_ended {
            self.finished = finished;
            if finished >= self.passes.len() as u64 * self.every {
                self.passes.push(now);
            }
            if self.passes.len() > MOST_PASSES {
                let mut index = 0;
                self.passes.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.every *= 2;
            }
        }
        let due = match self.asked.until? {
            Look::Pass => pass_ended,
            Look::Requests(least) => now.requests >= least,
        };
        if now.host_writes > self.host_writes {
            self.host_writes = now.host_writes;
            self.wrote_at = (now.requests, finished);
            self.failed = 0;
        }
        if now.host_writes > 0 && self.writes_no_more(now.requests, finished) {
            return Some(End::Unsettled);
        }
        if !due || (now.host_writes as f64) < self.look_at_writes {
            return None;
        }
        self.look_at_writes = now.host_writes as f64 * GROWTH;
        let verdict = self.verdict(series, uncollected());
        let spent = verdict.drive_writes >= MOST_DRIVE_WRITES || now.host_writes == 0;
        match verdict.is_steady() {
            true => Some(End::Steady),
            false => spent.then_some(End::Unsettled),
        }
    }

    /// A request has failed, after so many passes. The end of the run, if this is one.
    pub fn failed(&mut self, finished: u64) -> Option<End> {
        self.failed += 1;
        self.writes_no_more(self.wrote_at.0, finished).then_some(End::Unsettled)
    }

    /// A drive that takes no more writes never settles.
    fn writes_no_more(&self, requests: u64, finished: u64) -> bool {
        let (since, passes) = self.wrote_at;
        match self.asked.until {
            None => false,
            Some(Look::Pass) => finished > passes + 1,
            Some(Look::Requests(least)) => requests - since + self.failed >= least,
        }
    }

    /// The verdict on the window so far.
    pub fn verdict(&self, series: &Sampler, uncollected: f64) -> Verdict {
        let mut passes = self.passes.clone();
        if let Some(last) = series.readings().last()
            && self.finished > 0
            && passes.last().is_some_and(|end| end.host_writes < last.host_writes)
        {
            passes.push(*last);
        }
        Verdict::of(series.readings(), &passes, uncollected, &self.asked.measure)
    }
}
