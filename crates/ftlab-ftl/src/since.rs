//! When each mapping unit was placed last, in 32 bits a unit.

use ftlab_core::{Lpn, Slot, memory};

use crate::record::FILL_AHEAD;

/// The greatest age that is told: older ones are this old.
pub const GREATEST_AGE: u64 = 1 << 31;

/// Ticks are kept modulo 2³², which wraps after 16 TiB of 4 KiB units; often enough every older entry is set to
/// [`GREATEST_AGE`], so that none is ever taken for a young one.
#[derive(Clone, Debug, Default)]
pub struct Since {
    ticks: Vec<u32>,
    /// The same of the unit that lies in each slot, if an LPN owns it: survivors lie one after the other here, while each has a line
    /// of the processor's cache to itself above. Empty where it is not kept.
    of_slots: Vec<u32>,
    swept: u64,
}

/// Ticks in a line of the processor's cache.
const LINE: usize = 16;

/// Ticks between two sweeps: ages stay below 2³¹ + 2³⁰ < 2³².
const BETWEEN_SWEEPS: u64 = 1 << 30;

impl Since {
    /// With the ticks of `slots` slots as well.
    pub fn new(logical_units: u32, slots: u32) -> Self {
        Since {
            ticks: memory::huge(0, logical_units as usize),
            of_slots: memory::huge(0, slots as usize),
            swept: 0,
        }
    }

    /// `lpn` is placed at `tick`; ticks never decrease.
    #[inline]
    pub fn set(&mut self, lpn: Lpn, tick: u64) {
        if tick - self.swept >= BETWEEN_SWEEPS {
            self.sweep(tick);
        }
        self.ticks[lpn.at()] = tick as u32;
    }

    /// As [`Since::set`], for a tick of the past.
    pub fn set_before(&mut self, lpn: Lpn, tick: u64) {
        self.ticks[lpn.at()] = tick as u32;
    }

    /// Whether the ticks of slots are kept.
    #[inline(always)]
    pub fn knows_slots(&self) -> bool {
        !self.of_slots.is_empty()
    }

    /// `lpn` lies in `slot` since it was placed.
    #[inline]
    pub fn lies(&mut self, lpn: Lpn, slot: Slot) {
        if self.knows_slots() {
            self.of_slots[slot.at()] = self.ticks[lpn.at()];
        }
    }

    /// What lay in `from` lies in `to`.
    #[inline(always)]
    pub fn moved(&mut self, from: Slot, to: Slot) {
        if self.knows_slots() {
            self.of_slots[to.at()] = self.of_slots[from.at()];
        }
    }

    /// Brings what is kept of the slots that will be filled soon after `slot` into the processor's cache.
    #[inline(always)]
    pub fn prefetch_fill(&self, slot: Slot) {
        memory::prefetch(&self.of_slots, slot.at() + FILL_AHEAD);
    }

    /// The same of `count` slots from `first` on.
    pub fn prefetch_slots(&self, first: Slot, count: u32) {
        if !self.knows_slots() {
            return;
        }
        for slot in (first.at()..first.at() + count as usize).step_by(LINE) {
            memory::prefetch(&self.of_slots, slot);
        }
    }

    /// Whether what is kept of `slot`, in which `lpn` lies, is right.
    pub fn agrees(&self, lpn: Lpn, slot: Slot) -> bool {
        !self.knows_slots() || self.of_slots[slot.at()] == self.ticks[lpn.at()]
    }

    /// How long ago what lies in `slot` was placed, where the ticks of slots are kept.
    #[inline(always)]
    pub fn age_in(&self, slot: Slot, tick: u64) -> u64 {
        age(self.of_slots[slot.at()], tick)
    }

    /// How long ago `lpn`, which may lie in `slot`, was placed.
    #[inline]
    pub fn age_of(&self, lpn: Lpn, slot: Option<Slot>, tick: u64) -> u64 {
        match slot {
            Some(slot) if self.knows_slots() => self.age_in(slot, tick),
            _ => self.age(lpn, tick),
        }
    }

    /// Brings what is known of `lpn` into the processor's cache.
    #[inline(always)]
    pub fn prefetch(&self, lpn: u32) {
        memory::prefetch(&self.ticks, lpn as usize);
    }

    /// When `lpn`, which has been placed, was placed last; at most [`GREATEST_AGE`] before `tick`.
    #[inline]
    pub fn of(&self, lpn: Lpn, tick: u64) -> u64 {
        tick - self.age(lpn, tick)
    }

    /// How long ago that was.
    #[inline]
    pub fn age(&self, lpn: Lpn, tick: u64) -> u64 {
        age(self.ticks[lpn.at()], tick)
    }

    #[cold]
    fn sweep(&mut self, tick: u64) {
        for kept in self.ticks.iter_mut().chain(&mut self.of_slots) {
            *kept = (tick - age(*kept, tick)) as u32;
        }
        self.swept = tick;
    }

    /// The low halves of all ticks and the last sweep, for a saved state.
    pub(crate) fn parts(&mut self) -> (&mut Vec<u32>, &mut u64) {
        (&mut self.ticks, &mut self.swept)
    }
}

/// The age of what was placed at the tick of which `kept` are the low bits.
#[inline(always)]
fn age(kept: u32, tick: u64) -> u64 {
    let age = u64::from((tick as u32).wrapping_sub(kept));
    age.min(GREATEST_AGE).min(tick)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_survive_the_wrap_of_32_bits_and_stop_at_the_greatest() {
        let mut since = Since::new(3, 5);
        let mut tick = (1 << 32) - 5;
        since.set(Lpn(0), tick);
        since.lies(Lpn(0), Slot(3));
        since.moved(Slot(3), Slot(4));
        tick += 10;
        since.set(Lpn(1), tick);
        assert_eq!((since.of(Lpn(0), tick), since.of(Lpn(1), tick)), (tick - 10, tick));
        // Unit 2 is written all the time, units 0 and 1 never again.
        let (zero, one) = (tick - 10, tick);
        for _ in 0..200 {
            tick += 1 << 28;
            since.set(Lpn(2), tick);
            let expected = |placed: u64| placed.max(tick - GREATEST_AGE);
            assert_eq!(since.of(Lpn(0), tick), expected(zero));
            assert_eq!(since.age_in(Slot(4), tick), tick - expected(zero));
            assert_eq!(since.of(Lpn(1), tick), expected(one));
            assert_eq!(since.of(Lpn(2), tick), tick);
        }
        assert!(tick > 3 << 33, "the ticks have wrapped several times");
    }
}
