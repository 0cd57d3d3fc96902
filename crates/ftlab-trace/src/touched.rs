//! The set of units that a trace touches, with ranks: what `compact` fitting needs.

use rustc_hash::FxHashMap;

/// Units per chunk of the set; volumes laid side by side start at multiples of it, so that chunks stay whole.
pub const CHUNK_UNITS: u64 = 512;
const WORDS: usize = CHUNK_UNITS as usize / 64;
/// In a key the volume stands above the chunk; units are at least 256 bytes of at most 2^61, so chunks stay below 2^45.
const VOLUME_SHIFT: u32 = 45;

/// A growing set of units of several volumes: one bit per unit in chunks of 512, absent where nothing was touched.
pub struct Marks {
    index: FxHashMap<u64, u32>,
    chunks: Vec<[u64; WORDS]>,
    keys: Vec<u64>,
    /// The chunk marked last; most requests fall into it or are far away.
    last: (u64, usize),
    unit_shift: u32,
}

impl Marks {
    /// `unit_bytes` is a power of two of at least 256 (checked by [`scan`](crate::scan)).
    pub fn new(unit_bytes: u32) -> Self {
        Marks {
            index: FxHashMap::default(),
            chunks: Vec::new(),
            keys: Vec::new(),
            last: (u64::MAX, 0),
            unit_shift: unit_bytes.trailing_zeros(),
        }
    }

    /// Marks the units of the bytes `offset..offset + length` of a volume.
    #[inline]
    pub fn mark(&mut self, volume: u16, offset: u64, length: u32) {
        if length == 0 {
            return;
        }
        let mut unit = offset >> self.unit_shift;
        let last = (offset + u64::from(length) - 1) >> self.unit_shift;
        while unit <= last {
            let chunk = self.chunk((u64::from(volume) << VOLUME_SHIFT) | (unit / CHUNK_UNITS));
            let until = last.min(unit | (CHUNK_UNITS - 1));
            while unit <= until {
                let end = until.min(unit | 63);
                let bits = u64::MAX >> (63 - (end - unit)) << (unit % 64);
                chunk[(unit % CHUNK_UNITS / 64) as usize] |= bits;
                unit = end + 1;
            }
        }
    }

    #[inline]
    fn chunk(&mut self, key: u64) -> &mut [u64; WORDS] {
        if self.last.0 != key {
            let at = *self.index.entry(key).or_insert_with(|| {
                self.chunks.push([0; WORDS]);
                self.keys.push(key);
                self.chunks.len() as u32 - 1
            });
            self.last = (key, at as usize);
        }
        &mut self.chunks[self.last.1]
    }

    /// Units marked.
    pub fn count(&self) -> u64 {
        self.chunks.iter().map(count).sum()
    }

    /// Lengths of the contiguous ranges marked, in units and in order of address.
    pub fn runs(&self, mut each: impl FnMut(u64)) {
        let mut order: Vec<(u64, &[u64; WORDS])> = self.keys.iter().copied().zip(&self.chunks).collect();
        order.sort_unstable_by_key(|(key, _)| *key);
        let (mut start, mut end) = (0, 0);
        for (key, chunk) in order {
            for (word, &bits) in chunk.iter().enumerate() {
                let mut bits = bits;
                while bits != 0 {
                    let (from, ones) = (bits.trailing_zeros(), (bits >> bits.trailing_zeros()).trailing_ones());
                    let at = key * CHUNK_UNITS + word as u64 * 64 + u64::from(from);
                    if at != end {
                        if end > start {
                            each(end - start);
                        }
                        start = at;
                    }
                    end = at + u64::from(ones);
                    bits &= (!0u64).checked_shl(from + ones).unwrap_or(0);
                }
            }
        }
        if end > start {
            each(end - start);
        }
    }

    /// The set over the addresses as laid out: `bases[volume]` in bytes, multiples of a chunk.
    pub fn lay_out(&self, bases: &[u64]) -> Touched {
        let place = |key: u64| {
            let base = bases.get((key >> VOLUME_SHIFT) as usize).copied().unwrap_or(0) >> self.unit_shift;
            base / CHUNK_UNITS + (key & ((1 << VOLUME_SHIFT) - 1))
        };
        let mut order: Vec<(u64, usize)> = self.keys.iter().enumerate().map(|(i, &key)| (place(key), i)).collect();
        order.sort_unstable();
        let mut touched = Touched {
            unit_shift: self.unit_shift,
            keys: Vec::with_capacity(order.len()),
            chunks: Vec::with_capacity(order.len()),
            before: Vec::with_capacity(order.len()),
            units: 0,
        };
        for (key, i) in order {
            touched.keys.push(key);
            touched.chunks.push(self.chunks[i]);
            touched.before.push(touched.units);
            touched.units += count(&self.chunks[i]);
        }
        touched
    }
}

/// The units that reads and writes of a trace touch, in address order; 80 bytes per 512 units where they are dense.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    unit_shift: u32,
    /// Chunk numbers, ascending.
    keys: Vec<u64>,
    chunks: Vec<[u64; WORDS]>,
    /// Touched units before each chunk.
    before: Vec<u64>,
    units: u64,
}

impl Touched {
    /// Distinct units touched.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Bytes of a unit.
    pub fn unit_bytes(&self) -> u64 {
        1 << self.unit_shift
    }

    /// Touched units below `unit`, and whether `unit` itself is one.
    #[inline]
    pub fn rank(&self, unit: u64) -> (u64, bool) {
        let at = self.keys.partition_point(|&key| key < unit / CHUNK_UNITS);
        if self.keys.get(at) != Some(&(unit / CHUNK_UNITS)) {
            return (self.before.get(at).copied().unwrap_or(self.units), false);
        }
        let (chunk, word, bit) = (&self.chunks[at], (unit % CHUNK_UNITS / 64) as usize, unit % 64);
        let below: u32 = chunk[..word].iter().map(|w| w.count_ones()).sum();
        let here = (chunk[word] & ((1 << bit) - 1)).count_ones();
        (self.before[at] + u64::from(below + here), chunk[word] >> bit & 1 == 1)
    }

    /// Where byte `address` lies once untouched units are left out. Never decreases, keeps distances within touched
    /// ranges, and maps an untouched unit to the place where the next touched one begins.
    #[inline]
    pub fn compact(&self, address: u64) -> u64 {
        let (rank, touched) = self.rank(address >> self.unit_shift);
        let within = address & (self.unit_bytes() - 1);
        (rank << self.unit_shift) + if touched { within } else { 0 }
    }
}

fn count(chunk: &[u64; WORDS]) -> u64 {
    chunk.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranks_agree_with_a_sorted_set(ranges in prop::collection::vec((0u64..40_000_000, 1u32..20_000), 0..40)) {
            let mut marks = Marks::new(4096);
            let mut naive = BTreeSet::new();
            for &(offset, length) in &ranges {
                marks.mark(0, offset, length);
                naive.extend(offset / 4096..=(offset + u64::from(length) - 1) / 4096);
            }
            prop_assert_eq!(marks.count(), naive.len() as u64);
            let touched = marks.lay_out(&[0]);
            for &(offset, length) in &ranges {
                let unit = offset / 4096;
                prop_assert_eq!(touched.rank(unit), (naive.range(..unit).count() as u64, true));
                prop_assert_eq!(touched.compact(offset) % 4096, offset % 4096);
                let end = touched.compact(offset + u64::from(length));
                prop_assert_eq!(end - touched.compact(offset), u64::from(length));
                prop_assert!(end <= touched.units() * 4096);
            }
        }
    }

    #[test]
    fn volumes_are_apart_and_laid_out_by_their_bases() {
        let mut marks = Marks::new(4096);
        marks.mark(1, 0, 4096);
        marks.mark(0, 8192, 4096);
        let touched = marks.lay_out(&[0, 1 << 21]);
        assert_eq!(touched.compact(8192), 0);
        assert_eq!(touched.compact(1 << 21), 4096);
        assert_eq!(touched.compact(100), 0);
    }
}
