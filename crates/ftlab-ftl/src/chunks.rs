//! Units stored as four chunks, each in a pack of four.

use crate::backend::{Backend, Cause, Class, Ticket};
use crate::dedup::ChunkSource;
use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::indirection::{Body, CHUNKS, Chunk};
use crate::owner::{Owner, Packed};
use crate::record::Entry;
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
        let mut chunks = [Chunk { pack: 0, index: 0 }; CHUNKS];
        for (chunk, source) in chunks.iter_mut().zip(sources) {
            *chunk = match source {
                ChunkSource::Existing { pack, index } => Chunk { pack, index },
                ChunkSource::New { content } => {
                    let Some(chunk) = self.pack_chunk(content, frontier, ticket) else {
                        return false;
                    };
                    chunk
                }
            };
            self.indirection.acquire_chunk(*chunk);
        }
        if sources
            .iter()
            .all(|source| matches!(source, ChunkSource::Existing { .. }))
        {
            self.counts.dedup_hits += 1;
        }
        let vpn = self.indirection.create(Body::Vector(chunks), 1);
        self.repoint(lpn, Entry::vpn(vpn));
        self.vpn_changed(vpn, ticket);
        true
    }

    /// Adds a chunk to the pack being filled; a full pack gets a slot.
    pub(crate) fn pack_chunk(&mut self, content: u64, frontier: Frontier, ticket: Ticket) -> Option<Chunk> {
        let pack = match self.indirection.filling {
            Some(pack) => pack,
            None => self.indirection.create(
                Body::Pack {
                    slot: None,
                    filled: 0,
                    references: [0; CHUNKS],
                },
                0,
            ),
        };
        self.indirection.filling = Some(pack);
        let Body::Pack { filled, .. } = self.indirection.body_mut(pack) else {
            unreachable!("the filling VPN is a pack")
        };
        let index = *filled;
        *filled += 1;
        if usize::from(*filled) == CHUNKS {
            self.indirection.filling = None;
            let place = self.place_for_own(frontier)?;
            let slot = self.append(
                place,
                Packed::from(Owner::Vpn(pack)),
                Cause::Host,
                Class::HostWrite,
                ticket,
            );
            if let Body::Pack { slot: at, .. } = self.indirection.body_mut(pack) {
                *at = Some(slot);
            }
        }
        if let Some(dedup) = &mut self.roles.dedup {
            dedup.chunk_stored(content, pack, index);
        }
        Some(Chunk { pack, index })
    }
}
