//! A block device as whoever drives it sees it: requests in bytes go in, completions come out.
//!
//! The device is passive: it reads no clock, owns no thread and prints nothing. A simulated drive, an array of drives and
//! a memory are such devices, and a simulated host, a live server and an array drive them by the same calls.

use crate::request::{IoRequest, OpKind};

/// A passive block device.
///
/// Times are nanoseconds on a clock of the caller's, and never go back: `now_ns` of a call is not before that of an earlier one.
pub trait BlockDevice {
    fn geometry(&self) -> DeviceGeometry;

    /// Gives the device a request at `now_ns`. Its completion carries `tag`.
    ///
    /// # Panics
    /// If the request reaches beyond the capacity.
    fn submit(&mut self, tag: u64, io: &IoRequest<'_>, now_ns: u64);

    /// When the device will next have something to do; `None`: not before the next request.
    fn next_wakeup(&mut self) -> Option<u64>;

    /// Lets time pass until `now_ns` and appends what has completed, in order of completion.
    fn advance(&mut self, now_ns: u64, out: &mut Vec<Completion>);

    /// Lets time pass until something completes, but not beyond `until_ns`. Returns the time it is then; `None` if there is
    /// no limit and nothing will ever happen.
    fn advance_to_completion(&mut self, until_ns: Option<u64>, out: &mut Vec<Completion>) -> Option<u64> {
        let before = out.len();
        loop {
            let now_ns = match (self.next_wakeup(), until_ns) {
                (Some(wakeup), Some(until)) => wakeup.min(until),
                (wakeup, until) => wakeup.or(until)?,
            };
            self.advance(now_ns, out);
            if out.len() > before || until_ns == Some(now_ns) {
                return Some(now_ns);
            }
        }
    }

    /// Announces a request whose first byte is `offset` and that will come after `ahead` others. A device may fetch what it
    /// will touch; results are the same without.
    fn prefetch(&self, _op: OpKind, _offset: u64, _ahead: usize) {}
}

/// What a host must know of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceGeometry {
    pub capacity_bytes: u64,
    /// The piece that requests are best made of: what covers one in part costs more than what covers it whole.
    pub unit_bytes: u32,
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    Done,
    /// It had no effect: a [fault](crate::faults) struck it.
    Failed,
    /// The device takes no more writes; what it holds can still be read.
    WornOut,
}

/// A completed request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// As given to [`BlockDevice::submit`].
    pub tag: u64,
    pub op: OpKind,
    pub status: Status,
    pub submitted_ns: u64,
    pub done_ns: u64,
    /// Sums to `done_ns - submitted_ns`.
    pub parts: Breakdown,
}

/// Parts of a latency, nanoseconds. They sum exactly to it.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Breakdown {
    /// Waiting for mapping operations.
    pub map_ns: u64,
    /// Waiting for a die, a channel, the host link, the controller, or other requests' work.
    pub queue_ns: u64,
    /// That part of the waiting during which the die worked for GC, wear levelling or an erase, or for a free block.
    pub gc_wait_ns: u64,
    /// Cell time and decoding.
    pub flash_ns: u64,
    /// Commands and data on the channel, data on the host link, set-up, and work of the controller's engines such as hashing.
    pub transfer_ns: u64,
}

impl Breakdown {
    pub fn total_ns(&self) -> u64 {
        self.map_ns + self.queue_ns + self.gc_wait_ns + self.flash_ns + self.transfer_ns
    }

    #[inline]
    pub fn add(&mut self, part: Part, ns: u64) {
        match part {
            Part::Map => self.map_ns += ns,
            Part::Queue => self.queue_ns += ns,
            Part::GcWait => self.gc_wait_ns += ns,
            Part::Flash => self.flash_ns += ns,
            Part::Transfer => self.transfer_ns += ns,
        }
    }
}

/// A part of a [`Breakdown`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Map,
    Queue,
    GcWait,
    Flash,
    Transfer,
}
