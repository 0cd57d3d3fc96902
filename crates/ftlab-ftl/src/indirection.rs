//! Values: units that several LPNs share or that lie in several places, and units in four chunks.
//!
//! A value has a virtual page number (VPN) and takes 8 bytes: the slot it lies in and a count of references. Where it has
//! several copies the slot gives way to a chain of them, 8 bytes each. A pack is a value that holds four chunks, each with a
//! count of its own (16 bytes); a unit that is stored as chunks has a row of four chunk numbers (16 bytes). A drive without
//! deduplication and replication has none of these and pays nothing.

use ftlab_core::Slot;

/// Most copies of one unit.
pub const MAX_COPIES: usize = 64;
/// Chunks of a unit.
pub const CHUNKS: usize = 4;

/// A chunk: four times the VPN of its pack, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct ChunkId(pub u32);

impl ChunkId {
    pub fn new(pack: u32, index: u32) -> Self {
        ChunkId(pack * CHUNKS as u32 + index)
    }

    pub fn pack(self) -> u32 {
        self.0 / CHUNKS as u32
    }

    /// Number of the chunk in its pack.
    pub fn index(self) -> usize {
        self.0 as usize % CHUNKS
    }
}

/// The chunks of a unit, in order.
pub type ChunkRow = [ChunkId; CHUNKS];

const NO_ROW: ChunkRow = [ChunkId(u32::MAX); CHUNKS];

/// In `head`: the number is not in use; the value is not in flash (yet).
const UNUSED: u32 = u32::MAX;
const NOWHERE: u32 = u32::MAX - 1;
/// In `head`: a chain of copies instead of a slot.
const CHAIN: u32 = 1 << 31;
const END: u32 = u32::MAX;

/// One of several copies.
#[derive(Clone, Copy, Debug)]
struct Copy {
    slot: u32,
    next: u32,
}

/// The pack that takes the next new chunk, in the controller's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filling {
    pub pack: u32,
    pub filled: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Indirection {
    /// By VPN: where the value lies, and how many LPNs (of a pack: chunks of rows) refer to it.
    head: Vec<u32>,
    refs: Vec<u32>,
    copies: Vec<Copy>,
    free_copy: Option<u32>,
    /// By VPN, as far as there are packs: references to each chunk.
    chunk_refs: Vec<[u32; CHUNKS]>,
    rows: Vec<ChunkRow>,
    free_vpns: Vec<u32>,
    free_rows: Vec<u32>,
    /// Numbers that may be used again when the next checkpoint says that they are free, oldest first; `None`: at once.
    resting: Option<Vec<u32>>,
    pub filling: Option<Filling>,
}

/// What releases have ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Released {
    pub slots: Vec<Slot>,
    pub dead: Vec<u32>,
    pub dead_chunks: Vec<ChunkId>,
}

impl Released {
    pub fn clear(&mut self) {
        self.slots.clear();
        self.dead.clear();
        self.dead_chunks.clear();
    }
}

impl Indirection {
    /// With `resting` the number of a dead value is not used again before [`Indirection::wake`].
    pub fn new(resting: bool) -> Self {
        Indirection {
            resting: resting.then(Vec::new),
            ..Indirection::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.rows.is_empty()
    }

    /// Bytes of the tables.
    pub fn bytes(&self) -> u64 {
        let lists = self.free_vpns.len() + self.free_rows.len() + self.resting.as_ref().map_or(0, Vec::len);
        (self.head.len() * 8 + self.copies.len() * 8 + self.chunk_refs.len() * 16 + self.rows.len() * 16 + lists * 4)
            as u64
    }

    /// A value with one reference, which is not in flash yet.
    pub fn create(&mut self) -> u32 {
        let vpn = self.free_vpns.pop().unwrap_or(self.head.len() as u32);
        self.set(vpn, NOWHERE, 1);
        vpn
    }

    fn set(&mut self, vpn: u32, head: u32, refs: u32) {
        let at = vpn as usize;
        if self.head.len() <= at {
            self.head.resize(at + 1, UNUSED);
            self.refs.resize(at + 1, 0);
        }
        (self.head[at], self.refs[at]) = (head, refs);
    }

    /// References to the value.
    pub fn references(&self, vpn: u32) -> u32 {
        self.refs[vpn as usize]
    }

    pub fn acquire(&mut self, vpn: u32) {
        assert!(self.is_used(vpn), "VPN {vpn} is not in use");
        self.refs[vpn as usize] += 1;
    }

    fn is_used(&self, vpn: u32) -> bool {
        self.head.get(vpn as usize).is_some_and(|&head| head != UNUSED)
    }

    /// One reference less; what that ends is added to `released`.
    pub fn release(&mut self, vpn: u32, released: &mut Released) {
        assert!(self.refs[vpn as usize] > 0, "VPN {vpn} is released once too often");
        self.refs[vpn as usize] -= 1;
        if self.refs[vpn as usize] > 0 {
            return;
        }
        released.slots.extend(self.copies_of(vpn));
        self.forget_copies(vpn);
        self.head[vpn as usize] = UNUSED;
        if self.filling.is_some_and(|filling| filling.pack == vpn) {
            self.filling = None;
        }
        released.dead.push(vpn);
        match &mut self.resting {
            Some(resting) => resting.push(vpn),
            None => self.free_vpns.push(vpn),
        }
    }

    /// Numbers that rest.
    pub fn resting(&self) -> usize {
        self.resting.as_ref().map_or(0, Vec::len)
    }

    /// The `count` numbers that have rested longest may be used again.
    pub fn wake(&mut self, count: usize) {
        if let Some(resting) = &mut self.resting {
            self.free_vpns.extend(resting.drain(..count));
        }
    }

    // Copies.

    /// Puts the places of the value into `slots`.
    pub fn copies_into(&self, vpn: u32, slots: &mut Vec<Slot>) {
        slots.clear();
        slots.extend(self.copies_of(vpn));
    }

    /// The places of the value.
    pub fn copies_of(&self, vpn: u32) -> impl Iterator<Item = Slot> + '_ {
        let head = self.head.get(vpn as usize).copied().unwrap_or(UNUSED);
        let (only, mut node) = match head {
            UNUSED | NOWHERE => (None, END),
            slot if slot < CHAIN => (Some(Slot(slot)), END),
            chain => (None, chain & !CHAIN),
        };
        only.into_iter().chain(std::iter::from_fn(move || {
            let copy = self.copies.get(node as usize)?;
            node = copy.next;
            Some(Slot(copy.slot))
        }))
    }

    /// Number of copies; 0 of a pack, which is never copied.
    pub fn copy_count(&self, vpn: u32) -> usize {
        match self.chunk_references(vpn) {
            Some(_) => 0,
            None => self.copies_of(vpn).count(),
        }
    }

    /// The first place of the data, if it is in flash.
    pub fn first_slot(&self, vpn: u32) -> Option<Slot> {
        self.copies_of(vpn).next()
    }

    /// Whether `slot` is one of the places of `vpn`.
    pub fn lies_at(&self, vpn: u32, slot: Slot) -> bool {
        self.copies_of(vpn).any(|at| at == slot)
    }

    /// The value lies in `slot` as well, after its other places.
    pub fn add_copy(&mut self, vpn: u32, slot: Slot) {
        match self.head[vpn as usize] {
            UNUSED => panic!("VPN {vpn} is not in use"),
            NOWHERE => self.head[vpn as usize] = slot.0,
            only if only < CHAIN => {
                let second = self.new_copy(slot.0, END);
                self.head[vpn as usize] = CHAIN | self.new_copy(only, second);
            }
            chain => {
                let mut last = (chain & !CHAIN) as usize;
                while self.copies[last].next != END {
                    last = self.copies[last].next as usize;
                }
                let new = self.new_copy(slot.0, END);
                self.copies[last].next = new;
            }
        }
    }

    /// The value does not lie in `slot` any more.
    pub fn drop_copy(&mut self, vpn: u32, slot: Slot) {
        let head = self.head[vpn as usize];
        if head == slot.0 {
            self.head[vpn as usize] = NOWHERE;
            return;
        }
        assert!(self.lies_at(vpn, slot), "VPN {vpn} has no copy at {slot:?}");
        let first = head & !CHAIN;
        let mut before = END;
        let mut node = first;
        while self.copies[node as usize].slot != slot.0 {
            (before, node) = (node, self.copies[node as usize].next);
        }
        let next = self.copies[node as usize].next;
        if before == END {
            self.head[vpn as usize] = CHAIN | next;
        } else {
            self.copies[before as usize].next = next;
        }
        self.free_copy(node);
        // The only one that is left needs no chain.
        let first = self.head[vpn as usize] & !CHAIN;
        let only = self.copies[first as usize];
        if only.next == END {
            self.head[vpn as usize] = only.slot;
            self.free_copy(first);
        }
    }

    fn new_copy(&mut self, slot: u32, next: u32) -> u32 {
        match self.free_copy {
            Some(node) => {
                let after = self.copies[node as usize].next;
                self.free_copy = (after != END).then_some(after);
                self.copies[node as usize] = Copy { slot, next };
                node
            }
            None => {
                self.copies.push(Copy { slot, next });
                self.copies.len() as u32 - 1
            }
        }
    }

    fn free_copy(&mut self, node: u32) {
        self.copies[node as usize].next = self.free_copy.unwrap_or(END);
        self.free_copy = Some(node);
    }

    fn forget_copies(&mut self, vpn: u32) {
        let head = self.head[vpn as usize];
        self.head[vpn as usize] = NOWHERE;
        if (CHAIN..NOWHERE).contains(&head) {
            let mut node = head & !CHAIN;
            while node != END {
                let next = self.copies[node as usize].next;
                self.free_copy(node);
                node = next;
            }
        }
    }

    /// Collection has moved a copy.
    pub fn moved(&mut self, vpn: u32, old: Slot, new: Slot) {
        let head = self.head[vpn as usize];
        if head == old.0 {
            self.head[vpn as usize] = new.0;
            return;
        }
        assert!(self.lies_at(vpn, old), "VPN {vpn} has no copy at {old:?}");
        let mut node = (head & !CHAIN) as usize;
        while self.copies[node].slot != old.0 {
            node = self.copies[node].next as usize;
        }
        self.copies[node].slot = new.0;
    }

    /// All values in use.
    pub fn in_use(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.head.len() as u32).filter(|&vpn| self.is_used(vpn))
    }

    /// All slots that hold data of values.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.in_use().flat_map(|vpn| self.copies_of(vpn))
    }

    // Chunks.

    /// A place for a new chunk in the pack being filled, with the first reference to it; whether the pack is full now.
    pub fn new_chunk(&mut self) -> (ChunkId, bool) {
        let filling = match self.filling {
            Some(filling) => filling,
            None => {
                let pack = self.create();
                // Its chunks are what refers to it.
                self.refs[pack as usize] = 0;
                self.set_chunk_refs(pack, [0; CHUNKS]);
                Filling { pack, filled: 0 }
            }
        };
        let chunk = ChunkId::new(filling.pack, filling.filled);
        let filled = filling.filled + 1;
        self.filling = Some(Filling { filled, ..filling });
        self.acquire_chunk(chunk);
        (chunk, filled as usize == CHUNKS)
    }

    fn set_chunk_refs(&mut self, pack: u32, refs: [u32; CHUNKS]) {
        if self.chunk_refs.len() <= pack as usize {
            self.chunk_refs.resize(pack as usize + 1, [0; CHUNKS]);
        }
        self.chunk_refs[pack as usize] = refs;
    }

    /// One more reference to a chunk.
    pub fn acquire_chunk(&mut self, chunk: ChunkId) {
        self.acquire(chunk.pack());
        self.chunk_refs[chunk.pack() as usize][chunk.index()] += 1;
    }

    /// One reference to a chunk less.
    pub fn release_chunk(&mut self, chunk: ChunkId, released: &mut Released) {
        let refs = &mut self.chunk_refs[chunk.pack() as usize][chunk.index()];
        *refs -= 1;
        if *refs == 0 {
            released.dead_chunks.push(chunk);
        }
        self.release(chunk.pack(), released);
    }

    /// References to each chunk of a pack; `None` for any other value.
    pub fn chunk_references(&self, vpn: u32) -> Option<[u32; CHUNKS]> {
        let refs = self.chunk_refs.get(vpn as usize).copied()?;
        (self.is_used(vpn) && refs != [0; CHUNKS]).then_some(refs)
    }

    /// A row of chunks, each of which has been acquired for it.
    pub fn new_row(&mut self, chunks: ChunkRow) -> u32 {
        match self.free_rows.pop() {
            Some(row) => {
                self.rows[row as usize] = chunks;
                row
            }
            None => {
                self.rows.push(chunks);
                self.rows.len() as u32 - 1
            }
        }
    }

    pub fn row(&self, row: u32) -> ChunkRow {
        self.rows[row as usize]
    }

    /// The row is given up with its references.
    pub fn release_row(&mut self, row: u32, released: &mut Released) {
        let chunks = std::mem::replace(&mut self.rows[row as usize], NO_ROW);
        assert!(chunks != NO_ROW, "row {row} is released twice");
        chunks.into_iter().for_each(|chunk| self.release_chunk(chunk, released));
        self.free_rows.push(row);
    }

    // Recovery.

    /// Nothing is left.
    pub(crate) fn clear(&mut self) {
        *self = Indirection::new(self.resting.is_some());
    }

    /// A value is found again at `slot`, or its number is found without a place.
    pub(crate) fn recover(&mut self, vpn: u32, slot: Option<Slot>) {
        match slot {
            Some(slot) => self.set(vpn, slot.0, 0),
            None if self.head.len() <= vpn as usize => self.set(vpn, NOWHERE, 0),
            None => {}
        }
    }

    /// A row is found again; its chunks are acquired for it.
    pub(crate) fn recover_row(&mut self, chunks: ChunkRow) -> u32 {
        for chunk in chunks {
            if self.chunk_refs.len() <= chunk.pack() as usize {
                self.set_chunk_refs(chunk.pack(), [0; CHUNKS]);
            }
            self.acquire_chunk(chunk);
        }
        self.new_row(chunks)
    }

    /// Values that nothing refers to are not there; their numbers are free.
    pub(crate) fn recovered(&mut self) {
        for vpn in 0..self.head.len() {
            if self.refs[vpn] == 0 {
                self.head[vpn] = UNUSED;
                match &mut self.resting {
                    Some(resting) => resting.push(vpn as u32),
                    None => self.free_vpns.push(vpn as u32),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots_of(all: &Indirection, vpn: u32) -> Vec<u32> {
        all.copies_of(vpn).map(|slot| slot.0).collect()
    }

    #[test]
    fn the_last_reference_frees_every_copy() {
        let mut all = Indirection::default();
        let vpn = all.create();
        all.add_copy(vpn, Slot(1));
        all.add_copy(vpn, Slot(9));
        all.acquire(vpn);
        let mut released = Released::default();
        all.release(vpn, &mut released);
        assert_eq!(released, Released::default());
        all.moved(vpn, Slot(9), Slot(4));
        all.release(vpn, &mut released);
        assert_eq!((released.slots, released.dead), (vec![Slot(1), Slot(4)], vec![vpn]));
        assert_eq!((all.create(), all.first_slot(vpn)), (vpn, None));
    }

    /// Copies come and go in any order; what is left keeps its order, and the chains' places are used again.
    #[test]
    fn copies_are_added_moved_and_dropped() {
        let mut all = Indirection::default();
        let (a, b) = (all.create(), all.create());
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
    }

    #[test]
    fn a_number_that_rests_is_not_used_before_it_is_woken() {
        let mut all = Indirection::new(true);
        let vpn = all.create();
        all.release(vpn, &mut Released::default());
        assert_eq!((all.create(), all.resting()), (vpn + 1, 1));
        all.wake(1);
        assert_eq!((all.create(), all.resting()), (vpn, 0));
    }

    #[test]
    fn a_pack_dies_with_the_last_row_that_uses_it() {
        let mut all = Indirection::default();
        let chunks: ChunkRow = std::array::from_fn(|_| all.new_chunk().0);
        let pack = chunks[0].pack();
        all.add_copy(pack, Slot(3));
        all.filling = None;
        [0, 0, 1, 1].iter().for_each(|&i| all.acquire_chunk(chunks[i]));
        let rows = [chunks, [chunks[0], chunks[0], chunks[1], chunks[1]]].map(|chunks| all.new_row(chunks));
        let mut released = Released::default();
        all.release_row(rows[0], &mut released);
        assert_eq!(released.slots, []);
        assert_eq!(released.dead_chunks, [chunks[2], chunks[3]]);
        all.release_row(rows[1], &mut released);
        assert_eq!((released.slots, released.dead), (vec![Slot(3)], vec![pack]));
    }

    /// The budget: 8 bytes a shared value, 16 a row of chunks (and 24 the pack that four chunks lie in).
    #[test]
    fn values_and_rows_take_what_the_budget_says() {
        let mut all = Indirection::default();
        for slot in 0..1000 {
            let vpn = all.create();
            all.add_copy(vpn, Slot(slot));
            all.acquire(vpn);
        }
        assert_eq!(all.bytes(), 8 * 1000);
        let mut all = Indirection::default();
        let chunks: ChunkRow = std::array::from_fn(|_| all.new_chunk().0);
        for _ in 0..1000 {
            chunks.iter().for_each(|&chunk| all.acquire_chunk(chunk));
            all.new_row(chunks);
        }
        assert_eq!(all.bytes(), 16 * 1000 + 24);
    }
}
