//! The controller's write buffer: what stays in memory, and which unit leaves it first.

use ftlab_core::{Catalogue, Lpn, member};

pub mod lru;
pub mod none;
pub mod write_back;
pub mod write_through;

/// Which units a buffer holds. The mechanism programs what leaves it dirty.
pub trait BufferPolicy: Send {
    /// Whether writes are acknowledged from the buffer.
    fn write_back(&self) -> bool;

    /// Whether the buffer can hold anything at all: `none` costs the hot path one branch.
    fn is_none(&self) -> bool {
        false
    }

    /// A host write of `lpn`; true if the buffer held it (dirty or clean).
    fn write(&mut self, lpn: Lpn) -> bool;

    /// A host read of `lpn`; true if the buffer holds it.
    fn read(&mut self, lpn: Lpn) -> bool;

    /// Whether the unit is in the buffer and not in flash yet.
    fn is_dirty(&self, lpn: Lpn) -> bool;

    /// The next dirty unit to program, if more than the buffer's capacity is dirty, or any is when `all`.
    fn evict(&mut self, all: bool) -> Option<Lpn>;

    /// Forgets `lpn` (trimmed, or written past the buffer).
    fn forget(&mut self, lpn: Lpn);

    /// Dirty units, in the order in which they would be evicted.
    fn dirty(&self) -> Vec<Lpn>;

    /// Forgets everything (a power cut).
    fn clear(&mut self);
}

/// What a buffer policy is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub capacity_units: u32,
}

pub fn catalogue() -> Catalogue<dyn BufferPolicy, Setup> {
    member!(Catalogue::new("buffer"), none, write_through, write_back, lru)
}
