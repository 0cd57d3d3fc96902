//! Adaptive removal as published: a correlated page whose entries are hit less often than those of regular loads is given up.
//!
//! Both are measured as hits per load: of a correlated page the hits on entries that it brought beside the wanted one, of the
//! regular cache all hits on its clean entries and on those that it holds dirty.

use super::correlated::Page;

/// The rule of removal.
#[derive(Clone, Copy, Debug)]
pub struct Quality {
    pub min_loads: u32,
    /// Hits per load below which a page goes; updated every `window` look-ups if it `follows` the regular loads.
    pub threshold: f64,
    pub floor: f64,
    pub follows: bool,
    pub window: u64,
    until: u64,
    /// Regular loads, and hits on what they brought, when the window began.
    loads: u64,
    hits: u64,
}

impl Quality {
    pub fn new(min_loads: u32, floor: f64, follows: bool, window: u64) -> Self {
        Quality {
            min_loads,
            threshold: floor,
            floor,
            follows,
            window,
            until: window,
            loads: 0,
            hits: 0,
        }
    }

    /// So many look-ups, regular loads and hits on entries that these brought have there been.
    #[inline]
    pub fn observe(&mut self, look_ups: u64, loads: u64, hits: u64) {
        if look_ups < self.until {
            return;
        }
        self.until = look_ups + self.window;
        let regular = (hits - self.hits) as f64 / (loads - self.loads).max(1) as f64;
        (self.loads, self.hits) = (loads, hits);
        if self.follows {
            self.threshold = regular.max(self.floor);
        }
    }

    pub fn fails(&self, page: &Page) -> bool {
        page.loads >= self.min_loads && f64::from(page.hits) < self.threshold * f64::from(page.loads)
    }
}
