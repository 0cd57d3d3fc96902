//! Channels together, driven by a feed.

use ftlab_core::{Error, Histogram, Result};

use crate::channel::{Access, Channel, Done};
use crate::feed::Feed;
use crate::{LATEST, Memory, Ps, TOO_LATE};

/// What a run measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Latencies in nanoseconds, rounded.
    pub reads: Histogram,
    pub writes: Histogram,
    /// Exact sums of latencies.
    pub read_ps: u128,
    pub write_ps: u128,
    /// When the last request was done.
    pub finished: Ps,
    /// When, besides, the write buffers were empty, every bank was free and the last write to the cells that had started was over.
    pub drained: Ps,
}

#[derive(Debug)]
pub struct System {
    pub channels: Vec<Channel>,
    pub measured: Measured,
}

impl System {
    pub fn new(memory: &Memory) -> Self {
        System {
            channels: (0..memory.channels).map(|_| Channel::new(memory)).collect(),
            measured: Measured::default(),
        }
    }

    /// Serves the whole feed. `each` sees every completion, in the order in which the controller learns of it; `go_on` is asked
    /// now and then whether to. A run that goes on beyond [`LATEST`] is refused.
    pub fn run<F: Feed>(
        &mut self,
        memory: &Memory,
        feed: &mut F,
        each: &mut impl FnMut(&Done),
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut wakes = vec![Ps::MAX; self.channels.len()];
        if memory.refresh.is_some() {
            wakes.fill(0);
        }
        let mut done: Vec<Done> = Vec::new();
        let mut flushed = false;
        let mut clock = 0;
        let mut rounds = 0u32;
        loop {
            let mut next = feed.next_at();
            let arrival = next.map_or(Ps::MAX, |at| at.min(LATEST));
            if memory.refresh.is_some() && arrival < Ps::MAX {
                self.skip_refreshes(memory, arrival, &mut wakes);
            }
            let now = wakes.iter().fold(arrival, |first, &wake| first.min(wake));
            if feed.is_over() {
                if self.channels.iter().all(Channel::is_idle) {
                    let works = self.channels.iter().map(|channel| channel.works_until).max();
                    self.measured.drained = self.measured.finished.max(works.unwrap_or(0));
                    return Ok(());
                }
                if !flushed {
                    flushed = true;
                    for (channel, wake) in self.channels.iter_mut().zip(&mut wakes) {
                        channel.flush();
                        *wake = (*wake).min(clock);
                    }
                    continue;
                }
            }
            assert!(now < Ps::MAX, "requests wait and nothing will happen");
            if now >= LATEST {
                return Err(Error::input(format!("the run goes on and on, expected {TOO_LATE}")));
            }
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(1 << 16) {
                go_on()?;
            }
            while next == Some(now) {
                if let Some((tag, step)) = feed.take() {
                    let place = memory.map.place(step.address);
                    let is_next = self.channels[place.channel as usize].arrive(Access {
                        tag,
                        arrived: now,
                        write: step.write,
                        line: memory.map.line(step.address),
                        place,
                    });
                    if is_next {
                        wakes[place.channel as usize] = now;
                    }
                }
                next = feed.next_at();
            }
            for (index, wake) in wakes.iter_mut().enumerate() {
                if *wake <= now {
                    *wake = self.channels[index].step(memory, now, &mut done);
                    debug_assert!(*wake > now);
                }
            }
            clock = now;
            for one in &done {
                self.measured.take(one);
                feed.completed(one.tag, one.at);
                each(one);
            }
            done.clear();
        }
    }
}

impl System {
    /// Goes over the refreshes of a long pause in one step: where no channel has anything else to do before the next arrival.
    fn skip_refreshes(&mut self, memory: &Memory, arrival: Ps, wakes: &mut [Ps]) {
        // Wakes of quiet channels are their refreshes: one that comes at an arrival or later leaves nothing to skip.
        if wakes.iter().any(|&wake| wake >= arrival) {
            return;
        }
        if !self.channels.iter().all(|channel| channel.is_quiet(memory)) {
            return;
        }
        for (channel, wake) in self.channels.iter_mut().zip(wakes) {
            if let Some(next) = channel.skip_refreshes(memory, arrival) {
                *wake = next;
            }
        }
    }
}

impl Measured {
    #[inline]
    fn take(&mut self, done: &Done) {
        let latency = done.at - done.arrived;
        let (histogram, sum) = if done.write {
            (&mut self.writes, &mut self.write_ps)
        } else {
            (&mut self.reads, &mut self.read_ps)
        };
        histogram.record((latency + 500) / 1000);
        *sum += u128::from(latency);
        self.finished = self.finished.max(done.at);
    }
}
