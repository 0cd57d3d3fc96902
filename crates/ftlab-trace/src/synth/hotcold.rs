//! A hot part and a cold part, each accessed evenly.
//!
//! # Model
//! `hot = f/p`: a share f of the places takes a share p of the requests. Within each part all places are equally
//! likely. With `spread` the hot places are strewn over the span by a fixed pseudo-random permutation; without it they
//! lie at its start. Every request carries stream 1 and label `hot`, or stream 2 and label `cold`, so that the
//! placement `manual` can separate them.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `hot` | share of the places / share of the requests | each between 0 and 1 | `0.2/0.8` |
//! | `spread` | strew the hot places | `true`, `false` | `true` |
//! # Not modelled
//! Places that change their temperature. A request larger than `align` is hot or cold by its first place.
//! # Source
//! Rosenblum and Ousterhout, TOCS 1992 ("hot-and-cold", 10/90); Desnoyers, SYSTOR 2012, for flash.

use ftlab_core::{Batch, Result, Stream};
use serde_json::{Map, Value, json};

use super::permutation::Permutation;
use super::{Keys, Pattern, Space};

const LABELS: [&str; 3] = ["none", "hot", "cold"];

pub fn new(keys: &mut Keys, space: Space) -> Result<Box<dyn Pattern>> {
    let text = keys.text("hot").unwrap_or_else(|| "0.2/0.8".to_owned());
    let share = |text: &str| text.trim().parse::<f64>().ok().filter(|s| *s > 0.0 && *s < 1.0);
    let shares = text
        .split_once('/')
        .and_then(|(places, requests)| Some((share(places)?, share(requests)?)));
    let Some((places, requests)) = shares else {
        return Err(keys.wrong("hot", &text, "two shares between 0 and 1, such as 0.2/0.8"));
    };
    let hot_positions = (places * space.positions as f64).round() as u64;
    if hot_positions == 0 || hot_positions == space.positions {
        return Err(keys.wrong("hot", &text, "shares that leave at least one hot and one cold place"));
    }
    let spread = keys.switch("spread", true)?;
    Ok(Box::new(HotCold {
        align: space.align,
        positions: space.positions,
        hot_positions,
        hot: (places, requests),
        spread: spread.then(|| Permutation::new(space.positions, space.seed)),
    }))
}

struct HotCold {
    align: u64,
    positions: u64,
    hot_positions: u64,
    /// Share of the places, share of the requests.
    hot: (f64, f64),
    spread: Option<Permutation>,
}

impl Pattern for HotCold {
    fn place(&mut self, batch: &mut Batch, random: &mut Stream) {
        let n = batch.op.len();
        let bound = super::threshold(self.hot.1);
        let cold_positions = self.positions - self.hot_positions;
        for _ in 0..n {
            let cold = random.next_u64() >> 1 >= bound;
            let (start, count) = if cold {
                (self.hot_positions, cold_positions)
            } else {
                (0, self.hot_positions)
            };
            batch.offset.push(start + random.below(count));
            batch.stream.push(1 + u16::from(cold));
        }
        batch.label.extend_from_slice(&batch.stream);
        if let Some(spread) = &self.spread {
            batch
                .offset
                .iter_mut()
                .for_each(|position| *position = spread.apply(*position));
        }
        batch.offset.iter_mut().for_each(|position| *position *= self.align);
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        into.insert("hot".to_owned(), json!(format!("{}/{}", self.hot.0, self.hot.1)));
        into.insert("spread".to_owned(), json!(self.spread.is_some()));
    }

    fn labels(&self) -> &'static [&'static str] {
        &LABELS
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use ftlab_core::{Batch, Source};

    #[test]
    fn a_fifth_of_the_places_takes_four_fifths_and_is_labelled() {
        for spec in ["hotcold:requests=4096", "hotcold:requests=4096,spread=false"] {
            let mut batch = Batch::default();
            parse(spec, 100 * 4096, 4096, 3)
                .unwrap()
                .next_batch(&mut batch)
                .unwrap();
            let mut kinds = [0u16; 100];
            for i in 0..batch.len() {
                let place = (batch.offset[i] / 4096) as usize;
                assert!(
                    kinds[place] == 0 || kinds[place] == batch.label[i],
                    "{spec}: place {place} is hot and cold"
                );
                kinds[place] = batch.label[i];
            }
            assert_eq!(kinds.iter().filter(|&&k| k == 1).count(), 20, "{spec}");
            let share = batch.stream.iter().filter(|&&s| s == 1).count() as f64 / 4096.0;
            // Three standard deviations of a share of 0.8 in 4096 draws are 0.019.
            assert!((share - 0.8).abs() < 0.019, "{spec}: {share}");
            assert_eq!(kinds[..20].iter().all(|&k| k == 1), spec.contains("spread=false"));
        }
    }
}
