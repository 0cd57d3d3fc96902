//! d-choices victim selection: the emptiest of d closed units drawn at random.
//!
//! # Model
//! Draws `d` closed units uniformly, with replacement, and reclaims the one with the fewest valid mapping units (ties:
//! fewest erases, then lowest id). With `replacement = false` the draws are distinct: the randomized greedy algorithm
//! (RGA). `d = 1` is `random`; `d = 10` is close to `greedy` under uniform writes and, unlike it, profits from a
//! separation of hot and cold data.
//!
//! # Parameters
//! * `d` (count, default 10, 1 to 65,536): units drawn per choice. With many more draws than closed units, it is
//!   `greedy`.
//! * `replacement` (bool, default true): whether a unit may be drawn twice.
//!
//! # Not modelled
//! CPU time of the search.
//!
//! # Errors
//! A number of draws that is 0 or above 65,536.
//!
//! # Cost
//! O(d) per choice.
//!
//! # Source
//! Van Houdt, SIGMETRICS 2013 (with replacement); Li, Lee and Lui, SIGMETRICS 2013 (RGA).

use ftlab_core::{Error, Result, RuId, Stream};
use serde::{Deserialize, Serialize};

use super::{Setup, VictimPolicy};
use crate::Now;
use crate::units::Closed;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub d: u32,
    pub replacement: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            d: 10,
            replacement: true,
        }
    }
}

/// A choice that looks at more takes longer than all else that a collection does.
const MOST_DRAWS: u32 = 1 << 16;

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn VictimPolicy>> {
    if !(1..=MOST_DRAWS).contains(&params.d) {
        return Err(Error::input(format!(
            "victim policy `d_choices`: d = {}, expected 1 to {MOST_DRAWS}",
            params.d
        )));
    }
    Ok(Box::new(DChoices {
        params,
        random: setup.random.clone(),
        drawn: Vec::new(),
    }))
}

struct DChoices {
    params: Params,
    random: Stream,
    /// Indices drawn in this choice, when they must be distinct.
    drawn: Vec<usize>,
}

impl DChoices {
    fn draw(&mut self, among: usize) -> usize {
        loop {
            let index = self.random.below(among as u64) as usize;
            if self.params.replacement {
                return index;
            }
            if !self.drawn.contains(&index) {
                self.drawn.push(index);
                return index;
            }
        }
    }
}

impl VictimPolicy for DChoices {
    fn choose(&mut self, closed: &mut Closed<'_>, _: Now) -> Option<RuId> {
        let among = closed.len();
        let draws = if self.params.replacement {
            self.params.d as usize
        } else {
            among.min(self.params.d as usize)
        };
        self.drawn.clear();
        (0..if among == 0 { 0 } else { draws })
            .map(|_| closed.nth(self.draw(among)))
            .min_by_key(|&ru| (closed.ru(ru).valid, closed.ru(ru).erases, ru))
    }
}
