//! The prediction directory: which correlated pages may hold an LPN.
//!
//! For each page the smallest and largest LPN, a Bloom filter over its LPNs, its place in flash and its two counters. With
//! `search` there are no filters: every page is known exactly and its memory is not counted, as an upper bound.

use super::correlated::Pages;
use super::filters::Filters;

/// Bytes beside the filter: least and most LPN and the page's place, 4 each; hits and loads, 2 each.
pub const HEAD_BYTES: u64 = 16;

#[derive(Clone, Debug, Default)]
pub struct Directory {
    /// None: full search.
    filters: Option<Filters>,
    /// A bit per page.
    live: Vec<u64>,
    /// For each live page.
    bytes_each: u64,
}

impl Directory {
    /// For `pages` with filters of `bits` bits.
    pub fn new(pages: &Pages, bits: u32) -> Self {
        Directory {
            filters: Some(Filters::new(pages.len(), bits, pages.most_lpns())),
            live: vec![0; pages.len().div_ceil(64)],
            bytes_each: HEAD_BYTES + u64::from(bits / 8),
        }
    }

    pub fn search(pages: &Pages) -> Self {
        Directory {
            live: vec![0; pages.len().div_ceil(64)],
            ..Directory::default()
        }
    }

    /// Bytes of the drive's memory for so many live pages; those given up take none.
    pub fn bytes(&self, live: u32) -> u64 {
        u64::from(live) * self.bytes_each
    }

    /// The page has been filled.
    pub fn add(&mut self, page: u32, pages: &Pages) {
        self.live[page as usize / 64] |= 1 << (page % 64);
        if let Some(filters) = &mut self.filters {
            filters.set(page, pages.lpns(page));
        }
    }

    pub fn remove(&mut self, page: u32) {
        self.live[page as usize / 64] &= !(1 << (page % 64));
    }

    pub fn remove_all(&mut self) {
        self.live.fill(0);
    }

    /// Pages that may hold `lpn`, in ascending order, into `found`.
    pub fn ask(&self, lpn: u32, pages: &Pages, found: &mut Vec<u32>) {
        found.clear();
        match &self.filters {
            Some(filters) => filters.ask(lpn, &self.live, |number| {
                let page = pages.page(number);
                if page.least <= lpn && lpn <= page.most {
                    found.push(number);
                }
            }),
            None => {
                found.extend(pages.with(lpn));
                found.dedup();
            }
        }
    }

    /// Mean over the live pages of the probability that a filter takes an LPN within the page's range for one it holds.
    pub fn false_positive(&self, pages: &Pages) -> f64 {
        let Some(filters) = &self.filters else { return 0.0 };
        let live = (0..pages.len() as u32).filter(|&page| pages.page(page).live);
        live.map(|page| filters.false_positive(page)).sum::<f64>() / f64::from(pages.live().max(1))
    }
}
