//! Cards dealt without replacement: what was counted comes out exactly as often, in random order.

use ftlab_core::Stream;

use crate::model::{Rows, Weights};

/// Cards of a deck whose weights are not whole numbers.
const SHARES: f64 = 10_000.0;

/// A deck that is shuffled anew when it is empty.
#[derive(Clone, Debug)]
pub struct Deck<T> {
    values: Vec<T>,
    full: Vec<u64>,
    /// Cards left, as a Fenwick tree (Fenwick 1994) over the values.
    tree: Vec<u64>,
    left: u64,
    /// The largest power of two up to the number of values.
    top: usize,
}

impl<T: Copy + Ord> Deck<T> {
    /// Values in ascending order with their weights; empty weights make a deck that deals nothing.
    pub fn new(weights: &[(T, f64)]) -> Self {
        let whole = weights.iter().all(|(_, weight)| weight.fract() == 0.0);
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let cards = |weight: f64| match whole {
            true => weight as u64,
            false => ((weight / total * SHARES).round() as u64).max(1),
        };
        let mut deck = Deck {
            values: weights.iter().map(|(value, _)| *value).collect(),
            full: weights.iter().map(|(_, weight)| cards(*weight)).collect(),
            tree: Vec::new(),
            left: 0,
            top: 1 << weights.len().max(1).ilog2(),
        };
        deck.refill();
        deck
    }

    pub fn of(weights: &Weights<T>) -> Self {
        Deck::new(&weights.0)
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn refill(&mut self) {
        self.tree.clear();
        self.tree.push(0);
        self.tree.extend_from_slice(&self.full);
        for at in 1..self.tree.len() {
            let parent = at + (at & at.wrapping_neg());
            if parent < self.tree.len() {
                self.tree[parent] += self.tree[at];
            }
        }
        self.left = self.full.iter().sum();
    }

    /// The next card; `None` from an empty deck.
    #[inline]
    pub fn draw(&mut self, random: &mut Stream) -> Option<T> {
        match self.values.len() {
            0 => return None,
            1 => return self.values.first().copied(),
            _ => {}
        }
        if self.left == 0 {
            self.refill();
        }
        let rest = random.below(self.left);
        Some(self.take(rest))
    }

    /// Takes out card number `rest` of those left.
    #[inline]
    fn take(&mut self, mut rest: u64) -> T {
        let (mut at, mut step) = (0, self.top);
        while step > 0 {
            let next = at + step;
            if next < self.tree.len() && self.tree[next] <= rest {
                rest -= self.tree[next];
                at = next;
            }
            step /= 2;
        }
        self.remove(at);
        self.values[at]
    }

    /// A card of a value of at least `least`, if there is one left; else any.
    pub fn draw_from(&mut self, least: T, random: &mut Stream) -> Option<T> {
        let first = self.values.partition_point(|value| *value < least);
        let (mut at, mut below) = (first, 0);
        while at > 0 {
            below += self.tree[at];
            at &= at - 1;
        }
        if self.values.len() < 2 || below >= self.left {
            return self.draw(random);
        }
        let rest = below + random.below(self.left - below);
        Some(self.take(rest))
    }

    fn remove(&mut self, index: usize) {
        let mut at = index + 1;
        while at < self.tree.len() {
            self.tree[at] -= 1;
            at += at & at.wrapping_neg();
        }
        self.left -= 1;
    }
}

/// A deck for each row.
#[derive(Clone, Debug)]
pub struct DeckRows<T>(Vec<(u64, Deck<T>)>);

impl<T: Copy + Ord> DeckRows<T> {
    pub fn new(rows: &Rows<T>) -> Self {
        DeckRows(rows.iter().map(|(row, weights)| (*row, Deck::of(weights))).collect())
    }

    /// A card of just this row; `None`: there is no such row.
    #[inline]
    pub fn draw_exactly(&mut self, row: u64, random: &mut Stream) -> Option<T> {
        let at = self.0.binary_search_by_key(&row, |(number, _)| *number).ok()?;
        self.0[at].1.draw(random)
    }

    /// A card of this row, or where there is none of the nearest below, or of the first.
    #[inline]
    pub fn draw(&mut self, row: u64, random: &mut Stream) -> Option<T> {
        let at = self.0.partition_point(|(number, _)| *number <= row).saturating_sub(1);
        self.0.get_mut(at).and_then(|(_, deck)| deck.draw(random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deck_deals_each_card_once_a_round() {
        let mut random = Stream::new(1, "deck");
        for n in 1..40u64 {
            let weights: Vec<(u64, f64)> = (0..n).map(|v| (v, (v % 5 + 1) as f64)).collect();
            let total: u64 = (0..n).map(|v| v % 5 + 1).sum();
            let mut deck = Deck::new(&weights);
            for round in 0..3 {
                let mut seen = vec![0; n as usize];
                for _ in 0..total {
                    seen[deck.draw(&mut random).unwrap() as usize] += 1;
                }
                let expected: Vec<u64> = (0..n).map(|v| v % 5 + 1).collect();
                assert_eq!(seen, expected, "{n} values, round {round}");
            }
        }
    }

    #[test]
    fn shares_become_cards() {
        let mut random = Stream::new(1, "deck");
        let mut deck = Deck::new(&[(1u64, 0.25), (2, 0.75)]);
        let ones = (0..10_000).filter(|_| deck.draw(&mut random) == Some(1)).count();
        assert_eq!(ones, 2500);
        assert_eq!(Deck::<u64>::new(&[]).draw(&mut random), None);
    }
}
