//! A block device served over NBD, and as files, under the wall clock: the live drive.
//!
//! # Model
//! Connections ([`session`](self)) read requests and hand them to one engine, which owns the device and the data. A request enters
//! the device when it arrives and is answered when the device has completed it. Data lies in a [`store`]; the device knows addresses
//! only. The device is any [`LiveDrive`](ftlab_core::LiveDrive), so this crate knows neither flash nor files of drives.
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
