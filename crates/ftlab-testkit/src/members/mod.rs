//! Policies that use the powers of the seams.

pub mod blocked;
pub mod broken_buffer;
pub mod chunk_dedup;
pub mod knowing;
pub mod lifetimes;
pub mod many_streams;
pub mod mapping_cache;
pub mod mirror;
pub mod out_of_line;
pub mod popular;
pub mod seer;
pub mod two_copies;
pub mod two_groups;
pub mod two_streams;
pub mod unit_dedup;
pub mod watched;

pub use blocked::Blocked;
pub use broken_buffer::BrokenBuffer;
pub use chunk_dedup::ChunkDedup;
pub use knowing::Knowing;
pub use lifetimes::Lifetimes;
pub use many_streams::ManyStreams;
pub use mapping_cache::MappingCache;
pub use mirror::Mirror;
pub use out_of_line::OutOfLine;
pub use popular::Popular;
pub use seer::Seer;
pub use two_copies::TwoCopies;
pub use two_groups::TwoGroups;
pub use two_streams::TwoStreams;
pub use unit_dedup::UnitDedup;
pub use watched::Watched;
