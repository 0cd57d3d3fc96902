//! Recording programs: starting them, and turning what they leave behind into one file.
//!
//! ```text
//! command ─ started with the library inside, or traced ─► spools ─ gathered, merged, functions named ─► recording
//! ```
//!
//! The forms of spools and recordings are those of `ftlab_record`, which reads them. What is here needs processes and debugging
//! information, which no reader of recordings does.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod coverage;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod exact;
mod fiemap;
mod gather;
mod launch;
mod merge;
mod naming;
mod notes;
mod obstacles;
mod opened;
mod record;
mod spec;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod supervise;
mod symbols;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use self::coverage::{Coverage, Missed};
pub use self::record::{RecordOptions, Recorded, Signature, merge, record};
pub use self::spec::RecordSpec;
