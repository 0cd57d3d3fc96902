//! Making recordings: starting the program, and turning what it leaves behind into one file.

mod fiemap;
mod launch;
mod merge;
mod record;
mod symbols;

pub use self::record::{RecordOptions, Recorded, Signature, merge, record};
