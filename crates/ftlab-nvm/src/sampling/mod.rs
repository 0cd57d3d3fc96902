//! ArchSampler: samples of data in banked memory, chosen and handed out by bank, with error bars.
//!
//! `choice` (which rows, and which thread reads them), `query` (what is asked of rows of a file), `statistics`, `bootstrap` and `estimate` (estimates and
//! their error bars), `job` (all of it with times from the memory model).

pub mod bootstrap;
pub mod choice;
pub mod estimate;
pub mod job;
pub mod query;
pub mod statistics;

pub use choice::Scheme;
pub use job::{SampleSpec, sample};
