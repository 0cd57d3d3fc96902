//! Who asks the memory: arrivals at given times (open loop), or cores that wait for what they asked (closed loop).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Ps;

/// One access of a stream: a line, and the time that its core thinks before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub address: u64,
    pub write: bool,
    /// Of a closed loop: from the issue of the access before. Of an open loop: the time of arrival.
    pub time: Ps,
}

pub type Stream = Box<dyn Iterator<Item = Step>>;

pub trait Feed {
    /// When the next access comes, as far as is known.
    fn next_at(&mut self) -> Option<Ps>;
    /// The access that comes at `next_at`, and its tag; none if something else happened then.
    fn take(&mut self) -> Option<(u64, Step)>;
    fn completed(&mut self, tag: u64, at: Ps);
    /// Whether nothing more will come.
    fn is_over(&mut self) -> bool;
}

/// Arrivals at the times of the steps, which never go back.
pub struct OpenLoop {
    steps: Stream,
    next: Option<Step>,
    count: u64,
}

impl OpenLoop {
    pub fn new(mut steps: Stream) -> Self {
        let next = steps.next();
        OpenLoop { steps, next, count: 0 }
    }
}

impl Feed for OpenLoop {
    fn next_at(&mut self) -> Option<Ps> {
        self.next.map(|step| step.time)
    }

    fn take(&mut self) -> Option<(u64, Step)> {
        let step = self.next?;
        self.next = self.steps.next();
        self.count += 1;
        Some((self.count - 1, step))
    }

    fn completed(&mut self, _: u64, _: Ps) {}

    fn is_over(&mut self) -> bool {
        self.next.is_none()
    }
}

/// Cores, each with a stream of accesses of which at most `outstanding` are under way.
pub struct Cores {
    cores: Vec<Core>,
    outstanding: u32,
    /// Completions to come: time and core.
    completions: BinaryHeap<Reverse<(Ps, u64)>>,
    /// When the next core issues, and which.
    issue: Option<(Ps, usize)>,
    /// Cores that have accesses left.
    busy: usize,
}

struct Core {
    steps: Stream,
    next: Option<Step>,
    /// Earliest issue of `next`.
    from: Ps,
    under_way: u32,
}

impl Cores {
    pub fn new(streams: Vec<Stream>, outstanding: u32) -> Self {
        let core = |mut steps: Stream| {
            let next = steps.next();
            Core {
                steps,
                next,
                from: next.map_or(0, |step| step.time),
                under_way: 0,
            }
        };
        let cores: Vec<Core> = streams.into_iter().map(core).collect();
        let mut feed = Cores {
            busy: cores.iter().filter(|core| core.next.is_some()).count(),
            cores,
            outstanding,
            completions: BinaryHeap::new(),
            issue: None,
        };
        feed.issue = feed.first();
        feed
    }

    /// The core that issues first, and when: ties go to the lower number.
    fn first(&self) -> Option<(Ps, usize)> {
        let able = |core: &&Core| core.next.is_some() && core.under_way < self.outstanding;
        let cores = self.cores.iter().enumerate().filter(|(_, core)| able(core));
        cores.map(|(index, core)| (core.from, index)).min()
    }
}

impl Feed for Cores {
    fn next_at(&mut self) -> Option<Ps> {
        let completion = self.completions.peek().map(|Reverse((at, _))| *at);
        let issue = self.issue.map(|(at, _)| at);
        completion.into_iter().chain(issue).min()
    }

    fn take(&mut self) -> Option<(u64, Step)> {
        let issue = self.issue;
        if let Some(&Reverse((at, tag))) = self.completions.peek()
            && issue.is_none_or(|(time, _)| at <= time)
        {
            self.completions.pop();
            let core = &mut self.cores[tag as usize];
            core.under_way -= 1;
            core.from = core.from.max(at);
            self.issue = self.first();
            return None;
        }
        let (at, index) = issue?;
        let core = &mut self.cores[index];
        let step = core.next?;
        core.next = core.steps.next();
        core.under_way += 1;
        core.from = at.saturating_add(core.next.map_or(0, |next| next.time));
        self.busy -= usize::from(core.next.is_none());
        self.issue = self.first();
        Some((index as u64, step))
    }

    fn completed(&mut self, tag: u64, at: Ps) {
        self.completions.push(Reverse((at, tag)));
    }

    fn is_over(&mut self) -> bool {
        self.busy == 0
    }
}
