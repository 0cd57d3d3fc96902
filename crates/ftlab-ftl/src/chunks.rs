//! Units stored as four chunks, each in a pack of four or a quarter of a unit that was stored whole.

use crate::backend::{Backend, Cause, Class, OpId, Ticket};
use crate::dedup::{ChunkSource, Event};
use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::indirection::{CHUNKS, ChunkId, ChunkRow};
use crate::owner::{Owner, Packed};
use crate::record::Entry;
use crate::verify::ChunkStamps;
use ftlab_core::Lpn;

/// Where an open pack will go, and the works that its chunks wait for (timed backend).
#[derive(Clone, Debug, Default)]
pub(crate) struct PackPlace {
    frontier: Frontier,
    inputs: Vec<OpId>,
}

impl PackPlace {
    /// Power has failed, and no work is under way.
    pub fn forget(&mut self) {
        self.inputs.clear();
    }
}

/// What keeps a chunk from being stored.
enum Lack {
    /// The drive is at its end of life.
    Room,
    /// There is no number for a new value.
    Number,
}

impl<B: Backend> Ftl<B> {
    /// Stores a unit as four chunks; new ones are gathered in packs, which are programmed when they are full. False at end of
    /// life, `None` if there is no number for a new pack.
    pub(crate) fn store_chunks(
        &mut self,
        lpn: Lpn,
        frontier: Frontier,
        sources: [ChunkSource; CHUNKS],
        ticket: Ticket,
    ) -> Option<bool> {
        let mut chunks = [ChunkId(0); CHUNKS];
        for (number, source) in sources.into_iter().enumerate() {
            match self.acquire_source(source, frontier, ticket) {
                Ok(chunk) => chunks[number] = chunk,
                Err(lack) => {
                    chunks[..number].iter().for_each(|&chunk| self.release_chunk(chunk));
                    return matches!(lack, Lack::Room).then_some(false);
                }
            }
        }
        let is_new = |source: &ChunkSource| matches!(source, ChunkSource::New { .. });
        self.counts.dedup_hits += u64::from(!sources.iter().any(is_new));
        let row = self.indirection.new_row(chunks);
        let stamps = self.chunk_stamps(chunks);
        if let Some(versions) = &mut self.versions {
            versions.stored_as(stamps);
        }
        self.repoint(lpn, Entry::chunks(row));
        self.row_changed(row, ticket);
        Some(true)
    }

    fn acquire_source(&mut self, source: ChunkSource, frontier: Frontier, ticket: Ticket) -> Result<ChunkId, Lack> {
        match source {
            ChunkSource::Existing(chunk) => {
                assert!(
                    self.indirection.is_live(chunk),
                    "{chunk:?} is to be shared, but is gone"
                );
                self.indirection.acquire_chunk(chunk);
                Ok(chunk)
            }
            ChunkSource::Quarter { of, quarter } => self.acquire_quarter(of, quarter, ticket).ok_or(Lack::Number),
            ChunkSource::New { content, pack } => self.pack_chunk(content, usize::from(pack), frontier, ticket),
        }
    }

    /// Adds a chunk to an open pack; a full pack gets a slot.
    fn pack_chunk(&mut self, content: u64, number: usize, frontier: Frontier, ticket: Ticket) -> Result<ChunkId, Lack> {
        assert!(
            number < self.roles.packs.len(),
            "a chunk for open pack {number} of {}",
            self.roles.packs.len()
        );
        let (chunk, full) = self.indirection.new_chunk(number).ok_or(Lack::Number)?;
        if let Some(versions) = &mut self.versions {
            versions.packed(chunk, content);
        }
        let place = &mut self.roles.packs[number];
        place.frontier = frontier;
        place.inputs.extend_from_slice(&self.map_ready);
        if full && !self.program_pack(number, ticket) {
            self.release_chunk(chunk);
            return Err(Lack::Room);
        }
        self.tell_dedup(Event::ChunkStored { content, chunk });
        Ok(chunk)
    }

    fn release_chunk(&mut self, chunk: ChunkId) {
        let mut released = std::mem::take(&mut self.roles.released);
        self.indirection.release_chunk(chunk, &mut released);
        self.end_of(released);
    }

    /// Programs every pack that is being filled. False at end of life.
    pub(crate) fn program_packs(&mut self, ticket: Ticket) -> bool {
        while let Some(number) = self.indirection.any_filling() {
            if !self.program_pack(number, ticket) {
                return false;
            }
        }
        true
    }

    /// Programs an open pack, full or not, if there is anything in it. False at end of life.
    fn program_pack(&mut self, number: usize, ticket: Ticket) -> bool {
        let Some(place) = self.place_for_own(self.roles.packs[number].frontier) else {
            return false;
        };
        // Making room may have programmed it.
        let Some(filling) = self.indirection.take_filling(number) else {
            return true;
        };
        let mut works = std::mem::take(&mut self.roles.packs[number].inputs);
        let backend = &self.backend;
        let under_way = works.drain(..).filter(|&work| !backend.is_done(work));
        self.frontiers.open[place].inputs.extend(under_way);
        self.roles.packs[number].inputs = works;
        let owner = Packed::from(Owner::Vpn(filling.pack));
        let slot = self.append(place, owner, Cause::Host, Class::HostWrite, ticket);
        self.indirection.add_copy(filling.pack, slot);
        if let Some(versions) = &mut self.versions {
            versions.pack_programmed(filling.pack, slot);
        }
        self.vpn_changed(filling.pack, ticket);
        true
    }

    /// What the chunks hold, 0 for nothing (checked runs only).
    pub(crate) fn chunk_stamps(&self, chunks: ChunkRow) -> ChunkStamps {
        let Some(versions) = &self.versions else {
            return [0; CHUNKS];
        };
        chunks.map(|chunk| versions.of_chunk(chunk, self.indirection.first_slot(chunk.value())))
    }
}
