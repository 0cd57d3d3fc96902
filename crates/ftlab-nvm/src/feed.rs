//! Who asks the memory: arrivals at given times (open loop), or cores that wait for what they asked (closed loop).

use crate::Ps;
use crate::ordered::Ordered;

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
    #[inline]
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
    /// Completions to come: time and core, the first at the front. Nearly all come in this order.
    completions: Ordered<(Ps, u64)>,
    /// When the next core issues, and which: ties go to the lower number.
    issue: Option<(Ps, usize)>,
    /// Cores that may issue.
    able: usize,
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

impl Core {
    fn is_able(&self, outstanding: u32) -> bool {
        self.next.is_some() && self.under_way < outstanding
    }
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
            able: cores.iter().filter(|core| core.is_able(outstanding)).count(),
            busy: cores.iter().filter(|core| core.next.is_some()).count(),
            cores,
            outstanding,
            completions: Ordered::new(),
            issue: None,
        };
        feed.issue = feed.first();
        feed
    }

    fn first(&self) -> Option<(Ps, usize)> {
        let able = |core: &&Core| core.is_able(self.outstanding);
        let cores = self.cores.iter().enumerate().filter(|(_, core)| able(core));
        cores.map(|(index, core)| (core.from, index)).min()
    }

    /// One access of a core is done.
    fn complete(&mut self, index: usize, at: Ps) {
        let core = &mut self.cores[index];
        let was_able = core.is_able(self.outstanding);
        core.under_way -= 1;
        core.from = core.from.max(at);
        // One that might have issued already would do so at `at` or later, so that nothing changes for it.
        if !was_able && core.next.is_some() {
            let turn = (core.from, index);
            self.able += 1;
            self.issue = Some(self.issue.map_or(turn, |issue| issue.min(turn)));
        }
    }
}

impl Feed for Cores {
    #[inline]
    fn next_at(&mut self) -> Option<Ps> {
        match (self.completions.first(), self.issue) {
            (Some(&(completion, _)), Some((issue, _))) => Some(completion.min(issue)),
            (Some(&(at, _)), None) | (None, Some((at, _))) => Some(at),
            (None, None) => None,
        }
    }

    #[inline]
    fn take(&mut self) -> Option<(u64, Step)> {
        if let Some(&(at, tag)) = self.completions.first()
            && self.issue.is_none_or(|(time, _)| at <= time)
        {
            self.completions.remove(0);
            self.complete(tag as usize, at);
            return None;
        }
        let (at, index) = self.issue?;
        let core = &mut self.cores[index];
        let step = core.next?;
        core.next = core.steps.next();
        core.under_way += 1;
        core.from = at.saturating_add(core.next.map_or(0, |next| next.time));
        self.busy -= usize::from(core.next.is_none());
        let is_able = core.is_able(self.outstanding);
        let turn = (core.from, index);
        self.able -= usize::from(!is_able);
        self.issue = match self.able {
            0 => None,
            1 if is_able => Some(turn),
            _ => self.first(),
        };
        Some((index as u64, step))
    }

    #[inline]
    fn completed(&mut self, tag: u64, at: Ps) {
        self.completions.insert((at, tag), |other| *other > (at, tag));
    }

    #[inline]
    fn is_over(&mut self) -> bool {
        self.busy == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cores with random think times, whose accesses take random times, beside a search through all cores and completions at each event.
    #[test]
    fn cores_issue_when_they_may_the_first_first() {
        const OUTSTANDING: usize = 2;
        let mut random = ftlab_core::Stream::new(3, "feed");
        let thinks: Vec<Vec<Ps>> = (0..4).map(|_| (0..300).map(|_| random.below(6)).collect()).collect();
        let stream = |times: &Vec<Ps>| -> Stream {
            Box::new(times.clone().into_iter().map(|time| Step {
                address: 0,
                write: false,
                time,
            }))
        };
        let mut feed = Cores::new(thinks.iter().map(stream).collect(), OUTSTANDING as u32);
        let mut from: Vec<Ps> = thinks.iter().map(|times| times[0]).collect();
        let mut issued = [0usize; 4];
        let mut under_way: Vec<(Ps, usize)> = Vec::new();
        loop {
            let may = |core: usize| {
                let of_core = under_way.iter().filter(|access| access.1 == core);
                issued[core] < 300 && of_core.count() < OUTSTANDING
            };
            let issue = (0..4).filter(|&core| may(core)).map(|core| (from[core], core)).min();
            let completion = under_way.iter().copied().min();
            let next = issue.map(|i| i.0).into_iter().chain(completion.map(|c| c.0)).min();
            assert_eq!(feed.next_at(), next);
            let taken = feed.take().map(|(tag, _)| tag as usize);
            match (completion, issue) {
                (None, None) => break,
                (Some(done), issue) if issue.is_none_or(|i| done.0 <= i.0) => {
                    assert_eq!(taken, None);
                    let at = under_way.iter().position(|access| *access == done).unwrap();
                    under_way.swap_remove(at);
                    from[done.1] = from[done.1].max(done.0);
                }
                (_, Some((now, core))) => {
                    assert_eq!(taken, Some(core));
                    issued[core] += 1;
                    from[core] = now + thinks[core].get(issued[core]).copied().unwrap_or(0);
                    let done = (now + random.below(12), core);
                    under_way.push(done);
                    feed.completed(core as u64, done.0);
                }
                (Some(_), None) => unreachable!("the completion goes first"),
            }
        }
        assert!(issued == [300; 4] && feed.is_over());
    }
}
