//! Whether who asked has had enough: told between threads while files are opened, of which some are read whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ftlab_core::{Error, Result};

#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Refuses to go on if it was asked for.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }
}
