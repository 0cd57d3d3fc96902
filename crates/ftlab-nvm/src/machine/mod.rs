//! Sampling in this machine's own memory, with threads on its cores and its clock.
//!
//! `region` (memory of our own, or a file mapped in place, and where its frames lie), `placement` (which bank each row of the data is in, as far as
//! that is known), `cores` (threads on cores, cores of a node), `counters` (what the kernel counts meanwhile), `running` (one run), `job` (all of it, scheme by scheme in turns).

pub mod cores;
pub mod counters;
pub mod job;
pub mod placement;
pub mod region;
mod running;

pub use job::{MeasureSpec, measure};
