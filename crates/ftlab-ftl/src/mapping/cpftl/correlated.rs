//! Correlated translation pages: what each holds, and what became of it since it was programmed.
//!
//! A page holds groups: a key and its members, each LPN with the entry that it had when the page was programmed, 8 bytes.
//! A group lies in one page; one longer than a page becomes several groups of the same key. Unmapped LPNs are left out.

use super::super::RecordView;

/// Bytes of an LPN and its entry.
pub const PAIR_BYTES: u32 = 8;
const NOT_HELD: u32 = u32::MAX;

/// All pages of a set, numbered by descending support.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// LPNs group after group, the key first, and the entry of each as the page holds it.
    lpns: Vec<u32>,
    entries: Vec<u32>,
    /// Where each group begins in `lpns`; one more at the end.
    groups: Vec<u32>,
    page_of_group: Vec<u32>,
    /// (LPN, place in `lpns`), by LPN.
    index: Vec<(u32, u32)>,
    /// (LPN is in the set), a bit each.
    covered: Vec<u64>,
    pages: Vec<Page>,
    live: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Groups `first..end`.
    first: u32,
    end: u32,
    pub live: bool,
    /// Smallest and largest LPN held.
    pub least: u32,
    pub most: u32,
    pub loads: u32,
    pub hits: u32,
}

impl Pages {
    /// Packs groups (key first), best first, into pages of `room` LPNs, at least 2. LPNs are below `units`.
    pub fn pack(groups: &[Vec<u32>], room: u32, units: u32) -> Self {
        let room = room as usize;
        let mut pages = Pages {
            covered: vec![0; units.div_ceil(64) as usize],
            ..Pages::default()
        };
        let mut used = room;
        for group in groups.iter().filter(|group| group.len() > 1) {
            for members in group[1..].chunks(room - 1) {
                if used + 1 + members.len() > room {
                    pages.pages.push(Page {
                        first: pages.groups.len() as u32,
                        end: pages.groups.len() as u32,
                        live: false,
                        least: 0,
                        most: 0,
                        loads: 0,
                        hits: 0,
                    });
                    used = 0;
                }
                pages.groups.push(pages.lpns.len() as u32);
                pages.page_of_group.push(pages.pages.len() as u32 - 1);
                pages.lpns.push(group[0]);
                pages.lpns.extend_from_slice(members);
                used += 1 + members.len();
                if let Some(page) = pages.pages.last_mut() {
                    page.end = pages.groups.len() as u32;
                }
            }
        }
        pages.finish();
        pages
    }

    /// Keeps the first `count` pages.
    pub fn truncate(&mut self, count: usize) {
        if count >= self.pages.len() {
            return;
        }
        self.pages.truncate(count);
        let groups = self.pages.last().map_or(0, |page| page.end) as usize;
        self.groups.pop();
        self.lpns
            .truncate(self.groups.get(groups).map_or(self.lpns.len(), |&start| start as usize));
        self.groups.truncate(groups);
        self.page_of_group.truncate(groups);
        self.finish();
    }

    fn finish(&mut self) {
        self.groups.push(self.lpns.len() as u32);
        self.entries = vec![NOT_HELD; self.lpns.len()];
        self.index = self.lpns.iter().copied().zip(0..).collect();
        self.index.sort_unstable();
        self.covered.fill(0);
        for &lpn in &self.lpns {
            self.covered[lpn as usize / 64] |= 1 << (lpn % 64);
        }
    }

    pub fn len(&self) -> usize {
        self.pages.len()
    }

    pub fn live(&self) -> u32 {
        self.live
    }

    pub fn page(&self, page: u32) -> &Page {
        &self.pages[page as usize]
    }

    pub fn page_mut(&mut self, page: u32) -> &mut Page {
        &mut self.pages[page as usize]
    }

    /// The most LPNs, each counted once, that a page holds.
    pub fn most_lpns(&self) -> u32 {
        let most = (0..self.pages.len() as u32).map(|page| {
            let mut lpns: Vec<u32> = self.lpns[self.places(page)].to_vec();
            lpns.sort_unstable();
            lpns.dedup();
            lpns.len() as u32
        });
        most.max().unwrap_or(0)
    }

    fn places(&self, page: u32) -> std::ops::Range<usize> {
        let page = &self.pages[page as usize];
        self.groups[page.first as usize] as usize..self.groups[page.end as usize] as usize
    }

    /// Fills a page with the entries of now. False if fewer than two of its LPNs are mapped: it is not worth its place.
    pub fn fill(&mut self, page: u32, record: RecordView<'_>) -> bool {
        let places = self.places(page);
        let mut held = 0;
        let (mut least, mut most) = (u32::MAX, 0);
        for place in places {
            let lpn = self.lpns[place];
            let entry = record.entries[lpn as usize];
            self.entries[place] = entry;
            if entry != NOT_HELD {
                held += 1;
                (least, most) = (least.min(lpn), most.max(lpn));
            }
        }
        if held < 2 {
            return false;
        }
        let page = &mut self.pages[page as usize];
        self.live += u32::from(!page.live);
        *page = Page {
            live: true,
            least,
            most,
            loads: 0,
            hits: 0,
            ..*page
        };
        true
    }

    /// Gives a page up.
    pub fn remove(&mut self, page: u32) {
        let page = &mut self.pages[page as usize];
        self.live -= u32::from(page.live);
        page.live = false;
    }

    pub fn remove_all(&mut self) {
        (0..self.pages.len() as u32).for_each(|page| self.remove(page));
    }

    /// LPNs that a live page holds.
    pub fn lpns(&self, page: u32) -> impl Iterator<Item = u32> {
        self.places(page)
            .filter(|&place| self.entries[place] != NOT_HELD)
            .map(|place| self.lpns[place])
    }

    /// Places of `lpn` in live pages that hold it, page by page in no order.
    fn found(&self, lpn: u32) -> impl Iterator<Item = (u32, usize)> {
        let covered = self.live > 0 && self.covered[lpn as usize / 64] >> (lpn % 64) & 1 == 1;
        let start = match covered {
            true => self.index.partition_point(|&(other, _)| other < lpn),
            false => self.index.len(),
        };
        let same = self.index[start..].iter().take_while(move |&&(other, _)| other == lpn);
        same.filter_map(|&(_, place)| {
            let group = self.groups.partition_point(|&first| first <= place) - 1;
            let page = self.page_of_group[group];
            let held = self.pages[page as usize].live && self.entries[place as usize] != NOT_HELD;
            held.then_some((page, group))
        })
    }

    /// Live pages that hold `lpn`, in ascending order; a page once for each of its groups with it.
    pub fn with(&self, lpn: u32) -> impl Iterator<Item = u32> {
        // Places grow with groups and groups with pages, so the index has them in order.
        self.found(lpn).map(|(page, _)| page)
    }

    pub fn holds(&self, page: u32, lpn: u32) -> bool {
        self.with(lpn).any(|other| other == page)
    }

    /// LPNs and entries of the groups of `page` with `lpn`, key or member; or, `keyed`, only of those whose key it is.
    pub fn correlated(&self, page: u32, lpn: u32, keyed: bool, out: &mut Vec<(u32, u32)>) {
        for (_, group) in self.found(lpn).filter(|&(other, _)| other == page) {
            let places = self.groups[group] as usize..self.groups[group + 1] as usize;
            if keyed && self.lpns[places.start] != lpn {
                continue;
            }
            let held = places.filter(|&place| self.entries[place] != NOT_HELD);
            out.extend(held.map(|place| (self.lpns[place], self.entries[place])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of 4 LPNs.
    fn pages() -> Pages {
        Pages::pack(
            &[
                vec![1, 9],
                vec![2, 8],
                vec![3, 7, 6],
                vec![9, 5],
                vec![4, 10, 11, 12, 13],
            ],
            4,
            64,
        )
    }

    fn filled(pages: &mut Pages, entries: &[u32]) -> Vec<bool> {
        let record = RecordView::of_map(entries, 0);
        (0..pages.len() as u32).map(|page| pages.fill(page, record)).collect()
    }

    #[test]
    fn groups_do_not_straddle_pages_and_a_long_one_is_split() {
        // 1 9 2 8 | 3 7 6 | 9 5 | 4 10 11 12 | 4 13
        let mut pages = pages();
        assert_eq!((pages.len(), pages.most_lpns()), (5, 4));
        let entries: Vec<u32> = (100..164).collect();
        assert_eq!(filled(&mut pages, &entries), [true; 5]);
        assert_eq!(pages.with(9).collect::<Vec<_>>(), [0, 2]);
        assert_eq!((pages.page(1).least, pages.page(1).most), (3, 7));
        let mut out = Vec::new();
        pages.correlated(0, 9, false, &mut out);
        assert_eq!(out, [(1, 101), (9, 109)]);
        // 9 is a member there and a key in page 2.
        out.clear();
        pages.correlated(0, 9, true, &mut out);
        assert_eq!(out, []);
        pages.correlated(2, 9, true, &mut out);
        assert_eq!(out, [(9, 109), (5, 105)]);
        pages.remove(0);
        assert_eq!((pages.live(), pages.holds(0, 9), pages.holds(2, 9)), (4, false, true));
        pages.truncate(2);
        assert_eq!((pages.len(), pages.lpns.len(), pages.holds(1, 5)), (2, 7, false));
    }

    #[test]
    fn what_is_not_mapped_is_left_out() {
        let mut pages = pages();
        let mut entries = vec![u32::MAX; 64];
        (entries[1], entries[9], entries[3]) = (7, 8, 9);
        assert_eq!(filled(&mut pages, &entries), [true, false, false, false, false]);
        assert_eq!((pages.holds(0, 1), pages.holds(0, 2)), (true, false));
        assert_eq!(pages.lpns(0).collect::<Vec<_>>(), [1, 9]);
    }
}
