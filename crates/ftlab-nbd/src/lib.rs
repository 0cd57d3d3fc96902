//! A block device served over NBD, and as files, under the wall clock: the live drive.
//!
//! # Model
//! Connections ([`session`](self)) read requests and hand them to one engine, which owns the device and the data. A request enters
//! the device when it arrives and is answered when the device has completed it. Data lies in a [`store`]; the device knows addresses
//! only. The device is any [`LiveDrive`], so this crate knows neither flash nor files of drives.
//!
//! # Not modelled
//! The transport's own time, which comes on top of the device's: the report tells both.

mod clock;
mod connection;
mod engine;
mod files;
pub mod fuzz;
mod handshake;
mod listen;
mod poll;
mod power_log;
pub mod protocol;
mod report;
mod request;
mod server;
mod session;
pub mod store;

use ftlab_core::{BlockDevice, Completion, IoRequest};
use serde_json::Value;

pub use clock::Pace;
pub use files::Files;
pub use listen::{Address, Sockets};
pub use report::Report;
pub use server::{Options, serve};

/// A range of the drive under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub name: String,
    /// First byte on the drive.
    pub offset: u64,
    pub size: u64,
}

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
