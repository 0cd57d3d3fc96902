//! The record: where every mapping unit lies, what every slot belongs to, and which slots are valid.
//!
//! `LPN → slot` (or, behind a tag bit, a virtual page number), `slot → owner`, one validity bit per slot: 8.125 bytes a unit.

use ftlab_core::memory::{huge, prefetch};
use ftlab_core::{Lpn, Slot};

use crate::indirection::Vpn;
use crate::owner::Packed;

/// A map entry: a slot, a virtual page number or a row of chunks behind the tag bit, or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Entry(pub u32);

/// An [`Entry`] taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    Unmapped,
    Slot(Slot),
    Vpn(Vpn),
    /// Number of a row of chunks.
    Chunks(u32),
}

/// Slots by which the owners of slots to be filled are brought into the cache before their turn.
pub(crate) const FILL_AHEAD: usize = 64;

const VPN_TAG: u32 = 0b10 << 30;
const CHUNKS_TAG: u32 = 0b11 << 30;

impl Entry {
    pub const UNMAPPED: Entry = Entry(u32::MAX);

    #[inline(always)]
    pub fn slot(slot: Slot) -> Self {
        Entry(slot.0)
    }

    #[inline(always)]
    pub fn vpn(vpn: Vpn) -> Self {
        Entry(VPN_TAG | vpn.0)
    }

    #[inline(always)]
    pub fn chunks(row: u32) -> Self {
        Entry(CHUNKS_TAG | row)
    }

    /// The slot, if the unit lies there directly (the hot case).
    #[inline(always)]
    pub fn as_slot(self) -> Option<Slot> {
        (self.0 < VPN_TAG).then_some(Slot(self.0))
    }

    #[inline(always)]
    pub fn as_vpn(self) -> Option<Vpn> {
        (VPN_TAG..CHUNKS_TAG)
            .contains(&self.0)
            .then_some(Vpn(self.0 & !VPN_TAG))
    }

    #[inline]
    pub fn target(self) -> Target {
        match self.0 {
            u32::MAX => Target::Unmapped,
            slot if slot < VPN_TAG => Target::Slot(Slot(slot)),
            vpn if vpn < CHUNKS_TAG => Target::Vpn(Vpn(vpn & !VPN_TAG)),
            row => Target::Chunks(row & !CHUNKS_TAG),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Record {
    pub map: Vec<u32>,
    pub owners: Vec<u32>,
    valid: Vec<u64>,
}

/// See [`Record::spread`].
pub struct Spread<'a> {
    map: &'a mut [u32],
    owners: &'a mut [u32],
}

impl Spread<'_> {
    /// The unit of `lpn` lies in `slot`, which is yet to be made valid.
    #[inline(always)]
    pub fn put(&mut self, lpn: Lpn, slot: Slot) {
        self.owners[slot.at()] = lpn.0;
        self.map[lpn.at()] = slot.0;
    }

    /// As [`Record::prefetch_entry`].
    #[inline(always)]
    pub fn prefetch(&self, lpn: u32) {
        prefetch(self.map, lpn as usize);
    }

    /// As [`Record::prefetch_fill`].
    #[inline(always)]
    pub fn prefetch_fill(&self, slot: Slot) {
        prefetch(self.owners, slot.at() + FILL_AHEAD);
    }
}

impl Record {
    pub fn new(logical_units: u32, slots: u32) -> Self {
        Record {
            map: huge(Entry::UNMAPPED.0, logical_units as usize),
            owners: huge(Packed::NONE.0, slots as usize),
            valid: huge(0, (slots as usize).div_ceil(64)),
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
    pub fn is_valid(&self, slot: Slot) -> bool {
        self.valid[slot.at() / 64] >> (slot.0 % 64) & 1 == 1
    }

    #[inline(always)]
    pub fn set_valid(&mut self, slot: Slot) {
        self.valid[slot.at() / 64] |= 1 << (slot.0 % 64);
    }

    #[inline(always)]
    pub fn clear_valid(&mut self, slot: Slot) {
        self.valid[slot.at() / 64] &= !(1 << (slot.0 % 64));
    }

    /// The slots from `first` on hold valid units of `owners`.
    pub fn append_run(&mut self, first: Slot, owners: &[u32]) {
        self.owners[first.at()..first.at() + owners.len()].copy_from_slice(owners);
        self.set_valid_range(first, owners.len() as u32);
    }

    /// Both maps, for units that are put into slots here and there.
    pub fn spread(&mut self) -> Spread<'_> {
        Spread {
            map: &mut self.map,
            owners: &mut self.owners,
        }
    }

    /// The `count` slots from `first` on are valid.
    pub fn set_valid_range(&mut self, first: Slot, count: u32) {
        for (word, mask) in words_of(first, count) {
            self.valid[word] |= mask;
        }
    }

    /// None of the `count` slots from `first` on is valid any more.
    pub fn clear_valid_range(&mut self, first: Slot, count: u32) {
        for (word, mask) in words_of(first, count) {
            self.valid[word] &= !mask;
        }
    }

    /// The units of `lpns` lie in consecutive slots from `first` on. Each time an entry is set, the next one of `ahead` is
    /// brought into the cache.
    pub fn repoint_run(&mut self, lpns: &[u32], first: Slot, ahead: &[u32]) {
        let (near, rest) = lpns.split_at(ahead.len().min(lpns.len()));
        for (step, (&lpn, &later)) in near.iter().zip(ahead).enumerate() {
            self.prefetch_entry(later);
            self.map[lpn as usize] = first.0 + step as u32;
        }
        for (step, &lpn) in rest.iter().enumerate() {
            self.map[lpn as usize] = first.0 + (near.len() + step) as u32;
        }
    }

    /// Valid slots of `first..first + count`, ascending, handed to `visit`.
    #[inline]
    pub fn for_each_valid(&self, first: Slot, count: u32, mut visit: impl FnMut(Slot)) {
        for (word, mask) in words_of(first, count) {
            let mut valid = self.valid[word] & mask;
            while valid != 0 {
                visit(Slot(word as u32 * 64 + valid.trailing_zeros()));
                valid &= valid - 1;
            }
        }
    }

    /// Words of the validity bit map, for a checkpoint.
    pub fn validity(&self) -> &[u64] {
        &self.valid
    }

    pub fn validity_mut(&mut self) -> &mut Vec<u64> {
        &mut self.valid
    }

    #[inline(always)]
    pub fn prefetch_entry(&self, lpn: u32) {
        prefetch(&self.map, lpn as usize);
    }

    /// Brings the owners of the slots that will be filled soon after `slot` into the cache.
    #[inline(always)]
    pub fn prefetch_fill(&self, slot: Slot) {
        prefetch(&self.owners, slot.at() + FILL_AHEAD);
    }

    #[inline(always)]
    pub fn prefetch_validity(&self, slot: Slot) {
        prefetch(&self.valid, slot.at() / 64);
    }

    /// Bytes of map, reverse map and validity.
    pub fn bytes(&self) -> u64 {
        (self.map.len() * 4 + self.owners.len() * 4 + self.valid.len() * 8) as u64
    }
}

/// The words of the validity bit map in which the `count` slots from `first` on lie, each with the bits of those slots.
#[inline]
fn words_of(first: Slot, count: u32) -> impl Iterator<Item = (usize, u64)> {
    let (start, end) = (first.at(), first.at() + count as usize);
    (start / 64..end.div_ceil(64)).map(move |word| {
        let (from, to) = (start.max(word * 64) % 64, end.min(word * 64 + 64) - word * 64);
        (word, !0 << from & !0 >> (64 - to))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_slots_are_visited_once_in_order_whatever_the_alignment() {
        let mut record = Record::new(1, 300);
        let set = [0, 1, 63, 64, 70, 127, 128, 200, 299];
        set.iter().for_each(|&s| record.set_valid(Slot(s)));
        for (first, count) in [(0, 300), (1, 63), (63, 2), (64, 64), (65, 200), (299, 1), (10, 20)] {
            let mut seen = Vec::new();
            record.for_each_valid(Slot(first), count, |slot| seen.push(slot.0));
            let expected: Vec<u32> = set
                .iter()
                .copied()
                .filter(|&s| s >= first && s < first + count)
                .collect();
            assert_eq!(seen, expected, "{first} + {count}");
        }
    }

    #[test]
    fn runs_fill_and_leave_ranges_of_any_alignment() {
        for (first, count) in [
            (0, 1),
            (0, 64),
            (1, 63),
            (63, 2),
            (64, 128),
            (65, 190),
            (127, 1),
            (299, 1),
            (0, 300),
        ] {
            let mut record = Record::new(300, 300);
            let lpns: Vec<u32> = (0..count).rev().collect();
            record.append_run(Slot(first), &lpns);
            record.repoint_run(&lpns, Slot(first), &lpns[lpns.len() / 2..]);
            for (step, &lpn) in lpns.iter().enumerate() {
                let slot = Slot(first + step as u32);
                assert_eq!(
                    (record.entry(Lpn(lpn)).as_slot(), record.owner(slot).as_lpn()),
                    (Some(slot), Some(Lpn(lpn)))
                );
            }
            let valid = |record: &Record| (0..300).filter(|&s| record.is_valid(Slot(s))).collect::<Vec<u32>>();
            assert_eq!(valid(&record), (first..first + count).collect::<Vec<u32>>());
            let kept = count / 3;
            record.clear_valid_range(Slot(first), count - kept);
            assert_eq!(
                valid(&record),
                (first + count - kept..first + count).collect::<Vec<u32>>()
            );
        }
    }

    #[test]
    fn entries_tell_slots_from_virtual_pages() {
        assert_eq!(Entry::slot(Slot(7)).target(), Target::Slot(Slot(7)));
        assert_eq!(Entry::vpn(Vpn(7)).target(), Target::Vpn(Vpn(7)));
        assert_eq!(Entry::chunks(7).target(), Target::Chunks(7));
        assert_eq!(Entry::UNMAPPED.target(), Target::Unmapped);
        assert_eq!(Entry::UNMAPPED.as_slot(), None);
    }
}
