//! Gaps between arrivals: a Markov chain over octaves with a fine histogram in each row.

use super::{Rows, Weights, bin};

/// How requests arrive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gaps {
    /// Mean gap in nanoseconds.
    pub mean_ns: f64,
    /// By the octave of a gap, the next gap in nanoseconds (a bin).
    pub next: Rows<u64>,
}

/// 0, 1, 2, 4, 8, ...: the octave of a number, named by its lower edge.
pub fn octave(value: u64) -> u64 {
    match value {
        0 => 0,
        v => 1 << (63 - v.leading_zeros()),
    }
}

/// Counts gaps one by one.
#[derive(Default)]
pub struct GapCounts {
    last_ns: Option<u64>,
    last_octave: u64,
    first_ns: u64,
    gaps: u64,
    /// Row 0 is gaps of 0, row n the octave 2^(n−1); columns are bins, four an octave.
    rows: Vec<Vec<u32>>,
}

impl GapCounts {
    #[inline]
    pub fn add(&mut self, time_ns: u64) {
        let Some(last) = self.last_ns.replace(time_ns) else {
            self.first_ns = time_ns;
            return;
        };
        let gap = time_ns.saturating_sub(last);
        let (row, column) = (row(self.last_octave), column(gap));
        if self.rows.len() <= row {
            self.rows.resize(row + 1, Vec::new());
        }
        let counts = &mut self.rows[row];
        if counts.len() <= column {
            counts.resize(column + 1, 0);
        }
        counts[column] = counts[column].saturating_add(1);
        self.gaps += 1;
        self.last_octave = octave(gap);
    }

    /// `None` where all requests come at once, as in a trace without times.
    pub fn finish(&self) -> Option<Gaps> {
        let span = self.last_ns? - self.first_ns;
        if span == 0 {
            return None;
        }
        let mut next = Vec::new();
        for (at, counts) in self.rows.iter().enumerate() {
            let mut weights = Weights::default();
            for (column, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                weights.add(edge(column), f64::from(count));
            }
            if !weights.is_empty() {
                next.push((if at == 0 { 0 } else { 1 << (at - 1) }, weights));
            }
        }
        Some(Gaps {
            mean_ns: span as f64 / self.gaps as f64,
            next,
        })
    }
}

fn row(octave: u64) -> usize {
    64 - octave.leading_zeros() as usize
}

/// Bins numbered from 0.
fn column(value: u64) -> usize {
    let edge = bin(value);
    if edge < 8 {
        return edge as usize;
    }
    let octaves = 60 - edge.leading_zeros() as usize;
    let quarter = (edge >> (61 - edge.leading_zeros())) & 3;
    8 + 4 * octaves + quarter as usize
}

fn edge(column: usize) -> u64 {
    match column {
        small @ 0..8 => small as u64,
        _ => (4 + (column as u64 % 4)) << ((column - 8) / 4 + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_number_the_bins() {
        let mut at = 0;
        for number in 0..200 {
            assert_eq!((edge(number), column(at)), (at, number));
            at += super::super::width(at);
        }
    }

    #[test]
    fn rows_hold_what_followed() {
        let mut counts = GapCounts::default();
        // Gaps 10, 10, 1000, 0: the first follows nothing (row 0), then 10 -> 10, 10 -> 1000 and 1000 -> 0.
        [5, 15, 25, 1025, 1025].into_iter().for_each(|t| counts.add(t));
        let gaps = counts.finish().unwrap();
        assert_eq!(gaps.mean_ns, 255.0);
        let text: Vec<_> = gaps.next.iter().map(|(row, w)| (*row, w.write())).collect();
        let expected = [(0, "10"), (8, "10 896"), (512, "0")];
        assert_eq!(text, expected.map(|(row, text)| (row, text.to_owned())));
    }
}
