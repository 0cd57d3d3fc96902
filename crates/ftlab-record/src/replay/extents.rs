//! Where files lie on the device: a simulated allocator of extents.
//!
//! # Model
//! Pages of 4 KiB. A file's next pages go right behind its last ones where that place is free, else to the lowest free
//! place that holds them all (first fit), else to the largest pieces there are below the end of what was ever used. What is
//! freed is joined with free neighbours and used again. A file that grows keeps up to 1 MiB behind its end for itself, so that
//! files that grow side by side do not alternate page by page; what it did not use is given back when it is closed for the last time,
//! truncated or removed, or when the device is full.
//!
//! With a size, the device is refused more than that; without one it is as large as the files need at once.
//! # Not modelled
//! Block groups, directories, inodes and other metadata of a file system; where a file that existed before the recording
//! really lay, unless its real extents are used.

use std::collections::BTreeMap;

use ftlab_core::{Error, Result, units};

pub const PAGE: u64 = 4096;
/// Pages that a growing file keeps for itself behind its end.
const KEPT: u64 = (1 << 20) / PAGE;

/// The device's free and used pages.
pub struct Space {
    /// Free places below `end`: first page and number of pages; never adjacent.
    free: BTreeMap<u64, u64>,
    /// No page from here on was ever used.
    end: u64,
    /// Pages of the device.
    size: u64,
}

impl Space {
    pub fn new(device_bytes: Option<u64>) -> Self {
        Space {
            free: BTreeMap::new(),
            end: 0,
            // 2^60 bytes: the largest address of a trace.
            size: device_bytes.unwrap_or(1 << 60) / PAGE,
        }
    }

    /// Takes pages out of what can be given away, whether or not they are free.
    pub fn reserve(&mut self, first: u64, pages: u64) {
        let past = first.saturating_add(pages);
        if past > self.end {
            let end = self.end;
            self.end = past;
            self.free_up(end, past - end);
        }
        let overlapping: Vec<(u64, u64)> = self
            .free
            .range(..past)
            .rev()
            .take_while(|&(&start, &length)| start + length > first)
            .map(|(&start, &length)| (start, length))
            .collect();
        for (start, length) in overlapping {
            self.free.remove(&start);
            if start < first {
                self.free.insert(start, first - start);
            }
            if start + length > past {
                self.free.insert(past, start + length - past);
            }
        }
    }

    /// Takes up to `pages` pages at exactly `first`; how many of them were free.
    fn take_at(&mut self, first: u64, pages: u64) -> u64 {
        if first == self.end {
            let taken = pages.min(self.size.saturating_sub(first));
            self.end += taken;
            return taken;
        }
        let Some((&start, &length)) = self.free.range(..=first).next_back() else {
            return 0;
        };
        if start + length <= first {
            return 0;
        }
        let taken = pages.min(start + length - first);
        self.reserve(first, taken);
        taken
    }

    /// Takes at most `pages` pages somewhere: place and number, none when the device is full.
    fn take(&mut self, pages: u64) -> Option<(u64, u64)> {
        let fitting = self.free.iter().find(|&(_, &length)| length >= pages);
        if let Some((&start, _)) = fitting {
            return Some((start, self.take_at(start, pages)));
        }
        // What is free at the very end grows into what was never used.
        let last = self.free.iter().next_back();
        let start = match last {
            Some((&start, &length)) if start + length == self.end => start,
            _ => self.end,
        };
        if pages <= self.size.saturating_sub(start) {
            self.free.remove(&start);
            self.end = start + pages;
            return Some((start, pages));
        }
        let largest = self
            .free
            .iter()
            .max_by_key(|&(&start, &length)| (length, std::cmp::Reverse(start)));
        if let Some((&start, &length)) = largest {
            return Some((start, self.take_at(start, length.min(pages))));
        }
        let left = self.size.saturating_sub(self.end).min(pages);
        (left > 0).then(|| (self.end, self.take_at(self.end, left)))
    }

    fn free_up(&mut self, first: u64, pages: u64) {
        if pages == 0 {
            return;
        }
        let (mut start, mut length) = (first, pages);
        if let Some((&before, &n)) = self.free.range(..first).next_back()
            && before + n == first
        {
            self.free.remove(&before);
            (start, length) = (before, n + length);
        }
        if let Some(n) = self.free.remove(&(first + pages)) {
            length += n;
        }
        self.free.insert(start, length);
    }
}

/// Where the pages of one file lie.
#[derive(Default)]
pub struct FileMap {
    /// Runs of pages: first page of the file, place on the device, pages.
    runs: BTreeMap<u64, (u64, u64)>,
    /// Pages behind the file's last ones that it keeps: place and number.
    kept: Option<(u64, u64)>,
    /// Where the pages lie by what the kernel says; they are not the allocator's.
    real: Vec<(u64, u64, u64)>,
}

impl FileMap {
    /// With places that are given: first page of the file, place, pages; ascending.
    pub fn with_real(real: Vec<(u64, u64, u64)>) -> Self {
        FileMap {
            real,
            ..FileMap::default()
        }
    }

    /// Place of a page and how many pages from there on lie together; none where the page has no place.
    pub fn find(&self, page: u64) -> Option<(u64, u64)> {
        let (&first, &(place, pages)) = self.runs.range(..=page).next_back()?;
        let into = page - first;
        (into < pages).then(|| (place + into, pages - into))
    }

    /// The next page from `at` on that has a place, `past` if there is none before.
    pub fn next_placed(&self, at: u64, past: u64) -> u64 {
        self.runs.range(at..past).next().map_or(past, |(&start, _)| start)
    }

    /// Pages without a place in `first..past`, as runs.
    fn holes(&self, first: u64, past: u64) -> Vec<(u64, u64)> {
        let mut holes = Vec::new();
        let mut at = first;
        while at < past {
            if let Some((_, pages)) = self.find(at) {
                at += pages;
                continue;
            }
            let next = self.runs.range(at..past).next().map_or(past, |(&start, _)| start);
            holes.push((at, next - at));
            at = next;
        }
        holes
    }

    /// Gives every page in `first..past` a place.
    pub fn allocate(&mut self, space: &mut Space, first: u64, past: u64) -> Result<()> {
        for (start, pages) in self.holes(first, past) {
            self.fill(space, start, pages)?;
        }
        Ok(())
    }

    fn fill(&mut self, space: &mut Space, mut at: u64, mut pages: u64) -> Result<()> {
        while pages > 0 {
            let (place, taken) = match self.real_place(at, pages) {
                Some(found) => found,
                None => self.new_place(space, at, pages)?,
            };
            self.put(at, place, taken);
            (at, pages) = (at + taken, pages - taken);
        }
        Ok(())
    }

    /// The place that the kernel gave, up to where that changes.
    fn real_place(&self, page: u64, pages: u64) -> Option<(u64, u64)> {
        let upto = self.real.partition_point(|&(first, ..)| first <= page);
        let &(first, place, length) = self.real.get(upto.checked_sub(1)?)?;
        let into = page - first;
        (into < length).then(|| (place + into, pages.min(length - into)))
    }

    fn new_place(&mut self, space: &mut Space, at: u64, pages: u64) -> Result<(u64, u64)> {
        let grows = self.runs.range(at..).next().is_none();
        // Up to the next page with a real place only.
        let next = self.real.partition_point(|&(first, ..)| first <= at);
        let pages = self.real.get(next).map_or(pages, |&(first, ..)| pages.min(first - at));
        if grows && let Some((place, kept)) = self.kept.take() {
            let taken = pages.min(kept);
            if taken < kept {
                self.kept = Some((place + taken, kept - taken));
            }
            return Ok((place, taken));
        }
        let before = at
            .checked_sub(1)
            .and_then(|page| self.find(page))
            .map(|(place, _)| place + 1);
        let reserve = if grows && at > 0 { KEPT.saturating_sub(pages) } else { 0 };
        if let Some(goal) = before {
            let taken = space.take_at(goal, pages + reserve);
            if taken > 0 {
                self.kept = (taken > pages).then(|| (goal + pages, taken - pages));
                return Ok((goal, taken.min(pages)));
            }
        }
        match space.take(pages + reserve).or_else(|| space.take(pages)) {
            Some((place, taken)) => {
                if taken > pages {
                    self.kept = Some((place + pages, taken - pages));
                }
                Ok((place, taken.min(pages)))
            }
            None => Err(Error::input(format!(
                "the files of the recording need more than the device has: expected device= to be larger than {}",
                units::show_bytes(space.size * PAGE)
            ))),
        }
    }

    fn put(&mut self, at: u64, place: u64, pages: u64) {
        if let Some((&first, run)) = self.runs.range_mut(..at).next_back()
            && first + run.1 == at
            && run.0 + run.1 == place
        {
            run.1 += pages;
        } else {
            self.runs.insert(at, (place, pages));
        }
    }

    /// Moves the pages from `first` on up by so many, or down onto `first`, where nothing is.
    pub fn shift(&mut self, first: u64, pages: u64, up: bool) {
        // Real places are those of the end of the recording, behind all shifts.
        self.real.clear();
        if let Some((&start, &(place, length))) = self.runs.range(..first).next_back()
            && start + length > first
        {
            self.runs.insert(start, (place, first - start));
            self.runs
                .insert(first, (place + (first - start), start + length - first));
        }
        let behind = self.runs.split_off(&first);
        for (start, run) in behind {
            let start = if up { start + pages } else { start.saturating_sub(pages) };
            self.runs.insert(start, run);
        }
    }

    /// Gives back what the file kept behind its end.
    pub fn release_kept(&mut self, space: &mut Space) {
        if let Some((place, pages)) = self.kept.take() {
            space.free_up(place, pages);
        }
    }

    /// Frees the pages in `first..past` and says where they lay: place and number of pages, in order of the file.
    pub fn free(&mut self, space: &mut Space, first: u64, past: u64) -> Vec<(u64, u64)> {
        let mut freed = Vec::new();
        let from = self.runs.range(..=first).next_back().map_or(first, |(&start, _)| start);
        let starts: Vec<u64> = self.runs.range(from..past).map(|(&start, _)| start).collect();
        for start in starts {
            let Some(&(place, pages)) = self.runs.get(&start) else {
                continue;
            };
            let (low, high) = (start.max(first), (start + pages).min(past));
            if low >= high {
                continue;
            }
            self.runs.remove(&start);
            if start < low {
                self.runs.insert(start, (place, low - start));
            }
            if high < start + pages {
                self.runs.insert(high, (place + (high - start), start + pages - high));
            }
            let (from, pages) = (place + (low - start), high - low);
            self.give_back(space, low, from, pages);
            freed.push((from, pages));
        }
        self.release_kept(space);
        freed
    }

    /// Pages with a real place stay taken: the file has them again when they come back.
    fn give_back(&self, space: &mut Space, page: u64, place: u64, pages: u64) {
        if self.real.is_empty() {
            return space.free_up(place, pages);
        }
        for i in 0..pages {
            if self.real_place(page + i, 1).is_none_or(|(real, _)| real != place + i) {
                space.free_up(place + i, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_grow_side_by_side_keep_room_and_holes_are_used_again() {
        let mut space = Space::new(None);
        let (mut a, mut b) = (FileMap::default(), FileMap::default());
        a.allocate(&mut space, 0, 1).unwrap();
        b.allocate(&mut space, 0, 1).unwrap();
        assert_eq!((a.find(0), b.find(0)), (Some((0, 1)), Some((1, 1))));
        // Page 1 of `a` cannot follow page 0, which `b` follows: it goes to 2, and 255 pages behind it are kept.
        a.allocate(&mut space, 1, 2).unwrap();
        b.allocate(&mut space, 1, 2).unwrap();
        assert_eq!((a.find(1), b.find(1)), (Some((2, 1)), Some((2 + 256, 1))));
        a.allocate(&mut space, 2, 4).unwrap();
        assert_eq!((a.find(2), a.find(1)), (Some((3, 2)), Some((2, 3))));
        // Removing `a` frees 0 and 2 to 257 (its pages and what it kept).
        assert_eq!(a.free(&mut space, 0, u64::MAX), [(0, 1), (2, 3)]);
        assert_eq!(space.free, BTreeMap::from([(0, 1), (2, 256)]));
        let mut c = FileMap::default();
        c.allocate(&mut space, 0, 2).unwrap();
        assert_eq!(c.find(0), Some((2, 2)));
    }

    #[test]
    fn a_hole_in_the_middle_of_a_file_is_freed_and_filled() {
        let mut space = Space::new(None);
        let mut file = FileMap::default();
        file.allocate(&mut space, 0, 10).unwrap();
        assert_eq!(file.free(&mut space, 3, 5), [(3, 2)]);
        assert_eq!(
            (file.find(3), file.find(5), file.find(2)),
            (None, Some((5, 5)), Some((2, 1)))
        );
        file.allocate(&mut space, 0, 10).unwrap();
        assert_eq!(file.find(3), Some((3, 2)));
    }

    #[test]
    fn a_full_device_gives_its_pieces_and_then_says_so() {
        let mut space = Space::new(Some(1 << 20)); // 256 pages
        let (mut a, mut b) = (FileMap::default(), FileMap::default());
        a.allocate(&mut space, 0, 256).unwrap();
        a.free(&mut space, 10, 20);
        a.free(&mut space, 30, 35);
        b.allocate(&mut space, 0, 15).unwrap();
        assert_eq!((b.find(0), b.find(10)), (Some((10, 10)), Some((30, 5))));
        let error = b.allocate(&mut space, 15, 16).unwrap_err().to_string();
        assert!(error.contains("larger than 1 MiB"), "{error}");
    }

    #[test]
    fn real_places_are_used_where_there_are_any() {
        let mut space = Space::new(None);
        space.reserve(100, 4);
        let mut file = FileMap::with_real(vec![(2, 100, 4)]);
        file.allocate(&mut space, 0, 8).unwrap();
        // What has no real place goes behind what has.
        assert_eq!(
            (file.find(0), file.find(2), file.find(6)),
            (Some((0, 2)), Some((100, 6)), Some((104, 2)))
        );
        assert_eq!(file.free(&mut space, 0, 8), [(0, 2), (100, 6)]);
        // Real places are not given to others.
        assert_eq!(space.free.range(100..104).next(), None);
        file.allocate(&mut space, 3, 4).unwrap();
        assert_eq!(file.find(3), Some((101, 1)));
    }
}
