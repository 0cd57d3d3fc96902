//! Windowed greedy victim selection: the emptiest of the oldest closed units.
//!
//! # Model
//! Among the `window` share of closed units that were closed first, reclaims the one with the fewest valid mapping
//! units; ties go to the fewest erases, then to the lowest id. A window of 1 is `greedy`, a window of one unit `fifo`.
//!
//! # Parameters
//! * `window` (share of the closed units, default 0.9, above 0 to 1): how far the search looks from the oldest.
//!
//! # Not modelled
//! CPU time of the search.
//!
//! # Errors
//! A window outside (0, 1] is refused.
//!
//! # Cost
//! O(window × closed units) per choice.
//!
//! # Source
//! Hu, Eleftheriou, Haas, Iliadis and Pletka, SYSTOR 2009; the default share is that of the SepBIT simulator.

use ftlab_core::{Error, Result, RuId};
use serde::{Deserialize, Serialize};

use super::{Setup, VictimPolicy};
use crate::Now;
use crate::units::{Closed, Orders};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub window: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { window: 0.9 }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn VictimPolicy>> {
    if !(params.window > 0.0 && params.window <= 1.0) {
        let window = params.window;
        return Err(Error::input(format!(
            "victim policy `windowed_greedy`: window = {window}, expected above 0 and at most 1"
        )));
    }
    Ok(Box::new(WindowedGreedy { window: params.window }))
}

struct WindowedGreedy {
    window: f64,
}

impl VictimPolicy for WindowedGreedy {
    fn orders(&self) -> Orders {
        Orders {
            by_age: true,
            ..Orders::default()
        }
    }

    fn choose(&mut self, closed: &mut Closed<'_>, _: Now) -> Option<RuId> {
        let window = ((closed.len() as f64 * self.window).ceil() as usize).max(1);
        closed
            .oldest_first()
            .take(window)
            .min_by_key(|&ru| (closed.ru(ru).valid, closed.ru(ru).erases, ru))
    }
}
