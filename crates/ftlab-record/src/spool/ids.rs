//! Hashes that a recording is made of, the same whoever records.

use super::layout::{CHUNK, PAGE, PAGE_IDS, PageIds};

/// Spreads a number over 64 bits (the finisher of MurmurHash3).
pub fn mix(mut number: u64) -> u64 {
    number ^= number >> 33;
    number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
    number ^= number >> 33;
    number = number.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ number >> 33
}

/// What a frame (module id or symbol id, offset) adds to the signature of its path.
pub fn frame_sum(frame: (u64, u64)) -> u64 {
    mix(frame.0).wrapping_add(frame.1)
}

/// The signature of a path.
pub fn signature(frames: &[(u64, u64)]) -> u64 {
    frames.iter().fold(0, |sum, &frame| sum.wrapping_add(frame_sum(frame)))
}

/// Ids of a page of which the first `held` bytes are in the file, and of its chunks of `chunk` bytes; those behind are zero.
pub fn page_ids(page: &[u8; PAGE], held: usize, chunk: usize) -> PageIds {
    use xxhash_rust::xxh3::xxh3_64;
    let mut ids = [0; PAGE_IDS];
    if held == 0 {
        return ids;
    }
    ids[0] = xxh3_64(page).max(1);
    for (number, bytes) in page.chunks_exact(chunk.max(256)).enumerate() {
        // Smaller chunks have an id where their 1 KiB has one, so that its id is that of what it is made of.
        if number * chunk / CHUNK * CHUNK < held {
            ids[number + 1] = xxh3_64(bytes).max(1);
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_behind_the_end_have_no_id() {
        let mut page = [0; PAGE];
        page[..1500].fill(7);
        let ids = page_ids(&page, 1500, CHUNK);
        // Two chunks are begun; both differ, as the second is half empty.
        assert!(ids[0] != 0 && ids[1] != 0 && ids[2] != 0 && ids[1] != ids[2]);
        assert!(ids[3..].iter().all(|&id| id == 0));
        assert_eq!(page_ids(&page, 0, CHUNK), [0; PAGE_IDS]);
        // Of 256 B there are eight, the last of them behind the end, but within the second KiB: zeros as in its id.
        let small = page_ids(&page, 1500, 256);
        assert_eq!((small[0], small[8]), (ids[0], page_ids(&[0; PAGE], PAGE, 256)[1]));
        assert_eq!(small.iter().filter(|&&id| id != 0).count(), 1 + 8);
    }

    #[test]
    fn a_signature_is_the_sum_over_its_frames() {
        let (a, b) = ((5, 16), (6, 32));
        assert_eq!(
            signature(&[a, b]),
            mix(5).wrapping_add(16).wrapping_add(mix(6)).wrapping_add(32)
        );
        assert_eq!(signature(&[]), 0);
        assert_ne!(mix(5), mix(6));
    }
}
