//! From a physical address to channel, bank, row and column.
//!
//! # Model
//! The index of the bank in the whole memory has a bit for each bank function: the parity of the address under a mask. Functions come
//! in the order channel, rank, bank, lowest bit first, as far as the geometry has them. Each function takes one address bit for itself,
//! the lowest that elimination leaves to it; of the others, above the line, the lowest make the column and the rest the row.
//!
//! # Errors
//! Functions that are not independent, that use bits within a line or beyond the capacity, or that are not as many as needed.

use ftlab_core::{Error, Result};

/// Where a line lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub channel: u32,
    /// Within the channel, over its ranks.
    pub bank: u32,
    pub row: u32,
    pub column: u32,
}

/// Neighbouring bits of an address that are neighbouring bits of an index.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// As many ones as there are bits.
    mask: u64,
    /// The first of them in the address, and in the index.
    from: u32,
    to: u32,
}

impl Run {
    #[inline]
    fn gather(&self, address: u64) -> u64 {
        (address >> self.from & self.mask) << self.to
    }

    #[inline]
    fn scatter(&self, index: u64) -> u64 {
        (index >> self.to & self.mask) << self.from
    }
}

/// A function of several bits.
#[derive(Clone, Copy, Debug)]
struct Mixed {
    mask: u64,
    /// Its bit in the index of the bank.
    bit: u32,
    /// With elimination done: it alone has its pivot, and is the parity of these bits of the index.
    reduced: u64,
    of: u64,
    pivot: u32,
}

#[derive(Clone, Debug)]
pub struct AddressMap {
    /// Masks of the bank functions, channel bits first.
    pub functions: Vec<u64>,
    /// Address bits that no function took, which make column and row.
    inside: Vec<Run>,
    /// Functions that are one address bit each, which no elimination changes.
    single: Vec<Run>,
    mixed: Vec<Mixed>,
    channel_bits: u32,
    column_bits: u32,
    line_bits: u32,
    pub capacity: u64,
}

impl AddressMap {
    /// `functions` are those of the channel (`channel_bits` of them), then of rank and bank.
    pub fn new(functions: Vec<u64>, channel_bits: u32, line: u64, row: u64, capacity: u64) -> Result<Self> {
        let line_bits = line.trailing_zeros();
        let top = capacity.trailing_zeros();
        let mut reduced: Vec<(u64, u64)> = Vec::new();
        let mut pivots: Vec<u32> = Vec::new();
        for (index, &mask) in functions.iter().enumerate() {
            let allowed = (capacity - 1) & !(line - 1);
            if mask == 0 || mask & !allowed != 0 {
                return Err(Error::input(format!(
                    "bank function {mask:#x}: expected a mask over address bits {line_bits} to {} (above a line, within the capacity)",
                    top - 1
                )));
            }
            let (mut rest, mut by) = (mask, 1u64 << index);
            for (&(other, of), &pivot) in reduced.iter().zip(&pivots) {
                if rest >> pivot & 1 == 1 {
                    rest ^= other;
                    by ^= of;
                }
            }
            if rest == 0 {
                let said: Vec<String> = functions.iter().map(|f| format!("{f:#x}")).collect();
                return Err(Error::input(format!(
                    "bank functions {}: function {mask:#x} follows from the ones before it, expected independent functions",
                    said.join(", ")
                )));
            }
            let pivot = rest.trailing_zeros();
            for (other, of) in &mut reduced {
                if *other >> pivot & 1 == 1 {
                    *other ^= rest;
                    *of ^= by;
                }
            }
            reduced.push((rest, by));
            pivots.push(pivot);
        }
        let mut inside: Vec<Run> = Vec::new();
        let mut filled = 0;
        for bit in (line_bits..top).filter(|bit| !pivots.contains(bit)) {
            add_bit(&mut inside, bit, filled);
            filled += 1;
        }
        let mut single: Vec<Run> = Vec::new();
        let mut mixed: Vec<Mixed> = Vec::new();
        for (bit, &mask) in functions.iter().enumerate() {
            let ((reduced, of), pivot) = (reduced[bit], pivots[bit]);
            let bit = bit as u32;
            if reduced.is_power_of_two() && of == 1 << bit {
                add_bit(&mut single, pivot, bit);
            } else {
                mixed.push(Mixed {
                    mask,
                    bit,
                    reduced,
                    of,
                    pivot,
                });
            }
        }
        let column_bits = row.trailing_zeros() - line_bits;
        if filled < column_bits {
            return Err(Error::input(format!(
                "geometry: a bank has {} bytes of the {capacity} of the memory, expected at least a row of {row}",
                (1u64 << filled) * line
            )));
        }
        if filled - column_bits > 31 {
            return Err(Error::input(format!(
                "geometry: {} rows a bank, expected at most 2^31",
                1u64 << (filled - column_bits)
            )));
        }
        Ok(AddressMap {
            functions,
            inside,
            single,
            mixed,
            channel_bits,
            column_bits,
            line_bits,
            capacity,
        })
    }

    #[inline]
    pub fn place(&self, address: u64) -> Place {
        let gather = |runs: &[Run]| runs.iter().fold(0, |index, run| index | run.gather(address));
        let mut index = gather(&self.single) as u32;
        for function in &self.mixed {
            index |= ((address & function.mask).count_ones() & 1) << function.bit;
        }
        let inside = gather(&self.inside);
        Place {
            channel: index & ((1 << self.channel_bits) - 1),
            bank: index >> self.channel_bits,
            row: (inside >> self.column_bits) as u32,
            column: (inside & ((1 << self.column_bits) - 1)) as u32,
        }
    }

    /// The address of a line: the inverse of `place`.
    pub fn address(&self, place: Place) -> u64 {
        let index = u64::from(place.bank) << self.channel_bits | u64::from(place.channel);
        self.address_in(index, u64::from(place.row), u64::from(place.column))
    }

    /// The address of a line of a bank of the whole memory.
    #[inline]
    pub fn address_in(&self, flat_bank: u64, row: u64, column: u64) -> u64 {
        let scatter = |runs: &[Run], index: u64| runs.iter().fold(0, |address, run| address | run.scatter(index));
        let mut address = scatter(&self.inside, row << self.column_bits | column) | scatter(&self.single, flat_bank);
        for function in &self.mixed {
            let wanted = (flat_bank & function.of).count_ones() & 1;
            let others = (address & function.reduced & !(1 << function.pivot)).count_ones() & 1;
            address |= u64::from(wanted ^ others) << function.pivot;
        }
        address
    }

    /// The number of a line in the memory: its address without the bits inside it.
    #[inline]
    pub fn line(&self, address: u64) -> u64 {
        address >> self.line_bits
    }

    /// The address of the line with this number.
    #[inline]
    pub fn address_of(&self, line: u64) -> u64 {
        line << self.line_bits
    }

    /// The bank in the whole memory: channel and bank in one number.
    pub fn flat_bank(&self, place: Place) -> usize {
        (place.bank << self.channel_bits | place.channel) as usize
    }

    /// The number of rows of a bank.
    pub fn rows(&self) -> u64 {
        let bits: u32 = self.inside.iter().map(|run| run.mask.count_ones()).sum();
        1 << (bits - self.column_bits)
    }

    /// Whether `bytes` at any multiple of `bytes` lie in one row of one bank.
    pub fn keeps_together(&self, bytes: u64) -> bool {
        let inside = bytes - 1;
        self.functions.iter().all(|mask| mask & inside == 0)
            && bytes.trailing_zeros() <= self.line_bits + self.column_bits
    }
}

/// Adds an address bit as a bit of an index, to the last run if it goes on with it.
fn add_bit(runs: &mut Vec<Run>, from: u32, to: u32) {
    if let Some(last) = runs.last_mut() {
        let length = last.mask.count_ones();
        if (last.from + length, last.to + length) == (from, to) {
            last.mask = last.mask << 1 | 1;
            return;
        }
    }
    runs.push(Run { mask: 1, from, to });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 banks, rows of 256 bytes, lines of 64, 8 KiB in all. Rows: bank in bits 8 and 9; bit 10 and up the row.
    #[test]
    fn rows_in_turn_lie_in_banks_in_turn() {
        let map = AddressMap::new(vec![1 << 8, 1 << 9], 0, 64, 256, 8192).unwrap();
        let place = |address| {
            let p = map.place(address);
            (p.bank, p.row, p.column)
        };
        assert_eq!(place(0), (0, 0, 0));
        assert_eq!(place(64), (0, 0, 1));
        assert_eq!(place(256), (1, 0, 0));
        assert_eq!(place(1024 + 512 + 192), (2, 1, 3));
        assert!(map.keeps_together(256) && !map.keeps_together(512));
        assert_eq!(map.rows(), 8);
    }

    /// The same memory by lines: bank in bits 6 and 7, so that 256 bytes lie in four banks.
    #[test]
    fn lines_in_turn_lie_in_banks_in_turn() {
        let map = AddressMap::new(vec![1 << 6, 1 << 7], 0, 64, 256, 8192).unwrap();
        let banks: Vec<u32> = (0..5).map(|line| map.place(line * 64).bank).collect();
        assert_eq!(banks, [0, 1, 2, 3, 0]);
        assert!(!map.keeps_together(256));
    }

    /// Two channels, four banks, every function an XOR of several bits: every line has a place of its own, and `address` finds it back.
    #[test]
    fn every_line_has_a_place_of_its_own() {
        let map = AddressMap::new(vec![0b0100_1010_0000_0000 >> 3, 0x1100, 0x300], 1, 64, 256, 8192).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for line in 0..128 {
            let place = map.place(line * 64);
            assert!(place.channel < 2 && place.bank < 4 && place.column < 4 && u64::from(place.row) < map.rows());
            assert!(seen.insert((place.channel, place.bank, place.row, place.column)));
            assert_eq!(map.address(place), line * 64, "{place:?}");
        }
    }

    #[test]
    fn functions_that_follow_from_others_or_use_bits_of_a_line_are_refused() {
        let said = |functions| AddressMap::new(functions, 0, 64, 256, 8192).unwrap_err().to_string();
        assert!(said(vec![0x300, 0x500, 0x600]).contains("0x600 follows from the ones before it"));
        assert!(said(vec![0x20]).contains("expected a mask over address bits 6 to 12"));
        assert!(said(vec![0x2000]).contains("0x2000"));
    }
}
