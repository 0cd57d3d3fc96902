//! Dynamic page replication on a real disk: late pages are read from, and written to, other ranges of the disk.
//!
//! # Model
//! A file or block device is cut into equal *partitions*, each with a queue and a thread, and each taken for a chip ([`queue`]). A
//! database's pages lie in slots of the partitions ([`places`]). A read or write that is not done within the deadline D is tried in another
//! partition as well, and what completes first counts ([`store`]). Which copies there are, and of which version, stands in a checksummed log
//! ([`map_log`]). Whether ranges of a disk disturb each other less than themselves is measured by [`calibrate`].
//!
//! A page is never overwritten in place: each version goes to free slots, and the slots of the version before are used again after the map that
//! no longer has them is durable. So a page has its new or its former content after a crash, never half of each.
//! # Not modelled
//! What the disk does inside: an access counts as blocked when it is late. A losing access cannot be taken back from the kernel; its slot is
//! used again after it has completed. Two processes on one database: the second is refused.
//! # Source
//! He, Yu and Zhou, "Improving Update-Intensive Workloads on Flash Disks through Exploiting Multi-Chip Parallelism", IEEE TPDS 26(1), 2015,
//! section 5.1. The map log, the deadline that follows the disk, and what is done about failures are ours.

pub mod calibrate;
pub mod counters;
pub mod disk;
pub mod map_log;
pub mod options;
pub mod page;
pub mod places;
pub mod queue;
mod race;
pub mod report;
pub mod store;

pub use options::Options;
pub use store::{Fault, Store};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Holds a mutex; a thread that panicked with it has left it whole, as every change is made after what can fail.
pub(crate) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
