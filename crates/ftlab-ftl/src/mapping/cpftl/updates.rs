//! How often each translation page's entries are changed: a byte each, all halved when one is full.

/// Updates between two looks at where the most frequent pages begin.
const INTERVAL: u32 = 1024;

#[derive(Clone, Debug)]
pub struct UpdateTable {
    counts: Vec<u8>,
    /// Pages with each count.
    histogram: [u32; 256],
    /// Below 1: this share of the pages is frequent; else pages of at least so many updates.
    frequent: f64,
    /// The least count of a frequent page.
    least: u32,
    since: u32,
}

impl UpdateTable {
    pub fn new(pages: u32, frequent: f64) -> Self {
        let mut table = UpdateTable {
            counts: vec![0; pages as usize],
            histogram: [0; 256],
            frequent,
            least: if frequent < 1.0 { 1 } else { frequent as u32 },
            since: 0,
        };
        table.clear();
        table
    }

    /// Bytes of the drive's memory.
    pub fn bytes(&self) -> u64 {
        self.counts.len() as u64
    }

    pub fn is_frequent(&self, page: u32) -> bool {
        u32::from(self.counts[page as usize]) >= self.least
    }

    pub fn count(&mut self, page: u32) {
        if self.counts[page as usize] == u8::MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            let old = std::mem::replace(&mut self.histogram, [0; 256]);
            (0..256).for_each(|count| self.histogram[count / 2] += old[count]);
        }
        let count = &mut self.counts[page as usize];
        self.histogram[usize::from(*count)] -= 1;
        *count += 1;
        self.histogram[usize::from(*count)] += 1;
        self.since += 1;
        if self.since >= INTERVAL && self.frequent < 1.0 {
            self.since = 0;
            self.set_least();
        }
    }

    /// The least count that no more than the wanted share of the pages has; at least 1.
    fn set_least(&mut self) {
        let most = (self.frequent * self.counts.len() as f64).ceil() as u32;
        let mut above = 0;
        self.least = 256;
        while self.least > 1 && above + self.histogram[self.least as usize - 1] <= most {
            self.least -= 1;
            above += self.histogram[self.least as usize];
        }
    }

    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.histogram = [0; 256];
        self.histogram[0] = self.counts.len() as u32;
        self.since = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_share_is_frequent() {
        let mut table = UpdateTable::new(100, 0.05);
        // Pages 0 to 4: 100 updates each; 5 to 99: 5 or 6. Counted in rounds, so that the last look sees nearly all.
        for round in 0..100 {
            (0..5).for_each(|page| table.count(page));
            if round % 19 == 0 {
                (5..100).for_each(|page| table.count(page));
            }
        }
        let frequent: Vec<u32> = (0..100).filter(|&page| table.is_frequent(page)).collect();
        assert_eq!(frequent, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_full_count_halves_all() {
        let mut table = UpdateTable::new(2, 10.0);
        (0..20).for_each(|_| table.count(1));
        (0..256).for_each(|_| table.count(0));
        // At the 256th update of page 0: 255 and 20 become 127 and 10, and page 0 counts on.
        assert_eq!((table.counts[0], table.counts[1]), (128, 10));
        assert!(table.is_frequent(1));
        assert_eq!((table.histogram[128], table.histogram[10]), (1, 1));
    }
}
