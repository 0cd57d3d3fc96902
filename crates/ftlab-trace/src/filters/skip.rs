//! All but the first part of a stream.
//!
//! # Model
//! Drops exactly what `head` with the same limits keeps. The clock starts at 0 with the first request that passes.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `requests` | number of requests | a count such as `1e6` | no limit |
//! | `seconds` | time stamps below this | seconds, or a time such as `2h` | no limit |
//! | `bytes` | until reads and writes amount to this | a size such as `10GiB` | no limit |
//!
//! At least one is needed.
//! # Not modelled
//! The state in which the dropped part would have left a drive: use a warm-up for that (`--warmup`).
//! # Source
//! tail(1).

use ftlab_core::{Batch, Result, Source};

use super::frame::{Edit, Stage, editing};
use super::limits::Limits;
use super::{Context, Keys};
use crate::rows;

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    Ok(editing(Skip {
        limits: Limits::read(keys, "skip")?,
        start: None,
    }))
}

struct Skip {
    limits: Limits,
    /// Time of the first request that passed.
    start: Option<u64>,
}

impl Edit for Skip {
    fn edit(&mut self, batch: &mut Batch, _: &dyn Source) -> Result<()> {
        rows::retain(batch, |batch, i| !self.limits.within(batch, i));
        if let Some(&first) = batch.time_ns.first() {
            let start = *self.start.get_or_insert(first);
            batch
                .time_ns
                .iter_mut()
                .for_each(|time| *time = time.saturating_sub(start));
        }
        Ok(())
    }

    fn remaining(&self, coming: u64) -> Option<u64> {
        self.limits.remaining(coming).map(|dropped| coming - dropped)
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::Source;

    use super::super::testing::{behind, filtered, reads_at};

    #[test]
    fn head_and_skip_are_the_whole() {
        let times: Vec<u64> = (0..9000).map(|i| i * 1_000_000).collect();
        for limit in ["requests=5000", "seconds=1.5", "bytes=1MiB", "requests=0"] {
            let kept = filtered(&[&format!("head:{limit}")], reads_at(&times)).len();
            let rest = filtered(&[&format!("skip:{limit}")], reads_at(&times));
            assert_eq!(kept + rest.len(), 9000, "{limit}");
            assert_eq!(rest.offset[0], (kept * 4096) as u64, "{limit}");
            assert_eq!(rest.time_ns[..2], [0, 1_000_000], "{limit}");
        }
        assert_eq!(behind(&["skip:requests=100"], reads_at(&times)).remaining(), Some(8900));
    }
}
