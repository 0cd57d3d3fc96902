//! Fingerprints seen so far, within a bound of memory.
//!
//! A table with open addressing. When it may not grow, fingerprints of half of all values are taken out of it, and only those of the
//! other half are followed from then on: whether one is depends on its upper bits alone. So the table holds a sample of all
//! different chunks, and sums over it stand for sums over all.

use super::written::Estimate;

const FIRST_SLOTS: usize = 1 << 12;
/// Bytes of a slot: the fingerprint, the length, and the compressed length where there is one.
const SLOT_BYTES: u64 = 20;
const PACKED_BYTES: u64 = 4;

/// Whether a fingerprint has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    New,
    Before {
        packed: u32,
    },
    /// It does not belong to the sample.
    NotFollowed,
}

pub struct Table {
    memory: u64,
    /// 0: empty.
    slots: Vec<u128>,
    lengths: Vec<u32>,
    /// Compressed lengths; empty where nothing is compressed.
    packed: Vec<u32>,
    used: usize,
    /// One fingerprint in 2^level is followed.
    level: u32,
}

impl Table {
    pub fn new(memory: u64, packs: bool) -> Self {
        Table {
            memory,
            slots: vec![0; FIRST_SLOTS],
            lengths: vec![0; FIRST_SLOTS],
            packed: vec![0; if packs { FIRST_SLOTS } else { 0 }],
            used: 0,
            level: 0,
        }
    }

    #[inline]
    pub fn look_up(&self, fingerprint: u128) -> Seen {
        if !self.follows(fingerprint) {
            return Seen::NotFollowed;
        }
        let at = self.place(fingerprint);
        match self.slots[at] {
            0 => Seen::New,
            _ => Seen::Before {
                packed: self.packed.get(at).copied().unwrap_or(0),
            },
        }
    }

    /// Enters a fingerprint that is new.
    pub fn insert(&mut self, fingerprint: u128, length: u32, packed: u32) {
        if 4 * (self.used + 1) > 3 * self.slots.len() {
            self.make_room();
            if !self.follows(fingerprint) {
                return;
            }
        }
        self.enter(fingerprint, length, packed);
    }

    /// Fingerprints followed, and what part of all they are.
    pub fn sampling(&self) -> (u64, f64) {
        (self.used as u64, 1.0 / (1u64 << self.level) as f64)
    }

    /// Bytes of different chunks.
    pub fn unique(&self) -> Estimate {
        self.sum(&self.lengths)
    }

    /// The same after compression.
    pub fn unique_packed(&self) -> Estimate {
        self.sum(&self.packed)
    }

    fn sum(&self, lengths: &[u32]) -> Estimate {
        let (mut sum, mut squares) = (0u64, 0.0);
        for (fingerprint, &length) in self.slots.iter().zip(lengths) {
            if *fingerprint != 0 {
                sum += u64::from(length);
                squares += f64::from(length) * f64::from(length);
            }
        }
        let weight = (1u64 << self.level) as f64;
        Estimate {
            value: sum as f64 * weight,
            error: (squares * (1.0 - 1.0 / weight)).sqrt() * weight,
        }
    }

    #[inline]
    fn follows(&self, fingerprint: u128) -> bool {
        self.level == 0 || fingerprint >> (u128::BITS - self.level) == 0
    }

    /// Where a fingerprint is, or would be.
    #[inline]
    fn place(&self, fingerprint: u128) -> usize {
        let (wanted, mask) = (fingerprint.max(1), self.slots.len() - 1);
        let mut at = wanted as usize & mask;
        while self.slots[at] != 0 && self.slots[at] != wanted {
            at = (at + 1) & mask;
        }
        at
    }

    fn enter(&mut self, fingerprint: u128, length: u32, packed: u32) {
        let at = self.place(fingerprint);
        self.slots[at] = fingerprint.max(1);
        self.lengths[at] = length;
        if let Some(slot) = self.packed.get_mut(at) {
            *slot = packed;
        }
        self.used += 1;
    }

    /// Twice as many slots, or half as many fingerprints.
    #[cold]
    fn make_room(&mut self) {
        let slot = SLOT_BYTES + if self.packed.is_empty() { 0 } else { PACKED_BYTES };
        let slots = self.slots.len();
        // While it grows both tables are there.
        let grows = 3 * slots as u64 * slot <= self.memory;
        self.level += u32::from(!grows);
        let size = if grows { 2 * slots } else { slots };
        let packs = if self.packed.is_empty() { 0 } else { size };
        let old = std::mem::replace(&mut self.slots, vec![0; size]);
        let lengths = std::mem::replace(&mut self.lengths, vec![0; size]);
        let packed = std::mem::replace(&mut self.packed, vec![0; packs]);
        self.used = 0;
        for (at, fingerprint) in old.into_iter().enumerate() {
            if fingerprint != 0 && self.follows(fingerprint) {
                self.enter(fingerprint, lengths[at], packed.get(at).copied().unwrap_or(0));
            }
        }
        if !grows && 4 * (self.used + 1) > 3 * size {
            self.make_room();
        }
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::Stream;

    use super::*;

    fn filled(memory: u64, chunks: u64) -> Table {
        let (mut table, mut random) = (Table::new(memory, true), Stream::new(3, "fingerprints"));
        for _ in 0..chunks {
            let fingerprint = u128::from(random.below(u64::MAX)) << 64 | u128::from(random.below(u64::MAX));
            let length = 100 + random.below(8000) as u32;
            for _ in 0..2 {
                if table.look_up(fingerprint) == Seen::New {
                    table.insert(fingerprint, length, length / 2);
                }
            }
        }
        table
    }

    #[test]
    fn a_full_table_estimates_within_its_error() {
        let (whole, part) = (filled(1 << 30, 100_000), filled(1 << 18, 100_000));
        assert_eq!(whole.sampling(), (100_000, 1.0));
        assert_eq!(whole.unique().error, 0.0);
        assert_eq!(
            2.0 * whole.unique_packed().value,
            whole.unique().value - whole.lengths.iter().filter(|n| *n % 2 == 1).count() as f64
        );
        let (followed, rate) = part.sampling();
        assert!(followed <= 3072 * 2 && rate < 0.1, "{followed} {rate}");
        let off = part.unique().value - whole.unique().value;
        assert!(off.abs() < 3.0 * part.unique().error, "{off} {:?}", part.unique());
        assert!(part.unique().error < 0.05 * whole.unique().value);
    }

    #[test]
    fn the_fingerprint_zero_is_one_as_well() {
        let mut table = Table::new(1 << 20, false);
        assert_eq!(table.look_up(0), Seen::New);
        table.insert(0, 5, 0);
        assert_eq!(table.look_up(0), Seen::Before { packed: 0 });
        assert_eq!(table.unique().value, 5.0);
    }
}
