//! What is known while a sample is drawn: for the eyes of who waits, never for deciding when to stop.

use serde::Serialize;

use super::Engine;
use crate::sql::Shows;

#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    /// Partitions counted, and to be counted; of `within` there are seldom so many.
    pub done: u64,
    pub of: u64,
    pub bytes_read: u64,
    /// The largest half-width over its value, of groups seen often enough.
    pub widest: Option<f64>,
    /// Of an answer of one row, its first number: name, value, half-width.
    pub first: Option<(String, f64, Option<f64>)>,
}

impl Progress {
    /// While what is needed first is read.
    pub(super) fn before(of: u64) -> Progress {
        Progress {
            done: 0,
            of,
            bytes_read: 0,
            widest: None,
            first: None,
        }
    }
}

impl Engine<'_> {
    /// While what was counted becomes an answer.
    pub(super) fn counted_all(&self) -> Progress {
        let done = self.done.iter().sum();
        Progress {
            done,
            bytes_read: self.bytes_read,
            ..Progress::before(done)
        }
    }

    pub(super) fn progress(&self, targets: &[u64], bytes_read: u64) -> Progress {
        if self.taken.is_some() {
            // Sums are those of keys by now, of which no interval is made in between.
            let done = self.locked_lanes().iter().map(|lane| lane.partitions).sum();
            return Progress {
                done,
                bytes_read,
                ..Progress::before(targets.iter().sum())
            };
        }
        let (rows, done) = self.so_far();
        let mut first = None;
        if let [row] = &rows[..] {
            let columns = self.plan.columns.iter().zip(&row.estimates);
            let mut numbers = columns.filter(|(column, _)| !matches!(column.shows, Shows::Group(_)));
            first = numbers.find_map(|(column, estimate)| {
                let estimate = (*estimate)?;
                let half_width = estimate.interval.map(|interval| interval.half_width);
                Some((column.name.clone(), estimate.value, half_width))
            });
        }
        Progress {
            done,
            of: targets.iter().sum(),
            bytes_read,
            widest: self.widest(&rows),
            first,
        }
    }
}
