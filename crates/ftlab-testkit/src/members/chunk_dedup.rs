//! Quarter-unit deduplication: four chunks a unit, each stored once.

use std::sync::{Arc, Mutex, PoisonError};

use ftlab_ftl::dedup::{ChunkSource, Decision, DedupPolicy, DedupWrite};
use rustc_hash::FxHashMap;

/// Which content lies in each chunk of each pack; shared with the test that reads it back.
pub type Shelf = Arc<Mutex<FxHashMap<(u32, u8), u64>>>;

#[derive(Default)]
pub struct ChunkDedup {
    pub shelf: Shelf,
    places: FxHashMap<u64, (u32, u8)>,
}

/// The four chunks of a unit with this content; neighbours share half of them.
pub fn chunks_of(content: u64) -> [u64; 4] {
    [content * 2, content * 2 + 1, content * 2 + 2, 7]
}

impl DedupPolicy for ChunkDedup {
    fn write(&mut self, write: &DedupWrite) -> Decision {
        Decision::Chunks(chunks_of(write.content).map(|content| match self.places.get(&content) {
            Some(&(pack, index)) => ChunkSource::Existing { pack, index },
            None => ChunkSource::New { content },
        }))
    }

    fn chunk_stored(&mut self, content: u64, pack: u32, index: u8) {
        self.places.insert(content, (pack, index));
        self.shelf
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((pack, index), content);
    }

    fn chunk_dead(&mut self, pack: u32, index: u8) {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        let content = shelf.remove(&(pack, index)).expect("a chunk that was stored");
        if self.places.get(&content) == Some(&(pack, index)) {
            self.places.remove(&content);
        }
    }
}
