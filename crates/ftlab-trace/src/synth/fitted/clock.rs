//! Arrivals: a chain of gaps.

use ftlab_core::Stream;

use super::super::time::Time;
use super::deck::Deck;
use crate::model::{Gaps, middle, width};

pub struct Clock {
    rows: Vec<(u64, Deck<u64>)>,
    /// Row of each octave, by the octave's number.
    row_of: [u8; 65],
    row: usize,
    /// Nanoseconds of a drawn nanosecond.
    scale: f64,
    time: Time,
    random: Stream,
}

impl Clock {
    /// Gaps whose mean is `mean_ns`.
    pub fn new(gaps: &Gaps, mean_ns: f64, random: Stream) -> Self {
        let (mut sum, mut count) = (0.0, 0.0);
        for (edge, weight) in gaps.next.iter().flat_map(|(_, row)| &row.0) {
            sum += weight * middle(*edge);
            count += weight;
        }
        let mut row_of = [0; 65];
        for (number, entry) in row_of.iter_mut().enumerate() {
            let octave = if number == 0 { 0 } else { 1u64 << (number - 1) };
            // An octave without a row goes by the nearest one below it.
            *entry = gaps.next.partition_point(|(row, _)| *row <= octave).saturating_sub(1) as u8;
        }
        Clock {
            rows: gaps.next.iter().map(|(row, next)| (*row, Deck::of(next))).collect(),
            row_of,
            row: 0,
            scale: mean_ns * count / sum,
            time: Time::default(),
            random,
        }
    }

    /// The time of this request; moves on to the next.
    #[inline]
    pub fn next(&mut self) -> u64 {
        let Some((_, deck)) = self.rows.get_mut(self.row) else {
            return self.time.advance(0.0);
        };
        let edge = deck.draw(&mut self.random).unwrap_or(0);
        let gap = edge + self.random.below(width(edge));
        self.row = usize::from(self.row_of[64 - gap.leading_zeros() as usize]);
        self.time.advance(gap as f64 * self.scale)
    }
}
