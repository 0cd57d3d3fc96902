//! Data in memory, page by page; pages of zeros that were trimmed take none.

use std::io;

use super::{Refusal, Store};

const PAGE: u64 = 4096;
/// Pages of a table: a table is made when the first of its pages is written.
const TABLE: u64 = 512;

type Page = Box<[u8; PAGE as usize]>;

/// Sparse memory with a limit.
pub struct Memory {
    tables: Vec<Option<Box<[Option<Page>]>>>,
    pages: u64,
    tables_made: u64,
    limit_bytes: u64,
}

impl Memory {
    pub fn new(capacity: u64, limit_bytes: u64) -> Self {
        Memory {
            tables: (0..capacity.div_ceil(PAGE * TABLE)).map(|_| None).collect(),
            pages: 0,
            tables_made: 0,
            limit_bytes,
        }
    }

    fn page(&self, number: u64) -> Option<&Page> {
        self.tables[(number / TABLE) as usize].as_ref()?[(number % TABLE) as usize].as_ref()
    }

    fn place(&mut self, number: u64) -> &mut Option<Page> {
        let table = self.tables[(number / TABLE) as usize].get_or_insert_with(|| {
            self.tables_made += 1;
            (0..TABLE).map(|_| None).collect()
        });
        &mut table[(number % TABLE) as usize]
    }
}

/// The pieces of a range, page by page: number, first byte in it, and length.
fn pieces(offset: u64, length: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let (mut at, end) = (offset, offset + length);
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let piece = (
            at / PAGE,
            (at % PAGE) as usize,
            (PAGE - at % PAGE).min(end - at) as usize,
        );
        at += piece.2 as u64;
        Some(piece)
    })
}

impl Store for Memory {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut rest = into;
        for (number, first, count) in pieces(offset, rest.len() as u64) {
            let (piece, others) = rest.split_at_mut(count);
            match self.page(number) {
                Some(page) => piece.copy_from_slice(&page[first..first + count]),
                None => piece.fill(0),
            }
            rest = others;
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Refusal> {
        let missing = pieces(offset, data.len() as u64).filter(|piece| self.page(piece.0).is_none());
        if self.memory_bytes() + missing.count() as u64 * PAGE > self.limit_bytes {
            return Err(Refusal::Full);
        }
        let (mut rest, mut made) = (data, 0);
        for (number, first, count) in pieces(offset, data.len() as u64) {
            let place = self.place(number);
            made += u64::from(place.is_none());
            let page = place.get_or_insert_with(|| Box::new([0; PAGE as usize]));
            page[first..first + count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
        }
        self.pages += made;
        Ok(())
    }

    fn clear(&mut self, offset: u64, length: u64) -> io::Result<()> {
        for (number, first, count) in pieces(offset, length) {
            if self.page(number).is_none() {
                continue;
            }
            let place = self.place(number);
            if count as u64 == PAGE {
                *place = None;
                self.pages -= 1;
            } else if let Some(page) = place {
                page[first..first + count].fill(0);
            }
        }
        Ok(())
    }

    fn extent(&mut self, offset: u64, end: u64) -> io::Result<(bool, u64)> {
        let held = self.page(offset / PAGE).is_some();
        let mut number = offset / PAGE + 1;
        while number * PAGE < end && self.page(number).is_some() == held {
            number += 1;
        }
        Ok((held, (number * PAGE).min(end)))
    }

    fn memory_bytes(&self) -> u64 {
        self.pages * PAGE + self.tables_made * TABLE * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(store: &mut Memory, offset: u64, length: usize) -> Vec<u8> {
        let mut data = vec![9; length];
        store.read(offset, &mut data).unwrap();
        data
    }

    /// Bytes 4000 to 4199 lie on two pages; trimming the first page whole leaves the other's.
    #[test]
    fn data_is_found_again_across_pages_and_trims() {
        let mut store = Memory::new(1 << 20, 1 << 20);
        store.write(4000, &[7; 200]).unwrap();
        assert_eq!(read(&mut store, 3999, 202), [&[0][..], &[7; 200], &[0]].concat());
        assert_eq!(store.extent(0, 1 << 20).unwrap(), (true, 8192));
        assert_eq!(store.extent(8192, 1 << 20).unwrap(), (false, 1 << 20));
        store.clear(0, 4100).unwrap();
        assert_eq!(read(&mut store, 4000, 200), [&[0; 100][..], &[7; 100]].concat());
        assert_eq!(store.extent(0, 8192).unwrap(), (false, 4096));
        assert_eq!(store.memory_bytes(), 4096 + 512 * 8);
    }

    #[test]
    fn a_write_beyond_the_limit_leaves_nothing_behind() {
        let mut store = Memory::new(1 << 20, 4096 * 3);
        store.write(0, &[1; 4096]).unwrap();
        assert!(matches!(store.write(0, &[2; 4096 * 4]), Err(Refusal::Full)));
        assert_eq!(read(&mut store, 0, 2), [1, 1]);
        store.write(0, &[3; 4096]).unwrap();
        assert_eq!(read(&mut store, 4095, 2), [3, 0]);
    }
}
