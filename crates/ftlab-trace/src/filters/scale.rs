//! Time runs slower or faster.
//!
//! # Model
//! Every time stamp is multiplied by `factor`, or divided by `speed`, and cut to whole nanoseconds. Order stays;
//! requests less than a nanosecond apart then arrive together.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `factor` | time stamps are multiplied by it: 2 is half as fast | above 0 | 1 |
//! | `speed` | time stamps are divided by it: 2 is twice as fast; instead of `factor` | above 0 | 1 |
//! # Not modelled
//! The host's reaction: with more or less load it would send other requests. Time stamps beyond 2^53 ns (104 days) lose
//! their last bits where the factor is not a whole number.
//! # Source
//! fio's `replay_time_scale`; time scaling of traces is as old as their replay.

use ftlab_core::{Batch, Error, Result, Source};

use super::frame::{Edit, Stage, editing};
use super::{Context, Keys};

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    let (factor, speed) = (number(keys, "factor")?, number(keys, "speed")?);
    let scale = match (factor, speed) {
        (Some(_), Some(_)) => return Err(Error::input("filter `scale` has either `factor` or `speed`")),
        (Some(factor), None) if factor.fract() == 0.0 => Scale::Times(factor as u64),
        (None, Some(speed)) if speed.fract() == 0.0 => Scale::Over(speed as u64),
        (Some(factor), None) => Scale::Real(factor),
        (None, Some(speed)) => Scale::Real(1.0 / speed),
        (None, None) => Scale::Times(1),
    };
    Ok(editing(scale))
}

fn number(keys: &mut Keys, key: &'static str) -> Result<Option<f64>> {
    let Some(text) = keys.text(key) else {
        return Ok(None);
    };
    let number: Option<f64> = text.parse().ok().filter(|n| (1e-12..=1e12).contains(n));
    number
        .map(Some)
        .ok_or_else(|| keys.wrong(key, &text, "a number above 0, from 1e-12 to 1e12"))
}

/// Whole numbers are exact.
enum Scale {
    Times(u64),
    Over(u64),
    Real(f64),
}

impl Edit for Scale {
    fn edit(&mut self, batch: &mut Batch, _: &dyn Source) -> Result<()> {
        for time in &mut batch.time_ns {
            *time = match *self {
                Scale::Times(factor) => time.saturating_mul(factor),
                Scale::Over(speed) => *time / speed,
                // Rounding to the nearest f64 keeps the order, and so does the cast, which stops at the largest time.
                Scale::Real(factor) => (*time as f64 * factor) as u64,
            };
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
    fn times_are_scaled_and_nothing_else() {
        let times = |spec: &str| filtered(&[spec], reads_at(&[0, 3, 10])).time_ns;
        assert_eq!(times("scale:factor=2"), [0, 6, 20]);
        assert_eq!(times("scale:speed=2"), [0, 1, 5]);
        assert_eq!(times("scale:factor=0.5"), [0, 1, 5]);
        assert_eq!(times("scale:speed=0.25"), [0, 12, 40]);
    }
}
