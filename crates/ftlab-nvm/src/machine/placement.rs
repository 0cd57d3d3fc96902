//! Which bank each row of data in this machine's memory lies in, as far as frames and bank functions tell.
//!
//! # Model
//! A row is the largest piece that lies in one row of one bank and in one page: the memory file's row, or less where a bank function uses bits below it.
//! * Frames are known: addresses are physical, and every function counts.
//! * Frames are hidden, pages are of 2 MiB: functions, and sums (XOR) of functions, that use no bit above a page tell groups of banks apart; threads that
//!   keep to groups of their own share no bank either.
//! * Neither: banks are unknown. Rows are put into as many strata as the memory file has banks, by their number.
//!
//! # Not modelled
//! Frames that the system moves later on. In a virtual machine frames are those of the machine that is made up.

use crate::Memory;
use crate::machine::region::{HUGE, SMALL};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    Physical,
    WithinPages,
    Nothing,
}

impl Known {
    pub fn name(self) -> &'static str {
        match self {
            Known::Physical => "physical",
            Known::WithinPages => "within_pages",
            Known::Nothing => "nothing",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Placement {
    pub known: Known,
    pub row_bytes: u64,
    pub page_bytes: u64,
    /// Banks, groups of banks or strata.
    pub banks: usize,
    /// Functions that tell them apart.
    pub functions: Vec<u64>,
    bank_of: Vec<u32>,
}

/// Rows and strata where no memory file says more: those of the chapter.
const ROW: u64 = 8192;
const STRATA: usize = 32;

impl Placement {
    /// Of `bytes` of data from the start of a region: `frames` of its pages of 4 KiB, and whether the system says that all are parts of pages of 2 MiB.
    pub fn new(memory: Option<&Memory>, frames: &[Option<u64>], is_huge: bool, bytes: u64) -> Placement {
        let frames: Option<Vec<u64>> = frames.iter().copied().collect();
        let is_huge = match &frames {
            Some(frames) => frames.chunks(512).all(are_huge),
            None => is_huge,
        };
        let page_bytes = if is_huge { HUGE } else { SMALL };
        let functions = match (memory, &frames) {
            (None, _) => Vec::new(),
            (Some(memory), Some(_)) => memory.map.functions.clone(),
            (Some(memory), None) => determined(&memory.map.functions, page_bytes),
        };
        let whole = memory.map_or(ROW, |memory| memory.row_bytes);
        if functions.is_empty() {
            let banks = memory.map_or(STRATA, Memory::banks_in_all);
            return Placement {
                known: Known::Nothing,
                row_bytes: whole,
                page_bytes,
                banks,
                functions,
                bank_of: (0..bytes.div_ceil(whole))
                    .map(|row| (row % banks as u64) as u32)
                    .collect(),
            };
        }
        let lowest = functions.iter().map(|mask| mask.trailing_zeros()).min().unwrap_or(0);
        let row_bytes = whole.min(1 << lowest).min(page_bytes);
        let bank = |row: u64| {
            let at = row * row_bytes;
            let address = match &frames {
                Some(frames) => frames[(at / SMALL) as usize] * SMALL + at % SMALL,
                None => at % page_bytes,
            };
            let bits = functions.iter().enumerate();
            bits.fold(0, |bank, (bit, mask)| bank | ((address & mask).count_ones() & 1) << bit)
        };
        Placement {
            known: if frames.is_some() {
                Known::Physical
            } else {
                Known::WithinPages
            },
            row_bytes,
            page_bytes,
            banks: 1 << functions.len(),
            bank_of: (0..bytes.div_ceil(row_bytes)).map(bank).collect(),
            functions,
        }
    }

    pub fn rows(&self) -> u64 {
        self.bank_of.len() as u64
    }

    pub fn bank_of(&self, row: u64) -> usize {
        self.bank_of[row as usize] as usize
    }
}

/// Whether frames are those of one page of 2 MiB, or of the first part of one.
pub fn are_huge(frames: &[u64]) -> bool {
    frames[0].is_multiple_of(512) && frames.iter().zip(frames[0]..).all(|(&frame, wanted)| frame == wanted)
}

/// Independent sums of functions that use no bit from `page` bytes on.
fn determined(functions: &[u64], page: u64) -> Vec<u64> {
    let mut left = functions.to_vec();
    for bit in page.ilog2()..64 {
        if let Some(at) = left.iter().position(|mask| mask >> bit & 1 == 1) {
            let pivot = left.remove(at);
            for mask in left.iter_mut().filter(|mask| **mask >> bit & 1 == 1) {
                *mask ^= pivot;
            }
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(set: &[&str]) -> Memory {
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        Memory::load("archsampler", &set).unwrap()
    }

    /// Frames of two pages of 2 MiB, the second of which lies at 10 MiB: bank bits 13 and 21.
    #[test]
    fn banks_follow_from_frames() {
        let memory = memory(&["geometry.banks=4", "geometry.bank_functions=[\"0x2000\", \"0x200000\"]"]);
        let frames: Vec<Option<u64>> = (0..512).chain(5 * 512..6 * 512).map(Some).collect();
        let found = Placement::new(Some(&memory), &frames, false, 4 << 20);
        assert_eq!(
            (found.known, found.row_bytes, found.page_bytes, found.banks),
            (Known::Physical, 8192, HUGE, 4)
        );
        let banks: Vec<usize> = [0, 1, 2, 256, 257].map(|row| found.bank_of(row)).to_vec();
        assert_eq!(banks, [0, 1, 0, 2, 3]);
        // A page that is torn: rows are no longer than 4 KiB.
        let mut torn = frames;
        torn[700] = Some(9999);
        let found = Placement::new(Some(&memory), &torn, true, 4 << 20);
        assert_eq!((found.row_bytes, found.page_bytes), (4096, SMALL));
        assert_eq!(
            found.bank_of(700),
            usize::from((9999 * 4096) & 0x2000 != 0) | (usize::from((9999 * 4096) & 0x20_0000 != 0) << 1)
        );
    }

    /// Of functions 13, 14 + 21 and 15 + 21 those within pages are 13 and 14 + 15; of small pages none.
    #[test]
    fn groups_of_banks_are_told_apart_within_pages() {
        let masks = "geometry.bank_functions=[\"0x2000\", \"0x204000\", \"0x208000\"]";
        let memory = memory(&["geometry.banks=8", masks]);
        let found = Placement::new(Some(&memory), &[None; 1024], true, 4 << 20);
        assert_eq!((found.known, found.banks), (Known::WithinPages, 4));
        assert_eq!(found.functions, [0x2000, 0xc000]);
        let banks: Vec<usize> = (0..8).map(|row| found.bank_of(row)).collect();
        assert_eq!(banks, [0, 1, 2, 3, 2, 3, 0, 1]);
        let found = Placement::new(Some(&memory), &[None; 1024], false, 4 << 20);
        assert_eq!((found.known, found.banks, found.rows()), (Known::Nothing, 8, 512));
        assert_eq!(found.bank_of(9), 1);
    }

    /// Lines interleaved: a piece that lies in one bank is a line.
    #[test]
    fn rows_end_where_a_bank_function_begins() {
        let memory = memory(&["geometry.banks=4", "geometry.interleave=line"]);
        let frames: Vec<Option<u64>> = (0..512).map(Some).collect();
        let found = Placement::new(Some(&memory), &frames, false, 2 << 20);
        assert_eq!(found.row_bytes, 64);
        assert_eq!(
            (0..5).map(|row| found.bank_of(row)).collect::<Vec<_>>(),
            [0, 1, 2, 3, 0]
        );
        let found = Placement::new(None, &frames, false, 2 << 20);
        assert_eq!((found.known, found.row_bytes, found.banks), (Known::Nothing, 8192, 32));
    }
}
