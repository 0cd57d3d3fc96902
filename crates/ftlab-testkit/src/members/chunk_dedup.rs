//! Quarter-unit deduplication: four chunks a unit, each stored once.

use std::sync::{Arc, Mutex, PoisonError};

use ftlab_ftl::dedup::{ChunkSource, Decision, DedupPolicy, DedupWrite};
use ftlab_ftl::indirection::ChunkId;
use rustc_hash::FxHashMap;

/// Which content lies in each chunk of each pack; shared with the test that reads it back.
pub type Shelf = Arc<Mutex<FxHashMap<ChunkId, u64>>>;

#[derive(Default)]
pub struct ChunkDedup {
    pub shelf: Shelf,
    places: FxHashMap<u64, ChunkId>,
}

/// The four chunks of a unit with this content; neighbours share half of them.
pub fn chunks_of(content: u64) -> [u64; 4] {
    [content * 2, content * 2 + 1, content * 2 + 2, 7]
}

impl DedupPolicy for ChunkDedup {
    fn write(&mut self, write: &DedupWrite) -> Decision {
        Decision::Chunks(chunks_of(write.content).map(|content| match self.places.get(&content) {
            Some(&chunk) => ChunkSource::Existing(chunk),
            None => ChunkSource::New { content },
        }))
    }

    fn chunk_stored(&mut self, content: u64, chunk: ChunkId) {
        self.places.insert(content, chunk);
        self.shelf
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(chunk, content);
    }

    /// The shelf is the flash's, not the controller's.
    fn forget(&mut self) {
        self.places.clear();
    }

    fn chunk_dead(&mut self, chunk: ChunkId) {
        let shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        // It stays on the shelf: a power cut may bring it back.
        let content = *shelf.get(&chunk).expect("a chunk that was stored");
        if self.places.get(&content) == Some(&chunk) {
            self.places.remove(&content);
        }
    }
}
