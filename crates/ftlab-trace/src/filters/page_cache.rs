//! The pages of a cache: by number, by recency, and the dirty ones by the time they became dirty.

use rustc_hash::FxHashMap;

use crate::rows;

pub const SECTORS: u64 = 8;
/// End of a list.
const NIL: u32 = u32::MAX;

/// Most pages of a cache.
pub const MOST_PAGES: u64 = NIL as u64 - 1;

/// Pages with least-recently-used order. Nothing is evicted unless asked for.
pub struct PageCache {
    table: FxHashMap<u64, u32>,
    pages: Vec<Page>,
    /// Places in `pages` without a page.
    free: Vec<u32>,
    recent: Ends,
    dirty: Ends,
}

/// Where a page lies while it is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

struct Page {
    number: u64,
    recent: Links,
    dirty: Links,
    sectors: u8,
    writer: Writer,
}

/// Who wrote a page last.
#[derive(Clone, Copy, Default)]
pub struct Writer {
    /// Number of the request.
    pub request: u64,
    pub context: rows::Context,
    pub content: Option<u64>,
}

/// Neighbours in a list.
#[derive(Clone, Copy)]
struct Links {
    older: u32,
    newer: u32,
}

/// Both ends of a list.
#[derive(Clone, Copy)]
struct Ends {
    oldest: u32,
    newest: u32,
}

const NO_LINKS: Links = Links { older: NIL, newer: NIL };
const EMPTY: Ends = Ends {
    oldest: NIL,
    newest: NIL,
};

impl PageCache {
    pub fn new() -> Self {
        PageCache {
            table: FxHashMap::default(),
            pages: Vec::new(),
            free: Vec::new(),
            recent: EMPTY,
            dirty: EMPTY,
        }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    #[inline]
    pub fn find(&self, number: u64) -> Option<Place> {
        self.table.get(&number).map(|&at| Place(at))
    }

    /// Cached pages in `first..past`, ascending, in time of the shorter of the range and the cache.
    pub fn within(&self, first: u64, past: u64) -> Vec<u64> {
        if past - first <= self.table.len() as u64 {
            return (first..past).filter(|number| self.table.contains_key(number)).collect();
        }
        let mut found = Vec::new();
        let mut at = self.recent.oldest;
        while at != NIL {
            let page = &self.pages[at as usize];
            if (first..past).contains(&page.number) {
                found.push(page.number);
            }
            at = page.recent.newer;
        }
        found.sort_unstable();
        found
    }

    /// Makes a page the most recent.
    #[inline]
    pub fn touch(&mut self, Place(at): Place) {
        if self.recent.newest != at {
            unlink(&mut self.pages, &mut self.recent, at, |page| &mut page.recent);
            link(&mut self.pages, &mut self.recent, at, |page| &mut page.recent);
        }
    }

    /// Enters page `number`, which must not be there, as the most recent and clean.
    pub fn insert(&mut self, number: u64) -> Place {
        let page = Page {
            number,
            recent: NO_LINKS,
            dirty: NO_LINKS,
            sectors: 0,
            writer: Writer::default(),
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.pages[at as usize] = page;
                at
            }
            None => {
                self.pages.push(page);
                self.pages.len() as u32 - 1
            }
        };
        self.table.insert(number, at);
        link(&mut self.pages, &mut self.recent, at, |page| &mut page.recent);
        Place(at)
    }

    /// Forgets a page, dirty or not.
    pub fn remove(&mut self, place: Place) {
        self.set_clean(place, u8::MAX);
        self.table.remove(&self.pages[place.0 as usize].number);
        unlink(&mut self.pages, &mut self.recent, place.0, |page| &mut page.recent);
        self.free.push(place.0);
    }

    /// The page that was not used for the longest time.
    pub fn oldest(&self) -> Option<Place> {
        (self.recent.oldest != NIL).then_some(Place(self.recent.oldest))
    }

    /// The page that has been dirty for the longest time.
    pub fn oldest_dirty(&self) -> Option<Place> {
        (self.dirty.oldest != NIL).then_some(Place(self.dirty.oldest))
    }

    pub fn number(&self, Place(at): Place) -> u64 {
        self.pages[at as usize].number
    }

    /// A bit per dirty sector.
    #[inline]
    pub fn dirty_sectors(&self, Place(at): Place) -> u8 {
        self.pages[at as usize].sectors
    }

    /// Of a dirty page.
    #[inline]
    pub fn writer(&self, Place(at): Place) -> &Writer {
        &self.pages[at as usize].writer
    }

    /// Marks sectors, at least one, as written by `writer`.
    pub fn set_dirty(&mut self, Place(at): Place, sectors: u8, writer: Writer) {
        if self.pages[at as usize].sectors == 0 {
            link(&mut self.pages, &mut self.dirty, at, |page| &mut page.dirty);
        }
        let page = &mut self.pages[at as usize];
        page.sectors |= sectors;
        page.writer = writer;
    }

    pub fn set_clean(&mut self, Place(at): Place, sectors: u8) {
        let page = &mut self.pages[at as usize];
        let was_dirty = page.sectors != 0;
        page.sectors &= !sectors;
        if was_dirty && page.sectors == 0 {
            unlink(&mut self.pages, &mut self.dirty, at, |page| &mut page.dirty);
        }
    }
}

/// Puts a page at the newest end of a list.
fn link(pages: &mut [Page], ends: &mut Ends, at: u32, links: fn(&mut Page) -> &mut Links) {
    *links(&mut pages[at as usize]) = Links {
        older: ends.newest,
        newer: NIL,
    };
    match ends.newest {
        NIL => ends.oldest = at,
        newest => links(&mut pages[newest as usize]).newer = at,
    }
    ends.newest = at;
}

fn unlink(pages: &mut [Page], ends: &mut Ends, at: u32, links: fn(&mut Page) -> &mut Links) {
    let Links { older, newer } = *links(&mut pages[at as usize]);
    match older {
        NIL => ends.oldest = newer,
        older => links(&mut pages[older as usize]).newer = newer,
    }
    match newer {
        NIL => ends.newest = older,
        newer => links(&mut pages[newer as usize]).older = older,
    }
}
