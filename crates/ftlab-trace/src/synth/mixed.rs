//! Sequential runs mixed with random requests.
//!
//! # Model
//! A share `sequential` of the requests continues one of `streams` runs, chosen uniformly. A run that has covered `run`
//! bytes (or reaches the end of the span) continues at a place drawn uniformly. The other requests go to random places,
//! drawn uniformly or, with `theta` above 0, by Zipf's law.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `sequential` | share of the requests that continue a run | 0 to 1 | 0.5 |
//! | `streams` | runs at a time | 1 to 65535 | 4 |
//! | `run` | bytes of a run | at least one request | `1MiB` |
//! | `theta` | exponent of the scattered requests; 0 is uniform | 0 to 10 | 0 |
//! # Not modelled
//! Runs that differ in length. Scattered requests that hit the same places as runs.
//! # Source
//! fio's `percentage_random` with `rw=randrw`, several jobs at a time.

use ftlab_core::{Batch, Result, Stream};
use serde_json::{Map, Value, json};

use super::permutation::Permutation;
use super::zipf_draw::ZipfDraw;
use super::{Keys, Pattern, Space};

pub fn new(keys: &mut Keys, space: Space) -> Result<Box<dyn Pattern>> {
    let sequential = keys.share("sequential", 0.5)?;
    let streams = keys.count("streams")?.unwrap_or(4);
    if streams == 0 || streams > 65535 {
        return Err(keys.wrong("streams", &streams.to_string(), "1 to 65535 runs at a time"));
    }
    let run = keys.bytes("run", 1 << 20)?;
    let theta = super::zipf::theta(keys, 0.0)?;
    let scatter = (theta > 0.0).then(|| {
        (
            ZipfDraw::new(space.positions, theta),
            Permutation::new(space.positions, space.seed),
        )
    });
    Ok(Box::new(Mixed {
        space,
        sequential,
        run,
        theta,
        runs: vec![Run { next: 0, left: 0 }; streams as usize],
        scatter,
    }))
}

struct Mixed {
    space: Space,
    sequential: f64,
    run: u64,
    theta: f64,
    runs: Vec<Run>,
    scatter: Option<(ZipfDraw, Permutation)>,
}

#[derive(Clone, Copy)]
struct Run {
    next: u64,
    /// Bytes still to cover before the next jump.
    left: u64,
}

impl Pattern for Mixed {
    fn place(&mut self, batch: &mut Batch, random: &mut Stream) {
        let Space {
            positions, align, span, ..
        } = self.space;
        let bound = super::threshold(self.sequential);
        for &length in &batch.length {
            let length = u64::from(length);
            let offset = if random.next_u64() >> 1 < bound {
                let which = random.below(self.runs.len() as u64) as usize;
                let run = &mut self.runs[which];
                if run.left == 0 || run.next + length > span {
                    *run = Run {
                        next: random.below(positions) * align,
                        left: self.run.max(1),
                    };
                }
                let offset = run.next;
                run.next += length.next_multiple_of(align);
                run.left = run.left.saturating_sub(length);
                offset
            } else {
                match &self.scatter {
                    Some((draw, spread)) => spread.apply(draw.draw(random)) * align,
                    None => random.below(positions) * align,
                }
            };
            batch.offset.push(offset);
        }
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        into.insert("sequential".to_owned(), json!(self.sequential));
        into.insert("streams".to_owned(), json!(self.runs.len()));
        into.insert("run".to_owned(), json!(format!("{}B", self.run)));
        into.insert("theta".to_owned(), json!(self.theta));
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use ftlab_core::{Batch, Source};

    #[test]
    fn all_sequential_in_one_run_is_a_sequence_with_jumps() {
        let mut batch = Batch::default();
        let spec = "mixed:sequential=1,streams=1,run=64KiB,requests=1600";
        parse(spec, 1 << 30, 4096, 1).unwrap().next_batch(&mut batch).unwrap();
        let jumps = batch.offset.windows(2).filter(|w| w[1] != w[0] + 4096).count();
        assert_eq!(jumps, 99);
    }
}
