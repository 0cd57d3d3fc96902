//! Banked byte-addressable memory with row buffers under an event-driven controller, and sampling of data that lies in it.
//!
//! Reading order: `memory` (what a memory file says), `address` (which bank and row an address is), `channel` (the controller),
//! `system` (channels together, and who asks them), `run` (a trace or generator, start to end), `sampling` (ArchSampler).
//! `probe` finds bank functions by timing, `machine` samples in this machine's own memory.
//! Times are whole picoseconds inside, nanoseconds in files and results.

pub mod address;
pub mod bank;
pub mod cache;
pub mod channel;
pub mod feed;
pub mod fuzz;
pub mod generate;
pub mod machine;
pub mod memory;
mod misses;
mod ordered;
pub mod presets;
pub mod probe;
pub mod report;
pub mod run;
pub mod sampling;
pub mod schedule;
pub mod system;
pub mod timeline;
pub mod trace;

/// Picoseconds.
pub type Ps = u64;

/// Times from here on are refused, so that sums of two of them fit: 2^63 ps, 106 days.
pub const LATEST: Ps = 1 << 63;

/// What is said of times from [`LATEST`] on.
pub const TOO_LATE: &str = "times before 2^63 ps (106 days)";

/// Picoseconds of a text such as "100ns", less than [`LATEST`]; in whole nanoseconds.
pub fn time(text: &str) -> ftlab_core::Result<Ps> {
    let ps = ftlab_core::units::nanoseconds(text)?.checked_mul(1000);
    ps.filter(|&ps| ps < LATEST)
        .ok_or_else(|| ftlab_core::Error::input(format!("{text}: expected {TOO_LATE}")))
}

pub use memory::Memory;
pub use schedule::Scheduler;
