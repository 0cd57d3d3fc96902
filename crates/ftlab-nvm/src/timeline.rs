//! How busy each bank is over time, in at most 64 windows of one width, which doubles as the run grows.

use crate::Ps;

const WINDOWS: usize = 64;

#[derive(Clone, Debug)]
pub struct Timeline {
    /// Windows are `1 << shift` picoseconds wide.
    shift: u32,
    /// Busy picoseconds: bank by bank, window by window.
    cells: Vec<[Ps; WINDOWS]>,
}

impl Timeline {
    pub fn new(banks: usize) -> Self {
        Timeline {
            shift: 16,
            cells: vec![[0; WINDOWS]; banks],
        }
    }

    #[inline]
    pub fn add(&mut self, bank: u32, from: Ps, to: Ps) {
        self.each_window(bank, from, to, |cell, part| *cell += part);
    }

    /// Takes back what was added.
    pub fn take_back(&mut self, bank: u32, from: Ps, to: Ps) {
        self.each_window(bank, from, to, |cell, part| *cell -= part);
    }

    #[inline]
    fn each_window(&mut self, bank: u32, from: Ps, to: Ps, change: impl Fn(&mut Ps, Ps)) {
        while to >> self.shift >= WINDOWS as u64 {
            self.double();
        }
        let cells = &mut self.cells[bank as usize];
        let (mut at, end) = (from, to);
        while at < end {
            let window = at >> self.shift;
            let until = end.min((window + 1) << self.shift);
            change(&mut cells[window as usize], until - at);
            at = until;
        }
    }

    fn double(&mut self) {
        self.shift += 1;
        for cells in &mut self.cells {
            for window in 0..WINDOWS {
                cells[window] = if window < WINDOWS / 2 {
                    cells[2 * window] + cells[2 * window + 1]
                } else {
                    0
                };
            }
        }
    }

    pub fn window_ns(&self) -> f64 {
        (1u64 << self.shift) as f64 / 1000.0
    }

    /// Busy shares of each bank in each window up to `end`.
    pub fn shares(&self, end: Ps) -> Vec<Vec<f64>> {
        let width = 1u64 << self.shift;
        let windows = (end.div_ceil(width) as usize).clamp(1, WINDOWS);
        let share = |(window, &busy): (usize, &Ps)| {
            let length = width.min(end.saturating_sub(window as u64 * width)).max(1);
            busy as f64 / length as f64
        };
        let of = |cells: &[Ps; WINDOWS]| cells[..windows].iter().enumerate().map(share).collect();
        self.cells.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two windows of 65,536 ps: an interval over their border counts in both, and doubling keeps the sum.
    #[test]
    fn an_interval_counts_where_it_lies() {
        let mut timeline = Timeline::new(1);
        timeline.add(0, 65_536 - 100, 65_536 + 200);
        assert_eq!(timeline.cells[0][..2], [100, 200]);
        timeline.add(0, 64 * 65_536, 64 * 65_536 + 7);
        assert_eq!((timeline.cells[0][0], timeline.cells[0][32]), (300, 7));
        timeline.take_back(0, 65_536, 65_536 + 200);
        assert_eq!((timeline.cells[0][0], timeline.cells[0][32]), (100, 7));
    }
}
