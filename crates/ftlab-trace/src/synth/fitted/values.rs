//! What pages hold.
//!
//! Values fall into groups by how often they occur. A request draws the group, and within it every so-many-th draw is a
//! value that has not been there before; the others repeat one of the group's values, each as likely.

use ftlab_core::Stream;

use super::deck::Deck;
use crate::model::{Contents, Weights, middle};
use crate::splitmix::mix;

pub struct Values {
    /// Number of the value that each page holds, from 1; 0: none yet.
    held: Vec<u64>,
    repeat: f64,
    written: Groups,
    found: Groups,
    found_written: f64,
    seed: u64,
}

struct Groups {
    draw: Deck<u64>,
    groups: Vec<Group>,
    /// Set in the numbers of these values.
    mark: u64,
}

struct Group {
    /// Mean occurrences of a value.
    times: f64,
    draws: u64,
    born: u64,
}

impl Values {
    pub fn new(contents: &Contents, pages: u32, seed: u64) -> Self {
        Values {
            held: vec![0; pages as usize],
            repeat: contents.repeat,
            written: Groups::new(&contents.written, 0),
            found: Groups::new(&contents.found, 1 << 63),
            found_written: contents.found_written,
            seed,
        }
    }

    /// Appends the ids of `pages` pages from `start`.
    pub fn fill(&mut self, write: bool, start: u32, pages: u32, ids: &mut Vec<u64>, random: &mut Stream) {
        let end = (start as usize + pages as usize).min(self.held.len());
        for page in start as usize..end {
            let held = self.held[page];
            if write && (held == 0 || random.unit() >= self.repeat) {
                self.held[page] = self.written.value(random);
            } else if held == 0 {
                let again = self.written.any_born() && random.unit() < self.found_written;
                self.held[page] = match again {
                    true => self.written.old_value(random),
                    false => self.found.value(random),
                };
            }
            // Distinct numbers stay distinct ids.
            ids.push(mix(self.held[page] ^ self.seed.rotate_left(17)));
        }
        // A request may reach beyond the last page by a rounding; ids are one a page nevertheless.
        let missing = pages as usize - (end - (start as usize).min(end));
        ids.extend((0..missing).map(|i| mix(u64::MAX - i as u64)));
    }
}

impl Groups {
    fn new(values: &Weights<u64>, mark: u64) -> Self {
        // Weights are multiplied by halves at most, so doubling makes whole numbers of whole numbers.
        let by_use: Vec<(u64, f64)> = (0..)
            .zip(&values.0)
            .map(|(group, &(edge, weight))| (group, weight * middle(edge) * 2.0))
            .collect();
        Groups {
            draw: Deck::new(&by_use),
            groups: values
                .0
                .iter()
                .map(|&(edge, _)| Group {
                    times: middle(edge).max(1.0),
                    draws: 0,
                    born: 0,
                })
                .collect(),
            mark,
        }
    }

    fn any_born(&self) -> bool {
        self.groups.iter().any(|group| group.born > 0)
    }

    fn value(&mut self, random: &mut Stream) -> u64 {
        let number = self.draw.draw(random).unwrap_or(0);
        let Some(group) = self.groups.get_mut(number as usize) else {
            return 1 | self.mark;
        };
        let due = (group.draws as f64 / group.times) as u64 + 1;
        group.draws += 1;
        let which = if group.born < due {
            group.born += 1;
            group.born
        } else {
            1 + random.below(group.born)
        };
        self.mark | number << 48 | which
    }

    /// A value that has been there.
    fn old_value(&mut self, random: &mut Stream) -> u64 {
        for _ in 0..8 {
            let number = self.draw.draw(random).unwrap_or(0);
            if let Some(group) = self.groups.get(number as usize).filter(|group| group.born > 0) {
                return self.mark | number << 48 | (1 + random.below(group.born));
            }
        }
        self.value(random)
    }
}
