//! Policies that use the powers of the seams.

pub mod blocked;
pub mod broken_buffer;
pub mod by_parity;
pub mod chunk_dedup;
pub mod knowing;
pub mod lifetimes;
pub mod many_streams;
pub mod mapping_cache;
pub mod out_of_line;
pub mod popular;
pub mod seer;
pub mod three_streams;
pub mod two_copies;
pub mod two_groups;
pub mod two_streams;
pub mod unit_dedup;
pub mod watched;

pub use blocked::Blocked;
pub use broken_buffer::BrokenBuffer;
pub use by_parity::ByParity;
pub use chunk_dedup::ChunkDedup;
pub use knowing::Knowing;
pub use lifetimes::Lifetimes;
pub use many_streams::ManyStreams;
pub use mapping_cache::MappingCache;
pub use out_of_line::OutOfLine;
pub use popular::Popular;
pub use seer::Seer;
pub use three_streams::ThreeStreams;
pub use two_copies::TwoCopies;
pub use two_groups::TwoGroups;
pub use two_streams::TwoStreams;
pub use unit_dedup::UnitDedup;
pub use watched::Watched;
