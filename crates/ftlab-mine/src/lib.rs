//! Mining of correlations: which pages are read soon after which others, learned from a stream of reads.
//!
//! [`Reads`] records the stream, [`Clustered`] and [`CMiner`] mine it, [`CorrelationSet`] is the result: ordered pairs of
//! LPNs with their support, as a value and as a text file. [`Coverage`] says what a set is worth on other reads, and
//! [`Parts`] cuts a source into parts to learn from and to test on.
//!
//! Nothing here knows a drive, a file format of traces, a clock or a thread. Miners count the bytes of their structures
//! themselves, so that a memory figure is the same on every machine.

mod best;
mod clustered;
mod cminer;
mod counting;
mod coverage;
mod groups;
mod meter;
mod mined;
mod parts;
mod projection;
mod reads;
mod regions;
mod set;
mod set_file;
#[cfg(test)]
mod tests;

pub use clustered::Clustered;
pub use cminer::CMiner;
pub use coverage::{Coverage, useful};
pub use groups::{Group, Groups};
pub use mined::{Cut, Mined, Report, Threshold};
pub use parts::{Parts, count, part};
pub use projection::Projection;
pub use reads::{Items, Reads};
pub use set::{About, CorrelationSet, Pair};
