//! The record: where every mapping unit lies, what every slot belongs to, and which slots are live.
//!
//! `LPN → slot` (or, behind a tag bit, a virtual page number), `slot → owner`, one validity bit per slot: 8.125 bytes a unit.

use ftlab_core::memory::{huge, prefetch};
use ftlab_core::{Lpn, Slot};

use crate::owner::Packed;

/// A map entry: a slot, a virtual page number behind the tag bit, or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Entry(pub u32);

/// An [`Entry`] taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    Unmapped,
    Slot(Slot),
    Vpn(u32),
}

const VPN_TAG: u32 = 1 << 31;

impl Entry {
    pub const UNMAPPED: Entry = Entry(u32::MAX);

    #[inline(always)]
    pub fn slot(slot: Slot) -> Self {
        Entry(slot.0)
    }

    #[inline(always)]
    pub fn vpn(vpn: u32) -> Self {
        Entry(VPN_TAG | vpn)
    }

    /// The slot, if the unit lies there directly (the hot case).
    #[inline(always)]
    pub fn as_slot(self) -> Option<Slot> {
        (self.0 < VPN_TAG).then_some(Slot(self.0))
    }

    #[inline]
    pub fn target(self) -> Target {
        match self.0 {
            u32::MAX => Target::Unmapped,
            slot if slot < VPN_TAG => Target::Slot(Slot(slot)),
            vpn => Target::Vpn(vpn & !VPN_TAG),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Record {
    pub map: Vec<u32>,
    pub owners: Vec<u32>,
    live: Vec<u64>,
}

impl Record {
    pub fn new(logical_units: u32, slots: u32) -> Self {
        Record {
            map: huge(Entry::UNMAPPED.0, logical_units as usize),
            owners: huge(Packed::NONE.0, slots as usize),
            live: huge(0, (slots as usize).div_ceil(64)),
        }
    }

    #[inline(always)]
    pub fn entry(&self, lpn: Lpn) -> Entry {
        Entry(self.map[lpn.at()])
    }

    #[inline(always)]
    pub fn set_entry(&mut self, lpn: Lpn, entry: Entry) {
        self.map[lpn.at()] = entry.0;
    }

    #[inline(always)]
    pub fn owner(&self, slot: Slot) -> Packed {
        Packed(self.owners[slot.at()])
    }

    #[inline(always)]
    pub fn set_owner(&mut self, slot: Slot, owner: Packed) {
        self.owners[slot.at()] = owner.0;
    }

    #[inline(always)]
    pub fn is_live(&self, slot: Slot) -> bool {
        self.live[slot.at() / 64] >> (slot.0 % 64) & 1 == 1
    }

    #[inline(always)]
    pub fn set_live(&mut self, slot: Slot) {
        self.live[slot.at() / 64] |= 1 << (slot.0 % 64);
    }

    #[inline(always)]
    pub fn clear_live(&mut self, slot: Slot) {
        self.live[slot.at() / 64] &= !(1 << (slot.0 % 64));
    }

    /// Live slots of `first..first + count`, ascending, handed to `visit`.
    #[inline]
    pub fn for_each_live(&self, first: Slot, count: u32, mut visit: impl FnMut(Slot)) {
        let end = first.0 + count;
        let mut base = first.0 & !63;
        while base < end {
            let mut word = self.live[base as usize / 64];
            if base < first.0 {
                word &= !0 << (first.0 - base);
            }
            if end - base < 64 {
                word &= (1 << (end - base)) - 1;
            }
            while word != 0 {
                visit(Slot(base + word.trailing_zeros()));
                word &= word - 1;
            }
            base += 64;
        }
    }

    /// Words of the validity bit map, for a checkpoint.
    pub fn live_words(&self) -> &[u64] {
        &self.live
    }

    pub fn live_words_mut(&mut self) -> &mut Vec<u64> {
        &mut self.live
    }

    #[inline(always)]
    pub fn prefetch_entry(&self, lpn: u32) {
        prefetch(&self.map, lpn as usize);
    }

    #[inline(always)]
    pub fn prefetch_live(&self, slot: Slot) {
        prefetch(&self.live, slot.at() / 64);
    }

    /// Bytes of map, reverse map and validity.
    pub fn bytes(&self) -> u64 {
        (self.map.len() * 4 + self.owners.len() * 4 + self.live.len() * 8) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_slots_are_visited_once_in_order_whatever_the_alignment() {
        let mut record = Record::new(1, 300);
        let set = [0, 1, 63, 64, 70, 127, 128, 200, 299];
        set.iter().for_each(|&s| record.set_live(Slot(s)));
        for (first, count) in [(0, 300), (1, 63), (63, 2), (64, 64), (65, 200), (299, 1), (10, 20)] {
            let mut seen = Vec::new();
            record.for_each_live(Slot(first), count, |slot| seen.push(slot.0));
            let expected: Vec<u32> = set
                .iter()
                .copied()
                .filter(|&s| s >= first && s < first + count)
                .collect();
            assert_eq!(seen, expected, "{first} + {count}");
        }
    }

    #[test]
    fn entries_tell_slots_from_virtual_pages() {
        assert_eq!(Entry::slot(Slot(7)).target(), Target::Slot(Slot(7)));
        assert_eq!(Entry::vpn(7).target(), Target::Vpn(7));
        assert_eq!(Entry::UNMAPPED.target(), Target::Unmapped);
        assert_eq!(Entry::UNMAPPED.as_slot(), None);
    }
}
