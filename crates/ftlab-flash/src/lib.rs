//! The NAND array: what a page, a block and a die may do, and how long it takes.

pub mod timing;

pub use timing::Timing;
