//! Greedy victim selection: the closed unit with the fewest valid mapping units.
//!
//! # Model
//! Reclaims the closed unit with the fewest valid mapping units; ties go to the fewest erases, then to the lowest id.
//! Optimal for uniform (memoryless) writes.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! CPU time of the search. Under skewed writes, greedy brings all units to the same number of valid pages, and so gains
//! little from a separation of hot and cold data; compare with `cost_benefit` before judging a placement policy.
//!
//! # Errors
//! None.
//!
//! # Cost
//! O(1) per choice and per invalidation (lists by valid count; a heap settles ties of a long list).
//!
//! # Source
//! Rosenblum and Ousterhout, ACM TOCS 10(1), 1992 (as the baseline of LFS cleaning); optimality: Yang, Misra and
//! Rubenstein, SIGMETRICS 2015.

use ftlab_core::catalogue::NoParams;
use ftlab_core::{Result, RuId};

use super::{Setup, VictimPolicy};
use crate::Now;
use crate::units::{Closed, Orders};

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn VictimPolicy>> {
    Ok(Box::new(Greedy))
}

struct Greedy;

impl VictimPolicy for Greedy {
    fn orders(&self) -> Orders {
        Orders {
            by_valid: true,
            ..Orders::default()
        }
    }

    fn choose(&mut self, closed: &mut Closed<'_>, _: Now) -> Option<RuId> {
        closed.fewest_valid()
    }
}
