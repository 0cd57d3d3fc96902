//! What the drive holds: bytes at logical offsets. The FTL knows where units lie in flash and nothing of what is in them.

mod backing;
mod discard;
mod image;
mod journal;
mod memory;

use std::io;

pub use discard::Discard;
pub use image::{Found, Image, Likeness, beside};
pub use journal::{Change, Past, StateId};
pub use memory::Memory;

/// Why data could not be taken.
#[derive(Debug)]
pub enum Refusal {
    /// The memory limit is reached, or the disk of the image is full.
    Full,
    Io(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Refusal::Full,
            _ => Refusal::Io(error),
        }
    }
}

/// Bytes at logical offsets. What was never written reads as zeros.
pub trait Store: Send {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// All of `data` or nothing of it.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Refusal>;

    /// Zeros from now on, and no room taken as far as that is possible.
    fn clear(&mut self, offset: u64, length: u64) -> io::Result<()>;

    /// What is read is what was written.
    fn keeps_data(&self) -> bool {
        true
    }

    /// Makes everything survive the power loss of the host.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether `offset` holds data, and where that changes, at `end` at the latest.
    fn extent(&mut self, offset: u64, end: u64) -> io::Result<(bool, u64)>;

    /// Bytes of memory that data takes.
    fn memory_bytes(&self) -> u64 {
        0
    }
}
