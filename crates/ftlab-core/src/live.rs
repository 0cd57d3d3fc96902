//! A block device that clients use while it runs, as a server sees it.

use serde_json::Value;

use crate::device::{BlockDevice, Completion};
use crate::request::IoRequest;

/// What a power cut did to a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// From power-on until the drive takes requests again.
    pub recovery_ns: u64,
}

/// A block device that a server can drive, and what the server asks of it besides.
pub trait LiveDrive: BlockDevice {
    /// A request goes in.
    fn submitted(&mut self, _io: &IoRequest<'_>, _now_ns: u64) {}

    /// A request of `length` bytes at `offset` has completed.
    fn completed(&mut self, done: &Completion, offset: u64, length: u32);

    /// Mean P/E cycles of its blocks since it was new, over those that they are rated for.
    fn wear(&self) -> f64 {
        0.0
    }

    /// Whether it may refuse writes because it is worn out.
    fn wears_out(&self) -> bool {
        false
    }

    /// A die fails: how many mapping units can't be read now.
    fn fail_die(&mut self, _die: u32) -> u64 {
        0
    }

    /// Whether what a mapping unit holds can't be read, because its die failed.
    fn is_lost(&self, _unit: u64) -> bool {
        false
    }

    /// Which version of a mapping unit the device holds: another after each write, the same again when a power cut has brought an
    /// older one back, 0 for none. `None` if it keeps no account: then its power cannot be cut.
    fn version(&self, unit: u64) -> Option<u32>;

    /// Whether a write that is acknowledged can no longer be lost.
    fn keeps_what_it_acknowledged(&self) -> bool;

    /// Power fails and comes back: requests in flight are gone.
    fn cut_power(&mut self) -> PowerLoss;

    /// Figures so far.
    fn figures(&mut self, now_ns: u64) -> Value;

    /// Begins its figures anew.
    fn reset(&mut self, now_ns: u64);

    /// Looked at about ten times a second; `false` ends the service.
    fn goes_on(&mut self, now_ns: u64) -> bool;

    /// Whether content ids of written data are of use, and of how many bytes each.
    fn content_bytes(&self) -> Option<u32>;
}
