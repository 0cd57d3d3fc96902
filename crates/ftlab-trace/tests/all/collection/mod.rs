//! Where the collection of real traces lies: in `FTLAB_TRACES`, or beside the repository.

use std::path::PathBuf;

/// Its folder. Without it a test of real traces passes, and says that it was skipped.
pub fn collection() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    let folder = std::env::var_os("FTLAB_TRACES").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no trace collection (FTLAB_TRACES names one)");
    None
}
