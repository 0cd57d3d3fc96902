//! Static: copies of the values that are read most, on the chips that follow.
//!
//! # Model
//! As `rr_ssd`, but the copies of a value that lies on chip i go to the chips i + 1 to i + j (modulo their number). A
//! chip without room is skipped. On line, the copy waits for a chip that is not idle.
//!
//! # Parameters
//! * `when` (`end_of_day` or `on_line`, default `end_of_day`): copies are made all at once at the end of a day, or in
//!   idle moments as values become popular.
//! * `mirror` (bool, default true): at the end of a day a mirror of the drive serves the host until all copies are in flash. Without one,
//!   which the source always has, the pass comes at the first look after the end of a day that finds some lane idle for `idle_us`: reads up to
//!   then count for it, and a day that ends before that adds to the same pass, though `days` counts both. Its copies are then made where lanes are
//!   idle, at most 64 a look; those that have not been made when the next pass comes are given up.
//! * `copies` (`linear`, `count` or `all`, default `linear`): copies of a value that was read *n* times: 1 + round(n (N − 1) / 63) of N chips, n + 1,
//!   or N; N is at most 64, however many chips (packages: a channel's ways) there are.
//! * `alpha` (%, default 0): space for copies, of the workload's size, beyond what deduplication saves. Both together are at most what the drive
//!   has beside its logical units and what collection needs (`ftl.op_ratio`), however empty it is: it keeps room for all its logical units.
//!   A note says so where more copies were wanted.
//! * `workload_units` (units, default: the units that hold data): the workload's size.
//! * `day_s` (s, default 86400): length of a day. `day_units` (host units written, default none): length of a day in
//!   host writes instead. Without time, the default is the logical units of the drive. Whether a day is over is looked at every thousandth of it
//!   (of a millisecond to a minute); by units every millisecond; without a mirror, and on line, every `idle_us`; without time every
//!   `idle_units`. The next day begins at the look that finds the end, so that days last longer by up to the time between two looks, and what
//!   they end late adds up. Copies of a run's last day are not made.
//! * `idle_us` (µs, default 10000): how long a lane must be idle before a copy is made there on line or without a mirror, and how
//!   often this is checked.
//! * `idle_units` (host units, default 1024): without time, how often the policy checks whether there is something to
//!   do.
//!
//! # Not modelled
//! Load other than the number of operations waiting or running on the die of each copy: whether the read would overtake
//! them, and the load of channels. Shared pages: a copy takes a page of its own. Separate chips after a collection: it
//! may bring copies of a value to one chip if a pool spans several. A power cut loses the counters in memory; orders
//! under way are not part of a saved state. The mirror itself: its cost and energy, and the work of keeping it up to
//! date.
//!
//! # Errors
//! Numbers out of range.
//!
//! # Cost
//! O(copies) a read. At the end of a day O(units of the drive). A byte a logical unit and a byte a value.
//!
//! # Source
//! The strategy of that name in Elyasi et al., "Content Popularity-Based Selective Replication for Read Redirection in SSDs", section IV.

use ftlab_core::Result;

use super::chips::Choice;
use super::selective;
use super::{ReplicationPolicy, Setup};

pub use super::selective::Params;

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn ReplicationPolicy>> {
    selective::new("static", params, Choice::Next, setup)
}
