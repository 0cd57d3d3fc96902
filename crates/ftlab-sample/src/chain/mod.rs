//! Chains of operations on the records of an LDD (transitional LDDs): what of them runs outside Python.
//!
//! # Model
//! A source is files in place or a stored LDD. Its drawn partitions are read by threads of their disks and taken through a plan by other threads
//! (`stream`): records, kernels (`kernel`), a sample of records in between (`plan`). They are handed out in a fixed order. What Python makes of them is summed by
//! partition (`sums`), and estimates follow as they do for SQL.
//!
//! # Source
//! Zhou, PhD thesis, University of Central Florida 2018, sections 1.3.2 and 1.3.3.

mod kernel;
mod plan;
mod source;
mod stream;
mod sums;

pub use kernel::{Kernel, Way};
pub use plan::{Cells, Part, Plan, choose};
pub use source::{Source, SourceSpec};
pub use stream::PartStream;
pub use sums::{ChainSums, Found, Rows};
