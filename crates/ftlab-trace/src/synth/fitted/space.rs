//! Where fresh pages lie, and which have been touched.
//!
//! Pages are numbered without gaps. Each of up to 16 regions opens one cluster after the other and fills it from its end to
//! its start, so that a run's end is never by accident where another, later run begins. Behind a cluster some room may be
//! left, which a longer run finds fresh. Regions are spread evenly over the span.

use std::collections::BTreeSet;

use ftlab_core::Stream;

use super::deck::Deck;
use crate::model::{PAGE, Weights};

const REGIONS: u32 = 16;
/// A region holds at least this many pages.
const LEAST_REGION: u32 = 4096;
/// Of the room that is left, the part that is laid between clusters; the rest makes up for ends of clusters left unused.
const BETWEEN: f64 = 0.7;

pub struct Space {
    pages: u32,
    /// Device pages between two regions.
    gap: u64,
    regions: Vec<Region>,
    region_pages: u32,
    /// Pages left behind a cluster for each of its pages.
    between: f64,
    clusters: Deck<u64>,
    /// Ends of clusters that were too small for what came: pages and start.
    scraps: BTreeSet<(u32, u32)>,
    /// Number of the last request over each page, from 1; 0: none.
    last: Vec<u32>,
    touched: u64,
}

struct Region {
    end: u32,
    /// Pages below are in clusters.
    cursor: u32,
    /// The free part of the open cluster.
    free: (u32, u32),
    /// Where the open cluster ends, with what has been added behind it.
    grown: u32,
}

impl Region {
    fn room(&self) -> u32 {
        self.free.1 - self.free.0
    }
}

impl Space {
    /// `wanted` pages to be touched of up to `room` times as many, in `span` bytes.
    pub fn new(wanted: u32, span: u64, clusters: &Weights<u64>, room: f64) -> Self {
        let most = u32::try_from(span / PAGE).unwrap_or(u32::MAX).max(wanted);
        let pages = ((f64::from(wanted) * room.max(1.0)) as u32).clamp(wanted, most);
        let between = (f64::from(pages) / f64::from(wanted) - 1.0) * BETWEEN;
        let count = (pages / LEAST_REGION).clamp(1, REGIONS);
        let region_pages = pages.div_ceil(count);
        let region = |number: u32| {
            let start = (number * region_pages).min(pages);
            Region {
                end: start.saturating_add(region_pages).min(pages),
                cursor: start,
                free: (start, start),
                grown: start,
            }
        };
        Space {
            pages,
            between,
            gap: (span / PAGE).saturating_sub(u64::from(pages)) / u64::from(count - 1).max(1),
            regions: (0..count).map(region).collect(),
            region_pages,
            clusters: Deck::of(clusters),
            scraps: BTreeSet::new(),
            last: vec![0; pages as usize],
            touched: 0,
        }
    }

    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Pages touched so far.
    pub fn touched(&self) -> u64 {
        self.touched
    }

    /// A place of which `fresh` pages, or as many as are at hand, are fresh; `pages` may lie over touched ones behind them.
    /// `None`: there are no fresh pages left.
    pub fn fresh(&mut self, pages: u32, fresh: u32, random: &mut Stream) -> Option<u32> {
        if random.next_u64() >> 63 == 0
            && let Some(&scrap) = self.scraps.range((fresh, 0)..).next()
        {
            return Some(self.cut(scrap, fresh));
        }
        let count = self.regions.len();
        let first = random.below(count as u64) as usize;
        for at in (first..count).chain(0..first) {
            if self.regions[at].room() < fresh {
                self.open(at, pages, random);
            }
            let region = &mut self.regions[at];
            if region.room() >= fresh {
                region.free.1 -= fresh;
                return Some(region.free.1);
            }
        }
        // All regions are full: the end of a cluster, large enough if there is one.
        let fits = self.scraps.range((fresh, 0)..).next();
        let scrap = *fits.or_else(|| self.scraps.last())?;
        Some(self.cut(scrap, fresh))
    }

    /// Takes `fresh` pages, or all, from the end of a scrap.
    fn cut(&mut self, (free, start): (u32, u32), fresh: u32) -> u32 {
        self.scraps.remove(&(free, start));
        let left = free.saturating_sub(fresh);
        if left > 0 {
            self.scraps.insert((left, start));
        }
        start + left
    }

    /// Opens the next cluster of a region, if it has room for one of `pages`.
    fn open(&mut self, at: usize, pages: u32, random: &mut Stream) {
        let region = &mut self.regions[at];
        if region.end - region.cursor < pages.min(self.region_pages) {
            return;
        }
        if region.room() > 0 {
            self.scraps.insert((region.room(), region.free.0));
        }
        let drawn = self.clusters.draw_from(u64::from(pages), random).unwrap_or(1);
        let length = u32::try_from(drawn).unwrap_or(u32::MAX).max(pages);
        let end = region.cursor.saturating_add(length).min(region.end);
        region.free = (region.cursor, end);
        region.grown = end;
        // Runs longer than those that the cluster was opened for reach into the gap behind it.
        let gap = (f64::from(end - region.cursor) * self.between) as u32;
        region.cursor = end.saturating_add(gap).min(region.end);
    }

    /// A place whose first page ends the newest cluster of a region and whose others are fresh. `None`: no cluster can grow.
    pub fn extend(&mut self, pages: u32, random: &mut Stream) -> Option<u32> {
        let at = random.below(self.regions.len() as u64) as usize;
        let region = &mut self.regions[at];
        let (start, end) = (region.grown.checked_sub(1)?, region.grown.saturating_add(pages - 1));
        if end > region.end || self.last[start as usize] == 0 {
            return None;
        }
        region.grown = end;
        region.cursor = region.cursor.max(end);
        Some(start)
    }

    /// Whether `pages` pages from `page` on lie in its cluster.
    pub fn holds(&self, page: u32, pages: u32) -> bool {
        pages <= 1 || self.place(page, pages).0 == page
    }

    /// A page drawn evenly.
    pub fn any(&self, random: &mut Stream) -> u32 {
        random.below(u64::from(self.pages)) as u32
    }

    /// Number of the last request over `page`, 0 if there was none.
    pub fn last(&self, page: u32) -> u32 {
        self.last.get(page as usize).copied().unwrap_or(0)
    }

    /// Notes that request `number` covers `pages` from `start`.
    #[inline]
    pub fn touch(&mut self, start: u32, pages: u32, number: u32) {
        let end = start.saturating_add(pages).min(self.pages);
        for last in &mut self.last[start as usize..end as usize] {
            self.touched += u64::from(*last == 0);
            *last = number;
        }
    }

    /// The start of `pages` pages at or before `page` that stay in its region if it is large enough, and its place on the
    /// device in pages.
    #[inline]
    pub fn place(&self, page: u32, pages: u32) -> (u32, u64) {
        let number = page / self.region_pages;
        let start = number * self.region_pages;
        let end = start.saturating_add(self.region_pages).min(self.pages);
        let page = page.min(end.saturating_sub(pages)).max(start);
        (page, u64::from(page) + u64::from(number) * self.gap)
    }
}
