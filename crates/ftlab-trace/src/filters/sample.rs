//! A random part of the requests, or of the addresses.
//!
//! # Model
//! `by=request`: each request passes with probability `rate`, independently. `by=page`: an address unit passes if a
//! hash of its number falls below `rate`, so a unit keeps its whole history or none of it. A request is cut to the
//! units that pass; neighbouring units stay in one request. Times stay. With `by=page` flushes always pass.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `rate` | share that passes | above 0, to 1 | 0.1 |
//! | `by` | what is sampled | `request`, `page` | `request` |
//! | `unit` | address unit of `by=page`; large ones cut fewer requests | 512 B to 1 GiB | `4KiB` |
//! | `seed` | of the draws | a whole number | the run's seed |
//! # Not modelled
//! Sampled requests are not a smaller system: queues are shorter, and reuse distances stay. Sampled pages do not keep
//! request sizes and sequences. A cache or drive scaled by `rate` sees the same reuse with `by=page` as the full one
//! sees in the full stream.
//! # Source
//! Hashed address sampling: Waldspurger et al., SHARDS, FAST 2015.

use ftlab_core::{Batch, OpKind, Result, Source, Stream};

use super::frame::{Edit, Rewrite, Stage, editing, rewriting};
use super::{Context, Keys};
use crate::rows;
use crate::splitmix::finish;

pub fn new(keys: &mut Keys, context: &Context) -> Result<Stage> {
    let rate = keys.number("rate", 0.1)?;
    if !(rate > 0.0 && rate <= 1.0) {
        return Err(keys.wrong("rate", &rate.to_string(), "a share above 0, at most 1"));
    }
    let seed = keys.count("seed")?.unwrap_or(context.seed);
    let unit = keys.bytes_within("unit", 4096, 512..=1 << 30)?;
    match keys.text("by").as_deref() {
        None | Some("request") => Ok(editing(Requests {
            rate,
            random: Stream::new(seed, "trace sample"),
        })),
        Some("page") => Ok(rewriting(Pages {
            below: (rate < 1.0).then_some((rate * (1u128 << 64) as f64) as u64),
            salt: Stream::new(seed, "trace sample").next_u64(),
            unit,
        })),
        Some(other) => Err(keys.wrong("by", other, "request or page")),
    }
}

struct Requests {
    rate: f64,
    random: Stream,
}

impl Edit for Requests {
    fn edit(&mut self, batch: &mut Batch, _: &dyn Source) -> Result<()> {
        if self.rate < 1.0 {
            rows::retain(batch, |_, _| self.random.unit() < self.rate);
        }
        Ok(())
    }

    fn remaining(&self, coming: u64) -> Option<u64> {
        (self.rate >= 1.0).then_some(coming)
    }
}

struct Pages {
    /// Hashes below this pass; `None`: all.
    below: Option<u64>,
    salt: u64,
    unit: u64,
}

impl Pages {
    #[inline]
    fn passes(&self, unit: u64) -> bool {
        self.below.is_none_or(|below| finish(unit ^ self.salt) < below)
    }
}

impl Rewrite for Pages {
    fn request(&mut self, input: &Batch, i: usize, output: &mut Batch) -> Result<()> {
        let (start, length) = (input.offset[i], u64::from(input.length[i]));
        if input.op[i] == OpKind::Flush || length == 0 {
            rows::append(output, input, i);
            return Ok(());
        }
        let end = start + length;
        let mut at = start;
        while at < end {
            // The run of units from `at` that pass alike.
            let passes = self.passes(at / self.unit);
            let mut until = (at / self.unit + 1) * self.unit;
            while until < end && self.passes(until / self.unit) == passes {
                until += self.unit;
            }
            let until = until.min(end);
            if passes {
                rows::append_part(output, input, i, at, (until - at) as u32, at - start);
            }
            at = until;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::testing::{filtered, reads_at, synth};

    #[test]
    fn a_sample_of_requests_keeps_its_share() {
        let times: Vec<u64> = (0..100_000).collect();
        let n = filtered(&["sample:rate=0.1,seed=3"], reads_at(&times)).len();
        // Three standard deviations of 1e5 draws at 0.1 are 285.
        assert!(n.abs_diff(10_000) < 285, "{n}");
        assert_eq!(filtered(&["sample:rate=1"], reads_at(&times)).len(), 100_000);
    }

    #[test]
    fn a_sampled_page_keeps_its_whole_history() {
        let histories = |specs: &[&str]| {
            let batch = filtered(
                specs,
                synth("zipf:size=4KiB*0.5/12KiB*0.5,align=4KiB,requests=20000", 16 << 20),
            );
            let mut touched: BTreeMap<u64, u32> = BTreeMap::new();
            for i in 0..batch.len() {
                for page in batch.offset[i] / 4096..(batch.offset[i] + u64::from(batch.length[i])).div_ceil(4096) {
                    *touched.entry(page).or_default() += 1;
                }
            }
            touched
        };
        let (whole, sampled) = (histories(&[]), histories(&["sample:rate=0.25,by=page"]));
        // 4096 pages at 0.25: three standard deviations are 83.
        assert!(sampled.len().abs_diff(whole.len() / 4) < 83, "{}", sampled.len());
        assert!(sampled.iter().all(|(page, times)| whole[page] == *times));
    }
}
