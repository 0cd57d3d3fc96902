//! The state of one bank.

use rustc_hash::FxHashMap;

use crate::Ps;

pub const CLOSED: u32 = u32::MAX;

/// One bank: the open row, the earliest times of its next commands, and what it has done.
#[derive(Clone, Debug, Default)]
pub struct Bank {
    /// The row in the row buffer, or `CLOSED`.
    pub open: u32,
    /// Whether the row buffer holds lines that the cells do not.
    pub dirty: bool,
    /// Earliest next column command to the open row.
    pub next_column: Ps,
    /// Earliest next precharge, or activation of a closed bank.
    pub next_row: Ps,
    /// Whether a request owns the bank.
    pub owned: bool,
    /// Hits in a row that passed an older request, or, with a limit on runs, all hits since the row was opened (by `first_ready`, with the first).
    pub passed: u32,
    /// A write to the cells that may be paused: when it started and when it ends.
    pub writing: Option<(Ps, Ps)>,
    /// Earliest next column command and precharge if that write were over.
    pub but_for_writing: (Ps, Ps),
    /// What is left of a paused write.
    pub paused: Option<Ps>,
    pub counts: Counts,
    /// Up to when its time was counted as busy: a row may be closed before the next column command could go (`t_rtp` < `t_ccd`).
    pub busy_until: Ps,
    /// Writes to the cells of each row.
    pub wear: FxHashMap<u32, u32>,
}

/// What a bank has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub reads: u64,
    pub writes: u64,
    pub hits: u64,
    pub misses: u64,
    pub conflicts: u64,
    /// Dirty rows that were closed.
    pub dirty_closed: u64,
    pub pauses: u64,
    pub busy: Ps,
}

impl Bank {
    pub fn new() -> Self {
        Bank {
            open: CLOSED,
            ..Bank::default()
        }
    }

    /// Counts the time as busy that was not counted before; that time.
    pub fn count_busy(&mut self, from: Ps, to: Ps) -> (Ps, Ps) {
        let from = from.max(self.busy_until);
        let to = to.max(from);
        self.counts.busy += to - from;
        self.busy_until = to;
        (from, to)
    }

    /// Takes back the end of what was counted.
    pub fn take_back_busy(&mut self, time: Ps) {
        self.counts.busy -= time;
        self.busy_until -= time;
    }

    pub fn hold_until(&mut self, time: Ps) {
        self.next_column = self.next_column.max(time);
        self.next_row = self.next_row.max(time);
    }

    /// What a dirty row means when it is closed: one write to its cells.
    pub fn clean(&mut self) {
        if self.dirty {
            self.dirty = false;
            self.counts.dirty_closed += 1;
            self.wear_out(self.open);
        }
    }

    pub fn wear_out(&mut self, row: u32) {
        *self.wear.entry(row).or_insert(0) += 1;
    }
}
