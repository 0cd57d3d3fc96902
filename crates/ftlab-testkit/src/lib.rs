//! Tests only: what holds the FTL against a naive reference.
//!
//! Reading order: `operation` (what a host may do), `reference` (what it must read back), `nand` and the two backends
//! `instant` and `late` (what flash allows), `bench` (all of them together), `case` (drives), `members` (policies that
//! use the powers of the seams), `driving` (one after the other), `shrink`, `fuzz`.

pub mod bench;
pub mod case;
pub mod double;
pub mod draw;
pub mod driving;
pub mod fuzz;
pub mod instant;
pub mod late;
pub mod members;
pub mod nand;
pub mod operation;
pub mod reference;
pub mod shrink;

pub use bench::Bench;
pub use case::Case;
pub use double::Double;
pub use fuzz::fuzz_drive;
pub use instant::Instant;
pub use late::Late;
pub use operation::Operation;
pub use reference::Reference;
