//! Rows on their way to the totals, some at a time.
//!
//! # Model
//! Where there are many groups, a row waits for memory: the place of its key, the key, its sums. So rows are gathered, and before the first is added all those places are
//! read, one kind after the other and without branches in between: a core then waits for many of them at once. Rows are added in the order in which they came.

use crate::keys::hash;
use crate::totals::Totals;

/// Rows that are gathered: more would push each other out of a core's first cache.
pub const ROWS: usize = 128;

#[derive(Default)]
pub struct Block {
    keys: Vec<u8>,
    /// Ends of keys, and their hashes.
    rows: Vec<(usize, u64)>,
    /// What is added for each aggregate, row by row.
    values: Vec<(f64, f64)>,
    /// Row, quantile, and the value that is kept for it.
    kept: Vec<(usize, usize, f64)>,
}

impl Block {
    /// Where the key of the next row is written.
    pub fn key(&mut self) -> &mut Vec<u8> {
        &mut self.keys
    }

    /// The value of the next aggregate of the row; `z` is what a ratio is over. Nothing is 0 of 0.
    pub fn value(&mut self, t: f64, z: f64) {
        self.values.push((t, z));
    }

    /// A value of the row that is kept for a quantile.
    pub fn keep(&mut self, quantile: usize, value: f64) {
        self.kept.push((self.rows.len(), quantile, value));
    }

    /// Ends a row, whose key and values are there. True if the block is full.
    pub fn end_row(&mut self) -> bool {
        let start = self.rows.last().map_or(0, |&(end, _)| end);
        self.rows.push((self.keys.len(), hash(&self.keys[start..])));
        self.rows.len() >= ROWS
    }

    /// Forgets what has come of a row that has not ended.
    pub fn abandon(&mut self, aggregates: usize) {
        self.keys.truncate(self.rows.last().map_or(0, |&(end, _)| end));
        self.values.truncate(self.rows.len() * aggregates);
        self.kept.retain(|&(row, _, _)| row < self.rows.len());
    }

    /// Adds all rows, and is empty.
    pub fn flush(&mut self, totals: &mut Totals) {
        totals.warm(&self.rows);
        let aggregates = self.values.len().checked_div(self.rows.len()).unwrap_or(0);
        let mut start = 0;
        let mut kept = self.kept.iter().peekable();
        for (number, &(end, hash)) in self.rows.iter().enumerate() {
            let group = totals.group(&self.keys[start..end], hash);
            for (aggregate, &(t, z)) in self.values[number * aggregates..][..aggregates].iter().enumerate() {
                totals.add(group, aggregate, t, z);
            }
            while let Some(&(_, quantile, value)) = kept.next_if(|&&(row, _, _)| row == number) {
                totals.keep(group, quantile, value);
            }
            start = end;
        }
        self.keys.clear();
        self.rows.clear();
        self.values.clear();
        self.kept.clear();
    }
}
