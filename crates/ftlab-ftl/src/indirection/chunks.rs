//! Chunks: quarters of values, and the rows of units that consist of them.

use super::{Indirection, NOWHERE, Released, Vpn, grow};

/// Chunks of a unit.
pub const CHUNKS: usize = 4;

/// A chunk: four times the number of the value that holds it, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct ChunkId(pub u32);

impl ChunkId {
    pub fn new(value: Vpn, index: usize) -> Self {
        ChunkId(value.0 * CHUNKS as u32 + index as u32)
    }

    /// The value that holds it: a pack, or a unit that was stored whole.
    pub fn value(self) -> Vpn {
        Vpn(self.0 / CHUNKS as u32)
    }

    /// Number of the chunk in its value.
    pub fn index(self) -> usize {
        self.0 as usize % CHUNKS
    }
}

/// The chunks of a unit, in order.
pub type ChunkRow = [ChunkId; CHUNKS];

/// In the first place of a row that is not in use, before the next such row.
const UNUSED_ROW: ChunkId = ChunkId(u32::MAX);

/// A pack that takes new chunks, in the controller's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filling {
    pub pack: Vpn,
    pub filled: u32,
}

impl Indirection {
    /// A place for a new chunk in open pack `number`, with the first reference to it; whether the pack is full now. `None` if
    /// there is no number for a new pack.
    pub fn new_chunk(&mut self, number: usize) -> Option<(ChunkId, bool)> {
        if self.filling.len() <= number {
            self.filling.resize(number + 1, None);
        }
        let Filling { pack, filled } = match self.filling[number] {
            Some(filling) => filling,
            None => {
                let pack = self.create()?;
                // Its chunks are what refers to it.
                self.values[pack.at()].refs = 0;
                self.set_chunk_refs(pack, [0; CHUNKS]);
                Filling { pack, filled: 0 }
            }
        };
        let chunk = ChunkId::new(pack, filled as usize);
        let filled = filled + 1;
        self.filling[number] = Some(Filling { pack, filled });
        self.acquire_chunk(chunk);
        Some((chunk, filled as usize == CHUNKS))
    }

    /// Chunks in open pack `number`.
    pub fn filled(&self, number: usize) -> u32 {
        self.filling
            .get(number)
            .copied()
            .flatten()
            .map_or(0, |filling| filling.filled)
    }

    /// The number of an open pack that holds something.
    pub fn any_filling(&self) -> Option<usize> {
        self.filling.iter().position(Option::is_some)
    }

    /// Open pack `number` is about to be programmed.
    pub fn take_filling(&mut self, number: usize) -> Option<Filling> {
        self.filling.get_mut(number)?.take()
    }

    fn set_chunk_refs(&mut self, value: Vpn, refs: [u32; CHUNKS]) {
        while self.chunk_refs.len() <= value.at() {
            grow(&mut self.chunk_refs, [0; CHUNKS]);
        }
        self.chunk_refs[value.at()] = refs;
    }

    /// One more reference to a chunk, which may be a quarter of a unit that was stored whole.
    pub fn acquire_chunk(&mut self, chunk: ChunkId) {
        let value = chunk.value();
        self.acquire(value);
        if self.chunk_refs.len() <= value.at() {
            self.set_chunk_refs(value, [0; CHUNKS]);
        }
        self.chunk_refs[value.at()][chunk.index()] += 1;
    }

    /// One reference to a chunk less.
    pub fn release_chunk(&mut self, chunk: ChunkId, released: &mut Released) {
        let value = chunk.value();
        let refs = &mut self.chunk_refs[value.at()][chunk.index()];
        assert!(*refs > 0, "{chunk:?} is released once too often");
        *refs -= 1;
        self.values[value.at()].refs -= 1;
        if self.chunk_refs[value.at()][chunk.index()] == 0 && self.whole_references(value) == 0 {
            released.dead_chunks.push(chunk);
        }
        self.end_if_unused(value, released);
    }

    /// References to each chunk of a value; `None` if no row refers to it.
    pub fn chunk_references(&self, value: Vpn) -> Option<[u32; CHUNKS]> {
        let refs = self.chunk_refs.get(value.at()).copied()?;
        (self.is_used(value) && refs != [0; CHUNKS]).then_some(refs)
    }

    /// References of LPNs to the value as a whole.
    pub fn whole_references(&self, value: Vpn) -> u32 {
        let of_chunks = self.chunk_refs.get(value.at()).map_or(0, |refs| refs.iter().sum());
        self.values[value.at()].refs - of_chunks
    }

    /// A row of chunks, each of which has been acquired for it.
    pub fn new_row(&mut self, chunks: ChunkRow) -> u32 {
        if self.free_row == NOWHERE {
            grow(&mut self.rows, chunks);
            self.rows_in_use += 1;
            return self.rows.len() as u32 - 1;
        }
        self.rows_in_use += 1;
        let row = self.free_row;
        self.free_row = self.rows[row as usize][1].0;
        self.rows[row as usize] = chunks;
        row
    }

    pub fn row(&self, row: u32) -> ChunkRow {
        self.rows[row as usize]
    }

    /// The row, if the number is one's that is in use.
    pub fn row_in_use(&self, row: u32) -> Option<ChunkRow> {
        let chunks = self.rows.get(row as usize).copied()?;
        (chunks[0] != UNUSED_ROW).then_some(chunks)
    }

    /// The row is given up with its references.
    pub fn release_row(&mut self, row: u32, released: &mut Released) {
        let unused = [UNUSED_ROW, ChunkId(self.free_row), UNUSED_ROW, UNUSED_ROW];
        let chunks = std::mem::replace(&mut self.rows[row as usize], unused);
        assert!(chunks[0] != UNUSED_ROW, "row {row} is released twice");
        self.free_row = row;
        self.rows_in_use -= 1;
        chunks.into_iter().for_each(|chunk| self.release_chunk(chunk, released));
    }

    /// A row is found again after a power cut; its chunks are acquired for it.
    pub(crate) fn recover_row(&mut self, chunks: ChunkRow) -> u32 {
        chunks.iter().for_each(|&chunk| self.acquire_chunk(chunk));
        self.new_row(chunks)
    }
}
