//! Everything passes.
//!
//! # Model
//! The stream unchanged, for comparison with other filters (`--vary filter=none,lru`).
//! # Parameters
//! None.
//! # Not modelled
//! Nothing.
//! # Source
//! Our own.

use ftlab_core::{Batch, Result, Source};

use super::frame::{Edit, Stage, editing};
use super::{Context, Keys};

pub fn new(_: &mut Keys, _: &Context) -> Result<Stage> {
    Ok(editing(Nothing))
}

struct Nothing;

impl Edit for Nothing {
    fn edit(&mut self, _: &mut Batch, _: &dyn Source) -> Result<()> {
        Ok(())
    }

    fn remaining(&self, coming: u64) -> Option<u64> {
        Some(coming)
    }
}
