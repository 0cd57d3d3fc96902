//! Counters of the timed backend, since the last `clear_stats`.

use ftlab_ftl::{Cause, Class, FlashOpKind};

/// Busy times and counts of a window that began at `since_ns`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedStats {
    pub since_ns: u64,
    pub until_ns: u64,
    /// Events processed: ends of phases, wake-ups, timers, decodings.
    pub events: u64,
    /// By kind of operation and cause, completed (multi-plane operations counted one by one).
    pub ops: [[u64; Cause::ALL.len()]; 3],
    /// Reads served from the controller's copy.
    pub controller_reads: u64,
    pub suspends: u64,
    /// Operations that ran together with another one of their die.
    pub merged: u64,
    /// Per die, time held by each class.
    pub die_busy_ns: Vec<[u64; Class::COUNT]>,
    /// Per channel, time in transfers.
    pub channel_busy_ns: Vec<u64>,
    pub host_out_busy_ns: u64,
}

impl TimedStats {
    pub fn ops_of(&self, kind: FlashOpKind) -> u64 {
        self.ops[kind as usize].iter().sum()
    }
}
