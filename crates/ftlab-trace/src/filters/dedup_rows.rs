//! Requests that were recorded twice are dropped.
//!
//! # Model
//! A request is dropped if the same operation on the same volume, offset and length passed at most `within` before. A
//! request that is repeated later than that passes, and restarts the interval.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `within` | most time between the two rows | a time | `5ms` |
//! # Not modelled
//! Two rows of one request that differ in size, or of which the second was merged. Flushes always pass. Only the latest
//! 65,536 requests are remembered: in a trace whose times are all equal, older ones count as expired.
//! # Source
//! The phone traces of Technion's mobile block I/O set, where up to a third of the rows repeat their predecessors within
//! 5 ms.

use std::collections::VecDeque;

use ftlab_core::{Batch, OpKind, Result, Source};
use rustc_hash::FxHashMap;

use super::frame::{Edit, Stage, editing};
use super::{Context, Keys};
use crate::rows;

const REMEMBERED: usize = 65_536;

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    Ok(editing(DedupRows {
        within: keys.nanoseconds("within", 5_000_000)?,
        passed: FxHashMap::default(),
        order: VecDeque::new(),
    }))
}

/// Operation, volume, offset and length.
type Row = (u8, u16, u64, u32);

struct DedupRows {
    within: u64,
    /// When each row passed last.
    passed: FxHashMap<Row, u64>,
    /// The same, oldest first; no row stands here twice.
    order: VecDeque<(u64, Row)>,
}

impl DedupRows {
    fn passes(&mut self, batch: &Batch, i: usize) -> bool {
        if batch.op[i] == OpKind::Flush {
            return true;
        }
        let now = batch.time_ns[i];
        while let Some(&(time, row)) = self.order.front() {
            if now.saturating_sub(time) <= self.within && self.order.len() < REMEMBERED {
                break;
            }
            self.passed.remove(&row);
            self.order.pop_front();
        }
        let row = (batch.op[i] as u8, batch.volume[i], batch.offset[i], batch.length[i]);
        if self.passed.contains_key(&row) {
            return false;
        }
        self.passed.insert(row, now);
        self.order.push_back((now, row));
        true
    }
}

impl Edit for DedupRows {
    fn edit(&mut self, batch: &mut Batch, _: &dyn Source) -> Result<()> {
        rows::retain(batch, |batch, i| self.passes(batch, i));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{filtered, requests};

    #[test]
    fn a_row_seen_again_soon_is_dropped_and_later_passes() {
        let all = requests(
            "0,read,0,512\n1,read,512,512\n5,read,0,512\n5,write,0,512\n5,read,0,1024\n6,read,0,512\n7,read,0,512\n12,flush,,\n12,flush,,\n",
        );
        // The read at 0 of time 5 repeats that of time 0; at 6 it is long enough ago, and 7 repeats 6.
        assert_eq!(
            filtered(&["dedup_rows:within=5ns"], all).time_ns,
            [0, 1, 5, 5, 6, 12, 12]
        );
    }
}
