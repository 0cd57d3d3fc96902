//! Pairs in this machine's memory: 2 MiB pages, their frames from /proc/self/pagemap, and reads past the caches.
//!
//! # Errors
//! An architecture without `clflush`, memory that the system refuses, pages that are not huge: one sentence.
//!
//! # Not modelled
//! DAX mappings. Where the page map hides frames (without root), addresses are those within one 2 MiB page.

use ftlab_core::{Error, Result, Stream};

use super::Pairs;
use crate::machine::placement::are_huge;
use crate::machine::region::{HUGE as PAGE, Region, ns_per_tick};

const LINE: u64 = 64;

pub struct Machine {
    buffer: Region,
    /// Frame of each page of the buffer, as a multiple of 2 MiB, and its place in the buffer; in the order of frames.
    frames: Vec<(u64, u64)>,
    /// Whether frames are known, so that addresses are physical.
    pub is_physical: bool,
    ns_per_tick: f64,
}

impl Machine {
    /// Takes so many bytes of memory and finds out where they are.
    pub fn new(bytes: u64) -> Result<Self> {
        let pages = (bytes / PAGE).max(1);
        let buffer = Region::anonymous(pages * PAGE)?;
        let known: Option<Vec<u64>> = buffer.frames()?.into_iter().collect();
        let is_physical = known.is_some();
        let mut frames: Vec<(u64, u64)> = match known {
            Some(small) if !small.chunks(512).all(are_huge) => {
                return Err(Error::input(
                    "the system gives no pages of 2 MiB, expected /sys/kernel/mm/transparent_hugepage/enabled to be always or madvise",
                ));
            }
            Some(small) => small
                .into_iter()
                .step_by(512)
                .map(|frame| frame / 512)
                .zip(0..)
                .collect(),
            None => vec![(0, 0)],
        };
        frames.sort_unstable();
        Ok(Machine {
            buffer,
            frames,
            is_physical,
            ns_per_tick: ns_per_tick(),
        })
    }

    fn place(&self, address: u64) -> Option<u64> {
        let at = self
            .frames
            .binary_search_by_key(&(address / PAGE), |(frame, _)| *frame)
            .ok()?;
        Some(self.frames[at].1 * PAGE + address % PAGE)
    }
}

impl Pairs for Machine {
    fn bits(&self) -> u64 {
        let first = self.frames[0].0;
        let differ = self.frames.iter().fold(0, |bits, (frame, _)| bits | (frame ^ first));
        (differ * PAGE) | ((PAGE - 1) & !(LINE - 1))
    }

    fn random(&mut self, random: &mut Stream) -> u64 {
        let frame = self.frames[random.below(self.frames.len() as u64) as usize].0;
        frame * PAGE + random.below(PAGE / LINE) * LINE
    }

    fn has(&self, address: u64) -> bool {
        self.place(address).is_some()
    }

    fn time(&mut self, one: u64, other: u64) -> f64 {
        let (Some(one), Some(other)) = (self.place(one), self.place(other)) else {
            return f64::NAN;
        };
        self.buffer.ticks(one, other) as f64 * self.ns_per_tick
    }
}
