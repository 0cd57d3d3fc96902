//! Deduplication: whether a unit (or a quarter of it) needs writing at all.
//!
//! A member knows contents; the mechanism knows places. A unit whose content exists is mapped to the virtual page that
//! holds it (reference-counted); a chunk-level member answers with a row of four chunks, each in a pack of four.

use ftlab_core::{Catalogue, Lpn, member};

use crate::Now;
use crate::indirection::ChunkId;

pub mod none;

/// A host write as a dedup policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct DedupWrite {
    pub lpn: Lpn,
    /// Content id of the unit.
    pub content: u64,
    pub pc: u64,
    pub now: Now,
}

/// One chunk of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkSource {
    Existing(ChunkId),
    /// To be stored; the mechanism answers with [`DedupPolicy::chunk_stored`].
    New {
        content: u64,
    },
}

/// What happens to a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The content lies in this virtual page.
    Existing(u32),
    /// Store it behind a virtual page number; the mechanism answers with [`DedupPolicy::stored`].
    New,
    /// Store it as if there were no deduplication.
    Bypass,
    /// Quarter by quarter.
    Chunks([ChunkSource; 4]),
}

pub trait DedupPolicy: Send {
    /// Figures of the policy's own for the summary, since the drive was new.
    fn report(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    fn write(&mut self, write: &DedupWrite) -> Decision;

    /// The unit of `content` is now virtual page `vpn`.
    fn stored(&mut self, _content: u64, _vpn: u32) {}

    /// The chunk of `content` has been stored.
    fn chunk_stored(&mut self, _content: u64, _chunk: ChunkId) {}

    /// Nothing refers to `vpn` any more; its number will be used again.
    fn dead(&mut self, _vpn: u32) {}

    /// Nothing refers to a chunk any more.
    fn chunk_dead(&mut self, _chunk: ChunkId) {}

    /// Power has failed, and memory is not protected: what was known of contents is lost.
    fn forget(&mut self) {}
}

/// What a dedup policy is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub logical_units: u32,
}

pub fn catalogue() -> Catalogue<dyn DedupPolicy, Setup> {
    member!(Catalogue::new("dedup"), none)
}
