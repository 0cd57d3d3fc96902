//! The requests of one file in the order in which they arrive.
//!
//! # Rule
//! By time: a request is put in its place among the [`WINDOW`] requests before it and all behind it. One that is still
//! earlier than what has been given out arrives together with that. In the order of the file the window is empty.

use std::collections::VecDeque;

use ftlab_core::Batch;

use crate::rows;
use crate::settings::Order;

/// Requests held back where they are sorted by time: four batches. Logs of single CPUs are merged within some hundred.
pub const WINDOW: usize = 4 * Batch::TARGET;

/// Requests as they were read, and what was known when they were.
#[derive(Debug, Default)]
pub struct Portion {
    pub batch: Batch,
    pub known: Known,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// First and last line, in a text format.
    pub lines: Option<(u64, u64)>,
    /// Each line gave one request, in this order.
    pub exact: bool,
    /// Volumes and labels met so far.
    pub volumes: usize,
    pub labels: usize,
    /// Names of processes that were new.
    pub processes: Vec<(u32, String)>,
}

impl Known {
    /// What is known of requests of which some are from either.
    fn join(&mut self, mut other: Known) {
        self.lines = match (self.lines, other.lines) {
            (Some((first, last)), Some((other_first, other_last))) => {
                Some((first.min(other_first), last.max(other_last)))
            }
            (one, other) => one.or(other),
        };
        self.exact = false;
        self.volumes = self.volumes.max(other.volumes);
        self.labels = self.labels.max(other.labels);
        self.processes.append(&mut other.processes);
    }
}

/// Requests on their way out.
#[derive(Debug)]
pub struct Arrivals {
    order: Order,
    held: VecDeque<Portion>,
    requests: usize,
    given: u64,
    now: u64,
    /// Requests that arrive later than they say.
    pub late: u64,
}

impl Arrivals {
    pub fn new(order: Order) -> Self {
        Arrivals {
            order,
            held: VecDeque::new(),
            requests: 0,
            given: 0,
            now: 0,
            late: 0,
        }
    }

    pub fn order(&self) -> Order {
        self.order
    }

    /// Takes the next requests of the file, with times that may go back.
    pub fn put(&mut self, read: Portion) {
        self.requests += read.batch.len();
        if self.order == Order::File {
            self.held.push_back(read);
            return;
        }
        let earliest = read.batch.time_ns.iter().min().copied().unwrap_or(u64::MAX);
        let mut disturbed = Vec::new();
        while self
            .held
            .back()
            .is_some_and(|before| before.batch.time_ns.last() > Some(&earliest))
        {
            disturbed.extend(self.held.pop_back());
        }
        if disturbed.is_empty() && read.batch.time_ns.is_sorted() {
            self.held.push_back(read);
            return;
        }
        let (mut all, mut known) = (Batch::default(), Known::default());
        for part in disturbed.into_iter().rev().chain([read]) {
            (0..part.batch.len()).for_each(|i| rows::append(&mut all, &part.batch, i));
            known.join(part.known);
        }
        self.hold_sorted(&all, known);
    }

    fn hold_sorted(&mut self, all: &Batch, mut known: Known) {
        let mut order: Vec<usize> = (0..all.len()).collect();
        // Stable: equal times stay in the order of the file.
        order.sort_by_key(|&i| all.time_ns[i]);
        for part in order.chunks(Batch::TARGET) {
            let mut batch = Batch::default();
            part.iter().for_each(|&i| rows::append(&mut batch, all, i));
            self.held.push_back(Portion {
                batch,
                known: known.clone(),
            });
            known.processes.clear();
        }
    }

    /// The next requests that nothing coming can precede; `ended` when nothing is coming.
    pub fn take(&mut self, ended: bool) -> Option<Portion> {
        let first = self.held.front()?.batch.len();
        let window = match self.order {
            Order::Time => WINDOW,
            Order::File => 0,
        };
        if !ended && self.requests < first + window {
            return None;
        }
        let mut read = self.held.pop_front()?;
        self.requests -= first;
        self.given += first as u64;
        for time in &mut read.batch.time_ns {
            self.late += u64::from(*time < self.now);
            self.now = self.now.max(*time);
            *time = self.now;
        }
        Some(read)
    }

    /// Whether the stamps go back and back: most requests found those behind them given out already.
    pub fn descends(&self) -> bool {
        self.order == Order::Time && self.given > 2 * WINDOW as u64 && self.late * 2 > self.given
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::OpKind;

    use super::*;

    /// Times behind the stage, of batches of `size` stamps; with the number that came late.
    fn through(order: Order, times: &[u64], size: usize) -> (Vec<u64>, Vec<u64>, u64) {
        let mut arrivals = Arrivals::new(order);
        let (mut out, mut places) = (Vec::new(), Vec::new());
        let mut drain = |arrivals: &mut Arrivals, ended| {
            while let Some(read) = arrivals.take(ended) {
                out.extend(&read.batch.time_ns);
                places.extend(&read.batch.offset);
            }
        };
        for (k, part) in times.chunks(size).enumerate() {
            let mut read = Portion::default();
            for (i, &time) in part.iter().enumerate() {
                read.batch.push(time, OpKind::Read, (k * size + i) as u64, 512, 0, 0);
            }
            arrivals.put(read);
            drain(&mut arrivals, false);
        }
        drain(&mut arrivals, true);
        let late = arrivals.late;
        (out, places, late)
    }

    #[test]
    fn merged_logs_come_out_in_the_order_of_their_stamps() {
        let times = [10, 30, 20, 30, 25, 40];
        for size in [1, 2, 3, 6] {
            let (out, places, late) = through(Order::Time, &times, size);
            assert_eq!((out, places), (vec![10, 20, 25, 30, 30, 40], vec![0, 2, 4, 1, 3, 5]));
            assert_eq!(late, 0);
            let (out, places, late) = through(Order::File, &times, size);
            assert_eq!((out, places), (vec![10, 30, 30, 30, 30, 40], vec![0, 1, 2, 3, 4, 5]));
            assert_eq!(late, 2);
        }
    }

    #[test]
    fn a_request_is_put_in_its_place_within_the_window_and_clamped_beyond() {
        let displaced = |by: usize| {
            let mut times: Vec<u64> = (10..60_000).collect();
            times.insert(by, 5);
            through(Order::Time, &times, Batch::TARGET)
        };
        let (out, places, late) = displaced(WINDOW - 1);
        assert_eq!((out[0], places[0], late), (5, WINDOW as u64 - 1, 0));
        assert!(out.is_sorted());
        let (out, _, late) = displaced(3 * WINDOW);
        assert_eq!((out[0], late), (10, 1));
        assert!(out.is_sorted() && out.len() == 59_991);
    }

    #[test]
    fn what_is_in_order_passes_in_its_batches() {
        let (out, places, late) = through(Order::Time, &(0..50_000).collect::<Vec<_>>(), 1000);
        assert_eq!((out, late), (places, 0));
    }
}
