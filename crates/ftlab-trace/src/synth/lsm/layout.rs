//! Where pairs lie in a file, and so what its chunks and pages hold.

use super::PAGE;
use crate::splitmix::{STEP, finish};

const CHUNK: u64 = 1024;
/// Of a chunk without anything in it.
pub const EMPTY: u64 = 1;

/// Pairs one after the other, or in blocks of whole pages.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub pair: u64,
    pub aligned: bool,
}

impl Layout {
    /// Where pair number `n` of a file begins.
    fn start(self, n: u64) -> u64 {
        if !self.aligned {
            n * self.pair
        } else if self.pair > PAGE {
            n * self.pair.next_multiple_of(PAGE)
        } else {
            let in_a_block = PAGE / self.pair;
            n / in_a_block * PAGE + n % in_a_block * self.pair
        }
    }

    /// Pages of a file with so many pairs.
    pub fn pages(self, pairs: u64) -> u64 {
        pairs
            .checked_sub(1)
            .map_or(0, |last| (self.start(last) + self.pair).div_ceil(PAGE))
    }

    /// Ids of the chunks of a file of pairs with these contents: equal where the same parts of the same pairs lie at the same places.
    pub fn chunks(self, contents: &[u64]) -> Vec<u64> {
        let mut chunks = vec![EMPTY; (self.pages(contents.len() as u64) * (PAGE / CHUNK)) as usize];
        for (n, &content) in contents.iter().enumerate() {
            let start = self.start(n as u64);
            for chunk in start / CHUNK..=(start + self.pair - 1) / CHUNK {
                let place = start.wrapping_sub(chunk * CHUNK);
                let id = &mut chunks[chunk as usize];
                *id = mix(*id, mix(content, place));
            }
        }
        chunks
    }
}

/// The id of a page of these chunks.
pub fn page(chunks: &[u64]) -> u64 {
    chunks.iter().fold(2, |sum, &chunk| mix(sum, chunk))
}

/// One number of two, so that different pairs practically never have the same.
pub fn mix(a: u64, b: u64) -> u64 {
    finish(finish(a.wrapping_add(STEP)).wrapping_add(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three pairs of 1,500 bytes: one after the other they take 4,500 bytes; in blocks two to a page.
    #[test]
    fn places() {
        let packed = Layout {
            pair: 1500,
            aligned: false,
        };
        let aligned = Layout {
            pair: 1500,
            aligned: true,
        };
        assert_eq!([0, 1, 2].map(|n| packed.start(n)), [0, 1500, 3000]);
        assert_eq!([0, 1, 2, 3].map(|n| aligned.start(n)), [0, 1500, 4096, 5596]);
        assert_eq!([packed.pages(0), packed.pages(3), aligned.pages(3)], [0, 2, 2]);
        assert_eq!(
            Layout {
                pair: 5000,
                aligned: true
            }
            .pages(2),
            4
        );
    }

    /// A pair of one chunk is the same chunk wherever it lies; one of a chunk and a half is so only at the same place within a chunk.
    #[test]
    fn equal_parts_at_equal_places_are_equal_chunks() {
        let whole = Layout {
            pair: 1024,
            aligned: false,
        };
        let (here, there) = (whole.chunks(&[7, 8, 9, 10]), whole.chunks(&[9, 5, 7, 6]));
        assert_eq!((here[0], here[2]), (there[2], there[0]));
        assert_ne!(page(&here), page(&there));
        let half = Layout {
            pair: 1536,
            aligned: false,
        };
        let (here, there) = (half.chunks(&[7, 8, 9]), half.chunks(&[7, 9, 8]));
        assert_eq!(here[0], there[0]);
        assert!(!there.contains(&here[2]), "pair 8 begins in the middle of a chunk");
        let aligned = Layout {
            pair: 1536,
            aligned: true,
        };
        assert_eq!(
            aligned.chunks(&[7, 8, 9])[4],
            aligned.chunks(&[9])[0],
            "a block of its own"
        );
    }
}
