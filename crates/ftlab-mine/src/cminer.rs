//! C-Miner: frequent sequences of pages within gaps, the miner that clustered mining is compared with.
//!
//! # Model
//! The stream is cut into segments that do not overlap. A page is frequent if enough segments contain it. Depth first: a
//! sequence s ends, in each segment that contains it, at one place (for one page: its first place in the segment); s.y is
//! contained where the first y behind that place is at most `gap` accesses away, and y is not the last page of s. Support
//! is counted in segments. Sequences have at most `length` pages (2 or 3); a sequence is closed if no longer one that
//! contains it has the same support. The set holds all ordered pairs of the pages of closed sequences, each with its best
//! support; a page's pair with itself is no pair.
//! # Parameters      see [`CMiner`]
//! # Not modelled    rules and their confidence; sequences of more than three pages; the mining processor's time; headers of
//! objects and boxed numbers, which copied suffixes have on a virtual machine
//! # Errors          parameters out of range; copied suffixes that do not fit in memory, or are more than 2^32 - 1 accesses
//! # Cost            2·`gap` steps for each page of each segment, and `gap` more for each extended sequence in it; copies besides:
//! up to half a segment for each page of it, and again for each extended sequence
//! # Source          Li, Chen, Srinivasan, Zhou, "C-Miner: Mining Block Correlations in Storage Systems", FAST 2004, whose
//! values for gap, support and segments are not taken: the defaults are ours, with the windows of clustered mining.
//!
//! By default a projected database is a list of places in the stream, 4 bytes a segment, and only the projections on the path
//! from the root are alive: pseudo-projection (Pei et al., "PrefixSpan", ICDE 2001). `projection = physical` copies the suffixes
//! to the end of their segments, as a plain implementation does that takes the definition of a projected database at its
//! word; all projections of one level are made in one scan, which for frequent sets is called parallel projection (Han, Pei, Yin
//! and Mao, Data Mining and Knowledge Discovery 8, 2004). Sequences and pairs are the same.

use std::ops::Range;

use ftlab_core::{Error, Lpn, Result};
use serde::Serialize;

use crate::best::Best;
use crate::meter::{Meter, Most, used};
use crate::mined::check_window;
use crate::projection::{Copies, Extension, RARE};
use crate::{About, CorrelationSet, Mined, Pair, Projection, Reads, Report, Threshold};

/// Parameters of C-Miner.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CMiner {
    /// Accesses in a segment; 2 to 65536.
    pub window: u32,
    /// Most accesses from one page of a sequence to the next.
    pub gap: u32,
    /// Most pages in a sequence: 2 or 3.
    pub length: u32,
    /// Whether projected databases are places or copies.
    pub projection: Projection,
    /// Which sequences and pairs are kept.
    #[serde(flatten)]
    pub threshold: Threshold,
}

impl Default for CMiner {
    fn default() -> Self {
        CMiner {
            window: 512,
            gap: 10,
            length: 3,
            projection: Projection::default(),
            threshold: Threshold::default(),
        }
    }
}

impl CMiner {
    fn check(&self) -> Result<()> {
        check_window(self.window)?;
        if self.gap == 0 {
            return Err(Error::input("gap 0: expected at least 1 access"));
        }
        if !(2..=3).contains(&self.length) {
            return Err(Error::input(format!(
                "length {}: expected sequences of 2 or 3 pages",
                self.length
            )));
        }
        self.threshold.check()
    }

    /// Mines `reads`, which `source` names. `going` is told the share that is done and can stop the miner with an error.
    pub fn mine(&self, reads: &Reads, source: &str, going: &mut dyn FnMut(f64) -> Result<()>) -> Result<Mined> {
        self.check()?;
        going(0.0)?;
        let windows = reads.lpns().len().div_ceil(self.window as usize) as u64;
        let needed = self.threshold.needed(windows);
        let mut meter = Meter::default();
        let database = Database::new(reads.lpns(), self, needed, &mut meter)?;
        let mut found = database.pairs(&mut meter, &mut |share| going(0.5 * share))?;
        let mut triples = 0;
        if self.length == 3 {
            triples = database.triples(&mut found, &mut meter, &mut |share| going(0.5 + 0.5 * share))?;
        }
        let two = found.pairs.len() as u64;
        let nested = found.open.iter().filter(|&&open| open).count() as u64;
        let mut report = Report {
            accesses: reads.lpns().len() as u64,
            windows,
            needed,
            counted: found.counted,
            sequences: Some(two + triples),
            closed: Some(two + triples - nested),
            ..Report::default()
        };
        // An open pair is part of a closed triple of the same support, so all frequent pairs are pairs of closed sequences.
        let confident =
            |&(first, _, support): &(u32, u32, u32)| self.threshold.keeps(support, database.segments_with(first));
        found.pairs.retain(confident);
        found.apart.retain(confident);
        let pages = database.into_pages();
        let lpns = |(first, second, windows): (u32, u32, u32)| {
            let [first, second] = [first, second].map(|page| Lpn(pages[page as usize]));
            Pair { first, second, windows }
        };
        // In place of what was found, not beside it.
        let mut pairs: Vec<Pair> = found.pairs.into_iter().map(lpns).collect();
        pairs.extend(found.apart.iter().copied().map(lpns));
        meter.alive(&[used(&pages), used(&pairs), used(&found.open), used(&found.apart)]);
        let best = Best::of(pairs, self.threshold.most as usize);
        let left_out = best.left_out();
        let about = About {
            source: source.to_owned(),
            miner: format!("C-Miner, gap {}, sequences of at most {}", self.gap, self.length),
            unit: reads.unit(),
            window: self.window,
            support: self.threshold.support,
            windows,
        };
        let set = CorrelationSet::new(about, best.finish())?;
        report.pairs = set.pairs().len() as u64;
        report.left_out = left_out;
        report.took(meter.peak(), reads);
        Ok(Mined { set, report })
    }
}

/// The sequence database: frequent pages by number, where each first lies in each segment.
struct Database {
    /// Frequent pages in order of address.
    pages: Vec<u32>,
    /// The stream as numbers of pages, or `RARE`.
    stream: Vec<u32>,
    segment: usize,
    gap: usize,
    needed: u32,
    /// Where the suffixes of each page start among all; one more at the end.
    starts: Vec<u32>,
    projected: Projected,
}

/// The database projected on each page: a suffix for each segment with the page, which begins behind its first place there.
enum Projected {
    /// These places in the stream.
    Places(Vec<u32>),
    Copies(Copies),
}

/// Frequent sequences as page numbers.
struct Found {
    /// Sequences of two with their support, in order of key.
    pairs: Vec<(u32, u32, u32)>,
    /// Which of them lie in one of three with the same support.
    open: Vec<bool>,
    /// Pairs of pages of sequences of three that are no sequence of two, in order of key.
    apart: Vec<(u32, u32, u32)>,
    counted: u64,
}

impl Found {
    fn bytes(&self) -> u64 {
        used(&self.pairs) + used(&self.open) + used(&self.apart)
    }

    fn at(&self, first: u32, second: u32) -> Option<usize> {
        self.pairs
            .binary_search_by_key(&(first, second), |&(a, b, _)| (a, b))
            .ok()
    }

    /// A frequent sequence of three. Its first two pages are a sequence with at least this support; its last two need not
    /// be, as they count from the place where the first one leads.
    fn triple(&mut self, [x, y, z]: [u32; 3], support: u32) {
        for (first, second) in [(x, y), (y, z), (x, z)] {
            let known = self.at(first, second).map(|at| (at, self.pairs[at].2));
            if let Some((at, _)) = known.filter(|&(_, own)| own == support) {
                self.open[at] = true;
            }
            if first != second && known.is_none_or(|(_, own)| own < support) {
                self.apart.push((first, second, support));
            }
        }
    }

    /// Each pair once, with its best support; where it is a sequence of two as well, the better of both stands there.
    fn settle(&mut self) {
        self.apart
            .sort_unstable_by_key(|&(a, b, support)| (a, b, std::cmp::Reverse(support)));
        self.apart.dedup_by_key(|&mut (a, b, _)| (a, b));
    }
}

impl Database {
    fn new(lpns: &[u32], miner: &CMiner, needed: u32, meter: &mut Meter) -> Result<Self> {
        let segment = miner.window as usize;
        // Every (page, segment) once: first all, then those of frequent pages.
        let mut sorted: Vec<u32> = Vec::with_capacity(segment);
        let mut all: Vec<u32> = Vec::new();
        let mut most_sorted = Most::default();
        for accesses in lpns.chunks(segment) {
            sorted.clear();
            sorted.extend_from_slice(accesses);
            most_sorted.see(&sorted);
            sorted.sort_unstable();
            sorted.dedup();
            all.extend_from_slice(&sorted);
        }
        all.sort_unstable();
        let mut pages: Vec<u32> = Vec::new();
        let mut starts: Vec<u32> = vec![0];
        for run in all.chunk_by(|a, b| a == b) {
            if run.len() as u64 >= u64::from(needed) {
                pages.push(run[0]);
                starts.push(starts[starts.len() - 1] + run.len() as u32);
            }
        }
        meter.alive(&[most_sorted.bytes(), used(&all), used(&pages), used(&starts)]);
        drop((sorted, all));
        let stream: Vec<u32> = lpns
            .iter()
            .map(|lpn| pages.binary_search(lpn).map_or(RARE, |page| page as u32))
            .collect();
        let mut places = vec![0u32; starts[starts.len() - 1] as usize];
        let mut next = starts.clone();
        for (at, &page) in stream.iter().enumerate().filter(|&(_, &page)| page != RARE) {
            let page = page as usize;
            let known = next[page] > starts[page] && places[next[page] as usize - 1] as usize / segment == at / segment;
            if !known {
                places[next[page] as usize] = at as u32;
                next[page] += 1;
            }
        }
        let of_places = used(&places);
        let mut database = Database {
            pages,
            stream,
            segment,
            gap: miner.gap as usize,
            needed,
            starts,
            projected: Projected::Places(Vec::new()),
        };
        meter.alive(&[database.bytes(), of_places, used(&next)]);
        drop(next);
        database.projected = match miner.projection {
            Projection::Pseudo => Projected::Places(places),
            Projection::Physical => {
                let suffixes = places.iter().map(|&place| database.behind(place));
                let copies = Copies::of(&database.stream, suffixes)?;
                meter.alive(&[database.bytes(), of_places, copies.bytes()]);
                Projected::Copies(copies)
            }
        };
        Ok(database)
    }

    fn bytes(&self) -> u64 {
        let projected = match &self.projected {
            Projected::Places(places) => used(places),
            Projected::Copies(copies) => copies.bytes(),
        };
        used(&self.pages) + used(&self.stream) + used(&self.starts) + projected
    }

    /// What lies behind a place of the stream in its segment.
    fn behind(&self, place: u32) -> Range<usize> {
        let place = place as usize;
        let segment_end = (place / self.segment + 1) * self.segment;
        place + 1..segment_end.min(self.stream.len())
    }

    /// In what the suffixes lie.
    fn text(&self) -> &[u32] {
        match &self.projected {
            Projected::Places(_) => &self.stream,
            Projected::Copies(copies) => copies.items(),
        }
    }

    /// The database projected on a page.
    fn of(&self, page: u32) -> impl Iterator<Item = Range<usize>> {
        let all = self.starts[page as usize] as usize..self.starts[page as usize + 1] as usize;
        all.map(|i| match &self.projected {
            Projected::Places(places) => self.behind(places[i]),
            Projected::Copies(copies) => copies.suffix(i),
        })
    }

    /// Segments with a page.
    fn segments_with(&self, page: u32) -> u32 {
        self.starts[page as usize + 1] - self.starts[page as usize]
    }

    fn into_pages(self) -> Vec<u32> {
        self.pages
    }

    /// Sequences of two.
    fn pairs(&self, meter: &mut Meter, going: &mut dyn FnMut(f64) -> Result<()>) -> Result<Found> {
        let mut found = Found {
            pairs: Vec::new(),
            open: Vec::new(),
            apart: Vec::new(),
            counted: 0,
        };
        let mut extension = Extension::new(self.pages.len(), self.gap);
        for x in 0..self.pages.len() as u32 {
            if x % 256 == 0 {
                going(f64::from(x) / self.pages.len() as f64)?;
            }
            extension.count(self.text(), self.of(x), x);
            found.counted += extension.touched.len() as u64;
            let frequent = extension
                .touched
                .iter()
                .filter(|&&y| extension.support[y as usize] >= self.needed);
            found
                .pairs
                .extend(frequent.map(|&y| (x, y, extension.support[y as usize])));
            extension.clear();
        }
        found.open = vec![false; found.pairs.len()];
        meter.alive(&[self.bytes(), found.bytes(), extension.bytes()]);
        Ok(found)
    }

    /// Sequences of three, of which only their number and their pairs are kept.
    fn triples(&self, found: &mut Found, meter: &mut Meter, going: &mut dyn FnMut(f64) -> Result<()>) -> Result<u64> {
        let mut triples = 0;
        let mut extension = Extension::new(self.pages.len(), self.gap);
        // The database projected on all x.y of one x: places of y in the suffixes of x, sorted by y.
        let mut projected: Vec<(u32, u32)> = Vec::new();
        let (mut most_projected, mut most_copied) = (Most::default(), 0);
        let mut settled = 0;
        let mut from = 0;
        while from < found.pairs.len() {
            let x = found.pairs[from].0;
            let to = from + found.pairs[from..].partition_point(|&(first, _, _)| first == x);
            going(from as f64 / found.pairs.len() as f64)?;
            projected.clear();
            extension.visit(self.text(), self.of(x), x, |y, place| projected.push((y, place)));
            most_projected.see(&projected);
            let frequent = &found.pairs[from..to];
            projected.retain(|&(y, _)| frequent.binary_search_by_key(&y, |&(_, second, _)| second).is_ok());
            projected.sort_unstable();
            let copies = self.copy(&projected)?;
            most_copied = copies.as_ref().map_or(0, Copies::bytes).max(most_copied);
            let mut copied = 0;
            for of_y in projected.chunk_by(|a, b| a.0 == b.0) {
                let y = of_y[0].0;
                match &copies {
                    Some(copies) => {
                        let suffixes = (copied..copied + of_y.len()).map(|i| copies.suffix(i));
                        extension.count(copies.items(), suffixes, y);
                    }
                    None => {
                        let suffixes = of_y.iter().map(|&(_, place)| self.behind(place));
                        extension.count(&self.stream, suffixes, y);
                    }
                }
                copied += of_y.len();
                found.counted += extension.touched.len() as u64;
                for i in 0..extension.touched.len() {
                    let z = extension.touched[i];
                    let support = extension.support[z as usize];
                    if support >= self.needed {
                        triples += 1;
                        found.triple([x, y, z], support);
                    }
                }
                extension.clear();
            }
            if found.apart.len() >= 2 * settled + 65_536 {
                let growth = [extension.bytes(), most_projected.bytes(), most_copied].iter().sum();
                meter.alive(&[self.bytes(), found.bytes(), growth]);
                found.settle();
                settled = found.apart.len();
            }
            from = to;
        }
        let growth = [extension.bytes(), most_projected.bytes(), most_copied].iter().sum();
        meter.alive(&[self.bytes(), found.bytes(), growth]);
        found.settle();
        // What is a sequence of two already only lends its support, where that is better.
        let mut apart = std::mem::take(&mut found.apart);
        apart.retain(|&(first, last, support)| match found.at(first, last) {
            Some(at) => {
                found.pairs[at].2 = found.pairs[at].2.max(support);
                false
            }
            None => true,
        });
        found.apart = apart;
        Ok(triples)
    }

    /// What follows these places in the suffixes in which they lie, if suffixes are copied.
    fn copy(&self, projected: &[(u32, u32)]) -> Result<Option<Copies>> {
        match &self.projected {
            Projected::Places(_) => Ok(None),
            Projected::Copies(of_pages) => {
                let suffixes = projected.iter().map(|&(_, place)| of_pages.behind(place));
                Copies::of(of_pages.items(), suffixes).map(Some)
            }
        }
    }
}
