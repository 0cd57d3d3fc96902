//! Projected databases: what follows a sequence in each segment that contains it, as places in the stream or as copies.

use std::ops::Range;

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::meter::{Most, used};

/// A page that is not frequent.
pub(crate) const RARE: u32 = u32::MAX;

/// How a database is projected on a sequence. The result is the same, the memory is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Projection {
    /// Pseudo-projection: a suffix is its place in the stream, 4 bytes a segment.
    #[default]
    Pseudo,
    /// Physical projection: a suffix is a copy of all that lies behind the sequence in its segment, 4 bytes an access. The
    /// suffixes of all sequences of one page are made in one scan (parallel projection) and stay; those of all that continue
    /// one page, while these are extended.
    Physical,
}

/// Copied suffixes, one behind the other.
pub(crate) struct Copies {
    items: Vec<u32>,
    /// Where each ends in `items`.
    ends: Vec<u32>,
}

impl Copies {
    /// Copies these parts of `text`.
    pub(crate) fn of(text: &[u32], suffixes: impl Iterator<Item = Range<usize>> + Clone) -> Result<Self> {
        let (mut number, mut accesses) = (0, 0);
        for suffix in suffixes.clone() {
            number += 1;
            accesses += suffix.len();
        }
        let too_many = || {
            let gib = accesses as f64 * 4.0 / f64::from(1 << 30);
            Error::input(format!(
                "projection physical: the suffixes take {gib:.1} GiB: expected less; mine a part of the trace, or use shorter windows"
            ))
        };
        let (mut items, mut ends): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        if u32::try_from(accesses).is_err() || items.try_reserve_exact(accesses).is_err() {
            return Err(too_many());
        }
        ends.try_reserve_exact(number).map_err(|_| too_many())?;
        for suffix in suffixes {
            items.extend_from_slice(&text[suffix]);
            ends.push(items.len() as u32);
        }
        Ok(Copies { items, ends })
    }

    pub(crate) fn items(&self) -> &[u32] {
        &self.items
    }

    /// Where suffix `i` lies.
    pub(crate) fn suffix(&self, i: usize) -> Range<usize> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        start..self.ends[i] as usize
    }

    /// What follows this place in its suffix.
    pub(crate) fn behind(&self, place: u32) -> Range<usize> {
        let suffix = self.ends.partition_point(|&end| end <= place);
        place as usize + 1..self.ends[suffix] as usize
    }

    pub(crate) fn bytes(&self) -> u64 {
        used(&self.items) + used(&self.ends)
    }
}

/// One step of growth: which pages follow a projected database, and in how many segments.
pub(crate) struct Extension {
    /// Accesses from one page of a sequence to the next, at most.
    gap: usize,
    pub(crate) support: Vec<u32>,
    /// Pages that have one, in order.
    pub(crate) touched: Vec<u32>,
    most_touched: Most,
    /// The round in which a page was last seen, so that a segment counts it once.
    seen: Vec<u32>,
    round: u32,
}

impl Extension {
    pub(crate) fn new(pages: usize, gap: usize) -> Self {
        Extension {
            gap,
            support: vec![0; pages],
            touched: Vec::new(),
            most_touched: Most::default(),
            seen: vec![0; pages],
            round: 0,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        used(&self.support) + self.most_touched.bytes() + used(&self.seen)
    }

    /// Calls with each page that is not `last` and its first place in each of these suffixes, within the gap.
    pub(crate) fn visit(
        &mut self,
        text: &[u32],
        suffixes: impl Iterator<Item = Range<usize>>,
        last: u32,
        mut each: impl FnMut(u32, u32),
    ) {
        for suffix in suffixes {
            if self.round == u32::MAX {
                self.seen.fill(0);
                self.round = 0;
            }
            self.round += 1;
            let end = suffix.end.min(suffix.start + self.gap);
            for (place, &page) in text[suffix.start..end].iter().enumerate() {
                if page != RARE && page != last && self.seen[page as usize] != self.round {
                    self.seen[page as usize] = self.round;
                    each(page, (suffix.start + place) as u32);
                }
            }
        }
    }

    /// Counts the supports of the extensions.
    pub(crate) fn count(&mut self, text: &[u32], suffixes: impl Iterator<Item = Range<usize>>, last: u32) {
        let (mut support, mut touched) = (std::mem::take(&mut self.support), std::mem::take(&mut self.touched));
        self.visit(text, suffixes, last, |page, _| {
            if support[page as usize] == 0 {
                touched.push(page);
            }
            support[page as usize] += 1;
        });
        touched.sort_unstable();
        self.most_touched.see(&touched);
        (self.support, self.touched) = (support, touched);
    }

    pub(crate) fn clear(&mut self) {
        for page in self.touched.drain(..) {
            self.support[page as usize] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_lie_one_behind_the_other() {
        let text = [7, 8, 9, 7];
        // An empty suffix in between, as that of a segment's last page.
        let copies = Copies::of(&text, [1..4, 4..4, 2..4].into_iter()).unwrap();
        assert_eq!(copies.items(), [8, 9, 7, 9, 7]);
        assert_eq!(
            (copies.suffix(0), copies.suffix(1), copies.suffix(2)),
            (0..3, 3..3, 3..5)
        );
        // Behind the 9 of the first, behind the last 7 of the first, behind the 9 of the third.
        assert_eq!(
            (copies.behind(1), copies.behind(2), copies.behind(3)),
            (2..3, 3..3, 4..5)
        );
        // Five accesses and three ends.
        assert_eq!(copies.bytes(), 32);
    }

    #[test]
    fn more_than_can_be_copied_is_refused() {
        let wide = std::iter::repeat_n(0..1 << 30, 4);
        let refused = Copies::of(&[], wide).err().map(|error| error.to_string());
        assert_eq!(
            refused.as_deref(),
            Some(
                "projection physical: the suffixes take 16.0 GiB: expected less; mine a part of the trace, or use shorter windows"
            )
        );
    }
}
