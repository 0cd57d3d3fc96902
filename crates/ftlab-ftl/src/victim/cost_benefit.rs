//! Cost-benefit victim selection: old units are collected with more valid data than young ones.
//!
//! # Model
//! Reclaims the closed unit with the largest score; `u` is the fraction of valid mapping units, `age` the host units
//! written (ticks) since the unit's last program. A unit with `u = 0` wins. Ties go to the fewest erases, then to the
//! lowest id. Public SSD code ranks by different quantities under this one name, so the formula is a parameter:
//! * `kawaguchi`: `age × (1 − u) / 2u`
//! * `lfs`: `age × (1 − u) / (1 + u)`
//! * `sqrt_age`: `√age × (1 − u) / u`
//! * `cat`: `age × (1 − u) / (u × (erases + 1))`, cost-age-times
//!
//! # Parameters
//! * `formula` (word, default `kawaguchi`): one of the above.
//!
//! # Not modelled
//! CPU time of the search. Hot/cold separation of copied data: see `placement`.
//!
//! # Errors
//! An unknown formula is refused.
//!
//! # Cost
//! O(closed units) per choice.
//!
//! # Source
//! Kawaguchi, Nishioka and Motoda, USENIX Winter 1995; Rosenblum and Ousterhout, ACM TOCS 10(1), 1992 (`lfs`); the
//! score in the code of the SepBIT simulator (`sqrt_age`); Chiang and Chang, JSS 48(3), 1999 (`cat`).

use ftlab_core::{Result, RuId};
use serde::{Deserialize, Serialize};

use super::{Setup, VictimPolicy};
use crate::Now;
use crate::units::Closed;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formula {
    #[default]
    Kawaguchi,
    Lfs,
    SqrtAge,
    Cat,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub formula: Formula,
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn VictimPolicy>> {
    Ok(Box::new(CostBenefit {
        formula: params.formula,
    }))
}

struct CostBenefit {
    formula: Formula,
}

impl CostBenefit {
    fn score(&self, valid: u32, units: u32, age: u64, erases: u32) -> f64 {
        let (valid, free, age) = (f64::from(valid), f64::from(units - valid), age as f64);
        match self.formula {
            Formula::Kawaguchi => age * free / (2.0 * valid),
            Formula::Lfs => age * free / (f64::from(units) + valid),
            Formula::SqrtAge => age.sqrt() * free / valid,
            Formula::Cat => age * free / (valid * (f64::from(erases) + 1.0)),
        }
    }
}

impl VictimPolicy for CostBenefit {
    fn choose(&mut self, closed: &mut Closed<'_>, now: Now) -> Option<RuId> {
        let units = closed.units_per_ru();
        let mut best: Option<(f64, u32, RuId)> = None;
        for ru in closed.iter() {
            let state = closed.ru(ru);
            let score = match state.valid {
                0 => f64::INFINITY,
                valid => self.score(valid, units, now.tick - state.last_tick, state.erases),
            };
            let better =
                best.is_none_or(|(top, erases, id)| score > top || (score == top && (state.erases, ru) < (erases, id)));
            if better {
                best = Some((score, state.erases, ru));
            }
        }
        best.map(|(_, _, ru)| ru)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half valid, age 100: 100 × 0.5 / 1 = 50 by Kawaguchi, 100 × 0.5 / 1.5 = 33.3 by LFS, 10 × 0.5 / 0.5 = 10 by √age.
    #[test]
    fn the_formulas_by_hand() {
        let score = |formula| CostBenefit { formula }.score(32, 64, 100, 1);
        assert_eq!(score(Formula::Kawaguchi), 50.0);
        assert!((score(Formula::Lfs) - 100.0 / 3.0).abs() < 1e-12);
        assert_eq!(score(Formula::SqrtAge), 10.0);
        assert_eq!(score(Formula::Cat), 50.0);
    }
}
