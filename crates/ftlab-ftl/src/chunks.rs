//! Units stored as four chunks, each in a pack of four.

use crate::backend::{Backend, Cause, Class, Ticket};
use crate::dedup::ChunkSource;
use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::indirection::{CHUNKS, ChunkId, ChunkRow};
use crate::owner::{Owner, Packed};
use crate::record::Entry;
use crate::verify::ChunkStamps;
use ftlab_core::Lpn;

impl<B: Backend> Ftl<B> {
    /// Stores a unit as four chunks; new ones are gathered in a pack, which is programmed when it is full.
    pub(crate) fn store_chunks(
        &mut self,
        lpn: Lpn,
        frontier: Frontier,
        sources: [ChunkSource; CHUNKS],
        ticket: Ticket,
    ) -> bool {
        let mut chunks = [ChunkId(0); CHUNKS];
        for (number, source) in sources.into_iter().enumerate() {
            let chunk = match source {
                ChunkSource::Existing(chunk) => {
                    self.indirection.acquire_chunk(chunk);
                    Some(chunk)
                }
                ChunkSource::New { content } => self.pack_chunk(content, frontier, ticket),
            };
            let Some(chunk) = chunk else {
                chunks[..number].iter().for_each(|&chunk| self.release_chunk(chunk));
                return false;
            };
            chunks[number] = chunk;
        }
        let existing = |source: &ChunkSource| matches!(source, ChunkSource::Existing(_));
        self.counts.dedup_hits += u64::from(sources.iter().all(existing));
        let row = self.indirection.new_row(chunks);
        let stamps = self.chunk_stamps(chunks);
        if let Some(versions) = &mut self.versions {
            versions.stored_as(lpn, stamps);
        }
        self.repoint(lpn, Entry::chunks(row));
        self.row_changed(row, ticket);
        true
    }

    /// Adds a chunk to the pack being filled; a full pack gets a slot.
    fn pack_chunk(&mut self, content: u64, frontier: Frontier, ticket: Ticket) -> Option<ChunkId> {
        let (chunk, full) = self.indirection.new_chunk();
        if let Some(versions) = &mut self.versions {
            versions.packed(chunk.index(), content);
        }
        self.roles.pack_frontier = frontier;
        if full && !self.program_pack(ticket) {
            self.release_chunk(chunk);
            return None;
        }
        if let Some(dedup) = &mut self.roles.dedup {
            dedup.chunk_stored(content, chunk);
        }
        Some(chunk)
    }

    fn release_chunk(&mut self, chunk: ChunkId) {
        let mut released = std::mem::take(&mut self.roles.released);
        self.indirection.release_chunk(chunk, &mut released);
        self.end_of(released);
    }

    /// Programs the pack that is being filled, full or not, if there is one. False at end of life.
    pub(crate) fn program_pack(&mut self, ticket: Ticket) -> bool {
        if self.indirection.filling.is_none() {
            return true;
        }
        let Some(place) = self.place_for_own(self.roles.pack_frontier) else {
            return false;
        };
        // Making room may have programmed it.
        let Some(filling) = self.indirection.filling.take() else {
            return true;
        };
        let owner = Packed::from(Owner::Vpn(filling.pack));
        let slot = self.append(place, owner, Cause::Host, Class::HostWrite, ticket);
        self.indirection.add_copy(filling.pack, slot);
        if let Some(versions) = &mut self.versions {
            versions.pack_programmed(slot);
        }
        true
    }

    /// What the chunks hold, 0 for nothing (checked runs only).
    pub(crate) fn chunk_stamps(&self, chunks: ChunkRow) -> ChunkStamps {
        let Some(versions) = &self.versions else {
            return [0; CHUNKS];
        };
        chunks.map(|chunk| versions.of_chunk(self.indirection.first_slot(chunk.pack()), chunk.index()))
    }
}
