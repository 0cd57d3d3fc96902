//! Dies, or channels, that have something to decide at the present instant.

use super::table::Table;

/// Numbers below a limit, each at most once, of which the last comes out first.
pub(super) struct Marks {
    /// The marked ones lie in front; there is room for all.
    numbers: Table<u32>,
    count: usize,
}

impl Marks {
    pub fn new(limit: usize) -> Self {
        Marks {
            numbers: (0..limit).map(|_| 0).collect(),
            count: 0,
        }
    }

    #[inline(always)]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The only one, if there is one alone.
    #[inline(always)]
    pub fn only(&self) -> Option<u32> {
        (self.count == 1).then(|| self.numbers[0])
    }

    /// Marks a number that is not marked.
    #[inline(always)]
    pub fn push(&mut self, number: u32) {
        self.numbers[self.count] = number;
        self.count += 1;
    }

    #[inline(always)]
    pub fn pop(&mut self) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        self.count -= 1;
        Some(self.numbers[self.count])
    }

    #[inline(always)]
    pub fn clear(&mut self) {
        self.count = 0;
    }
}
