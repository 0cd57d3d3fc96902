//! The stream several times, one pass after the other.
//!
//! # Model
//! Addresses stay. The next pass begins `gap` after the last request of the one before, and time goes on from there.
//! The stream is opened anew for each pass. So nothing is kept in memory, and filters in front make the same random
//! draws.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `times` | passes | 1 to 1e9 | 2 |
//! | `gap` | time between two passes | a time | `0s` |
//! # Not modelled
//! New data in each pass: the second pass overwrites what the first one wrote, and reads repeat.
//! # Source
//! fio's `loops`.

use ftlab_core::{Batch, Result, Source};

use super::frame::Stage;
use super::{Again, Context, Keys};

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    let times = keys.count("times")?.unwrap_or(2);
    if !(1..=1_000_000_000).contains(&times) {
        return Err(keys.wrong("times", &times.to_string(), "1 to 1e9 passes"));
    }
    let gap = keys.nanoseconds("gap", 0)?;
    Ok(Box::new(move |upstream| {
        let inner = upstream.source()?;
        Ok(Box::new(Repeat {
            again: if times > 1 { Some(upstream.again()?) } else { None },
            once: inner.remaining(),
            inner,
            more: times - 1,
            gap,
            start_ns: 0,
            last_ns: 0,
            empty: true,
        }))
    }))
}

struct Repeat {
    inner: Box<dyn Source>,
    again: Option<Again>,
    /// Requests of a pass.
    once: Option<u64>,
    /// Passes after this one.
    more: u64,
    gap: u64,
    /// When this pass began.
    start_ns: u64,
    last_ns: u64,
    /// Nothing has come in this pass: nothing would come in another.
    empty: bool,
}

impl Source for Repeat {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        loop {
            self.inner.next_batch(batch)?;
            if !batch.is_empty() {
                break;
            }
            let Some(again) = self.again.as_ref().filter(|_| self.more > 0 && !self.empty) else {
                return Ok(());
            };
            self.inner = again()?;
            self.more -= 1;
            self.start_ns = self.last_ns.saturating_add(self.gap);
            self.empty = true;
        }
        self.empty = false;
        for time in &mut batch.time_ns {
            *time = time.saturating_add(self.start_ns);
            self.last_ns = *time;
        }
        Ok(())
    }

    fn remaining(&self) -> Option<u64> {
        let later = self.once?.saturating_mul(self.more);
        Some(self.inner.remaining()?.saturating_add(later))
    }

    fn volume_names(&self) -> Vec<String> {
        self.inner.volume_names()
    }

    fn label_names(&self) -> Vec<String> {
        self.inner.label_names()
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::Source;

    use super::super::testing::{behind, filtered, once, reads_at};

    #[test]
    fn time_goes_on() {
        let batch = filtered(&["repeat:times=3,gap=1ns"], reads_at(&[0, 4]));
        assert_eq!(batch.time_ns, [0, 4, 5, 9, 10, 14]);
        assert_eq!(batch.offset, [0, 4096, 0, 4096, 0, 4096]);
    }

    #[test]
    fn what_stands_in_front_is_repeated_too() {
        let batch = filtered(&["skip:requests=1", "repeat", "head:requests=3"], reads_at(&[0, 4, 6]));
        assert_eq!((batch.time_ns, batch.offset), (vec![0, 2, 2], vec![4096, 8192, 4096]));
        assert_eq!(behind(&["repeat:times=5"], reads_at(&[0, 1])).remaining(), Some(10));
        assert!(once("repeat", reads_at(&[0])).contains("filter `repeat` must read the trace more than once"));
        assert_eq!(
            filtered(&["head:requests=0", "repeat:times=1e9"], reads_at(&[0])).len(),
            0
        );
    }
}
