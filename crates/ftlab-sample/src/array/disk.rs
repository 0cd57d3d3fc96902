//! A disk by a stated model of its service times.
//!
//! # Model
//! A read waits for one of `ways` units, first come first served, is there for `latency` times a factor drawn uniformly from `1 - jitter` to `1 + jitter`, then crosses
//! the disk's link, one at a time, at `bandwidth`. A unit is free again when its read has crossed. Now and then (exponential gaps of mean
//! `pause_every`) the disk begins nothing for `pause`, as when it collects. `speed` divides latency and multiplies bandwidth.
//!
//! # Not modelled
//! Flash: which die holds what, collection as a consequence of writes, caches, read retries. It is no simulated drive of this laboratory, but what the ApproxSSD chapter's analysis
//! takes a disk for. Writes take as long as reads.
//!
//! # Source
//! Defaults are assumed, after SATA drives of 2012: 100 us, 250 MB/s. Pauses of 4 ms every 660 ms are 0.6 % of the time, which the chapter gives as the share in which a drive is
//! slow (its reference 44).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ftlab_core::{BlockDevice, Breakdown, Completion, DeviceGeometry, IoRequest, OpKind, Status, Stream};

#[derive(Clone, Copy, Debug)]
pub struct Service {
    pub latency_ns: u64,
    pub bytes_per_s: u64,
    pub ways: usize,
    pub jitter: f64,
    pub pause_ns: u64,
    pub pause_every_ns: u64,
    pub speed: f64,
}

/// A disk of an array.
pub trait Disk: BlockDevice {
    /// A request that takes `slow` times as long in the flash.
    fn submit_slow(&mut self, tag: u64, io: &IoRequest<'_>, slow: f64, now_ns: u64);
}

/// A device that knows nothing of slow requests.
pub struct Simulated(pub Box<dyn BlockDevice>);

impl Disk for Simulated {
    fn submit_slow(&mut self, tag: u64, io: &IoRequest<'_>, _slow: f64, now_ns: u64) {
        self.0.submit(tag, io, now_ns);
    }
}

impl BlockDevice for Simulated {
    fn geometry(&self) -> DeviceGeometry {
        self.0.geometry()
    }

    fn submit(&mut self, tag: u64, io: &IoRequest<'_>, now_ns: u64) {
        self.0.submit(tag, io, now_ns);
    }

    fn next_wakeup(&mut self) -> Option<u64> {
        self.0.next_wakeup()
    }

    fn advance(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        self.0.advance(now_ns, out);
    }
}

pub struct StatedDisk {
    service: Service,
    capacity: u64,
    random: Stream,
    pauses: Stream,
    free_ways: usize,
    /// Reads that wait for a unit.
    waiting: VecDeque<usize>,
    /// When the link is free.
    link: u64,
    /// The next pause.
    pause: (u64, u64),
    /// What ends when: time, number of the event, place of the read, whether it is at the link.
    events: BinaryHeap<Reverse<(u64, u64, usize, bool)>>,
    count: u64,
    reads: Vec<Read>,
    free: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Read {
    tag: u64,
    op: OpKind,
    length: u32,
    /// So many times as long as others in the flash.
    slow: f64,
    submitted_ns: u64,
    parts: Breakdown,
}

impl StatedDisk {
    /// `number` tells the disks of an array apart.
    pub fn new(service: Service, capacity: u64, seed: u64, number: usize) -> StatedDisk {
        let mut disk = StatedDisk {
            service,
            capacity,
            random: Stream::new(seed, &format!("service of disk {number}")),
            pauses: Stream::new(seed, &format!("pauses of disk {number}")),
            free_ways: service.ways,
            waiting: VecDeque::new(),
            link: 0,
            pause: (u64::MAX, u64::MAX),
            events: BinaryHeap::new(),
            count: 0,
            reads: Vec::new(),
            free: Vec::new(),
        };
        disk.next_pause(0);
        disk
    }

    fn begin(&mut self, place: usize, now_ns: u64) {
        let begins = self.not_paused(now_ns);
        let factor = 1.0 + self.service.jitter * (2.0 * self.random.unit() - 1.0);
        let read = &mut self.reads[place];
        let flash = (self.service.latency_ns as f64 * factor * read.slow / self.service.speed) as u64;
        read.parts.queue_ns = begins - read.submitted_ns;
        read.parts.flash_ns = flash;
        self.push(begins + flash, place, false);
    }

    fn push(&mut self, at: u64, place: usize, at_link: bool) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, place, at_link)));
    }

    fn next_pause(&mut self, after: u64) {
        if self.service.pause_ns > 0 {
            let gap = -libm::log(1.0 - self.pauses.unit()) * self.service.pause_every_ns as f64;
            let start = after + gap as u64;
            self.pause = (start, start + self.service.pause_ns);
        }
    }

    /// The first time from `at` on at which the disk does not pause. Times that are asked for do not go back.
    fn not_paused(&mut self, at: u64) -> u64 {
        while self.pause.1 <= at {
            let end = self.pause.1;
            self.next_pause(end);
        }
        if self.pause.0 <= at { self.pause.1 } else { at }
    }
}

impl Disk for StatedDisk {
    fn submit_slow(&mut self, tag: u64, io: &IoRequest<'_>, slow: f64, now_ns: u64) {
        let end = io.offset + u64::from(io.length);
        assert!(end <= self.capacity, "request to byte {end} of {}", self.capacity);
        let read = Read {
            tag,
            op: io.op,
            length: io.length,
            slow,
            submitted_ns: now_ns,
            parts: Breakdown::default(),
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.reads[place] = read;
                place
            }
            None => {
                self.reads.push(read);
                self.reads.len() - 1
            }
        };
        if self.free_ways > 0 {
            self.free_ways -= 1;
            self.begin(place, now_ns);
        } else {
            self.waiting.push_back(place);
        }
    }
}

impl BlockDevice for StatedDisk {
    fn geometry(&self) -> DeviceGeometry {
        DeviceGeometry {
            capacity_bytes: self.capacity,
            unit_bytes: 512,
        }
    }

    fn submit(&mut self, tag: u64, io: &IoRequest<'_>, now_ns: u64) {
        self.submit_slow(tag, io, 1.0, now_ns);
    }

    fn next_wakeup(&mut self) -> Option<u64> {
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    fn advance(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        while let Some(&Reverse((at, _, place, at_link))) = self.events.peek().filter(|Reverse((at, ..))| *at <= now_ns)
        {
            self.events.pop();
            if !at_link {
                let crosses = at.max(self.link);
                let rate = self.service.bytes_per_s as f64 * self.service.speed;
                let read = &mut self.reads[place];
                read.parts.queue_ns += crosses - at;
                read.parts.transfer_ns = (f64::from(read.length) * 1e9 / rate) as u64;
                self.link = crosses + read.parts.transfer_ns;
                self.push(self.link, place, true);
                continue;
            }
            let read = self.reads[place];
            out.push(Completion {
                tag: read.tag,
                op: read.op,
                status: Status::Done,
                submitted_ns: read.submitted_ns,
                done_ns: at,
                parts: read.parts,
            });
            self.free.push(place);
            match self.waiting.pop_front() {
                Some(next) => self.begin(next, at),
                None => self.free_ways += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two units, 100 us, 64 KiB at 655.36 MB/s: 100 us. Three reads at once: done at 200 us, 300 us (the link), and the third, which begins
    /// at 200 us, at 400 us.
    #[test]
    fn three_reads_by_hand() {
        let service = Service {
            latency_ns: 100_000,
            bytes_per_s: 655_360_000,
            ways: 2,
            jitter: 0.0,
            pause_ns: 0,
            pause_every_ns: 0,
            speed: 1.0,
        };
        let mut disk = StatedDisk::new(service, 1 << 30, 1, 0);
        for tag in 0..3 {
            disk.submit(tag, &IoRequest::plain(OpKind::Read, tag << 16, 1 << 16), 0);
        }
        let mut done = Vec::new();
        disk.advance(1_000_000, &mut done);
        let times: Vec<u64> = done.iter().map(|completion| completion.done_ns).collect();
        assert_eq!(times, [200_000, 300_000, 400_000]);
        for completion in &done {
            assert_eq!(
                completion.parts.total_ns(),
                completion.done_ns - completion.submitted_ns
            );
        }
    }

    /// Reads one after another for a second, with pauses of a millisecond every 9 on average: a tenth of the time is lost.
    #[test]
    fn pauses_take_their_share() {
        let service = Service {
            latency_ns: 10_000,
            bytes_per_s: 1 << 40,
            ways: 1,
            jitter: 0.5,
            pause_ns: 1_000_000,
            pause_every_ns: 9_000_000,
            speed: 1.0,
        };
        let mut disk = StatedDisk::new(service, 1 << 30, 3, 0);
        let (mut now, mut reads, mut out) = (0, 0, Vec::new());
        while now < 10_000_000_000 {
            disk.submit(0, &IoRequest::plain(OpKind::Read, 0, 1), now);
            now = disk.advance_to_completion(None, &mut out).unwrap();
            reads += 1;
        }
        let share = f64::from(reads) * 10_000.0 / 1e10;
        assert!((share - 0.9).abs() < 0.02, "{share}");
    }
}
