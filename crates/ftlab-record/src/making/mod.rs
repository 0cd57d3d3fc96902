//! Making recordings: starting the program, and turning what it leaves behind into one file.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod coverage;
mod fiemap;
mod gather;
mod launch;
mod merge;
mod naming;
mod notes;
mod opened;
mod record;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod supervise;
mod symbols;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use self::coverage::{Coverage, Missed};
pub use self::record::{RecordOptions, Recorded, Signature, merge, record};
