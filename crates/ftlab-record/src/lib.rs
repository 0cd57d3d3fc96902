//! Recordings of programs: what a recorded program leaves behind, and how it becomes a trace.
//!
//! ```text
//! program ─ library inside it, or tracer ─► spools ─ merge, symbols ─► recording ─ page cache, extents ─► requests
//! ```
//!
//! A recorded program writes a *spool* per thread while it runs ([`spool`]). When it has ended, `ftlab-recorder` makes one file of
//! the spools, a *recording* ([`recording`]), and that is replayed as often as one likes ([`replay`]). What its program contexts
//! are like is told by [`contexts`].

#[cfg(feature = "reading")]
pub mod contexts;
pub mod elf;
#[cfg(feature = "reading")]
mod file_kinds;
#[cfg(feature = "reading")]
pub mod fuzz;
pub mod loading;
#[cfg(feature = "reading")]
pub mod recording;
#[cfg(feature = "reading")]
pub mod replay;
pub mod spool;
pub mod uring;
