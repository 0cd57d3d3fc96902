//! A page in memory, where direct I/O can take it from.

use xxhash_rust::xxh3::xxh3_64;

/// What direct I/O wants of an address; no disk has larger sectors.
const ALIGNMENT: usize = 4096;

/// Bytes at an aligned address.
pub struct Page {
    room: Vec<u8>,
    start: usize,
    len: usize,
}

impl Page {
    pub fn zeros(len: usize) -> Self {
        let room = vec![0_u8; len + ALIGNMENT];
        let start = room.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Page { room, start, len }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.room[self.start..self.start + self.len]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.room[self.start..self.start + self.len]
    }

    /// Stands for the content in the map log.
    pub fn checksum(&self) -> u64 {
        xxh3_64(self.bytes())
    }
}
