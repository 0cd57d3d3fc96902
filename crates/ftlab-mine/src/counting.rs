//! The second pass of clustered mining: the accesses of one pair of regions, and the ordered pairs in them.
//!
//! Rows are windows: the frequent pages of each, in order of address, with their first and last place in the window.
//! Columns are pages: the rows in which each lies. A pair (x, y) is counted by walking the rows of x and looking for
//! pages y whose last place lies behind the first of x.

use ftlab_core::{Lpn, Result};

use crate::best::Best;
use crate::meter::{Meter, Most, used};
use crate::regions::RegionPair;
use crate::{Cut, Pair, Threshold};

/// Accesses that are looked at together when the stream is filtered.
const BLOCK: usize = 32;

/// Frequent accesses of a pair of regions. 12 bytes for each page of each window.
pub(crate) struct Filtered {
    /// Frequent pages in order of address; those of the first region are `..boundary`.
    pages: Vec<u32>,
    /// `None`: one region, whose pages pair with each other.
    boundary: Option<u32>,
    entries: Vec<Entry>,
    /// Where the row of each window ends in `entries`.
    row_end: Vec<u32>,
    /// Where the column of each page starts in `rows`; one more at the end.
    column: Vec<u32>,
    rows: Vec<u32>,
}

/// A page in a window.
#[derive(Clone, Copy)]
struct Entry {
    page: u32,
    first: u16,
    last: u16,
}

impl Filtered {
    /// Drops pages in fewer than `needed` windows. `held`: bytes alive elsewhere.
    pub(crate) fn new(windows: &Windows<'_>, needed: u32, meter: &mut Meter, held: u64) -> Self {
        let pages = windows.frequent(needed, meter, held);
        let [a, b] = windows.starts;
        let boundary = (a != b).then(|| pages.partition_point(|&lpn| lpn < b) as u32);

        let mut entries: Vec<Entry> = Vec::new();
        let mut row_end: Vec<u32> = Vec::new();
        let mut column = vec![0u32; pages.len() + 1];
        let mut of_window = Most::default();
        windows.each(|sorted| {
            of_window.see(sorted);
            for run in sorted.chunk_by(|a, b| a.0 == b.0) {
                if let Ok(page) = pages.binary_search(&run[0].0) {
                    entries.push(Entry {
                        page: page as u32,
                        first: run[0].1,
                        last: run[run.len() - 1].1,
                    });
                    column[page + 1] += 1;
                }
            }
            row_end.push(entries.len() as u32);
        });
        let in_windows = [used(&pages), used(&entries), used(&row_end), used(&column)]
            .iter()
            .sum::<u64>();
        meter.alive(&[held, in_windows, of_window.bytes()]);
        for page in 0..pages.len() {
            column[page + 1] += column[page];
        }
        let mut rows = vec![0u32; entries.len()];
        let mut next = column.clone();
        let mut start = 0;
        for (row, &end) in row_end.iter().enumerate() {
            for entry in &entries[start as usize..end as usize] {
                rows[next[entry.page as usize] as usize] = row as u32;
                next[entry.page as usize] += 1;
            }
            start = end;
        }
        let filtered = Filtered {
            pages,
            boundary,
            entries,
            row_end,
            column,
            rows,
        };
        meter.alive(&[held, filtered.bytes(), used(&next)]);
        filtered
    }

    fn bytes(&self) -> u64 {
        used(&self.pages) + used(&self.entries) + used(&self.row_end) + used(&self.column) + used(&self.rows)
    }

    /// Offers every pair that `needed` windows contain; answers how many different pairs were counted.
    pub(crate) fn count(
        &self,
        needed: u32,
        threshold: &Threshold,
        best: &mut Best,
        meter: &mut Meter,
        held: u64,
        going: &mut dyn FnMut(f64) -> Result<()>,
    ) -> Result<u64> {
        let mut windows = vec![0u32; self.pages.len()];
        let mut touched: Vec<u32> = Vec::new();
        let mut most_touched = Most::default();
        let mut counted = 0;
        for first in 0..self.pages.len() as u32 {
            if first % 64 == 0 {
                going(f64::from(first) / self.pages.len() as f64)?;
            }
            let column = self.column[first as usize] as usize..self.column[first as usize + 1] as usize;
            let of_first = column.len() as u32;
            for &row in &self.rows[column] {
                let row = self.row(row);
                let Ok(at) = row.binary_search_by_key(&first, |entry| entry.page) else {
                    continue;
                };
                let place = row[at].first;
                for entry in self.opposite(first, row) {
                    if entry.last > place && entry.page != first {
                        let count = &mut windows[entry.page as usize];
                        if *count == 0 {
                            touched.push(entry.page);
                        }
                        *count += 1;
                    }
                }
            }
            counted += touched.len() as u64;
            most_touched.see(&touched);
            for &second in &touched {
                let count = std::mem::take(&mut windows[second as usize]);
                if count >= needed && threshold.keeps(count, of_first) {
                    let [first, second] = [first, second].map(|page| Lpn(self.pages[page as usize]));
                    best.offer(Pair {
                        first,
                        second,
                        windows: count,
                    });
                }
            }
            touched.clear();
        }
        meter.alive(&[held, best.bytes(), self.bytes(), used(&windows), most_touched.bytes()]);
        Ok(counted)
    }

    fn row(&self, row: u32) -> &[Entry] {
        let start = if row == 0 { 0 } else { self.row_end[row as usize - 1] };
        &self.entries[start as usize..self.row_end[row as usize] as usize]
    }

    /// The entries of a row with which `page` may pair.
    fn opposite<'a>(&self, page: u32, row: &'a [Entry]) -> &'a [Entry] {
        let Some(boundary) = self.boundary else {
            return row;
        };
        let split = row.partition_point(|entry| entry.page < boundary);
        if page < boundary { &row[split..] } else { &row[..split] }
    }
}

/// The stream filtered to two regions and cut into windows.
pub(crate) struct Windows<'a> {
    lpns: &'a [u32],
    starts: [u32; 2],
    region: u32,
    window: usize,
    cut: Cut,
}

impl<'a> Windows<'a> {
    pub(crate) fn new(lpns: &'a [u32], region: u32, pair: &RegionPair, window: usize, cut: Cut) -> Self {
        let starts = [pair.a, pair.b].map(|number| number.saturating_mul(region));
        Windows {
            lpns,
            starts,
            region,
            window,
            cut,
        }
    }

    /// Calls with each window's accesses of the regions as (LPN, place), sorted. Windows without any are left out.
    fn each(&self, mut visit: impl FnMut(&[(u32, u16)])) {
        let (region, [a, b]) = (self.region, self.starts);
        let mut of_window: Vec<(u32, u16)> = Vec::with_capacity(self.window);
        let mut close = |of_window: &mut Vec<(u32, u16)>| {
            if !of_window.is_empty() {
                of_window.sort_unstable();
                visit(of_window);
                of_window.clear();
            }
        };
        let wanted = |lpn: u32| (lpn.wrapping_sub(a) < region) | (lpn.wrapping_sub(b) < region);
        for accesses in self.lpns.chunks(self.window) {
            // Most regions are rare: blocks without an access of theirs are told without a branch for each access.
            for block in accesses.chunks(BLOCK) {
                if !block.iter().fold(false, |any, &lpn| any | wanted(lpn)) {
                    continue;
                }
                for &lpn in block.iter().filter(|&&lpn| wanted(lpn)) {
                    of_window.push((lpn, of_window.len() as u16));
                    if of_window.len() == self.window {
                        close(&mut of_window);
                    }
                }
            }
            if self.cut == Cut::Stream {
                close(&mut of_window);
            }
        }
        close(&mut of_window);
    }

    /// Pages in at least `needed` windows, in order of address. Found in pieces: memory goes with the pages.
    fn frequent(&self, needed: u32, meter: &mut Meter, held: u64) -> Vec<u32> {
        const PIECE: usize = 1 << 16;
        let mut piece: Vec<u32> = Vec::new();
        let mut counts: Vec<(u32, u32)> = Vec::new();
        let (mut of_window, mut most_piece) = (Most::default(), Most::default());
        let mut merge = |piece: &mut Vec<u32>| {
            most_piece.see(piece);
            piece.sort_unstable();
            let before = counts.len();
            for run in piece.chunk_by(|a, b| a == b) {
                match counts[..before].binary_search_by_key(&run[0], |&(lpn, _)| lpn) {
                    Ok(at) => counts[at].1 += run.len() as u32,
                    Err(_) => counts.push((run[0], run.len() as u32)),
                }
            }
            counts.sort_unstable();
            piece.clear();
        };
        self.each(|sorted| {
            of_window.see(sorted);
            piece.extend(sorted.chunk_by(|a, b| a.0 == b.0).map(|run| run[0].0));
            if piece.len() >= PIECE {
                merge(&mut piece);
            }
        });
        merge(&mut piece);
        let frequent: Vec<u32> = counts
            .iter()
            .filter(|&&(_, n)| n >= needed)
            .map(|&(lpn, _)| lpn)
            .collect();
        meter.alive(&[
            held,
            of_window.bytes(),
            most_piece.bytes(),
            used(&counts),
            used(&frequent),
        ]);
        frequent
    }
}
