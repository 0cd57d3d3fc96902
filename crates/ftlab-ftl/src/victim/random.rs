//! Random victim selection: a closed unit drawn uniformly.
//!
//! # Model
//! Reclaims a closed unit drawn uniformly from all closed units of the pool. Under uniform random writes the write
//! amplification is `1/(1−ρ)`: no sensible policy is worse.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! Redrawing when the drawn unit is full: a full victim is relocated whole, as the closed form assumes.
//!
//! # Errors
//! None.
//!
//! # Cost
//! O(1) per choice.
//!
//! # Source
//! The d = 1 case of Van Houdt, SIGMETRICS 2013.

use ftlab_core::catalogue::NoParams;
use ftlab_core::{Result, RuId, Stream};

use super::{Setup, VictimPolicy};
use crate::Now;
use crate::units::Closed;

pub fn new(_: NoParams, setup: &mut Setup) -> Result<Box<dyn VictimPolicy>> {
    Ok(Box::new(Random {
        random: setup.random.clone(),
    }))
}

struct Random {
    random: Stream,
}

impl VictimPolicy for Random {
    fn choose(&mut self, closed: &mut Closed<'_>, _: Now) -> Option<RuId> {
        (!closed.is_empty()).then(|| closed.nth(self.random.below(closed.len() as u64) as usize))
    }
}
