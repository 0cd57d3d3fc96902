//! Requests that prefer a few places, by Zipf's law.
//!
//! # Model
//! The offset of rank r (from 1) has a probability proportional to r^−theta, exactly. With `scramble` ranks are spread over
//! the span by a fixed pseudo-random permutation; without it the popular places lie at its start.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `theta` | exponent; 0 is uniform | 0 to 10 | 0.99 |
//! | `scramble` | spread the ranks | `true`, `false` | `true` |
//! # Not modelled
//! Popularity that changes. Neighbouring places have unrelated ranks.
//! # Source
//! Gray et al., SIGMOD 1994, and YCSB (Cooper et al., SoCC 2010) for the shape and the usual 0.99; both draw from an
//! approximation, this does not.

use ftlab_core::{Batch, Result, Stream};
use serde_json::{Map, Value, json};

use super::permutation::Permutation;
use super::zipf_draw::ZipfDraw;
use super::{Keys, Pattern, Space};

pub fn new(keys: &mut Keys, space: Space) -> Result<Box<dyn Pattern>> {
    let theta = theta(keys, 0.99)?;
    let scramble = keys.switch("scramble", true)?;
    Ok(Box::new(Zipf {
        align: space.align,
        theta,
        draw: ZipfDraw::new(space.positions, theta),
        spread: scramble.then(|| Permutation::new(space.positions, space.seed)),
    }))
}

/// The key `theta`.
pub(super) fn theta(keys: &mut Keys, default: f64) -> Result<f64> {
    let theta = keys.number("theta", default)?;
    if theta > 10.0 {
        return Err(keys.wrong("theta", &theta.to_string(), "an exponent from 0 to 10"));
    }
    Ok(theta)
}

struct Zipf {
    align: u64,
    theta: f64,
    draw: ZipfDraw,
    spread: Option<Permutation>,
}

impl Pattern for Zipf {
    fn place(&mut self, batch: &mut Batch, random: &mut Stream) {
        let n = batch.op.len();
        batch.offset.extend((0..n).map(|_| self.draw.draw(random)));
        if let Some(spread) = &self.spread {
            batch.offset.iter_mut().for_each(|rank| *rank = spread.apply(*rank));
        }
        batch.offset.iter_mut().for_each(|position| *position *= self.align);
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        into.insert("theta".to_owned(), json!(self.theta));
        into.insert("scramble".to_owned(), json!(self.spread.is_some()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use ftlab_core::{Batch, Source};

    #[test]
    fn scrambling_moves_the_popular_place_and_keeps_its_share() {
        let top = |spec: &str| {
            let mut batch = Batch::default();
            parse(spec, 1000 * 4096, 4096, 5)
                .unwrap()
                .next_batch(&mut batch)
                .unwrap();
            let mut counts = [0u32; 1000];
            batch.offset.iter().for_each(|o| counts[(o / 4096) as usize] += 1);
            let place = (0..1000).max_by_key(|&i| counts[i]).unwrap();
            (place, f64::from(counts[place]) / batch.len() as f64)
        };
        let (plain, share) = top("zipf:theta=1,scramble=false,requests=4096");
        // The first of 1000 ranks has 1 / H(1000) = 0.1336 of the draws.
        assert_eq!(plain, 0);
        assert!((share - 0.1336).abs() < 0.02, "{share}");
        let (spread, share) = top("zipf:theta=1,requests=4096");
        assert_ne!(spread, 0);
        assert!((share - 0.1336).abs() < 0.02, "{share}");
    }
}
