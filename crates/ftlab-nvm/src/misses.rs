//! What of a core's accesses reaches memory behind caches.

use std::cell::RefCell;
use std::rc::Rc;

use crate::address::AddressMap;
use crate::cache::Hierarchy;
use crate::feed::{Step, Stream};
use crate::{LATEST, Ps};

/// Its misses, with the time that hits took as think time, and dirty lines that are driven out.
pub struct Misses {
    steps: Stream,
    core: usize,
    caches: Rc<RefCell<Hierarchy>>,
    map: AddressMap,
    waited: Ps,
    /// Lines to be written of the access before, the next one last.
    written: [u64; 3],
    left: usize,
}

impl Misses {
    pub fn new(steps: Stream, core: usize, caches: Rc<RefCell<Hierarchy>>, map: AddressMap) -> Self {
        Misses {
            steps,
            core,
            caches,
            map,
            waited: 0,
            written: [0; 3],
            left: 0,
        }
    }
}

impl Iterator for Misses {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if self.left > 0 {
                self.left -= 1;
                return Some(Step {
                    address: self.map.address_of(self.written[self.left]),
                    write: true,
                    time: 0,
                });
            }
            let step = self.steps.next()?;
            let line = self.map.line(step.address);
            let asked = self.caches.borrow_mut().access(self.core, line, step.write);
            self.waited = (self.waited + asked.latency).saturating_add(step.time).min(LATEST);
            for line in asked.written.into_iter().rev().flatten() {
                self.written[self.left] = line;
                self.left += 1;
            }
            if asked.fill {
                return Some(Step {
                    address: step.address,
                    write: false,
                    time: std::mem::take(&mut self.waited),
                });
            }
        }
    }
}
