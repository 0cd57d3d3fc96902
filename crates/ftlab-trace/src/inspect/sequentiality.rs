//! Which requests follow on from earlier ones, run lengths, and how far the others jump.
//!
//! # Model
//! For each volume and operation the ends of the last 32 requests. Volumes from number 4096 on share these places with
//! the volume 4096 below (never matching each other's ends, but forgetting sooner). Requests of no bytes are left out.
//! # Memory
//! 300 bytes a volume and operation: 2.4 MiB at most.

use ftlab_core::{Batch, OpKind};

use super::SequentialFigures;
use super::inspection::share;
use super::octaves::{octave_curve, octave_of};

const STREAMS: usize = 32;
const PLACES: usize = 4096;
/// An end that no request has: ends are above 0.
const NONE: u64 = 0;

#[derive(Default)]
pub struct Sequentiality {
    ends: Vec<[Ends; 2]>,
    ops: [OneOp; 2],
}

#[derive(Clone, Copy)]
struct Ends {
    recent: [u64; STREAMS],
    next: u32,
}

impl Default for Ends {
    fn default() -> Self {
        Ends {
            recent: [NONE; STREAMS],
            next: 0,
        }
    }
}

#[derive(Clone, Copy)]
struct OneOp {
    requests: u64,
    bytes: u64,
    strict: u64,
    strict_bytes: u64,
    streams: u64,
    streams_bytes: u64,
    forward: [u64; 65],
    backward: [u64; 65],
}

impl Default for OneOp {
    fn default() -> Self {
        OneOp {
            requests: 0,
            bytes: 0,
            strict: 0,
            strict_bytes: 0,
            streams: 0,
            streams_bytes: 0,
            forward: [0; 65],
            backward: [0; 65],
        }
    }
}

impl Sequentiality {
    pub fn add(&mut self, batch: &Batch) {
        for i in 0..batch.len() {
            let (op, length, volume) = (batch.op[i], u64::from(batch.length[i]), usize::from(batch.volume[i]));
            if !matches!(op, OpKind::Read | OpKind::Write) || length == 0 {
                continue;
            }
            let place = volume % PLACES;
            if self.ends.len() <= place {
                self.ends.resize(place + 1, Default::default());
            }
            // Which of the sharing volumes it is stands above every end below 2^60.
            let tag = ((volume / PLACES) as u64) << 60;
            let (ends, one) = (&mut self.ends[place][op as usize], &mut self.ops[op as usize]);
            let offset = batch.offset[i];
            one.add(ends, offset.wrapping_add(tag), length);
            ends.recent[ends.next as usize] = offset.saturating_add(length).wrapping_add(tag);
            ends.next = (ends.next + 1) % STREAMS as u32;
        }
    }

    pub fn finish(&self) -> super::Sequentiality {
        let [read, write] = self.ops;
        super::Sequentiality {
            read: read.finish(),
            write: write.finish(),
            all: read.plus(&write).finish(),
        }
    }
}

impl OneOp {
    #[inline]
    fn add(&mut self, ends: &Ends, start: u64, length: u64) {
        self.requests += 1;
        self.bytes += length;
        let last = ends.recent[(ends.next as usize + STREAMS - 1) % STREAMS];
        if last == NONE {
            return;
        }
        if start == last {
            self.strict += 1;
            self.strict_bytes += length;
        } else if start > last {
            self.forward[octave_of(start - last)] += 1;
        } else {
            self.backward[octave_of(last - start)] += 1;
        }
        // Without an early way out, so that it compiles to a few wide steps; an unused place is no start but 0.
        let matches = ends.recent.iter().fold(false, |found, &end| found | (end == start));
        if matches && start != NONE {
            self.streams += 1;
            self.streams_bytes += length;
        }
    }

    fn plus(&self, other: &OneOp) -> OneOp {
        OneOp {
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            strict: self.strict + other.strict,
            strict_bytes: self.strict_bytes + other.strict_bytes,
            streams: self.streams + other.streams,
            streams_bytes: self.streams_bytes + other.streams_bytes,
            forward: std::array::from_fn(|i| self.forward[i] + other.forward[i]),
            backward: std::array::from_fn(|i| self.backward[i] + other.backward[i]),
        }
    }

    fn finish(&self) -> SequentialFigures {
        let runs = self.requests - self.strict;
        SequentialFigures {
            requests: self.requests,
            strict_share: share(self.strict, self.requests),
            strict_share_bytes: share(self.strict_bytes, self.bytes),
            streams_share: share(self.streams, self.requests),
            streams_share_bytes: share(self.streams_bytes, self.bytes),
            mean_run_requests: share(self.requests, runs),
            mean_run_bytes: share(self.bytes, runs),
            mean_stream_run_requests: share(self.requests, self.requests - self.streams),
            jump_forward: octave_curve(&self.forward, ("jump_bytes", "requests"), 1.0, 1.0),
            jump_backward: octave_curve(&self.backward, ("jump_bytes", "requests"), 1.0, 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(requests: &[(OpKind, u64, u32, u16)]) -> super::super::Sequentiality {
        let (mut batch, mut sequentiality) = (Batch::default(), Sequentiality::default());
        for &(op, offset, length, volume) in requests {
            batch.push(0, op, offset, length, volume, 0);
        }
        sequentiality.add(&batch);
        sequentiality.finish()
    }

    #[test]
    fn two_interleaved_streams_and_a_jump_back() {
        use OpKind::{Read, Write};
        let figures = run(&[
            (Write, 0, 10, 0),
            (Write, 1000, 10, 0), // 990 forward
            (Write, 10, 10, 0),   // the first stream goes on: 1000 back from 1010
            (Write, 20, 70, 0),   // strict
            (Read, 90, 10, 0),    // another operation
            (Write, 90, 10, 1),   // another volume
        ]);
        let write = &figures.write;
        assert_eq!(
            (write.requests, write.strict_share, write.streams_share),
            (5, Some(0.2), Some(0.4))
        );
        assert_eq!(
            (write.strict_share_bytes, write.streams_share_bytes),
            (Some(70.0 / 110.0), Some(80.0 / 110.0))
        );
        assert_eq!(
            (write.mean_run_requests, write.mean_run_bytes),
            (Some(1.25), Some(27.5))
        );
        assert_eq!((write.jump_forward.x[0], write.jump_forward.y[0]), (512.0, 1.0));
        assert_eq!((write.jump_backward.x[0], write.jump_backward.y[0]), (512.0, 1.0));
        assert_eq!((figures.read.requests, figures.read.strict_share), (1, Some(0.0)));
        assert_eq!(figures.all.streams_share, Some(2.0 / 6.0));
    }

    #[test]
    fn the_32_last_ends_and_not_the_33rd() {
        let mut requests: Vec<_> = (0..32).map(|i| (OpKind::Read, i << 20, 512, 0)).collect();
        requests.push((OpKind::Read, 512, 512, 0));
        assert_eq!(run(&requests).read.streams_share, Some(1.0 / 33.0));
        requests.insert(32, (OpKind::Read, 40 << 20, 512, 0));
        assert_eq!(run(&requests).read.streams_share, Some(0.0));
    }

    #[test]
    fn volumes_that_share_a_place_do_not_match() {
        let figures = run(&[(OpKind::Read, 0, 512, 1), (OpKind::Read, 512, 512, 4097)]);
        assert_eq!(figures.read.streams_share, Some(0.0));
        assert_eq!(run(&[]).all.strict_share, None);
        // Starting at 0 follows nothing, whatever unused places hold.
        assert_eq!(
            run(&[(OpKind::Read, 5, 1, 0), (OpKind::Read, 0, 5, 0)])
                .read
                .streams_share,
            Some(0.0)
        );
        run(&[
            (OpKind::Read, u64::MAX, u32::MAX, u16::MAX),
            (OpKind::Read, 0, 1, u16::MAX),
        ]);
    }
}
