//! What lies where: the content of each unit of the device, as far as it is known.
//!
//! A unit is what one content id stands for: 4 KiB from anywhere on, or less. Whatever is written over a part of it ends it.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

/// Bytes of a page, as a shift.
const PAGE_SHIFT: u32 = 12;
const PAGE: u64 = 1 << PAGE_SHIFT;

/// Bytes of a volume: `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub volume: u16,
    pub start: u64,
    pub end: u64,
}

impl Span {
    fn first_page(&self) -> u64 {
        self.start >> PAGE_SHIFT
    }

    fn last_page(&self) -> u64 {
        self.end.saturating_sub(1).max(self.start) >> PAGE_SHIFT
    }

    fn key(&self, page: u64) -> u64 {
        (u64::from(self.volume) << 48).wrapping_add(page)
    }
}

/// A unit that begins in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    start: u16,
    length: u16,
    value: u32,
}

impl Held {
    /// Its bytes, when its page is `page`.
    fn bytes(&self, page: u64) -> (u64, u64) {
        let start = (page << PAGE_SHIFT) + u64::from(self.start);
        (start, start + u64::from(self.length))
    }
}

#[derive(Default)]
pub struct Live {
    /// The unit that began in each page first.
    pages: FxHashMap<u64, Held>,
    /// Further units of pages in which several begin.
    more: FxHashMap<u64, Vec<Held>>,
    in_more: usize,
    /// Whether any unit ever reached into the next page.
    crossing: bool,
}

impl Live {
    /// Units whose content is known.
    pub fn len(&self) -> usize {
        self.pages.len() + self.in_more
    }

    /// Whether just these bytes hold this value.
    pub fn holds(&self, span: Span, value: u32) -> bool {
        let (key, held) = (span.key(span.first_page()), Self::held(span, value));
        self.pages.get(&key) == Some(&held) || self.more.get(&key).is_some_and(|units| units.contains(&held))
    }

    /// These bytes, at most 4 KiB in which nothing lies, hold a value from now on.
    pub fn put(&mut self, span: Span, value: u32) {
        let (key, held) = (span.key(span.first_page()), Self::held(span, value));
        self.crossing |= u64::from(held.start) + u64::from(held.length) > PAGE;
        if let Entry::Vacant(slot) = self.pages.entry(key) {
            slot.insert(held);
        } else {
            self.more.entry(key).or_default().push(held);
            self.in_more += 1;
        }
    }

    /// Something is written over these bytes: `ended` is told the value of each unit that loses any of them.
    pub fn overwrite(&mut self, span: Span, ended: impl FnMut(u32)) {
        self.end(span, |start, end| start < span.end && end > span.start, ended);
    }

    /// These bytes are trimmed. A unit of which only a part is trimmed stays: drives ignore such parts.
    pub fn trim(&mut self, span: Span, ended: impl FnMut(u32)) {
        self.end(span, |start, end| start >= span.start && end <= span.end, ended);
    }

    /// Forgets the units whose value `keep` refuses.
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        self.pages.retain(|_, held| keep(held.value));
        let mut in_more = 0;
        self.more.retain(|_, units| {
            units.retain(|held| keep(held.value));
            in_more += units.len();
            !units.is_empty()
        });
        self.in_more = in_more;
    }

    fn held(span: Span, value: u32) -> Held {
        Held {
            start: (span.start % PAGE) as u16,
            length: (span.end - span.start) as u16,
            value,
        }
    }

    fn end(&mut self, span: Span, gone: impl Fn(u64, u64) -> bool, mut ended: impl FnMut(u32)) {
        if span.end <= span.start || self.len() == 0 {
            return;
        }
        let first = span.first_page().saturating_sub(u64::from(self.crossing));
        let last = span.last_page();
        if last - first >= self.len() as u64 {
            self.end_among_all(span, &gone, &mut ended);
            return;
        }
        for page in first..=last {
            let key = span.key(page);
            if let Some(held) = self.pages.get(&key).copied() {
                let (start, end) = held.bytes(page);
                if gone(start, end) {
                    ended(held.value);
                    self.pages.remove(&key);
                }
            }
            if self.in_more > 0
                && let Some(units) = self.more.get_mut(&key)
            {
                let before = units.len();
                units.retain(|held| Self::stays(*held, page, &gone, &mut ended));
                self.in_more -= before - units.len();
                if units.is_empty() {
                    self.more.remove(&key);
                }
            }
        }
    }

    /// The same by a look at every unit: quicker for a range of more pages than there are units.
    fn end_among_all(&mut self, span: Span, gone: &impl Fn(u64, u64) -> bool, ended: &mut impl FnMut(u32)) {
        let volume = u64::from(span.volume);
        let page_of = |key: u64| (key >> 48 == volume).then_some(key & ((1 << 48) - 1));
        self.pages
            .retain(|&key, held| page_of(key).is_none_or(|page| Self::stays(*held, page, gone, ended)));
        let mut in_more = 0;
        self.more.retain(|&key, units| {
            if let Some(page) = page_of(key) {
                units.retain(|held| Self::stays(*held, page, gone, ended));
            }
            in_more += units.len();
            !units.is_empty()
        });
        self.in_more = in_more;
    }

    fn stays(held: Held, page: u64, gone: &impl Fn(u64, u64) -> bool, ended: &mut impl FnMut(u32)) -> bool {
        let (start, end) = held.bytes(page);
        let ends = gone(start, end);
        if ends {
            ended(held.value);
        }
        !ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span { volume: 1, start, end }
    }

    fn ended(of: impl FnOnce(&mut Live, &mut dyn FnMut(u32)), live: &mut Live) -> Vec<u32> {
        let mut values = Vec::new();
        of(live, &mut |value| values.push(value));
        values.sort_unstable();
        values
    }

    #[test]
    fn units_of_sectors_end_by_what_touches_them() {
        let mut live = Live::default();
        // Sectors 0 and 1 of a page apart, 4 KiB from byte 512 of page 2 on, and another volume.
        live.put(span(0, 512), 1);
        live.put(span(512, 1024), 2);
        live.put(span(8192 + 512, 8192 + 4608), 3);
        let other = Span {
            volume: 2,
            start: 0,
            end: 4096,
        };
        live.put(other, 4);
        assert_eq!(live.len(), 4);
        assert!(live.holds(span(512, 1024), 2) && !live.holds(span(512, 1023), 2) && !live.holds(span(0, 512), 2));
        assert_eq!(ended(|live, f| live.overwrite(span(1023, 1024), f), &mut live), [2]);
        // The tail of the unit lies in page 3.
        assert_eq!(
            ended(|live, f| live.overwrite(span(3 * 4096, 3 * 4096 + 512), f), &mut live),
            [3]
        );
        assert_eq!(
            ended(|live, f| live.overwrite(span(512, 4096), f), &mut live),
            [0u32; 0]
        );
        assert_eq!(live.len(), 2);
        assert_eq!(ended(|live, f| live.overwrite(span(0, u64::MAX), f), &mut live), [1]);
        assert!(live.holds(other, 4));
    }

    #[test]
    fn a_trim_of_a_part_leaves_the_unit() {
        let mut live = Live::default();
        for page in 0..100u64 {
            live.put(span(page * 4096, page * 4096 + 4096), page as u32);
        }
        assert_eq!(
            ended(|live, f| live.trim(span(4096, 4096 * 3 + 1), f), &mut live),
            [1, 2]
        );
        assert_eq!(ended(|live, f| live.trim(span(1, u64::MAX), f), &mut live).len(), 97);
        assert_eq!(ended(|live, f| live.trim(span(0, 0), f), &mut live), [0u32; 0]);
        assert_eq!(live.len(), 1);
        live.retain(|value| value != 0);
        assert_eq!(live.len(), 0);
    }
}
