//! Pairs in a simulated memory: what the micro-benchmark would find in it.

use ftlab_core::Stream;

use super::Pairs;
use crate::Memory;
use crate::feed::{Cores, Step};
use crate::system::System;

pub struct Simulated {
    memory: Memory,
}

/// Reads of each line of a pair.
const ROUNDS: u64 = 8;

impl Simulated {
    pub fn new(memory: Memory) -> Self {
        Simulated { memory }
    }
}

impl Pairs for Simulated {
    fn bits(&self) -> u64 {
        (self.memory.map.capacity - 1) & !(self.memory.line_bytes - 1)
    }

    fn random(&mut self, random: &mut Stream) -> u64 {
        random.below(self.memory.map.capacity / self.memory.line_bytes) * self.memory.line_bytes
    }

    fn has(&self, address: u64) -> bool {
        address < self.memory.map.capacity
    }

    fn time(&mut self, one: u64, other: u64) -> f64 {
        let step = move |n: u64| Step {
            address: if n.is_multiple_of(2) { one } else { other },
            write: false,
            time: 0,
        };
        let mut feed = Cores::new(vec![Box::new((0..2 * ROUNDS).map(step))], 1);
        let mut system = System::new(&self.memory);
        let done = system.run(&self.memory, &mut feed, &mut |_| (), &mut || Ok(()));
        debug_assert!(done.is_ok());
        system.measured.finished as f64 / 1000.0 / ROUNDS as f64
    }
}
