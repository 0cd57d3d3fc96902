//! FIFO victim selection: the unit that was closed first.
//!
//! # Model
//! Reclaims the oldest closed unit, whatever it holds. Its write amplification under uniform random writes has a closed
//! form, `1/(1−p)` with `p = exp(−(1−p)/ρ)`, which does not depend on the block size.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! A global FIFO gains nothing from separating hot from cold data: the order of cleaning is fixed.
//!
//! # Errors
//! None.
//!
//! # Cost
//! O(1) per choice.
//!
//! # Source
//! Desnoyers, SYSTOR 2012 ("LRU cleaning"); Xiang and Kurkoski, arXiv 1110.4245.

use ftlab_core::catalogue::NoParams;
use ftlab_core::{Result, RuId};

use super::{Setup, VictimPolicy};
use crate::Now;
use crate::units::{Closed, Orders};

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn VictimPolicy>> {
    Ok(Box::new(Fifo))
}

struct Fifo;

impl VictimPolicy for Fifo {
    fn orders(&self) -> Orders {
        Orders {
            by_age: true,
            ..Orders::default()
        }
    }

    fn choose(&mut self, closed: &mut Closed<'_>, _: Now) -> Option<RuId> {
        closed.oldest_first().next()
    }
}
