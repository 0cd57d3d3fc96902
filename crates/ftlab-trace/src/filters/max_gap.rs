//! Long pauses are cut short.
//!
//! # Model
//! A pause between two requests that is longer than `gap` becomes `gap`, and all later requests arrive earlier by the
//! difference. This is meant for traces of several sessions one after the other, and for traces in which a drive would
//! idle for hours.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `gap` | the longest pause | a time such as `10s` | `10s` |
//! # Not modelled
//! What a drive does in long pauses: background collection, refresh.
//! # Source
//! Our own.

use ftlab_core::{Batch, Result, Source};

use super::frame::{Edit, Stage, editing};
use super::{Context, Keys};

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    Ok(editing(MaxGap {
        gap: keys.nanoseconds("gap", 10_000_000_000)?,
        read: 0,
        given: 0,
    }))
}

struct MaxGap {
    gap: u64,
    /// Time of the request before, as it came and as it went on.
    read: u64,
    given: u64,
}

impl Edit for MaxGap {
    fn edit(&mut self, batch: &mut Batch, _: &dyn Source) -> Result<()> {
        for time in &mut batch.time_ns {
            let pause = time.saturating_sub(self.read).min(self.gap);
            self.read = *time;
            self.given = self.given.saturating_add(pause);
            *time = self.given;
        }
        Ok(())
    }

    fn remaining(&self, coming: u64) -> Option<u64> {
        Some(coming)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{filtered, reads_at};

    #[test]
    fn only_longer_pauses_are_cut() {
        // Pauses of 3, 97 and 10 ns: the second becomes 10.
        let batch = filtered(&["max_gap:gap=10ns"], reads_at(&[0, 3, 100, 110]));
        assert_eq!(batch.time_ns, [0, 3, 13, 23]);
    }
}
