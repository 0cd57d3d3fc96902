//! A short list in order, whose entries nearly always come at the end and go from the front.

/// Entries lie side by side; those that went from the front leave a gap there, which is closed now and then.
#[derive(Debug)]
pub struct Ordered<T> {
    items: Vec<T>,
    start: usize,
}

/// A gap that is worth moving the entries for.
const GAP: usize = 64;

impl<T: Copy> Ordered<T> {
    pub fn new() -> Self {
        Ordered {
            items: Vec::new(),
            start: 0,
        }
    }

    #[inline]
    pub fn items(&self) -> &[T] {
        &self.items[self.start..]
    }

    #[inline]
    pub fn first(&self) -> Option<&T> {
        self.items.get(self.start)
    }

    /// Puts an entry behind all others but those at the end for which `is_later` holds; its index.
    #[inline]
    pub fn insert(&mut self, item: T, is_later: impl Fn(&T) -> bool) -> usize {
        let mut at = self.items.len();
        while at > self.start && is_later(&self.items[at - 1]) {
            at -= 1;
        }
        if at == self.items.len() {
            self.items.push(item);
        } else {
            self.items.insert(at, item);
        }
        at - self.start
    }

    /// Takes an entry out.
    #[inline]
    pub fn remove(&mut self, index: usize) -> T {
        let at = self.start + index;
        let taken = self.items[at];
        if index > 0 {
            self.items.copy_within(self.start..at, self.start + 1);
        }
        self.start += 1;
        if self.start == self.items.len() {
            self.items.clear();
            self.start = 0;
        } else if self.start == GAP {
            self.items.drain(..GAP);
            self.start = 0;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that come and go at random, beside a list that is sorted each time; equal ones stay in the order in which they came.
    #[test]
    fn it_is_a_sorted_list() {
        let mut random = ftlab_core::Stream::new(1, "ordered");
        let mut ordered = Ordered::new();
        let mut plain: Vec<(u64, u64)> = Vec::new();
        for index in 0..5000 {
            if random.below(100) < 52 {
                let item = (index / 10 + random.below(4), index);
                let at = ordered.insert(item, |other| other.0 > item.0);
                plain.push(item);
                plain.sort_by_key(|item| item.0);
                assert_eq!(plain[at], item);
            } else if !plain.is_empty() {
                let at = random.below(plain.len().min(3) as u64) as usize;
                assert_eq!(ordered.remove(at), plain.remove(at));
            }
            assert_eq!(ordered.items(), plain);
            assert_eq!(ordered.first(), plain.first());
        }
    }
}
