//! No write buffer: a write completes when its pages are programmed.
//!
//! # Model
//! Every request is programmed as it arrives. Its last page is padded if it is not full, because no data may wait in
//! memory.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! The few pages that a controller needs to hold data while it is transferred.
//!
//! # Errors
//! None.
//!
//! # Cost
//! Nothing.
//!
//! # Source
//! The null member of the family.

use ftlab_core::catalogue::NoParams;
use ftlab_core::{Lpn, Result};

use super::{BufferPolicy, Replaced, Setup};
use crate::request::WriteContext;

pub fn new(_: NoParams, _: &mut Setup) -> Result<Box<dyn BufferPolicy>> {
    Ok(Box::new(None))
}

struct None;

impl BufferPolicy for None {
    fn write_back(&self) -> bool {
        false
    }

    fn is_none(&self) -> bool {
        true
    }

    fn write(&mut self, _: Lpn, _: &WriteContext) -> Replaced {
        Replaced::Nothing
    }

    fn read(&mut self, _: Lpn, _: u32) -> bool {
        false
    }

    fn held(&self, _: Lpn) -> Option<u32> {
        Option::None
    }

    fn is_dirty(&self, _: Lpn) -> bool {
        false
    }

    fn evict(&mut self, _: bool) -> Option<(Lpn, WriteContext)> {
        Option::None
    }

    fn forget(&mut self, _: Lpn) -> Option<WriteContext> {
        Option::None
    }

    fn dirty(&self) -> Vec<Lpn> {
        Vec::new()
    }

    fn clear(&mut self) {}
}
