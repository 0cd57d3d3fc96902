//! Dynamic wear levelling: the least worn free unit is written next.
//!
//! # Model
//! Free units of a lane are taken by fewest erases, then lowest id. Cold data stays where it is.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! Units that hold cold data are never freed and so never worn; see `static`.
//!
//! # Errors
//! None.
//!
//! # Cost
//! O(log free units).
//!
//! # Source
//! The rule of FlashSim and most page-mapped FTLs.

use ftlab_core::Result;
use ftlab_core::catalogue::NoParams;

use super::{Setup, WearPolicy};

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn WearPolicy>> {
    Ok(Box::new(Dynamic))
}

struct Dynamic;

impl WearPolicy for Dynamic {
    fn least_worn_first(&self) -> bool {
        true
    }
}
