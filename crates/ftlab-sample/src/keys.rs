//! Keys of groups, numbered in the order in which they come.
//!
//! # Model
//! Bytes of all keys stand one behind the other; a table of open addressing has a part of each hash and the key's number, so that a look-up reads few lines of memory.
//!
//! # Cost
//! 12 to 24 bytes a key, and its own.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const FEWEST: usize = 16;

#[derive(Clone, Copy, Default)]
struct Slot {
    hash: u32,
    /// Number of the key, from 1 on; 0 of none.
    number: u32,
}

pub struct Keys {
    slots: Vec<Slot>,
    bytes: Vec<u8>,
    /// Ends of the keys among the bytes.
    ends: Vec<usize>,
}

impl Default for Keys {
    fn default() -> Self {
        Keys {
            slots: vec![Slot::default(); FEWEST],
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl Keys {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    #[inline]
    pub fn key(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }

    /// The number of a key with its hash, and whether it is new.
    #[inline]
    pub fn number(&mut self, key: &[u8], hash: u64) -> (usize, bool) {
        match self.place(key, hash) {
            Ok(number) => (number, false),
            Err(at) => (self.enter(key, (hash >> 32) as u32, at), true),
        }
    }

    pub fn find(&self, key: &[u8]) -> Option<usize> {
        self.place(key, hash(key)).ok()
    }

    /// The number of a key, or else the slot that it would have.
    #[inline]
    fn place(&self, key: &[u8], hash: u64) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        let part = (hash >> 32) as u32;
        loop {
            let slot = self.slots[at];
            if slot.number == 0 {
                return Err(at);
            }
            let number = slot.number as usize - 1;
            if slot.hash == part && is_same(self.key(number), key) {
                return Ok(number);
            }
            at = (at + 1) & mask;
        }
    }

    /// The number that a hash most likely belongs to; what it is not is found out by `number`.
    #[inline]
    pub fn likely(&self, hash: u64) -> usize {
        (self.slots[hash as usize & (self.slots.len() - 1)].number as usize).saturating_sub(1)
    }

    /// Where a key ends; 0 where there is none.
    #[inline]
    pub fn end(&self, number: usize) -> usize {
        self.ends.get(number).copied().unwrap_or(0)
    }

    #[inline]
    pub fn byte_before(&self, end: usize) -> u8 {
        self.bytes.get(end.wrapping_sub(1)).copied().unwrap_or(0)
    }

    fn enter(&mut self, key: &[u8], part: u32, at: usize) -> usize {
        let number = self.ends.len();
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.slots[at] = Slot {
            hash: part,
            number: number as u32 + 1,
        };
        if 2 * self.ends.len() > self.slots.len() {
            let wider = 2 * self.slots.len();
            self.slots = vec![Slot::default(); wider];
            for number in 0..self.ends.len() {
                let hash = hash(self.key(number));
                let mut at = hash as usize & (wider - 1);
                while self.slots[at].number != 0 {
                    at = (at + 1) & (wider - 1);
                }
                self.slots[at] = Slot {
                    hash: (hash >> 32) as u32,
                    number: number as u32 + 1,
                };
            }
        }
        number
    }
}

/// Eight bytes from a place on; there must be as many.
#[inline]
pub fn eight(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
}

#[inline]
pub fn mix(number: u64) -> u64 {
    let wide = u128::from(number ^ STEP) * u128::from(STEP);
    (wide >> 64) as u64 ^ wide as u64
}

#[inline]
pub fn hash(key: &[u8]) -> u64 {
    let mut hash = key.len() as u64;
    if key.len() < 8 {
        let few = key.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        return mix(hash << 56 ^ few);
    }
    let mut at = 0;
    while at + 8 < key.len() {
        hash = mix(hash ^ eight(key, at));
        at += 8;
    }
    mix(hash ^ eight(key, key.len() - 8))
}

/// Like `==`, without a call for keys that are short, as most are.
#[inline]
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    if one.len() < 8 {
        return one.iter().zip(other).all(|(one, other)| one == other);
    }
    let mut at = 0;
    while at + 8 < one.len() {
        if eight(one, at) != eight(other, at) {
            return false;
        }
        at += 8;
    }
    eight(one, one.len() - 8) == eight(other, one.len() - 8)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// 20,000 keys of 0 to 20 bytes of three letters, many of them twice, against a map.
    #[test]
    fn keys_have_the_numbers_in_which_they_came() {
        let mut random = ftlab_core::Stream::new(3, "keys");
        let (mut keys, mut known) = (Keys::default(), BTreeMap::new());
        for _ in 0..20_000 {
            let length = random.below(21);
            let key: Vec<u8> = (0..length).map(|_| b"abc"[random.below(3) as usize]).collect();
            let next = known.len();
            let expected = *known.entry(key.clone()).or_insert(next);
            assert_eq!(keys.number(&key, hash(&key)), (expected, expected == next));
            assert_eq!(keys.key(expected), key);
        }
        assert_eq!(keys.len(), known.len());
    }

    #[test]
    fn a_difference_anywhere_is_one() {
        for length in 0..40 {
            let key = vec![b'x'; length];
            assert!(is_same(&key, &key.clone()));
            assert!(!is_same(&key, &vec![b'x'; length + 1]));
            for at in 0..length {
                let mut other = key.clone();
                other[at] = b'y';
                assert!(!is_same(&key, &other), "{length} {at}");
                assert_ne!(hash(&key), hash(&other), "{length} {at}");
            }
        }
    }
}
