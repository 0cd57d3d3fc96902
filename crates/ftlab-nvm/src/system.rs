//! Channels together, driven by a feed.

use ftlab_core::{Histogram, Result};

use crate::channel::{Access, Channel, Done};
use crate::feed::Feed;
use crate::{Memory, Ps};

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
    /// When, besides, the last write to the cells had ended.
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
    /// now and then whether to.
    pub fn run(
        &mut self,
        memory: &Memory,
        feed: &mut dyn Feed,
        each: &mut dyn FnMut(&Done),
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
            let arrival = feed.next_at().unwrap_or(Ps::MAX);
            let now = wakes.iter().copied().min().unwrap_or(Ps::MAX).min(arrival);
            if feed.is_over() {
                if self.channels.iter().all(Channel::is_idle) {
                    let cells = self.channels.iter().map(|channel| channel.cells_until).max();
                    self.measured.drained = self.measured.finished.max(cells.unwrap_or(0));
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
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(1 << 16) {
                go_on()?;
            }
            while feed.next_at() == Some(now) {
                if let Some((tag, step)) = feed.take() {
                    let place = memory.map.place(step.address);
                    self.channels[place.channel as usize].arrive(Access {
                        tag,
                        arrived: now,
                        write: step.write,
                        line: step.address / memory.line_bytes,
                        place,
                    });
                    wakes[place.channel as usize] = now;
                }
            }
            for (channel, wake) in self.channels.iter_mut().zip(&mut wakes) {
                if *wake <= now {
                    *wake = channel.step(memory, now, &mut done);
                    debug_assert!(*wake > now);
                }
            }
            clock = now;
            for one in done.drain(..) {
                self.measured.take(&one);
                feed.completed(one.tag, one.at);
                each(&one);
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
