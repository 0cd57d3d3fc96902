//! The controller's write buffer: what stays in memory, and which unit leaves it first.

use ftlab_core::{Catalogue, Lpn, member};

use crate::request::WriteContext;

pub mod lru;
pub mod none;
pub mod write_back;
pub mod write_through;

/// What a write found in the buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Replaced {
    Nothing,
    Clean,
    /// A version that has not been programmed, and what was known of it.
    Dirty(WriteContext),
}

/// Which units a buffer holds. The mechanism programs what leaves it dirty.
pub trait BufferPolicy: Send {
    /// Whether writes are acknowledged from the buffer.
    fn write_back(&self) -> bool;

    /// Whether the buffer can hold anything at all: `none` costs the hot path one branch.
    fn is_none(&self) -> bool {
        false
    }

    /// A host write of `lpn`; says what the buffer held of it. What is known of the unit stays with it until it leaves.
    fn write(&mut self, lpn: Lpn, context: &WriteContext) -> Replaced;

    /// A host read of `lpn`; true if the buffer holds it. If not, what comes from flash may enter; in checked runs it has the
    /// stamp `in_flash`.
    fn read(&mut self, lpn: Lpn, in_flash: u32) -> bool;

    /// The stamp of what the buffer holds of `lpn`, clean or dirty, if it holds anything: that of the context or the read
    /// with which it came.
    fn held(&self, lpn: Lpn) -> Option<u32>;

    /// Whether the unit is in the buffer and not in flash yet.
    fn is_dirty(&self, lpn: Lpn) -> bool;

    /// The next dirty unit to program, if more than the buffer's capacity is dirty, or any is when `all`.
    fn evict(&mut self, all: bool) -> Option<(Lpn, WriteContext)>;

    /// Forgets `lpn` (trimmed, or written past the buffer); what was known of it, if it was dirty.
    fn forget(&mut self, lpn: Lpn) -> Option<WriteContext>;

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
