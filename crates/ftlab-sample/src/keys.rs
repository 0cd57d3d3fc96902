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

/// Numbers by hashes; what they are numbers of is kept elsewhere.
pub struct Slots(Vec<Slot>);

impl Default for Slots {
    fn default() -> Self {
        Slots(vec![Slot::default(); FEWEST])
    }
}

impl Slots {
    /// The number with this hash that `is` the one looked for, or else the slot that it would have.
    #[inline]
    pub fn place(&self, hash: u64, is: impl Fn(usize) -> bool) -> Result<usize, usize> {
        let mask = self.0.len() - 1;
        let mut at = hash as usize & mask;
        let part = (hash >> 32) as u32;
        loop {
            let slot = self.0[at];
            if slot.number == 0 {
                return Err(at);
            }
            let number = slot.number as usize - 1;
            if slot.hash == part && is(number) {
                return Ok(number);
            }
            at = (at + 1) & mask;
        }
    }

    /// The number that a hash most likely belongs to; what it is not is found out by `place`.
    #[inline]
    pub fn likely(&self, hash: u64) -> usize {
        (self.0[hash as usize & (self.0.len() - 1)].number as usize).saturating_sub(1)
    }

    /// Enters the next number in the slot that `place` gave; `hash_of` tells those of all numbers.
    pub fn enter(&mut self, at: usize, number: usize, hash_of: impl Fn(usize) -> u64) {
        self.put(at, number, hash_of(number));
        if 2 * (number + 1) <= self.0.len() {
            return;
        }
        let wider = 2 * self.0.len();
        self.0 = vec![Slot::default(); wider];
        for number in 0..=number {
            let hash = hash_of(number);
            let mut at = hash as usize & (wider - 1);
            while self.0[at].number != 0 {
                at = (at + 1) & (wider - 1);
            }
            self.put(at, number, hash);
        }
    }

    fn put(&mut self, at: usize, number: usize, hash: u64) {
        self.0[at] = Slot {
            hash: (hash >> 32) as u32,
            number: number as u32 + 1,
        };
    }
}

#[derive(Default)]
pub struct Keys {
    slots: Slots,
    bytes: Vec<u8>,
    /// Ends of the keys among the bytes.
    ends: Vec<usize>,
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
        key_of(&self.bytes, &self.ends, number)
    }

    /// The number of a key with its hash, and whether it is new.
    #[inline]
    pub fn number(&mut self, key: &[u8], hash: u64) -> (usize, bool) {
        match self.place(key, hash) {
            Ok(number) => (number, false),
            Err(at) => (self.enter(key, at), true),
        }
    }

    pub fn find(&self, key: &[u8]) -> Option<usize> {
        self.place(key, hash(key)).ok()
    }

    /// The number of a key, or else the slot that it would have.
    #[inline]
    fn place(&self, key: &[u8], hash: u64) -> Result<usize, usize> {
        self.slots.place(hash, |number| is_same(self.key(number), key))
    }

    /// The number that a hash most likely belongs to; what it is not is found out by `number`.
    #[inline]
    pub fn likely(&self, hash: u64) -> usize {
        self.slots.likely(hash)
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

    fn enter(&mut self, key: &[u8], at: usize) -> usize {
        let number = self.ends.len();
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        let (bytes, ends) = (&self.bytes, &self.ends);
        self.slots.enter(at, number, |number| hash(key_of(bytes, ends, number)));
        number
    }
}

#[inline]
fn key_of<'k>(bytes: &'k [u8], ends: &[usize], number: usize) -> &'k [u8] {
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &bytes[start..ends[number]]
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
