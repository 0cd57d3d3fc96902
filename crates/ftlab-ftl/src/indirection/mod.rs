//! Values: units that several LPNs share or that lie in several places, and units in four chunks.
//!
//! A value has a virtual page number (VPN) and takes 8 bytes: the slot it lies in and a count of references. Where it has
//! several copies the slot gives way to a ring of them, 8 bytes each. A value that holds chunks, as a pack of four does, counts
//! the references to each (16 bytes); a unit that consists of chunks has a row of four chunk numbers (16 bytes). A drive without
//! deduplication and replication has none of these and pays nothing.
//!
//! There are as many VPNs as slots: a value that is in flash takes a slot, so that numbers run out only where those of dead values
//! rest. Then units are stored without one. Where units are stored in chunks there are four times as many, as what is left of several packs
//! may share a slot (`gathered`).

mod chains;
mod chunks;
mod entries;
mod gathered;
mod saved;

use ftlab_core::{Lpn, Slot, memory};

use chains::{Chains, Left};
pub use chunks::{CHUNKS, ChunkId, ChunkRow, Filling};
use gathered::Gatherings;
pub use gathered::Held;
pub(crate) use saved::SECTIONS;

/// Bytes of a value (slot, count of references), of each of its further copies, and of a row of chunks.
pub const VALUE_BYTES: u32 = 8;
pub const COPY_BYTES: u32 = 8;
pub const ROW_BYTES: u32 = 16;

/// The most values that there can be: their numbers stand in entries of 30 bits beside others.
pub const MOST_VALUES: u32 = (1 << 30) - 2;

/// Most copies of one unit.
pub const MAX_COPIES: usize = 64;

/// The number of a value: a virtual page number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Vpn(pub u32);

impl Vpn {
    #[inline(always)]
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// What lies behind one name: the unit that the host knows by an LPN, or the value behind a virtual page number, which several
/// LPNs may share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Of {
    Lpn(Lpn),
    Vpn(Vpn),
}

/// In `head`: the number is not in use; the value is not in flash (yet). As a link: none.
const UNUSED: u32 = u32::MAX;
const NOWHERE: u32 = u32::MAX - 1;
/// In `head`: a ring of copies instead of a slot.
const RING: u32 = 0b10 << 30;
/// In `head`: the number of the gathering in which the value lies instead of a slot.
const MEMBER: u32 = 0b11 << 30;

/// A value, whole in one line of the processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
struct Value {
    /// Where it lies.
    head: u32,
    /// How many LPNs and chunks of rows refer to it. Of a number that is not in use: the next one in its list.
    refs: u32,
}

#[derive(Clone, Debug)]
pub struct Indirection {
    /// By VPN.
    values: Vec<Value>,
    copies: Chains,
    /// By VPN, as far as there are values that hold chunks: references to each chunk.
    chunk_refs: Vec<[u32; CHUNKS]>,
    rows: Vec<ChunkRow>,
    free_vpns: u32,
    free_row: u32,
    /// Numbers that may be used again when the next checkpoint says that they are free, oldest first; `None`: at once.
    resting: Option<Resting>,
    filling: Vec<Option<Filling>>,
    gatherings: Gatherings,
    most: u32,
    values_in_use: u32,
    rows_in_use: u32,
}

/// A queue of numbers that rest, linked through `refs`.
#[derive(Clone, Copy, Debug)]
struct Resting {
    first: u32,
    last: u32,
    count: u32,
}

impl Resting {
    const NONE: Resting = Resting {
        first: NOWHERE,
        last: NOWHERE,
        count: 0,
    };
}

/// What releases have ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Released {
    pub slots: Vec<Slot>,
    pub dead: Vec<Vpn>,
    pub dead_chunks: Vec<ChunkId>,
    /// Slots beyond the first of each value.
    pub further: u64,
}

impl Released {
    pub fn clear(&mut self) {
        self.slots.clear();
        self.dead.clear();
        self.dead_chunks.clear();
        self.further = 0;
    }
}

/// Adds an element; a table grows by an eighth, as its bytes count.
fn grow<T>(table: &mut Vec<T>, element: T) {
    if table.len() == table.capacity() {
        table.reserve_exact(table.len() / 8 + 64);
    }
    table.push(element);
}

impl Indirection {
    /// At most `most` values. With `resting` the number of a dead one is not used again before [`Indirection::wake`].
    pub fn new(most: u32, resting: bool) -> Self {
        Indirection {
            values: Vec::new(),
            copies: Chains::default(),
            chunk_refs: Vec::new(),
            rows: Vec::new(),
            free_vpns: NOWHERE,
            free_row: NOWHERE,
            resting: resting.then_some(Resting::NONE),
            filling: Vec::new(),
            gatherings: Gatherings::default(),
            most,
            values_in_use: 0,
            rows_in_use: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.rows.is_empty()
    }

    /// Bytes of the tables.
    pub fn bytes(&self) -> u64 {
        let of_chunks = self.chunk_refs.len() * 16 + self.rows.len() * 16 + self.gatherings.len() * 24;
        (self.values.len() * 8 + self.copies.bytes() + of_chunks) as u64
    }

    /// Values and rows in use.
    pub fn in_use_count(&self) -> (u32, u32) {
        (self.values_in_use, self.rows_in_use)
    }

    /// A value with one reference, which is not in flash yet; `None` when no number is left.
    pub fn create(&mut self) -> Option<Vpn> {
        let vpn = if self.free_vpns != NOWHERE {
            let vpn = Vpn(self.free_vpns);
            self.free_vpns = self.values[vpn.at()].refs;
            self.values[vpn.at()] = Value { head: NOWHERE, refs: 1 };
            vpn
        } else if (self.values.len() as u32) < self.most {
            grow(&mut self.values, Value { head: NOWHERE, refs: 1 });
            Vpn(self.values.len() as u32 - 1)
        } else {
            return None;
        };
        self.values_in_use += 1;
        Some(vpn)
    }

    /// References to the value.
    pub fn references(&self, vpn: Vpn) -> u32 {
        self.values[vpn.at()].refs
    }

    /// Brings what is known of the value into the processor's cache; no effect on the model.
    #[inline]
    pub fn prefetch(&self, vpn: Vpn) {
        memory::prefetch(&self.values, vpn.at());
    }

    /// The slot that ends with the next release of the value, if it lies in one of its own.
    #[inline(always)]
    pub fn ends_with_one(&self, vpn: Vpn) -> Option<Slot> {
        let value = self.values.get(vpn.at())?;
        ((value.refs == 1) & (value.head < RING)).then_some(Slot(value.head))
    }

    /// One LPN less refers to the value, if others do beside it and nothing is known of chunks. False if it was left as it is.
    #[inline]
    pub fn release_one_of_several(&mut self, vpn: Vpn) -> bool {
        let is_simple = self.chunk_refs.is_empty();
        match self.values.get_mut(vpn.at()) {
            Some(value) if is_simple && value.head != UNUSED && value.refs > 1 => {
                value.refs -= 1;
                true
            }
            _ => false,
        }
    }

    pub fn acquire(&mut self, vpn: Vpn) {
        assert!(self.is_used(vpn), "{vpn:?} is not in use");
        self.values[vpn.at()].refs += 1;
    }

    pub fn is_used(&self, vpn: Vpn) -> bool {
        self.values.get(vpn.at()).is_some_and(|value| value.head != UNUSED)
    }

    /// One LPN less refers to the value; what that ends is added to `released`.
    pub fn release(&mut self, vpn: Vpn, released: &mut Released) {
        assert!(
            self.is_used(vpn) && self.whole_references(vpn) > 0,
            "{vpn:?} is released once too often"
        );
        self.values[vpn.at()].refs -= 1;
        if self.whole_references(vpn) == 0
            && let Some(chunks) = self.chunk_references(vpn)
        {
            // It lives on for those of its quarters that rows refer to.
            let ended = (0..CHUNKS).filter(|&index| chunks[index] == 0);
            released.dead_chunks.extend(ended.map(|index| ChunkId::new(vpn, index)));
        }
        self.end_if_unused(vpn, released);
    }

    fn end_if_unused(&mut self, vpn: Vpn, released: &mut Released) {
        if self.values[vpn.at()].refs > 0 {
            return;
        }
        let before = released.slots.len();
        match self.gathered_in(vpn) {
            Some(gathering) => released.slots.extend(self.leave(gathering, vpn)),
            None => released.slots.extend(self.copies_of(vpn)),
        }
        released.further += (released.slots.len() - before).saturating_sub(1) as u64;
        if let Some(ring) = self.ring(vpn) {
            self.copies.free(ring);
        }
        self.values[vpn.at()].head = UNUSED;
        self.values_in_use -= 1;
        for filling in &mut self.filling {
            if filling.is_some_and(|filling| filling.pack == vpn) {
                *filling = None;
            }
        }
        released.dead.push(vpn);
        self.give_back(vpn);
    }

    /// The number of a dead value may be used again, now or later.
    fn give_back(&mut self, vpn: Vpn) {
        let Some(resting) = &mut self.resting else {
            self.values[vpn.at()].refs = std::mem::replace(&mut self.free_vpns, vpn.0);
            return;
        };
        self.values[vpn.at()].refs = NOWHERE;
        match resting.last {
            NOWHERE => resting.first = vpn.0,
            last => self.values[last as usize].refs = vpn.0,
        }
        resting.last = vpn.0;
        resting.count += 1;
    }

    /// Numbers that rest.
    pub fn resting(&self) -> u32 {
        self.resting.map_or(0, |resting| resting.count)
    }

    /// The `count` numbers that have rested longest may be used again.
    pub fn wake(&mut self, count: u32) {
        let Some(resting) = &mut self.resting else { return };
        for _ in 0..count {
            let vpn = resting.first;
            resting.first = self.values[vpn as usize].refs;
            self.values[vpn as usize].refs = std::mem::replace(&mut self.free_vpns, vpn);
        }
        resting.count -= count;
        if resting.count == 0 {
            *resting = Resting::NONE;
        }
    }

    // Copies.

    /// The last node of the ring in which the places of the value lie, if there are several.
    fn ring(&self, vpn: Vpn) -> Option<u32> {
        let head = self.values.get(vpn.at())?.head;
        (RING..MEMBER).contains(&head).then_some(head & !RING)
    }

    /// Puts the places of the value into `slots`.
    pub fn copies_into(&self, vpn: Vpn, slots: &mut Vec<Slot>) {
        slots.clear();
        slots.extend(self.copies_of(vpn));
    }

    /// The places of the value; of one that is gathered with others, their slot.
    pub fn copies_of(&self, vpn: Vpn) -> impl Iterator<Item = Slot> + '_ {
        let vpn = self.gathered_in(vpn).unwrap_or(vpn);
        let head = self.values.get(vpn.at()).map(|value| value.head);
        let only = head.filter(|&head| head < RING).map(Slot);
        only.into_iter().chain(self.copies.places(self.ring(vpn)))
    }

    pub fn copy_count(&self, vpn: Vpn) -> usize {
        self.copies_of(vpn).count()
    }

    /// The first place of the data, if it is in flash.
    pub fn first_slot(&self, vpn: Vpn) -> Option<Slot> {
        self.copies_of(vpn).next()
    }

    /// Whether `slot` is one of the places of `vpn`.
    pub fn lies_at(&self, vpn: Vpn, slot: Slot) -> bool {
        self.copies_of(vpn).any(|at| at == slot)
    }

    /// The value lies in `slot` as well, after its other places.
    pub fn add_copy(&mut self, vpn: Vpn, slot: Slot) {
        self.values[vpn.at()].head = match self.values[vpn.at()].head {
            UNUSED => panic!("{vpn:?} is not in use"),
            NOWHERE => slot.0,
            only if only < RING => RING | self.copies.pair(Slot(only), slot),
            member if member >= MEMBER => panic!("{vpn:?} is gathered with others and gets no copies"),
            ring => RING | self.copies.add(ring & !RING, slot),
        };
    }

    /// The value does not lie in `slot` any more.
    pub fn drop_copy(&mut self, vpn: Vpn, slot: Slot) {
        self.values[vpn.at()].head = match self.ring(vpn) {
            Some(ring) => match self.copies.remove(ring, slot) {
                Left::One(only) => only.0,
                Left::Ring(ring) => RING | ring,
            },
            None => {
                assert!(self.values[vpn.at()].head == slot.0, "{vpn:?} has no copy at {slot:?}");
                NOWHERE
            }
        };
    }

    /// Collection has moved a copy.
    pub fn moved(&mut self, vpn: Vpn, old: Slot, new: Slot) {
        match self.ring(vpn) {
            Some(ring) => self.copies.replace(ring, old, new),
            None => {
                assert!(self.values[vpn.at()].head == old.0, "{vpn:?} has no copy at {old:?}");
                self.values[vpn.at()].head = new.0;
            }
        }
    }

    /// All values in use.
    pub fn in_use(&self) -> impl Iterator<Item = Vpn> + '_ {
        (0..self.values.len() as u32).map(Vpn).filter(|&vpn| self.is_used(vpn))
    }

    /// All slots that hold data of values.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.in_use().flat_map(|vpn| self.copies_of(vpn))
    }

    // Recovery.

    /// Nothing is left.
    pub(crate) fn clear(&mut self) {
        *self = Indirection::new(self.most, self.resting.is_some());
    }

    /// A value is found again at `slot`, or its number is found without a place.
    pub(crate) fn recover(&mut self, vpn: Vpn, slot: Option<Slot>) {
        assert!(
            vpn.0 < self.most,
            "{vpn:?} is found, but there are {} numbers",
            self.most
        );
        while self.values.len() <= vpn.at() {
            grow(&mut self.values, Value { head: NOWHERE, refs: 0 });
        }
        if let Some(slot) = slot {
            self.values[vpn.at()].head = slot.0;
        }
    }

    /// Values that nothing refers to are not there; their numbers are free.
    pub(crate) fn recovered(&mut self) {
        self.values_in_use = 0;
        for vpn in (0..self.values.len() as u32).map(Vpn) {
            if self.values[vpn.at()].refs == 0 {
                self.values[vpn.at()].head = UNUSED;
                self.give_back(vpn);
            } else {
                self.values_in_use += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> Indirection {
        Indirection::new(1 << 20, false)
    }

    fn slots_of(all: &Indirection, vpn: Vpn) -> Vec<u32> {
        all.copies_of(vpn).map(|slot| slot.0).collect()
    }

    fn pack(all: &mut Indirection) -> ChunkRow {
        let chunks = std::array::from_fn(|_| all.new_chunk(0).unwrap().0);
        all.take_filling(0);
        chunks
    }

    #[test]
    fn the_last_reference_frees_every_copy() {
        let mut all = tables();
        let vpn = all.create().unwrap();
        all.add_copy(vpn, Slot(3));
        all.add_copy(vpn, Slot(9));
        all.acquire(vpn);
        let mut released = Released::default();
        all.release(vpn, &mut released);
        assert_eq!(released, Released::default());
        all.release(vpn, &mut released);
        assert_eq!((released.slots, released.dead), (vec![Slot(3), Slot(9)], vec![vpn]));
        assert_eq!(all.create(), Some(vpn));
        assert_eq!(all.first_slot(vpn), None);
    }

    #[test]
    fn copies_are_added_moved_and_dropped() {
        let mut all = tables();
        let (a, b) = (all.create().unwrap(), all.create().unwrap());
        for slot in 0..5 {
            all.add_copy(a, Slot(slot));
            all.add_copy(b, Slot(10 + slot));
        }
        all.drop_copy(a, Slot(0));
        all.drop_copy(a, Slot(2));
        all.moved(a, Slot(3), Slot(30));
        assert_eq!(slots_of(&all, a), [1, 30, 4]);
        all.drop_copy(a, Slot(4));
        all.drop_copy(a, Slot(1));
        assert_eq!(slots_of(&all, a), [30]);
        assert_eq!(slots_of(&all, b), [10, 11, 12, 13, 14]);
        let bytes = all.bytes();
        all.add_copy(a, Slot(31));
        assert_eq!((slots_of(&all, a), all.bytes()), (vec![30, 31], bytes));
        all.drop_copy(a, Slot(30));
        all.drop_copy(a, Slot(31));
        assert_eq!((all.copy_count(a), all.lies_at(b, Slot(14))), (0, true));
        let mut released = Released::default();
        all.release(b, &mut released);
        assert_eq!(released.slots.len(), 5);
        let again = all.create().unwrap();
        (0..7).for_each(|slot| all.add_copy(again, Slot(slot)));
        assert_eq!((slots_of(&all, again), all.bytes()), ((0..7).collect(), bytes));
    }

    #[test]
    fn numbers_that_rest_are_used_again_in_the_order_in_which_they_are_woken() {
        let mut all = Indirection::new(4, true);
        let vpns: Vec<Vpn> = (0..4).map(|_| all.create().unwrap()).collect();
        assert_eq!(all.create(), None, "no number is left");
        for vpn in [vpns[2], vpns[0], vpns[3]] {
            all.release(vpn, &mut Released::default());
        }
        assert_eq!((all.create(), all.resting()), (None, 3));
        all.wake(2);
        assert_eq!(
            (all.create(), all.create(), all.create()),
            (Some(vpns[0]), Some(vpns[2]), None)
        );
        all.wake(1);
        assert_eq!((all.create(), all.resting()), (Some(vpns[3]), 0));
        all.release(vpns[1], &mut Released::default());
        assert_eq!(all.resting(), 1);
    }

    #[test]
    fn a_pack_dies_with_the_last_row_that_uses_it() {
        let mut all = tables();
        let chunks = pack(&mut all);
        let value = chunks[0].value();
        all.add_copy(value, Slot(3));
        [0, 0, 1, 1].iter().for_each(|&i| all.acquire_chunk(chunks[i]));
        let rows = [chunks, [chunks[0], chunks[0], chunks[1], chunks[1]]].map(|chunks| all.new_row(chunks));
        let mut released = Released::default();
        all.release_row(rows[0], &mut released);
        assert_eq!(released.slots, []);
        assert_eq!(released.dead_chunks, [chunks[2], chunks[3]]);
        all.release_row(rows[1], &mut released);
        assert_eq!((released.slots, released.dead), (vec![Slot(3)], vec![value]));
        assert_eq!(all.in_use_count(), (0, 0));
    }

    /// A unit stored whole, of which a row uses quarter 2: when no LPN refers to the unit any more, the other quarters are dead.
    #[test]
    fn quarters_of_a_whole_unit_outlive_it() {
        let mut all = tables();
        let whole = all.create().unwrap();
        all.add_copy(whole, Slot(8));
        let quarter = ChunkId::new(whole, 2);
        [quarter; 4].iter().for_each(|&chunk| all.acquire_chunk(chunk));
        let row = all.new_row([quarter; 4]);
        assert_eq!((all.references(whole), all.whole_references(whole)), (5, 1));
        let mut released = Released::default();
        all.release(whole, &mut released);
        let others = [0, 1, 3].map(|index| ChunkId::new(whole, index));
        assert_eq!((&released.dead_chunks[..], &released.slots[..]), (&others[..], &[][..]));
        released.clear();
        all.release_row(row, &mut released);
        assert_eq!((released.dead, released.dead_chunks), (vec![whole], vec![quarter]));
    }

    #[test]
    fn packs_are_filled_side_by_side() {
        let mut all = tables();
        let (a, b) = (all.new_chunk(0).unwrap().0, all.new_chunk(3).unwrap().0);
        assert_ne!(a.value(), b.value());
        assert_eq!(all.new_chunk(3).unwrap(), (ChunkId::new(b.value(), 1), false));
        assert_eq!([0, 1, 3].map(|number| all.filled(number)), [1, 0, 2]);
        assert_eq!(all.any_filling(), Some(0));
        assert_eq!(all.take_filling(0).map(|filling| filling.pack), Some(a.value()));
        assert_eq!((all.any_filling(), all.filled(0)), (Some(3), 0));
    }
}
