//! Whether who asked has had enough: told between threads while files are opened, of which some are read whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use ftlab_core::{Error, Result};

/// How often Ctrl-C is looked for.
pub const WATCH: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Does `work` on a thread of its own, while `go_on` is called now and then, and may refuse: `work` is asked to stop then, and what it makes is lost.
    pub fn while_watched<T: Send>(
        &self,
        work: impl FnOnce() -> T + Send,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<T> {
        thread::scope(|scope| {
            let (give, made) = mpsc::channel();
            // If nobody takes it, it was not wanted.
            let working = scope.spawn(move || drop(give.send(work())));
            loop {
                if let Err(error) = go_on() {
                    self.ask();
                    return Err(error);
                }
                match made.recv_timeout(WATCH) {
                    Ok(made) => return Ok(made),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => match working.join() {
                        Err(panic) => std::panic::resume_unwind(panic),
                        Ok(()) => unreachable!("it gives before it ends"),
                    },
                }
            }
        })
    }

    /// Whether it was asked for.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Refuses to go on if it was asked for.
    pub fn check(&self) -> Result<()> {
        if self.is_asked() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }
}
