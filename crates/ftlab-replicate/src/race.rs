//! Accesses to several copies of a page of which the first to complete counts.

use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::hold;

/// One access that has completed: which slot it went to, and what came of it.
pub struct Finish<T> {
    pub slot: u32,
    pub result: io::Result<T>,
}

struct Track<T> {
    finished: Vec<Finish<T>>,
    decided: bool,
}

/// What is waited for.
pub struct Race<T> {
    track: Mutex<Track<T>>,
    changed: Condvar,
}

impl<T> Race<T> {
    pub fn new() -> Self {
        Race {
            track: Mutex::new(Track {
                finished: Vec::new(),
                decided: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// An access has completed. Back comes what is too late to be used by who waits.
    pub fn finish(&self, finish: Finish<T>) -> Option<Finish<T>> {
        let mut track = hold(&self.track);
        if track.decided {
            return Some(finish);
        }
        track.finished.push(finish);
        self.changed.notify_one();
        None
    }

    /// Takes what has completed, as soon as something has; nothing if that takes longer than `at_most`.
    pub fn wait(&self, at_most: Option<Duration>) -> Vec<Finish<T>> {
        let until = at_most.map(|time| Instant::now() + time);
        let mut track = hold(&self.track);
        while track.finished.is_empty() {
            track = match until {
                None => self.changed.wait(track).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    let waited = self.changed.wait_timeout(track, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        std::mem::take(&mut track.finished)
    }

    /// Nothing is waited for any more; what has completed meanwhile.
    pub fn decide(&self) -> Vec<Finish<T>> {
        let mut track = hold(&self.track);
        track.decided = true;
        std::mem::take(&mut track.finished)
    }
}
